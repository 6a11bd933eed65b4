"""Draws tasks: as rows, as lanes that they share, or as a band of counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from junctura.workflow._record.critical_path import Attribution
from junctura.workflow._record.history import Attempt, Course, History
from junctura.workflow._timeline import counts, telling
from junctura.workflow._timeline.canvas import Canvas
from junctura.workflow._timeline.clock import TimeAxis
from junctura.workflow._timeline.folding import FoldedGroup
from junctura.workflow._view.text_format import count, seconds

_HUES = 6
_STRIP = 24.0
_LANES = 230.0
_MARKS_MAX = 300


@dataclass(frozen=True)
class TaskPlace:
    """The position of a task on the page: the middle of its row, and the height of its bar."""

    y: float
    bar: float
    form: str


class Tasks:
    """Draws groups of tasks and records the position of each task.

    Parameters
    ----------
    canvas, axis, history, attribution
        The canvas, the time axis, and the run.
    row, band
        The heights of a row and of a band.

    """

    def __init__(
        self, canvas: Canvas, axis: TimeAxis, history: History, attribution: Attribution, row: float, band: float
    ) -> None:
        self.places: dict[str, TaskPlace] = {}
        self._canvas, self._axis, self._history, self._attribution = canvas, axis, history, attribution
        self._row, self._height_of_band = row, band

    def draw(self, group: FoldedGroup, y: float, hue: int) -> float:
        """Draws a group from a height on; returns its end."""
        css = "service" if group.courses[0].service else f"c{hue % _HUES}"
        if group.form == "rows":
            return self._rows(group, y, css)
        self._head(group, y + 12)
        y += self._strip(group, y, css)
        return self._lanes(group, y, css) if group.form == "lanes" else self._band(group, y, css)

    def _head(self, group: FoldedGroup, y: float) -> None:
        self._canvas.text(self._axis.left - 12, y, group.of, "name", "end", group.of, 24)
        ran = self._durations(group.courses)
        about = f"{count(len(group.courses), 'task')}" + (f", half under {seconds(median(ran))}" if ran else "")
        self._canvas.text(self._axis.left - 12, y + 14, about, "say", "end")
        bad = sum(course.outcome == "failed" for course in group.courses)
        if bad:
            self._canvas.text(self._axis.left - 12, y + 28, f"{bad:,} failed", "say bad-text", "end")

    def _durations(self, courses: Iterable[Course]) -> list[float]:
        found = (course.attempts[-1] for course in courses if course.attempts)
        return [self._history.end_of(one) - self._history.begin_of(one) for one in found]

    def _rows(self, group: FoldedGroup, y: float, css: str) -> float:
        if len(group.courses) > 1:
            self._canvas.text(self._axis.left - 12, y + 12, group.of, "name", "end", group.of, 24)
            y += 17
        for course in group.courses:
            middle = y + self._row / 2
            label = "name" if len(group.courses) == 1 else "say"
            text = telling.of_task(course, self._history, self._attribution)
            self._canvas.text(self._axis.left - 12, middle + 4, course.name, label, "end", text, 26)
            self._course(course, TaskPlace(middle, self._row - 6, "row"), css, text)
            y += self._row
        return y

    def _course(self, course: Course, place: TaskPlace, css: str, text: str) -> None:
        """One row: waiting, ready, in a queue, running, and how it ended."""
        self.places[course.name] = place
        axis, canvas, y = self._axis, self._canvas, place.y
        until = course.ready_at if course.ready_at is not None else course.outcome_at
        until = self._history.last.end_at if until is None else until
        if course.attempts:
            until = min(until, course.attempts[0].start_at)
        canvas.line(axis.x(course.known_at), y, axis.x(until), y, "wait", text)
        before: Attempt | None = None
        for attempt in course.attempts:
            self._before(attempt, before, y, css, text)
            self._bar(attempt, place, css, course, text)
            before = attempt
        self._end(course, place, text)

    def _before(self, attempt: Attempt, before: Attempt | None, y: float, css: str, text: str) -> None:
        axis = self._axis
        start = axis.x(attempt.start_at)
        ready = axis.x(attempt.ready_at) if attempt.ready_at is not None else start
        if before is not None and before.session == attempt.session:
            self._canvas.line(axis.x(self._history.end_of(before)), y, ready, y, "wait", text)
        if start - ready > 0.5:
            self._canvas.line(ready, y, start, y, f"ready {css}", text)
        begin = axis.x(self._history.begin_of(attempt))
        if begin - start > 0.8:
            self._canvas.rect(start, y - 2.5, begin - start, 5, f"queue {css}", text, 2)

    def _bar(self, attempt: Attempt, place: TaskPlace, css: str, course: Course, text: str) -> None:
        history, axis = self._history, self._axis
        if attempt.begin_at is None and attempt.end_at is None:
            return
        begin, end = axis.x(history.begin_of(attempt)), axis.x(history.end_of(attempt))
        look = _look(attempt, course, css)
        radius = min(3.0, place.bar / 2, (end - begin) / 2)
        self._canvas.rect(begin, place.y - place.bar / 2, end - begin, place.bar, look, text, radius)
        if course.end_asked and attempt is course.attempts[-1] and begin < axis.x(course.end_asked[0]) < end:
            asked = axis.x(course.end_asked[0])
            self._canvas.rect(asked, place.y - place.bar / 2, end - asked, place.bar, "ending", text, radius)
        if attempt.number > 1 and end - begin > 60 and place.bar >= 9:
            self._canvas.text(begin + 6, place.y + 3.5, f"attempt {attempt.number}", "in-bar")
        if attempt is not course.attempts[-1] and not attempt.is_good:
            self._canvas.mark("cut" if attempt.end_at is None else "failed", end, place.y, 3.2, text)

    def _end(self, course: Course, place: TaskPlace, text: str) -> None:
        last = course.attempts[-1] if course.attempts else None
        at = self._history.end_of(last) if last else course.outcome_at
        if at is None:
            return
        x = self._axis.x(at) + 7
        kind = course.outcome or ("cut" if last and last.end_at is None else "")
        if kind:
            self._canvas.mark(kind, x, place.y, 3.4, text)
        if last and not (last.begin_at is None and last.end_at is None):
            ran = seconds(self._history.end_of(last) - self._history.begin_of(last))
            if not any(x - 20 < stop < x + 50 for stop in self._axis.breaks()):
                self._canvas.text(x + 8, place.y + 3.6, ran, "figure")

    def _lanes(self, group: FoldedGroup, y: float, css: str) -> float:
        height = min(13.0, max(4.0, _LANES / len(group.lanes)))
        y += 2
        for index, lane in enumerate(group.lanes):
            place = TaskPlace(y + (index + 0.5) * height, height - (1 if height > 5 else 0.6), "lane")
            for course, attempt in lane:
                self._in_lane(course, attempt, place, css)
        return max(y + len(group.lanes) * height, y + 24) + 4

    def _in_lane(self, course: Course, attempt: Attempt, place: TaskPlace, css: str) -> None:
        self.places[course.name] = place
        text = telling.of_task(course, self._history, self._attribution)
        begin, start = self._axis.x(self._history.begin_of(attempt)), self._axis.x(attempt.start_at)
        if begin - start > 0.8:
            self._canvas.rect(start, place.y - 1, begin - start, 2, f"queue {css}", text)
        self._bar(attempt, place, css, course, text)
        if attempt is course.attempts[-1] and course.outcome in ("failed", "cancelled"):
            end = self._axis.x(self._history.end_of(attempt))
            self._canvas.mark(course.outcome, end, place.y, max(2.6, place.bar / 3), text)

    def _strip(self, group: FoldedGroup, y: float, css: str) -> float:
        """Draws the number of tasks in a folded group that waited for cores; nothing if none did."""
        if group.form == "band":
            return 0.0
        values = self._counted(group, "ready")
        top = max(values)
        if top < 1:
            return 0.0
        self._canvas.path(
            counts.area(values, [0.0] * len(values), self._axis.left, y + _STRIP, (_STRIP - 4) / top), f"a-ready {css}"
        )
        self._canvas.text(self._axis.right + 8, y + 12, f"{top:,.0f} ready", "figure")
        return _STRIP

    def _counted(self, group: FoldedGroup, state: str) -> list[float]:
        spans = [
            (self._axis.x(a), self._axis.x(b), 1.0) for course in group.courses for a, b in self._spans(course, state)
        ]
        return counts.curve(spans, self._axis.left, self._axis.right)

    def _spans(self, course: Course, state: str) -> Iterable[tuple[float, float]]:
        """Returns the interval in which a task was in a state."""
        history = self._history
        if state == "waiting":
            first = course.attempts[0].start_at if course.attempts else history.last.end_at
            yield course.known_at, min(x for x in (course.ready_at, course.outcome_at, first) if x is not None)
            return
        for attempt in course.attempts:
            ready = attempt.ready_at if attempt.ready_at is not None else attempt.start_at
            begin, end = history.begin_of(attempt), history.end_of(attempt)
            yield {"ready": (ready, attempt.start_at), "queue": (attempt.start_at, begin), "running": (begin, end)}[
                state
            ]

    def _band(self, group: FoldedGroup, y: float, css: str) -> float:
        states = ("running", "queue", "ready", "waiting")
        curves = {state: self._counted(group, state) for state in states}
        total = [sum(column) for column in zip(*curves.values(), strict=True)]
        base, scale = y + self._height_of_band, (self._height_of_band - 8) / max(1.0, *total)
        under = [0.0] * len(total)
        for state in states:
            self._canvas.path(counts.area(curves[state], under, self._axis.left, base, scale), f"a-{state} {css}")
            under = [a + b for a, b in zip(under, curves[state], strict=True)]
        for line, state in enumerate(state for state in reversed(states) if max(curves[state]) >= 1):
            self._canvas.text(self._axis.right + 8, y + 14 + 14 * line, f"{max(curves[state]):,.0f} {state}", "figure")
        self._failures(group, base + 8)
        for course in group.courses:
            self.places.setdefault(course.name, TaskPlace(base - 1, 0, "band"))
        return base + 16

    def _failures(self, group: FoldedGroup, y: float) -> None:
        self._canvas.line(self._axis.left, y, self._axis.right, y, "base")
        bad = [course for course in group.courses if course.outcome == "failed" and course.attempts]
        for course in bad[:_MARKS_MAX]:
            at = self._axis.x(self._history.end_of(course.attempts[-1]))
            self._canvas.mark("failed", at, y, 2.6, telling.of_task(course, self._history, self._attribution))
        if len(bad) > _MARKS_MAX:
            self._canvas.text(self._axis.right + 8, y + 4, f"and {len(bad) - _MARKS_MAX:,} more", "figure")


def _look(attempt: Attempt, course: Course, css: str) -> str:
    is_last = attempt is course.attempts[-1]
    if attempt.end_at is None:
        return f"bar {css} open"
    if is_last and course.outcome in ("done", ""):
        return f"bar {css}"
    if is_last and course.outcome == "cancelled":
        return "bar off"
    return f"bar {css}" if attempt.is_good else "bar bad"
