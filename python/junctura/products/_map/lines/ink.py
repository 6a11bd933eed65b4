"""Lines on a map: drawn at a large scale, smoothed by downsampling, and cached as the pixels that they touch.

Drawing sixty thousand points takes longer than the rest of a map, and is the same for all maps of one view. A line has
one ink, dark or light, above a halo of the other one: a line that changed its ink with the color below it would look
jagged at color boundaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import PIL
from PIL import Image, ImageDraw

from junctura._native import _blend
from junctura.products._map.lines.coast import Line, Scale, borders, coastlines
from junctura.products._map.projection import View
from junctura.products._workers.cache import Array, Bounded, arrays_of, digest_of

Bytes: TypeAlias = npt.NDArray[np.uint8]
Colour: TypeAlias = tuple[int, int, int]
# Of a line, and of its halo.
Inks: TypeAlias = tuple[Colour, Colour]
# The parameters of a drawing besides its view.
_HERE = Path(__file__).resolve().parent
_DRAWN_BY = (Path(__file__), _HERE / "coast.py", _HERE / "coast.npz", _HERE.parent / "projection.py")
_TIMES = 3
_KEPT_BYTES_MAX = 64 << 20
DARK: Colour = (14, 18, 26)
BRIGHT: Colour = (246, 245, 241)
_COAST, _FAINT, _GRATICULE = 0.92, 0.5, 0.2
# How much of what is below it the halo of a line covers, as a part of what the line does, and how far it reaches beyond
# the line, in units.
_VEIL, HALO = 0.55, 1.0
# From so many pixels a degree on, the coarse coastlines look like it.
_FINE_FROM = 1.6
_MIDDLE = 0.18
_STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)


@dataclass(frozen=True)
class Ink:
    """Pixels, counted row by row, and how much of each a line covers, and its halo beneath it."""

    pixels: npt.NDArray[np.intp]
    line: npt.NDArray[np.float32]
    halo: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.pixels.nbytes + self.line.nbytes + self.halo.nbytes

    def onto(self, colours: Bytes, inks: Inks) -> None:
        """Puts it onto colours, a row of bytes for each pixel; the first three are red, green and blue."""
        _blend(colours, self.pixels, (self.line, self.halo), inks)


def inks_on(below: npt.NDArray[np.number[Any]]) -> Inks:
    """Those with the better contrast on colours, red, green and blue each, in the mean.

    Contrast is that of WCAG 2.2, by the relative luminance: black and white have the same at 0.18.
    """
    linear = (below / 255.0) ** 2.2
    luminance = float(np.mean(linear @ np.array([0.2126, 0.7152, 0.0722])))
    return (DARK, BRIGHT) if luminance > _MIDDLE else (BRIGHT, DARK)


@dataclass(frozen=True)
class _Layer:
    """Lines of one kind: their width in units, their opacity, and the opacity of their halo relative to it."""

    lines: Sequence[Line]
    width: float
    strength: float
    veil: float = 0.0


_kept: Bounded[Ink] = Bounded(_KEPT_BYTES_MAX)


def ink(view: View, unit: float, *, with_coast: bool, with_borders: bool, is_faint: bool) -> Ink:
    """Graticule, coastlines and borders, fainter where other lines matter more; the unit is that of the page."""
    asked = (view, unit, with_coast, with_borders, is_faint)

    def draw() -> Ink:
        return _drawn(view, _lines(view, with_coast, with_borders, _FAINT if is_faint else _COAST), unit)

    return _kept.get(asked, lambda: _on_disk(asked, draw), lambda made: made.nbytes)


def rim(view: View, unit: float) -> Ink:
    """The edge of a map that is no rectangle."""

    def draw() -> Ink:
        return _drawn(view, [_Layer([*_rim(view)], 1.6, 1.0)], unit)

    return _kept.get((view, unit), lambda: _on_disk((view, unit), draw), lambda made: made.nbytes)


def _on_disk(asked: object, draw: Callable[[], Ink]) -> Ink:
    """Returns what an earlier process has drawn with the same code, coastlines and Pillow, else draws it."""
    question = (asked, digest_of(*_DRAWN_BY), PIL.__version__)

    def make() -> tuple[Array, ...]:
        drawn = draw()
        return drawn.pixels, drawn.line, drawn.halo

    return Ink(*arrays_of("maps", question, make))


def _lines(view: View, with_coast: bool, with_borders: bool, strength: float) -> list[_Layer]:
    layers = [_Layer([*_graticule(view)], 0.8, _GRATICULE)]
    scale: Scale = "50m" if view.pixels_per_degree >= _FINE_FROM else "110m"
    if with_borders:
        layers.append(_Layer(borders(scale), 1.0, 0.6 * strength, _VEIL))
    if with_coast:
        layers.append(_Layer(coastlines(scale), 1.25, strength, _VEIL))
    return layers


def _drawn(view: View, layers: Iterable[_Layer], unit: float) -> Ink:
    thin = max(0.7, unit / 1.4)
    clear, without_halo = (np.ones(view.height * view.width, np.float32) for _ in range(2))
    for layer in layers:
        cover = _cover(view, layer.lines, thin * layer.width)
        clear *= 1 - cover.ravel() * np.float32(layer.strength / 255)
        if layer.veil:
            around = _around(cover, max(1, round(HALO * unit)))
            without_halo *= 1 - around.ravel() * np.float32(layer.veil * layer.strength / 255)
    touched = np.flatnonzero((clear < 1) | (without_halo < 1))
    return Ink(touched, 1 - clear[touched], 1 - without_halo[touched])


def _around(cover: Bytes, reach: int) -> Bytes:
    """The greatest value within so many pixels of each, along rows and columns."""
    made = cover
    for axis in (0, 1):
        along = np.moveaxis(made.copy(), axis, 0)
        rows = np.moveaxis(made, axis, 0)
        for away in range(1, min(reach, len(rows) - 1) + 1):
            np.maximum(along[away:], rows[:-away], out=along[away:])
            np.maximum(along[:-away], rows[away:], out=along[:-away])
        made = np.moveaxis(along, 0, axis)
    return made


def graticule_step(view: View) -> float:
    """Degrees between the lines of the graticule."""
    seen = (180.0, 180.0) if view.projection != "cylindrical" else view.spans
    return next((step for step in _STEPS if min(seen) / step <= 7 and max(seen) / step <= 15), _STEPS[-1])


def _cover(view: View, lines: Sequence[Line], width: float) -> Bytes:
    large = Image.new("L", (view.width * _TIMES, view.height * _TIMES))
    draw = ImageDraw.Draw(large)
    for piece in _pieces(view, lines):
        draw.line(piece, fill=255, width=max(1, round(width * _TIMES)))
    return np.asarray(large.reduce(_TIMES))


def _pieces(view: View, lines: Sequence[Line]) -> Iterator[list[float]]:
    """The lines in pixels of the large picture, x and y by turns.

    They are cut where they leave the map, or jump to its other side. All are projected together: each by itself would
    take longer than drawing it.
    """
    if not lines:
        return
    latitudes, longitudes = (np.concatenate(parts) for parts in zip(*lines, strict=True))
    x, y, seen = view.pixels(latitudes, longitudes)
    breaks = ~seen[1:] | ~seen[:-1] | (np.abs(np.diff(x)) > view.width / 2)
    breaks[np.cumsum([len(line) for line, _ in lines])[:-1] - 1] = True
    ends = [*(np.flatnonzero(breaks) + 1).tolist(), len(x)]
    points = (np.stack([x, y], axis=1) * _TIMES).ravel().tolist()
    for start, end in zip([0, *ends], ends, strict=False):
        if end - start > 1:
            yield points[2 * start : 2 * end]


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
