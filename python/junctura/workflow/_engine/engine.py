"""The engine of a run: events in, actions out. No threads, no clock, no I/O.

A task waits for its conditions, is queued until cores and memory are free, is launched, runs, and ends; it is retried
while it has attempts left. Tasks that depend on a failed task are skipped. Services start before the tasks that use
them, hold neither cores nor memory, and are stopped when their users have ended.

An `each` creates a task for each object, until no further object can arrive: when only services run, and every earlier
event of the pool has been delivered (a `Fence`). A task that waits for something in the pool then waits only while it
can still arrive, from outside or from a service, and while nothing has failed; otherwise the task fails, with the
awaited object in its cause. So every run ends, as long as each of its tasks ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from junctura.workflow._engine import events as ev
from junctura.workflow._engine.engine_state import OVER, TaskGroup, TaskPhase, TaskState, Ties, fits, in_list, reason
from junctura.workflow._engine.resuming import needed_again
from junctura.workflow._spec.tasks import Task, Workflow

CODES = {"done": 0, "failed": 1, "interrupted": 130}
# The maximum number of selectors that matched nothing whose probable mistakes are looked for.
_HINTS_MAX = 100
_NOTED = {phase: phase.value for phase in OVER}


class Engine:
    """The engine of one run.

    Parameters
    ----------
    workflow
        The workflow.
    cores
        Number of cores for its local tasks.
    past
        The state of the run that is resumed.
    memory_bytes
        Memory for its local tasks, of which each takes what it requests; None: no limit.

    """

    def __init__(
        self, workflow: Workflow, cores: int, past: ev.Past | None = None, memory_bytes: int | None = None
    ) -> None:
        self.workflow, self.cores, self.memory_bytes = workflow, cores, memory_bytes
        server = workflow.pool.service if workflow.pool is not None else None
        self.ties = Ties(workflow.tasks, server)
        self.groups: dict[str, TaskGroup] = {}
        self.parts: dict[str, TaskState] = {}
        self._in: dict[TaskPhase, dict[str, TaskState]] = {phase: {} for phase in TaskPhase}
        # Tasks of the file, by the requests that they make to the pool.
        self._asking: dict[str, list[TaskState]] = {}
        # Queues of tasks of this host that wait for cores: tasks for objects, and others. They take turns.
        self._queues: tuple[deque[TaskState], deque[TaskState]] = (deque(), deque())
        self._turn = 0
        # The queue of tasks for other hosts.
        self._elsewhere: deque[TaskState] = deque()
        self._held = self._held_bytes = 0
        self._pool = _PoolSeen(is_others=workflow.pool is not None and workflow.pool.url is not None)
        self._pool.has_ended = workflow.pool is None
        # By the name of an `each`: known versions of objects, and those that an earlier run recorded, by key.
        self._known: dict[str, set[tuple[str, str]]] = {}
        self._before: dict[str, dict[str, list[TaskState]]] = {}
        self._noted: set[str] = set()
        self._fence = 0
        self._is_fence_asked = self._is_fenced = self._is_heard_out = False
        # By selectors that matched nothing: their probable mistakes; None: requested.
        self._hints: dict[str, str | None] = {}
        self._hints_pending = 0
        # Tasks of the file that failed, in the order of their ends.
        self._failed: list[str] = []
        # Tasks whose condition may be met, or may have become impossible.
        self._stirred: dict[str, TaskState] = {}
        # Completed before; the tasks that wait for them also wait for the tasks before them that run again.
        self._uncounted: set[str] = set()
        # Tasks of the file, by the tasks that they wait for.
        self._waiting_for: dict[str, list[TaskState]] = {}
        self._has_failed = False
        self._stopping: tuple[ev.Status, str] | None = None
        self._is_over = False
        self._actions: list[ev.Action] = []
        for task in workflow.tasks:
            part = self._add(TaskState(task, tries_left=task.attempts))
            for text in {task.start.on, task.start.each} - {None}:
                self._asking.setdefault(str(text), []).append(part)
            for name in self.ties.needs[task.name]:
                self._waiting_for.setdefault(name, []).append(part)
            for name in dict.fromkeys((task.of, task.name)):
                self.groups.setdefault(name, TaskGroup(task.service)).total += 1
        self._server = self.parts[server] if server is not None else None
        self._services = [self.parts[task.name] for task in workflow.tasks if task.service]
        self._templates = [self.parts[task.name] for task in workflow.tasks if self.parts[task.name].is_template]
        self._served_by: dict[str, list[TaskState]] = {}
        for service in self._services:
            users = self.ties.users[service.task.name]
            service.users_left = len(users)
            for user in users:
                self._served_by.setdefault(user, []).append(service)
        self._remember(past or ev.Past())

    def begin(self) -> list[ev.Action]:
        """Returns the first actions."""
        return self._then()

    def take(self, event: ev.Event) -> list[ev.Action]:
        """Returns the actions that follow an event; none once the run is over."""
        if self._is_over:
            return []
        match event:
            case ev.JobTaken():
                self._taken(event)
            case ev.Began():
                self._began(event)
            case ev.AttemptServed():
                self._note("event", event="served", pool=event.url)
                self._began(event)
            case ev.Finished():
                self._finished(event)
            case ev.Offered():
                self._offered(event)
            case ev.Fenced():
                self._is_fenced = self._is_fence_asked and event.number == self._fence
            case ev.RunInterrupted():
                self._stop("interrupted", "interrupted")
            case ev.Stopped():
                self._stop("failed", event.cause)
            case _:
                self._happened(event)
        return self._then()

    @property
    def can_resume(self) -> bool:
        """Returns whether the run can be resumed: objects in the run's own pool are lost with it."""
        return not (self._pool.is_others and self._pool.has_ended)

    @property
    def selectors(self) -> frozenset[str]:
        """Returns the requests to the pool."""
        return frozenset(self._asking)

    def counts(self) -> dict[str, int]:
        """Counts tasks by outcome; an `each` counts by its tasks, unless it failed for a reason of its own."""
        counted = dict.fromkeys(_NOTED.values(), 0)
        for part in self.parts.values():
            if part.is_over and _counts(part):
                counted[_NOTED[part.phase]] += 1
        return counted

    # Events.

    def _taken(self, event: ev.JobTaken) -> None:
        part = self._of_attempt(event)
        if part is not None and part.is_live:
            self._note("taken", task=event.task, attempt=event.attempt, identity=event.identity)

    def _began(self, event: ev.Began | ev.AttemptServed) -> None:
        part = self._of_attempt(event)
        if part is None or part.phase is not TaskPhase.LAUNCHED:
            return
        self._move(part, TaskPhase.RUNNING)
        self._note("begin", task=event.task, attempt=event.attempt)
        if not part.has_begun:
            part.has_begun = True
            for name, group in self._groups(part):
                group.begun += 1
                if group.is_met:
                    self._stir(self._waiting_for.get(name, ()))

    def _finished(self, event: ev.Finished) -> None:
        part = self._of_attempt(event)
        if part is None or not part.is_live:
            return
        self._held -= self._cores_of(part.task)
        self._held_bytes -= self._bytes_of(part.task)
        ended = event.ended
        words = {"code": ended.code, "signal": ended.signal, "cause": ended.cause}
        self._note("end", task=event.task, attempt=event.attempt, **words)
        # A server that has ended before it served the pool of the run has failed, also with status 0.
        is_unserved = part is self._server and part.phase is TaskPhase.LAUNCHED
        if (ended.is_good and not is_unserved) or (part.task.service and part.is_asked):
            self._become(part, TaskPhase.DONE)
        elif self._stopping:
            self._become(part, TaskPhase.CANCELLED, self._stopping[1])
        elif part.tries_left:
            self._queue_up(part, {"kind": "restart", "attempt": part.attempt + 1})
        else:
            unserved = "it ended before it served the pool" if ended.is_good else ""
            self._become(part, TaskPhase.FAILED, ended.cause or unserved or _in_words(ended.code, ended.signal))

    def _of_attempt(self, event: ev.JobTaken | ev.Began | ev.AttemptServed | ev.Finished) -> TaskState | None:
        part = self.parts.get(event.task)
        return part if part is not None and part.attempt == event.attempt else None

    def _offered(self, event: ev.Offered) -> None:
        wanting = [part for part in self._asking.get(event.selector, ()) if self._wants(part, event)]
        if not wanting or self._stopping:
            return
        self._unsettle()
        if event.version not in self._noted:
            self._noted.add(event.version)
            words = {"object": event.key, "version": event.version, "attributes": dict(event.attributes)}
            self._note("event", event="offered", **words, bytes=event.nbytes)
        for part in wanting:
            if part.is_template:
                self._make(part, event)
            else:
                part.sight = event
        self._stir(wanting)

    def _wants(self, part: TaskState, event: ev.Offered) -> bool:
        start = part.task.start
        if part.is_template:
            return start.each == event.selector and not (part.is_closed or part.is_over)
        return start.on == event.selector and part.phase is TaskPhase.WAITING and part.sight is None

    def _happened(self, event: ev.Event) -> None:
        """Handles an event of the pool that is not about an object."""
        if isinstance(event, ev.Hinted):
            if self._hints.get(event.selector, "") is None:
                self._hints[event.selector] = event.hint
                self._hints_pending -= 1
            return
        if isinstance(event, ev.PoolEnded):
            self._pool.has_ended = True
            self._close_open(event.cause)
            is_wanted = self._server is not None and self._server.is_asked
            if not self._pool.is_others and not is_wanted:
                self._stop("failed", event.cause)
        elif isinstance(event, ev.Joined):
            self._pool.present[event.client] = event
            self._note("event", event="joined", client=event.name, host=event.host, pid=event.pid)
            self._stir(part for part in self._in[TaskPhase.WAITING].values() if part.task.start.joined)
        elif isinstance(event, ev.Left) and event.client in self._pool.present:
            gone = self._pool.present.pop(event.client)
            words: dict[str, Any] = {"client": gone.name, "host": gone.host, "pid": gone.pid}
            words |= {"offered": event.offered, "reason": event.reason}
            self._note("event", event="left", **words)
        elif isinstance(event, ev.Completed):
            self._note("event", event="completed", bundle=event.bundle)
            self._pool.completed.add(event.bundle)
            self._stir(part for part in self._in[TaskPhase.WAITING].values() if part.task.start.bundle == event.bundle)
        self._unsettle()

    def _close_open(self, cause: str) -> None:
        """Records for each open `each` that it may lack objects: an external server of the pool has ended."""
        for part in self._templates if self._pool.is_others else ():
            if not (part.is_over or part.is_closed or part.is_full):
                part.is_closed = True
                part.cause = cause

    def _make(self, template: TaskState, sight: ev.Offered) -> None:
        """Creates a task for an object, unless there is one."""
        name = template.task.name
        known = self._known.setdefault(name, set())
        if (sight.key, sight.version) in known:
            return
        known.add((sight.key, sight.version))
        if self._is_known_from_before(name, sight) or template.is_full:
            return
        template.seen += 1
        template.open += 1
        task = replace(template.task, name=self._free_name(name))
        self._add(TaskState(task, tries_left=task.attempts, template=template, sight=sight))

    def _is_known_from_before(self, name: str, sight: ev.Offered) -> bool:
        """Whether an earlier run had a task for an object; if it did not finish, it no longer waits."""
        before = self._before.get(name, {}).get(sight.key, [])
        mine = [part for part in before if _is_of_another_life(part, sight)][:1]
        # Tasks for versions that the object replaced: they receive this version.
        mine += [part for part in before if part.again and part not in mine and _is_of_this_life(part, sight)]
        for part in mine:
            before.remove(part)
            part.sight, part.again = sight, False
        self._stir(mine)
        return bool(mine)

    def _free_name(self, name: str) -> str:
        number = self.parts[name].seen
        while f"{name}-{number}" in self.parts:
            number += 1
        return f"{name}-{number}"

    # Consequences.

    def _then(self) -> list[ev.Action]:
        while self._step():
            pass
        actions, self._actions = self._actions, []
        return actions

    def _step(self) -> bool:
        """Makes one possible transition; returns whether there was one."""
        if self._is_over:
            return False
        if self._stopping:
            return self._wind_down()
        return (
            self._end_services() or self._sort_waiting() or self._close_templates() or self._launch() or self._settle()
        )

    def _sort_waiting(self) -> bool:
        """Skips tasks that can no longer start, and queues tasks that may start."""
        did, stirred = False, self._stirred
        self._stirred = {}
        for part in stirred.values():
            if part.task.name in self._uncounted:
                did = self._count_again(part) or did
            if part.phase is not TaskPhase.WAITING:
                continue
            if bad := self._bad_of(part):
                self._skip(part, bad)
                did = True
            elif not part.is_template and self._may_start(part):
                self._queue_up(part, reason(part, self._pool.names()))
                did = True
        return did

    def _count_again(self, part: TaskState) -> bool:
        """Counts a task that an earlier run completed, once the tasks before it that run again have ended."""
        bad = self._bad_of(part)
        if not bad and not all(self.groups[name].is_met or self.groups[name].is_service for name in self._needs(part)):
            return False
        self._uncounted.discard(part.task.name)
        if bad:
            for service in self._served_by.get(part.task.name, ()):
                service.users_left -= 1
            for name, group in self._groups(part):
                group.bad = group.bad or bad
                self._stir(self._waiting_for.get(name, ()))
        else:
            self._count(part)
        return True

    def _bad_of(self, part: TaskState) -> str:
        """Returns the dependencies that did not succeed."""
        return next((bad for name in self._needs(part) if (bad := self.groups[name].bad)), "")

    def _needs(self, part: TaskState) -> tuple[str, ...]:
        return self.ties.needs[_name_in_file(part)]

    def _are_needs_met(self, part: TaskState) -> bool:
        return all(self.groups[name].is_met for name in self._needs(part))

    def _may_start(self, part: TaskState) -> bool:
        return self._are_needs_met(part) and self._is_pool_ready(part)

    def _is_pool_ready(self, part: TaskState) -> bool:
        start = part.task.start
        if part.again or (start.on is not None and part.sight is None):
            return False
        if start.bundle is not None and start.bundle not in self._pool.completed:
            return False
        names = self._pool.names() if start.joined else set()
        return all(any(fits(name, [pattern]) for name in names) for pattern in start.joined)

    def _queue_up(self, part: TaskState, why: dict[str, Any]) -> None:
        self._move(part, TaskPhase.QUEUED)
        task = part.task
        each = {"each": part.template.task.name} if part.template is not None else {}
        queue = self._queues[part.template is None] if self._cores_of(task) else self._elsewhere
        queue.append(part)
        self._note("ready", task=task.name, of=task.of, service=task.service, **each, reason=why)

    def _launch(self) -> bool:
        """Launches queued tasks in order while resources are free: a large task is not overtaken forever.

        Tasks for objects and other tasks take turns, so that neither starves the other.
        """
        for queue in (self._elsewhere, *self._queues):
            while queue and queue[0].phase is not TaskPhase.QUEUED:
                queue.popleft()
        if self._elsewhere:
            self._begin(self._elsewhere.popleft())
            return True
        turn = self._turn if self._queues[self._turn] else 1 - self._turn
        queue = self._queues[turn]
        if not queue or not self._has_room(queue[0].task):
            return False
        self._turn = 1 - turn
        self._begin(queue.popleft())
        return True

    def _has_room(self, task: Task) -> bool:
        if self._held + self._cores_of(task) > self.cores:
            return False
        return self.memory_bytes is None or self._held_bytes + self._bytes_of(task) <= self.memory_bytes

    def _begin(self, part: TaskState) -> None:
        self._move(part, TaskPhase.LAUNCHED)
        part.attempt += 1
        part.tries_left -= 1
        self._held += self._cores_of(part.task)
        self._held_bytes += self._bytes_of(part.task)
        self._unsettle()
        self._actions.append(ev.Begin(part.task, part.attempt, part.sight))

    def _cores_of(self, task: Task) -> int:
        """Number of this host's cores that it holds; a service holds none, or the tasks that need the service might
        never start.
        """
        return 0 if task.service or task.executor != "local" else min(task.resources.cores, self.cores)

    def _bytes_of(self, task: Task) -> int:
        """The memory of this host that it requests; a service holds none, as it holds no cores."""
        if task.service or task.executor != "local" or self.memory_bytes is None:
            return 0
        return min(task.resources.memory_bytes or 0, self.memory_bytes)

    def _end_services(self) -> bool:
        """Stops services without users."""
        idle = [part for part in self._services if not (part.is_over or part.is_asked or part.users_left)]
        return self._dismiss(idle, "its users are done")

    def _dismiss(self, parts: Iterable[TaskState], cause: str) -> bool:
        """Stops the running services among these, and cancels the others; returns whether there were any."""
        did = False
        for part in parts:
            did = True
            if part.is_live:
                self._ask(part, cause)
            else:
                self._cancel(part, cause)
        return did

    def _ask(self, part: TaskState, cause: str, *, at_once: bool = False) -> None:
        part.is_asked = True
        self._note("end_asked", task=part.task.name, attempt=part.attempt, cause=cause, at_once=at_once)
        self._actions.append(ev.End(part.task.name, part.attempt, at_once))

    def _cancel(self, part: TaskState, cause: str) -> None:
        if part.was_done and not self._stopping:
            # An earlier run completed it, and no task needs it again.
            self._become(part, TaskPhase.DONE)
        else:
            self._become(part, TaskPhase.CANCELLED, cause)

    # Tasks that have ended.

    def _become(self, part: TaskState, phase: TaskPhase, cause: str = "", *, is_warned: bool = False) -> None:
        self._move(part, phase)
        self._has_failed = self._has_failed or (phase in (TaskPhase.FAILED, TaskPhase.SKIPPED) and not part.is_well)
        if phase is TaskPhase.FAILED and part.template is None:
            self._failed.append(part.task.name)
        words = {"allowed": True} if phase is TaskPhase.FAILED and part.task.may_fail else {}
        words |= {"counts": _counts(part)} if part.is_template else {}
        words |= {"warning": True} if is_warned else {}
        self._note(_NOTED[phase], task=part.task.name, cause=cause, **words)
        self._unsettle()
        if part.template is not None:
            part.template.open -= 1
            part.template.bad += not part.is_well
            return
        self._count(part)

    def _count(self, part: TaskState) -> None:
        """Counts an ended task of the file."""
        for service in self._served_by.get(part.task.name, ()):
            service.users_left -= 1
        is_bad = not part.is_well
        # A completed service may never have started, and a cancelled one may have started.
        if part.task.service and part.phase is not TaskPhase.FAILED:
            is_bad = not part.has_begun
        for name, group in self._groups(part):
            group.well += part.is_well
            # A service that is allowed to fail does not block the tasks that wait for its start.
            group.begun += part.task.service and not (is_bad or part.has_begun)
            is_first = is_bad and not group.bad
            if is_first:
                group.bad = part.task.name
            if is_first or group.is_met:
                self._stir(self._waiting_for.get(name, ()))

    def _stir(self, parts: Iterable[TaskState]) -> None:
        """Marks these tasks for a check whether they may start; for an `each` also the tasks created from it."""
        for part in list(parts):
            self._stirred[part.task.name] = part
            if part.is_template:
                self._stirred.update({one.task.name: one for one in self._waiting_of(part)})

    def _groups(self, part: TaskState) -> list[tuple[str, TaskGroup]]:
        """Returns the names, its own and that of the file, that it belongs to; none for a task created for an
        object.
        """
        if part.template is not None:
            return []
        return [(name, self.groups[name]) for name in dict.fromkeys((part.task.of, part.task.name))]

    def _skip(self, part: TaskState, bad: str) -> None:
        for one in self._waiting_of(part) if part.is_template else ():
            self._become(one, TaskPhase.SKIPPED, f"{bad} did not end well")
        self._become(part, TaskPhase.SKIPPED, f"{bad} did not end well")

    def _waiting_of(self, template: TaskState) -> list[TaskState]:
        return [part for part in self._in[TaskPhase.WAITING].values() if part.template is template]

    def _close_templates(self) -> bool:
        """Ends each `each` that creates no more tasks and whose tasks have ended."""
        did = False
        for part in self._templates:
            if part.is_over or not (part.is_closed or part.is_full) or part.open:
                continue
            if not part.seen:
                did = self._close_unmatched(part) or did
                continue
            did = True
            cause = part.cause or (f"{part.bad} of {part.seen} did not end well" if part.bad else "")
            self._become(part, TaskPhase.FAILED if cause else TaskPhase.DONE, cause)
        return did

    def _close_unmatched(self, part: TaskState) -> bool:
        """Ends an `each` without an object, once the probable mistakes of its selector are known."""
        start = part.task.start
        assert start.each is not None
        if start.none == "allow" and not part.cause:
            self._become(part, TaskPhase.DONE, f"no object matched {start.each}")
            return True
        if not self._is_hinted(start.each):
            return False
        cause = part.cause or f"no object matched {start.each}"
        cause += f"; {in_list(self._failed)} failed" if self._failed else ""
        is_failed = bool(part.cause) or start.none == "fail"
        phase = TaskPhase.FAILED if is_failed else TaskPhase.DONE
        self._become(part, phase, cause + self._hint(start.each), is_warned=not is_failed)
        return True

    def _is_hinted(self, selector: str) -> bool:
        """Whether the probable mistakes of a selector are known, or can no longer be; requests them."""
        if self._pool.has_ended:
            return True
        if selector not in self._hints:
            # Each is a request to the pool.
            if len(self._hints) == _HINTS_MAX:
                return True
            self._hints[selector] = None
            self._hints_pending += 1
            self._actions.append(ev.AskHint(selector))
        return self._hints[selector] is not None

    def _hint(self, selector: str) -> str:
        hint = self._hints.get(selector)
        return f"; {hint}" if hint else ""

    # When only services run.

    def _unsettle(self) -> None:
        self._is_fence_asked = self._is_fenced = False

    def _settle(self) -> bool:
        """Decides about waiting tasks once nothing more can arrive, or ends the run."""
        if self._is_anything_under_way():
            return False
        waiting = [part for part in self._in[TaskPhase.WAITING].values() if not part.task.service]
        if not waiting:
            return self._end_or_dismiss()
        stuck = self._stuck()
        if stuck and self._may_still_come():
            return False
        if not self._pool.has_ended and not self._is_fenced:
            self._ask_fence()
            return False
        if stuck:
            unmatched = [part.task.start.on for part in stuck if part.task.start.on and part.sight is None]
            # All are requested at once.
            if sum(not self._is_hinted(selector) for selector in unmatched):
                return False
            for part in stuck:
                self._give_up(part)
        else:
            self._close_some(waiting)
        return True

    def _is_anything_under_way(self) -> bool:
        if self._in[TaskPhase.QUEUED] or self._in[TaskPhase.LAUNCHED]:
            return True
        if self._hints_pending and not self._pool.has_ended:
            return True
        return any(not part.task.service or part.is_asked for part in self._in[TaskPhase.RUNNING].values())

    def _end_or_dismiss(self) -> bool:
        """Handles the case that only services are left, which may use each other."""
        left = [part for part in self._services if not part.is_over]
        if self._has_failed and not self._hear_out():
            return False
        if not left:
            self._finish("failed" if self._has_failed else "done", "")
            return True
        return self._dismiss(left, "its users are done")

    def _stuck(self) -> list[TaskState]:
        """Returns the tasks that wait for nothing but the pool, and the tasks that depend on them."""
        return [part for part in self._in[TaskPhase.WAITING].values() if self._is_stuck(part)]

    def _is_stuck(self, part: TaskState) -> bool:
        if not self._are_needs_met(part):
            return False
        if part.is_template:
            return part.task.start.count is not None and not (part.is_full or part.is_closed)
        if part.task.service:
            behind = self.ties.behind(part.task.name)
            return any(_name_in_file(one) in behind for one in self._in[TaskPhase.WAITING].values())
        return not self._is_pool_ready(part)

    def _may_still_come(self) -> bool:
        if self._pool.has_ended:
            return False
        if self._pool.is_others:
            return True
        running = self._in[TaskPhase.RUNNING].values()
        return not self._has_failed and any(part.task.service and part is not self._server for part in running)

    def _hear_out(self) -> bool:
        """Whether the record has all events of tasks in the pool of the run, as `--resume` needs them."""
        if self._pool.is_others or self._pool.has_ended or self._is_fenced:
            self._is_heard_out = True
        if not self._is_heard_out:
            self._ask_fence()
        return self._is_heard_out

    def _ask_fence(self) -> None:
        if self._is_fence_asked:
            return
        self._is_fence_asked = True
        self._fence += 1
        self._actions.append(ev.Fence(self._fence))

    def _give_up(self, part: TaskState) -> None:
        if part.is_template:
            # Tasks for objects that arrived continue.
            part.is_closed = True
            part.cause = f"only {part.seen} of {part.task.start.count} objects came"
        else:
            cause = f"{_wish(part)}, and nothing runs any more that could bring it"
            on = part.task.start.on if part.sight is None else None
            self._become(part, TaskPhase.FAILED, cause + (self._hint(on) if on else ""))

    def _close_some(self, waiting: list[TaskState]) -> None:
        """Closes each `each` that other tasks wait for, else all. If there is none, the waiting tasks are a cycle."""
        templates = [part for part in waiting if part.is_template and not part.is_closed]
        others = {_name_in_file(part) for part in waiting if not part.is_template}
        for part in [one for one in templates if self.ties.behind(one.task.name) & others] or templates:
            part.is_closed = True
        for part in [] if templates else waiting:
            if part.phase is TaskPhase.WAITING:
                self._become(part, TaskPhase.FAILED, "it waits for what waits for it")

    # Termination before the end.

    def _stop(self, status: ev.Status, cause: str) -> None:
        """Terminates running tasks: services after all other tasks, the pool last; the second time all at once."""
        live = self._live()
        if self._stopping is not None:
            # A pool that does not answer does not block the run.
            self._is_heard_out = self._is_heard_out or status == "interrupted"
            for part in live if status == "interrupted" else ():
                self._ask(part, cause, at_once=True)
            return
        self._stopping = (status, cause)
        self._dismiss([*self._in[TaskPhase.QUEUED].values(), *self._in[TaskPhase.WAITING].values()], cause)
        self._dismiss([part for part in live if not part.task.service and not part.is_asked], cause)

    def _wind_down(self) -> bool:
        assert self._stopping is not None
        status, cause = self._stopping
        live = self._live()
        if not live and self._hear_out():
            self._finish(status, cause)
            return True
        if any(not part.task.service for part in live):
            return False
        services = [part for part in live if part is not self._server]
        if not services and not self._hear_out():
            return False
        return self._dismiss([part for part in services or live if not part.is_asked], cause)

    def _finish(self, status: ev.Status, cause: str) -> None:
        self._is_over = True
        self._actions.append(ev.Over(status, CODES[status], cause))

    # State.

    def _add(self, part: TaskState) -> TaskState:
        self.parts[part.task.name] = part
        self._in[part.phase][part.task.name] = part
        self._stirred[part.task.name] = part
        return part

    def _move(self, part: TaskState, phase: TaskPhase) -> None:
        before = self._in[part.phase]
        part.move(phase)
        del before[part.task.name]
        self._in[phase][part.task.name] = part

    def _live(self) -> list[TaskState]:
        return [*self._in[TaskPhase.RUNNING].values(), *self._in[TaskPhase.LAUNCHED].values()]

    def _note(self, kind: str, **words: Any) -> None:
        self._actions.append(ev.Note(kind, words))

    def _remember(self, past: ev.Past) -> None:
        """Restores the results of an earlier run."""
        self.again = needed_again(self.workflow, past)
        if self.workflow.pool is not None and self.workflow.pool.url is not None:
            # Its objects are still there. In a pool of the run itself, versions begin again.
            self._noted |= past.offered
        past = replace(past, done=past.done - self.again)
        for seen in past.seen:
            if seen.of in self.parts and self.parts[seen.of].is_template:
                is_done = seen.is_done and seen.task not in self.again
                self._remember_seen(self.parts[seen.of], replace(seen, is_done=is_done))
        for part in self.parts.values():
            part.attempt = past.attempts.get(part.task.name, 0)
            part.was_done = part.task.name in past.done
            if part.task.name in past.done and not part.task.service and not part.is_template and part.template is None:
                self._move(part, TaskPhase.DONE)
                if self.again:
                    self._uncounted.add(part.task.name)
                else:
                    self._count(part)

    def _remember_seen(self, template: TaskState, seen: ev.Seen) -> None:
        each = template.task.start.each or ""
        sight = ev.Offered(each, seen.key, seen.version, seen.attributes)
        task = replace(template.task, name=seen.task)
        phase = TaskPhase.DONE if seen.is_done else TaskPhase.WAITING
        part = TaskState(task, phase, tries_left=task.attempts, template=template, sight=sight, again=not seen.is_done)
        if seen.is_done:
            self._known.setdefault(seen.of, set()).add((seen.key, seen.version))
        template.seen += 1
        template.open += not seen.is_done
        self._before.setdefault(seen.of, {}).setdefault(seen.key, []).append(part)
        self._add(part)


