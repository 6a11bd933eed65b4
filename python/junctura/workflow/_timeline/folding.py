"""How tasks share the height of the page: a row each, lanes that many use one after the other, or a band of counts."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from junctura.workflow._history import Course, History

# So many rows can be read on one page.
_ROWS_MAX = 64
_ROWS_OF_ONE_MAX = 12
_LANES_MAX = 64
_LANED_MAX = 3000
_KINDS_MAX = 40
OTHERS = "other tasks"


@dataclass
class Group:
    """Tasks of one kind.

    Attributes
    ----------
    form
        ``rows``, ``lanes`` or ``band``.
    lanes
        The tasks of each lane, where it has lanes or rows.

    """

    of: str
    courses: list[Course]
    form: str = "rows"
    lanes: list[list[Course]] = field(default_factory=list)


def groups(history: History, *, services: bool) -> list[Group]:
    """Tasks by kind, in the order in which the kinds are first spoken of, each with the form that there is room for."""
    kinds: dict[str, list[Course]] = {}
    for course in history.courses.values():
        if course.service == services:
            kinds.setdefault(course.of, []).append(course)
    if len(kinds) > _KINDS_MAX:
        kinds = _merged(kinds)
    total = sum(len(courses) for courses in kinds.values())
    made = [Group(of, courses) for of, courses in kinds.items()]
    for group in made:
        if total <= _ROWS_MAX or len(group.courses) <= _ROWS_OF_ONE_MAX:
            group.lanes = [[course] for course in group.courses]
        else:
            _fold(group, history)
    return made


def _merged(kinds: dict[str, list[Course]]) -> dict[str, list[Course]]:
    """The largest kinds, and all others as one."""
    large = set(sorted(kinds, key=lambda of: -len(kinds[of]))[: _KINDS_MAX // 2])
    merged = {of: courses for of, courses in kinds.items() if of in large}
    others = [course for of, courses in kinds.items() if of not in large for course in courses]
    return {**merged, OTHERS: [*merged.get(OTHERS, []), *others]}


def _fold(group: Group, history: History) -> None:
    """Tasks that do not run at the same time share a lane, if there are not too many of them, or of lanes."""
    group.form = "band"
    if len(group.courses) > _LANED_MAX:
        return
    begun = [course for course in group.courses if course.attempts]
    lanes: list[list[Course]] = []
    free: list[tuple[float, int]] = []
    idle: list[int] = []
    for course in sorted(begun, key=lambda one: one.attempts[0].start_at):
        while free and free[0][0] <= course.attempts[0].start_at:
            heapq.heappush(idle, heapq.heappop(free)[1])
        if idle:
            lane = heapq.heappop(idle)
        else:
            lane = len(lanes)
            lanes.append([])
        if len(lanes) > _LANES_MAX:
            return
        lanes[lane].append(course)
        heapq.heappush(free, (history.end_of(course.attempts[-1]), lane))
    if lanes:
        group.form, group.lanes = "lanes", lanes
