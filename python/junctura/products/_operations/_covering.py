"""Checks whether fields cover a window of time completely, and no part twice.

```text
  instants   the last one at the end of the window, or the first one at its start; at equal distances, or at
             distances that grow as those of a forecast do: 1 2 3 4 5 6 9 12 18 24
  ranges     each begins where the one before ends: [0-6] [6-12] [12-24]
```
Times are seconds since a common reference: the base time, or 1970.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from junctura.errors import InvalidArgument
from junctura.field import Step


class Part(NamedTuple):
    """The time of a field in a window: an instant, whose `start` is None, or the range from `start` to `end`."""

    start: int | None
    end: int
    is_amount: bool = False
    """Whether it is accumulated over its range."""


class Frame(NamedTuple):
    """A window of time."""

    span: Step
    words: str
    """The name of the window."""
    has_steps: bool = True
    """Whether its times are steps; otherwise they are moments."""
    has_start: bool = False
    """Whether an instant at its start is within it, and none at its end."""
    base: int | None = None
    """The base time, where a recipe lists the steps of one forecast: the distance of its instants may grow."""
    has_edge: bool = True
    """Whether the forecast has an instant at the end of the window, although the window itself has none there: only
    then may the distance to it differ.
    """
    may_have_one: bool = True
    """Whether one instant alone covers it."""

    def bare(self, seconds: int) -> str:
        """A time in it: 6, 90m, or 2026-08-01T06:00."""
        return Step(seconds, seconds).words if self.has_steps else str(np.datetime64(seconds, "s"))[:16]

    def at(self, seconds: int) -> str:
        """Returns the window as part of a sentence."""
        return f"step {self.bare(seconds)}" if self.has_steps else self.bare(seconds)

    def between(self, start: int, end: int) -> str:
        """Returns the interval between two times as text."""
        return f"{'steps ' if self.has_steps else ''}{self.bare(start)} to {self.bare(end)}"


def check_covered(param: str, frame: Frame, parts: Sequence[Part]) -> None:
    """Checks that parts, in the order of their ends, cover a window.

    Raises
    ------
    InvalidArgument
        A part of the window is missing, or duplicate: the error names it, and the remedy.

    """
    starts = {part.start is None for part in parts}
    if len(starts) > 1:
        at, others = (frame.at(next(one.end for one in parts if (one.start is None) == kind)) for kind in (True, False))
        cause = f"{at} is an instant, {others} a range of steps: a window has fields of one kind"
    elif starts == {True}:
        cause = lacking(frame, [part.end for part in parts])
    else:
        cause = _uncovered(frame, parts)
    if cause:
        raise InvalidArgument(f"field {param}", cause)


def lacking(frame: Frame, instants: Sequence[int], beside: Sequence[int] = ()) -> str:
    """Returns a missing instant of a window; empty if there is none.

    `beside` are instants of other windows, which determine the distance for a window with a single instant.
    """
    start, end = frame.span
    apart = distances(frame, instants)
    if frame.base is not None and len(instants) > 1 and _grow(frame, instants, apart):
        return ""
    apart += [abs(other - instants[0]) for other in beside] if len(instants) == 1 else []
    # The shortest distance: where no multiple of it is missing, there is nothing in between.
    between = min(apart)
    behind = [*range(start + between, end, between), end]
    for expected in [start, *behind[:-1]] if frame.has_start else behind:
        if expected not in instants:
            missing = f"{frame.at(expected)} of the window {frame.words}"
            return f"{missing} is missing: its fields are {long(between)} apart{_or_fewer(frame, instants)}"
    if len(instants) == 1 and not frame.may_have_one:
        return f"{frame.at(instants[0])} is the only instant of the window {frame.words}: its statistics need several"
    return ""


def distances(frame: Frame, instants: Sequence[int]) -> list[int]:
    """Returns the seconds that each instant represents: since the previous one, or in a window with a start to the
    next.
    """
    ends = [*instants, frame.span.end] if frame.has_start else [frame.span.start, *instants]
    return [after - before for before, after in itertools.pairwise(ends)]


def _grow(frame: Frame, instants: Sequence[int], apart: Sequence[int]) -> bool:
    """Whether distances grow as those of a forecast do: to multiples, at a step that is a multiple of the new one."""
    is_whole = instants[0] == frame.span.start if frame.has_start else instants[-1] == frame.span.end
    befores = instants if frame.has_start else [frame.span.start, *instants]
    edge, next_to_it = (apart[-1], apart[-2]) if frame.has_start else (apart[0], apart[1])
    is_real = frame.has_edge or edge == next_to_it
    return (is_whole and is_real) and all(
        after % before == 0 and (after == before or (at - (frame.base or 0)) % after == 0)
        for (before, after), at in zip(itertools.pairwise(apart), befores[1:], strict=False)
    )


def _or_fewer(frame: Frame, instants: Sequence[int]) -> str:
    """Returns a suggestion if some of the instants are equidistant, as in a forecast with fewer steps later on."""
    start, end = frame.span
    there = {*instants, start if frame.has_start else end}
    for count in range(len(instants), 1, -1):
        between, rest = divmod(end - start, count)
        first = start if frame.has_start else start + between
        if not rest and there.issuperset(range(first, first + count * between, between)):
            return f"; or name only those {long(between)} apart"
    return ""


def _uncovered(frame: Frame, ranges: Sequence[Part]) -> str:
    """Returns the part of the window without a range, or with two; empty if each part has one."""
    before = frame.span.start
    for part in ranges:
        start = before if part.start is None else part.start
        if start > before:
            gap = f"{frame.between(before, start)} of the window {frame.words} are missing"
            return f"{frame.at(part.end)} begins at {frame.bare(start)}, and {gap}"
        if start < before:
            what = "is added up" if part.is_amount else "is"
            overlap = f"{frame.at(part.end)} {what} from {frame.at(start)} on, expected from {frame.bare(before)} on"
            return f"{overlap}: {_remedy(frame, ranges)}"
        before = part.end
    if before < frame.span.end:
        return f"{frame.between(before, frame.span.end)} of the window {frame.words} are missing"
    return ""


def _remedy(frame: Frame, ranges: Sequence[Part]) -> str:
    """Returns a suggestion for overlapping ranges."""
    if frame.has_steps and all(part.is_amount and part.start == 0 for part in ranges):
        return "write accumulation"
    if chosen := _tiles(frame.span, ranges):
        listed = "/".join(frame.bare(part.end) for part in chosen)
        return f"name only {'the steps ' if frame.has_steps else 'those that end at '}{listed} in from"
    named = (f"{frame.bare(part.end if part.start is None else part.start)}-{frame.bare(part.end)}" for part in ranges)
    return f"no ranges among {', '.join(named)} follow one another from {frame.bare(frame.span.start)}"


def _tiles(window: Step, ranges: Iterable[Part]) -> list[Part]:
    """Returns a subset of the ranges that covers the window without overlap; none if there is none."""
    ending: dict[int, list[Part]] = {window.start: []}
    for part in sorted(ranges, key=lambda part: part.end):
        if part.start in ending:
            ending.setdefault(part.end, [*ending[part.start], part])
    return ending.get(window.end, [])


def long(seconds: int) -> str:
    """Returns a duration as text: 1 hour, 6 hours, 90m."""
    text = Step(seconds, seconds).words
    return f"{text} hour{'s' * (text != '1')}" if text.isdecimal() else text
