"""Weights from grids whose points are listed: projections, rotated and unstructured grids, reduced areas, HEALPix.

```text
  points in rows     ──► quadrilaterals of four neighbors    linear, bilinear: bilinear within a quadrilateral, on the
                                                             plane that touches the sphere at the target point
  points without rows,   triangles (Delaunay, on the sphere)     linear, bilinear: linear within a triangle
  rows that go around ──►
```
A target point in none of the cells is outside: it has no weights, with each method. So the area ends at the outermost
points. Triangles whose circumscribed circle is wider than the local distance of neighbors are excluded: they would
close bays and gaps. ``nearest`` is by distance on the sphere. ``conservative`` uses YAC: cells of points in rows have
their corners in the middle of four neighbors, other cells are Voronoi cells, cut at the boundary.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from junctura._xarray.label_attributes import needed
from junctura.errors import Unsupported
from junctura.products._regrid import cell_weights
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid, directions
from junctura.remap import Mesh

Integers = npt.NDArray[np.intp]
# Tolerance for fractions of a cell outside 0 to 1.
_RIM = 1e-6
_AT_ONCE = 200_000
# Number of nearest points whose cells are searched for a target point.
_CORNERS = 4
_NEWTON = 8
# A row is cyclic if the distance of its ends is at most this many distances of columns.
_GAP = 1.5
# Minimum number of points for the distance of neighbors.
_AROUND = 6
# Maximum width of a circle around a triangle, in local distances of neighbors.
_REACH = 1.2
# Places with the same digits behind the point are one; on a sphere of radius 1, 0.6 mm on the ground.
_DIGITS = 10
# Relative displacement of places in height, as a fraction of the height of the sphere between neighbors.
_UNEVEN = 1e-3


class _Cells(Protocol):
    """Cells between points of a grid.

    Attributes
    ----------
    tree
        Of the points.

    """

    tree: Any

    def around(self, places: Floats) -> tuple[Integers, Floats]:
        """Returns the points around places, and their fractions; all weights are 0 for places outside every cell."""

    def duals(self) -> Mesh:
        """Cells around points."""


def weights(source: Grid, target: Grid, method: str) -> Any:
    """Returns a matrix of weights, with empty rows for target points outside; see `weight_matrices.weights`.

    Raises
    ------
    Unsupported
        The coordinates of the source's points are unknown, or there are too few points.
    ImportError
        Without SciPy: ``pip install 'junctura[products]'``; without YAC: ``pip install 'junctura[remap]'``.

    """
    places, cells = _cells_of(source)
    links = list(_links(places, cells, target, is_nearest=method in ("nearest", "conservative")))
    rows, columns, shares = (np.concatenate(parts) for parts in zip(*links, strict=True))
    shape = (target.size, source.size)
    made = needed("scipy.sparse", "products").coo_array((shares, (rows, columns)), shape=shape).tocsr()
    if method != "conservative":
        return made
    sparse = needed("scipy.sparse", "products")
    inside = sparse.diags_array((np.diff(made.indptr) > 0).astype(np.float64))
    by_area = sparse.csr_array(inside @ cell_weights.between(cells.duals(), target))
    by_area.eliminate_zeros()
    return by_area


def around(source: Grid, latitudes: Floats, longitudes: Floats) -> tuple[Integers, Floats]:
    """Returns the points of a grid around places, and their fractions for `linear`; outside all fractions are 0.

    Raises
    ------
    Unsupported
        As `weights`.

    """
    places, cells = _cells_of(source)
    middle = places.mean(axis=0)
    least = _least(places, middle)
    count = 4 if isinstance(cells, _Quadrilaterals) else 3
    points, shares = np.zeros((latitudes.size, count), np.intp), np.zeros((latitudes.size, count))
    for first in range(0, latitudes.size, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        some = directions(latitudes[part], longitudes[part])
        near = np.flatnonzero(some @ middle >= least)
        if len(near):
            points[first + near], shares[first + near] = cells.around(some[near])
    return points, shares


def _least(places: Floats, middle: Floats) -> float:
    """Returns the smallest scalar product of the points with the center, less a tolerance; -2 for points all around."""
    return float((places @ middle).min()) - _RIM if np.linalg.norm(middle) > _RIM else -2.0


def _links(places: Floats, cells: _Cells, target: Grid, *, is_nearest: bool) -> Iterator[tuple[Any, Any, Floats]]:
    """Yields target points, source points, and weights, in blocks."""
    middle = places.mean(axis=0)
    least = _least(places, middle)
    north, east = target.points()
    yield np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
    for first in range(0, target.size, _AT_ONCE):
        some = directions(north[first : first + _AT_ONCE], east[first : first + _AT_ONCE])
        near = np.flatnonzero(some @ middle >= least)
        if not len(near):
            continue
        points, shares = cells.around(some[near])
        if is_nearest:
            points = cells.tree.query(some[near])[1][:, None]
            shares = (shares.max(axis=1, keepdims=True) > 0).astype(np.float64)
        at, corner = np.nonzero(shares)
        yield near[at] + first, points[at, corner], shares[at, corner]


@functools.lru_cache(maxsize=2)
def _cells_of(source: Grid) -> tuple[Floats, _Cells]:
    if not np.isfinite(source.latitudes).all():
        cause = "its header does not state where its points are: name a file, or fields, that do, with `coordinates`"
        raise Unsupported(f"grid {source.name[:40]}", cause)
    places = directions(source.latitudes, source.longitudes)
    if len(source.lines) == 2 and min(source.lines) > 1:
        rows = places.reshape(*source.lines, 3)
        if not goes_around(rows):
            return places, _Quadrilaterals(rows)
        return places, _Triangles(places, is_closed=True)
    return places, _Triangles(places)


def goes_around(rows: Floats) -> bool:
    """Whether the last column is as close to the first one as others are to their neighbors."""
    apart = np.linalg.norm(rows[:, 1] - rows[:, 0], axis=1)
    closing = np.linalg.norm(rows[:, -1] - rows[:, 0], axis=1)
    return rows.shape[1] > 2 and bool((closing <= _GAP * apart + 1e-12).all())


def _tree(places: Floats) -> Any:
    """Returns a k-d tree; an unbalanced one is built in a fifth of the time."""
    return needed("scipy.spatial", "products").cKDTree(places, compact_nodes=False, balanced_tree=False)


class _Quadrilaterals:
    """Of points in rows; (row, column), (row, column + 1), (row + 1, column), (row + 1, column + 1)."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self.tree = _tree(rows.reshape(-1, 3))
        self._widest = _widest(rows).ravel()

    def around(self, places: Floats) -> tuple[Integers, Floats]:
        points, shares = np.zeros((len(places), 4), np.intp), np.zeros((len(places), 4))
        apart, nearest = self.tree.query(places, min(_CORNERS, self.rows.size // 3))
        # A place in a cell is closer to the nearest corner than that corner is to its farthest neighbor.
        left = np.flatnonzero(apart.T[0] <= self._widest[nearest.T[0]])
        for column in nearest.T:
            for south in (0, -1):
                for east in (0, -1):
                    self._look(places, column, (south, east), left, points, shares)
                    left = left[~shares[left].any(axis=1)]
        return points, shares

    def _look(
        self, places: Floats, nearest: Integers, by: tuple[int, int], left: Integers, points: Integers, shares: Floats
    ) -> None:
        """Finds the remaining places that are in the cell beside their nearest point."""
        count, width = self.rows.shape[:2]
        row, column = nearest[left] // width + by[0], nearest[left] % width + by[1]
        is_cell = (row >= 0) & (row < count - 1) & (column >= 0) & (column < width - 1)
        some, first = left[is_cell], (row * width + column)[is_cell]
        corners = first[:, None] + [0, 1, width, width + 1]
        found = _bilinear(places[some], self.rows.reshape(-1, 3)[corners])
        is_in = found.any(axis=1)
        points[some[is_in]], shares[some[is_in]] = corners[is_in], found[is_in]

    def duals(self) -> Mesh:
        padded = _continued(_continued(self.rows).swapaxes(0, 1)).swapaxes(0, 1)
        middle = padded[:-1, :-1] + padded[:-1, 1:] + padded[1:, :-1] + padded[1:, 1:]
        corners = np.stack([middle[:-1, :-1], middle[:-1, 1:], middle[1:, 1:], middle[1:, :-1]], axis=2)
        north, east = _degrees(corners.reshape(-1, 4, 3))
        centres = _degrees(self.rows.reshape(-1, 3))
        return Mesh(centres[1], centres[0], east, north)


def _widest(rows: Floats) -> Floats:
    """Returns the distance of each point from the farthest of its neighbors in its row and column."""
    found = np.zeros(rows.shape[:2])
    for axis in (0, 1):
        apart = np.linalg.norm(np.diff(rows, axis=axis), axis=2)
        before, behind = (np.insert(apart, at, 0, axis=axis) for at in (0, apart.shape[axis]))
        found = np.maximum(found, np.maximum(before, behind))
    return found


def _continued(rows: Floats) -> Floats:
    """Extrapolates by a row before and one after, at the distance of the adjacent rows."""
    return np.concatenate([2 * rows[:1] - rows[1:2], rows, 2 * rows[-1:] - rows[-2:-1]])


def _degrees(places: Floats) -> tuple[Floats, Floats]:
    """Returns latitudes and longitudes of vectors."""
    x, y, z = np.moveaxis(places, -1, 0)
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))


