"""The layout of the values of a GRIB message: dimensions, and latitudes and longitudes in the order of the values.

| grid | dimensions | latitudes and longitudes |
|---|---|---|
| regular_ll, regular_gg | latitude, longitude | two axes, computed from the ends that the header states |
| rotated, Lambert, polar stereographic, Mercator, space view | y, x | of each point, from ecCodes |
| reduced, HEALPix | values | of each point, from ecCodes |
| unstructured, and grids whose points ecCodes cannot compute | values | none |
| spherical harmonics | coefficient | none |

Rows and columns keep the direction of the message. EcCodes' iterator is the reference for the position of values,
except for alternating rows, which it ignores on some grids, and their columns: there WMO's flag table 3.4 is used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura._grib import checked_messages
from junctura.errors import Corrupt
from junctura.field._eccodes import value_of
from junctura.field._order import Order, order_of

Array = npt.NDArray[Any]
_COORDINATES = ("latitude", "longitude")
# CF (1.11, sections 4.1 and 4.2).
_UNITS = {"latitude": "degrees_north", "longitude": "degrees_east"}
_WITH_AXES = ("regular_ll", "regular_gg")
# EcCodes computes the points of these from the southwestern one on, whatever the order of the message.
_FROM_SOUTHWEST = ("lambert", "polar_stereographic", "mercator")
# EcCodes computes the points of these row by row, also where columns are consecutive.
_BY_ROW = ("rotated_gg", "space_view")


class Layout(NamedTuple):
    """The layout of the values of a message."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    # Dimensions and values of each coordinate.
    coords: dict[str, tuple[tuple[str, ...], Array]]
    # Of a grid with rows.
    order: Order | None = None

    def arranged(self, values: Array) -> Array:
        """Values in the order of a message, in the order and shape of this layout."""
        return values.reshape(self.shape) if self.order is None else self.order.arranged(values)

    def labelled(self) -> dict[str, tuple[tuple[str, ...], Array, dict[str, str]]]:
        """The coordinates with their attributes, as xarray takes them."""
        return {
            name: (dims, array, {"units": _UNITS[name], "standard_name": name})
            for name, (dims, array) in self.coords.items()
        }


def layout_of(eccodes: Any, handle: int) -> Layout:
    """Returns the layout of the values of a message, without decoding; for a regular grid with two axes only.

    Raises
    ------
    Corrupt
        The header contradicts itself.
    TooLarge
        The grid has too many points or parallels.

    """
    points = eccodes.codes_get_size(handle, "values")
    checked_messages.limit(points)
    kind = value_of(eccodes, handle, "gridType", str) or "unknown"
    if kind.endswith("sh"):
        return Layout(("coefficient",), (points,), {})
    if kind.endswith("gg"):
        checked_messages.limit_parallels(eccodes.codes_get(handle, "N"))
    order = order_of(eccodes, handle)
    if kind in _WITH_AXES:
        return _with_axes(eccodes, handle, kind, order, points)
    places = _places(eccodes, handle, kind, points)
    if places and order is not None and order.rows * order.columns == points:
        places = {name: _in_rows(array, order, kind) for name, array in places.items()}
        return _everywhere(("y", "x"), order.shape, places, order)
    return _everywhere(("values",), (points,), places, None)


def _everywhere(dims: tuple[str, ...], shape: tuple[int, ...], places: dict[str, Array], order: Order | None) -> Layout:
    return Layout(dims, shape, {name: (dims, array) for name, array in places.items()}, order)


def _places(eccodes: Any, handle: int, kind: str, points: int) -> dict[str, Array]:
    """Latitudes and longitudes of all points in ecCodes' order; nothing where it cannot compute them."""
    try:
        found = {name: eccodes.codes_get_array(handle, f"{name}s") for name in _COORDINATES}
    except eccodes.CodesInternalError:
        return {}
    if any(len(places) != points for places in found.values()):
        raise Corrupt("GRIB message", f"{points} values, but its grid {kind} has {len(found['latitude'])} points")
    return found


def _in_rows(places: Array, order: Order, kind: str) -> Array:
    """Latitudes or longitudes of all points as rows and columns in the direction of the message."""
    if kind in _FROM_SOUTHWEST:
        rows = places.reshape(order.shape)
        rows = rows if order.is_northward else rows[::-1]
        return np.ascontiguousarray(rows[:, ::-1] if order.is_westward else rows)
    if order.is_by_column and kind not in _BY_ROW:
        return np.ascontiguousarray(places.reshape(order.shape[::-1]).T)
    return places.reshape(order.shape)


def _with_axes(eccodes: Any, handle: int, kind: str, order: Order | None, points: int) -> Layout:
    if order is None or order.rows * order.columns != points:
        rows, columns = (0, 0) if order is None else order.shape
        raise Corrupt("GRIB message", f"{points} values for {rows} rows of {columns} points")
    axes = {
        "latitude": _latitudes(eccodes, handle, kind, order),
        "longitude": _longitudes(eccodes, handle, order),
    }
    return Layout(_COORDINATES, order.shape, {name: ((name,), axis) for name, axis in axes.items()}, order)


def _latitudes(eccodes: Any, handle: int, kind: str, order: Order) -> Array:
    """Those of the rows, in their order."""
    first, last = _ends(eccodes, handle, "latitude")
    if kind == "regular_ll":
        return np.linspace(first, last, order.rows)
    parallels: Array = np.fromiter(eccodes.codes_get_gaussian_latitudes(eccodes.codes_get(handle, "N")), np.float64)
    if order.is_northward:
        parallels = parallels[::-1]
    begin = int(np.abs(parallels - first).argmin())
    if begin + order.rows > len(parallels):
        cause = f"{order.rows} rows from latitude {first} on, of a grid of {len(parallels)} parallels"
        raise Corrupt("GRIB message", cause)
    return parallels[begin : begin + order.rows]


def _longitudes(eccodes: Any, handle: int, order: Order) -> Array:
    """Those of the columns, in their order, without a jump at the prime meridian; the easternmost is at most 360."""
    first, last = _ends(eccodes, handle, "longitude")
    if order.is_westward:
        return np.linspace(first, last if last < first else last - 360, order.columns)
    last = last if last > first else last + 360
    west = 360 if last > 360 and order.columns > 1 else 0
    return np.linspace(first - west, last - west, order.columns)


def _ends(eccodes: Any, handle: int, coordinate: str) -> tuple[float, float]:
    keys = (f"{coordinate}Of{end}GridPointInDegrees" for end in ("First", "Last"))
    first, last = (float(eccodes.codes_get_double(handle, key)) for key in keys)
    return first, last
