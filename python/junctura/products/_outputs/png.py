"""A map as a PNG file; see `junctura.products._map` for the drawing.

The file is encoded here, without the filters that encoders try for each row: they cost more time than the whole drawing
and, for the smooth colors of a map, more bytes as well.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from junctura._xarray.label_attributes import needed
from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._outputs._output import Output

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Eight bits for each of red, green and blue.
_DEPTH, _TRUE_COLOUR = 8, 2


def made(fields: Sequence[Field], to: Output) -> bytes:
    """The map of one field."""
    needed("PIL", "products")
    from junctura.products._map.picture import picture

    if len(fields) != 1:
        raise InvalidArgument("map", f"of one field, not of {len(fields)}")
    return encoded(np.asarray(picture(fields[0], to)))


def encoded(colours: npt.NDArray[Any]) -> bytes:
    """Rows of red, green and blue bytes as PNG (W3C, 2003)."""
    isal_zlib = needed("isal.isal_zlib", "products")
    height, width, _ = colours.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = colours.reshape(height, 3 * width)
    header = struct.pack(">IIBBBBB", width, height, _DEPTH, _TRUE_COLOUR, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", isal_zlib.compress(rows.data, 1)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
