"""What the course of a run knows of each task, and who waits for whom."""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from junctura.workflow._events import Offered
from junctura.workflow._tasks import Task


class Phase(enum.Enum):
    """How far a task is.

    ``waiting -> queued -> launched -> running -> done | failed``, back to ``queued`` for another attempt, and to
    ``skipped`` or ``cancelled`` from where it has not been launched.
    """

    WAITING = "waiting"
    QUEUED = "queued"
    LAUNCHED = "launched"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


LIVE = (Phase.LAUNCHED, Phase.RUNNING)
OVER = (Phase.DONE, Phase.FAILED, Phase.SKIPPED, Phase.CANCELLED)


@dataclass(eq=False)
class Part:
    """A task of the run: one that can be begun, or the `each` after which those for objects are made.

    Attributes
    ----------
    attempt
        Of now, or the last one; those of a run that is resumed count.
    tries_left
        How often it may still be begun.
    has_begun
        Whether an attempt ever ran.
    is_asked
        Whether it was told to end.
    sight
        The object that it is for, or that made it start.
    template
        Of which `each` it is made.
    again
        It is for an object that an earlier run saw, and waits until that is seen again.
    open, bad, seen
        Of an `each`: how many of its tasks have not ended, how many did not end well, and of how many objects it knows.
    is_closed
        Of an `each`: no more are made.
    cause
        Of an `each`: why it fails, besides by its tasks.

    """

    task: Task
    phase: Phase = Phase.WAITING
    attempt: int = 0
    tries_left: int = 1
    has_begun: bool = False
    is_asked: bool = False
    sight: Offered | None = None
    template: Part | None = None
    again: bool = False
    open: int = 0
    bad: int = 0
    seen: int = 0
    is_closed: bool = False
    cause: str = ""

    @property
    def is_template(self) -> bool:
        return self.task.start.each is not None and self.template is None

    @property
    def is_live(self) -> bool:
        return self.phase in LIVE

    @property
    def is_over(self) -> bool:
        return self.phase in OVER

    @property
    def is_well(self) -> bool:
        """Whether those that wait for it may start."""
        return self.phase is Phase.DONE or (self.phase is Phase.FAILED and self.task.may_fail)

    @property
    def is_full(self) -> bool:
        """Whether an `each` with a count has seen as many."""
        return self.task.start.count is not None and self.seen >= self.task.start.count


@dataclass
class Group:
    """All tasks of one name in the file, counted."""

    is_service: bool
    total: int = 0
    well: int = 0
    begun: int = 0
    over: int = 0
    # The first that ended otherwise.
    bad: str = ""

    @property
    def is_met(self) -> bool:
        """Whether those that wait for it may start."""
        return (self.begun if self.is_service else self.well) == self.total

    @property
    def is_over(self) -> bool:
        return self.over == self.total


def reason(part: Part, present: Mapping[int, str]) -> dict[str, Any]:
    """Why a task may start, as the record says it."""
    start = part.task.start
    if part.sight is not None:
        sight = part.sight
        words = {"kind": "object", "object": sight.key, "version": sight.version, "selector": sight.selector}
        return {**words, "attributes": dict(sight.attributes), "offered_at": sight.at}
    if start.bundle is not None:
        return {"kind": "bundle", "bundle": start.bundle}
    if start.joined:
        return {"kind": "joined", "clients": sorted({name for name in present.values() if fits(name, start.joined)})}
    if start.after:
        return {"kind": "after", "tasks": list(start.after)}
    return {"kind": "start"}


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether a component is meant by one of the patterns."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True)
class Ties:
    """Who waits for whom, by the names of the file.

    Attributes
    ----------
    needs
        Of each name: whose end, or of services whose beginning, it waits for; as said, and the services that it uses.
    users
        Of each service for whom it runs.

    """

    needs: Mapping[str, tuple[str, ...]]
    users: Mapping[str, frozenset[str]]
    _behind: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)

    def behind(self, name: str) -> frozenset[str]:
        """Those that wait for a name, and those that wait for them."""
        if name not in self._behind:
            self._behind[name] = frozenset(_reached({one: _askers(self.needs, one) for one in self.needs}, [name]))
        return self._behind[name]


def ties(tasks: Iterable[Task]) -> Ties:
    """Who waits for whom.

    A service runs before those that use it begin, unless it waits itself for something in the pool, which may come of
    them, or for one of them.
    """
    after: dict[str, tuple[str, ...]] = {}
    services: dict[str, tuple[str, ...]] = {}
    hesitant: set[str] = set()
    for task in tasks:
        after[task.of] = tuple(dict.fromkeys((*after.get(task.of, ()), *task.start.after)))
        if task.service:
            services[task.of] = task.users
        if waits_in_pool(task):
            hesitant.add(task.of)
    needs, users = dict(after), {}
    for name, said in services.items():
        before = _reached(after, [name])
        everyone = [one for one in after if one not in services and one not in before]
        users[name] = frozenset(one for one in (said or everyone) if one in after and one != name)
        if not hesitant & {name, *before}:
            for user in sorted(users[name]):
                if user not in _reached(needs, [name]) and name not in needs[user]:
                    needs[user] = (*needs[user], name)
    return Ties(needs, users)


def waits_in_pool(task: Task) -> bool:
    """Whether it starts when something is there in the pool."""
    start = task.start
    return start.on is not None or start.bundle is not None or bool(start.joined) or start.each is not None


def _askers(needs: Mapping[str, tuple[str, ...]], name: str) -> tuple[str, ...]:
    return tuple(one for one, wanted in needs.items() if name in wanted)


def _reached(edges: Mapping[str, tuple[str, ...]], names: Iterable[str]) -> set[str]:
    """What can be come to from names, without themselves."""
    found: set[str] = set()
    left = list(names)
    while left:
        fresh = [one for one in edges.get(left.pop(), ()) if one not in found]
        found.update(fresh)
        left += fresh
    return found
