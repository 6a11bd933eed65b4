"""Event loops that watch a pool for their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import warnings
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from junctura import _native
from junctura.errors import Closed, Disconnected, Error, Timeout

if TYPE_CHECKING:
    from junctura._native import _Answer, _Errand

    Native: TypeAlias = _native.Follow | _native.Subscription | _native.Bundle

_T = TypeVar("_T")


class _Waiter:
    """A task that sleeps until one of its sources has data."""

    __slots__ = ("future", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()

    def wake(self) -> None:
        """Wakes the task, from the thread that has read the data."""
        if asyncio._get_running_loop() is self.loop:
            self._wake_here()
        else:
            # The loop may have ended in the meantime: then no task waits there.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._wake_here)

    def _wake_here(self) -> None:
        # The future carries no result: a task that is cancelled now has taken nothing.
        if not self.future.done():
            self.future.set_result(None)


class _Watched:
    """A loop that watches a pool's descriptor, and the number of its waiting tasks."""

    __slots__ = ("descriptor", "tasks")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.tasks = 0


class Switchboard:
    """The loops in which tasks wait on one pool.

    A loop with a waiting task watches the pool's descriptor. When the descriptor is readable, one call reads all
    received data; the pool has the list of waiting tasks, and wakes those with data.
    """

    def __init__(self, pool: _native.Pool) -> None:
        self.pool = pool
        self.watching: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Watched] = weakref.WeakKeyDictionary()
        self.is_flushing = False

    async def until(
        self,
        take: Callable[[], _T | Awaitable[_T | None] | None],
        *on: Native,
        within: Deadline | None = None,
    ) -> _T:
        """Returns the first result of `take`, which is called whenever one of these sources may have data."""
        while True:
            # Often the data have arrived already.
            if (taken := take()) is not None:
                found = await taken if inspect.isawaitable(taken) else taken
                if found is not None:
                    return found
            waiter = _Waiter()
            places = self.pool._wake_when(waiter.wake, *on)
            watched = self._watch(waiter.loop)
            try:
                # A task is woken by data read from now on; data read before are found here.
                if (taken := take()) is not None:
                    found = await taken if inspect.isawaitable(taken) else taken
                    if found is not None:
                        return found
                await (waiter.future if within is None else within.run(waiter.future))
            finally:
                places.leave()
                if watched is not None:
                    watched.tasks -= 1

    async def answer(self, answer: _Answer[_T], *, within: Deadline | None = None) -> _T:
        """Returns the answer to a request; cancels the request if the task is cancelled or the deadline passes."""
        try:
            return await self.polled(answer, within=within)
        except BaseException:
            answer.close()
            raise

    async def polled(self, answer: _Answer[_T], *, within: Deadline | None = None) -> _T:
        """The same; if the task is cancelled, the request stays active."""
        while True:
            waiter = _Waiter()
            watched = self._watch(waiter.loop)
            try:
                if (taken := answer.poll(waiter.wake)) is not None:
                    return taken[0]
                await (waiter.future if within is None else within.run(waiter.future))
            finally:
                if watched is not None:
                    watched.tasks -= 1

    def _watch(self, loop: asyncio.AbstractEventLoop) -> _Watched | None:
        """Registers one more waiting task of this loop. None: there is no server, and each request will report that."""
        watched = self.watching.get(loop)
        if watched is not None:
            watched.tasks += 1
            return watched
        try:
            descriptor = self.pool.fileno()
        except (Closed, Disconnected):
            return None
        watched = self.watching[loop] = _Watched(descriptor)
        watched.tasks = 1
        loop.add_reader(descriptor, self._readable, loop)
        self.look()
        return watched

    def unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stops watching a loop, unless a task waits there."""
        watched = self.watching.get(loop)
        if watched is not None and not watched.tasks:
            del self.watching[loop]
            loop.remove_reader(watched.descriptor)

    def _readable(self, loop: asyncio.AbstractEventLoop) -> None:
        self.unwatch(loop)
        if loop in self.watching:
            self.look()

    def __del__(self) -> None:
        # The pool closes the descriptor; a loop must not keep its number.
        for loop, watched in list(self.watching.items()):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.remove_reader, watched.descriptor)

    def look(self, *asked: Native) -> list[int]:
        """Reads received data, and wakes the tasks concerned; returns which of these sources have data."""
        try:
            is_blocked = self.pool._look()
        except Error:
            # The pool has woken all tasks.
            return list(range(len(asked)))
        if is_blocked:
            self._flush()
        return self.pool._ready(list(asked)) if asked else []

    def _flush(self) -> None:
        """Waits in one thread, for all tasks, until a socket is writable; the descriptor does not report that."""
        if self.is_flushing:
            return
        self.is_flushing = True
        flushed = asyncio.get_running_loop().run_in_executor(None, self.pool._flush)

        def done(flushed: asyncio.Future[None]) -> None:
            self.is_flushing = False
            # Every request reports the reason of a failure.
            if not flushed.cancelled():
                flushed.exception()
            self.look()

        flushed.add_done_callback(done)


# By the number of its pool, to which it has a reference.
_BOARDS: weakref.WeakValueDictionary[int, Switchboard] = weakref.WeakValueDictionary()
_BOARDS_LOCK = threading.Lock()


def board_of(pool: _native.Pool) -> Switchboard:
    with _BOARDS_LOCK:
        board = _BOARDS.get(id(pool))
        if board is None:
            board = _BOARDS[id(pool)] = Switchboard(pool)
        return board


class Opening(Generic[_T]):
    """An object that opens when it is awaited, or entered with ``async with``."""

    _opened: _T | None = None
    _turn: asyncio.Lock | None = None

    def _warn_of_no_use(self) -> None:
        """Warns if it was never opened, as Python does of a coroutine that was never awaited."""
        if self._turn is None:
            name = type(self).__name__
            text = f"{name} was never awaited, so it has no effect: 'async with …', or await it"
            warnings.warn(text, RuntimeWarning, stacklevel=3, source=self)

    async def _open(self) -> _T:
        raise NotImplementedError

    async def _get(self) -> _T:
        if self._opened is not None:
            return self._opened
        # If several tasks arrive first, one opens it.
        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            if self._opened is None:
                self._opened = await self._open()
            return self._opened

    def _have(self) -> _T:
        if self._opened is None:
            name = type(self).__name__.lower()
            raise Closed(name, f"it is not open: 'async with {name}', or await it")
        return self._opened


class Deadline:
    """A deadline shared by several waits."""

    def __init__(self, timeout: float | None, subject: str, cause: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.at = None if timeout is None else self.loop.time() + timeout
        self.is_zero = timeout is not None and timeout <= 0
        self.error = Timeout(subject, cause)

    async def run(self, wait: Awaitable[None]) -> None:
        """Waits for an awaitable without a result, so that a cancellation loses nothing."""
        left = None if self.at is None else max(0.0, self.at - self.loop.time())
        try:
            await asyncio.wait_for(wait, left)
        except asyncio.TimeoutError:
            raise self.error from None

    async def finish(self, work: Awaitable[None]) -> None:
        """The same for finite work, unless the deadline forbids to wait for data that have not arrived."""
        await (work if self.is_zero else self.run(work))


async def next_of(board: Switchboard, of: Any, timeout: float | None, subject: str) -> Any:
    """Returns the next item of a follow, or the next event of a subscription."""
    # Most items have arrived already.
    if (taken := of._take()) is not None:
        return taken[0]
    within = Deadline(timeout, subject, "nothing arrived in time")
    if timeout is not None and timeout <= 0:
        # Items that have arrived by now are in time.
        board.look()

    def take() -> tuple[Any] | Awaitable[tuple[Any] | None] | None:
        found: tuple[Any] | None = of._take()
        if found is not None:
            return found
        errand = of._errand() if isinstance(of, _native.Follow) else None
        return None if errand is None else after_errands(board, of, errand, within)

    return (await board.until(take, of, within=within))[0]


async def after_errands(
    board: Switchboard, of: _native.Follow, errand: _Errand | None, within: Deadline | None = None
) -> tuple[Any] | None:
    """Returns the next item after its slow steps have run beside the loop. A cancelled task loses no item."""
    taken = None
    while errand is not None:
        running = beside(errand.run)
        await (running if within is None else within.finish(running))
        of._finish(errand)
        taken = of._take()
        errand = of._errand() if taken is None else None
    # Other tasks may wait for the same follow.
    board.look()
    return taken


async def ended(board: Switchboard, begin_stop: Callable[[], _Answer[None] | None]) -> None:
    """Ends an object and waits until it has ended; without a server it has ended already."""
    with contextlib.suppress(Disconnected, Closed):
        if (stop := begin_stop()) is not None:
            await board.answer(stop)


@contextlib.contextmanager
def keeping(raised: BaseException | None) -> Iterator[None]:
    """Keeps the exception that ended a block: a failure while leaving does not replace it."""
    try:
        yield
    except Error:
        if raised is None:
            raise


def forget(begin_stop: Callable[[], _Answer[None] | None]) -> None:
    """Ends an object without references, without waiting for the end."""
    with contextlib.suppress(Exception):
        begin_stop()


async def beside(call: Callable[..., _T], *arguments: Any, undo: Callable[[_T], object] | None = None) -> _T:
    """Runs a call beside the loop. If the task is cancelled meanwhile, the effect of the call is undone."""
    running = asyncio.get_running_loop().run_in_executor(None, call, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:

        def done(running: asyncio.Future[_T]) -> None:
            if not running.cancelled() and running.exception() is None and undo is not None:
                undo(running.result())

        running.add_done_callback(done)
        raise
