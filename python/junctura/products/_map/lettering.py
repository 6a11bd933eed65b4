"""Text on maps, in the one typeface that Pillow brings itself, so that a map looks the same everywhere.

That has no exponents and no minus sign; ``^{...}`` is set small and high, and a hyphen before a digit as a rule.
Letters that it has not are replaced by those they are made of, or by a question mark.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from PIL import ImageDraw, ImageFont

Colour: TypeAlias = tuple[int, int, int]
Font: TypeAlias = ImageFont.FreeTypeFont | ImageFont.ImageFont
_PIECES = re.compile(r"\^\{([^}]*)\}")
_SMALL = 0.68
_KNOWN = "°·…"


def text(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    words: str,
    size: float,
    colour: Colour | int,
    anchor: Literal["left", "middle", "right"] = "left",
) -> float:
    """Sets words with their baseline at a place; gives how long they are, in pixels."""
    length = width(words, size)
    x = at[0] - {"left": 0.0, "middle": 0.5, "right": 1.0}[anchor] * length
    for piece, own_size, up in _pieces(words, size):
        font = _font(round(own_size))
        if piece == "\u2212":
            _rule(draw, x, at[1] - up, own_size, colour)
        else:
            draw.text((x, at[1] - up), piece, colour, font=font, anchor="ls")
        x += _length(piece, own_size)
    return length


@functools.lru_cache(maxsize=4096)
def width(words: str, size: float) -> float:
    """How long words are, in pixels."""
    return sum(_length(piece, own_size) for piece, own_size, _ in _pieces(words, size))


def fitted(words: str, size: float, room: float) -> str:
    """As many of the words as there is room for."""
    if width(words, size) <= room:
        return words
    while words and width(f"{words}…", size) > room:
        words = words[:-1]
    return f"{words.rstrip()}…"


def lines_of(pieces: Sequence[str], between: str, size: float, room: float) -> list[str]:
    """The pieces in lines, as many in each as there is room for."""
    lines: list[str] = []
    for piece in pieces:
        longer = f"{lines[-1]}{between}{piece}" if lines else piece
        if lines and width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(piece)
    return lines


def _pieces(words: str, size: float) -> Iterator[tuple[str, float, float]]:
    """Runs of letters, each with its size and how far it is raised; a minus sign is one of its own."""
    for number, run in enumerate(_PIECES.split(words)):
        raised = number % 2 == 1
        for piece in re.split(r"((?:(?<=^)|(?<=\s))-(?=\d))", _plain(run)):
            if piece:
                sign = "\u2212" if piece == "-" else piece
                yield sign, size * _SMALL if raised else size, size * 0.36 if raised else 0.0


def _plain(words: str) -> str:
    letters = []
    for letter in words:
        if letter.isascii() or letter in _KNOWN:
            letters.append(letter)
        else:
            parts = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
            letters.append(parts or "?")
    return "".join(letters)


def _length(piece: str, size: float) -> float:
    return size * 0.62 if piece == "\u2212" else _font(round(size)).getlength(piece)


def _rule(draw: ImageDraw.ImageDraw, x: float, base: float, size: float, colour: Colour | int) -> None:
    thick = max(1, round(size * 0.075))
    top = round(base - size * 0.27)
    draw.rectangle((round(x + size * 0.07), top, round(x + size * 0.50), top + thick - 1), fill=colour)


@functools.lru_cache(maxsize=32)
def _font(size: int) -> Font:
    return ImageFont.load_default(size)
