"""Receiving: follows, subscriptions, requirements."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from junctura import _native
from junctura._loops import has_own_variable
from junctura.aio._board import Opening, Switchboard, ended, forget, keeping, next_of
from junctura.aio._keywords import with_hints
from junctura.errors import NotFound

if TYPE_CHECKING:
    from typing_extensions import Self

    from junctura._native import Event, Object, _Answer
    from junctura._native_model import _Attributes, _Given
    from junctura.aio._pool import Pool

    # Runs before the request.
    _Before = Callable[[], Awaitable[None]]


@with_hints
class Follow(Opening["_native.Follow"]):
    """Delivers every object that matches a selector: the existing ones, then new ones. Created by `Pool.follow` and
    `Requirement.follow`.

    ``async for obj in follow`` iterates over the objects; `next` returns one. The follow begins when it is awaited
    (``follow = await pool.follow(…)``), entered or first used, and ends with its ``async with`` block or with `close`.

    Examples
    --------
    >>> async def main() -> None:
    ...     async with junctura.aio.Pool(schema="free") as pool:
    ...         await pool.offer_many([(b"1", {"name": "a"}), (b"22", {"name": "b"})])
    ...         print([obj.nbytes async for obj in pool.follow(until_live=True)])
    >>> asyncio.run(main())
    [1, 2]

    """

    def __init__(
        self, board: Switchboard, begin: Callable[[], _Answer[_native.Follow]], before: _Before | None = None
    ) -> None:
        self._board = board
        self._begin, self._before = begin, before

    async def _open(self) -> _native.Follow:
        if self._before is not None:
            await self._before()
        return await self._board.answer(self._begin())

    def __await__(self) -> Generator[Any, None, Self]:
        """Begins the follow: it misses no object that becomes visible from now on."""
        yield from self._get().__await__()
        return self

    async def next(self, timeout: float | None = None) -> Any:
        """Returns the next object; waits for it.

        Parameters
        ----------
        timeout : float, optional
            Seconds; 0 does not wait, None waits without a limit.

        Returns
        -------
        Object, Gap, Live or None
            Gaps and Live if they were requested; None when the follow has ended.

        Raises
        ------
        Timeout
            No object arrived in time.

        """
        return await next_of(self._board, await self._get(), timeout, "follow")

    @property
    def cursor(self) -> str | None:
        """Cursor with which a later follow continues after the last object that this one delivered; None before the
        first.
        """
        return self._have().cursor

    @property
    def snapshot_sequence(self) -> int:
        """The newest sequence number at the start: existing objects have at most this number, new ones larger
        numbers.
        """
        return self._have().snapshot_sequence

    @property
    def is_live(self) -> bool:
        """Whether all objects that existed at the start have been delivered."""
        return self._have().is_live

    @property
    def held(self) -> int:
        """Number of its objects that are held."""
        return self._have().held

    async def close(self) -> None:
        """Ends the follow. Delivered objects stay held until they are released; undelivered ones are given back."""
        if self._opened is not None:
            await ended(self._board, self._opened._begin_stop)

    def __aiter__(self) -> AsyncIterator[Object]:
        here = inspect.currentframe()
        caller = here.f_back if here else None
        has_variable = caller is not None and has_own_variable(caller.f_code, caller.f_lasti)
        return _Loop(self, _native._LoopedObjects(has_variable))

    async def __anext__(self) -> Object:
        item = await self.next()
        if item is None:
            raise StopAsyncIteration
        found: Object = item
        return found

    async def _next_of_loop(self, looped: _native._LoopedObjects) -> Object:
        native = await self._get()
        taken = native._take()
        if taken is None:
            looped.complete()
            taken = (await self.next(),)
        if taken[0] is None:
            looped.complete()
            raise StopAsyncIteration
        found: Object = taken[0]
        looped.note(found)
        return found

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(
        self, _type: type[BaseException] | None, raised: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with keeping(raised):
            await self.close()

    def __del__(self) -> None:
        if self._opened is not None:
            forget(self._opened._begin_stop)
        else:
            self._warn_of_no_use()


class _Loop:
    """An ``async for`` over a follow. While it waits, it releases the objects before, as a `for` loop does."""

    def __init__(self, follow: Follow, looped: _native._LoopedObjects) -> None:
        self._follow, self._looped = follow, looped

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Object:
        return await self._follow._next_of_loop(self._looped)


@with_hints
class Subscription(Opening["_native.Subscription"]):
    """A stream of events of a pool, without payloads; created by `Pool.subscribe`. Used as a `Follow`.

    Examples
    --------
    >>> async def main() -> None:
    ...     async with junctura.aio.Pool(schema="free") as pool, pool.subscribe(kinds=["offered"]) as events:
    ...         await pool.offer(b"payload", name="a")
    ...         event = await events.next(timeout=60)
    ...         print(event.kind, event.object["name"])
    >>> asyncio.run(main())
    offered a

    """

    def __init__(self, board: Switchboard, begin: Callable[[], _Answer[_native.Subscription]], before: _Before) -> None:
        self._board = board
        self._begin, self._before = begin, before

    async def _open(self) -> _native.Subscription:
        await self._before()
        return await self._board.answer(self._begin())

    def __await__(self) -> Generator[Any, None, Self]:
        """Begins the subscription: it misses no event from now on."""
        yield from self._get().__await__()
        return self

    async def next(self, timeout: float | None = None) -> Event | None:
        """Returns the next event; waits for it, at most `timeout` seconds. None when the subscription has ended.

        Raises
        ------
        Timeout
            No event occurred in time.
        LimitExceeded
            Events arrived faster than they were read, and some were lost: the subscription has ended.

        """
        event: Event | None = await next_of(self._board, await self._get(), timeout, "subscription")
        return event

    async def close(self) -> None:
        """Ends the subscription."""
        if self._opened is not None:
            await ended(self._board, self._opened._begin_stop)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(
        self, _type: type[BaseException] | None, raised: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with keeping(raised):
            await self.close()

    def __del__(self) -> None:
        if self._opened is not None:
            forget(self._opened._begin_stop)
        else:
            self._warn_of_no_use()


@with_hints
class Requirement(Opening["_native.Requirement"]):
    """A requirement: retains every matching object until it has been received through this requirement and released.

    Created by `Pool.require`; it takes effect when it is awaited, or entered. An unnamed requirement is retracted at
    the end of its ``async with`` block, or when it is garbage-collected; a named one persists, and only this client's
    use ends.

    Examples
    --------
    >>> async def main() -> None:
    ...     async with junctura.aio.Pool(schema="free") as pool, pool.require("name=a") as requirement:
    ...         await pool.offer(b"payload", name="a", retention="released:1")
    ...         with await requirement.demand(name="a") as obj:
    ...             print(bytes(obj))
    >>> asyncio.run(main())
    b'payload'

    """

    def __init__(self, pool: Pool, begin: Callable[[], _Answer[_native.Requirement]], before: _Before) -> None:
        self._pool = pool
        self._begin, self._before = begin, before

    async def _open(self) -> _native.Requirement:
        await self._before()
        return await self._pool._board.answer(self._begin())

    def __await__(self) -> Generator[Any, None, Self]:
        """Creates the requirement: from now on, matching objects are retained."""
        yield from self._get().__await__()
        return self

    @property
    def selector(self) -> str:
        """The selector of the required objects."""
        return self._have().selector

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""
        return self._have().name

    def follow(
        self,
        *,
        window: int | None = None,
        until_live: bool = False,
        gaps: Literal["raise", "yield", "ignore"] = "raise",
        live: Literal["ignore", "yield"] = "ignore",
    ) -> Follow:
        """Receives every required object, in the order in which the objects became visible; in a group, a
        share.
        """
        return Follow(self._pool._board, lambda: self._have()._begin_follow(window, until_live, gaps, live))

    async def demand(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> Object:
        """Receives one required object, as `Pool.demand`."""
        return await self._pool._board.answer(self._have()._begin_demand(target, timeout, schema, key))

    async def retract(self) -> None:
        """Retracts the requirement for all clients that use it: objects that only it retained may be removed."""
        name = self._have().name
        if name is not None:
            # Another client may have retracted it first.
            with contextlib.suppress(NotFound):
                await self._pool.retract(name)
        await self._close()

    async def _close(self) -> None:
        if self._opened is not None:
            await ended(self._pool._board, self._opened._begin_stop)

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(
        self, _type: type[BaseException] | None, raised: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with keeping(raised):
            await self._close()

    def __del__(self) -> None:
        if self._opened is not None:
            forget(self._opened._begin_stop)
        else:
            self._warn_of_no_use()
