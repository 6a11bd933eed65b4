"""Draws a run, from top to bottom: cores, the pool, services, tasks, and the critical path."""

from __future__ import annotations

from junctura.workflow._record.critical_path import Attribution, Link
from junctura.workflow._record.history import Course, History
from junctura.workflow._timeline import canvas, counts
from junctura.workflow._timeline.canvas import Canvas, number
from junctura.workflow._timeline.clock import TimeAxis
from junctura.workflow._timeline.folding import FoldedGroup, groups
from junctura.workflow._timeline.pool import PoolLanes
from junctura.workflow._timeline.tasks import TaskPlace, Tasks
from junctura.workflow._view.text_format import seconds

WIDTH = 1240.0
_LEFT, _RIGHT = 184.0, 1142.0
_ARROWS_ROWS_MAX = 40
_CORES = 54.0
_LEGEND = (
    ("wait", "waits"),
    ("ready", "ready, no core free"),
    ("queue", "in a queue"),
    ("bar", "runs"),
    ("done", "done"),
    ("failed", "failed"),
    ("skipped", "skipped"),
    ("cancelled", "cancelled"),
    ("cut", "end unknown"),
    ("chain", "decided the length"),
)


def cores(history: History) -> tuple[float, float, bool]:
    """The maximum and the mean, and whether the record has cores (else tasks)."""
    known = any(course.cores is not None for course in history.courses.values())
    changes: list[tuple[float, float]] = []
    total = 0.0
    for course in history.courses.values():
        for attempt in course.attempts:
            begin, end, width = history.begin_of(attempt), history.end_of(attempt), float(course.cores or 1)
            changes += [(begin, width), (end, -width)]
            total += (end - begin) * width
    now = most = 0.0
    # An end frees resources for a beginning at the same time.
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most, total / max(history.seconds, 1e-9), known


