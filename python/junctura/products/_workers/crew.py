"""The workers of a broker: processes that start with the broker, are replaced after a crash, and end with the broker.

A fork server (`fork_server.py`) starts them. If the run has one thread, the fork server is forked from the run, and so
imports nothing twice; with several threads, a lock held by another thread would stay locked. The broker depends only on
`Crew`; `dask_crew.py` has the other implementation.
"""

from __future__ import annotations

import abc
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import junctura
from junctura import _limits
from junctura._limits import ONE_THREAD
from junctura.errors import Unavailable
from junctura.products._input.queries import take_all
from junctura.products._recipe.definitions import Recipe
from junctura.products._tasks import task_messages
from junctura.products._tasks.codec import read_answers, write_order
from junctura.products._tasks.task_messages import BrokerJob
from junctura.products._tasks.tasks import TaskAnswer, TaskFailed, TaskOrder, TaskUsage

if TYPE_CHECKING:
    from typing_extensions import Self

# Memory of fields is kept for later fields, since new pages cost more than the processing. The C library of Linux
# returns blocks above a threshold, at most 32 MiB, and free memory at the top to the system. Its parameter numbers by
# name, and the sizes in bytes.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": (-3, 32 << 20), "MALLOC_TRIM_THRESHOLD_": (-1, 256 << 20)}
_HEARD_BYTES_MAX = 1 << 16
_WORKER_MEMORY = 1 << 30
# Modules that write a format, by format. PyArrow is excluded: a fork server must not import modules that start threads.
_WRITERS = {
    "grib2": ("junctura.products._outputs.grib2",),
    "netcdf": ("junctura.products._outputs.netcdf", "netCDF4"),
    "png": ("junctura.products._map.picture",),
    "zarr": ("junctura.products._outputs.zarr_group", "numcodecs"),
}
# Each request to the pool costs more than the few hundred bytes that a task and its answer occupy until then.
_FORGOTTEN_AT_ONCE = 32
# Tasks of a message: more tasks save little more, and the crash of a worker delays every one.
_TOGETHER_MAX = 4
# The broker gives up after this many consecutive crashes in addition to the number of workers.
_DEATHS_MAX = 20


