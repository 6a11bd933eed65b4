"""Who does a broker's tasks: processes that are started with it, replaced when they die, and ended with it.

A fork server (`fork_server.py`) starts them. Where the run has one thread it is forked from that, and so loads nothing
twice; a lock that another thread holds would stay locked. The broker knows a `Crew` only; `dask_crew.py` has the
other one.
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

from typing_extensions import Self

import junctura
from junctura import _limits
from junctura._limits import ONE_THREAD
from junctura.errors import Unavailable
from junctura.products._input.queries import take_all
from junctura.products._recipe.definitions import Recipe
from junctura.products._tasks import task_messages
from junctura.products._tasks.codec import read_answer, write_order
from junctura.products._tasks.task_messages import BrokerJob
from junctura.products._tasks.tasks import TaskAnswer, TaskOrder

# Fields come and go: what they lay in is kept for the next ones, as pages that are new cost more than what is done with
# them. The C library of Linux gives back to the system what is larger than a threshold, 32 MiB at most, or left over.
# By its names the numbers that it has for them, and how many bytes.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": (-3, 32 << 20), "MALLOC_TRIM_THRESHOLD_": (-1, 256 << 20)}
_HEARD_BYTES_MAX = 1 << 16
_WORKER_MEMORY = 1 << 30
# What writes a format, by formats. PyArrow is not there: what a fork server loads must not start threads.
_WRITERS = {
    "grib2": ("junctura.products._outputs.grib2",),
    "netcdf": ("junctura.products._outputs.netcdf", "netCDF4"),
    "png": ("junctura.products._map.picture",),
    "zarr": ("junctura.products._outputs.zarr_group", "numcodecs"),
}
# Each request to the pool costs more than the few hundred bytes of a task and its answer that stay there meanwhile.
_FORGOTTEN_AT_ONCE = 32
# So many more than there are workers may die one after another before the broker gives up.
_DEATHS_MAX = 20


def automatic() -> int:
    """As many workers as there are cores, and memory besides the broker's pool: a gibibyte for each."""
    return max(1, min(_limits.cores(), (_limits.memory_bytes() - pool_bytes()) // _WORKER_MEMORY))


def pool_bytes() -> int:
    """How much memory the broker's pool may have: half of what there is."""
    return _limits.memory_bytes() // 2


class ForkServerProcess:
    """A fork server that was started, and the crew's end of its socket.

    Parameters
    ----------
    pid
        Of the process.
    channel
        To it.
    process
        The same, if it is a program of its own.

    """

    def __init__(self, pid: int, channel: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self.pid, self.channel, self._process = pid, channel, process
        self._status: int | None = None

    @classmethod
    def forked(cls, prepare: Callable[[], None]) -> ForkServerProcess | None:
        """Forks this process; None where it has other threads, or as many as libraries like.

        `prepare` makes what all workers need, when the modules are loaded.
        """
        if len(list(Path("/proc/self/task").iterdir())) > 1 or not _is_for_one_thread(os.environ):
            return None
        channel, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if pid := os.fork():
            its.close()
            return cls(pid, channel)
        # No `finally` of this process's is the child's, too.
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            channel.close()
            _begin()
            # As a program of its own it must not have been imported before it begins.
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
        """Sends a message. If the fork server has ended, that is seen when it is listened to."""
        with contextlib.suppress(ConnectionError):
            self.channel.send(" ".join(words).encode())

    def heard(self) -> str:
        """What is said next; empty when there is nothing more."""
        return heard(self.channel)

    def wait(self) -> int:
        """The exit status, when it has ended."""
        if self._status is None:
            self._status = _waited(self.pid) if self._process is None else self._process.wait()
        return self._status

    def end(self) -> None:
        """Ends one that nobody has asked for workers."""
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
    # Where their own variable is not set, libraries follow that of OpenMP.
    common = environment.get("OMP_NUM_THREADS")
    return all(environment.get(name, common) == "1" for name in ONE_THREAD)


def heard(channel: socket.socket) -> str:
    """What is said next; empty when there is nothing more."""
    # It is reset when something was left that nobody had read.
    with contextlib.suppress(ConnectionError):
        return channel.recv(_HEARD_BYTES_MAX).decode()
    return ""


def _begin() -> None:
    """A child gets what `ForkServerProcess.spawned` gives to a new process."""
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
    """Does tasks, and leaves the fields that come of them and its answers in the broker's pool.

    Parameters
    ----------
    pool
        The broker's, where all who do tasks can reach it.
    limit
        How many tasks may be with it at once.

    Attributes
    ----------
    deaths
        How many of those who do tasks have died.
    ends_all
        Whether nobody who has done tasks is there any more after `end`.

    """

    ends_all = False

    def __init__(self, pool: junctura.Pool, limit: float) -> None:
        self.pool, self.limit = pool, limit
        self.deaths = 0
        self._answers: junctura.Follow | None = None
        # Tasks whose answers have been read, and lie in the pool still.
        self._answered: list[int] = []

    def begin(self, job: BrokerJob) -> None:
        """From now on tasks may be given."""
        self._answers = self.pool.follow("kind=done")
        self.pool.offer(task_messages.write_job(job), name="job", kind="job")

    @abc.abstractmethod
    def give(self, order: TaskOrder, due: float) -> None:
        """Has a task done; of those that wait the one that is due first goes first."""

    def take(self, each: Callable[[TaskAnswer], None]) -> int:
        """Takes what has come of tasks, which are forgotten some time later; returns how many those were.

        Raises
        ------
        Unavailable
            The pool has ended.

        """

        def read(obj: junctura.Object) -> None:
            with obj:
                answer = read_answer(bytes(obj))
            each(answer)
            self._took(answer.number)

        assert self._answers is not None
        count, has_ended = take_all(self._answers, read)
        if has_ended:
            raise Unavailable(self.pool.url, "the broker's pool has ended")
        return count

    def _took(self, number: int) -> None:
        """The answer to a task was read."""
        self._answered.append(number)
        if len(self._answered) == _FORGOTTEN_AT_ONCE:
            self._forget(self._answered)
            self._answered.clear()

    def _forget(self, numbers: Sequence[int]) -> None:
        task_messages.forget(self.pool, *(f"done/{number}" for number in numbers))

    @property
    @abc.abstractmethod
    def descriptors(self) -> Collection[int]:
        """Besides the pool's: when one is readable, `look` has something to see."""

    @abc.abstractmethod
    def look(self, descriptor: int) -> None:
        """Sees to what one of the descriptors says.

        Raises
        ------
        Unavailable
            Nobody can do tasks any more.

        """

    @abc.abstractmethod
    def end(self) -> None:
        """Nothing more is done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.end()
        self.pool.close()


class ProcessCrew(Crew):
    """Processes of this machine, in whose memory the broker's pool lies.

    Parameters
    ----------
    count
        How many there are to be.
    room
        Bytes of memory for decoded fields; what has no room in it goes to a disk.

    """

    ends_all = True

    def __init__(self, count: int, room: int) -> None:
        pool = junctura.Pool(schema="free", name=task_messages.BROKER, budget=room, spill=_limits.spacious())
        super().__init__(pool, 2 * count)
        self.count = count
        # Since one of them has last done something.
        self._in_a_row = 0
        # By their numbers, those that have said that they are there.
        self.workers: set[int] = set()
        self._recipes: Sequence[Recipe] = ()
        self._fork_server: ForkServerProcess | None = None

    def adopt(self, fork_server: ForkServerProcess) -> None:
        """Takes a fork server that was told already what to load."""
        self._fork_server = fork_server

    def begin(self, job: BrokerJob) -> None:
        self.pool.require("kind=task", name=task_messages.GROUP, group=True)
        super().begin(job)
        self._recipes = job.recipes
        self._start()

    def give(self, order: TaskOrder, due: float) -> None:  # noqa: ARG002 - the group gives them in this order
        self.pool.offer(write_order(order), name=f"task/{order.number}", kind="task")

    def take(self, each: Callable[[TaskAnswer], None]) -> int:
        count = super().take(each)
        if count:
            self._in_a_row = 0
        return count

    def _forget(self, numbers: Sequence[int]) -> None:
        # In this order: whoever gets the task again looks for the answer, and then for the task.
        task_messages.forget(self.pool, *(f"task/{number}" for number in numbers))
        super()._forget(numbers)

    @property
    def descriptors(self) -> Collection[int]:
        return () if self._fork_server is None else (self._fork_server.channel.fileno(),)

    def _start(self) -> None:
        """Has a fork server start the workers when it has loaded what they need."""
        if self._fork_server is None:
            self._fork_server = ForkServerProcess.spawned()
            load(self._fork_server, self._recipes)
        self._ask_for(self.count)

    def _ask_for(self, count: int) -> None:
        assert self._fork_server is not None
        self._fork_server.tell("start", str(count), self.pool.url)

    def look(self, descriptor: int) -> None:  # noqa: ARG002 - there is one
        """A worker is there, or has ended before there was nothing more to do: another one takes its place."""
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
        # What workers write has its name only when it is whole.
        if self._fork_server is not None:
            self._end_fork_server()

    def _end_fork_server(self) -> int:
        """Ends it with all workers, also those that are stopped; its exit status."""
        ended, self._fork_server = self._fork_server, None
        assert ended is not None
        if self.workers:
            # It ends its workers, and waits for them.
            os.kill(ended.pid, signal.SIGCONT)
        else:
            # It may not listen yet.
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
    """Tells a fork server what workers that make these products need."""
    fork_server.tell("load", *(described(recipes) or ["-"]), *libraries(recipes))


def libraries(recipes: Sequence[Recipe]) -> list[str]:
    """The modules that a fork server loads for workers that make these products; none of them starts threads."""
    found = {"eccodes", *(module for recipe in recipes for module in _WRITERS.get(recipe.output.format, ()))}
    return sorted(found)


def described(recipes: Sequence[Recipe]) -> list[str]:
    """Parameters whose names and units are written into products: one, after which ecCodes has read its tables."""
    return [str(recipe.params[0]) for recipe in recipes if recipe.output.format in _WRITERS][:1]
