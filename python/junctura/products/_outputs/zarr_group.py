"""A Zarr 3 group with what a netCDF file has; see `_cube` for what lies where. xarray opens it by ``open_zarr``.

It is made in memory, and written file by file by those who know what to do when the disk is full.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from junctura._labels import needed
from junctura.products._field import Field
from junctura.products._outputs._cube import Cube, Variable, cube
from junctura.products._outputs._output import Output

# The first one is nearly as small as the ones after it, and several times as fast.
_LEVEL = 1


def made(fields: Sequence[Field], to: Output) -> dict[str, bytes]:
    """The files of one group of the fields, in single precision, by their relative names."""
    zarr = needed("zarr", "products")
    data = cube(fields)
    files: dict[str, Any] = {}
    with warnings.catch_warnings():
        # Consolidated metadata and texts of a fixed length are not in the specification yet; all readers know them.
        warnings.filterwarnings("ignore", category=UserWarning, module="zarr")
        warnings.filterwarnings("ignore", message=".*does not have a Zarr V3 specification.*")
        store = zarr.storage.MemoryStore(files)
        group = zarr.create_group(store, zarr_format=3, attributes=dict(data.attributes))
        for name, variable in data.variables.items():
            _add(zarr, group, name, variable, data, to)
        zarr.consolidate_metadata(store, zarr_format=3)
    return {name: buffer.to_bytes() for name, buffer in files.items()}


def _add(zarr: Any, group: Any, name: str, variable: Variable, data: Cube, to: Output) -> None:
    values = np.asarray(variable.values)
    made = group.create_array(
        name,
        shape=values.shape,
        dtype=values.dtype,
        chunks=data.chunks(variable) if variable.is_data else values.shape or "auto",
        compressors=[_compressor(zarr, to)] if variable.is_data else None,
        fill_value=np.nan if values.dtype.kind == "f" else None,
        dimension_names=variable.dims,
        attributes=dict(variable.attributes),
    )
    made[...] = values


def _compressor(zarr: Any, to: Output) -> Any:
    return zarr.codecs.ZstdCodec(level=_LEVEL) if to.compression == "zstd" else zarr.codecs.GzipCodec(level=_LEVEL)
