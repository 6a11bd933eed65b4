"""The time axis of the page: seconds of the run, without the time between its sessions, which is marked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from junctura.workflow._record.critical_path import Clock
from junctura.workflow._record.history import History

_GAP = 26.0
# Tolerance for sums of seconds.
_SAME = 1e-9
_STEPS = (
    *(factor * 10.0**power for power in range(-6, 1) for factor in (1, 2, 5)),
    *(10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(3600.0, 7200.0, 10800.0, 21600.0, 43200.0, 86400.0, 172800.0, 604800.0, 2592000.0),
)


@dataclass(frozen=True)
class Tick:
    """A mark on the axis."""

    x: float
    text: str


class TimeAxis:
    """Maps times to positions on the page.

    Parameters
    ----------
    history
        The run.
    left, right
        The bounds of its time axis, in units of the picture.

    """

    def __init__(self, history: History, left: float, right: float) -> None:
        self.clock = Clock(history)
        self.left, self.right = left, right
        self._inner = self.clock.offsets[1:-1]
        # Very many sessions must leave space for the times.
        gaps = len(history.sessions) - 1
        self.gap = min(_GAP, (right - left) / 3 / max(1, gaps))
        self.scale = (right - left - gaps * self.gap) / max(self.clock.length, 1e-6)

    def x(self, at: float) -> float:
        """Returns the position of a time of day."""
        return self._place(self.clock(at), self.clock.session(at))

    def of(self, seconds: float, *, is_begin: bool = False) -> float:
        """Returns the position of seconds of the run; between two sessions, in the later one if something begins
        there.
        """
        session = bisect_right(self._inner, seconds + _SAME) if is_begin else bisect_left(self._inner, seconds - _SAME)
        return self._place(seconds, session)

    def _place(self, seconds: float, session: int) -> float:
        return self.left + seconds * self.scale + session * self.gap

    def breaks(self) -> list[float]:
        """Returns the boundaries between sessions: the middle between them."""
        return [self._place(offset, index) + self.gap / 2 for index, offset in enumerate(self._inner)]

    def ticks(self) -> list[Tick]:
        """Returns marks at round times, about as many as are readable."""
        length = self.clock.length
        wanted = length * 95 / max(1.0, self.right - self.left)
        step = next((one for one in _STEPS if one >= wanted), _STEPS[-1])
        while length / step > 40:
            step *= 2
        count = int(length / step + 1e-6)
        return [Tick(self.of(index * step, is_begin=True), _words(index * step, step)) for index in range(count + 1)]


def _words(value: float, step: float) -> str:
    """Returns the label of a tick, with its unit."""
    if value == 0:
        return "0"
    if step < 0.001:
        return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.6g} s"
    if step < 1 and value < 1:
        return f"{value * 1000:.0f} ms"
    if step < 60 and value < 60:
        return f"{value:.10g} s"
    if step < 86400:
        return _of_clock(value, step)
    return f"{value / 86400:.0f} d"


def _of_clock(value: float, step: float) -> str:
    hours, rest = divmod(round(value, 6), 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours:.0f} h" if step >= 3600 or not minutes else f"{hours:.0f} h {minutes:.0f}"
    return f"{minutes:.0f} min" if not left else f"{minutes:.0f} min {left:.10g}"
