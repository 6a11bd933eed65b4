"""Chunked arrays, of Dask and xarray: each chunk is a piece, which a task offers or takes.

Imported on first use, with the packages that it needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from junctura._array import numpy_payload
from junctura._native import Layout
from junctura._xarray import label_attributes
from junctura.dask._places import InPool
from junctura.errors import InvalidArgument

if TYPE_CHECKING:
    import dask.array
    import xarray

    from junctura._native import Pool

Array = npt.NDArray[Any]


def layout_of(chunks: Sequence[Sequence[int]]) -> Layout:
    """Returns the rank of each chunk: numbered in Dask's order, the last dimension fastest."""
    shape = [sum(extents) for extents in chunks]
    cuts = [",".join(str(cut) for cut in itertools.accumulate(extents, initial=0)) for extents in chunks]
    return Layout(shape=shape, grid=[len(extents) for extents in chunks], cuts="x".join(cuts))


def offer(pool: Pool, data: Any, attributes: dict[str, Any], options: dict[str, Any]) -> None:
    """See `Pool.offer_chunks`."""
    array = label_attributes.needed("dask.array", "dask")
    if numpy_payload.is_labelled(data):
        schema = pool.schema(options.get("schema"))
        attributes = {**label_attributes.kept(data, schema, attributes), **attributes}
        data = data.data
    if not isinstance(data, array.Array):
        raise InvalidArgument(
            "data", f"an array of Dask's, or one of xarray's that has chunks, is expected, not {type(data)}"
        )
    if any(np.isnan(extent) for extents in data.chunks for extent in extents):
        raise InvalidArgument("data", "the shape of its chunks is not known: compute_chunk_sizes() finds it out")
    layout = layout_of(data.chunks)
    # A pool that was closed is not reopened.
    pool.sync()
    place = InPool.of(pool)

    def one(chunk: Array, block_id: tuple[int, ...] | None = None) -> Array:
        assert block_id is not None
        rank = int(np.ravel_multi_index(block_id, data.numblocks)) if block_id else 0
        place.using(lambda pool: pool.offer_piece(chunk, layout, rank, attributes, **options))
        return np.zeros((1,) * chunk.ndim, np.uint8)

    ones = [(1,) * len(extents) for extents in data.chunks]
    array.map_blocks(one, data, dtype=np.uint8, chunks=ones, meta=np.zeros((0,) * data.ndim, np.uint8)).compute()


def demand(pool: Pool, found: tuple[str, str, Layout, str, dict[str, Any]], chunks: Any) -> dask.array.Array:
    """See `Pool.demand_chunks`."""
    array = label_attributes.needed("dask.array", "dask")
    key, schema, layout, dtype, _ = found
    if not layout.shape:
        raise InvalidArgument(key, "it has no dimensions")
    kind = np.dtype(dtype)
    wanted = array.core.normalize_chunks("auto" if chunks is None else chunks, layout.shape, dtype=kind)
    place = InPool.of(pool)

    def one(block_info: Any = None) -> Array:
        where = block_info[None]["array-location"]
        slab = [tuple(bounds) for bounds in where]
        return place.using(lambda pool: pool.demand_array(key, slab=slab, schema=schema, timeout=0))

    taken: dask.array.Array = array.map_blocks(one, chunks=wanted, dtype=kind, meta=np.empty((0,) * len(wanted), kind))
    return taken


def demand_xarray(pool: Pool, found: tuple[str, str, Layout, str, dict[str, Any]], chunks: Any) -> xarray.DataArray:
    """Returns the array with labels from its attributes."""
    kinds = label_attributes.kinds_of(pool.schema(found[1]))
    return label_attributes.labelled(demand(pool, found, chunks), found[4], kinds)
