"""The colors around the data: page, letters, and what has no value."""

from __future__ import annotations

from dataclasses import dataclass

from junctura.products._map.lettering import Colour


@dataclass(frozen=True)
class Colours:
    """Of one theme.

    Attributes
    ----------
    ground
        The page.
    blank
        Below places.
    bright, dim
        Letters of the title and of numbers; all others.
    rule
        Fine lines of the page.
    outside
        Where the grid does not reach.
    missing
        Where the grid has no value: this, hatched with the second.

    """

    ground: Colour
    blank: Colour
    bright: Colour
    dim: Colour
    rule: Colour
    outside: Colour
    missing: tuple[Colour, Colour]


THEMES = {
    "dark": Colours(
        (11, 14, 21),
        (40, 45, 55),
        (238, 234, 226),
        (164, 170, 181),
        (46, 53, 66),
        (40, 45, 55),
        ((84, 88, 96), (97, 101, 109)),
    ),
    "light": Colours(
        (255, 255, 255),
        (236, 239, 243),
        (22, 26, 34),
        (84, 90, 102),
        (196, 200, 206),
        (160, 163, 168),
        ((224, 223, 221), (206, 203, 199)),
    ),
}
