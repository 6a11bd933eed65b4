"""Lines of equal value on a map, with their values on them.

A pixel lies on a line where its value is as near to that of the line as the field changes within half the line's
width. So lines follow the values that the map shows, in every projection, and none has to be traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from junctura.products._map.ink import BRIGHT, DARK, Colour, Ink, is_dark
from junctura.products._map.lettering import text, width

Singles: TypeAlias = npt.NDArray[np.float32]
_STRENGTH = 0.85
# Lines nearer than so many pixels fade.
_FADE_PX = 3.0
_SIZE = 12.5
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

    def pixels(self, high: int, wide: int) -> npt.NDArray[np.intp]:
        """Those of a map of this size that it covers, counted row by row."""
        half, tall = width(self.words, self.size) / 2 + self.size * 0.25, self.size * 0.62
        reach = int(half + tall) + 1
        rows = slice(max(int(self.y) - reach, 0), min(int(self.y) + reach, high))
        columns = slice(max(int(self.x) - reach, 0), min(int(self.x) + reach, wide))
        y, x = np.mgrid[rows, columns]
        turn = np.radians(self.angle)
        along = (x - self.x) * np.cos(turn) - (y - self.y) * np.sin(turn)
        across = (x - self.x) * np.sin(turn) + (y - self.y) * np.cos(turn)
        is_in = (np.abs(along) < half) & (np.abs(across) < tall)
        return np.asarray(y[is_in] * wide + x[is_in], np.intp)

    def onto(self, made: Image.Image) -> None:
        """Draws it, light on dark colors and dark on light ones."""
        under = made.getpixel((int(self.x), int(self.y)))
        colour: Colour = BRIGHT if is_dark(np.array([under])).all() else DARK
        wide, high = round(width(self.words, self.size)) + 4, round(1.5 * self.size)
        plate = Image.new("RGBA", (wide, high), (*colour, 0))
        text(ImageDraw.Draw(plate), (2, high / 2 + 0.36 * self.size), self.words, self.size, colour)
        turned = plate.rotate(self.angle, Image.Resampling.BICUBIC, expand=True)
        made.paste(turned, (round(self.x - turned.width / 2), round(self.y - turned.height / 2)), turned)


def drawn(values: Singles, levels: Sequence[float], power: int, unit: float) -> tuple[Ink, list[Label]]:
    """Lines of these values, and labels where there is room; `values` are those of the pixels, in rows."""
    steepness = _Steepness.of(values)
    cover = _cover(values, np.array(levels), steepness, max(1.2, 1.5 * unit)).ravel()
    touched = np.flatnonzero(cover > 0)
    return Ink(touched, _STRENGTH * cover[touched][:, None]), _labels(values, levels, power, steepness, unit)


@dataclass(frozen=True)
class _Steepness:
    """By how much values change from pixel to pixel: down, to the right, and in the steepest direction."""

    down: Singles
    right: Singles
    most: Singles

    @classmethod
    def of(cls, values: Singles) -> _Steepness:
        down = right = np.full_like(values, np.nan)
        if min(values.shape) > 1:
            down, right = (np.asarray(part, np.float32) for part in np.gradient(values))
        return cls(down, right, np.hypot(down, right))


def _cover(values: Singles, levels: npt.NDArray[np.float64], steepness: _Steepness, wide: float) -> Singles:
    between = ((levels[1:] + levels[:-1]) / 2).astype(np.float32)
    nearest = levels.astype(np.float32)[np.searchsorted(between, values)]
    apart = float(np.diff(levels).min()) if len(levels) > 1 else np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        found = wide / 2 + 0.5 - np.abs(values - nearest) / steepness.most
        found *= np.minimum(1, apart / (_FADE_PX * steepness.most))
    # Without a slope there is no line.
    found[~(steepness.most > _flat(levels))] = 0
    return np.asarray(np.clip(np.nan_to_num(found), 0, 1), np.float32)


def _flat(levels: npt.NDArray[np.float64]) -> float:
    return 1e-5 * float(np.ptp(levels) / (len(levels) - 1) if len(levels) > 1 else abs(levels[0]) or 1.0)


def _labels(values: Singles, levels: Sequence[float], power: int, steepness: _Steepness, unit: float) -> list[Label]:
    size = _SIZE * unit
    found: list[Label] = []
    for level in levels:
        words = f"{float(f'{level / 10.0**power:.6g}') + 0.0:g}"
        long = width(words, size) + 6 * unit
        for x, y, angle in _straight(values, level, steepness, long, unit):
            if all(_is_apart(found_one, words, x, y, unit) for found_one in found):
                found.append(Label(words, x, y, angle, size))
    return found


def _is_apart(other: Label, words: str, x: float, y: float, unit: float) -> bool:
    return bool(np.hypot(other.x - x, other.y - y) > unit * (_APART_SAME if other.words == words else _APART))


def _straight(
    values: Singles, level: float, steepness: _Steepness, long: float, unit: float
) -> list[tuple[float, float, float]]:
    """Places where a line is straight for as long as a label, the straightest first: column, row, angle."""
    high, wide = values.shape
    edge = int(long / 2 + 4 * unit)
    if high <= 2 * edge or wide <= 2 * edge:
        return []
    inner = values[edge:-edge, edge:-edge]
    steep = steepness.most[edge:-edge, edge:-edge]
    with np.errstate(invalid="ignore"):
        rows, columns = np.nonzero((np.abs(inner - np.float32(level)) < 0.5 * steep) & (steep > 0))
    every = max(1, len(rows) // _CANDIDATES)
    rows, columns = rows[::every] + edge, columns[::every] + edge
    down, right = steepness.down[rows, columns], steepness.right[rows, columns]
    most = steepness.most[rows, columns]
    # Along the line.
    across, along = -down / most, right / most
    bend = np.zeros(len(rows))
    for share in (-0.5, -0.25, 0.25, 0.5):
        y = np.clip(np.round(rows + share * long * along), 0, high - 1).astype(int)
        x = np.clip(np.round(columns + share * long * across), 0, wide - 1).astype(int)
        with np.errstate(invalid="ignore"):
            bend = np.maximum(bend, np.nan_to_num(np.abs(values[y, x] - level) / most, nan=np.inf))
    order = np.argsort(bend, kind="stable")
    kept = order[bend[order] < _BEND * unit]
    angles = np.degrees(np.arctan2(-along, across))
    angles = (angles + 90) % 180 - 90
    return [(float(columns[at]), float(rows[at]), float(angles[at])) for at in kept]
