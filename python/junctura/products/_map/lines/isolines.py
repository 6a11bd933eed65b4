"""Lines of equal value on a map, with their values on them.

Lines are drawn natively, by the values that the map shows. Labels are placed line by line, the straightest places
first.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from junctura._native import _isolines
from junctura.products._map.lettering import text, width
from junctura.products._map.lines.ink import HALO, Inks
from junctura.products._regrid.floats import Floats

Pixels: TypeAlias = npt.NDArray[np.uint8]
Singles: TypeAlias = npt.NDArray[np.float32]
Indices: TypeAlias = npt.NDArray[np.intp]
# How much of what is below them lines cover, their halos, and the halos of letters.
_STRENGTH, _VEIL, _VEIL_OF_LETTERS = 0.9, 0.4, 0.7
# Lines nearer than so many pixels fade.
_FADE_PX = 3.0
_SIZE = 12.5
# Half the height of a label, of the size of its letters.
_TALL = 0.62
# In units: distances between labels, of one line and of others, and how far from it a line may bend along its label.
_APART_SAME, _APART, _BEND = 260.0, 64.0, 2.2
_CANDIDATES = 300


@dataclass(frozen=True)
class Label:
    """A number on a line: its middle, and its angle in degrees, anticlockwise."""

    words: str
    x: float
    y: float
    angle: float
    size: float
    inks: Inks

    def pixels(self, high: int, wide: int) -> npt.NDArray[np.intp]:
        """Those of a map of this size that it covers, counted row by row."""
        half, tall = width(self.words, self.size) / 2 + self.size * 0.25, self.size * _TALL
        reach = int(half + tall) + 1
        rows = np.arange(max(int(self.y) - reach, 0), min(int(self.y) + reach, high))[:, None]
        columns = np.arange(max(int(self.x) - reach, 0), min(int(self.x) + reach, wide))
        sine, cosine = np.sin(np.radians(self.angle)), np.cos(np.radians(self.angle))
        y, x = rows - self.y, columns - self.x
        is_in = (np.abs(x * cosine - y * sine) < half) & (np.abs(x * sine + y * cosine) < tall)
        return np.asarray((rows * wide + columns)[is_in], np.intp)

    def onto(self, made: Image.Image) -> None:
        """Draws it with a halo."""
        turned = _letters(self.words, self.size).rotate(self.angle, Image.Resampling.BICUBIC, expand=True)
        place = (round(self.x - turned.width / 2), round(self.y - turned.height / 2))
        for channel, colour in enumerate(reversed(self.inks)):
            made.paste(colour, place, turned.getchannel(channel))


@functools.lru_cache(maxsize=256)
def _letters(words: str, size: float) -> Image.Image:
    """How much of each pixel the halo covers, and how much the letters, as the first channels of a picture."""
    reach = round(HALO * size / _SIZE)
    wide, high = round(width(words, size)) + 4 + 2 * reach, round(1.5 * size) + 2 * reach
    plate = Image.new("L", (wide, high))
    text(ImageDraw.Draw(plate), (2 + reach, high / 2 + 0.36 * size), words, size, 255)
    halo = plate.filter(ImageFilter.MaxFilter(2 * reach + 1)).point(lambda cover: round(_VEIL_OF_LETTERS * cover))
    # One picture of three channels is turned faster than two of one.
    return Image.merge("RGB", (halo, plate, plate))


def draw(pixels: Pixels, values: Singles, lines: Sequence[tuple[float, Inks]], power: int, unit: float) -> list[Label]:
    """Draws lines of these values in these inks, and returns labels where there is room.

    `values` are those of the pixels, in rows.
    """
    size, levels = _SIZE * unit, [level for level, _ in lines]
    words = [f"{float(f'{level / 10.0**power:.6g}') + 0.0:g}" for level in levels]
    longs = [width(word, size) + 6 * unit for word in words]
    drawn = [(level, int(long / 2 + 4 * unit), inks) for (level, inks), long in zip(lines, longs, strict=True)]
    stroke = (max(1.2, 1.5 * unit), _FADE_PX, _flat(levels), _STRENGTH, HALO * unit, _VEIL)
    crossings = _isolines(pixels, values, values.shape[1], drawn, stroke)
    found: list[Label] = []
    for (level, inks), word, long, crossing in zip(lines, words, longs, crossings, strict=True):
        places = _straight(values, level, np.frombuffer(crossing, np.intp), long, unit)
        found += _apart(places, word, size, inks, found, unit)
    return found


def _flat(levels: Sequence[float]) -> float:
    """A change from pixel to pixel that is none."""
    return 1e-5 * ((levels[-1] - levels[0]) / (len(levels) - 1) if len(levels) > 1 else abs(levels[0]) or 1.0)


def _straight(values: Singles, level: float, crossing: Indices, long: float, unit: float) -> Floats:
    """Places where a line is straight for as long as a label, the straightest first: columns, rows, angles."""
    high, wide = values.shape
    rows, columns = np.divmod(crossing[:: max(1, -(-len(crossing) // _CANDIDATES))], wide)
    down = (values[rows + 1, columns] - values[rows - 1, columns]) / 2
    right = (values[rows, columns + 1] - values[rows, columns - 1]) / 2
    most = np.hypot(down, right)
    # Along the line.
    across, along = -down / most, right / most
    shares = np.array([[-0.5], [-0.25], [0.25], [0.5]]) * long
    y = np.clip(np.round(rows + shares * along), 0, high - 1).astype(np.intp)
    x = np.clip(np.round(columns + shares * across), 0, wide - 1).astype(np.intp)
    with np.errstate(invalid="ignore"):
        bend = np.max(np.abs(values[y, x] - level) / most, axis=0)
    order = np.argsort(bend, kind="stable")
    # Where a value is missing, it is not less.
    kept = order[(bend[order] < _BEND * unit) & _has_room(values, rows, columns, across, along, long, unit)[order]]
    angles = (np.degrees(np.arctan2(-along, across)) + 90) % 180 - 90
    return np.stack([columns, rows, angles])[:, kept]


def _has_room(
    values: Singles, rows: Indices, columns: Indices, across: Singles, along: Singles, long: float, unit: float
) -> npt.NDArray[np.bool_]:
    """Whether a label at each place, along its line, is within the map and on values: none stands out from a globe."""
    high, wide = values.shape
    ends, sides = (np.array(one)[:, None] for one in ([-0.5, -0.5, 0.5, 0.5], [-1, 1, -1, 1]))
    tall = _TALL * _SIZE * unit
    y = np.round(rows + ends * long * along + sides * tall * across)
    x = np.round(columns + ends * long * across - sides * tall * along)
    is_within = (y >= 0) & (y < high) & (x >= 0) & (x < wide)
    at = np.clip(y, 0, high - 1).astype(np.intp), np.clip(x, 0, wide - 1).astype(np.intp)
    return np.asarray((is_within & np.isfinite(values[at])).all(axis=0))


def _apart(
    places: Floats, words: str, size: float, inks: Inks, others: Sequence[Label], unit: float
) -> Iterator[Label]:
    """Labels at the first places that are far enough from other labels, and from one another."""
    apart = [unit * (_APART_SAME if other.words == words else _APART) for other in others]
    left = places[:, _are_away(places, others, apart)]
    while left.size:
        x, y, angle = map(float, left[:, 0])
        label = Label(words, x, y, angle, size, inks)
        yield label
        left = left[:, _are_away(left, [label], [unit * _APART_SAME])]


def _are_away(places: Floats, labels: Sequence[Label], apart: Sequence[float]) -> npt.NDArray[np.bool_]:
    """Whether each place is as far from each label as stated for it."""
    x, y, least = (np.array(one)[:, None] for one in ([o.x for o in labels], [o.y for o in labels], apart))
    return np.asarray(((places[0] - x) ** 2 + (places[1] - y) ** 2 > least**2).all(axis=0))
