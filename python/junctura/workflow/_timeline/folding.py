"""The height of tasks on the page: one row each, lanes shared by consecutive tasks, or a band of counts."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from junctura.workflow._record.history import Attempt, Course, History

# The number of rows that one page can show.
_ROWS_MAX = 64
_ROWS_OF_ONE_MAX = 12
_LANES_MAX = 64
_LANED_MAX = 3000
_KINDS_MAX = 40
OTHERS = "other tasks"


@dataclass
class FoldedGroup:
    """Tasks of one kind.

    Attributes
    ----------
    form
        ``rows``, ``lanes`` or ``band``.
    lanes
        The attempts of each lane, where it has lanes.

    """

    of: str
    courses: list[Course]
    form: str = "rows"
    lanes: list[list[tuple[Course, Attempt]]] = field(default_factory=list)


def groups(history: History, *, services: bool) -> list[FoldedGroup]:
    """Returns tasks by kind, in the order of their first mention, each kind with the form that fits the page."""
    kinds: dict[str, list[Course]] = {}
    for course in history.tasks:
        if course.service == services:
            kinds.setdefault(course.of, []).append(course)
    if len(kinds) > _KINDS_MAX:
        kinds = _merged(kinds)
    total = sum(len(courses) for courses in kinds.values())
    made = [FoldedGroup(of, courses) for of, courses in kinds.items()]
    for group in made:
        if total > _ROWS_MAX and len(group.courses) > _ROWS_OF_ONE_MAX:
            _fold(group, history)
    return made


def _merged(kinds: dict[str, list[Course]]) -> dict[str, list[Course]]:
    """Returns the largest kinds, and all others as one."""
    large = set(sorted(kinds, key=lambda of: -len(kinds[of]))[: _KINDS_MAX // 2])
    merged = {of: courses for of, courses in kinds.items() if of in large}
    others = [course for of, courses in kinds.items() if of not in large for course in courses]
    return {**merged, OTHERS: [*merged.get(OTHERS, []), *others]}


def _fold(group: FoldedGroup, history: History) -> None:
    """Assigns attempts that do not overlap to shared lanes, within limits of attempts and lanes."""
    group.form = "band"
    attempts = [(course, attempt) for course in group.courses for attempt in course.attempts]
    if len(attempts) > _LANED_MAX:
        return
    lanes: list[list[tuple[Course, Attempt]]] = []
    busy: list[tuple[float, int]] = []
    idle: list[int] = []
    for course, attempt in sorted(attempts, key=lambda one: one[1].start_at):
        while busy and busy[0][0] <= attempt.start_at:
            heapq.heappush(idle, heapq.heappop(busy)[1])
        if not idle:
            heapq.heappush(idle, len(lanes))
            lanes.append([])
        lane = heapq.heappop(idle)
        if len(lanes) > _LANES_MAX:
            return
        lanes[lane].append((course, attempt))
        heapq.heappush(busy, (history.end_of(attempt), lane))
    if lanes:
        group.form, group.lanes = "lanes", lanes
