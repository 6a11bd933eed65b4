"""Runs a workflow: executes the actions of the engine, and passes events to it.

One thread decides and writes the record. Other threads only put events into its queue: those of the executors, of the
pool, and of signals.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import junctura
from junctura import _limits
from junctura._progress import worded
from junctura.errors import Conflict, Error, InvalidArgument, Io
from junctura.workflow._engine import events as ev
from junctura.workflow._engine.engine import Engine
from junctura.workflow._engine.pool import AnnouncementWatch, Server, Watch, announcement
from junctura.workflow._executors.jobs import Ended, Executor, Job, Running
from junctura.workflow._record.record import RunRecord
from junctura.workflow._spec.check import start_in_words
from junctura.workflow._spec.placeholders import OBJECT, Value, as_name, fill
from junctura.workflow._spec.tasks import Task, Workflow

_LOGS = "logs"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Line = dict[str, Any]


@dataclass(frozen=True)
class RunOutcome:
    """The result of a run.

    Attributes
    ----------
    status
        ``done``, ``failed`` or ``interrupted``.
    code
        The exit status: 0, 1 or 130.
    cause
        The reason of an early end; else empty.
    folder
        The folder of its record and logs.
    counts
        Number of tasks that were ``done``, ``failed``, ``skipped`` and ``cancelled``.
    failures
        For each task that failed or was skipped, the reason.
    logs
        For each started task, the output of its last attempt.
    can_resume
        Whether the run can be resumed: it is not done, its record is complete, and its pool is not lost.
    warnings
        For each task that is done without an object, that none matched its selector, and the probable reason.

    """

    status: ev.Status
    code: int
    cause: str
    folder: Path
    seconds: float
    counts: Mapping[str, int]
    failures: Mapping[str, str]
    logs: Mapping[str, Path]
    can_resume: bool = False
    warnings: Mapping[str, str] = field(default_factory=dict)


def run(
    workflow: Workflow,
    folder: Path,
    *,
    executors: Mapping[str, Executor],
    resume: bool = False,
    parallel: int | None = None,
    told: Callable[[Line], None] | None = None,
) -> RunOutcome:
    """Runs a workflow to its end; blocks. Called from the main thread, it handles Ctrl-C and SIGTERM meanwhile.

    Parameters
    ----------
    workflow
        The validated workflow.
    folder
        The folder of the run; created if missing.
    executors
        The executors by name; closed at the end.
    resume
        Whether to resume the run in this folder.
    parallel
        Number of cores for local tasks, instead of the number in the workflow.
    told
        Called with each line of the record.

    Raises
    ------
    Error
        A failure before any task starts: the folder is not writable, a program does not exist, the pool cannot be
        reached.

    """
    one = Run(workflow, folder, executors, resume=resume, parallel=parallel, told=told)
    with _interruptible(one):
        return one.go()


class Run:
    """One run; see `run`."""

    def __init__(
        self,
        workflow: Workflow,
        folder: Path,
        executors: Mapping[str, Executor],
        *,
        resume: bool = False,
        parallel: int | None = None,
        told: Callable[[Line], None] | None = None,
    ) -> None:
        self.workflow, self.folder, self.executors = workflow, folder.resolve(), executors
        self._cores = parallel or workflow.parallel or _limits.cores()
        self._is_resumed = resume
        self._told = told
        self._events: queue.SimpleQueue[ev.Event] = queue.SimpleQueue()
        self._running: dict[str, tuple[int, Running]] = {}
        self._begun: dict[str, float] = {}
        self._failures: dict[str, str] = {}
        self._warnings: dict[str, str] = {}
        self._logs: dict[str, Path] = {}
        self._broken = ""
        self._url: str | None = None
        self._announced: AnnouncementWatch | None = None
        # Of the task that serves the pool: the attempt that serves it, and those that have ended.
        self._served: int | None = None
        self._ended: set[int] = set()
        self._watch: Watch | None = None
        self._over: ev.Over | None = None

    def interrupt(self) -> None:
        """Terminates the run gracefully, the second time at once; callable from any thread, or a signal handler."""
        self._events.put(ev.RunInterrupted())

    def go(self) -> RunOutcome:
        """Runs; see `run`."""
        begun = time.monotonic()
        with contextlib.ExitStack() as stack:
            for executor in self.executors.values():
                stack.callback(executor.close)
            self._check()
            if not self._is_resumed:
                self._make_folders()
            self._record = stack.enter_context(RunRecord(self.folder, is_resumed=self._is_resumed))
            past = self._record.past(self.workflow.name) if self._is_resumed else None
            self._end_left(past)
            self._engine = Engine(self.workflow, self._cores, past, _limits.memory_bytes())
            self._reach_pool(stack)
            self._note("run", self._heading())
            self._do(self._engine.begin())
            self._take_events(begun)
            return self._end(begun)

    # Before any task starts.

    def _check(self) -> None:
        """Checks the tasks with the executors.

        Raises
        ------
        InvalidArgument
            An executor cannot run a task.

        """
        known: set[tuple[Any, ...]] = set()
        for task in self.workflow.tasks:
            alike = (task.executor, task.command[0], task.resources)
            if alike in known or task.start.each is not None:
                continue
            known.add(alike)
            if task.executor not in self.executors:
                raise self._wrong(task, f'there is no executor "{task.executor}"')
            job = self._job(ev.Begin(task, 1), "unix:pool")
            if cause := self.executors[task.executor].check(job):
                raise self._wrong(task, cause)

    def _wrong(self, task: Task, cause: str) -> InvalidArgument:
        return InvalidArgument(f"{self.workflow.path}:{task.line}", f"tasks.{task.of}: {cause}")

    def _make_folders(self) -> None:
        try:
            (self.folder / _LOGS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Io(str(self.folder), f"a run cannot be kept there: {error.strerror}") from error

    def _end_left(self, past: ev.Past | None) -> None:
        """Ends jobs that have outlived the resumed run: their tasks are started again.

        Raises
        ------
        Conflict
            One of the jobs may still run.

        """
        by: dict[str, list[str]] = {}
        for identity in past.left if past is not None else ():
            by.setdefault(identity.partition(" ")[0], []).append(identity)
        for name, identities in by.items():
            executor = self.executors.get(name)
            left = dict.fromkeys(identities, f"no task of the workflow is for {name}")
            for identity, cause in (left if executor is None else executor.end_left(identities)).items():
                raise Conflict(identity, f"this job of the run may run still, and its task would run twice: {cause}")

    def _reach_pool(self, stack: contextlib.ExitStack) -> None:
        wanted = self.workflow.pool
        if wanted is None:
            return
        if wanted.service is not None:
            # The pool is reachable when the task serves it.
            stack.callback(self._leave_pool)
            return
        self._url = wanted.url
        if wanted.url is None:
            log = self.folder / _LOGS / "pool.log"
            server = Server(wanted, self.executors["local"], self.folder, log)
            stack.callback(server.end)
            self._url = server.url
        assert self._url is not None
        self._watch = Watch(self._url, self._engine.selectors, self._events.put)
        stack.callback(self._leave_pool)

    def _leave_pool(self) -> None:
        for one in (self._announced, self._watch):
            if one is not None:
                one.close()

    def _heading(self) -> Line:
        services = {task.of for task in self.workflow.tasks if task.service}
        tasks = [
            {
                "task": task.name,
                "of": task.of,
                "service": task.service,
                "after": list(task.start.after),
                "start": start_in_words(task.start, services),
                "cores": task.resources.cores,
            }
            for task in self.workflow.tasks
        ]
        again = {"again": sorted(self._engine.again)} if self._engine.again else {}
        return {
            "format": 1,
            "workflow": self.workflow.name,
            "file": str(self.workflow.path),
            "run": self.folder.name,
            "resumed": self._is_resumed,
            **again,
            "pool": self._url,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": junctura.__version__,
            "tasks": tasks,
        }

    # During the run.

    def _take_events(self, begun: float) -> None:
        limit_s = self.workflow.limit_s
        deadline = None if limit_s is None else begun + limit_s
        while self._over is None:
            try:
                wait_s = None if deadline is None else max(0.0, deadline - time.monotonic())
                event = self._events.get(timeout=wait_s)
            except queue.Empty:
                deadline = None
                event = ev.Stopped(f"the run's limit of {limit_s:g} s is over")
            if isinstance(event, ev.AttemptServed):
                served = self._reach_served(event)
                if served is None:
                    continue
                event = served
            elif isinstance(event, ev.Finished) and self._is_server(event.task):
                event = self._explained(event)
            self._do(self._engine.take(event))

    def _is_server(self, task: str) -> bool:
        return self.workflow.pool is not None and self.workflow.pool.service == task

    def _reach_served(self, served: ev.AttemptServed) -> ev.Event | None:
        """Connects tasks to the pool at this address from now on; None: it is that of another server.

        A server that runs already may have objects of an earlier run.
        """
        found = announcement(self._logs[served.task])
        if served.attempt in self._ended or (found is not None and found.is_earlier):
            self._end_attempt(ev.End(served.task, served.attempt, at_once=False))
            return None
        try:
            self._watch = Watch(served.url, self._engine.selectors, self._events.put)
        except Error as error:
            return ev.Stopped(f"the pool that {served.task} serves cannot be reached: {worded(error)}")
        self._url, self._served = served.url, served.attempt
        return served

    def _explained(self, finished: ev.Finished) -> ev.Finished:
        """Adds the address that the task announced to the cause of its end, if it did not serve the pool."""
        log, ended = self._logs.get(finished.task), finished.ended
        found = None if log is None or finished.attempt == self._served else announcement(log)
        if found is None or not (found.is_earlier or ended.is_good):
            return finished
        cause = f"it announced {found.url} and ended"
        if found.is_earlier:
            cause = f"a server runs at {found.url} already"
        cause = f"{cause}: stop the server there, or choose another address"
        return replace(finished, ended=replace(ended, cause=cause))

    def _do(self, actions: list[ev.Action]) -> None:
        for action in actions:
            match action:
                case ev.Note():
                    self._note(action.kind, self._timed(action))
                case ev.Begin():
                    self._begin(action)
                case ev.End():
                    self._end_attempt(action)
                case ev.Fence():
                    self._fence(action.number)
                case ev.AskHint():
                    self._ask_hint(action.selector)
                case ev.Over():
                    self._over = action

    def _timed(self, note: ev.Note) -> Mapping[str, Any]:
        task = note.words.get("task", "")
        if note.kind == "begin":
            self._begun[task] = time.monotonic()
            # The identity is known by now, since the attempt runs.
            return {**note.words, "identity": self._running[task][1].identity}
        if note.kind == "end":
            begun = self._begun.pop(task, None)
            return {**note.words, "seconds": 0.0 if begun is None else round(time.monotonic() - begun, 6)}
        if note.kind in ("failed", "skipped") and note.words.get("counts", True):
            self._failures[task] = note.words["cause"]
        if note.words.get("warning"):
            self._warnings[task] = note.words["cause"]
        return note.words

    def _note(self, kind: str, words: Mapping[str, Any]) -> None:
        line: Line = {"kind": kind, "at": time.time(), **words}
        if not self._broken:
            try:
                line = self._record.note(kind, words)
            except Io as error:
                self._broken = worded(error)
                self._events.put(ev.Stopped(self._broken))
        if self._told is not None:
            self._told(line)

    def _begin(self, action: ev.Begin) -> None:
        task, attempt = action.task.name, action.attempt
        ended = functools.partial(self._on_end, task, attempt)
        try:
            job = self._job(action, self._url)
            job.folder.mkdir(parents=True, exist_ok=True)
            begun = functools.partial(self._on_begin, task, attempt, job.log)
            taken = functools.partial(self._on_taken, task, attempt)
            running = self.executors[action.task.executor].start(job, begun, ended, taken)
        except (OSError, Error) as error:
            cause = error.cause if isinstance(error, Error) else f"{error.filename}: {error.strerror}"
            ended(Ended(None, cause=cause))
            return
        self._running[task] = attempt, running
        self._logs[task] = job.log
        log = os.path.relpath(job.log, self.folder)
        self._note("start", {"task": task, "attempt": attempt, "command": list(job.command), "log": log})

    def _on_begin(self, task: str, attempt: int, log: Path) -> None:
        if not self._is_server(task):
            self._events.put(ev.Began(task, attempt))
        else:
            if self._announced is not None:
                self._announced.close()
            self._announced = AnnouncementWatch(log, lambda url: self._events.put(ev.AttemptServed(task, attempt, url)))

    def _on_taken(self, task: str, attempt: int, identity: str) -> None:
        self._events.put(ev.JobTaken(task, attempt, identity))

    def _on_end(self, task: str, attempt: int, ended: Ended) -> None:
        if self._is_server(task):
            self._ended.add(attempt)
        self._events.put(ev.Finished(task, attempt, ended))

    def _job(self, action: ev.Begin, url: str | None) -> Job:
        """Returns the attempt with all placeholders replaced.

        Raises
        ------
        Wrong
            The object lacks an attribute that a placeholder names.

        """
        task, attempt = action.task, action.attempt
        told: dict[str, Value] = {}
        if action.sight is not None and task.start.each is not None:
            told |= {name: value for name, value in action.sight.attributes.items() if not isinstance(value, list)}
            told[OBJECT] = action.sight.key
        own: dict[str, Value] = {"run": str(self.folder), "task": task.name, "attempt": attempt}
        ours = {"JUNCTURA_NAME": task.name}
        if url is not None:
            own["pool"] = ours["JUNCTURA_POOL"] = url
        words = told | own
        # The producer of an object must not choose paths in the file system.
        names = {name: as_name(value) for name, value in told.items()} | own
        return Job(
            name=f"{task.name}.{attempt}",
            command=tuple(fill(text, words) for text in task.command),
            folder=self.folder / fill(str(task.folder), names),
            log=self.folder / _LOGS / f"{task.name}.{attempt}.log",
            environment={**ours, **{name: fill(value, words) for name, value in task.environment.items()}},
            resources=task.resources,
            limit_s=task.limit_s,
        )

    def _end_attempt(self, action: ev.End) -> None:
        attempt, running = self._running.get(action.task, (0, None))
        if running is not None and attempt == action.attempt:
            running.end(at_once=action.at_once)

    def _fence(self, number: int) -> None:
        if self._watch is None:
            self._events.put(ev.Fenced(number))
        else:
            self._watch.fence(number)

    def _ask_hint(self, selector: str) -> None:
        if self._watch is None:
            self._events.put(ev.Hinted(selector, ""))
        else:
            self._watch.hint(selector)

    # The end of the run.

    def _end(self, begun: float) -> RunOutcome:
        assert self._over is not None
        over, counts = self._over, self._engine.counts()
        seconds = round(time.monotonic() - begun, 6)
        words = {"status": over.status, "code": over.code, "cause": over.cause, "seconds": seconds, **counts}
        words |= {"warnings": len(self._warnings)} if self._warnings else {}
        self._note("run_end", words)
        is_lost = self._broken and over.status == "done"
        status, code = ("failed", 1) if is_lost else (over.status, over.code)
        cause, logs = self._broken or over.cause, self._logs
        can_resume = status != "done" and not self._broken and self._engine.can_resume
        told = (seconds, counts, self._failures, logs, can_resume, self._warnings)
        return RunOutcome(status, code, cause, self.folder, *told)  # type: ignore[arg-type]


@contextlib.contextmanager
def _interruptible(one: Run) -> Iterator[None]:
    """Handles signals within the block: they terminate the run gracefully."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A process that was started with the signal ignored continues to ignore it.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: None) for number in heard}
    with _told_of_signals(lambda number: one.interrupt() if number in heard else None):
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _told_of_signals(tell: Callable[[int], None]) -> Iterator[None]:
    """Reports each signal, in a thread of its own.

    A Python signal handler would run when the main thread continues, and a main thread that was about to block does
    not: data in the pipe wake it.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def go() -> None:
        while numbers := os.read(reading, 64):
            for number in numbers:
                tell(number)

    thread = threading.Thread(target=go, name="junctura: signals", daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        thread.join()
        os.close(reading)
