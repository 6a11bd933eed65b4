"""Sending: bundles, pipelines."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from junctura import _native
from junctura.aio._board import Deadline, Opening, ended, forget, keeping
from junctura.aio._keywords import with_hints
from junctura.errors import Closed, Error

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

    from junctura._native import Completed, Layout, Released, Staged, _Answer, _Data
    from junctura._native_model import _Attributes, _Given
    from junctura.aio._pool import Pool

    Retention: TypeAlias = str | datetime.timedelta | Released | None
    Durability: TypeAlias = Literal["memory", "durable"] | None


class How(NamedTuple):
    """Options of an offer."""

    schema: str | None
    retention: Retention
    if_wanted: bool
    durability: Durability


@with_hints
class Bundle(Opening["_native.Bundle"]):
    """Objects that become visible together, or not at all; opened by `Pool.bundle`.

    Offer its members with `Bundle.offer`: unlike in a thread's ``with pool.bundle():``, objects that tasks offer with
    `Pool.offer` do not become members. The end of its ``async with`` block seals the bundle, unless its number of
    members was declared; an exception in the block publishes nothing.

    Examples
    --------
    >>> async def main() -> None:
    ...     async with junctura.aio.Pool(schema="free") as pool:
    ...         async with pool.bundle() as bundle:
    ...             await bundle.offer(b"2", name="b")
    ...             await bundle.offer(b"1", name="a")
    ...         print([entry["name"] for entry in await pool.list()], (await bundle.wait()).objects)
    >>> asyncio.run(main())
    ['a', 'b'] 2

    """

    def __init__(self, pool: Pool, begin: Callable[[], _Answer[_native.Bundle]], counts: bool) -> None:
        self._pool = pool
        self._begin = begin
        self._counts = counts
        self._completed: Completed | None = None

    async def _open(self) -> _native.Bundle:
        return await self._pool._board.answer(self._begin())

    def __await__(self) -> Generator[Any, None, Self]:
        """Opens the bundle."""
        yield from self._get().__await__()
        return self

    @property
    def path(self) -> str | None:
        """The path of the bundle, or None."""
        return self._have().path

    @property
    def completed(self) -> Completed | None:
        """The result of the completion, if this client has received it; else None."""
        if self._completed is None and self._opened is not None:
            with contextlib.suppress(Closed):
                self._completed = self._opened._take_completed()
        return self._completed

    async def offer(
        self,
        data: _Data,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: Retention = None,
        durability: Durability = None,
        **keywords: _Given,
    ) -> Staged:
        """Offers an object into the bundle; returns when it is staged, or visible if it completed the bundle.

        Parameters
        ----------
        data, attributes, schema, retention, durability, **keywords
            As for `Pool.offer`.

        Returns
        -------
        Staged

        Raises
        ------
        BundleFull, BundleClosed, Closed
            The bundle has all its members; it is complete; it was aborted or left.

        """
        opened = await self._get()
        how = How(schema, retention, False, durability)
        staged = await self._pool._offer(data, attributes, how, keywords, opened)
        found: Staged = staged
        return found

    async def offer_many(
        self,
        objects: Iterable[tuple[_Data, _Attributes]],
        *,
        window: int = 1024,
        schema: str | None = None,
        retention: Retention = None,
        durability: Durability = None,
    ) -> list[Staged]:
        """Offers many objects into the bundle and returns when all are staged: one round trip for about `window`
        objects.

        Parameters
        ----------
        objects, window, schema, retention, durability
            As for `Pool.offer_many`.

        Returns
        -------
        list of Staged

        Raises
        ------
        junctura.Error
            The error of the first object that failed, with its position in `index`. Others may be staged.

        """
        opened = await self._get()
        how = How(schema, retention, False, durability)
        staged: list[Staged] = await self._pool._offer_many(objects, window, how, opened)
        return staged

    async def offer_piece(
        self,
        data: _Data | Sequence[npt.NDArray[Any]],
        layout: Layout | str,
        rank: int | None = None,
        attributes: _Attributes | None = None,
        /,
        *,
        comm: Any = None,
        epoch: int | None = None,
        dtype: npt.DTypeLike | None = None,
        schema: str | None = None,
        retention: Retention = None,
        **keywords: _Given,
    ) -> None:
        """Offers one rank's part of a distributed array into the bundle, as `junctura.Bundle.offer_piece`, in a thread.

        Raises
        ------
        InvalidArgument, Conflict, AlreadyExists, BundleFull, BundleClosed, Closed, PoolFull
            As there.

        """
        options: dict[str, Any] = {
            "comm": comm,
            "epoch": epoch,
            "dtype": dtype,
            "schema": schema,
            "retention": retention,
        }
        options.update(keywords)
        opened = await self._get()
        await asyncio.to_thread(opened.offer_piece, data, layout, rank, attributes, **options)

    async def seal(self) -> Completed:
        """Seals the bundle: it has all its members. Returns when it is visible (a nested bundle: when it is staged in
        the enclosing one).

        Raises
        ------
        Conflict
            Declared members are missing, or a nested bundle is not complete. The bundle stays open.
        BundleClosed, Closed
            The bundle is complete; it was aborted, or left by this handle.

        """
        opened = await self._get()
        sealed = await self._pool._board.answer(opened._begin_seal())
        if opened._take_completed() is not None:
            self._completed = sealed
        return sealed

    async def abort(self) -> int:
        """Aborts the bundle for all producers that have it open; returns the number of objects that were freed.

        Raises
        ------
        BundleClosed
            The bundle is complete.

        """
        opened = await self._get()
        return await self._pool._board.answer(opened._begin_abort())

    async def wait(self, timeout: float | None = None) -> Completed:
        """Waits until the bundle is visible, at most `timeout` seconds.

        Raises
        ------
        Timeout
            The bundle was not complete in time.
        Closed
            The bundle was aborted, or left by this handle.

        """
        if self._completed is not None:
            return self._completed
        opened = await self._get()
        within = Deadline(timeout, "bundle", "it was not complete in time")
        self._completed = await self._pool._board.until(opened._take_completed, opened, within=within)
        return self._completed

    async def leave(self) -> None:
        """Leaves the bundle to the other producers; a bundle without a path is aborted."""
        if self._opened is not None:
            await ended(self._pool._board, self._opened._begin_leave)

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self._counts and self.completed is None:
                await self.seal()
        finally:
            with keeping(raised):
                await self.leave()

    def __del__(self) -> None:
        if self._opened is not None:
            forget(self._opened._begin_leave)
        else:
            self._warn_of_no_use()


@with_hints
class Pipeline:
    """A stream of offers in flight; created by `Pool.pipeline`.

    `offer` returns at once while fewer than `window` offers are unacknowledged. The end of its ``async with`` block
    waits for all offers, and raises the first failure.

    Examples
    --------
    >>> async def main() -> None:
    ...     async with junctura.aio.Pool(schema="free") as pool:
    ...         async with pool.pipeline(window=8) as pipeline:
    ...             for number in range(100):
    ...                 await pipeline.offer(b"payload", name=f"object-{number}")
    ...         print(len(await pool.list()))
    >>> asyncio.run(main())
    100

    """

    def __init__(self, pool: Pool, window: int) -> None:
        self._pool = pool
        self._window = max(1, window)
        self._sent: deque[_Answer[Any]] = deque()
        self._turn = asyncio.Lock()
        self._failure: Error | None = None
        self._count = 0

    async def offer(
        self,
        data: _Data,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: Retention = None,
        if_wanted: bool = False,
        durability: Durability = None,
        **keywords: _Given,
    ) -> int:
        """Offers an object, as `Pool.offer`, without waiting for the acknowledgment; returns its number in this
        pipeline. The offer is acknowledged when the object is visible, or archived if it is durable.

        Raises
        ------
        junctura.Error
            This offer is invalid, or an earlier offer failed and its failure was not reported yet; then this offer was
            not sent.

        """
        async with self._turn:
            while len(self._sent) >= self._window:
                await self._hear()
            self._check()
            how = How(schema, retention, if_wanted, durability)
            begun = await self._pool._begin_offer(data, attributes, how, keywords, None)
            if begun is not None:
                self._sent.append(begun)
            self._count += 1
            return self._count - 1

    async def flush(self) -> None:
        """Waits until every offer is acknowledged; raises the first failure that was not reported yet."""
        async with self._turn:
            while self._sent:
                await self._hear()
            self._check()

    @property
    def outstanding(self) -> int:
        """Number of offers whose acknowledgment this pipeline has not received."""
        return len(self._sent)

    async def _hear(self) -> None:
        first = self._sent[0]
        try:
            await self._pool._board.polled(first)
        except Error as error:
            self._failure = self._failure or error
        self._sent.popleft()

    def _check(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.flush()
