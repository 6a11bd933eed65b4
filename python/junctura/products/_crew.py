"""Who does a broker's tasks: processes that are started with it, replaced when they die, and ended with it.

The broker knows a `Crew` only; `junctura.products._dask` has the other one.
"""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from types import TracebackType

from typing_extensions import Self

import junctura
from junctura import _machine
from junctura.errors import Unavailable
from junctura.products import _tasks
from junctura.products._operations._places import ToGrid
from junctura.products._questions import take_all
from junctura.products._recipe import Recipe
from junctura.products._tasks import Done, Job, Task

# Workers share the cores: each computes in one thread, and libraries that start more hang or get in each other's way.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Fields come and go: what they lay in is kept for the next ones, as pages that are new cost more than what is done with
# them. The C library of Linux gives back to the system what is larger than a threshold, 32 MiB at most, or left over.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}
_WORKER_MEMORY = 1 << 30
# What writes a format, by formats. PyArrow is not there: what a fork server loads must not start threads.
_WRITERS = {
    "grib2": ("junctura.products._outputs.grib2",),
    "netcdf": ("junctura.products._outputs.netcdf", "netCDF4"),
    "png": ("junctura.products._map.picture",),
    "zarr": ("junctura.products._outputs.zarr_group", "zarr"),
}
# Each request to the pool costs more than the few hundred bytes of a task and its answer that stay there meanwhile.
_FORGOTTEN_AT_ONCE = 32
# So many more than there are workers may die one after another before the broker gives up.
_DEATHS_MAX = 20


def automatic() -> int:
    """As many workers as there are cores, and memory besides the broker's pool: a gibibyte for each."""
    return max(1, min(_machine.cores(), (_machine.memory_bytes() - pool_bytes()) // _WORKER_MEMORY))


def pool_bytes() -> int:
    """How much memory the broker's pool may have: half of what there is."""
    return _machine.memory_bytes() // 2


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

    def begin(self, job: Job) -> None:
        """From now on tasks may be given."""
        self._answers = self.pool.follow("kind=done")
        self.pool.offer(_tasks.write_job(job), name="job", kind="job")

    @abc.abstractmethod
    def give(self, task: Task, due: float) -> None:
        """Has a task done; of those that wait the one that is due first goes first."""

    def take(self, each: Callable[[Done], None]) -> int:
        """Takes what has come of tasks, which are forgotten some time later; returns how many those were.

        Raises
        ------
        Unavailable
            The pool has ended.

        """

        def read(obj: junctura.Object) -> None:
            with obj:
                done = _tasks.read_done(bytes(obj))
            each(done)
            self._took(done.number)

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
        _tasks.forget(self.pool, *(f"done/{number}" for number in numbers))

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


class Processes(Crew):
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
        pool = junctura.Pool(schema="free", name=_tasks.BROKER, budget=room, spill=_machine.spacious())
        super().__init__(pool, 2 * count)
        self.count = count
        # Since one of them has last done something.
        self._in_a_row = 0
        # By their numbers, those that have said that they are there.
        self.workers: set[int] = set()
        # What the fork server is told to load.
        self._loaded: Sequence[str] = ()
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def begin(self, job: Job) -> None:
        self.pool.require("kind=task", name=_tasks.GROUP, group=True)
        super().begin(job)
        self._loaded = [*libraries(job.recipes), *(f"--param={param}" for param in described(job.recipes))]
        self._start()

    def give(self, task: Task, due: float) -> None:  # noqa: ARG002 - the group gives them in this order
        self.pool.offer(_tasks.write(task), name=f"task/{task.number}", kind="task")

    def take(self, each: Callable[[Done], None]) -> int:
        count = super().take(each)
        if count:
            self._in_a_row = 0
        return count

    def _forget(self, numbers: Sequence[int]) -> None:
        # In this order: whoever gets the task again looks for the answer, and then for the task.
        _tasks.forget(self.pool, *(f"task/{number}" for number in numbers))
        super()._forget(numbers)

    @property
    def descriptors(self) -> Collection[int]:
        return () if self._channel is None else (self._channel.fileno(),)

    def _start(self) -> None:
        """Starts a fork server, which starts the workers when it has loaded what they need."""
        self._channel, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            descriptor = its.fileno()
            command = [sys.executable, "-m", "junctura.products._fork_server", str(descriptor), self.pool.url]
            environment = {**KEEP_MEMORY, **os.environ, **ONE_THREAD}
            self._fork_server = subprocess.Popen(
                [*command, *self._loaded], env=environment, stdin=subprocess.DEVNULL, pass_fds=[descriptor]
            )
        self._ask_for(self.count)

    def _ask_for(self, count: int) -> None:
        assert self._channel is not None
        # If the fork server has ended, `look` sees that.
        with contextlib.suppress(ConnectionError):
            self._channel.send(f"start {count}".encode())

    def look(self, descriptor: int) -> None:  # noqa: ARG002 - there is one
        """A worker is there, or has ended before there was nothing more to do: another one takes its place."""
        match self._heard().split():
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

    def _heard(self) -> str:
        """What is said next; empty when there is nothing more."""
        assert self._channel is not None
        with contextlib.suppress(ConnectionError):
            return self._channel.recv(100).decode()
        return ""

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
        assert self._fork_server is not None
        assert self._channel is not None
        if self.workers:
            # It ends its workers, and waits for them.
            self._fork_server.send_signal(signal.SIGCONT)
        else:
            # It may not listen yet.
            _kill_group(self._fork_server.pid)
            self._fork_server.kill()
        self._channel.shutdown(socket.SHUT_RDWR)
        status = self._fork_server.wait()
        while said := self._heard():
            if said.startswith("started"):
                self.workers.add(int(said.split()[1]))
        if status:
            # It was killed, and its workers were not.
            for pid in self.workers:
                _kill_group(pid)
        self.workers.clear()
        self._channel.close()
        self._fork_server = self._channel = None
        return status


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def libraries(recipes: Sequence[Recipe]) -> list[str]:
    """The modules that a fork server loads for workers that make these products; none of them starts threads."""
    found = {"eccodes", *(module for recipe in recipes for module in _WRITERS.get(recipe.output.format, ()))}
    if any(isinstance(step, ToGrid) for recipe in recipes for step in recipe.operations):
        found.add("scipy.sparse")
    return sorted(found)


def described(recipes: Sequence[Recipe]) -> list[str]:
    """Parameters whose names and units are written into products: one, after which ecCodes has read its tables."""
    return [str(recipe.params[0]) for recipe in recipes if recipe.output.format in _WRITERS][:1]
