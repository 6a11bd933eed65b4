"""A map of a field as a picture: title, map, colour bar, on a dark ground.

```text
  +--------------------------------------+
  | Temperature, 850 hPa                 |   what it is
  | 1 August 2026 12 UTC · +6 h          |   when
  |   +------------------------------+   |
  |   |             map              |   |
  |   +------------------------------+   |
  |                K  |====|====|====|   |   colours and what they mean
  +--------------------------------------+
```
Places where a value is missing are hatched in grey; where the grid does not reach, the map is dark.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from junctura.products._field import Field
from junctura.products._map import colours, ink
from junctura.products._map.lettering import Colour, fitted, text
from junctura.products._map.projection import View
from junctura.products._map.sampling import Singles, samples
from junctura.products._map.scale import Scale, scale
from junctura.products._map.seen import view_of
from junctura.products._map.words import legend, title, when
from junctura.products._outputs._meaning import meaning
from junctura.products._outputs._output import Output

Pixels: TypeAlias = npt.NDArray[np.uint8]
GROUND: Colour = (11, 14, 21)
_BRIGHT: Colour = (238, 234, 226)
_DIM: Colour = (150, 156, 168)
_OUTSIDE: Colour = (58, 65, 79)
_MISSING: tuple[Colour, Colour] = ((112, 116, 122), (88, 92, 99))
_HATCH_PERIOD, _HATCH_WIDTH = 8, 3
# Behind the colours of a table: what pixels without a value look like.
_AT_MISSING, _AT_HATCH, _AT_OUTSIDE, _AT_GROUND = range(colours.SIZE, colours.SIZE + 4)


def picture(field: Field, to: Output) -> Image.Image:
    """A map of a field.

    Raises
    ------
    InvalidArgument
        The field is spectral, the map would have too many pixels, or there are no such colours.

    """
    page = _Page.of(view_of(field.grid, to))
    is_what = meaning(field)
    table = to.colours or colours.table_for(is_what.param, is_what.statistic)
    is_about_zero = colours.is_about_zero(table, is_what.param, is_what.statistic)
    bar = scale(field.values, field.units, to.range, to.levels, is_about_zero)
    palette = _palette(table)
    whole = Image.new("RGB", (page.width, page.height), GROUND)
    whole.paste(_map(field, page.view, bar, palette, to.coast), page.corner)
    draw = ImageDraw.Draw(whole)
    _letter_head(draw, page, to.title or title(field, is_what), when(is_what))
    _draw_bar(whole, draw, page, bar, palette, legend(is_what, bar.units))
    if page.view.projection == "cylindrical":
        _letter_edges(draw, page)
    return whole


@dataclass(frozen=True)
class _Page:
    """Where things are; lengths grow with the width."""

    view: View
    width: int
    height: int
    corner: tuple[int, int]
    unit: float

    @classmethod
    def of(cls, seen: View) -> _Page:
        """The page for a view that is as wide as the page; its map is a bit less so."""
        unit = max(seen.width / 1000, 0.45)
        left, right = (58, 26) if seen.projection == "cylindrical" else (26, 26)
        top, bottom = 92, 96 if seen.projection == "cylindrical" else 80
        width = seen.width - round(left * unit) - round(right * unit)
        view = View(seen.projection, width, seen.centre, seen.spans)
        corner = (round(left * unit), round(top * unit))
        return cls(view, seen.width, corner[1] + view.height + round(bottom * unit), corner, unit)


@functools.lru_cache(maxsize=32)
def _palette(table: str) -> npt.NDArray[np.uint32]:
    """The colours of a table and of what has no value, each as the four bytes of a pixel."""
    extra = np.array([*_MISSING, _OUTSIDE, GROUND], np.uint8)
    rgb = np.concatenate([colours.table(table), extra])
    return np.ascontiguousarray(np.pad(rgb, ((0, 0), (0, 1)), constant_values=255)).view(np.uint32)[:, 0]


def _map(field: Field, view: View, bar: Scale, palette: npt.NDArray[np.uint32], with_coast: bool) -> Image.Image:
    index = _background(view).copy()
    lies = field.grid
    if lies.kind != "points":
        made_of = samples(lies.name, view)
        index[made_of.pixels] = _indices(made_of.of(field.values), bar, _hatch(view)[made_of.pixels])
    pixels = palette[index].view(np.uint8).reshape(-1, 4)
    if view.projection == "globe":
        _shade(pixels, view)
    ink.ink(view, with_coast).onto(pixels)
    made = Image.frombuffer("RGBX", (view.width, view.height), pixels, "raw", "RGBX", 0, 1).convert("RGB")
    if lies.kind == "points":
        _draw_places(made, field, view, bar, palette)
    return made


def _indices(values: Singles, bar: Scale, hatch: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]:
    """Which colour each value has."""
    unknown = np.isnan(values)
    if bar.levels:
        last = len(bar.levels) - 2
        band = np.clip(np.searchsorted(np.array(bar.levels, np.float32), values, "right") - 1, 0, last)
        at = band * np.float32((colours.SIZE - 1) / max(last, 1))
    else:
        at = values - np.float32(bar.low)
        at *= np.float32(colours.SIZE / (bar.high - bar.low))
        np.clip(at, 0, colours.SIZE - 1, out=at)
    with np.errstate(invalid="ignore"):
        index = at.astype(np.uint16)
    if unknown.any():
        index[unknown] = hatch[unknown]
    return index


@functools.lru_cache(maxsize=8)
def _background(view: View) -> npt.NDArray[np.uint16]:
    _, _, seen = view.places()
    return np.where(seen, _AT_OUTSIDE, _AT_GROUND).astype(np.uint16).ravel()


@functools.lru_cache(maxsize=8)
def _hatch(view: View) -> npt.NDArray[np.uint16]:
    x, y = np.arange(view.width), np.arange(view.height)[:, None]
    is_line = (x + y) % _HATCH_PERIOD < _HATCH_WIDTH
    return np.where(is_line, _AT_HATCH, _AT_MISSING).astype(np.uint16).ravel()


def _shade(pixels: Pixels, view: View) -> None:
    light, edge, ground = _light(view)
    pixels[:, :3] = (pixels[:, :3] * light) >> 8
    pixels[edge, :3] += ground


@functools.lru_cache(maxsize=4)
def _light(view: View) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.intp], Pixels]:
    """How bright a pixel of the globe is, of 256, less towards the limb, and the ground seen beside its edge."""
    x = (np.arange(view.width) + 0.5) * (2 / view.width) - 1
    radius = np.hypot(x, x[:, None]).ravel()
    depth = np.sqrt(np.maximum(0, 1 - radius**2))
    covered = np.clip((1 - radius) * view.width / 2, 0, 1)
    light = np.round((0.52 + 0.48 * depth**0.6) * covered * 256).astype(np.uint16)
    edge = np.flatnonzero(covered < 1)
    return light[:, None], edge, ((1 - covered[edge])[:, None] * np.array(GROUND)).astype(np.uint8)


def _draw_places(made: Image.Image, field: Field, view: View, bar: Scale, palette: npt.NDArray[np.uint32]) -> None:
    """A disc for each place, drawn large and made small for smooth edges."""
    x, y, seen = view.pixels(field.grid.latitudes, field.grid.longitudes)
    hatch = np.full(field.values.shape, _AT_MISSING, np.uint16)
    fills = palette[_indices(field.values.astype(np.float32), bar, hatch)].view(np.uint8).reshape(-1, 4)
    radius = max(4.0, view.width / 110)
    size = round(4 * (2 * radius + 2))
    for column, row, is_seen, fill in zip(x, y, seen, fills, strict=True):
        if is_seen:
            disc = Image.new("RGBA", (size, size))
            edge = round(4 * radius * 0.22)
            ImageDraw.Draw(disc).ellipse((4, 4, size - 5, size - 5), tuple(fill), (14, 18, 26, 255), edge)
            small = disc.reduce(4)
            made.paste(small, (round(column - small.width / 2), round(row - small.height / 2)), small)


def _letter_head(draw: ImageDraw.ImageDraw, page: _Page, head: str, below: str) -> None:
    left, room = round(26 * page.unit), page.width - round(52 * page.unit)
    text(draw, (left, 46 * page.unit), fitted(head, 27 * page.unit, room), 27 * page.unit, _BRIGHT)
    text(draw, (left, 71 * page.unit), fitted(below, 15 * page.unit, room), 15 * page.unit, _DIM)


def _draw_bar(
    whole: Image.Image, draw: ImageDraw.ImageDraw, page: _Page, bar: Scale, palette: npt.NDArray[np.uint32], words: str
) -> None:
    unit = page.unit
    length, thick = round(0.46 * page.width), max(6, round(13 * unit))
    left = page.width - round(26 * unit) - length
    top = page.height - round(52 * unit)
    values = np.linspace(bar.low, bar.high, length, dtype=np.float32)
    strip = palette[_indices(values, bar, np.full(length, _AT_MISSING, np.uint16))].view(np.uint8).reshape(1, length, 4)
    whole.paste(Image.fromarray(np.repeat(strip[..., :3], thick, axis=0)), (left, top))
    text(draw, (left - 14 * unit, top + thick - 1.5 * unit), words, 14 * unit, _DIM, "right")
    for tick, label in zip(bar.ticks, bar.labels, strict=True):
        x = left + (tick - bar.low) / (bar.high - bar.low) * (length - 1)
        draw.line((x, top + thick, x, top + thick + 4 * unit), _DIM, max(1, round(unit)))
        text(draw, (x, top + thick + 20 * unit), label, 13.5 * unit, _BRIGHT, "middle")


def _letter_edges(draw: ImageDraw.ImageDraw, page: _Page) -> None:
    """Degrees beside the graticule of a cylindrical map."""
    view, (left, top), size = page.view, page.corner, 12.5 * page.unit
    step = ink.graticule_step(view)
    half_high, half_wide = view.spans[0] / 2, view.spans[1] / 2
    for latitude in np.arange(-90, 90 + step, step):
        if abs(latitude - view.centre[0]) <= half_high + 1e-6:
            y = top + (0.5 - (latitude - view.centre[0]) / view.spans[0]) * view.height
            words = f"{abs(latitude):g}°{'N' if latitude > 0 else 'S' if latitude < 0 else ''}"
            text(draw, (left - 9 * page.unit, y + size * 0.36), words, size, _DIM, "right")
    first = np.ceil((view.centre[1] - half_wide - 1e-6) / step) * step
    for longitude in np.arange(first, view.centre[1] + half_wide + 1e-6, step):
        x = left + (0.5 + (longitude - view.centre[1]) / view.spans[1]) * view.width
        east = (longitude + 180) % 360 - 180
        side = "" if east in (0.0, -180.0) else "E" if east > 0 else "W"
        text(draw, (x, top + view.height + 18 * page.unit), f"{abs(east):g}°{side}", size, _DIM, "middle")
