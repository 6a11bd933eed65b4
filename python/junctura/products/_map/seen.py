"""What of the globe a map shows: all of the grid, unless it is said."""

from __future__ import annotations

from junctura.errors import InvalidArgument
from junctura.products._grid import Grid
from junctura.products._map.projection import View
from junctura.products._outputs._output import Output

# Making a map takes some 130 bytes for each.
PIXELS_MAX = 16_000_000
_GLOBE_CENTRE = (30.0, 10.0)


def view_of(lies: Grid, to: Output) -> View:
    """The view that a map of this width has of a grid.

    Raises
    ------
    InvalidArgument
        It has more than `PIXELS_MAX` pixels, as has an area that is much higher than wide.

    """
    found = _view(lies, to)
    if found.width * found.height > PIXELS_MAX:
        size = f"{found.width} x {found.height} pixels"
        raise InvalidArgument("map", f"{size}, at most {PIXELS_MAX} in all are possible: ask for a smaller width")
    return found


def _view(lies: Grid, to: Output) -> View:
    if to.projection == "cylindrical" and to.centre is None:
        north, south, west, east = _bounds(lies)
        return View("cylindrical", to.width, ((north + south) / 2, (west + east) / 2), (north - south, east - west))
    centre = to.centre or (_GLOBE_CENTRE if lies.is_global else _middle(lies))
    if to.projection == "cylindrical":
        return View("cylindrical", to.width, (0.0, centre[1]))
    return View(to.projection, to.width, (0.0 if to.projection == "robinson" else centre[0], centre[1]))


def _bounds(lies: Grid) -> tuple[float, float, float, float]:
    """North, south, west and east of a cylindrical map: the globe, or the area with a margin where it has none."""
    if lies.is_global:
        return 90.0, -90.0, -180.0, 180.0
    north, south = float(lies.latitudes.max()), float(lies.latitudes.min())
    west, east = float(lies.longitudes.min()), float(lies.longitudes.max())
    margin = max(0.15 * (north - south), 0.15 * (east - west), 2.0) if lies.kind == "points" else 0.0
    if north - south <= 0 or east - west <= 0:
        margin = max(margin, 2.0)
    return min(north + margin, 90), max(south - margin, -90), west - margin, min(east + margin, west - margin + 360)


def _middle(lies: Grid) -> tuple[float, float]:
    north, south, west, east = _bounds(lies)
    return (north + south) / 2, (west + east) / 2
