"""The state of each task in the engine, and which tasks wait for it."""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from junctura._transitions import IllegalTransitionError
from junctura.workflow._engine.events import Offered
from junctura.workflow._spec.tasks import Task


class TaskPhase(enum.Enum):
    """The state of a task; every transition is one of `MOVES`.

    ```text
      from       to
      waiting    queued, skipped, cancelled; failed: nothing can bring what it waits for; done: an `each` has ended, or
                 an earlier run had the task done
      queued     launched, cancelled; done: a service that nobody uses again
      launched   running; queued: another attempt; done, failed, cancelled: it ended before it was known to run
      running    queued: another attempt; done, failed, cancelled
    ```
    """

    WAITING = "waiting"
    QUEUED = "queued"
    LAUNCHED = "launched"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


LIVE = (TaskPhase.LAUNCHED, TaskPhase.RUNNING)
OVER = (TaskPhase.DONE, TaskPhase.FAILED, TaskPhase.SKIPPED, TaskPhase.CANCELLED)
_ENDED = frozenset({TaskPhase.DONE, TaskPhase.FAILED, TaskPhase.CANCELLED})
MOVES: dict[TaskPhase, frozenset[TaskPhase]] = {
    TaskPhase.WAITING: frozenset({TaskPhase.QUEUED, *OVER}),
    TaskPhase.QUEUED: frozenset({TaskPhase.LAUNCHED, TaskPhase.DONE, TaskPhase.CANCELLED}),
    TaskPhase.LAUNCHED: frozenset({TaskPhase.RUNNING, TaskPhase.QUEUED, *_ENDED}),
    TaskPhase.RUNNING: frozenset({TaskPhase.QUEUED, *_ENDED}),
    **dict.fromkeys(OVER, frozenset()),
}

_NAMES_SHOWN = 3


@dataclass(eq=False)
class TaskState:
    """A task of the run: one that can be begun, or the `each` after which those for objects are made.

    Attributes
    ----------
    attempt
        The number of the current attempt, or the last one; attempts of a resumed run count.
    tries_left
        How many attempts are left.
    has_begun
        Whether any attempt ran.
    is_asked
        Whether it was asked to stop.
    sight
        The object that it was created for, or that triggered it.
    template
        The `each` that it was created from.
    again
        It is for an object that an earlier run saw, and waits until the object is seen again.
    open, bad, seen
        For an `each`: the number of its unfinished tasks, of its tasks that did not succeed, and of known objects.
    is_closed
        For an `each`: no more tasks are created.
    cause
        For an `each`: its own reason to fail, in addition to its tasks.
    was_done
        Whether an earlier run completed it.
    users_left
        For a service: the number of its users that have not ended.

    """

    task: Task
    phase: TaskPhase = TaskPhase.WAITING
    attempt: int = 0
    tries_left: int = 1
    has_begun: bool = False
    is_asked: bool = False
    sight: Offered | None = None
    template: TaskState | None = None
    again: bool = False
    open: int = 0
    bad: int = 0
    seen: int = 0
    is_closed: bool = False
    cause: str = ""
    was_done: bool = False
    users_left: int = 0

    def move(self, phase: TaskPhase) -> None:
        """Changes the phase.

        Raises
        ------
        IllegalTransitionError
            `MOVES` has no such transition: a defect of the engine.

        """
        if phase not in MOVES[self.phase]:
            raise IllegalTransitionError(f"task {self.task.name}: {phase.value} after {self.phase.value}")
        self.phase = phase

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
        """Whether tasks that wait for it may start."""
        return self.phase is TaskPhase.DONE or (self.phase is TaskPhase.FAILED and self.task.may_fail)

    @property
    def is_full(self) -> bool:
        """Whether an `each` with a count has seen that many objects."""
        return self.task.start.count is not None and self.seen >= self.task.start.count


@dataclass
class TaskGroup:
    """Counts of all tasks with one name."""

    is_service: bool
    total: int = 0
    well: int = 0
    begun: int = 0
    # The first task that did not succeed.
    bad: str = ""

    @property
    def is_met(self) -> bool:
        """Whether tasks that wait for it may start."""
        return (self.begun if self.is_service else self.well) == self.total


