"""Runs jobs as processes of this host.

No process that a job starts outlives the job, and none outlives the run, even after a crash; see `supervisor`. This
module is the runner's side: requests are sent to the supervisor through a pipe, and one thread reads the reports of all
jobs.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from junctura.errors import Closed
from junctura.workflow._executors import supervisor
from junctura.workflow._executors.jobs import Ended, Job, Resources, Running

_SUPERVISOR = [sys.executable, "-I", "-S", str(Path(supervisor.__file__))]


class Local:
    """Jobs as processes of this host; an `Executor`.

    Each job has its own session, and ``/dev/null`` as its input. It has ended when all its processes have ended,
    including daemons; processes that are left one second after the job's main process are stopped. If this process is
    killed, its jobs are killed at once.

    Parameters
    ----------
    grace_s
        Grace period between SIGTERM and SIGKILL.

    """

    def __init__(self, *, grace_s: float = 10.0) -> None:
        self._grace_s = grace_s
        self._numbers = itertools.count(1)
        self._lines: list[_Line] = []
        self._is_closed = False

    def start(
        self,
        job: Job,
        on_begin: Callable[[], None],
        on_end: Callable[[Ended], None],
        on_taken: Callable[[str], None] | None = None,  # noqa: ARG002 - it ends with this process
    ) -> Running:
        if self._is_closed:
            raise Closed(job.name, "what runs local processes was closed")
        process = _Process(next(self._numbers), on_begin, on_end)
        request = {
            "job": process.number,
            "command": _command(job),
            "folder": str(job.folder.absolute()),
            "log": str(job.log.absolute()),
            "environment": dict(job.environment),
            "limit_s": job.limit_s,
            "grace_s": self._grace_s,
        }
        try:
            # There is none yet, or its supervisor was killed.
            while not self._lines or not self._lines[-1].start(process, request):
                self._lines.append(_Line())
        except OSError as error:
            cause = f"no process can be started: {error.strerror}"
            threading.Thread(target=process.has_ended, args=[Ended(None, cause=cause)]).start()
        return process

    def check(self, job: Job) -> str:
        return _impossible(job.resources) or _missing(job)

    def end_left(self, identities: Sequence[str]) -> Mapping[str, str]:  # noqa: ARG002 - there are none
        return {}

    def close(self) -> None:
        self._is_closed = True
        for line in self._lines:
            line.close()


class _Process:
    """A job, on the runner's side."""

    def __init__(self, number: int, on_begin: Callable[[], None], on_end: Callable[[Ended], None]) -> None:
        self.number = number
        self.worker = 0
        self._line: _Line | None = None
        self._on_begin = on_begin
        self._on_end = on_end
        self._process: int | None = None
        self._is_known = threading.Event()

    @property
    def identity(self) -> str:
        """``process 4711``; waits until it has started, or failed to."""
        self._is_known.wait()
        return "no process" if self._process is None else f"process {self._process}"

    def end(self, *, at_once: bool = False) -> None:
        if self._line is not None:
            self._line.end(self, at_once=at_once)

    def belongs(self, line: _Line, worker: int) -> None:
        self._line, self.worker = line, worker

    def has_begun(self, process: int) -> None:
        self._process = process
        self._is_known.set()
        self._on_begin()

    def has_ended(self, ended: Ended) -> None:
        self._is_known.set()
        self._on_end(ended)


class _Line:
    """The connection to a supervisor, and its jobs."""

    def __init__(self) -> None:
        # Its own session: a signal from the terminal reaches jobs through the runner, in order.
        self._supervisor = subprocess.Popen(
            _SUPERVISOR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        self._lock = threading.Lock()
        self._processes: dict[int, _Process] = {}
        self._idle: list[int] = []
        self._workers = itertools.count(1)
        self._is_open = True
        self._is_closing = False
        self._reader = threading.Thread(target=self._read, name="local jobs", daemon=True)
        self._reader.start()

    def start(self, process: _Process, request: dict[str, Any]) -> bool:
        """Sends a request; returns False if the supervisor has ended."""
        with self._lock:
            worker = self._idle.pop() if self._idle else next(self._workers)
            process.belongs(self, worker)
            self._processes[process.number] = process
            if not self._send(worker, request):
                del self._processes[process.number]
                return False
            return True

    def end(self, process: _Process, *, at_once: bool) -> None:
        with self._lock:
            if process.number in self._processes:
                # If the supervisor has ended, so will all jobs.
                self._send(process.worker, {"end": process.number, "at_once": at_once})

    def close(self) -> None:
        """Ends all jobs at once, and waits."""
        with self._lock:
            assert self._supervisor.stdin is not None
            self._supervisor.stdin.close()
            # No requests are accepted from now on.
            self._is_open = False
            self._is_closing = True
        self._reader.join()

    def _send(self, worker: int, request: dict[str, Any]) -> bool:
        content = f"{worker} {json.dumps(request)}\n".encode()
        assert self._supervisor.stdin is not None
        try:
            while self._is_open and content:
                content = content[self._supervisor.stdin.write(content) :]
        except BrokenPipeError:
            self._is_open = False
        return self._is_open

    def _read(self) -> None:
        """Handles reports until supervisor, workers, and all their processes have ended."""
        assert self._supervisor.stdout is not None
        with self._supervisor.stdout, open(self._supervisor.stdout.fileno(), "rb", closefd=False) as reports:
            for line in reports:
                self._take(json.loads(line))
        with self._lock:
            self._is_open = False
            lost = list(self._processes.values())
            self._processes.clear()
        self._supervisor.wait()
        for process in lost:
            process.has_ended(Ended(None, cause=supervisor.ABANDONED))

    def _take(self, report: dict[str, Any]) -> None:
        if "lost" in report:
            self._lose(report["lost"])
        elif "process" in report:
            self._processes[report["job"]].has_begun(report["process"])
        else:
            with self._lock:
                process = self._processes.pop(report["job"])
                self._idle.append(process.worker)
                is_cancelled = self._is_closing and report["cause"] == supervisor.ABANDONED
            process.has_ended(Ended(report["code"], report["signal"], "cancelled" if is_cancelled else report["cause"]))

    def _lose(self, worker: int) -> None:
        """Handles the crash of a worker, whose processes were killed."""
        with self._lock:
            lost = [process for process in self._processes.values() if process.worker == worker]
            for process in lost:
                del self._processes[process.number]
            # The number is not reused: the supervisor would mistake a new worker for the crashed one.
            self._idle = [other for other in self._idle if other != worker]
        for process in lost:
            process.has_ended(Ended(None, cause=supervisor.ABANDONED))


def _command(job: Job) -> list[str]:
    if job.resources.ranks is None:
        return list(job.command)
    return ["mpirun", "-n", str(job.resources.ranks), *job.command]


def _impossible(resources: Resources) -> str:
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if resources.nodes > 1:
        return f"needs {resources.nodes} nodes, local processes have one"
    if resources.cores > cores:
        return f"needs {resources.cores} cores, this machine has {cores}"
    if (resources.memory_bytes or 0) > memory:
        return f"needs {(resources.memory_bytes or 0) / 2**30:.1f} GiB of memory, this machine has {memory / 2**30:.1f}"
    return ""


def _missing(job: Job) -> str:
    """Returns missing programs; a program with a relative path may be created by another job."""
    path = {**os.environ, **job.environment}.get("PATH", os.defpath)
    launcher = [] if job.resources.ranks is None else ["mpirun"]
    for program in (*launcher, job.command[0]):
        if "/" not in program or Path(program).is_absolute():
            try:
                supervisor.found(program, path)
            except OSError as error:
                return str(error)
    return ""
