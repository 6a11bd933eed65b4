"""Progress lines: on a terminal they are updated in place, elsewhere they are not shown.

Progress output never fails a run: if its reader ends, the output stops.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import threading
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from junctura.errors import Error, SelectorWarning, UsageWarning, WaitWarning

_SIZE = (80, 24)
# Its reader has ended, or the terminal was closed.
_NOBODY = (errno.EPIPE, errno.EIO)
# By cause, as in docs/guide/errors.md; 1 for all other causes.
_STATUSES = {
    2: ("InvalidSelector", "SchemaMismatch", "TypeMismatch", "InvalidArgument", "TooLarge"),
    3: ("NotFound", "Gone", "NotWanted"),
    4: ("Timeout",),
    5: ("Closed", "Disconnected", "Unavailable"),
    6: ("PoolFull", "BundleFull", "LimitExceeded"),
    130: ("Interrupted",),
}


def say(text: str, stream: TextIO | None) -> None:
    """Writes a line at once; the end of the reader is not an error, and errors of standard error are ignored."""
    if stream is None:
        return
    try:
        print(text, file=stream, flush=True)
    except (OSError, ValueError) as error:
        if stream is not sys.stderr and getattr(error, "errno", None) not in _NOBODY:
            raise
        _forget(stream)


@contextlib.contextmanager
def said_if_slow(text: str, is_quiet: bool = False, seconds: float = 1.0) -> Iterator[None]:
    """Writes a line to standard error, if it is a terminal and the block takes longer than this time."""
    timer = threading.Timer(seconds, lambda: say(f"junctura: {text} ...", sys.stderr))
    timer.daemon = True
    if not is_quiet and sys.stderr is not None and sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def worded(error: Exception) -> str:
    """Formats an error for a message: with its code, as the commands in Rust do."""
    return f"{error.code}: {error}" if isinstance(error, Error) else str(error)


def status_of(program: Callable[[], int]) -> int:
    """Runs a program and returns its exit status, even if its output has no reader.

    Standard output and error get ``?`` for a character that their encoding lacks (``PYTHONIOENCODING``, Latin 1).
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    warnings.showwarning = _show_warning
    status = 0
    try:
        status = program()
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in _NOBODY:
            raise
        _forget(sys.stdout)
    return status


_show_any_warning = warnings.showwarning


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Shows a mistake of the user as the commands in Rust do."""
    if issubclass(category, (SelectorWarning, UsageWarning, WaitWarning)):
        say(f"junctura: {message}", sys.stderr)
    else:
        _show_any_warning(message, category, *where, **more)


def status_of_error(error: Error) -> int:
    """Returns the exit status of a program that an error ends, the same as for commands."""
    return next((status for status, codes in _STATUSES.items() if error.code in codes), 1)


def counted(count: int, noun: str) -> str:
    """Formats a number of items: 1 file, 2 files."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _forget(stream: TextIO) -> None:
    # Python flushes the rest at exit.
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def bar(done: int, count: int, width: int) -> str:
    """Formats a fraction as a bar."""
    return f"{'█' * (width * min(done, count) // max(1, count)):<{width}}"


class Screen:
    """Lines at the end of a stream.

    Parameters
    ----------
    quiet
        Whether to show nothing.
    stream
        The output; standard error.

    Attributes
    ----------
    is_terminal
        Whether lines can be rewritten there.

    """

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        # The stream does not exist if it was closed at the start.
        self._stream = stream or sys.stderr
        self._is_open = not quiet and self._stream is not None
        self._drawn = 0
        self.is_terminal = self._is_open and self._stream.isatty()

    def draw(self, lines: Sequence[str]) -> None:
        """Replaces the current lines; without a terminal, does nothing."""
        if self.is_terminal:
            width, height = self._size()
            shown = [_clipped(line, width - 1) for line in lines[: height - 1]]
            self._write(self._up() + "".join(f"\x1b[K{line}\n" for line in shown) + "\x1b[J")
            self._drawn = len(shown)

    def say(self, *lines: str) -> None:
        """Writes permanent lines, above the current ones."""
        text = "".join(f"{line}\n" for line in lines)
        self._write(f"{self._up()}\x1b[J{text}" if self.is_terminal else text)
        self._drawn = 0

    def keep(self) -> None:
        """Leaves the current lines on the terminal."""
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
    """Truncates a line to one row; East Asian characters take two columns, combining characters none."""
    if line.isascii():
        return line[:width]
    used = 0
    for index, one in enumerate(line):
        used += 0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        if used > width:
            return line[:index]
    return line
