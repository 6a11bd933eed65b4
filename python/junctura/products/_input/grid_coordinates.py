"""Coordinates of the points of unstructured grids, from a file or from fields.

```text
  netCDF   variables clat and clon (ICON), latitude and longitude, lat and lon, tlat and tlon
  GRIB     fields of WMO's parameters 0-191-1 and 0-191-2 (geographical latitude and longitude), or of these short names
```
In degrees, or in radians according to the units of a variable.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from junctura._grib import checked_messages
from junctura._xarray.label_attributes import needed
from junctura.errors import InvalidArgument
from junctura.field import decoded, values_of
from junctura.field._eccodes import value_of
from junctura.products._input.decoded_field import Field
from junctura.products._regrid.floats import Floats

_NAMES = (("clat", "clon"), ("latitude", "longitude"), ("lat", "lon"), ("tlat", "tlon"))
# Of discipline 0, by category and number.
_PARAMETERS = {(0, 191, 1): 0, (0, 191, 2): 1}
_HEAD = 4


def located(field: Field, file: str) -> Field:
    """Returns a field whose header lacks the coordinates of its points with those of a file; other fields unchanged.

    Raises
    ------
    InvalidArgument
        The file cannot be read, has no coordinates, or not as many as the field has points.

    """
    if field.grid.is_located:
        return field
    path = Path(file)
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise InvalidArgument(f"coordinates {file}", str(error.strerror)) from error
    latitudes, longitudes, digest = _read(path, changed)
    if latitudes.size != field.grid.size:
        cause = f"{latitudes.size} points, but the field {field.param} has {field.grid.size}"
        raise InvalidArgument(f"coordinates {file}", cause)
    return _placed(field, latitudes, longitudes, digest)


def located_by(field: Field, latitudes: Field, longitudes: Field) -> Field:
    """Returns a field with coordinates from two fields on its grid.

    Raises
    ------
    InvalidArgument
        Some of the values are not latitudes or longitudes.

    """
    of = f"coordinates {latitudes.param}, {longitudes.param}"
    north, east = (
        np.degrees(one.values) if one.units.startswith("rad") else one.values for one in (latitudes, longitudes)
    )
    return _placed(field, *_checked(of, north, east))


def _placed(field: Field, latitudes: Floats, longitudes: Floats, digest: str) -> Field:
    # Weights are cached by grid name: other coordinates have another name.
    on = dataclasses.replace(field.grid, name=f"{field.grid.name}#{digest}", latitudes=latitudes, longitudes=longitudes)
    return dataclasses.replace(field, on=on)


@functools.lru_cache(maxsize=2)
def _read(path: Path, changed: int) -> tuple[Floats, Floats, str]:  # noqa: ARG001 - tells versions apart
    try:
        with path.open("rb") as file:
            found = _of_grib(path) if file.read(_HEAD) == b"GRIB" else _of_netcdf(path)
    except OSError as error:
        raise InvalidArgument(f"coordinates {path}", f"it cannot be read: {error}") from error
    if found is None or found[0].size != found[1].size:
        names = ", ".join(" and ".join(pair) for pair in _NAMES)
        raise InvalidArgument(f"coordinates {path}", f"it has no latitudes and longitudes of one size: {names}")
    return _checked(f"coordinates {path}", *found)


def _checked(subject: str, north: Floats, east: Floats) -> tuple[Floats, Floats, str]:
    """Returns latitudes and longitudes, and a digest of both."""
    if not (np.abs(north) <= 90 + 1e-6).all() or not (np.abs(east) <= 720).all():
        raise InvalidArgument(subject, "some are no latitudes or longitudes in degrees")
    return np.clip(north, -90, 90), east, hashlib.sha256(north.tobytes() + east.tobytes()).hexdigest()[:16]


def _of_netcdf(path: Path) -> tuple[Floats, Floats] | None:
    with needed("netCDF4", "products").Dataset(path) as data:
        for pair in _NAMES:
            if all(name in data.variables for name in pair):
                north, east = (_degrees(data.variables[name]) for name in pair)
                return north, east
    return None


def _degrees(variable: Any) -> Floats:
    values = np.ma.filled(np.ma.asarray(variable[:], np.float64), np.nan).ravel()
    is_radian = str(getattr(variable, "units", "")).startswith("radian")
    return np.degrees(values) if is_radian else values


def _of_grib(path: Path) -> tuple[Floats, Floats] | None:
    found: dict[int, Floats] = {}
    for message in _split(path.read_bytes()):
        axis, values = decoded(message, _axis_of)
        if axis is not None:
            found.setdefault(axis, values)
    return (found[0], found[1]) if len(found) > 1 else None


def _split(content: bytes) -> Iterator[bytes]:
    at = content.find(b"GRIB")
    while at >= 0:
        length = checked_messages.announced(content[at:]).nbytes
        yield content[at : at + length]
        at = content.find(b"GRIB", at + length)


def _axis_of(eccodes: Any, handle: int) -> tuple[int | None, Floats]:
    """Returns 0 for latitudes, 1 for longitudes, None for others; and the values."""
    keys = ("discipline", "parameterCategory", "parameterNumber")
    axis = _PARAMETERS.get(tuple(value_of(eccodes, handle, key) for key in keys))
    short = str(value_of(eccodes, handle, "shortName", str)).lower()
    if axis is None:
        axis = next((pair.index(short) for pair in _NAMES if short in pair), None)
    return axis, values_of(eccodes, handle)
