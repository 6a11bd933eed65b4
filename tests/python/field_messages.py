"""GRIB messages for tests of the field model: grids in each scanning mode, and packings that ecCodes does not write."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import eccodes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ROWS, COLUMNS = 4, 5


def message(sample: str, values: Any = None, arrays: Mapping[str, Any] | None = None, **keys: Any) -> bytes:
    """A message of a sample with these keys; a value that is NaN is missing by the bitmap."""
    handle = eccodes.codes_grib_new_from_samples(sample)
    # Samples have one value and no bits. With bits, ecCodes would read values behind the message to pack them again.
    packing_first = sorted(keys.items(), key=lambda item: item[0] != "packingType")
    try:
        for key, value in packing_first:
            eccodes.codes_set(handle, key, value)
        for key, value in (arrays or {}).items():
            eccodes.codes_set_array(handle, key, value)
        if values is not None:
            given = np.asarray(values, np.float64).ravel()
            if np.isnan(given).any():
                eccodes.codes_set(handle, "bitmapPresent", 1)
                eccodes.codes_set(handle, "missingValue", 1e20)
                given = np.where(np.isnan(given), 1e20, given)
            eccodes.codes_set_values(handle, given)
        return bytes(eccodes.codes_get_message(handle))
    finally:
        eccodes.codes_release(handle)


def asked(content: bytes, key: str, get: str = "codes_get") -> Any:
    """What ecCodes has of a message under a key."""
    handle = eccodes.codes_new_from_message(content)
    try:
        return getattr(eccodes, get)(handle, key)
    finally:
        eccodes.codes_release(handle)


def triples(content: bytes) -> Array:
    """Latitudes, longitudes and values of ecCodes' iterator."""
    handle = eccodes.codes_new_from_message(content)
    try:
        iterator = eccodes.codes_grib_iterator_new(handle, 0)
        found = []
        while point := eccodes.codes_grib_iterator_next(iterator):
            found.append(point)
        eccodes.codes_grib_iterator_delete(iterator)
        return np.array(found)
    finally:
        eccodes.codes_release(handle)


def _lambert(**keys: Any) -> dict[str, Any]:
    earth = {"Nx": COLUMNS, "Ny": ROWS, "latitudeOfFirstGridPointInDegrees": 45.0}
    return {**earth, "longitudeOfFirstGridPointInDegrees": 5.0, **keys}


def _ends(first: tuple[float, float], last: tuple[float, float]) -> dict[str, float]:
    named = zip(("First", "Last"), (first, last), strict=True)
    return {
        f"{name}Of{end}GridPointInDegrees": value
        for end, pair in named
        for name, value in zip(("latitude", "longitude"), pair, strict=True)
    }


def grid_keys(kind: str, edition: int, is_westward: bool, is_northward: bool) -> dict[str, Any]:
    """The keys of a grid of `ROWS` x `COLUMNS` points, for rows and columns in these directions."""
    metres = {"DxInMetres": 100000, "DyInMetres": 100000}
    south, north = (30.0, 60.0)
    if kind.endswith("_gg"):
        parallels = list(eccodes.codes_get_gaussian_latitudes(8))
        north, south = parallels[2], parallels[2 + ROWS - 1]
    west, east = 5.0, 45.0
    lat = (south, north) if is_northward else (north, south)
    lon = (east, west) if is_westward else (west, east)
    regular = {"Ni": COLUMNS, "Nj": ROWS, **_ends((lat[0], lon[0]), (lat[1], lon[1]))}
    spacing = {"iDirectionIncrementInDegrees": 10.0, "jDirectionIncrementInDegrees": 10.0}
    turned = {"latitudeOfSouthernPoleInDegrees": -40.0, "longitudeOfSouthernPoleInDegrees": 10.0}
    gaussian = {**regular, "N": 8, "iDirectionIncrementInDegrees": 10.0}
    cone = {"Latin1InDegrees": 50.0, "Latin2InDegrees": 50.0, "LoVInDegrees": 10.0}
    keys: dict[str, dict[str, Any]] = {
        "regular_ll": {**regular, **spacing},
        "rotated_ll": {**regular, **spacing, **turned},
        "regular_gg": gaussian,
        "rotated_gg": {**gaussian, **turned},
        "lambert": _lambert(**metres, **cone),
        "polar_stereographic": _lambert(**metres, orientationOfTheGridInDegrees=10.0),
        "mercator": {**regular, "DiInMetres": 100000, "DjInMetres": 100000, "LaDInDegrees": 20.0},
        "lambert_azimuthal_equal_area": _lambert(
            xDirectionGridLengthInMetres=100000,
            yDirectionGridLengthInMetres=100000,
            standardParallelInDegrees=50.0,
            centralLongitudeInDegrees=10.0,
        ),
    }
    chosen = keys[kind]
    if edition == 2 and kind in ("lambert", "polar_stereographic"):
        chosen["LaDInDegrees"] = 50.0
    if edition == 2 and "Metres" in " ".join(chosen):
        chosen["shapeOfTheEarth"] = 6
    return {"gridType": kind, **chosen}


