"""Lines on a map: drawn large, made smooth by making them small, and kept as the pixels that they touch.

Drawing sixty thousand points takes longer than all the rest of a map, and is the same for all maps of one view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from junctura.products._cache import Bounded
from junctura.products._floats import Floats
from junctura.products._map.coast import Line, coastlines
from junctura.products._map.projection import View

Bytes: TypeAlias = npt.NDArray[np.uint8]
Colour: TypeAlias = tuple[int, int, int]
_TIMES = 3
_KEPT_BYTES_MAX = 64 << 20
_COAST: Colour = (14, 18, 26)
_RIM: Colour = (120, 128, 142)
# From so many pixels a degree on, the coarse coastlines look like it.
_FINE_FROM = 1.6
_STEPS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0)


@dataclass(frozen=True)
class Ink:
    """Pixels, counted row by row, how much of them ink covers, and its part of their colour."""

    pixels: npt.NDArray[np.intp]
    kept: npt.NDArray[np.float32]
    added: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.pixels.nbytes + self.kept.nbytes + self.added.nbytes

    def onto(self, colours: Bytes) -> None:
        """Puts it onto colours, a row of bytes for each pixel; the first three are red, green and blue."""
        under = colours[self.pixels]
        mixed = under[:, :3] * self.kept + self.added
        under[:, :3] = mixed
        colours[self.pixels] = under


_kept: Bounded[Ink] = Bounded(_KEPT_BYTES_MAX)


def ink(view: View, with_coast: bool) -> Ink:
    """Graticule, coastlines and the rim of the map."""
    return _kept.get((view, with_coast), lambda: _drawn(view, with_coast), lambda made: made.nbytes)


def _drawn(view: View, with_coast: bool) -> Ink:
    thin = max(0.7, view.width / 1400)
    layers = [(_cover(view, _graticule(view), thin * 0.8), 0.20, _COAST)]
    if with_coast:
        fine = coastlines("50m" if view.pixels_per_degree >= _FINE_FROM else "110m")
        layers.append((_cover(view, fine, thin * 1.25), 0.92, _COAST))
    layers.append((_cover(view, _rim(view), thin * 1.6), 1.0, _RIM))
    kept = np.ones((view.height * view.width, 1), np.float32)
    added = np.zeros((view.height * view.width, 3), np.float32)
    for cover, strength, colour in layers:
        share = (cover.ravel()[:, None] * np.float32(strength / 255)).astype(np.float32)
        kept *= 1 - share
        added = added * (1 - share) + share * np.array(colour, np.float32)
    touched = np.flatnonzero(kept[:, 0] < 1)
    return Ink(touched, kept[touched], added[touched])


def graticule_step(view: View) -> float:
    """Degrees between the lines of the graticule."""
    seen = 180.0 if view.projection != "cylindrical" else min(view.spans)
    return next((step for step in _STEPS if seen / step <= 7), _STEPS[-1])


def _cover(view: View, lines: Iterable[Line], width: float) -> Bytes:
    large = Image.new("L", (view.width * _TIMES, view.height * _TIMES))
    draw = ImageDraw.Draw(large)
    for x, y in _pieces(view, lines):
        points = np.stack([x, y], axis=1) * _TIMES
        draw.line([*map(tuple, points.tolist())], fill=255, width=max(1, round(width * _TIMES)))
    return np.asarray(large.reduce(_TIMES))


def _pieces(view: View, lines: Iterable[Line]) -> Iterator[tuple[Floats, Floats]]:
    """The lines in pixels, cut where they leave the map or jump to its other side."""
    for latitudes, longitudes in lines:
        x, y, seen = view.pixels(latitudes, longitudes)
        breaks = ~seen[1:] | ~seen[:-1] | (np.abs(np.diff(x)) > view.width / 2)
        for piece in np.split(np.arange(len(x)), np.flatnonzero(breaks) + 1):
            if len(piece) > 1:
                yield x[piece], y[piece]


def _graticule(view: View) -> Iterator[Line]:
    step = graticule_step(view)
    along = np.linspace(-180, 180, 721) + view.centre[1]
    for latitude in np.arange(-90 + step, 90, step):
        yield np.full(along.shape, latitude), along
    up = np.linspace(-90, 90, 361)
    for longitude in np.arange(-180, 180, step):
        # Towards the poles of a globe they would run into one another.
        reach = np.abs(up) <= (90 if longitude % 90 == 0 or view.projection != "globe" else 90 - step / 2)
        yield up[reach], np.full(int(reach.sum()), longitude)


def _rim(view: View) -> Iterator[Line]:
    if view.projection == "robinson":
        up = np.linspace(-90, 90, 361)
        # So near to the edges that they are not taken for the other one.
        for side in (-179.9999, 179.9999):
            yield up, np.full(up.shape, view.centre[1] + side)
        along = np.linspace(-179.9999, 179.9999, 721) + view.centre[1]
        for pole in (-90.0, 90.0):
            yield np.full(along.shape, pole), along
