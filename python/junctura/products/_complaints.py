"""What ecCodes writes about what it cannot do: each line once, with a count where it comes again and again.

ecCodes writes several lines on standard error for each field that it cannot do with. The error that is raised has the
cause; of a thousand fields the lines are the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from junctura._screen import say

_PROC = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
# Below this level ecCodes tells nothing that is wrong.
_WARNING = 1
# So many different lines are counted.
_LINES_MAX = 1000


class Complaints:
    """Takes lines and writes each the first time, and then the tenth, the hundredth, ... with a count.

    Parameters
    ----------
    write
        Gets what is to be shown.

    """

    def __init__(self, write: Callable[[str], None] = lambda text: say(text, sys.stderr)) -> None:
        self._write = write
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, text: str) -> None:
        """One more line."""
        with self._lock:
            if text not in self._counts and len(self._counts) == _LINES_MAX:
                return
            self._counts[text] += 1
            count = self._counts[text]
        if not count % 10 ** (len(str(count)) - 1) and str(count).strip("0") == "1":
            self._write(f"ecCodes: {text}{f' ({count} times)' if count > 1 else ''}")


# What is installed in this process: kept, since ecCodes calls it.
_installed: list[Any] = []
_is_silent = threading.local()


def collect(complaints: Complaints | None = None) -> None:
    """From now on ecCodes' lines in this process are counted; without ecCodes nothing is done."""
    if not _installed:
        _install(complaints or Complaints())


def _install(complaints: Complaints) -> None:
    def take(_context: Any, level: int, message: bytes | None) -> None:
        if level >= _WARNING and message and not getattr(_is_silent, "is_on", False):
            complaints.take(message.decode(errors="replace").strip())

    with contextlib.suppress(ImportError, AttributeError, OSError):
        from gribapi import bindings

        library = ctypes.CDLL(bindings.library_path)
        library.grib_context_get_default.restype = ctypes.c_void_p
        proc = _PROC(take)
        library.grib_context_set_logging_proc(ctypes.c_void_p(library.grib_context_get_default()), proc)
        _installed.append(proc)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Within it nothing is written of what this thread asks ecCodes, where its lines are collected."""
    _is_silent.is_on = True
    try:
        yield
    finally:
        _is_silent.is_on = False