def scanned(kind: str, mode: int, edition: int = 2, **more: Any) -> bytes:
    """A message whose value at place n is n, in a scanning mode: bits 1 to 4 of flag table 3.4, from the highest."""
    is_westward, is_northward, by_column, alternating = (bool(mode >> bit & 1) for bit in (3, 2, 1, 0))
    flags = {"iScansNegatively": is_westward, "jScansPositively": is_northward, "jPointsAreConsecutive": by_column}
    if edition == 2:
        flags["alternativeRowScanning"] = alternating
    keys = grid_keys(kind, edition, is_westward, is_northward)
    numbers = {name: int(flag) for name, flag in flags.items()}
    keys = {**keys, **numbers, "bitsPerValue": 16, **more}
    return message(f"GRIB{edition}", np.arange(ROWS * COLUMNS), **keys)


# Packings, by the regulations of the WMO: edition 2, data representation templates 5.x and data templates 7.x.
def _sections(content: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 16
    while at < len(content) - 4:
        length = int.from_bytes(content[at : at + 4], "big")
        found.append((content[at + 4], content[at : at + length]))
        at += length
    return found


def _packed(content: bytes, template: bytes, data: bytes, count: int) -> bytes:
    """The message with another packing, and no bitmap."""
    section_5 = struct.pack(">IBI", 9 + len(template), 5, count) + template
    section_7 = struct.pack(">IB", 5 + len(data), 7) + data
    new = {5: section_5, 6: struct.pack(">IBB", 6, 6, 255), 7: section_7}
    body = b"".join(new.get(number, section) for number, section in _sections(content))
    return content[:8] + (20 + len(body)).to_bytes(8, "big") + body + b"7777"


def _bits(numbers: Iterable[tuple[int, int]]) -> bytes:
    """Numbers of so many bits each, up to a whole octet."""
    text = "".join(f"{number:0{width}b}" for number, width in numbers if width)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[at : at + 8], 2) for at in range(0, len(text), 8))


def _groups(codes: Sequence[int | None], missing: Mapping[int, int], length: int) -> tuple[bytes, bytes]:
    """Groups of one length as templates 5.2 and 7.2 have them: octets 32 to 47 of section 5, and the data."""
    parts = [range(at, min(at + length, len(codes))) for at in range(0, len(codes), length)]
    references, widths, packed = [], [], []
    for part in parts:
        present = [code for at in part if at not in missing and (code := codes[at]) is not None]
        if not present and missing:
            # A group of missing values only has no bits, and its reference is the code.
            kinds = {missing[at] for at in part}
            if len(kinds) == 1:
                references.append((1 << 16) - kinds.pop())
                widths.append(0)
                continue
        least = min(present, default=0)
        # Two codes more than the values take are left for what is missing.
        width = int(max(present, default=0) - least + 2).bit_length() if missing else 8
        references.append(least)
        widths.append(width)
        for at in part:
            code = codes[at]
            packed.append(((1 << width) - missing[at] if at in missing else int(code or 0) - least, width))
    header = struct.pack(">IBBIBIB", len(parts), 0, 8, length, 1, len(parts[-1]), 0)
    data = _bits((reference, 16) for reference in references) + _bits((width, 8) for width in widths) + _bits(packed)
    return header, data


def complex_packed(content: bytes, codes: Sequence[int], missing: Mapping[int, int], order: int = 0) -> bytes:
    """Complex packing (5.2), or that with spatial differencing of an order (5.3).

    Parameters
    ----------
    content
        A message of edition 2.
    codes
        The values less 280; whole numbers from 0 on.
    missing
        Which of them are missing: 1 by the primary, 2 by the secondary missing value.
    order
        Of spatial differencing: 0, 1 or 2.

    """
    management = max(missing.values(), default=0)
    head = struct.pack(">fHHBBBB", 280.0, 0, 0, 16, 0, 1, management) + struct.pack(">ff", 9999.0, -9999.0)
    present = [at for at in range(len(codes)) if at not in missing]
    first, differences = [], np.array([codes[at] for at in present], np.int64)
    for _ in range(order):
        differences = np.diff(differences)
    given: list[int | None] = [None] * len(codes)
    least = 0
    if order:
        first = [codes[at] for at in present[:order]]
        least = int(differences.min())
        for at, difference in zip(present[order:], differences, strict=True):
            given[at] = int(difference) - least
        for at in present[:order]:
            given[at] = 0
    else:
        for at in present:
            given[at] = codes[at]
    more, data = _groups(given, missing, 5)
    template = struct.pack(">H", 3 if order else 2) + head + more
    if order:
        template += struct.pack(">BB", order, 3)
        # The least difference has its sign in the first bit.
        extra = [*first, abs(least) | (1 << 23 if least < 0 else 0)]
        data = b"".join(number.to_bytes(3, "big") for number in extra) + data
    return _packed(content, template, data, len(codes))


def run_length_packed(content: bytes, levels: Sequence[int], values: Sequence[int], digits: int = 1) -> bytes:
    """Run-length packing (5.200): for each point its level, 0 where missing; values of levels, times 10**digits."""
    highest, bits = len(values), 8
    base = (1 << bits) - 1 - highest
    data, at = [], 0
    while at < len(levels):
        run = 1
        while at + run < len(levels) and levels[at + run] == levels[at]:
            run += 1
        data.append(levels[at])
        left = run - 1
        while left:
            data.append(highest + 1 + left % base)
            left //= base
        at += run
    template = struct.pack(">HBHHB", 200, bits, highest, highest, digits)
    template += b"".join(struct.pack(">H", value) for value in values)
    return _packed(content, template, bytes(data), len(levels))
