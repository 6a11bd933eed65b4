"""The source values of each pixel of a map.

A pixel is between two rows, and in each row between two columns: its value is interpolated between these four
(bilinear). If one of the four is missing, the pixel has the nearest value, missing or not, so that the boundaries of
missing areas stay in place. For grids with listed points, a pixel is in a cell of neighbors, as for the operation
`grid`, or outside all cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from junctura._native import _sample
from junctura.products._map.projection import Mask, View
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid
from junctura.products._regrid.located_weights import around
from junctura.products._workers.cache import Bounded

Singles: TypeAlias = npt.NDArray[np.float32]
Indices: TypeAlias = npt.NDArray[np.intp]
Places: TypeAlias = npt.NDArray[np.uint32]
# Of a map of a thousand pixels in width these are some 18 MB.
_KEPT_BYTES_MAX = 256 << 20


@dataclass(frozen=True)
class Samples:
    """Pixels and their source values.

    Attributes
    ----------
    pixels
        The pixels of the map within the grid, as row-major indices.
    corners
        For each pixel, the four values around it: to the north-west, north-east, south-west and south-east.
    south, east
        The distance from the northern towards the southern row, and from the western towards the eastern column of each
        row.

    """

    pixels: Indices
    corners: tuple[Places, Places, Places, Places]
    south: Singles
    east: tuple[Singles, Singles]

    def of(self, values: Floats) -> Singles:
        """Returns the values of the pixels."""
        made = np.empty(len(self.pixels), np.float32)
        flat = np.ascontiguousarray(values, np.float64).reshape(-1)
        _sample(made, flat, self.corners, (self.south, *self.east))
        return made

    @property
    def nbytes(self) -> int:
        """The memory size."""
        return sum(part.nbytes for part in (self.pixels, *self.corners, self.south, *self.east))


@dataclass(frozen=True)
class CellSamples:
    """Pixels in cells of neighbors: as `Samples`, each with some points and their fractions.

    Attributes
    ----------
    pixels
        The pixels of the map within the grid, as row-major indices.
    points, shares
        For each pixel.

    """

    pixels: Indices
    points: Indices
    shares: Singles

    def of(self, values: Floats) -> Singles:
        """Returns the values of the pixels."""
        flat = values.ravel().astype(np.float32)
        found: Singles = np.einsum("pc,pc->p", flat[self.points], self.shares)
        unknown = np.isnan(found)
        if unknown.any():
            nearest = self.shares[unknown].argmax(axis=1)
            found[unknown] = flat[self.points[unknown, nearest]]
        return found

    @property
    def nbytes(self) -> int:
        """The memory size."""
        return self.pixels.nbytes + self.points.nbytes + self.shares.nbytes


_kept: Bounded[Samples | CellSamples] = Bounded(_KEPT_BYTES_MAX)


def samples(lies: Grid, view: View) -> Samples | CellSamples:
    """Returns the source values of the pixels of a view, for a grid that is not a list of places."""
    return _kept.get((lies.name, view), lambda: _samples(lies, view), lambda made: made.nbytes)


def _samples(lies: Grid, view: View) -> Samples | CellSamples:
    latitudes, longitudes, seen = view.places()
    if lies.kind == "listed":
        pixels = np.flatnonzero(seen)
        points, shares = around(lies, latitudes.ravel()[pixels], longitudes.ravel()[pixels])
        is_in = shares.any(axis=1)
        return CellSamples(pixels[is_in], points[is_in], shares[is_in].astype(np.float32))
    rows = _Rows.of(lies)
    is_in = seen & rows.contain(latitudes, longitudes)
    return rows.samples(np.flatnonzero(is_in), latitudes[is_in], longitudes[is_in])


@dataclass(frozen=True)
class _Rows:
    """A grid as rows from north to south, each with a number of values from `west` on, `apart` degrees from one
    another.
    """

    latitudes: Floats
    starts: Indices
    counts: Indices
    west: float
    apart: Floats

    @classmethod
    def of(cls, lies: Grid) -> _Rows:
        if lies.is_regular:
            rows, columns = lies.shape
            apart = (lies.longitudes[-1] - lies.longitudes[0]) / (columns - 1) if columns > 1 else 360.0
            counts = np.full(rows, columns)
            latitudes, distances = lies.latitudes, np.full(rows, apart)
        else:
            latitudes, starts, counts = np.unique(-lies.latitudes, return_index=True, return_counts=True)
            latitudes, distances = -latitudes, 360 / counts
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return cls(latitudes, starts, counts, float(lies.longitudes[0]), distances)

    @property
    def goes_around(self) -> bool:
        return bool(self.counts[0] * self.apart[0] > 360 - 1e-6)

    def contain(self, latitudes: Floats, longitudes: Floats) -> Mask:
        """Whether a place is within half a cell of the outermost values; about the poles, too."""
        found = np.ones(latitudes.shape, np.bool_)
        height = np.abs(np.diff(self.latitudes)).max(initial=0) / 2 or 1.0
        for edge, outside in ((self.latitudes[0], 1), (self.latitudes[-1], -1)):
            # Gaussian rows end before the pole.
            if abs(edge) + 2 * height < 90:
                found &= (latitudes - edge) * outside <= height
        if not self.goes_around:
            apart = self.apart[0]
            columns = np.mod(longitudes - self.west + apart / 2, 360) / apart
            found &= columns <= self.counts[0]
        return found

    def samples(self, pixels: Indices, latitudes: Floats, longitudes: Floats) -> Samples:
        last = len(self.latitudes) - 1
        north = np.clip(np.searchsorted(-self.latitudes, -latitudes, "right") - 1, 0, max(last - 1, 0))
        south = np.minimum(north + 1, last)
        height = np.where(south > north, self.latitudes[north] - self.latitudes[south], 1.0)
        between = np.clip((self.latitudes[north] - latitudes) / height, 0, 1)
        a, b, east_north = self._columns(north, longitudes)
        c, d, east_south = self._columns(south, longitudes)
        return Samples(pixels, (a, b, c, d), between.astype(np.float32), (east_north, east_south))

    def _columns(self, row: Indices, longitudes: Floats) -> tuple[Places, Places, Singles]:
        """Returns the two values of a row around each place, and the distance from the western one."""
        at = np.mod(longitudes - self.west, 360) / self.apart[row]
        counts = self.counts[row]
        if not self.goes_around:
            # West of the first column by less than half a cell.
            at = np.clip(np.where(at > counts, 0.0, at), 0, counts - 1)
        west: Any = np.minimum(at.astype(np.intp), counts - 1)
        east = (west + 1) % counts if self.goes_around else np.minimum(west + 1, counts - 1)
        start = self.starts[row]
        west_place, east_place = ((start + column).astype(np.uint32) for column in (west, east))
        return west_place, east_place, (at - west).astype(np.float32)
