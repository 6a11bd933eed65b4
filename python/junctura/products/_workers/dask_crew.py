"""The workers of a broker on a Dask cluster, which execute the tasks.

```text
  broker ──tasks, by submit──> scheduler ──> workers ──fields, answers──> pool of the broker, served by tcp:
    ▲                                           └──inputs──> pool of the producers            │
    └────────────────────────────────────follow───────────────────────────────────────────────┘
```
Dask assigns tasks to workers, and reassigns those of a crashed worker. No large data pass through its scheduler: fields
and answers are in the broker's pool, which a separate process serves; a future reports only errors.

Clients that may submit tasks to a Dask cluster may run code there. Therefore the secrets of the broker's pool are sent
with the tasks: a token, the trusted certificate, and the digest of the pickled job, which no other client can replace.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import secrets
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import junctura
from junctura._xarray.label_attributes import needed
from junctura.errors import Unavailable
from junctura.products._broker.remote_pool import ServedPool
from junctura.products._tasks import task_messages
from junctura.products._tasks.codec import write_order
from junctura.products._tasks.task_messages import BrokerJob
from junctura.products._tasks.tasks import TaskAnswer, TaskOrder
from junctura.products._workers.crew import Crew
from junctura.products._workers.dask_worker import BrokerPlace, do

if TYPE_CHECKING:
    import distributed

# Its name at the scheduler.
_NAME = "junctura-run"
_CLOSING_S = 5


class _Ended(NamedTuple):
    """A future without further events; without a number, the connection to the scheduler."""

    number: int | None
    status: str = ""
    error: BaseException | None = None


class _Bell:
    """Events from Dask threads, and a file descriptor that is readable when there are some."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._said: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False

    def ring(self, ended: _Ended) -> None:
        with self._lock:
            # Its number may have been reused.
            if not self._is_closed:
                self._said.put(ended)
                os.eventfd_write(self.descriptor, 1)

    def heard(self) -> list[_Ended]:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)
        return [self._said.get() for _ in range(self._said.qsize())]

    def close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self.descriptor)


