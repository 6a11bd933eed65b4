"""Draws the events of the pool: a mark for each event, or, if they are many, their number over time."""

from __future__ import annotations

from collections import Counter

from junctura.workflow._record.history import Event, History
from junctura.workflow._timeline.canvas import Canvas, number
from junctura.workflow._timeline.clock import TimeAxis
from junctura.workflow._view.text_format import clean, count, seconds, size

_TICKS_MAX = 320
_KINDS = ("offered", "completed", "joined", "left")
_KINDS_MAX = 8
_BIN = 4.0
_SHAPES = ("completed", "joined", "left")
_SHOWN = 6


class PoolLanes:
    """Draws events, a lane for each kind, and records the position of the objects' lane."""

    def __init__(self, canvas: Canvas, axis: TimeAxis, history: History) -> None:
        self._canvas, self._axis, self._history = canvas, axis, history
        self.objects_y: float | None = None

    def draw(self, y: float) -> float:
        """Draws all lanes from a height on; returns their end."""
        kinds: dict[str, list[Event]] = {kind: [] for kind in _KINDS}
        for event in self._history.events:
            kinds.setdefault(event.kind, []).append(event)
        for kind in [kind for kind in kinds if kinds[kind]][:_KINDS_MAX]:
            if kind == "offered":
                self.objects_y = y + 9
            y = (
                self._marks(kind, kinds[kind], y)
                if len(kinds[kind]) <= _TICKS_MAX
                else self._bars(kind, kinds[kind], y)
            )
        return y

    def _head(self, kind: str, events: list[Event], y: float) -> None:
        self._canvas.text(self._axis.left - 12, y, kind, "say", "end", cut=24)
        total = sum(event.nbytes for event in events)
        about = f"{len(events):,}" + (f", {size(total)}" if total else "")
        self._canvas.text(self._axis.right + 8, y, about, "figure")

    def _marks(self, kind: str, events: list[Event], y: float) -> float:
        self._head(kind, events, y + 13)
        self._canvas.line(self._axis.left, y + 9, self._axis.right, y + 9, "base")
        for event in events:
            x, text = self._axis.x(event.at), _words(event, self._axis.clock(event.at))
            if kind in _SHAPES:
                self._canvas.mark(kind, x, y + 9, 3.2, text, "of-pool")
            else:
                self._canvas.line(x, y + 4, x, y + 14, "tick", text)
        return y + 19

    def _bars(self, kind: str, events: list[Event], y: float) -> float:
        height = 30.0
        self._head(kind, events, y + 16)
        columns = Counter(int((self._axis.x(event.at) - self._axis.left) / _BIN) for event in events)
        most, width_s = max(columns.values()), _BIN / self._axis.scale
        columns_of = sorted(columns.items())
        steps = "".join(self._column(column, y + height, height * some / most) for column, some in columns_of)
        rate = f"{most / width_s:,.0f}" if most / width_s >= 10 else f"{most / width_s:.2g}"
        text = (
            f"{count(len(events), 'event')} of kind {clean(kind, 60)}\nat most {rate} a second, over {seconds(width_s)}"
        )
        self._canvas.path(steps, "columns", text)
        self._canvas.text(self._axis.right + 8, y + 29, f"most {rate}/s", "figure")
        self._canvas.line(self._axis.left, y + height, self._axis.right, y + height, "base")
        return y + height + 6

    def _column(self, column: int, base: float, high: float) -> str:
        left = number(self._axis.left + column * _BIN)
        return f"M{left} {number(base)}v{number(-high)}h{number(_BIN - 0.6)}v{number(high)}z"


def _words(event: Event, at: float) -> str:
    lines = [f"{clean(event.kind, 60)} at {seconds(at)}", clean(event.object or event.client)]
    lines += [f"by {clean(event.client, 120)}"] if event.object and event.client else []
    lines += [size(event.nbytes)] if event.nbytes else []
    lines += [
        f"{clean(str(name), 60)}={clean(str(value), 80)}" for name, value in list(event.attributes.items())[:_SHOWN]
    ]
    return "\n".join(line for line in lines if line)