def automatic() -> int:
    """Returns a worker for each core, limited by memory besides the broker's pool: a gibibyte for each."""
    return max(1, min(_limits.cores(), (_limits.memory_bytes() - pool_bytes()) // _WORKER_MEMORY))


def pool_bytes() -> int:
    """Returns the memory limit of the broker's pool: half of the available memory."""
    return _limits.memory_bytes() // 2


class ForkServerProcess:
    """A running fork server, and the crew's end of its socket.

    Parameters
    ----------
    pid
        Process ID.
    channel
        The socket to the process.
    process
        The process object, if it is a separate program.

    """

    def __init__(self, pid: int, channel: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self.pid, self.channel, self._process = pid, channel, process
        self._status: int | None = None

    @classmethod
    def forked(cls, prepare: Callable[[], None]) -> ForkServerProcess | None:
        """Forks this process; returns None if it has other threads, or libraries may have started some.

        `prepare` creates data that all workers need, after the modules are imported.
        """
        if len(list(Path("/proc/self/task").iterdir())) > 1 or not _is_for_one_thread(os.environ):
            return None
        channel, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if pid := os.fork():
            its.close()
            return cls(pid, channel)
        # No `finally` block of this process must run in the child.
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            channel.close()
            _begin()
            # To run as a program, the module must not have been imported before.
            from junctura.products._workers.fork_server import serve

            serve(its, prepare)
        except BaseException:  # the child has nobody else who would print it
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    @classmethod
    def spawned(cls) -> ForkServerProcess:
        """Starts a new process."""
        channel, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            kept = {name: str(count) for name, (_, count) in KEEP_MEMORY.items()}
            command = [sys.executable, "-m", "junctura.products._workers.fork_server", str(its.fileno())]
            process = subprocess.Popen(
                command,
                env={**kept, **os.environ, **ONE_THREAD},
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )
        return cls(process.pid, channel, process)

    def tell(self, *words: str) -> None:
        """Sends a message. The end of the fork server is detected by the next receive."""
        with contextlib.suppress(ConnectionError):
            self.channel.send(" ".join(words).encode())

    def heard(self) -> str:
        """Returns the next message; empty at the end of the stream."""
        return heard(self.channel)

    def wait(self) -> int:
        """Returns the exit status, once it has ended."""
        if self._status is None:
            self._status = _waited(self.pid) if self._process is None else self._process.wait()
        return self._status

    def end(self) -> None:
        """Ends a fork server that no crew has used."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
            self.channel.close()


def _waited(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # signals of children are ignored, and so are their ends
        return 0


def _is_for_one_thread(environment: Mapping[str, str]) -> bool:
    # Without a variable of their own, libraries use that of OpenMP.
    common = environment.get("OMP_NUM_THREADS")
    return all(environment.get(name, common) == "1" for name in ONE_THREAD)


def heard(channel: socket.socket) -> str:
    """Returns the next message; empty at the end of the stream."""
    # The connection is reset if unread data remained.
    with contextlib.suppress(ConnectionError):
        return channel.recv(_HEARD_BYTES_MAX).decode()
    return ""


def _begin() -> None:
    """Sets up a child as `ForkServerProcess.spawned` sets up a new process."""
    os.environ.update(ONE_THREAD)
    with contextlib.suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, (number, count) in KEEP_MEMORY.items():
            if name not in os.environ:
                mallopt(number, count)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


class Crew(abc.ABC):
    """Executes tasks, whose fields and answers are stored in the broker's pool.

    Parameters
    ----------
    pool
        The broker's pool, which all workers can reach.
    limit
        Maximum number of messages in flight.

    Attributes
    ----------
    together_max
        Maximum number of tasks of a message.
    joining
        Over how many messages waiting inputs are spread when tasks are joined; 0: tasks are not joined.
    deaths
        Number of crashed workers.
    ends_all
        Whether all workers have ended after `end`.

    """

    ends_all = False
    together_max = 1
    joining = 0

    def __init__(self, pool: junctura.Pool, limit: float) -> None:
        self.pool, self.limit = pool, limit
        self.deaths = 0
        self._answers: junctura.Follow | None = None
        # The tasks without an answer, by the message that has them, and the message of each.
        self._given: dict[int, set[int]] = {}
        self._message_of: dict[int, int] = {}
        # Answers that have been read, but are still in the pool, by message, and messages that have all of theirs.
        self._answers_read: dict[int, list[str]] = {}
        self._answered: list[int] = []

    def begin(self, job: BrokerJob) -> None:
        """Starts accepting tasks."""
        self._answers = self.pool.follow("kind=done")
        self.pool.offer(task_messages.write_job(job), name="job", kind="job")

    @property
    def in_flight(self) -> int:
        """Number of messages whose tasks are not all answered."""
        return len(self._given)

    def give(self, orders: Sequence[TaskOrder], due: float) -> None:
        """Submits a message with these tasks; the message with the earliest due time runs first."""
        message = orders[0].number
        self._given[message] = {order.number for order in orders}
        self._message_of.update((order.number, message) for order in orders)
        self._send(orders, due)

    @abc.abstractmethod
    def _send(self, orders: Sequence[TaskOrder], due: float) -> None:
        """Sends a message to the workers."""

    def take(self, each: Callable[[TaskAnswer], None]) -> int:
        """Returns the number of received answers, whose tasks are removed some time later.

        Raises
        ------
        Unavailable
            The pool has ended.

        """

        def read(obj: junctura.Object) -> None:
            with obj:
                answers, name = read_answers(bytes(obj)), str(obj["name"])
            self._answers_read.setdefault(int(name.split("/")[1]), []).append(name)
            for answer in [*answers, *self._unreadable(answers, name)]:
                each(answer)
                self._took(answer.number)

        assert self._answers is not None
        count, has_ended = take_all(self._answers, read)
        if has_ended:
            raise Unavailable(self.pool.url, "the broker's pool has ended")
        return count

    def _unreadable(self, answers: Sequence[TaskAnswer], name: str) -> list[TaskAnswer]:
        """Returns the answers for the other tasks of a message that a worker could not read."""
        message = name.removeprefix("done/")
        left = self._given.get(int(message), set()) if message.isdigit() else set()
        others = sorted(left.difference(answer.number for answer in answers))
        causes = [answer.result.cause for answer in answers if isinstance(answer.result, TaskFailed)]
        return [TaskAnswer(number, TaskFailed(causes[0]), TaskUsage()) for number in others]

    def _took(self, number: int) -> None:
        """Records that the answer to a task was read."""
        message = self._message_of.pop(number, None)
        if message is None:
            return
        self._given[message].discard(number)
        if self._given[message]:
            return
        del self._given[message]
        self._answered.append(message)
        if len(self._answered) == _FORGOTTEN_AT_ONCE:
            self._forget(self._answered)
            # A late duplicate stays until the pool ends.
            names = [name for message in self._answered for name in self._answers_read.pop(message, ())]
            if names:
                task_messages.forget(self.pool, *names)
            self._answered.clear()

    @abc.abstractmethod
    def _forget(self, messages: Sequence[int]) -> None:
        """Removes these messages from the pool; their answers are removed afterwards."""

    @property
    @abc.abstractmethod
    def descriptors(self) -> Collection[int]:
        """File descriptors in addition to the pool's: when one is readable, call `look`."""

    @abc.abstractmethod
    def look(self, descriptor: int) -> None:
        """Handles a readable descriptor.

        Raises
        ------
        Unavailable
            No worker can execute tasks any more.

        """

    @abc.abstractmethod
    def end(self) -> None:
        """Stops executing tasks."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.end()
        self.pool.close()


class ProcessCrew(Crew):
    """Processes of this host, which map the memory of the broker's pool.

    Parameters
    ----------
    count
        Number of processes.
    room
        Memory budget in bytes for decoded fields; fields beyond it are spilled to disk.

    """

    ends_all = True
    together_max = _TOGETHER_MAX

    def __init__(self, count: int, room: int) -> None:
        pool = junctura.Pool(schema="free", name=task_messages.BROKER, budget=room, spill=_limits.spacious())
        super().__init__(pool, 2 * count)
        self.count = self.joining = count
        # Crashes since a worker last completed a step.
        self._in_a_row = 0
        # Process IDs of workers that have reported their start.
        self.workers: set[int] = set()
        self._recipes: Sequence[Recipe] = ()
        self._fork_server: ForkServerProcess | None = None

    def adopt(self, fork_server: ForkServerProcess) -> None:
        """Uses a fork server that has its list of imports already."""
        self._fork_server = fork_server

    def begin(self, job: BrokerJob) -> None:
        self.pool.require("kind=task", name=task_messages.GROUP, group=True)
        super().begin(job)
        self._recipes = job.recipes
        self._start()

    def _send(self, orders: Sequence[TaskOrder], due: float) -> None:  # noqa: ARG002 - the group gives them in this order
        self.pool.offer(write_order(*orders), name=f"task/{orders[0].number}", kind="task")

    def take(self, each: Callable[[TaskAnswer], None]) -> int:
        count = super().take(each)
        if count:
            self._in_a_row = 0
        return count

    def _forget(self, messages: Sequence[int]) -> None:
        # A worker to which the message is redelivered looks for the answer first, and then for the message.
        task_messages.forget(self.pool, *(f"task/{message}" for message in messages))

    @property
    def descriptors(self) -> Collection[int]:
        return () if self._fork_server is None else (self._fork_server.channel.fileno(),)

    def _start(self) -> None:
        """Lets a fork server start the workers after it has imported the modules that they need."""
        if self._fork_server is None:
            self._fork_server = ForkServerProcess.spawned()
            load(self._fork_server, self._recipes)
        self._ask_for(self.count)

    def _ask_for(self, count: int) -> None:
        assert self._fork_server is not None
        self._fork_server.tell("start", str(count), self.pool.url)

    def look(self, descriptor: int) -> None:  # noqa: ARG002 - there is one
        """Handles the start of a worker, or an unexpected end: the worker is replaced."""
        assert self._fork_server is not None
        match self._fork_server.heard().split():
            case ["started", pid]:
                self.workers.add(int(pid))
            case ["ended", pid, status]:
                self.workers.discard(int(pid))
                self._count(1, int(status))
                self._ask_for(1)
            case _:
                # The fork server has ended, and with it all workers.
                lost = len(self.workers)
                self._count(max(1, lost), self._end_fork_server())
                self._start()

    def _count(self, lost: int, status: int) -> None:
        self.deaths += lost
        self._in_a_row += lost
        if self._in_a_row > self.count + _DEATHS_MAX:
            cause = f"{self._in_a_row} have died one after another, the last one with status {status}"
            raise Unavailable("workers", cause)

    def end(self) -> None:
        # Workers rename their output when it is complete.
        if self._fork_server is not None:
            self._end_fork_server()

    def _end_fork_server(self) -> int:
        """Ends it with all workers, including stopped ones; returns its exit status."""
        ended, self._fork_server = self._fork_server, None
        assert ended is not None
        if self.workers:
            # It ends its workers, and waits for them.
            os.kill(ended.pid, signal.SIGCONT)
        else:
            # It may not be receiving yet.
            _kill_group(ended.pid)
            os.kill(ended.pid, signal.SIGKILL)
        ended.channel.shutdown(socket.SHUT_RDWR)
        status = ended.wait()
        while said := ended.heard():
            if said.startswith("started"):
                self.workers.add(int(said.split()[1]))
        if status:
            # It was killed, and its workers were not.
            for pid in self.workers:
                _kill_group(pid)
        self.workers.clear()
        ended.channel.close()
        return status


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def load(fork_server: ForkServerProcess, recipes: Sequence[Recipe]) -> None:
    """Sends a fork server the list of imports for workers that make these products."""
    fork_server.tell("load", *(described(recipes) or ["-"]), *libraries(recipes))


def libraries(recipes: Sequence[Recipe]) -> list[str]:
    """Returns the modules that a fork server imports for these products; none starts threads."""
    found = {"eccodes", *(module for recipe in recipes for module in _WRITERS.get(recipe.output.format, ()))}
    return sorted(found)


def described(recipes: Sequence[Recipe]) -> list[str]:
    """Returns the parameters whose names and units occur in products: one, after which ecCodes has read its tables."""
    return [str(recipe.params[0]) for recipe in recipes if recipe.output.format in _WRITERS][:1]
