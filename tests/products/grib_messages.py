"""GRIB messages for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eccodes
import numpy as np

from junctura.products._regrid.grids import gaussian_latitudes


def messages(path: Path) -> Iterator[bytes]:
    """Those in a file, one after the other, by the lengths that they say."""
    whole, at = path.read_bytes(), 0
    while (at := whole.find(b"GRIB", at)) >= 0:
        bounds = (at + 8, at + 16) if whole[at + 7] == 2 else (at + 4, at + 7)
        length = int.from_bytes(whole[slice(*bounds)], "big")
        yield whole[at : at + length]
        at += length


def _made(sample: str, keys: dict[str, Any], values: Any) -> bytes:
    handle = eccodes.codes_grib_new_from_samples(sample)
    try:
        for key, value in keys.items():
            eccodes.codes_set(handle, key, value)
        given = np.asarray(values, np.float64).ravel()
        if np.isnan(given).any():
            eccodes.codes_set(handle, "bitmapPresent", 1)
            eccodes.codes_set(handle, "missingValue", 1e9)
            given = np.where(np.isnan(given), 1e9, given)
        eccodes.codes_set_values(handle, given)
        return bytes(eccodes.codes_get_message(handle))
    finally:
        eccodes.codes_release(handle)


def gaussian(n: int, values: Any, **keys: Any) -> bytes:
    """On the grid F`n`."""
    first = float(gaussian_latitudes(n)[0])
    shape = {"N": n, "Ni": 4 * n, "Nj": 2 * n, "iDirectionIncrementInDegrees": 90 / n}
    ends = {
        "latitudeOfFirstGridPointInDegrees": first,
        "latitudeOfLastGridPointInDegrees": -first,
        "longitudeOfLastGridPointInDegrees": 360 - 90 / n,
    }
    return _made("regular_gg_pl_grib2", {**shape, **ends, "bitsPerValue": 24, **keys}, values)


def reduced(values: Any, **keys: Any) -> bytes:
    """On the grid N32."""
    return _made("reduced_gg_pl_32_grib2", {"bitsPerValue": 24, **keys}, values)


def latlon(rows: int, columns: int, ends: tuple[float, float, float, float], values: Any, **keys: Any) -> bytes:
    """With the first and the last latitude and longitude."""
    names = ("latitudeOfFirst", "longitudeOfFirst", "latitudeOfLast", "longitudeOfLast")
    given = {f"{name}GridPointInDegrees": end for name, end in zip(names, ends, strict=True)}
    shape: dict[str, float] = {"Ni": columns, "Nj": rows}
    if min(rows, columns) > 1:
        shape["iDirectionIncrementInDegrees"] = ((ends[3] - ends[1]) % 360 or 360) / (columns - 1)
        shape["jDirectionIncrementInDegrees"] = abs(ends[2] - ends[0]) / (rows - 1)
    sample = f"regular_ll_pl_grib{keys.pop('edition', 2)}"
    return _made(sample, {**shape, **keys, **given, "bitsPerValue": 24}, values)


def on_template(number: int, **keys: Any) -> bytes:
    """Whose grid is of this template (WMO, code table 3.1), it says, and has nothing that would fit it."""
    message = bytearray(latlon(7, 12, (90, 0, -90, 330), np.zeros((7, 12)), **keys))
    at = 16
    while message[at + 4] != 3:
        at += int.from_bytes(message[at : at + 4], "big")
    message[at + 12 : at + 14] = number.to_bytes(2, "big")
    return bytes(message)


def harmonics(truncation: int, values: Any, **keys: Any) -> bytes:
    """Spherical harmonics, in complex packing."""
    size = {"J": truncation, "K": truncation, "M": truncation}
    packing = {"subSetJ": 20, "subSetK": 20, "subSetM": 20, "bitsPerValue": 24}
    return _made("sh_pl_grib2", {**size, **packing, **keys}, values)
