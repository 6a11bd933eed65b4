"""The poster of the demo: one member over time, all members, and what they say together.

```text
  title, caption
  member 1     at four hours         large, one color bar
  all members  at the last hour      small, the same colors
  a row for each kind of map, at three hours
  credits
```
It is 2,400 pixels wide, and its smallest letters have 22: they can be read at half the size.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

WIDTH, MARGIN, GAP = 2400, 80, 40
GROUND, BRIGHT, DIM, RULE = (11, 14, 21), (238, 234, 226), (164, 170, 181), (46, 53, 66)
# Maps with titles of their own have this margin to the left and to the right of them.
INSET = 28
TITLE, HEADING, WORDS = 64, 34, 25
# For most of the time little is to be seen: shares of it at which maps are shown.
LATE = (0.6, 0.8, 1.0)
KINDS = ("height", "height_spread", "wind", "storm")


def poster(maps: Path, title: str, caption: str, credit: str) -> Image.Image:
    """The maps of a folder as one picture."""
    hours = sorted({int(file.stem[-3:]) for file in maps.glob("vorticity_*_[0-9]*.png")})
    members = sorted(int(file.stem.split("_")[1]) for file in maps.glob(f"vorticity_*_{hours[-1]:03}.png"))
    page = Page()
    page.words(title, TITLE, BRIGHT)
    page.words(caption, WORDS, DIM)
    page.rule()
    over_time = [(f"hour {hour}", maps / f"vorticity_{members[0]}_{hour:03}.png") for hour in some(hours, (0, *LATE))]
    page.row(f"Relative vorticity, member {members[0]}", over_time, maps / "vorticity_bar.png")
    of_all = [(f"member {member}", maps / f"vorticity_{member}_{hours[-1]:03}.png") for member in members[:8]]
    page.row(f"The same of all members, hour {hours[-1]}", of_all)
    page.rule()
    for kind in KINDS:
        page.framed([maps / f"{kind}_{hour:03}.png" for hour in some(hours, LATE)])
    page.rule()
    page.words(credit, WORDS, DIM)
    return page.finished()


def some(hours: Sequence[int], shares: Sequence[float]) -> list[int]:
    """Hours at these shares of the whole time."""
    return sorted({hours[round(share * (len(hours) - 1))] for share in shares})


class Page:
    """A page that grows downwards."""

    def __init__(self) -> None:
        self._page = Image.new("RGB", (WIDTH, 12_000), GROUND)
        self._draw = ImageDraw.Draw(self._page)
        self._top = MARGIN

    def words(self, text: str, size: int, colour: tuple[int, int, int]) -> None:
        """A paragraph as wide as the page."""
        font = ImageFont.load_default(size)
        letters = max(20, int((WIDTH - 2 * MARGIN) / (0.465 * size)))
        for line in textwrap.wrap(text, letters):
            # The typeface has no space that lines do not break at.
            self._draw.text((MARGIN, self._top), line.replace("\u00a0", " "), colour, font)
            self._top += round(1.4 * size)
        self._top += round(0.4 * size)

    def rule(self) -> None:
        """A line across the page."""
        self._top += 12
        self._draw.line((MARGIN, self._top, WIDTH - MARGIN, self._top), RULE, 2)
        self._top += GAP

    def row(self, heading: str, pictures: Sequence[tuple[str, Path]], bar: Path | None = None) -> None:
        """Pictures of one size with their labels below them, and a heading with a color bar above."""
        self._draw.text((MARGIN, self._top), heading, BRIGHT, ImageFont.load_default(HEADING))
        if bar is not None:
            with Image.open(bar) as colours:
                self._page.paste(colours, (WIDTH - MARGIN + INSET - colours.width, self._top - 24))
                self._top += max(0, colours.height - 24 - round(1.5 * HEADING))
        self._top += round(1.5 * HEADING)
        size = (WIDTH - 2 * MARGIN - GAP * (len(pictures) - 1)) // max(len(pictures), 3)
        for number, (label, file) in enumerate(pictures):
            left = MARGIN + number * (size + GAP)
            with Image.open(file) as one:
                self._page.paste(one.resize((size, size), Image.Resampling.LANCZOS), (left, self._top))
            middle = (left + size / 2, self._top + size + 14)
            self._draw.text(middle, label, BRIGHT, ImageFont.load_default(WORDS), anchor="ma")
        self._top += size + 14 + round(2.8 * WORDS)

    def framed(self, files: Sequence[Path]) -> None:
        """Maps that have titles and color bars themselves; their letters begin at the margin of the page."""
        pictures = [Image.open(file) for file in files]
        size = (WIDTH - 2 * MARGIN + 2 * INSET) // 3
        for number, one in enumerate(pictures):
            self._page.paste(one, (MARGIN - INSET + number * size + (size - one.width) * number // 2, self._top))
        self._top += max(one.height for one in pictures) + GAP // 2

    def finished(self) -> Image.Image:
        """As high as what is on it."""
        return self._page.crop((0, 0, WIDTH, self._top + MARGIN // 2))
