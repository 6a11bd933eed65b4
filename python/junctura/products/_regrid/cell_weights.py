"""Conservative weights between cells of grids, by YAC: means over the target's cells, by area on the sphere.

Cells of a regular grid end half way between rows and columns. Those of a reduced grid likewise, with parallels as edges
of several great circles. Where cells of the target are covered in part, the mean is that of the covered part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from junctura._xarray.label_attributes import needed
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid
from junctura.remap import LonLat, Mesh
from junctura.remap import _compute as remap

# An edge along a parallel is so many great circles.
_ARCS = 4


def weights(source: Grid, target: Grid) -> Any:
    """A matrix as of `weight_matrices.weights`; raises what `junctura.remap.Weights.compute` does."""
    return between(of(source), target)


def between(source: LonLat | Mesh, target: Grid) -> Any:
    """The same, where the cells of the source are known."""
    links = remap.taking_part(remap.by_yac(source, cells := of(target), "conservative"), source, cells)
    links, _ = remap.divided(links, target.size)
    shape = (target.size, source.areas.size)
    made = needed("scipy.sparse", "products").coo_array((links.weights, (links.targets, links.sources)), shape=shape)
    return made.tocsr()


def of(grid: Grid) -> LonLat | Mesh:
    """The cells of a grid, in the order of its values."""
    if grid.is_regular:
        return LonLat(grid.longitudes, grid.latitudes)
    return _reduced(grid)


def _reduced(grid: Grid) -> Mesh:
    starts = np.flatnonzero(np.diff(grid.latitudes, prepend=np.inf))
    latitudes, counts = grid.latitudes[starts], np.diff(starts, append=grid.size)
    between = np.concatenate([[90.0], (latitudes[1:] + latitudes[:-1]) / 2, [-90.0]])
    north, south = (np.repeat(bounds, counts) for bounds in (between[:-1], between[1:]))
    width = np.repeat(360 / counts, counts)
    offsets = np.linspace(-0.5, 0.5, _ARCS + 1)
    east = grid.longitudes[:, None] + width[:, None] * offsets
    around: Floats = np.concatenate([east, east[:, ::-1]], axis=1)
    edges = np.repeat(np.stack([north, south], axis=1), _ARCS + 1, axis=1)
    return Mesh(grid.longitudes, grid.latitudes, around, edges)
