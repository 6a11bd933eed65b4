"""Values of GRIB messages, in the order of the message.

A value is missing where the bitmap is 0 (WMO section 3 of edition 1, section 6 of edition 2), or where the packing has
codes for missing values: the primary and secondary ones of complex packing (templates 5.2 and 5.3, octet 23), level 0
of run-length packing (template 5.200). EcCodes puts its key ``missingValue`` in all these places. Here that key is NaN,
which no packed number decodes to; so a value of 9999 or -1e34 stays a value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from junctura._grib import checked_messages
from junctura._native import _simple_points, _unpack
from junctura.field._eccodes import decoded

Array = npt.NDArray[Any]
_UNPACKED = (np.dtype(np.float32), np.dtype(np.float64))


def values_in(message: bytes, dtype: npt.DTypeLike = np.float64) -> Array:
    """The values of a message, in its order, in one dimension; NaN where they are missing.

    Simple packing is unpacked here, with the same bits as ecCodes has, and while other threads run; other packings by
    ecCodes.

    Parameters
    ----------
    message
        A GRIB message of one field.
    dtype
        What simple packing is unpacked to: single or double precision. Others give double precision.

    Raises
    ------
    Corrupt, TooLarge, ImportError
        As `decoded`.

    """
    unpacked = values_of_simple(message, dtype)
    return decoded(message, values_of) if unpacked is None else unpacked


def values_of_simple(message: bytes, dtype: npt.DTypeLike = np.float64) -> Array | None:
    """As `values_in`; None where the message has another packing."""
    points = _simple_points(message)
    if points is None:
        return None
    checked_messages.limit(points)
    values = np.empty(points, dtype if np.dtype(dtype) in _UNPACKED else np.float64)
    _unpack(message, values)
    return values


def values_of(eccodes: Any, handle: int) -> Array:
    """The values of a message in one dimension and in double precision; NaN where they are missing."""
    eccodes.codes_set_double(handle, "missingValue", math.nan)
    values: Array = eccodes.codes_get_values(handle)
    return values
