"""The supervisor of the local processes of a run: it leaves no process behind, even after a crash.

A small separate program: it starts fast, forks fast, and has one thread. ::

    runner ── requests ──> supervisor ──> worker ──> job ──> processes of the job
       ^                                     │
       '────────────── reports ──────────────'

A worker runs one job at a time. It adopts orphans below it (``PR_SET_CHILD_SUBREAPER``), so every process that a job
started is below its worker, in whatever session or process group. The job is over when its worker has no child left.
Only then the worker reports it and takes the next one.

Each process detects the end of its peers, even by SIGKILL. If the runner crashes, the request pipes of the supervisor
and of the workers close, and they kill their children. If the supervisor crashes, the same happens, and the runner's
reports end. If a worker crashes, its processes become children of the supervisor, which kills them. Reports end when
the supervisor, its workers and all processes below them have ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import math
import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn

Message = dict[str, Any]
ABANDONED = "the process that keeps it was killed"
_PR_SET_CHILD_SUBREAPER = 36
_REQUESTS, _REPORTS = 0, 1
# A report is an atomic write to a pipe (PIPE_BUF, 4096 bytes), whatever its cause.
_CAUSE_LENGTH_MAX = 500
# A killed process may have forked just before: the search is repeated until nothing is left.
_AGAIN_S = 0.05
# A process may belong to another user, or wait for a disk that does not answer.
_GIVE_UP_S = 20.0
_SWEEP_S = 5.0
# Time for the remaining processes of a job to end by themselves: `tee` at the end of a pipe still has output.
_LINGER_S = 1.0
# `poll` counts milliseconds in 31 bits: later deadlines are checked again.
_WAIT_S_MAX = 86_400.0


def found(program: str, path: str) -> str:
    """Returns the path of a program, as a shell would find it with this `PATH`.

    Raises
    ------
    OSError
        The program does not exist; the error has a description.

    """
    names = [program] if "/" in program else [os.path.join(folder or ".", program) for folder in path.split(":")]  # noqa: PTH118 - pathlib takes longer to load than a job
    there = [name for name in names if os.path.isfile(name)]  # noqa: PTH113
    for name in there:
        if os.access(name, os.X_OK):
            return name
    if there:
        raise PermissionError(f"{there[0]} is no program: it may not be executed")
    raise FileNotFoundError(f"there is no program {program}")


def is_full(file: int) -> bool:
    """Whether the disk of an open file is full."""
    there = os.fstatvfs(file)
    free = there.f_bfree if os.geteuid() == 0 else there.f_bavail
    return there.f_blocks > 0 and free == 0


class _Signals:
    """Signals the end of a child through a file that can be polled."""

    def __init__(self) -> None:
        self.file, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self.file, 4096):
                pass


class _Lines:
    """Lines of a pipe, as they arrive."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.has_ended = False
        self._rest = b""

    def read(self) -> list[bytes]:
        """Returns the available lines; blocks if there is no data."""
        content = os.read(self.file, 1 << 16)
        self.has_ended = not content
        *lines, self._rest = (self._rest + content).split(b"\n")
        return lines


def _report(message: Message) -> None:
    # Without a runner there is no receiver.
    with contextlib.suppress(BrokenPipeError):
        os.write(_REPORTS, json.dumps(message).encode() + b"\n")


def _processes() -> Iterator[tuple[int, int, int]]:
    """Returns all processes of this host, with their parents and groups."""
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            # The name of the program is in brackets, and may contain brackets.
            _, parent, group, _ = file.read().rpartition(b")")[2].split(maxsplit=3)
            yield int(name), int(parent), int(group)


def _below(ancestor: int, but: Collection[int] = ()) -> dict[int, int]:
    """Returns all descendants of a process, with their groups; without some and their descendants."""
    children: dict[int, dict[int, int]] = {}
    for process, parent, group in _processes():
        children.setdefault(parent, {})[process] = group
    found = {process: group for process, group in children.get(ancestor, {}).items() if process not in but}
    waiting = list(found)
    while waiting:
        more = children.get(waiting.pop(), {})
        found |= more
        waiting += more
    return found


def _signal(processes: Mapping[int, int], *numbers: signal.Signals) -> None:
    """Signals processes by group, which no process leaves by forking at that moment: all its members are
    descendants.
    """
    own = os.getpgrp()
    targets = {process if group == own else -group for process, group in processes.items()}
    for number in numbers:
        for target in targets:
            # It may have ended, or belong to another user.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(target, number)


