"""Tables of colours whose steps look alike to the eye.

Each is a path through a few colours in OKLab (Ottosson 2020, *A perceptual color space for image processing*), a space
in which equal distances look equally far apart. The path is walked at constant speed, so that a difference of values
looks the same wherever it is. The two arms of a diverging table have the same length and lightness.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from junctura.errors import InvalidArgument
from junctura.products._regrid.floats import Floats

Bytes: TypeAlias = npt.NDArray[np.uint8]
SIZE = 1024

# Corners of the paths, as sRGB.
_PATHS = {
    "balance": "0b2a5b 1f5f9f 5b9fcb aacfe3 f1eee9 ecc3a4 d98a5c b04a2c 611413",
    "thermal": "2b1055 3a3aa0 2f78c4 57b2d6 a9d8dc f2efdd f3cf8b ec9a55 d65a3c a3243f 5c0b35",
    "depth": "10173a 1d3b6e 1f6a8c 3199a0 72c3a5 c3e3ad fbf7d0",
    "wind": "f3f1ec cfe0de 8fc6c4 4da3b0 3a76a4 4d4591 5b1c6c 3a0a38",
    "chance": "f3f1ec dcd9ea b9b3dd 9787c9 7d57ae 6a2a8b 480d5c",
    "rain": "f3f1ec c9dfe6 8fc0dc 4f97cf 3567b8 3a3a94 3b1766",
    "cloud": "2a5d94 5583ad 86a5c1 b4c5d3 d8dfe4 f5f4f1",
}
NAMES = {
    "balance": "From blue over white to red; white is 0, or `middle`",
    "thermal": "From violet and blue over white to red: temperatures; white is the freezing point",
    "depth": "From dark blue over green to yellow",
    "wind": "From white over green and blue to violet",
    "chance": "From white to violet: probabilities",
    "rain": "From white to dark blue",
    "cloud": "From blue to white: the cover of clouds",
}
_DIVERGING = {"balance", "thermal"}
# For parameters of which nothing is known.
NEUTRAL = "depth"


def is_diverging(table: str) -> bool:
    """Whether the table has a middle, on either side of which colors differ."""
    return table in _DIVERGING


@functools.lru_cache
def table(name: str) -> Bytes:
    """`SIZE` colours, red, green and blue each, from the lowest value to the highest.

    Raises
    ------
    InvalidArgument
        There is no such table.

    """
    if name not in _PATHS:
        raise InvalidArgument(f"colours {name}", f"not one of {', '.join(NAMES)}")
    corners = oklab(np.array([list(bytes.fromhex(word)) for word in _PATHS[name].split()]) / 255)
    if name in _DIVERGING:
        middle = len(corners) // 2
        halves = [_walked(corners[: middle + 1], SIZE // 2), _walked(corners[middle:], SIZE // 2)]
        path = np.concatenate(halves)
    else:
        path = _walked(corners, SIZE)
    made = np.round(srgb(path) * 255).astype(np.uint8)
    made.flags.writeable = False
    return made


def _walked(corners: Floats, count: int) -> Floats:
    """Points of a smooth path through the corners, equally far apart along it."""
    fine = _smooth(corners)
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(fine, axis=0), axis=1))])
    at = np.linspace(0, length[-1], count)
    return np.stack([np.interp(at, length, fine[:, axis]) for axis in range(3)], axis=1)


def _smooth(corners: Floats, pieces: int = 64) -> Floats:
    """Catmull and Rom's spline through the corners."""
    ends = np.concatenate([[2 * corners[0] - corners[1]], corners, [2 * corners[-1] - corners[-2]]])
    t = np.linspace(0, 1, pieces, endpoint=False)[:, None]
    parts = []
    for a, b, c, d in zip(ends[:-3], ends[1:-2], ends[2:-1], ends[3:], strict=True):
        parts.append(b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a))))
    return np.concatenate([*parts, corners[-1:]])


# Ottosson's matrices: linear sRGB to the responses of cones, and their cube roots to OKLab.
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(colours: Floats) -> Floats:
    """sRGB colours, 0 to 1, as lightness, green to red and blue to yellow."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.cbrt(linear @ _CONES.T) @ _LAB.T)


def srgb(lab: Floats) -> Floats:
    """The way back from `oklab`; what a screen cannot show is cut off."""
    cones = np.linalg.solve(_LAB, lab.T) ** 3
    linear = np.clip(np.linalg.solve(_CONES, cones).T, 0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