class DaskCrew(Crew):
    """The workers of a Dask cluster.

    Parameters
    ----------
    dask
        The scheduler's address, its scheduler file, or a client, which stays open.
    room
        Memory budget in bytes for decoded fields; fields beyond it are spilled to disk.

    Raises
    ------
    Unavailable
        The scheduler cannot be reached.
    ImportError
        Without Dask: ``pip install 'junctura[dask]'``.

    """

    def __init__(self, dask: str | Path | distributed.Client, room: int) -> None:
        self._distributed = needed("distributed", "dask")
        self._is_ours = not isinstance(dask, self._distributed.Client)
        client: Any = self._connected(dask) if self._is_ours else dask
        self._client = client
        self._address = str(client.scheduler.address)
        try:
            self._served = ServedPool(self._reachable_as(), room)
        except BaseException:
            self._close_client()
            raise
        # Dask orders the tasks, and keeps most of them until a worker is free.
        super().__init__(self._served.pool, limit=float("inf"))
        self._run = f"junctura-{secrets.token_hex(4)}"
        self._place: BrokerPlace | None = None
        self._futures: dict[int, tuple[Any, TaskOrder]] = {}
        self._left = self.pool.subscribe(kinds=["left"])
        self._given_up: list[TaskAnswer] = []
        self._bell = _Bell()
        self._has_ended = False
        self._is_lost = False

    def _connected(self, dask: Any) -> Any:
        where = {"scheduler_file": str(dask)} if Path(dask).is_file() else {"address": str(dask)}
        try:
            return self._distributed.Client(**where, name=_NAME, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            cause = f"no scheduler of Dask's can be reached there: {error or type(error).__name__}"
            raise Unavailable(str(dask), cause) from error

    def _reachable_as(self) -> str:
        """Returns the address of this host on its route to the scheduler, at which workers will reach it."""
        host = self._distributed.comm.get_address_host(self._address)
        return str(self._distributed.utils.get_ip(host))

    def begin(self, job: BrokerJob) -> None:
        payload = task_messages.write_job(job)
        super().begin(job)
        self._place = BrokerPlace(
            self.pool.url,
            hashlib.sha256(payload).hexdigest(),
            junctura.__version__,
            self._served.token,
            self._served.ca,
        )
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Waits for an operation of the scheduler that completes at the end only, or never if the scheduler fails."""
        with contextlib.suppress(Exception):
            self._event().wait()
        self._bell.ring(_Ended(None))

    def _event(self) -> Any:
        return self._distributed.Event(f"{self._run}-ends", client=self._client)

    def _send(self, orders: Sequence[TaskOrder], due: float) -> None:
        (order,) = orders
        # An error in a task is not an error of Dask, and is not retried; the crash of a worker is.
        future = self._client.submit(
            do, self._place, write_order(order), key=f"{self._run}-{order.number}", priority=-due, pure=False
        )
        self._futures[order.number] = (future, order)
        future.add_done_callback(self._teller(order.number))

    def _teller(self, number: int) -> Callable[[Any], None]:
        def tell(future: Any) -> None:
            # It is complete when the answer is in the pool; the future is not needed any more.
            status = str(future.status)
            self._bell.ring(_Ended(number, status, future.exception() if status == "error" else None))

        return tell

    def take(self, each: Callable[[TaskAnswer], None]) -> int:
        count = 0
        # Data read together with other data wake no wait.
        while found := super().take(each) + self._take_given_up(each) + self._count_deaths():
            count += found
        return count

    def _take_given_up(self, each: Callable[[TaskAnswer], None]) -> int:
        given_up, self._given_up = self._given_up, []
        for answer in given_up:
            each(answer)
            super()._took(answer.number)
        return len(given_up)

    def _took(self, number: int) -> None:
        self._futures.pop(number, None)
        super()._took(number)

    def _forget(self, messages: Sequence[int]) -> None:
        task_messages.forget(self.pool, *(f"begun/{message}/0" for message in messages))

    def _count_deaths(self) -> int:
        count = 0
        with contextlib.suppress(junctura.Timeout, junctura.Closed, junctura.Disconnected):
            while event := self._left.next(timeout=0):
                count += 1
                client = event.client
                self.deaths += (
                    client is not None and client.name == task_messages.WORKER and "goodbye" not in event.reason
                )
        return count

    @property
    def descriptors(self) -> Collection[int]:
        return () if self._has_ended else (self._bell.descriptor,)

    def look(self, descriptor: int) -> None:  # noqa: ARG002 - there is but one
        for ended in self._bell.heard():
            if ended.number is None:
                self._is_lost = True
                raise Unavailable(self._address, "the connection to Dask's scheduler has ended")
            if ended.number in self._futures and ended.status != "finished":
                self._see(ended.number, ended)

    def _see(self, number: int, ended: _Ended) -> None:
        """Returns why a task failed; errors other than a worker crash concern all tasks."""
        _, order = self._futures[number]
        if isinstance(ended.error, self._distributed.scheduler.KilledWorker):
            del self._futures[number]
            self._given_up.append(task_messages.given_up(order, ended.error.allowed_failures + 1))
            return
        if ended.error is None:
            self._is_lost = self._client.status != "running"
            raise Unavailable(self._address, f"Dask's scheduler has given up a task ({ended.status})")
        if isinstance(ended.error, junctura.Error):
            raise ended.error
        raise Unavailable(self._address, f"a worker cannot do tasks: {type(ended.error).__name__}: {ended.error}")

    def end(self) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self._bell.close()
        if not self._is_lost:
            # The scheduler may be ending.
            with contextlib.suppress(Exception):
                self._client.cancel([future for future, _ in self._futures.values()])
                self._event().set()
                self._event().clear()
        self._futures.clear()
        if self._is_ours:
            self._close_client()
        self._count_deaths()
        self._served.close()

    def _close_client(self) -> None:
        # It may report that the scheduler has ended.
        with contextlib.suppress(Exception):
            self._client.close(timeout=_CLOSING_S)
