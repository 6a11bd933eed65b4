"""The visible area of a map: the whole grid, or its area with values, unless an area is given.

A limited-area field that was regridded to a global grid has values in a rectangle, and none around the rectangle. Such
a map shows the rectangle. Masks by value have other shapes, and such a map shows the whole grid, as the maps of other
steps do. A map around the globe is centered on Greenwich, regardless of the grid's first column.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from junctura.errors import InvalidArgument
from junctura.products._map.projection import View
from junctura.products._outputs._output import Output
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid

# A map needs about 130 bytes per pixel.
PIXELS_MAX = 16_000_000
_GLOBE_CENTRE, _AROUND = (30.0, 10.0), (-180.0, 180.0)
# Minimum rows and columns of a rectangle, and the minimum fraction with values.
_LINES_MIN, _FILLED = 8, 0.9
# Points without a longitude gap of this many degrees are considered global.
_AROUND_GAP, _NEAR_POLE = 90.0, 80.0
_Bounds = tuple[float, float, float, float]


def view_of(lies: Grid, to: Output, values: Floats | None = None) -> View:
    """Returns the view of a map of this width: the grid, or its area with values.

    Raises
    ------
    InvalidArgument
        The map exceeds `PIXELS_MAX` pixels, for example for an area much higher than wide.

    """
    found = _view(lies, to, None if values is None else _with_values(lies, values))
    if found.width * found.height > PIXELS_MAX:
        size = f"{found.width} x {found.height} pixels"
        raise InvalidArgument("map", f"{size}, at most {PIXELS_MAX} in all are possible: ask for a smaller width")
    return found


def _view(lies: Grid, to: Output, area: _Bounds | None) -> View:
    if to.projection == "cylindrical" and to.centre is None:
        north, south, west, east = area or _bounds(lies)
        return View("cylindrical", to.width, ((north + south) / 2, (west + east) / 2), (north - south, east - west))
    is_whole_globe = to.projection == "globe" and lies.is_global and not area
    centre = to.centre or (_GLOBE_CENTRE if is_whole_globe else _middle(area or _bounds(lies)))
    return View(to.projection, to.width, centre if to.projection == "globe" else (0.0, centre[1]))


def _bounds(lies: Grid) -> _Bounds:
    """Returns the bounds of a cylindrical map: the globe, or the area with a margin where it has none."""
    if lies.is_global:
        return 90.0, -90.0, *_AROUND
    if lies.kind == "listed":
        return _around(lies)
    north, south = float(lies.latitudes.max()), float(lies.latitudes.min())
    west, east = _AROUND if lies.goes_around else (float(lies.longitudes.min()), float(lies.longitudes.max()))
    margin = max(0.15 * (north - south), 0.15 * (east - west), 2.0) if lies.kind == "points" else 0.0
    if north - south <= 0 or east - west <= 0:
        margin = max(margin, 2.0)
    return min(north + margin, 90), max(south - margin, -90), west - margin, min(east + margin, west - margin + 360)


def _around(lies: Grid) -> _Bounds:
    """Returns parallels and meridians of listed points, or global bounds if the points surround a pole."""
    north, south = float(lies.latitudes.max()), float(lies.latitudes.min())
    longitudes = np.unique(np.mod(lies.longitudes, 360))
    gaps = np.diff(longitudes, append=longitudes[0] + 360)
    if gaps.max() < _AROUND_GAP:
        # Rows next to a pole are as far from it as from one another, some degrees at most.
        return (90.0 if north > _NEAR_POLE else north), (-90.0 if south < -_NEAR_POLE else south), *_AROUND
    west = float(longitudes[(gaps.argmax() + 1) % len(longitudes)])
    west -= 360 if west >= 180 else 0
    margin = 0.0 if north > south and gaps.max() < 360 else 2.0
    return min(north + margin, 90), max(south - margin, -90), west - margin, west + 360 - float(gaps.max()) + margin


def _with_values(lies: Grid, values: Floats) -> _Bounds | None:
    """Returns the rectangle with values, if there are none around it."""
    if not lies.is_regular:
        return None
    known = np.isfinite(values)
    rows = np.flatnonzero(known.any(axis=1))
    columns = _run(np.flatnonzero(known.any(axis=0)), known.shape[1], goes_around=lies.goes_around)
    if known.all() or min(len(rows), len(columns)) < _LINES_MIN:
        return None
    rows = np.arange(rows[0], rows[-1] + 1)
    if (len(rows), len(columns)) == known.shape or known[np.ix_(rows, columns)].mean() < _FILLED:
        return None
    longitudes = np.unwrap(lies.longitudes[columns], period=360)
    is_around = lies.goes_around and len(columns) == known.shape[1]
    west, east = _AROUND if is_around else (float(longitudes[0]), float(longitudes[-1]))
    return float(lies.latitudes[rows[0]]), float(lies.latitudes[rows[-1]]), west, east


def _run(found: npt.NDArray[np.intp], count: int, *, goes_around: bool) -> npt.NDArray[np.intp]:
    """Returns the shortest run of columns, from west to east, that contains all of these."""
    if not len(found):
        return found
    if not goes_around:
        return np.arange(found[0], found[-1] + 1)
    gaps = np.diff(found, append=found[0] + count)
    first, length = int(found[(gaps.argmax() + 1) % len(found)]), count - int(gaps.max()) + 1
    return np.mod(np.arange(first, first + length), count)


def _middle(area: _Bounds) -> tuple[float, float]:
    north, south, west, east = area
    return (north + south) / 2, (west + east) / 2
