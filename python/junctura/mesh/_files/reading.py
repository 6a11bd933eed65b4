"""Errors and limits of files from outside."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from junctura.errors import Corrupt, Error, Io, LimitExceeded

# Values may be compressed, but not beyond this.
_RATIO_MAX = 1024
_SMALL = 16 << 20


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Reports parts that are missing, or have another form, as damage of the file."""
    try:
        yield
    except Error:
        raise
    except OSError as error:
        raise Io(path, error.strerror or str(error)) from error
    except (AttributeError, IndexError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise Corrupt(path, f"{type(error).__name__}: {error}") from error


def check_size(path: str, name: str, nbytes: int) -> None:
    """Refuses an array that is much larger than its file, before memory is taken for it."""
    limit = _SMALL + _RATIO_MAX * Path(path).stat().st_size
    if nbytes > limit:
        raise LimitExceeded(path, f"{name} would have {nbytes} bytes, more than {_RATIO_MAX} times the file")
