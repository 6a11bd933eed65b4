"""The pool with coroutines."""

from __future__ import annotations

import asyncio
import builtins
import os
import warnings
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy.typing as npt

from junctura import _native
from junctura._array import numpy_payload
from junctura._xarray import label_attributes
from junctura.aio._arrays import ArrayVerbs
from junctura.aio._board import Deadline, Switchboard, beside, board_of, keeping
from junctura.aio._keywords import with_hints
from junctura.aio._reading import Follow, Requirement, Subscription
from junctura.aio._writing import Bundle, How, Pipeline
from junctura.errors import Closed, Error, InvalidArgument, PoolFull, SelectorWarning

if TYPE_CHECKING:
    from typing_extensions import Self

    from junctura._native import (
        Allocation,
        Board,
        BundleEntry,
        Described,
        Entry,
        Object,
        Schema,
        Tally,
        Version,
        _Answer,
        _Data,
        _SchemaSource,
        _Shape,
    )
    from junctura._native_model import _Attributes, _Given, _Kind
    from junctura.aio._writing import Durability, Retention

_T = TypeVar("_T")
# Larger copies run beside the loop.
COPIED_AT_ONCE = 1 << 20
# Seconds that an offer or a withdrawal waits before its wait is reported.
PATIENCE = 5.0


class _WaitReport:
    """Reports the long wait of a task, beside the loop."""

    def __init__(self, pool: _native.Pool, *, withdraws: bool) -> None:
        self._pool = pool
        self._withdraws = withdraws
        self.tasks: builtins.list[asyncio.Task[None]] = []
        self.timer = asyncio.get_running_loop().call_later(PATIENCE, self._begin)

    def _begin(self) -> None:
        report = partial(self._pool._report_wait, self._withdraws)
        self.tasks.append(asyncio.get_running_loop().create_task(beside(report)))

    async def end(self) -> None:
        """Waits for the report. A warning that the program treats as an error ends the report, and not the call."""
        await asyncio.gather(*self.tasks, return_exceptions=True)


