"""Whether fields cover a window of time: all of it, and no part of it twice.

```text
  instants   at equal distances, the last one at the end of the window
  ranges     each begins where the one before ends: [0-6] [6-12] [12-24]
```
Times are seconds since one moment that all of them have in common.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from junctura.errors import InvalidArgument
from junctura.field import Step


class Part(NamedTuple):
    """What a field of a window is of: an instant, whose `start` is None, or what happened from `start` to `end`."""

    start: int | None
    end: int
    is_amount: bool = False
    """Whether it is added up over its range."""


def check_covered(param: str, window: Step, parts: Sequence[Part]) -> None:
    """Returns where parts, in the order of their ends, cover a window.

    Raises
    ------
    InvalidArgument
        A part of the window is missing, or is there twice: the error names which, and what to do.

    """
    starts = {part.start is None for part in parts}
    if len(starts) > 1:
        at, others = (_at(next(one.end for one in parts if (one.start is None) == kind)) for kind in (True, False))
        cause = f"step {at} is an instant, step {others} a range of steps: a window has fields of one kind"
    else:
        cause = _lacking(window, parts) if starts == {True} else _uncovered(window, parts)
    if cause:
        raise InvalidArgument(f"field {param}", cause)


def _lacking(window: Step, instants: Sequence[Part]) -> str:
    """Which instant is missing, if one is; empty where none is."""
    ends = [part.end for part in instants]
    between = min(after - before for before, after in itertools.pairwise([window.start, *ends]))
    # The shortest distance: where no multiple of it is missing, there is nothing in between.
    for expected in range(window.start + between, window.end + 1, between):
        if expected not in ends:
            step = f"step {_at(expected)} of the window {window.words}"
            return f"{step} is missing: its fields are {long(between)} apart"
    return ""


def _uncovered(window: Step, ranges: Sequence[Part]) -> str:
    """Which steps no range has, or two have; empty where each is in one."""
    before = window.start
    for part in ranges:
        start = before if part.start is None else part.start
        if start > before:
            gap = f"steps {_at(before)} to {_at(start)} of the window {window.words} are missing"
            return f"step {_at(part.end)} begins at {_at(start)}, and {gap}"
        if start < before:
            what = "is added up" if part.is_amount else "is"
            overlap = f"step {_at(part.end)} {what} from step {_at(start)} on, expected from {_at(before)} on"
            return f"{overlap}: {_remedy(window, ranges)}"
        before = part.end
    return ""


def _remedy(window: Step, ranges: Sequence[Part]) -> str:
    """What to write where ranges overlap."""
    if all(part.is_amount and part.start == 0 for part in ranges):
        return "write accumulation"
    if chosen := _tiles(window, ranges):
        return f"name only the steps {_listed(part.end for part in chosen)} in from"
    return f"no ranges among {', '.join(_words(part) for part in ranges)} follow one another from {_at(window.start)}"


def _tiles(window: Step, ranges: Iterable[Part]) -> list[Part]:
    """Those of the ranges that cover the window, each part of it once; none where no ranges do."""
    ending: dict[int, list[Part]] = {window.start: []}
    for part in sorted(ranges, key=lambda part: part.end):
        if part.start in ending:
            found = [*ending[part.start], part]
            ending.setdefault(part.end, found)
    return ending.get(window.end, [])


def _at(seconds: int) -> str:
    return Step(seconds, seconds).words


def _words(part: Part) -> str:
    return Step(part.end if part.start is None else part.start, part.end).words


def long(seconds: int) -> str:
    """How long, in words: 6 hours, 90m."""
    text = _at(seconds)
    return f"{text} hours" if text.isdecimal() else text


def _listed(steps: Iterable[int]) -> str:
    return "/".join(map(_at, steps))
