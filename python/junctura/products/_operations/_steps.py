"""Statistics over steps, in windows of equal length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from junctura._yaml import Wrong
from junctura.errors import InvalidArgument
from junctura.products._field import Field
from junctura.products._floats import Floats
from junctura.products._operations._base import Operation, Transform, grouped, listed, stacked
from junctura.products._words import Value, canonical

# Of the fields in a window, with what GRIB calls the type of their step.
_REDUCE: dict[str, tuple[Callable[[Floats], Floats], str]] = {
    "mean": (lambda fields: np.mean(fields, axis=0), "avg"),
    "min": (lambda fields: np.min(fields, axis=0), "min"),
    "max": (lambda fields: np.max(fields, axis=0), "max"),
    # GRIB calls a sum of what fell in parts of a window what fell in all of it.
    "sum": (lambda fields: np.sum(fields, axis=0), "accum"),
}


@dataclass(frozen=True)
class Window:
    """Hours of a forecast: those behind `start`, to `end`."""

    start: int
    end: int

    @property
    def step(self) -> str:
        """As MARS writes it."""
        return f"{self.start}-{self.end}"

    def holds(self, step: int) -> bool:
        return self.start < step <= self.end


@dataclass(frozen=True)
class Statistics(Operation):
    """Makes one field of each statistic of each window.

    A window has the fields behind its start, to its end, so that a field belongs to one window: the first step of all
    only says where the first window begins. An ``accumulation`` is the field at the end less the one at the start, for
    fields that are accumulated from the start of the forecast; at step 0 these are 0, and no field is needed. Fields
    get ranges of steps, as ``0-24``, and ``stepType``, and lose the range that they came with, unless they stay what
    they are (``instant``). Where one value is missing, the statistic is missing.

    Attributes
    ----------
    begin, over
        The first step, and how many hours a window has.

    """

    name = "statistics"
    over: int
    of: tuple[str, ...]
    begin: int = 0

    @classmethod
    def read(cls, value: dict[str, Any], begin: int) -> Statistics:
        """As a requirement says it."""
        over = value["over"]
        hours = over if isinstance(over, int) else int(over.removesuffix("h"))
        return cls(hours, tuple(dict.fromkeys(listed(value["of"]))), begin)

    def windows(self, steps: Sequence[Value]) -> list[Window]:
        """The windows that steps fill.

        Raises
        ------
        Wrong
            A step belongs to no window that can be completed, or the steps are ranges already.

        """
        hours = {step for step in steps if isinstance(step, int)}
        if len(hours) < len(steps):
            raise Wrong("steps are ranges already, of which there are no statistics over steps")
        windows = [
            Window(start, start + self.over) for start in range(self.begin, max(hours, default=self.begin), self.over)
        ]
        if not windows:
            raise Wrong(f"the steps fill no window of {self.over} hours: there is none behind {self.begin}")
        for window in windows:
            needed = [window.end] + ([window.start] if self._needs_start(window) else [])
            if lacking := [step for step in needed if step not in hours]:
                raise Wrong(
                    f"the window {window.step} lacks step {lacking[0]} "
                    f"(windows of {self.over} hours begin at the first step, which is {self.begin})"
                )
        return windows

    def window(self, end: int) -> Window:
        """The window that ends with a step."""
        return Window(end - self.over, end)

    def of_window(self, window: Window) -> Statistics:
        """The same for fields of one window: what it needs of the window before it is no window of its own."""
        return replace(self, begin=window.start)

    def needed(self, window: Window, steps: Sequence[int]) -> tuple[int, ...]:
        """Which of the steps a window needs."""
        is_reduced = any(kind in _REDUCE for kind in self.of)
        return tuple(
            step
            for step in sorted(steps)
            if (is_reduced and window.holds(step))
            or step == window.end
            or (step == window.start and self._needs_start(window))
        )

    def _needs_start(self, window: Window) -> bool:
        return "accumulation" in self.of and window.start > 0

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [made for group in grouped(fields, "step", "stepType").values() for made in self._made(group)]

    def _made(self, group: list[Field]) -> Iterator[Field]:
        by_step = {_step(field): field for field in group}
        if len(by_step) < len(group):
            raise InvalidArgument(f"field {group[0].param}", "a step is there twice")
        last = max(by_step)
        for start in range(self.begin, last, self.over):
            window = Window(start, start + self.over)
            inside = [by_step[step] for step in sorted(by_step) if window.holds(step)]
            if inside:
                yield from self._of_window(window, by_step, inside)

    def _of_window(self, window: Window, by_step: dict[int, Field], inside: list[Field]) -> Iterator[Field]:
        end = by_step.get(window.end)
        if end is None:
            raise _missing(inside[0], window.end, window)
        for kind in self.of:
            if kind == "instant":
                came_as = end.attributes["stepType"] if "stepStart" in end.attributes else "instant"
                yield end.having(end.values, step=window.end, stepType=came_as)
            elif kind == "accumulation":
                values = self._accumulated(window, by_step, end)
                yield end.having(values, step=window.step, stepType="accum", stepStart=None)
            else:
                _check_parts(window, inside, is_sum=kind == "sum")
                reduce, step_type = _REDUCE[kind]
                yield end.having(reduce(stacked(inside)), step=window.step, stepType=step_type, stepStart=None)

    def _accumulated(self, window: Window, by_step: dict[int, Field], end: Field) -> Floats:
        _check_since_start(end)
        if not self._needs_start(window):
            return end.values
        start = by_step.get(window.start)
        if start is None:
            raise _missing(end, window.start, window)
        before, after = stacked([start, end])
        added: Floats = after - before
        return added


def _check_since_start(field: Field) -> None:
    if since := _since(field):
        raise InvalidArgument(
            f"field {field.param}",
            f"step {_step(field)} is added up from step {since} on, expected from the start of the forecast: write sum",
        )


def _check_parts(window: Window, fields: Sequence[Field], is_sum: bool) -> None:
    """Raises InvalidArgument if ranges of steps leave hours of the window out, or a sum has some of them twice."""
    before = window.start
    for field in fields:
        since = _since(field)
        if is_sum and since is not None and since < before:
            raise InvalidArgument(
                f"field {field.param}",
                f"step {_step(field)} is added up from step {since} on, expected from {before} on: write accumulation",
            )
        begin = _begin(field)
        if begin is not None and begin > before:
            cause = f"step {_step(field)} begins at {begin}, and steps {before} to {begin} of the window {window.step}"
            raise InvalidArgument(f"field {field.param}", f"{cause} are missing")
        before = _step(field)


def _begin(field: Field) -> int | None:
    """The step at which its range begins, if it came with that."""
    start = str(field.attributes.get("stepStart", ""))
    return int(start) if start.isdecimal() else None


def _since(field: Field) -> int | None:
    """The step from which on it is added up, if it came with that."""
    return _begin(field) if field.attributes.get("stepType") == "accum" else None


def _missing(field: Field, step: int, window: Window) -> InvalidArgument:
    return InvalidArgument(f"field {field.param}", f"step {step} of the window {window.step} is missing")


def _step(field: Field) -> int:
    step = canonical("step", field.attributes.get("step", ""))
    if not isinstance(step, int):
        raise InvalidArgument(f"field {field.param}", f"step {step} is a range already")
    return step
