"""ecCodes without its messages on standard error, where whoever calls it raises what went wrong.

ecCodes writes several lines for each key that it does not know, although the call fails, and its Python package raises.
Which parameters the newest tables have, for one, is only found out so.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterator

from junctura import _forks

_lock = _forks.Lock()
_depth = 0


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Within it ecCodes writes no messages; also those of other threads are left out meanwhile."""
    _enter(1, "/dev/null")
    try:
        yield
    finally:
        _enter(-1, "stdout" if os.environ.get("ECCODES_LOG_STREAM") == "stdout" else "stderr")


def _enter(change: int, to: str) -> None:
    global _depth
    with _lock:
        _depth += change
        # The first one in, and the last one out.
        if _depth == (change > 0):
            _send(to)


def _send(to: str) -> None:
    """Has ecCodes write its messages to a stream of the C library."""
    from gribapi import bindings

    stream = bindings.ffi.cast("FILE *", _stream(to))
    bindings.lib.grib_context_set_logging_file(bindings.ffi.NULL, stream)


@functools.lru_cache
def _stream(name: str) -> int:
    """The address of a ``FILE``, which stays open."""
    library = ctypes.CDLL(None)
    if name.startswith("/"):
        library.fopen.restype = ctypes.c_void_p
        opened: int | None = library.fopen(name.encode(), b"w")
        return opened or _stream("stderr")
    return ctypes.c_void_p.in_dll(library, name).value or 0
