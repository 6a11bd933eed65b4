"""Places on the sphere to pixels of a map, and back.

```text
  cylindrical   rows are parallels, columns meridians; true to scale along the middle latitude of the area
  robinson      A. H. Robinson's compromise for the whole globe (1963), by the table of its lengths and distances
  globe         the sphere from far away (orthographic)
```
Formulas: J. P. Snyder (1987), *Map projections: a working manual*, USGS Professional Paper 1395.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from junctura.products._outputs._output import Projection
from junctura.products._regrid.floats import Floats

Mask: TypeAlias = npt.NDArray[np.bool_]
# Length of the parallel and its distance from the equator, every five degrees from there to the pole.
_LENGTHS = (
    1.0, 0.9986, 0.9954, 0.99, 0.9822, 0.973, 0.96, 0.9427, 0.9216, 0.8962,
    0.8679, 0.835, 0.7986, 0.7597, 0.7186, 0.6732, 0.6213, 0.5722, 0.5322,
)  # fmt: skip
_DISTANCES = (
    0.0, 0.062, 0.124, 0.186, 0.248, 0.31, 0.372, 0.434, 0.4958, 0.5571,
    0.6176, 0.6769, 0.7346, 0.7903, 0.8435, 0.8936, 0.9394, 0.9761, 1.0,
)  # fmt: skip
_ROBINSON_ASPECT = 0.8487 * math.pi / 1.3523


@dataclass(frozen=True)
class View:
    """The visible part of the sphere, its projection, and the number of pixels.

    Attributes
    ----------
    width
        In pixels.
    centre
        Latitude and longitude of the center.
    spans
        Visible degrees of latitude and longitude, for `cylindrical`.

    """

    projection: Projection
    width: int
    centre: tuple[float, float]
    spans: tuple[float, float] = (180.0, 360.0)

    @property
    def height(self) -> int:
        """In pixels."""
        if self.projection == "globe":
            return self.width
        if self.projection == "robinson":
            return round(self.width / _ROBINSON_ASPECT)
        return max(1, round(self.width * self.spans[0] / (self.spans[1] * math.cos(math.radians(self.centre[0])))))

    @property
    def pixels_per_degree(self) -> float:
        """About the middle."""
        return self.width / (2 * math.degrees(1) if self.projection == "globe" else self.spans[1])

    def places(self) -> tuple[Floats, Floats, Mask]:
        """Latitude and longitude of the middle of each pixel, and whether it is on the map; in rows."""
        x = (np.arange(self.width) + 0.5) * (2 / self.width) - 1
        y = 1 - (np.arange(self.height) + 0.5) * (2 / self.height)
        across, up = (
            np.broadcast_to(x, (self.height, self.width)),
            np.broadcast_to(y[:, None], (self.height, self.width)),
        )
        back = {"cylindrical": self._from_plate, "robinson": self._from_robinson, "globe": self._from_globe}
        return back[self.projection](across, up)

    def pixels(self, latitudes: Floats, longitudes: Floats) -> tuple[Floats, Floats, Mask]:
        """Column and row, with fractions, and whether the place can be seen."""
        onto = {"cylindrical": self._onto_plate, "robinson": self._onto_robinson, "globe": self._onto_globe}
        across, up, seen = onto[self.projection](latitudes, longitudes)
        return (across + 1) * (self.width / 2), (1 - up) * (self.height / 2), seen

    def _east(self, longitudes: Floats) -> Floats:
        """Degrees east of the middle, -180 to 180; those of the right edge stay there."""
        east = np.mod(longitudes - self.centre[1] + 180, 360) - 180
        return np.where((east == -180) & (longitudes > self.centre[1]), 180.0, east)

    def _from_plate(self, x: Floats, y: Floats) -> tuple[Floats, Floats, Mask]:
        latitudes = self.centre[0] + y * (self.spans[0] / 2)
        return latitudes, self.centre[1] + x * (self.spans[1] / 2), np.ones(x.shape, np.bool_)

    def _onto_plate(self, latitudes: Floats, longitudes: Floats) -> tuple[Floats, Floats, Mask]:
        x = self._east(longitudes) / (self.spans[1] / 2)
        y = (latitudes - self.centre[0]) / (self.spans[0] / 2)
        return x, y, (np.abs(x) <= 1.05) & (np.abs(y) <= 1.05)

    def _from_robinson(self, x: Floats, y: Floats) -> tuple[Floats, Floats, Mask]:
        degrees, lengths, distances = _robinson()
        column = np.interp(np.abs(y[:, 0]), distances, degrees)
        east = x / np.interp(column, degrees, lengths)[:, None] * 180
        latitudes = np.broadcast_to((np.sign(y[:, 0]) * column)[:, None], x.shape)
        return latitudes, self.centre[1] + east, np.abs(east) <= 180

    def _onto_robinson(self, latitudes: Floats, longitudes: Floats) -> tuple[Floats, Floats, Mask]:
        degrees, lengths, distances = _robinson()
        x = np.interp(np.abs(latitudes), degrees, lengths) * self._east(longitudes) / 180
        y = np.sign(latitudes) * np.interp(np.abs(latitudes), degrees, distances)
        return x, y, np.ones(x.shape, np.bool_)

    def _from_globe(self, x: Floats, y: Floats) -> tuple[Floats, Floats, Mask]:
        radius2 = x * x + y * y
        seen = radius2 <= 1
        depth = np.sqrt(np.maximum(0, 1 - radius2))
        sine, cosine = math.sin(math.radians(self.centre[0])), math.cos(math.radians(self.centre[0]))
        latitudes = np.degrees(np.arcsin(np.clip(depth * sine + y * cosine, -1, 1)))
        longitudes = self.centre[1] + np.degrees(np.arctan2(x, depth * cosine - y * sine))
        return latitudes, longitudes, seen

    def _onto_globe(self, latitudes: Floats, longitudes: Floats) -> tuple[Floats, Floats, Mask]:
        north, east = np.radians(latitudes), np.radians(longitudes - self.centre[1])
        sine, cosine = math.sin(math.radians(self.centre[0])), math.cos(math.radians(self.centre[0]))
        x = np.cos(north) * np.sin(east)
        y = cosine * np.sin(north) - sine * np.cos(north) * np.cos(east)
        return x, y, sine * np.sin(north) + cosine * np.cos(north) * np.cos(east) >= 0


@functools.lru_cache(maxsize=1)
def _robinson() -> tuple[Floats, Floats, Floats]:
    """Degrees, lengths and distances, so close that lines between them look round, by a cubic spline."""
    degrees = np.linspace(0, 90, 1441)
    return degrees, _cubic(degrees / 5, _LENGTHS, 1), _cubic(degrees / 5, _DISTANCES, -1)


def _cubic(at: Floats, values: tuple[float, ...], parity: int) -> Floats:
    """Between the values at 0, 1, 2...: Catmull and Rom's spline; before 0 they are even or odd."""
    known = np.array([parity * values[1], *values, 2 * values[-1] - values[-2]])
    whole = np.minimum(at.astype(np.int64), len(values) - 2)
    t = at - whole
    a, b, c, d = (known[whole + shift] for shift in range(4))
    return np.asarray(b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a))))
