"""A contact sheet: many maps beside one another on one dark ground."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw

from junctura.errors import InvalidArgument
from junctura.products._map.lettering import fitted, text
from junctura.products._map.styling.themes import THEMES

_THEME = THEMES["dark"]
# Of the width.
_TITLE_SIZE = 0.024


def sheet(pictures: Sequence[Image.Image], columns: int, title: str = "") -> Image.Image:
    """The pictures in rows of so many, in their order, each in the middle of its cell: a row is as high as its highest.

    Raises
    ------
    InvalidArgument
        There are no pictures, or no columns.

    Examples
    --------
    >>> import junctura.products
    >>> from PIL import Image
    >>> maps = [Image.new("RGB", (400, 300)) for _ in range(5)]
    >>> junctura.products.sheet(maps, columns=3, title="temperature at 2 m").size
    (1264, 717)

    """
    if not pictures or columns < 1:
        raise InvalidArgument("sheet", f"{len(pictures)} pictures in {columns} columns")
    columns = min(columns, len(pictures))
    rows = [pictures[first : first + columns] for first in range(0, len(pictures), columns)]
    wide = max(one.width for one in pictures)
    heights = [max(one.height for one in row) for row in rows]
    margin, gap = round(0.06 * wide), round(0.02 * wide)
    width = 2 * margin + columns * (wide + gap) - gap
    size = _TITLE_SIZE * width if title else 0.0
    head = margin + round(2 * size)
    whole = Image.new("RGB", (width, head + sum(high + gap for high in heights) - gap + margin), _THEME.ground)
    if title:
        _letter(whole, title, size, margin)
    top = head
    for row, high in zip(rows, heights, strict=True):
        for column, one in enumerate(row):
            left = margin + column * (wide + gap) + (wide - one.width) // 2
            whole.paste(one, (left, top + (high - one.height) // 2))
        top += high + gap
    return whole


def _letter(whole: Image.Image, title: str, size: float, margin: int) -> None:
    draw = ImageDraw.Draw(whole)
    base = margin + 0.9 * size
    text(draw, (margin, base), fitted(title, size, whole.width - 2 * margin), size, _THEME.bright)
    draw.line(
        (margin, base + 0.6 * size, whole.width - margin, base + 0.6 * size), _THEME.rule, max(1, round(size / 24))
    )