class Drawing:
    """The picture of a run."""

    def __init__(self, history: History, attribution: Attribution, chain: list[Link]) -> None:
        self._history, self._attribution, self._chain = history, attribution, chain
        self._axis = TimeAxis(history, _LEFT, _RIGHT)
        self._canvas = Canvas()
        self._groups = groups(history, services=False)
        self._services = groups(history, services=True)
        rows = sum(len(group.courses) for group in self._groups + self._services if group.form == "rows")
        self._row = 21.0 if rows <= 20 else 18.0 if rows <= 36 else 15.0
        self._has_arrows = rows <= _ARROWS_ROWS_MAX
        bands = sum(group.form == "band" for group in self._groups + self._services)
        band = max(80.0, min(220.0, 440.0 / max(1, bands)))
        self._tasks = Tasks(self._canvas, self._axis, history, attribution, self._row, band)
        self._dots: list[tuple[float, float]] = []
        self._pool = PoolLanes(self._canvas, self._axis, history)

    def svg(self) -> str:
        """Returns the whole picture."""
        y = self._cores(22.0)
        begin = len(self._canvas.parts)
        if self._history.events:
            y = self._pool.draw(self._part("pool", y))
        if self._services:
            y = self._group_of(self._services, self._part("services", y))
        y = self._group_of(self._groups, self._part("tasks", y)) if self._groups else y
        if self._has_arrows:
            self._behind(begin)
        for x, at in self._dots:
            self._canvas.mark("done", x, at, 2, "", "of-pool")
        self._along()
        y = self._decided(y + 8)
        body, self._canvas.parts = list(self._canvas.parts), []
        self._scale(y + 4)
        bottom = self._legend(y + 44)
        self._canvas.parts += body
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {bottom:.0f}" role="img"'
        title = '<title id="picture-title">When tasks waited and ran, and what came into the pool</title>'
        return f'{head} aria-labelledby="picture-title">\n{title}\n{self._canvas}\n</svg>'

    def _part(self, name: str, y: float) -> float:
        self._canvas.line(16, y + 8, WIDTH - 16, y + 8, "rule")
        self._canvas.text(16, y + 22, name.upper(), "part")
        return y + 16

    def _group_of(self, made: list[FoldedGroup], y: float) -> float:
        for index, group in enumerate(made):
            y = self._tasks.draw(group, y + (5 if index and (len(group.courses) > 1) else 0), index)
        return y

    def _cores(self, y: float) -> float:
        axis, most_known = self._axis, cores(self._history)
        curves = {service: counts.curve(self._busy(service), axis.left, axis.right) for service in (True, False)}
        top = max(1.0, most_known[0])
        base, scale, under = y + _CORES, (_CORES - 6) / top, [0.0] * len(curves[True])
        self._canvas.path(counts.area(curves[True], under, axis.left, base, scale), "a-running service")
        self._canvas.path(counts.area(curves[False], curves[True], axis.left, base, scale), "a-running c0")
        self._canvas.line(axis.left, base, axis.right, base, "base")
        what = "cores in use" if most_known[2] else "tasks at once"
        self._canvas.text(axis.left - 12, y + 22, what, "name", "end")
        self._canvas.text(axis.left - 12, y + 36, f"{most_known[1]:.1f} on average", "say", "end")
        self._canvas.text(axis.right + 8, y + 14, f"most {most_known[0]:,.0f}", "figure")
        return base

    def _busy(self, service: bool) -> list[tuple[float, float, float]]:
        x, history = self._axis.x, self._history
        return [
            (x(history.begin_of(attempt)), x(history.end_of(attempt)), float(course.cores or 1))
            for course in history.courses.values()
            if course.service == service
            for attempt in course.attempts
        ]

    def _scale(self, bottom: float) -> None:
        """Draws axis and grid, below everything else."""
        ticks = self._axis.ticks()
        for tick in ticks:
            self._canvas.line(tick.x, 18, tick.x, bottom, "grid")
            for y in (12.0, bottom + 14):
                self._canvas.text(tick.x, y, tick.text, "axis", "middle")
        if ticks[-1].x < self._axis.right - 60:
            length = self._axis.clock.length
            self._canvas.line(self._axis.right, 18, self._axis.right, bottom, "grid end")
            for y in (12.0, bottom + 14):
                self._canvas.text(self._axis.right, y, seconds(length), "axis", "middle")
        sessions = self._history.sessions
        for index, x in enumerate(self._axis.breaks()):
            away = sessions[index + 1].begin_at - sessions[index].end_at
            text = f"stopped {seconds(away)}"
            self._canvas.rect(x - self._axis.gap / 2, 18, self._axis.gap, bottom - 18, "break", text)
            place = f"translate({number(x + 4)} {number(bottom / 2)}) rotate(-90)"
            self._canvas.add(f'<text class="break-text" text-anchor="middle" transform="{place}">{text}</text>')

    def _behind(self, begin: int) -> None:
        """Draws arrows behind the bars that begin there."""
        before, self._canvas.parts = self._canvas.parts, []
        self._arrows()
        self._canvas.parts = before[:begin] + self._canvas.parts + before[begin:]

    def _arrows(self) -> None:
        for course in self._history.courses.values():
            place = self._tasks.places.get(course.name)
            if place is None or course.ready_at is None or place.form != "row":
                continue
            origin = self._attribution.origin(course)
            came = self._tasks.places.get(origin.course.name) if origin.course else None
            is_object = bool(course.reason and course.reason.kind == "object")
            if came is not None or (is_object and self._pool.objects_y is not None):
                from_y = came.y if came else self._pool.objects_y or 0.0
                self._arrow(course, origin.at, from_y, place, "object" if is_object else "after")

    def _arrow(self, course: Course, at: float, from_y: float, place: TaskPlace, kind: str) -> None:
        x, to = self._axis.of(at), self._axis.x(course.ready_at or 0.0)
        down = 1 if place.y > from_y else -1
        bend = max(x, to - 7) if to - x > 7 else x
        corner = min(4.0, abs(place.y - from_y) / 2)
        tip = max(to, bend + corner)
        points = [
            (x, from_y),
            (bend, from_y),
            (bend, place.y - down * corner),
            (bend + corner, place.y),
            (tip, place.y),
        ]
        steps = canvas.steps(points)
        self._canvas.path(steps, f"why {kind}")
        if kind == "object":
            self._dots.append((x, from_y))
        self._canvas.path(f"M{number(tip)} {number(place.y - 2.6)}l4 2.6l-4 2.6z", f"tip {kind}")

    def _along(self) -> None:
        """Draws the chain, along the rows of its tasks."""
        last: tuple[float, float] | None = None
        for link in self._chain:
            place = self._tasks.places.get(link.task)
            if place is None:
                continue
            begin, end = self._axis.of(link.begin, is_begin=True), self._axis.of(link.end)
            y = place.y + place.bar / 2 + 1.2
            if last is not None and abs(last[1] - y) > 0.5:
                self._canvas.line(begin, last[1], begin, y, "chain")
            if link.kind == "run":
                self._canvas.line(begin, y, end, y, "chain")
            else:
                self._canvas.line(begin, y, end, y, "chain waits")
            last = (end, y)

    def _decided(self, y: float) -> float:
        """Draws the chain separately: its links one after another."""
        self._canvas.line(16, y, WIDTH - 16, y, "rule")
        y += 6
        self._canvas.text(_LEFT - 12, y + 16, "critical path", "name", "end")
        for link in self._chain:
            self._link(link, y)
        return y + 26

    def _link(self, link: Link, y: float) -> None:
        begin, end = self._axis.of(link.begin, is_begin=True), self._axis.of(link.end)
        is_run = link.kind == "run"
        words = link.words if not link.task else f"{link.task} {link.words if is_run else f'waits for {link.words}'}"
        text = f"{words}\n{seconds(link.seconds)}, from {seconds(link.begin)}"
        css = f"link link-{link.kind}" if link.kind in ("run", "room", "queue") else "link"
        self._canvas.rect(begin, y + 3, end - begin, 18, css, text, min(2.0, (end - begin) / 2))
        said = link.task if is_run else {"room": "cores", "queue": "queue"}.get(link.kind, "")
        if said and end - begin > 6.4 * min(len(said), 40) + 10:
            css = "link-text on-gold" if is_run else "link-text"
            self._canvas.text((begin + end) / 2, y + 15.6, said, css, "middle", cut=40)

    def _legend(self, y: float) -> float:
        x, drawn = _LEFT, self._canvas
        for kind, said in _LEGEND:
            if kind in ("wait", "ready", "chain"):
                drawn.line(x, y, x + 22, y, f"{kind} c0" if kind == "ready" else kind)
                x += 28
            elif kind in ("queue", "bar"):
                drawn.rect(x, y - (5 if kind == "bar" else 2.5), 22, 10 if kind == "bar" else 5, f"{kind} c0", radius=2)
                x += 28
            else:
                drawn.mark(kind, x + 4, y, 3.4)
                x += 13
            drawn.text(x, y + 3.8, said, "say")
            x += 6.0 * len(said) + 20
        return y + 16
