"""Values of GRIB messages, in the order of the message.

A value is missing where the bitmap is 0 (WMO section 3 of edition 1, section 6 of edition 2), or where the packing has
codes for missing values: the primary and secondary ones of complex packing (templates 5.2 and 5.3, octet 23), level 0
of run-length packing (template 5.200). EcCodes puts its key ``missingValue`` in all these places. Here that key is NaN,
which no packed number decodes to; so a value of 9999 or -1e34 stays a value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


def values_of(eccodes: Any, handle: int) -> Array:
    """The values of a message in one dimension and in double precision; NaN where they are missing."""
    eccodes.codes_set_double(handle, "missingValue", math.nan)
    values: Array = eccodes.codes_get_values(handle)
    return values