@with_hints
class Pool(ArrayVerbs):
    """A connection to a pool, the shared space in which objects are offered and found, for asyncio.

    Parameters
    ----------
    url : str or junctura.Pool, optional
        As for `junctura.Pool`; or such a pool, which is then shared.
    **options
        As for `junctura.Pool`.

    Notes
    -----
    Use it with ``async with``, or open it with ``await``: ``pool = await junctura.aio.Pool("unix:fields")``. The end of
    the block closes the connection; a pool that was passed in stays open.

    Examples
    --------
    >>> async def main() -> None:
    ...     async with junctura.aio.Pool(schema="free") as pool:
    ...         waits = asyncio.create_task(pool.demand(name="late", timeout=60))
    ...         await pool.offer(b"payload", name="late")
    ...         print(bytes(await waits))
    >>> asyncio.run(main())
    b'payload'

    """

    def __init__(
        self,
        url: str | _native.Pool | None = None,
        *,
        name: str | None = None,
        schema: _SchemaSource | Sequence[_SchemaSource] | None = None,
        start: bool = False,
        budget: int | str | None = None,
        spill: str | os.PathLike[str] | None = None,
        spill_size: int | str | None = None,
        checked: bool = False,
        inline_max: int | str | None = None,
        orphan_timeout: float | None = None,
        until_gone: Sequence[str] = (),
        transports: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        streams: int | None = None,
        store: str | os.PathLike[str] | None = None,
        offer_timeout: float | None = 60.0,
    ) -> None:
        self._given = isinstance(url, _native.Pool)
        self._native: _native.Pool | None = None
        self._switchboard: Switchboard | None = None
        if isinstance(url, _native.Pool):
            self._native = url
            self._switchboard = board_of(url)
            return
        self._make = lambda: _native.Pool(
            url,
            name=name,
            schema=schema,
            start=start,
            budget=budget,
            spill=spill,
            spill_size=spill_size,
            checked=checked,
            inline_max=inline_max,
            orphan_timeout=orphan_timeout,
            until_gone=list(until_gone),
            transports=transports,
            token_file=token_file,
            ca_file=ca_file,
            streams=streams,
            store=store,
            offer_timeout=offer_timeout,
        )

    async def _open(self) -> Self:
        if self._native is None:
            native = await beside(self._make, undo=_native.Pool.close)
            self._native = native
            self._switchboard = board_of(native)
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        """Connects; waits until a server that has to be started accepts connections."""
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(
        self, _type: type[BaseException] | None, raised: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._given:
            self._board.unwatch(asyncio.get_running_loop())
            return
        with keeping(raised):
            await self.close()

    @property
    def _board(self) -> Switchboard:
        if self._switchboard is None:
            raise Closed("pool", "it is not open: 'async with pool', or await it")
        return self._switchboard

    @property
    def blocking(self) -> _native.Pool:
        """The same pool for blocking code: threads, and calls that return at once."""
        if self._native is None:
            raise Closed("pool", "it is not open: 'async with pool', or await it")
        return self._native

    @property
    def url(self) -> str:
        """URL with which other processes, children included, connect to this pool."""
        return self.blocking.url

    @property
    def route(self) -> str:
        """The transport to the server and the reason for its choice: ``shm``, ``tcp``, or ``tcp, TLS``."""
        return self.blocking.route

    @property
    def client(self) -> int:
        """The number that the server assigned to this client."""
        return self.blocking.client

    @property
    def incarnation(self) -> int:
        """The incarnation of the server: the first half of every version that it assigns."""
        return self.blocking.incarnation

    @property
    def schemas(self) -> builtins.list[Schema]:
        """The pool's schemas; the first one is its default."""
        return self.blocking.schemas

    def schema(self, name: str | None = None) -> Schema:
        """The schema of this name, or the default schema."""
        return self.blocking.schema(name)

    async def close(self) -> None:
        """Disconnects from the pool: later calls fail with `Closed`. Objects that are held stay readable."""
        native = self.blocking
        await beside(native.close)
        self._board.unwatch(asyncio.get_running_loop())

    async def stop(self, timeout: float | None = None) -> None:
        """Drains and stops the server, as `junctura.Pool.stop`."""
        await self._board.answer(self.blocking._begin_stop(timeout))

    async def sync(self, timeout: float | None = None) -> None:
        """Waits until every earlier operation through this pool is in effect, as `junctura.Pool.sync`.

        Raises
        ------
        Timeout
            The operations may be in effect already, or take effect later.

        """
        within = Deadline(timeout, "sync", "not all earlier requests were in effect in time")
        await self._board.answer(self.blocking._begin_sync(), within=within)

    async def stat(self) -> dict[str, Any]:
        """The server's counters: one round trip."""
        return await self._board.answer(self.blocking._begin_stat())

    async def board(self) -> Board:
        """Maps the board of the server: its numbers on a page of shared memory. Reading it needs no round trip."""
        return await self._board.answer(self.blocking._begin_board())

    def note(self, text: str = "", /, **values: object) -> None:
        """States what this client works on, as `junctura.Pool.note`. Does not wait."""
        self.blocking.note(text, **values)

    async def waits(self, *, limit: int = 1000) -> builtins.list[dict[str, Any]]:
        """The requests of all clients that wait, and why, as `junctura.Pool.waits`."""
        return await self._board.answer(self.blocking._begin_waits(limit))

    async def explain(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        version: Version | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> dict[str, Any]:
        """Why an object is in memory or gone, or why a selector matches nothing, as `junctura.Pool.explain`."""
        return await self._board.answer(self.blocking._begin_explain(target, version, schema, key))

    async def keepers(self) -> dict[str, Any]:
        """What keeps memory, as `junctura.Pool.keepers`."""
        return await self._board.answer(self.blocking._begin_keepers())

    @overload
    async def offer(
        self,
        data: _Data,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: Retention = None,
        if_wanted: Literal[False] = False,
        durability: Durability = None,
        **keywords: _Given,
    ) -> Version: ...
    @overload
    async def offer(
        self,
        data: _Data,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: Retention = None,
        if_wanted: bool,
        durability: Durability = None,
        **keywords: _Given,
    ) -> Version | None: ...
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
    ) -> Version | None:
        """Offers an object, as `junctura.Pool.offer`; returns when it is visible to all clients, or archived if it is
        durable.

        If the pool is full it waits for memory, and other tasks run meanwhile. A thread copies payloads above one
        mebibyte.

        Raises
        ------
        SchemaMismatch, TypeMismatch, TooLarge, AlreadyExists, PoolFull, Io, Timeout
            As there.

        """
        how = How(schema, retention, if_wanted, durability)
        version: Version | None = await self._offer(data, attributes, how, keywords, None)
        return version

    async def offer_many(
        self,
        objects: Iterable[tuple[_Data, _Attributes]],
        *,
        window: int = 1024,
        schema: str | None = None,
        retention: Retention = None,
        durability: Durability = None,
    ) -> builtins.list[Version]:
        """Offers many objects and returns when all are visible, or archived if they are durable: one round trip for
        about `window` objects.

        Raises
        ------
        junctura.Error
            The error of the first object that failed, with its position in `index`. Objects before it are visible,
            later ones may be.

        """
        how = How(schema, retention, False, durability)
        versions: builtins.list[Version] = await self._offer_many(objects, window, how, None)
        return versions

    async def _offer_many(
        self, objects: Iterable[tuple[_Data, _Attributes]], window: int, how: How, bundle: _native.Bundle | None
    ) -> builtins.list[Any]:
        answers: builtins.list[Any] = []
        sent: deque[_Answer[Any]] = deque()
        at = 0

        async def hear() -> None:
            nonlocal at
            at = len(answers)
            answers.append(await self._board.answer(sent.popleft()))

        try:
            for data, attributes in objects:
                if len(sent) >= max(1, window):
                    await hear()
                at = len(answers) + len(sent)
                begun = await self._begin_offer(data, attributes, how, {}, bundle)
                if begun is not None:
                    sent.append(begun)
            while sent:
                await hear()
        except Error as error:
            error.index = at
            raise
        return answers

    async def allocate(
        self, nbytes: int | None = None, /, *, shape: _Shape | None = None, dtype: npt.DTypeLike | None = None
    ) -> Allocation:
        """Allocates memory in the pool, to fill and pass to `offer` without a copy; waits while the pool is full.

        Parameters
        ----------
        nbytes, shape, dtype
            As for `junctura.Pool.allocate`.

        Raises
        ------
        TooLarge, PoolFull
            As there.

        """
        if shape is None and nbytes is not None and dtype is None:
            return await self._memory(self.blocking._begin_allocate(nbytes, None, None, None))
        if shape is None or nbytes is not None:
            raise InvalidArgument("allocate", "a number of bytes is expected, or a shape with the dtype")
        length, kind, extents = numpy_payload.measure(shape, dtype)
        return await self._memory(self.blocking._begin_allocate(length, kind, extents, None))

    def pipeline(self, window: int = 64) -> Pipeline:
        """Returns a pipeline, whose offers do not wait for each acknowledgment: up to `window` may be
        unacknowledged.
        """
        return Pipeline(self, window)

    async def demand(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        schema: str | None = None,
        requirement: str | None = None,
        incomplete: bool = False,
        **key: _Given,
    ) -> Object:
        """Receives one object, which is held until it is released; waits until it is available. As
        `junctura.Pool.demand`.

        With a store behind the pool, a thread searches the store for objects that the pool does not have.

        Raises
        ------
        NotFound, Timeout, Gone, InvalidSelector
            As there.

        """
        native = self.blocking
        if isinstance(target, str) and not target.startswith("{"):
            await self._warn_of_mistakes(target)
        return await self._board.answer(native._begin_demand(target, timeout, schema, requirement, incomplete, key))

    def follow(
        self,
        selector: str | None = None,
        *,
        window: int | None = None,
        order_by: str | None = None,
        cursor: str | None = None,
        only_new: bool = False,
        until_live: bool = False,
        gaps: Literal["raise", "yield", "ignore"] = "raise",
        live: Literal["ignore", "yield"] = "ignore",
        group: str | None = None,
        requirement: str | None = None,
        versions: Literal["all", "newest"] = "all",
        time_to_live: float | None = None,
    ) -> Follow:
        """Delivers every object that matches a selector: the existing ones, then new ones. As `junctura.Pool.follow`.

        With a store behind the pool, threads read from the store the objects that have left the pool.

        Returns
        -------
        Follow
            For ``async for``, ``async with`` or ``await``.

        """
        native = self.blocking
        return Follow(
            self._board,
            lambda: native._begin_follow(
                selector,
                window,
                order_by,
                cursor,
                only_new,
                until_live,
                gaps,
                live,
                group,
                requirement,
                versions,
                time_to_live,
            ),
            lambda: self._warn_of_mistakes(selector),
        )

    def require(
        self,
        selector: str,
        *,
        name: str | None = None,
        time_to_live: float | None = None,
        versions: Literal["all", "newest"] = "all",
        group: bool = False,
        on_full: Literal["wait", "break"] = "wait",
        quota: int | str | None = None,
        stuck_after: float | None = None,
    ) -> Requirement:
        """Registers interest in advance, as `junctura.Pool.require`.

        Returns
        -------
        Requirement
            For ``async with`` or ``await``, which create it.

        """
        native = self.blocking
        return Requirement(
            self,
            lambda: native._begin_require(selector, name, time_to_live, versions, group, on_full, quota, stuck_after),
            lambda: self._warn_of_mistakes(selector),
        )

    async def retract(self, name: str) -> int:
        """Retracts a named requirement, regardless of its creator; returns the number of objects that it still
        retained.
        """
        return await self._board.answer(self.blocking._begin_retract(name))

    async def wanted(
        self, attributes: _Attributes | None = None, /, *, schema: str | None = None, **keywords: _Given
    ) -> int:
        """Returns how many consumers would receive an object with these attributes, if it were offered now."""
        return await self._board.answer(self.blocking._begin_wanted(attributes, schema, keywords))

    def bundle(
        self,
        path: str | None = None,
        attributes: _Attributes | None = None,
        /,
        *,
        members: int | None = None,
        orphan_timeout: float | None = None,
        schema: str | None = None,
        **keywords: _Given,
    ) -> Bundle:
        """Opens a bundle, as `junctura.Pool.bundle`.

        Returns
        -------
        Bundle
            For ``async with`` or ``await``, which open it.

        """
        native = self.blocking
        return Bundle(
            self,
            lambda: native._begin_bundle(path, attributes, members, orphan_timeout, schema, keywords),
            members is not None,
        )

    async def bundles(self, selector: str = "", *, under: str | None = None) -> builtins.list[BundleEntry]:
        """Lists the bundles whose attributes match, as `junctura.Pool.bundles`; a thread fetches the list."""
        native = self.blocking
        return await beside(lambda: native.bundles(selector, under=under))

    async def list(
        self,
        selector: str = "",
        *,
        order_by: str | None = None,
        incomplete: bool = False,
        bundle: str | None = None,
        limit: int | None = None,
        after: Described | None = None,
    ) -> builtins.list[Entry]:
        """Lists the visible objects that match, without payloads, as `junctura.Pool.list`; a thread fetches the
        list.
        """
        native = self.blocking
        return await beside(
            lambda: native.list(
                selector, order_by=order_by, incomplete=incomplete, bundle=bundle, limit=limit, after=after
            ),
        )

    async def tally(
        self,
        selector: str = "",
        *,
        by: str | Sequence[str] | None = None,
        limit: int = 1000,
        sum_bytes: bool = False,
        filed_only: bool = False,
    ) -> Tally:
        """Counts the visible objects that match, as `junctura.Pool.tally`; a thread fetches the numbers."""
        native = self.blocking
        return await beside(
            lambda: native.tally(selector, by=by, limit=limit, sum_bytes=sum_bytes, filed_only=filed_only),
        )

    def subscribe(self, selector: str = "", *, kinds: Sequence[_Kind] | None = None) -> Subscription:
        """Subscribes to events, as `junctura.Pool.subscribe`.

        Returns
        -------
        Subscription
            For ``async for``, ``async with`` or ``await``.

        """
        native = self.blocking
        wanted = None if kinds is None else list(kinds)
        return Subscription(
            self._board, lambda: native._begin_subscribe(selector, wanted), lambda: self._warn_of_mistakes(selector)
        )

    async def wait(
        self, *on: Follow | Subscription | Bundle, timeout: float | None = None
    ) -> builtins.list[Follow | Subscription | Bundle]:
        """Waits until at least one of these sources has data, or has ended, and returns those sources.

        ``next(timeout=0)`` takes the data; a bundle is included when it is complete or aborted. The alternative is a
        task for each source: ``asyncio.wait`` supports tasks, and so demands and timers.

        Raises
        ------
        Timeout
            No source had data in time.

        """
        if not on:
            raise InvalidArgument("wait", "there is nothing to wait for")
        opened = [await one._get() for one in on]
        within = Deadline(timeout, "wait", "nothing arrived in time")
        ready = await self._board.until(lambda: self._board.look(*opened) or None, *opened, within=within)
        return [on[place] for place in ready]

    async def withdraw(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        force: bool = False,
        forget: bool = False,
        schema: str | None = None,
        **key: _Given,
    ) -> int:
        """Withdraws one object; waits until every requirement that retains it has released it.

        As `junctura.Pool.withdraw`. If the task is cancelled, the object stays offered, unless it was withdrawn
        already.
        """
        return await self._withdrawal(self.blocking._begin_withdraw(target, timeout, force, forget, schema, key))

    async def withdraw_all(
        self, selector: str, *, timeout: float | None = None, force: bool = False, forget: bool = False
    ) -> int:
        """Withdraws every object that matches a selector, as `withdraw`; returns the number of objects, or, with
        `forget`, the number of keys that became free.
        """
        withdrawn = await self._withdrawal(self.blocking._begin_withdraw_all(selector, timeout, force, forget))
        if not withdrawn:
            await self._warn_of_mistakes(selector)
            await self._warn_of_values(selector)
        return withdrawn

    async def _warn_of_mistakes(self, selector: str | None) -> None:
        """Warns of probable mistakes in a selector, as the blocking pool does."""
        begun = self.blocking._begin_mistakes(selector or "")
        if begun is not None:
            for mistake in await self._board.answer(begun):
                warnings.warn(f"{selector}: {mistake}", SelectorWarning, stacklevel=3)

    async def _warn_of_values(self, selector: str) -> None:
        """Warns of a value of a selector that matches nothing, as the blocking pool does."""
        begun = self.blocking._begin_value_hints(selector)
        if begun is not None:
            for mistake in await self._board.answer(begun):
                warnings.warn(f"{selector}: {mistake}", SelectorWarning, stacklevel=3)

    async def _offer(
        self,
        data: _Data,
        attributes: _Attributes | None,
        how: How,
        keywords: dict[str, Any],
        bundle: _native.Bundle | None,
    ) -> Any:
        begun = await self._begin_offer(data, attributes, how, keywords, bundle)
        return None if begun is None else await self._memory(begun)

    async def _memory(self, begun: _Answer[_T]) -> _T:
        """Awaits an answer that may have to wait for memory: a long wait is reported, and a full pool explained."""
        report = _WaitReport(self.blocking, withdraws=False)
        try:
            return await self._board.answer(begun)
        except PoolFull as error:
            memory = await beside(self.blocking._full_memory)
            if memory is None:
                raise
            causes, frees_itself = memory
            explained = PoolFull(error.subject, f"{error.cause}; {causes}")
            explained.waited = error.waited
            if not frees_itself:
                vars(explained)["advice"] = "give up"
            raise explained from None
        finally:
            report.timer.cancel()
            if report.tasks:
                await report.end()

    async def _withdrawal(self, begun: _Answer[int]) -> int:
        """Awaits an answer that may have to wait for readers: a long wait is reported."""
        report = _WaitReport(self.blocking, withdraws=True)
        try:
            return await self._board.answer(begun)
        finally:
            report.timer.cancel()
            if report.tasks:
                await report.end()

    async def _begin_offer(
        self,
        data: _Data,
        attributes: _Attributes | None,
        how: How,
        keywords: dict[str, Any],
        bundle: _native.Bundle | None,
    ) -> _Answer[Any] | None:
        """Copies the payload and sends the offer; None: no client wants the object."""
        native = self.blocking
        if attributes is None and isinstance(data, _native.Object):
            given = {name.removesuffix("_") for name in keywords}
            attributes = {name: value for name, value in data.attributes.items() if name not in given}
        if numpy_payload.is_labelled(data):
            stated = {**(attributes or {}), **{name.removesuffix("_"): value for name, value in keywords.items()}}
            data, labels = label_attributes.given(data, native.schema(how.schema), stated)
            attributes = {**labels, **(attributes or {})}
        if not isinstance(data, _native.Allocation):
            array, nbytes, dtype, shape = numpy_payload.describe(data)
            if nbytes > native._inline_max:
                if how.if_wanted and not await self._board.answer(
                    native._begin_wanted(attributes, how.schema, keywords, True),
                ):
                    return None
                data = await self._memory(native._begin_allocate(nbytes, dtype, shape, bundle))
                if nbytes <= COPIED_AT_ONCE:
                    numpy_payload.fill(data, array)
                else:
                    await beside(numpy_payload.fill, data, array)
        return native._begin_offer(data, attributes, *how, keywords, bundle)
