"""The page of a map: where things are, and the words and the color bar around the map.

```text
  +--------------------------------------+
  | Temperature, 850 hPa                 |   what it is
  | 1 August 2026 12 UTC · +6 h          |   when
  |   +------------------------------+   |
  |   |             map              |   |
  |   +------------------------------+   |
  |               °C  <|====|====|====|> |   colors and what they mean; arrows for values beyond the ends
  +--------------------------------------+
```
Lengths are multiples of a unit that grows with the width, and never so small that letters could not be read. A page
that is narrow then has two lines for each line of the title, and a color bar along all of its width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from junctura.products._map.lettering import fitted, lines_of, text, width
from junctura.products._map.lines import ink
from junctura.products._map.projection import View
from junctura.products._map.styling.scale import Scale
from junctura.products._map.styling.themes import Colours

# Of the smallest letters: in units, and in pixels at least.
_SMALLEST, _LEGIBLE_PX = 12.5, 11.0
# In units: pages below it have other lengths.
_NARROW = 640


@dataclass(frozen=True)
class Lengths:
    """Of a page, in units."""

    left: float
    side: float
    top: float
    bottom: float
    heads: tuple[float, ...]
    below: tuple[float, ...]
    head_size: float
    below_size: float


_WIDE = Lengths(58, 26, 92, 80, (46,), (71,), 27, 15)
_SMALL = Lengths(50, 16, 102, 82, (28, 49), (70, 87), 19, 13.5)
# The color bar alone, with its words above it.
_BAR = 76
# For degrees below a cylindrical map.
_DEGREES = 16


@dataclass(frozen=True)
class Page:
    """Where the map is on the page, and how large things are."""

    view: View
    width: int
    height: int
    corner: tuple[int, int]
    unit: float
    lengths: Lengths

    @classmethod
    def of(cls, seen: View, letters: int | None = None) -> Page:
        """The page for a view that is as wide as the page; its map is a bit less so."""
        unit = letters / _SMALLEST if letters else max(seen.width / 1000, _LEGIBLE_PX / _SMALLEST)
        lengths = _SMALL if seen.width < _NARROW * unit else _WIDE
        is_cylindrical = seen.projection == "cylindrical"
        left = round((lengths.left if is_cylindrical else lengths.side) * unit)
        width = max(seen.width - left - round(lengths.side * unit), 16)
        view = replace(seen, width=width)
        corner = (left, round(lengths.top * unit))
        below = lengths.bottom + (_DEGREES if is_cylindrical else 0)
        return cls(view, seen.width, corner[1] + view.height + round(below * unit), corner, unit, lengths)

    @classmethod
    def of_map(cls, seen: View, letters: int | None = None) -> Page:
        """The page that is the map alone."""
        return replace(cls.of(seen, letters), view=seen, width=seen.width, height=seen.height, corner=(0, 0))

    @classmethod
    def of_bar(cls, seen: View, letters: int | None = None) -> Page:
        """The page that has a color bar only."""
        page = cls.of(seen, letters)
        return replace(page, height=round(_BAR * page.unit), lengths=_SMALL)

    @property
    def is_narrow(self) -> bool:
        return self.lengths is _SMALL


def letter_head(draw: ImageDraw.ImageDraw, page: Page, theme: Colours, head: str, when: Sequence[str]) -> None:
    """The title, and times and members below it."""
    lengths, unit = page.lengths, page.unit
    room = page.width - 2 * lengths.side * unit
    size, lines = lengths.head_size * unit, len(lengths.heads)
    least = max(15.0 * unit, _LEGIBLE_PX)
    while size > least and (len(found := lines_of(head.split(" "), " ", size, room)) > lines):
        size = max(size - unit, least)
    found = lines_of(head.split(" "), " ", size, room)
    bases = lengths.heads
    if len(found) < lines:
        bases = (sum(lengths.heads) / 2 + 4,)
    if len(found) > lines == 1:
        bases = (lengths.heads[0] - 17, lengths.heads[0] + 3)
    _letter(draw, page, bases, found, size, theme.bright)
    size = lengths.below_size * unit
    _letter(draw, page, lengths.below, lines_of(when, "  ·  ", size, room), size, theme.dim)


def _letter(
    draw: ImageDraw.ImageDraw, page: Page, bases: Sequence[float], lines: Sequence[str], size: float, colour: ink.Colour
) -> None:
    """Lines of text on their baselines; what remains is cut off in the last."""
    left, room = page.lengths.side * page.unit, page.width - 2 * page.lengths.side * page.unit
    shown = [*lines[: len(bases) - 1], " ".join(lines[len(bases) - 1 :])]
    for base, line in zip(bases, shown, strict=False):
        text(draw, (left, base * page.unit), fitted(line, size, room), size, colour)


def draw_bar(
    whole: Image.Image, page: Page, theme: Colours, bar: Scale, colours: npt.NDArray[np.uint8], words: str
) -> None:
    """The color bar with its numbers, units and arrows; `colours` are those of `samples_of(bar)`."""
    draw, unit = ImageDraw.Draw(whole), page.unit
    thick = max(6, round(13 * unit))
    side = round(page.lengths.side * unit)
    outer = page.width - 2 * side if page.is_narrow else round(0.5 * page.width)
    length = outer - 2 * thick
    left = page.width - side - outer + thick
    top = page.height - round(48 * unit)
    if page.is_narrow:
        text(draw, (side, top - 8 * unit), fitted(words, 13.5 * unit, outer), 13.5 * unit, theme.dim)
    else:
        room = left - thick - 14 * unit - side
        words = fitted(words, 14 * unit, room)
        text(draw, (left - thick - 10 * unit, top + thick - 1.5 * unit), words, 14 * unit, theme.dim, "right")
    strip = colours[1:-1][
        np.minimum((np.arange(length) + 0.5) / length * (len(colours) - 2), len(colours) - 3).astype(int)
    ]
    whole.paste(Image.fromarray(np.repeat(strip[None], thick, axis=0)), (left, top))
    if bar.levels:
        for value in bar.levels[1:-1]:
            x = left + round(bar.along(value) * length)
            draw.line((x, top, x, top + thick - 1), theme.ground, max(1, round(unit)))
    has_low, has_high = bar.arrows
    for has, tip, colour in ((has_low, -1, colours[0]), (has_high, 1, colours[-1])):
        if has:
            edge = left - 1 - round(unit) if tip < 0 else left + length + round(unit)
            corners = [(edge, top), (edge, top + thick - 1), (edge + tip * 0.8 * thick, top + (thick - 1) / 2)]
            draw.polygon(corners, tuple(colour.tolist()), theme.dim)
    draw.rectangle((left - 1, top - 1, left + length, top + thick), outline=theme.rule)
    _letter_ticks(draw, page, theme, bar, (left, length, top + thick))


def samples_of(bar: Scale, count: int = 1024) -> npt.NDArray[np.float32]:
    """Values whose colors the bar shows: one below its low end, those along it, one above its high end."""
    if bar.levels:
        edges = np.array(bar.levels)
        along = (edges[1:] + edges[:-1]) / 2
    elif bar.is_log:
        along = np.geomspace(bar.low, bar.high, count)
    else:
        along = np.linspace(bar.low, bar.high, count)
    reach = bar.high - bar.low
    return np.concatenate([[bar.low - reach], along, [bar.high + reach]]).astype(np.float32)


def _letter_ticks(
    draw: ImageDraw.ImageDraw, page: Page, theme: Colours, bar: Scale, place: tuple[int, int, int]
) -> None:
    """Numbers below the bar, as many as there is room for."""
    left, length, top = place
    unit, size = page.unit, 13.5 * page.unit
    at = [left + bar.along(tick) * length for tick in bar.ticks]
    wide = [width(label, size) for label in bar.labels]
    every = _every(at, wide, 7 * unit)
    for x, label, long in list(zip(at, bar.labels, wide, strict=True))[::every]:
        draw.line((x, top, x, top + 4 * unit), theme.dim, max(1, round(unit)))
        middle = min(max(x, long / 2 + 2), page.width - long / 2 - 2)
        text(draw, (middle, top + 20 * unit), label, size, theme.bright, "middle")


def _every(at: Sequence[float], wide: Sequence[float], between: float) -> int:
    """Of every how many numbers there is room for one, if possible so that the last is among them."""
    fits = [n for n in range(1, len(at) + 2) if _have_room(at[::n], wide[::n], between)]
    return next((n for n in fits if n < 2 * fits[0] and (len(at) - 1) % n == 0), fits[0])


def _have_room(at: Sequence[float], wide: Sequence[float], between: float) -> bool:
    ends = [x + long / 2 + between for x, long in zip(at, wide, strict=True)]
    begins = [x - long / 2 for x, long in zip(at, wide, strict=True)]
    return all(end <= begin for end, begin in zip(ends, begins[1:], strict=False))


def letter_edges(draw: ImageDraw.ImageDraw, page: Page, theme: Colours) -> None:
    """Degrees beside the graticule of a cylindrical map."""
    view, (left, top), size = page.view, page.corner, _SMALLEST * page.unit
    step = ink.graticule_step(view)
    half_high, half_wide = view.spans[0] / 2, view.spans[1] / 2
    free = -np.inf
    for latitude in np.arange(90, -90 - step / 2, -step):
        y = top + (0.5 - (latitude - view.centre[0]) / view.spans[0]) * view.height
        if abs(latitude - view.centre[0]) <= half_high + 1e-6 and y - size > free:
            words = f"{_degrees(abs(latitude))}°{'N' if latitude > 1e-9 else 'S' if latitude < -1e-9 else ''}"
            text(draw, (left - 7 * page.unit, y + size * 0.36), words, size, theme.dim, "right")
            free = y
    first = np.ceil((view.centre[1] - half_wide - 1e-6) / step) * step
    longitudes = np.arange(first, view.centre[1] + half_wide + 1e-6, step)
    at = [float(left + (0.5 + (one - view.centre[1]) / view.spans[1]) * view.width) for one in longitudes]
    labels = [_longitude(float(one)) for one in longitudes]
    every = _every(at, [width(label, size) for label in labels], 4 * page.unit)
    for x, label in list(zip(at, labels, strict=True))[::every]:
        if x + width(label, size) / 2 <= page.width:
            text(draw, (x, top + view.height + 18 * page.unit), label, size, theme.dim, "middle")


def _longitude(degrees: float) -> str:
    east = round((degrees + 180) % 360 - 180, 6)
    return f"{_degrees(abs(east))}°{'' if east in (0.0, -180.0) else 'E' if east > 0 else 'W'}"


def _degrees(value: float) -> str:
    return f"{round(value, 6):g}"
