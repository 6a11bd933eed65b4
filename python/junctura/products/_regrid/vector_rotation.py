"""Rotation of vector components along the rows and columns of a grid to east and north."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from junctura.errors import Unsupported
from junctura.field import decoded
from junctura.field._eccodes import value_of
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid, directions, stating
from junctura.products._regrid.located_weights import goes_around

# The attribute of a field whose components follow the grid (the name of ecCodes' key): 1, or -1 if the columns of its
# message are opposite to the direction of x.
ALONG_GRID = "uvRelativeToGrid"
# The components to the east, or along x, and those to the north, or along y; by short names and numbers.
PAIRS = {
    "u": "v",
    "10u": "10v",
    "100u": "100v",
    "200u": "200v",
    "u10n": "v10n",
    "ewss": "nsss",
    "iews": "inss",
    "131": "132",
    "165": "166",
    "228246": "228247",
    "228239": "228240",
    "228131": "228132",
    "180": "181",
    "229": "230",
    "ust": "vst",
}
# Rotated grids with rows of unequal length, as ecCodes names them.
_REDUCED = "reduced_rotated"
# Closer neighbors are the same place, on a sphere of radius 1.
_SAME = 1e-9


def turned(x: Floats, y: Floats, on: Grid, sign: int) -> tuple[Floats, Floats]:
    """Returns components to the east and to the north from those along x and y.

    Parameters
    ----------
    x, y
        Of the shape of the grid.
    on
        A listed grid whose points are in rows. The direction of x at a point is that between its neighbors in the row,
        for reduced rotated grids around their pole, and y is 90 degrees to the left, as in conformal projections and in
        rotated grids.
    sign
        1 if x increases from the first to the last column, else -1.

    Raises
    ------
    Unsupported
        The points are not in rows, or ecCodes cannot compute their coordinates.

    """
    if on.name.startswith(_REDUCED):
        return _by(sign, x, y, *_around_pole(on))
    if min(on.lines, default=0) < 2 or not on.is_located:
        raise Unsupported(f"grid {on.label}", "components along a grid without rows cannot be turned to east and north")
    return _by(sign, x, y, *_along_rows(on))


def _by(sign: int, x: Floats, y: Floats, cosine: Floats, sine: Floats) -> tuple[Floats, Floats]:
    return sign * (cosine * x - sine * y), sign * (sine * x + cosine * y)


@functools.lru_cache(maxsize=4)
def _around_pole(on: Grid) -> tuple[Floats, Floats]:
    """As `_along_rows`, around the pole that the grid section states."""
    north, east = decoded(stating(on.name), _pole)
    return _angle(on, np.cross(directions(np.array(north), np.array(east)), directions(on.latitudes, on.longitudes)))


def _pole(eccodes: Any, handle: int) -> tuple[float, float]:
    """Returns latitude and longitude of the northern pole of a rotated grid."""
    keys = (f"{axis}OfSouthernPoleInDegrees" for axis in ("latitude", "longitude"))
    south, east = (float(value_of(eccodes, handle, key, float)) for key in keys)
    return -south, east + 180


@functools.lru_cache(maxsize=4)
def _along_rows(on: Grid) -> tuple[Floats, Floats]:
    """The cosine and the sine of the angle from east, to the left, to the direction of rows."""
    rows = directions(on.latitudes, on.longitudes).reshape(*on.lines, 3)
    along = _differences(rows)
    down = np.gradient(rows, axis=0, edge_order=2 if len(rows) > 2 else 1)
    # At a pole of a rotated grid a row is one point: there x is perpendicular to the columns, as everywhere.
    side = np.sign(np.einsum("rck,rck->rc", np.cross(along, down), rows).sum()) or 1.0
    is_point = np.linalg.norm(along, axis=2) < _SAME
    along[is_point] = side * np.cross(down, rows)[is_point]
    return _angle(on, along.reshape(-1, 3))


def _angle(on: Grid, along: Floats) -> tuple[Floats, Floats]:
    """The cosine and the sine of the angle from east, to the left, to a direction at each point."""
    north, east = np.radians(on.latitudes), np.radians(on.longitudes)
    to_east = -np.sin(east) * along[:, 0] + np.cos(east) * along[:, 1]
    to_north = np.cos(north) * along[:, 2] - np.sin(north) * (np.cos(east) * along[:, 0] + np.sin(east) * along[:, 1])
    length = np.hypot(to_east, to_north)
    return to_east / length, to_north / length


def _differences(rows: Floats) -> Floats:
    """Between the neighbors of each point in its row."""
    if not goes_around(rows):
        return np.asarray(np.gradient(rows, axis=1, edge_order=2 if rows.shape[1] > 2 else 1))
    return np.roll(rows, -1, axis=1) - np.roll(rows, 1, axis=1)