def _bilinear(places: Floats, corners: Floats) -> Floats:
    """Returns weights of four corners on the tangent plane at each place; 0 if the place is outside the corners."""
    up = np.eye(3)[np.abs(places).argmin(axis=1)]
    east = np.cross(up, places)
    east /= np.linalg.norm(east, axis=1, keepdims=True)
    north = np.cross(places, east)
    towards = np.einsum("nck,nk->nc", corners, places)
    with np.errstate(all="ignore"):
        x, y = (np.einsum("nck,nk->nc", corners, axis) / towards for axis in (east, north))
        s, t = np.full(len(places), 0.5), np.full(len(places), 0.5)
        for _ in range(_NEWTON):
            weights = _of(s, t)
            by_s = np.stack([t - 1, 1 - t, -t, t], axis=1)
            by_t = np.stack([s - 1, -s, 1 - s, s], axis=1)
            f, g = (weights * x).sum(axis=1), (weights * y).sum(axis=1)
            fs, ft = (by_s * x).sum(axis=1), (by_t * x).sum(axis=1)
            gs, gt = (by_s * y).sum(axis=1), (by_t * y).sum(axis=1)
            of_both = fs * gt - ft * gs
            s, t = s - (f * gt - g * ft) / of_both, t - (g * fs - f * gs) / of_both
        is_in = (towards > 0).all(axis=1) & (np.minimum(s, t) >= -_RIM) & (np.maximum(s, t) <= 1 + _RIM)
    made = _of(np.clip(s, 0, 1), np.clip(t, 0, 1))
    made[~is_in] = 0
    return made