def reason(part: TaskState, present: Iterable[str]) -> dict[str, Any]:
    """Returns the reason for the start of a task, for the record."""
    start = part.task.start
    if part.sight is not None:
        sight = part.sight
        words = {"kind": "object", "object": sight.key, "version": sight.version, "selector": sight.selector}
        return {**words, "attributes": dict(sight.attributes), "offered_at": sight.at}
    if start.bundle is not None:
        return {"kind": "bundle", "bundle": start.bundle}
    if start.joined:
        return {"kind": "joined", "clients": sorted({name for name in present if fits(name, start.joined)})}
    if start.after:
        return {"kind": "after", "tasks": list(start.after)}
    return {"kind": "start"}


def in_list(names: Sequence[str]) -> str:
    """Returns names as text: the first three, and the number of the others."""
    shown = [*names[:_NAMES_SHOWN], *([f"{len(names) - _NAMES_SHOWN} more"] if len(names) > _NAMES_SHOWN else [])]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches a component."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


class Ties:
    """The dependency graph: tasks, and names of the file that stand for several tasks.

    A service starts before the tasks that use it, unless the service itself waits for one of them, or for something in
    the pool that may result from them. The server of the pool is used by all tasks for which it does not wait,
    including services.

    Parameters
    ----------
    tasks
        All tasks.
    server
        The task that serves the pool.

    Attributes
    ----------
    needs
        The tasks whose end, or for services whose start, each task waits for: as declared, and the services that it
        uses.
    users
        For each service, the tasks that use it.

    """

    def __init__(self, tasks: Sequence[Task], server: str | None = None) -> None:
        self.needs = {task.name: task.start.after for task in tasks}
        self.users: dict[str, frozenset[str]] = {}
        # Tasks with one name.
        self._members: dict[str, list[str]] = {}
        for task in tasks:
            if task.of != task.name:
                self._members.setdefault(task.of, []).append(task.name)
        hesitant = {task.name for task in tasks if waits_in_pool(task)}
        services = [task for task in tasks if task.service]
        if server is not None:
            self.users[server] = frozenset(self.needs) - {server, *_reached(self._edges, [server])}
            self._precede(server, self.users[server])
        for service in services:
            if service.name != server:
                before = _reached(self._edges, [service.name])
                self.users[service.name] = self._used_by(service, tasks, before)
        for service in services:
            before = _reached(self._edges, [service.name])
            if not hesitant & {service.name, *before}:
                self._precede(service.name, self.users[service.name] - before)
        self._behind: dict[str, frozenset[str]] = {}

    def behind(self, name: str) -> frozenset[str]:
        """Returns the direct and transitive dependents of a task."""
        if not self._behind:
            askers: dict[str, list[str]] = {}
            for asker in (*self.needs, *self._members):
                for asked in self._edges(asker):
                    askers.setdefault(asked, []).append(asker)
            for one in self.needs:
                self._behind[one] = frozenset(_reached(lambda asked: askers.get(asked, ()), [one]))
        return self._behind[name]

    def _precede(self, service: str, users: Iterable[str]) -> None:
        for user in sorted(users):
            if service not in self.needs[user]:
                self.needs[user] = (*self.needs[user], service)

    def _edges(self, name: str) -> Sequence[str]:
        return self._members.get(name, ()) or self.needs.get(name, ())

    def _used_by(self, service: Task, tasks: Sequence[Task], before: set[str]) -> frozenset[str]:
        named = {one for user in service.users for one in self._members.get(user, [user])} & self.needs.keys()
        everyone = [task.name for task in tasks if not task.service]
        return frozenset(named - {service.name} or set(everyone) - before or everyone)


def waits_in_pool(task: Task) -> bool:
    """Whether the start condition is something in the pool."""
    start = task.start
    return start.on is not None or start.bundle is not None or bool(start.joined) or start.each is not None


def _reached(edges: Callable[[str], Sequence[str]], names: Iterable[str]) -> set[str]:
    """Returns the names reachable from these names, which are included only if there is a cycle."""
    found: set[str] = set()
    left = list(names)
    while left:
        fresh = [one for one in edges(left.pop()) if one not in found]
        found.update(fresh)
        left += fresh
    return found
