"""Lines that are kept up to date while something goes on: on a terminal they are rewritten, else they are not shown.

What shows progress must never be what makes the work fail: where nobody reads it any more, it ends by itself.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

_SIZE = (80, 24)


def bar(done: int, count: int, width: int) -> str:
    """How much of something is done, as a bar."""
    return f"{'█' * (width * min(done, count) // max(1, count)):<{width}}"


class Screen:
    """Lines at the end of a stream.

    Parameters
    ----------
    quiet
        Whether to show nothing.
    stream
        Where; standard error.

    Attributes
    ----------
    is_terminal
        Whether lines can be rewritten there.

    """

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_open = not quiet
        self._drawn = 0
        self.is_terminal = self._is_open and self._stream.isatty()

    def draw(self, lines: Sequence[str]) -> None:
        """Puts these in the place of those that were drawn before; on no terminal nothing."""
        if self.is_terminal:
            width, height = self._size()
            shown = [_clipped(line, width - 1) for line in lines[: height - 1]]
            self._write(self._up() + "".join(f"\x1b[K{line}\n" for line in shown) + "\x1b[J")
            self._drawn = len(shown)

    def say(self, *lines: str) -> None:
        """Writes lines that stay, above those that are drawn."""
        text = "".join(f"{line}\n" for line in lines)
        self._write(f"{self._up()}\x1b[J{text}" if self.is_terminal else text)
        self._drawn = 0

    def keep(self) -> None:
        """Leaves what is drawn where it stands."""
        self._drawn = 0

    def _up(self) -> str:
        return f"\x1b[{self._drawn}A\r" if self._drawn else ""

    def _size(self) -> tuple[int, int]:
        try:
            width, height = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return _SIZE
        return (width or _SIZE[0], height or _SIZE[1])

    def _write(self, text: str) -> None:
        if not self._is_open:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._is_open = self.is_terminal = False


def _clipped(line: str, width: int) -> str:
    """So much of a line as goes on one row; letters of East Asia take two places, and marks upon letters none."""
    if line.isascii():
        return line[:width]
    used = 0
    for index, one in enumerate(line):
        used += 0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        if used > width:
            return line[:index]
    return line
