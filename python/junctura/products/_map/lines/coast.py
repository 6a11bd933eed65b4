"""Coastlines, and borders of countries.

`coast.npz` is made by `tools/coast.py`, which says how it is laid out, from the npm package `world-atlas` 2.0.2,
copyright 2013-2019 Michael Bostock, under the ISC licence:

    Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby
    granted, provided that the above copyright notice and this permission notice appear in all copies.

    THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
    IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
    INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN
    AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
    PERFORMANCE OF THIS SOFTWARE.

The lines themselves are Natural Earth's (naturalearthdata.com), which are in the public domain.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from junctura.products._regrid.floats import Floats

Line: TypeAlias = tuple[Floats, Floats]
_FILE = Path(__file__).with_name("coast.npz")


Scale: TypeAlias = Literal["110m", "50m"]


def coastlines(scale: Scale) -> tuple[Line, ...]:
    """Latitudes and longitudes of each line, in degrees; the finer scale has ten times as many points."""
    return _lines(scale)


def borders(scale: Scale) -> tuple[Line, ...]:
    """Likewise: borders between two countries, as in Natural Earth, which shows de facto control."""
    return _lines(f"borders_{scale}")


@functools.lru_cache(maxsize=4)
def _lines(kind: str) -> tuple[Line, ...]:
    with np.load(_FILE) as arrays:
        first, counts, steps, transform = (arrays[f"{name}_{kind}"] for name in ("first", "counts", "steps", "scale"))
    ends = np.cumsum(counts)
    lines = []
    for start, end, origin in zip(ends - counts, ends, first, strict=True):
        points = (origin + np.cumsum(steps[start:end], axis=0, dtype=np.int64)) * transform[:2] + transform[2:]
        lines.append((points[:, 1], points[:, 0]))
    return tuple(lines)