class RunningAttempt:
    """A running job, and the known part of its end."""

    def __init__(self, job: Message, process: int) -> None:
        now = time.monotonic()
        self.number: int = job["job"]
        self.process = process
        self.grace_s: float = job["grace_s"]
        self.limit_s: float | None = job["limit_s"]
        self.limit_at = math.inf if self.limit_s is None else now + self.limit_s
        self.linger_until = math.inf
        self.kill_at = math.inf
        self.give_up_at = math.inf
        self.status: int | None = None
        self.is_late = False
        self.cause = ""

    def has_ended(self, status: int) -> None:
        """Records the end of the main process; other processes of the job may remain."""
        self.status = status
        self.limit_at = math.inf
        self.linger_until = time.monotonic() + _LINGER_S

    def end(self, cause: str) -> None:
        """Stops all its processes; kills them after the grace period."""
        if self.kill_at < math.inf:
            return
        self._because(cause)
        # A stopped process could not handle the signal.
        _signal(_below(os.getpid()), signal.SIGTERM, signal.SIGCONT)
        self.kill_at = time.monotonic() + self.grace_s

    def end_at_once(self, cause: str) -> None:
        self._because(cause)
        self.kill_at = time.monotonic()

    def _because(self, cause: str) -> None:
        if self.status is None and not self.cause:
            self.cause = cause

    def look(self) -> None:
        """Performs due actions."""
        now = time.monotonic()
        if now >= self.linger_until:
            self.linger_until = math.inf
            self.end("")
        if now >= self.limit_at:
            self.limit_at = math.inf
            self.is_late = not self.cause
            self.end(f"ran longer than {self.limit_s:g} s")
        if now >= self.kill_at:
            _signal(_below(os.getpid()), signal.SIGKILL)
            self.kill_at = now + _AGAIN_S
            self.give_up_at = min(self.give_up_at, now + _GIVE_UP_S)

    def wait_s(self) -> float | None:
        """Returns the time until the next due action."""
        due = min(self.limit_at, self.linger_until, self.kill_at)
        return None if due == math.inf else min(max(0.0, due - time.monotonic()), _WAIT_S_MAX)


class _Worker:
    """Runs jobs, one at a time."""

    def __init__(self, requests: int) -> None:
        self._signals = _Signals()
        self._requests = _Lines(requests)
        self._poll = select.poll()
        self._poll.register(self._requests.file, select.POLLIN)
        self._poll.register(self._signals.file, select.POLLIN)
        self._waiting: deque[Message] = deque()

    def run(self) -> None:
        while request := self._next():
            # A request to stop concerns a job that has already ended.
            if "command" in request:
                self._run(request)

    def _next(self) -> Message | None:
        while not self._waiting and not self._requests.has_ended:
            self._receive()
        return self._waiting.popleft() if self._waiting else None

    def _receive(self) -> None:
        self._waiting.extend(map(json.loads, self._requests.read()))

    def _run(self, job: Message) -> None:
        log: int | None = None
        try:
            os.chdir(job["folder"])
            log = _opened(job["log"])
            process = _begun(job, log)
        except (OSError, ValueError) as error:
            _report({"job": job["job"], "code": None, "signal": None, "cause": _said(error)})
        else:
            _report({"job": job["job"], "process": process})
            self._see_through(RunningAttempt(job, process), log)
        finally:
            if log is not None:
                os.close(log)
            os.chdir("/")

    def _see_through(self, attempt: RunningAttempt, log: int) -> None:
        while self._has_children(attempt):
            self._obey(attempt)
            attempt.look()
            if time.monotonic() >= attempt.give_up_at:
                left = ", ".join(map(str, _below(os.getpid())))
                _report({**ended(attempt, log), "cause": f"cannot be killed: process {left}"[:_CAUSE_LENGTH_MAX]})
                # The supervisor adopts the remaining processes.
                os._exit(1)
            self._wait(attempt.wait_s())
        _report(ended(attempt, log))

    def _obey(self, attempt: RunningAttempt) -> None:
        while self._waiting:
            request = self._waiting.popleft()
            if request["end"] == attempt.number:
                (attempt.end_at_once if request["at_once"] else attempt.end)("cancelled")
        if self._requests.has_ended:
            attempt.end_at_once(ABANDONED)

    def _wait(self, seconds: float | None) -> None:
        """Waits for the end of a child, a request, or the deadline."""
        ready = self._poll.poll(None if seconds is None else math.ceil(seconds * 1000))
        self._signals.clear()
        if any(file == self._requests.file for file, _ in ready):
            self._receive()
            if self._requests.has_ended:
                self._poll.unregister(self._requests.file)

    def _has_children(self, attempt: RunningAttempt) -> bool:
        try:
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return True
                if process == attempt.process:
                    attempt.has_ended(status)
        except ChildProcessError:
            return False


