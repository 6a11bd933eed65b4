"""One program's side of an exchange of arrays, with the constant options of all steps."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from junctura._native import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from junctura._native import Pool, Released, _Data
    from junctura._native_model import _Attributes, _Communicator, _Given
    from junctura.aio._pool import Pool as AsyncPool


class _Side:
    """The constant options: the pool, the program's layout, its rank, and common attributes."""

    def __init__(
        self,
        pool: Any,
        layout: Layout | str,
        rank: int | None = None,
        /,
        *,
        comm: _Communicator | None = None,
        dtype: npt.DTypeLike | None = None,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        **common: _Given,
    ) -> None:
        self.pool = pool
        self.layout = layout if isinstance(layout, Layout) else Layout(layout)
        self.rank = rank
        self.comm = comm
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.schema = schema
        self.retention = retention
        self.common = {name.removesuffix("_"): value for name, value in common.items()}

    def _given(self, epoch: int | None) -> dict[str, Any]:
        return {"comm": self.comm, "schema": self.schema, "retention": self.retention, "epoch": epoch}

    def _wanted(self, timeout: float | None, out: npt.NDArray[Any] | None) -> dict[str, Any]:
        about = {"comm": self.comm, "schema": self.schema, "timeout": timeout}
        return {**about, "out": out, "dtype": self.dtype if out is None else out.dtype}

    def _about(self, attributes: _Attributes | None, keywords: dict[str, Any]) -> dict[str, Any]:
        said = {name.removesuffix("_"): value for name, value in keywords.items()}
        return {**self.common, **(attributes or {}), **said}


class Exchange(_Side):
    """One program's side of an exchange of arrays: it puts its own arrays, and gets those of others in its own layout.

    Parameters
    ----------
    pool : Pool
        The pool.
    layout : Layout or str
        The layout of the program's arrays.
    rank : int, optional
        The rank of this process; defaults to that of `comm`.
    comm : mpi4py communicator, optional
        Determines the rank.
    dtype : optional
        The element type of received arrays; by default unchanged.
    schema, retention : optional
        As for `Pool.offer_piece`.
    **common
        Attributes of all arrays that it puts and gets.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     bands = [junctura.Exchange(pool, "shape=4x6 grid=2x1", rank, space="coupled") for rank in range(2)]
    ...     for rank, band in enumerate(bands):
    ...         band.put(numpy.full((2, 6), rank), name="wind.1")
    ...     columns = junctura.Exchange(pool, "shape=4x6 grid=1x3", 1, space="coupled")
    ...     columns.get(name="wind.1")[:, 0]
    array([0, 0, 1, 1])

    """

    pool: Pool

    def put(
        self,
        data: _Data | Sequence[npt.NDArray[Any]],
        attributes: _Attributes | None = None,
        /,
        *,
        epoch: int | None = None,
        **keywords: _Given,
    ) -> None:
        """Offers this rank's part of an array, as `Pool.offer_piece`.

        Raises
        ------
        Conflict, AlreadyExists, InvalidArgument, PoolFull
            As there.

        """
        about = self._about(attributes, keywords)
        self.pool.offer_piece(data, self.layout, self.rank, about, **self._given(epoch))

    def get(
        self,
        attributes: _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        out: npt.NDArray[Any] | None = None,
        **keywords: _Given,
    ) -> npt.NDArray[Any]:
        """Returns the rank's part of the array with this key, in `out` or a new array; waits. As `Pool.demand_array`.

        Raises
        ------
        Timeout, NotFound, InvalidArgument, Unsupported
            As there.

        """
        about = self._about(attributes, keywords)
        return self.pool.demand_array(about, self.layout, self.rank, **self._wanted(timeout, out))


class AsyncExchange(_Side):
    """As `junctura.Exchange`, for a `junctura.aio.Pool`: `put` and `get` are coroutines.

    Examples
    --------
    >>> async def main() -> None:
    ...     async with junctura.aio.Pool(schema="free") as pool:
    ...         bands = [junctura.aio.Exchange(pool, "shape=4x6 grid=2x1", rank, space="coupled") for rank in range(2)]
    ...         for rank, band in enumerate(bands):
    ...             await band.put(numpy.full((2, 6), rank), name="wind.1")
    ...         print((await bands[1].get(name="wind.1")).mean())
    >>> asyncio.run(main())
    1.0

    """

    pool: AsyncPool

    async def put(
        self,
        data: _Data | Sequence[npt.NDArray[Any]],
        attributes: _Attributes | None = None,
        /,
        *,
        epoch: int | None = None,
        **keywords: _Given,
    ) -> None:
        """Offers this rank's part of an array, as `Pool.offer_piece`.

        Raises
        ------
        Conflict, AlreadyExists, InvalidArgument, PoolFull
            As there.

        """
        about = self._about(attributes, keywords)
        await self.pool.offer_piece(data, self.layout, self.rank, about, **self._given(epoch))

    async def get(
        self,
        attributes: _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        out: npt.NDArray[Any] | None = None,
        **keywords: _Given,
    ) -> npt.NDArray[Any]:
        """Returns the rank's part of the array with this key, in `out` or a new array; waits. As `Pool.demand_array`.

        Raises
        ------
        Timeout, NotFound, InvalidArgument, Unsupported
            As there.

        """
        about = self._about(attributes, keywords)
        return await self.pool.demand_array(about, self.layout, self.rank, **self._wanted(timeout, out))
