"""Suppresses messages of ecCodes on standard error, while the caller raises errors.

ecCodes writes several lines for each unknown key, in addition to the error that its Python package raises. Some
queries, such as which parameters the newest tables have, are only possible by such errors.
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
    """Within the block ecCodes writes no messages; those of other threads are suppressed, too."""
    _enter(1, "/dev/null")
    try:
        yield
    finally:
        _enter(-1, "stdout" if os.environ.get("ECCODES_LOG_STREAM") == "stdout" else "stderr")


def _enter(change: int, to: str) -> None:
    global _depth
    with _lock:
        _depth += change
        # The first entry disables messages, and the last exit enables them.
        if _depth == (change > 0):
            _send(to)


def _send(to: str) -> None:
    """Directs the messages of ecCodes to a stream of the C library."""
    from gribapi import bindings

    stream = bindings.ffi.cast("FILE *", _stream(to))
    bindings.lib.grib_context_set_logging_file(bindings.ffi.NULL, stream)


@functools.lru_cache
def _stream(name: str) -> int:
    """Returns the address of a ``FILE``, which stays open."""
    library = ctypes.CDLL(None)
    if name.startswith("/"):
        library.fopen.restype = ctypes.c_void_p
        opened: int | None = library.fopen(name.encode(), b"w")
        return opened or _stream("stderr")
    return ctypes.c_void_p.in_dll(library, name).value or 0