def _counts(part: TaskState) -> bool:
    """Whether the task is counted: an `each` is not, unless it fails for a reason of its own."""
    return not part.is_template or (part.phase is not TaskPhase.DONE and (part.seen == 0 or bool(part.cause)))


def _name_in_file(part: TaskState) -> str:
    """Returns its own name, or for a task created for an object the name of its `each`."""
    return part.task.name if part.template is None else part.template.task.name


class _PoolSeen:
    """The known contents of the pool."""

    def __init__(self, is_others: bool) -> None:
        self.is_others = is_others
        self.has_ended = False
        self.present: dict[int, ev.Joined] = {}
        self.completed: set[str] = set()

    def names(self) -> set[str]:
        """Names of connected clients."""
        return {one.name for one in self.present.values()}


def _is_of_another_life(before: TaskState, sight: ev.Offered) -> bool:
    """Whether it is the object that an earlier run saw: the same, or its replacement on a new server."""
    return not _is_of_this_life(before, sight) or (before.sight is not None and before.sight.version == sight.version)


def _is_of_this_life(before: TaskState, sight: ev.Offered) -> bool:
    """Whether both versions are from the same server."""
    assert before.sight is not None
    return before.sight.version.partition(".")[0] == sight.version.partition(".")[0]


def _in_words(code: int | None, signal: int | None) -> str:
    return f"ended by signal {signal}" if signal is not None else f"exit status {code}"


def _wish(part: TaskState) -> str:
    """Returns the condition in the pool that it waits for."""
    start = part.task.start
    if part.again and part.sight is not None:
        return f"its object was not offered again: {part.sight.key}"
    if start.on is not None and part.sight is None:
        return f"no object came that is {start.on}"
    if start.bundle is not None:
        return f"the bundle {start.bundle} was not completed"
    return f"not all of {', '.join(start.joined)} were in the pool at once"