def _of(s: Floats, t: Floats) -> Floats:
    return np.stack([(1 - s) * (1 - t), s * (1 - t), (1 - s) * t, s * t], axis=1)


def _uneven(places: Floats) -> Floats:
    """Displaces places slightly in height, so that no four are on one circle: each triangle has its own plane."""
    apart = _tree(places).query(places, [2])[0]
    moved: Floats = places * (1 + _UNEVEN * apart**2 / 8 * np.random.default_rng(0).random(apart.shape))
    return moved


class _Triangles:
    """Triangles of points on the sphere: the faces of their convex hull.

    A ray from the center crosses the face whose plane is nearest along the ray: that with the greatest product of the
    place and the plane's normal, divided by its distance. A tree of these vectors, with a fourth component for equal
    lengths, finds it.
    """

    def __init__(self, places: Floats, *, is_closed: bool = False) -> None:
        if len(places) < 4:
            raise Unsupported("grid", f"between {len(places)} points without rows there is nothing to interpolate")
        spatial = needed("scipy.spatial", "products")
        self.places, self.tree = places, _tree(places)
        # One of each place.
        _, single = np.unique(places.round(_DIGITS), axis=0, return_index=True)
        try:
            hull = spatial.ConvexHull(_uneven(places[single]))
        except (spatial.QhullError, ValueError) as error:
            raise Unsupported("grid", "its points are on one line") from error
        normals, distances = hull.equations[:, :3], -hull.equations[:, 3]
        corners: Integers = single[hull.simplices].astype(np.intp)
        # The distance of a plane is the cosine of the circle that its corners are on.
        keep = distances > _RIM if is_closed else distances > np.cos(np.minimum(self._reach(corners), 1.5))
        if not keep.any():
            raise Unsupported("grid", "its points are too far from one another to interpolate between them")
        self.corners = corners[keep]
        self.centres = normals[keep]
        planes = self.centres / distances[keep, None]
        lengths = (planes**2).sum(axis=1)
        rest = np.sqrt(np.maximum(lengths.max() - lengths, 0))
        self._planes = _tree(np.column_stack([planes, rest]))

    def _reach(self, corners: Integers) -> Floats:
        """Returns the angle in radians within which each triangle has other points."""
        count = min(_AROUND + 1, len(self.places))
        apart = self.tree.query(self.places, [count])[0][:, 0]
        angles: Floats = _REACH * 2 * np.arcsin(np.minimum(apart / 2, 1))
        widest: Floats = angles[corners].max(axis=1)
        return widest

    def around(self, places: Floats) -> tuple[Integers, Floats]:
        _, face = self._planes.query(np.column_stack([places, np.zeros(len(places))]))
        points = self.corners[face]
        a, b, c = np.moveaxis(self.places[points], 1, 0)
        shares = np.stack([np.einsum("nk,nk->n", places, np.cross(*pair)) for pair in ((b, c), (c, a), (a, b))], axis=1)
        with np.errstate(all="ignore"):
            shares /= shares.sum(axis=1, keepdims=True)
            shares[~((shares >= -_RIM).all(axis=1) & (np.einsum("nk,nk->n", places, a + b + c) > 0))] = 0
        shares = np.maximum(shares, 0)
        sums = shares.sum(axis=1, keepdims=True)
        return points, np.divide(shares, sums, out=np.zeros_like(shares), where=sums > 0)

    def duals(self) -> Mesh:
        points, corners = self._rim()
        points = np.concatenate([self.corners.ravel(), points])
        corners = np.concatenate([np.repeat(self.centres, 3, axis=0), corners])
        order = np.lexsort((self._turn(points, corners), points))
        points, corners = points[order], corners[order]
        counts = np.bincount(points, minlength=len(self.places))
        starts = np.cumsum(counts) - counts
        # Cells with fewer corners repeat the last one; points in no triangle have cells without area.
        at = starts[:, None] + np.minimum(np.arange(max(counts.max(), 3)), np.maximum(counts - 1, 0)[:, None])
        around = corners[np.minimum(at, len(corners) - 1)]
        around[counts == 0] = self.places[counts == 0, None]
        north, east = _degrees(around)
        centres = _degrees(self.places)
        return Mesh(centres[1], centres[0], east, north, mask=counts > 2)

    def _rim(self) -> tuple[Integers, Floats]:
        """Edges of one triangle only: each one's ends, and its middle for both."""
        edges = np.sort(self.corners[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        edges, counts = np.unique(edges, axis=0, return_counts=True)
        rim = edges[counts == 1]
        middle = self.places[rim].sum(axis=1)
        middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        return rim.ravel(), np.repeat(middle, 2, axis=0)

    def _turn(self, points: Integers, corners: Floats) -> Floats:
        """The direction of each corner of a cell as seen from the middle of its corners."""
        count = len(self.places)
        sums = np.zeros((count, 3))
        np.add.at(sums, points, corners)
        sums = sums[points]
        middle = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        east = np.cross(np.eye(3)[np.abs(middle).argmin(axis=1)], middle)
        north = np.cross(middle, east)
        turn: Floats = np.arctan2(np.einsum("nk,nk->n", corners, north), np.einsum("nk,nk->n", corners, east))
        return turn
