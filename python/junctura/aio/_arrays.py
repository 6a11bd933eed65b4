"""Methods of an asyncio pool for arrays: distributed over ranks, or with Dask chunks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from junctura import _native
from junctura.errors import NotFound, Timeout

if TYPE_CHECKING:
    import dask.array
    import xarray

    from junctura._native import Layout, Object, _Data
    from junctura._native_model import _Attributes, _Given
    from junctura.aio._board import Switchboard
    from junctura.aio._writing import Retention


class ArrayVerbs:
    """The methods of a pool for arrays."""

    @property
    def blocking(self) -> _native.Pool:
        """The same pool for blocking code."""
        raise NotImplementedError

    @property
    def _board(self) -> Switchboard:
        raise NotImplementedError

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
        """Offers one rank's part of a distributed array, as `junctura.Pool.offer_piece`, in a thread.

        Raises
        ------
        Conflict, AlreadyExists, InvalidArgument, PoolFull
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
        await asyncio.to_thread(self.blocking.offer_piece, data, layout, rank, attributes, **options)

    async def offer_chunks(
        self,
        data: dask.array.Array | xarray.DataArray,
        attributes: _Attributes | None = None,
        /,
        *,
        epoch: int | None = None,
        schema: str | None = None,
        retention: Retention = None,
        **keywords: _Given,
    ) -> None:
        """Offers a Dask array chunk by chunk, as `junctura.Pool.offer_chunks`; a thread computes it.

        Raises
        ------
        ImportError, InvalidArgument, Error
            As there.

        """
        options: dict[str, Any] = {"epoch": epoch, "schema": schema, "retention": retention, **keywords}
        await asyncio.to_thread(self.blocking.offer_chunks, data, attributes, **options)

    async def demand_array(
        self,
        target: str | _Attributes | None = None,
        layout: Layout | str | None = None,
        rank: int | None = None,
        /,
        *,
        timeout: float | None = None,
        schema: str | None = None,
        comm: Any = None,
        origin: Sequence[int] | None = None,
        slab: slice | Sequence[slice | tuple[int, int]] | None = None,
        dtype: npt.DTypeLike | None = None,
        out: npt.NDArray[Any] | None = None,
        threads: int = 1,
        **key: _Given,
    ) -> npt.NDArray[Any]:
        """Returns an array, or one rank's part, as `junctura.Pool.demand_array`; a thread copies it.

        Raises
        ------
        Timeout, NotFound, InvalidArgument, Unsupported
            As there.

        """
        part: dict[str, Any] = {
            "comm": comm,
            "origin": origin,
            "slab": slab,
            "dtype": dtype,
            "out": out,
            "threads": threads,
        }
        native = self.blocking

        def take(target: str | _Attributes | None, **how: Any) -> npt.NDArray[Any]:
            return native.demand_array(target, layout, rank, **part, **how)

        taken: npt.NDArray[Any]
        found, taken = await self._demand_whole("demand_array", target, timeout, schema, key, take)
        if found is None:
            return taken
        with found:
            return await asyncio.to_thread(take, found.key, timeout=0, schema=found.schema.name)

    async def _demand_whole(
        self,
        call: Literal["demand_array", "demand_chunks"],
        target: str | _Attributes | None,
        timeout: float | None,
        schema: str | None,
        key: dict[str, Any],
        take: Callable[..., Any],
    ) -> tuple[Object | None, Any]:
        """Returns the object of an array, or the result of `take`. An error names the missing pieces."""
        began = time.monotonic()
        try:
            return await self._board.answer(
                self.blocking._begin_demand(target, timeout, schema, None, False, key, call)
            ), None
        except (NotFound, Timeout) as error:
            waited_s = time.monotonic() - began
            try:
                return None, await asyncio.to_thread(take, target, timeout=0, schema=schema, **key)
            except NotFound as told:
                if isinstance(error, NotFound):
                    raise
                if told.waited is None:
                    # No piece exists.
                    raise error from None
                late = Timeout(told.subject, told.cause)
                late.waited = waited_s
                raise late from None

    @overload
    async def demand_chunks(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        chunks: Any = None,
        xarray: Literal[False] = False,
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> dask.array.Array: ...
    @overload
    async def demand_chunks(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        chunks: Any = None,
        xarray: Literal[True],
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> xarray.DataArray: ...
    async def demand_chunks(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        chunks: Any = None,
        xarray: bool = False,
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> Any:
        """Returns an array as a Dask array, as `junctura.Pool.demand_chunks`; waits until the array is available.

        Returns
        -------
        dask.array.Array or xarray.DataArray
            Computed by threads, as Dask does: a task awaits ``asyncio.to_thread(array.compute)``.

        Raises
        ------
        ImportError, Timeout, NotFound, InvalidArgument
            As there.

        """
        native = self.blocking

        def take(target: str | _Attributes | None, **how: Any) -> Any:
            how.update(chunks=chunks, xarray=xarray)
            return native.demand_chunks(target, **how)

        found, lazy = await self._demand_whole("demand_chunks", target, timeout, schema, key, take)
        if found is None:
            return lazy
        try:
            return await asyncio.to_thread(take, found.key, timeout=0, schema=found.schema.name)
        finally:
            # The object was only inspected, not taken.
            found.give_back()
