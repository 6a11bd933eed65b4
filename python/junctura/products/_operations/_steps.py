"""Statistics over steps, in windows of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from junctura._document.located_yaml import Wrong
from junctura._forks import lazy_property
from junctura.errors import InvalidArgument
from junctura.field import Step, step_of
from junctura.products._input.decoded_field import Field
from junctura.products._operations._base import (
    Operation,
    Transform,
    check_alike,
    combined,
    grouped,
    listed,
    stacked,
)
from junctura.products._operations._covering import Frame, Part, check_covered, distances, long
from junctura.products._recipe.mars_words import Value, canonical, span_of, step_at
from junctura.products._regrid.floats import Floats

# Of the fields in a window, with what GRIB calls the type of their step.
_REDUCE = {
    "mean": "avg",
    "min": "min",
    "max": "max",
    # The sum of amounts over parts of a window is, for GRIB, the accumulation over the window.
    "sum": "accum",
}


@dataclass(frozen=True)
class Window:
    """Steps of a forecast: those after `start`, up to and including `end`."""

    start: Value
    end: Value

    @lazy_property
    def span(self) -> Step:
        """In seconds."""
        return Step(_end(self.start), _end(self.end))

    @property
    def step(self) -> str:
        """The window in MARS notation."""
        return self.span.words

    def holds(self, step: Value) -> bool:
        return self.span.start < _end(step) <= self.span.end


@dataclass(frozen=True)
class Statistics(Operation):
    """Computes one field for each statistic of each window.

    A window has the fields after its start, up to and including its end, so that a field belongs to one window: the
    first step only marks the start of the first window. An ``accumulation`` is the field at the end minus the field at
    the start, for fields that are accumulated from the start of the forecast; at step 0 these are 0, and no field is
    needed. Results have ranges of steps, as ``0-24``, and ``stepType``, and lose the range of the received field,
    unless they are unchanged (``instant``). If one value is missing, the statistic is missing.

    Attributes
    ----------
    begin, over
        The first step, and the length of a window, as a step.

    """

    name = "statistics"
    # Whether a recipe lists the steps: then a missing step of a window will not arrive.
    _has_list: ClassVar[bool] = True
    over: Value
    of: tuple[str, ...]
    begin: Value = 0

    @classmethod
    def read(cls, value: dict[str, Any], begin: Value) -> Statistics:
        """Its definition in a recipe."""
        return cls(canonical("step", value["over"]), tuple(dict.fromkeys(listed(value["of"]))), begin)

    @property
    def _length(self) -> int:
        """Length of a window, in seconds."""
        return _end(self.over)

    def windows(self, steps: Sequence[Value]) -> list[Window]:
        """Returns the windows that steps fill.

        Raises
        ------
        Wrong
            A step belongs to no window that can be completed, or the steps are ranges already.

        """
        if any(span.start != span.end for span in map(span_of, steps)):
            raise Wrong("steps are ranges already, of which there are no statistics over steps")
        windows = list(self._to(max(map(_end, steps), default=0)))
        if not windows:
            raise Wrong(f"the steps fill no window of {long(self._length)}: there is none behind {self.begin}")
        for window in windows:
            needed = [window.end] + ([window.start] if self._needs_start(window) else [])
            if lacking := [step for step in needed if step not in steps]:
                raise Wrong(
                    f"the window {window.step} lacks step {lacking[0]} "
                    f"(windows of {long(self._length)} begin at the first step, which is {self.begin})"
                )
        return windows

    def _to(self, last: int) -> Iterator[Window]:
        """Returns the windows up to the one with this second."""
        for start in range(_end(self.begin), last, self._length):
            yield self.window(step_at(start + self._length))

    def window(self, end: Value) -> Window:
        """Returns the window that ends with a step."""
        return Window(step_at(_end(end) - self._length), end)

    def after(self, window: Window) -> Window:
        """Returns the next window."""
        return Window(window.end, step_at(window.span.end + self._length))

    def is_within(self, step: Value) -> bool:
        """Whether no window ends with a step."""
        return (_end(step) - _end(self.begin)) % self._length != 0

    def of_window(self, window: Window) -> Statistics:
        """Returns the operation for the fields of one window: fields of the previous window do not form their own."""
        return replace(self, begin=window.start)

    def needed(self, window: Window, steps: Iterable[Value]) -> tuple[Value, ...]:
        """Returns the steps that a window needs."""
        is_reduced = any(kind in _REDUCE for kind in self.of)
        return tuple(
            step
            for step in sorted(steps, key=_end)
            if (is_reduced and window.holds(step))
            or step == window.end
            or (step == window.start and self._needs_start(window))
        )

    def _needs_start(self, window: Window) -> bool:
        return "accumulation" in self.of and window.span.start != 0

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [
            made for group in grouped(fields, "step", "stepType", "timespan").values() for made in self._made(group)
        ]

    def _made(self, group: list[Field]) -> Iterator[Field]:
        by_step = {_step(field): field for field in group}
        if len(by_step) < len(group):
            raise InvalidArgument(f"field {group[0].param}", "a step is there twice")
        for window in self._to(max(map(_end, by_step))):
            inside = [by_step[step] for step in sorted(by_step, key=_end) if window.holds(step)]
            if inside:
                yield from self._of_window(window, by_step, inside)

    def _of_window(self, window: Window, by_step: dict[Value, Field], inside: list[Field]) -> Iterator[Field]:
        end = by_step.get(window.end)
        if end is None:
            raise _missing(inside[0], window.end, window)
        for kind in self.of:
            if kind == "instant":
                came_as = end.attributes["stepType"] if "stepStart" in end.attributes else "instant"
                yield end.having(end.values, step=window.end, stepType=came_as)
            elif kind == "accumulation":
                values = self._accumulated(window, by_step, end)
                yield end.having(values, step=window.step, stepType="accum", stepStart=None, timespan=None)
            else:
                frame = Frame(window.span, window.step, base=0 if self._has_list else None)
                values, step_type = reduced(kind, frame, inside, _parts(inside))
                yield end.having(values, step=window.step, stepType=step_type, stepStart=None, timespan=None)

    def _accumulated(self, window: Window, by_step: dict[Value, Field], end: Field) -> Floats:
        if _since(end) == window.span.start:
            return end.values
        if not self._needs_start(window):
            raise _not_from_start(end, None)
        start = by_step.get(window.start)
        if start is None:
            raise _missing(end, window.start, window)
        if _since(start) != _since(end):
            raise _not_from_start(end, start)
        before, after = stacked([start, end])
        added: Floats = after - before
        return added


@dataclass(frozen=True)
class FollowingSteps(Statistics):
    """Returns the operation for fields as they arrive, without a list of steps: only equal distances show
    completeness.
    """

    _has_list = False


def reduced(kind: str, frame: Frame, inside: Sequence[Field], parts: Sequence[Part]) -> tuple[Floats, str]:
    """Computes the statistic of the fields that cover a window, and its GRIB name.

    A mean weights each range by its length, and each instant by the time since the previous one (to the next, in a
    window that includes its start).

    Raises
    ------
    InvalidArgument
        They do not cover it, are not on one grid or of one unit, or have no such statistic.

    """
    check_covered(inside[0].param, frame, parts)
    step_type = _REDUCE[kind]
    check_alike(inside)
    are_instants = parts[0].start is None
    ends = [part.end for part in parts]
    lengths = np.array(distances(frame, ends) if are_instants else np.diff([frame.span.start, *ends]))
    if kind in ("min", "max") or (lengths == lengths[0]).all() or (kind == "sum" and not are_instants):
        (made,) = combined(inside, [(kind, 0.0)])
        return made, step_type
    if kind == "sum":
        apart = f"{long(int(lengths.min()))} to {long(int(lengths.max()))} apart"
        cause = f"the fields of the window {frame.words} are {apart}, so a sum of instants has no meaning"
        raise InvalidArgument(f"field {inside[0].param}", f"{cause}: write mean, or name only those of one distance")
    if not are_instants and inside[0].attributes["stepType"] != "avg":
        ranges = ", ".join(frame.between(part.start or 0, part.end) for part in parts)
        raise InvalidArgument(f"field {inside[0].param}", f"a mean of ranges of several lengths ({ranges}): write sum")
    return np.average(stacked(inside), axis=0, weights=lengths), step_type


def _parts(fields: Sequence[Field]) -> list[Part]:
    """Returns the time or range of each field."""
    return [Part(_begin(field), _seconds(field), field.attributes.get("stepType") == "accum") for field in fields]


def _begin(field: Field) -> int | None:
    """Returns the second at which its range begins, if the received field had a range."""
    begin = step_of(str(field.attributes.get("stepStart", "")))
    return None if begin is None else begin.start


def _since(field: Field) -> int:
    """Returns the second from which it is accumulated: the start of the forecast, unless the received field had
    another.
    """
    return (_begin(field) or 0) if field.attributes.get("stepType") == "accum" else 0


def _seconds(field: Field) -> int:
    return _end(_step(field))


def _end(step: Value) -> int:
    """In seconds."""
    return span_of(step).end


def _not_from_start(end: Field, start: Field | None) -> InvalidArgument:
    """Checks that the accumulation of a window is not a difference of two fields."""
    since, until = (Step(at, at).words for at in (_since(end), _seconds(end)))
    cause = f"step {until} is added up from step {since} on, expected from the start of the forecast"
    if start is not None:
        other, at = (Step(at, at).words for at in (_since(start), _seconds(start)))
        cause = f"step {until} is added up from step {since} on, and step {at} from step {other} on"
    return InvalidArgument(f"field {end.param}", f"{cause}: write sum, and name all steps")


def _missing(field: Field, step: Value, window: Window) -> InvalidArgument:
    return InvalidArgument(f"field {field.param}", f"step {step} of the window {window.step} is missing")


def _step(field: Field) -> Value:
    step = canonical("step", field.attributes.get("step", ""))
    span = span_of(step)
    if span.start != span.end:
        raise InvalidArgument(f"field {field.param}", f"step {step} is a range already")
    return step
