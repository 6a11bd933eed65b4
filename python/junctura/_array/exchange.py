"""One program's side of an exchange of arrays: what does not change from step to step is said once."""

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
    """What is said once: the pool, how this program has its arrays, its rank, and what all of them have in common."""

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
    """One program's side of an exchange of arrays: it puts what it has, and gets what others have, in its own layout.

    Parameters
    ----------
    pool : Pool
        Where it goes.
    layout : Layout or str
        How the program has its arrays.
    rank : int, optional
        Which of its ranks this is; by default that of `comm`.
    comm : mpi4py communicator, optional
        Says the rank.
    dtype : optional
        What the elements are to be of what it gets; by default as they are.
    schema, retention : optional
        As for `Pool.offer_piece`.
    **common
        Attributes of all that it puts and gets.

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
        """The rank's part of the array with this key, into `out` or a new array; waits for it. As `Pool.demand_array`.

        Raises
        ------
        Timeout, NotFound, InvalidArgument, Unsupported
            As there.

        """
        about = self._about(attributes, keywords)
        return self.pool.demand_array(about, self.layout, self.rank, **self._wanted(timeout, out))


class AsyncExchange(_Side):
    """As `junctura.Exchange`, of a `junctura.aio.Pool`: `put` and `get` are awaited."""

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
        """The rank's part of the array with this key, into `out` or a new array; waits for it. As `Pool.demand_array`.

        Raises
        ------
        Timeout, NotFound, InvalidArgument, Unsupported
            As there.

        """
        about = self._about(attributes, keywords)
        return await self.pool.demand_array(about, self.layout, self.rank, **self._wanted(timeout, out))
