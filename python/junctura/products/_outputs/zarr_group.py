"""A Zarr 3 group with the contents of a netCDF file; see `_cube` for the structure. Open it with xarray's
``open_zarr``.

The files are created here, according to the specification (zarr-specs, core 3.0) and as zarr-python writes them, with
consolidated metadata: importing that package takes longer than creating a hundred groups. The caller writes the files,
and handles a full disk.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from junctura._xarray.label_attributes import needed
from junctura.products._input.decoded_field import Field
from junctura.products._outputs._cube import Array, Variable, cube
from junctura.products._outputs._output import Output

# Level 1 compresses nearly as well as higher levels, and is several times as fast.
_LEVEL = 1


def made(fields: Sequence[Field], to: Output) -> dict[str, bytes]:
    """The files of one group of the fields, in single precision, by their relative names."""
    data = cube(fields)
    codec, encode = _codec(to)
    files: dict[str, bytes] = {}
    metadata = {}
    for name, variable in sorted(data.variables.items()):
        values = np.asarray(variable.values)
        chunks = data.chunks(variable) if variable.is_data else values.shape
        metadata[name] = _about(variable, values, chunks, [codec] if variable.is_data else [])
        files[f"{name}/zarr.json"] = _json(metadata[name])
        for key, chunk in _chunks(values, chunks):
            files[f"{name}/{key}"] = bytes(encode(chunk)) if variable.is_data else chunk
    consolidated = {"kind": "inline", "must_understand": False, "metadata": metadata}
    group = {"attributes": dict(data.attributes), "zarr_format": 3, "consolidated_metadata": consolidated}
    files["zarr.json"] = _json({**group, "node_type": "group"})
    return files


def _json(said: dict[str, Any]) -> bytes:
    return json.dumps(said, indent=2).encode()


def _about(variable: Variable, values: Array, chunks: Sequence[int], codecs: list[dict[str, Any]]) -> dict[str, Any]:
    """The metadata of an array."""
    little: dict[str, Any] = {"name": "bytes"}
    if values.dtype.itemsize > 1:
        little["configuration"] = {"endian": "little"}
    return {
        "shape": list(values.shape),
        "data_type": _data_type(values),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": {"f": "NaN", "U": ""}.get(values.dtype.kind, 0),
        "codecs": [little, *codecs],
        "attributes": dict(variable.attributes),
        # A scalar has no dimension to name.
        **({"dimension_names": list(variable.dims)} if variable.dims else {}),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


def _data_type(values: Array) -> Any:
    if values.dtype.kind == "U":
        return {"name": "fixed_length_utf32", "configuration": {"length_bytes": values.dtype.itemsize}}
    return values.dtype.name


def _chunks(values: Array, chunks: Sequence[int]) -> Iterator[tuple[str, bytes]]:
    """Yields the key and the bytes of each chunk; a chunk with only the fill value has no file."""
    counts = [extent // length for extent, length in zip(values.shape, chunks, strict=True)]
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    for at in itertools.product(*map(range, counts)):
        where = tuple(slice(one * length, (one + 1) * length) for one, length in zip(at, chunks, strict=True))
        chunk = little[where]
        is_filled = np.isnan(chunk) if values.dtype.kind == "f" else chunk == np.zeros((), values.dtype)
        if not is_filled.all():
            yield "/".join(["c", *map(str, at)]), chunk.tobytes()


def _codec(to: Output) -> tuple[dict[str, Any], Callable[[bytes], Any]]:
    """Returns the metadata of the compression of fields, and the compressor."""
    if to.compression == "zstd":
        zstd = needed("numcodecs.zstd", "products").Zstd(level=_LEVEL)
        return {"name": "zstd", "configuration": {"level": _LEVEL, "checksum": False}}, zstd.encode
    gzip = needed("numcodecs.gzip", "products").GZip(level=_LEVEL)
    return {"name": "gzip", "configuration": {"level": _LEVEL}}, gzip.encode