def _opened(path: str) -> int:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    if is_full(log):
        os.close(log)
        raise OSError(f"{path}: the disk is full")
    return log


def _begun(job: Message, log: int) -> int:
    """Starts a job in the current folder of this process."""
    environment: Mapping[str, str] = {**os.environ, **job["environment"]}
    program = found(job["command"][0], environment.get("PATH", os.defpath))
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    # A job would inherit the ignored signals of Python, and those that nohup or cron set for this process.
    usual = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    return os.posix_spawn(
        program, job["command"], environment, file_actions=actions, setsid=True, setsigmask=[], setsigdef=usual
    )


def ended(attempt: RunningAttempt, log: int) -> Message:
    code = signal_number = None
    cause = attempt.cause
    if attempt.status is not None:
        exit_code = os.waitstatus_to_exitcode(attempt.status)
        if exit_code < 0:
            signal_number = -exit_code
            cause = cause or f"ended by signal {signal_number} ({_named(signal_number)})"
        elif exit_code != 0 or not attempt.is_late:
            # A job that exits with 0 after the request to stop has exceeded its limit nevertheless.
            code = exit_code
    if code != 0 and not cause and is_full(log):
        cause = "the disk of its log is full"
    return {"job": attempt.number, "code": code, "signal": signal_number, "cause": cause}


def _named(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def _said(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"[:_CAUSE_LENGTH_MAX]
    return str(error)[:_CAUSE_LENGTH_MAX]


class _Keeper:
    """Manages workers, passes requests of the runner to them, and kills the processes of a crashed worker."""

    def __init__(self) -> None:
        self._signals = _Signals()
        self._requests = _Lines(_REQUESTS)
        # By number: its process, and its request pipe.
        self._workers: dict[int, tuple[int, int]] = {}
        # Numbers of crashed workers: the runner is informed that their jobs, and later ones sent to them, have ended.
        self._lost: set[int] = set()

    def run(self) -> None:
        poll = select.poll()
        poll.register(_REQUESTS, select.POLLIN)
        poll.register(self._signals.file, select.POLLIN)
        # The end of requests is not detected while a child that the runner forked has the pipe open, too.
        runner = os.pidfd_open(os.getppid())
        poll.register(runner, select.POLLIN)
        while not self._requests.has_ended:
            files = [file for file, _ in poll.poll()]
            self._signals.clear()
            self._reap()
            if _REQUESTS in files:
                for line in self._requests.read():
                    self._hand(line)
            elif runner in files:
                break
        self._close()

    def _hand(self, line: bytes) -> None:
        number, _, request = line.partition(b" ")
        worker = self._workers.get(int(number))
        if worker is None and b'"command"' in request and int(number) not in self._lost:
            worker = self._new(int(number))
        if worker is not None:
            _, requests = worker
            # Its end is reported when it is reaped.
            with contextlib.suppress(BrokenPipeError):
                _write(requests, request + b"\n")

    def _new(self, number: int) -> tuple[int, int]:
        read, write = os.pipe2(os.O_CLOEXEC)
        process = os.fork()
        if process == 0:
            self._become(read, write)
        os.close(read)
        self._workers[number] = process, write
        return process, write

    def _become(self, requests: int, write: int) -> NoReturn:
        try:
            # Other workers would not detect the end of their requests while this one has their pipes open.
            for file in (_REQUESTS, write, *(other for _, other in self._workers.values())):
                os.close(file)
            _adopt_orphans()
            _Worker(requests).run()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)

    def _reap(self) -> None:
        """Handles ended workers, and kills their remaining processes."""
        lost = []
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                lost += [number for number, (process, _) in self._workers.items() if process == ended]
        self._lost.update(lost)
        for number in lost:
            os.close(self._workers.pop(number)[1])
        if lost:
            self._sweep()
        for number in lost:
            _report({"lost": number})

    def _sweep(self) -> None:
        """Kills all adopted processes, and waits for them, unless they cannot be killed."""
        workers = [process for process, _ in self._workers.values()]
        until = time.monotonic() + _SWEEP_S
        while (left := _below(os.getpid(), but=workers)) and time.monotonic() < until:
            _signal(left, signal.SIGKILL)
            select.select([self._signals.file], [], [], _AGAIN_S)
            self._signals.clear()
            for process in left:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, os.WNOHANG)

    def _close(self) -> None:
        for _, requests in self._workers.values():
            os.close(requests)
        for process, _ in self._workers.values():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
        self._workers.clear()
        self._sweep()


def _write(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


def _adopt_orphans() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def main() -> None:
    # Workers share memory with the supervisor until one of the two writes to it.
    gc.disable()
    os.chdir("/")
    _adopt_orphans()
    _Keeper().run()


if __name__ == "__main__":
    main()
