"""GRIB messages, checked before ecCodes reads them.

ecCodes trusts a message: for values that are announced and missing it reads memory beyond the message. So `decoded`
first compares what the message announces with its bytes. Where that proves that all values are there, this process
decodes; otherwise a process that may crash does (`junctura._grib.decoder_process`).

A field has at most `points_max` points, whatever its message announces: a constant field of 10^9 points fits in 200
bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from junctura import _forks
from junctura._grib import decoder_process
from junctura._native import _packed, _sections
from junctura.errors import Corrupt, InvalidArgument, TooLarge

_Result = TypeVar("_Result")
# Sets the limit for a process and those that it starts.
POINTS_VARIABLE = "JUNCTURA_GRIB_POINTS_MAX"
# 64 Mi points: 512 MiB as double precision. O4000, 2.5 km between points, has 64,144,000.
_POINTS_MAX = 1 << 26
_PARALLELS_MAX = 8000


def points_max() -> int:
    """Returns the maximum number of points of a decoded field: 67,108,864, or the value of
    ``JUNCTURA_GRIB_POINTS_MAX``.
    """
    text = os.environ.get(POINTS_VARIABLE)
    if text is None:
        return _POINTS_MAX
    try:
        return int(text)
    except ValueError:
        raise InvalidArgument(f"{POINTS_VARIABLE}={text}", "expected a number of points") from None


class AnnouncedMessage(NamedTuple):
    """The announcements in the header of a message, compared with its bytes."""

    # Size of the message; other bytes may follow.
    nbytes: int
    fields: int
    # Points or coefficients of the first field; 0 where the header does not state them.
    points: int
    # Whether all values of the first field are provably in the message.
    is_proven: bool
    # Whether its points are those of rows and columns of a regular grid, or it has none.
    is_regular: bool


def announced(message: bytes) -> AnnouncedMessage:
    """Returns the announcements of a message.

    Raises
    ------
    Corrupt
        The message is truncated, or announces values that are missing.
    TooLarge
        The field has more points than `points_max`.

    """
    found = AnnouncedMessage(*_packed(message))
    limit(found.points)
    return found


def limit(points: int) -> None:
    """Raises TooLarge if a field has more points than `points_max`."""
    most = points_max()
    if points > most:
        cause = f"at most {most} are decoded; {POINTS_VARIABLE} sets the limit"
        raise TooLarge(f"GRIB field of {points} points", cause)


def limit_parallels(parallels: int) -> None:
    """Rejects a Gaussian grid with no rows or too many: the time to compute their latitudes is quadratic."""
    cause = f"1 to {_PARALLELS_MAX} between pole and equator are decoded"
    if parallels > _PARALLELS_MAX:
        raise TooLarge(f"Gaussian grid of {parallels} parallels", cause)
    if parallels < 1:
        raise Corrupt(f"Gaussian grid of {parallels} parallels", cause)


class _Opened:
    """A context that has ecCodes' handle of a message. A generator would take a microsecond more for each field."""

    __slots__ = ("_eccodes", "_handle", "_message")

    def __init__(self, eccodes: Any, message: bytes) -> None:
        self._eccodes, self._message = eccodes, message
        self._handle: int | None = None

    def __enter__(self) -> int:
        _forks.enter()
        try:
            self._handle = handle = int(self._eccodes.codes_new_from_message(self._message))
        except BaseException as error:
            _forks.leave()
            self._name(error)
            raise
        return handle

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            self._eccodes.codes_release(self._handle)
        finally:
            _forks.leave()
        self._name(error)

    def _name(self, error: BaseException | None) -> None:
        if error is not None and isinstance(error, self._eccodes.CodesInternalError):
            raise Corrupt("GRIB message", f"ecCodes cannot decode it: {error}") from error


def opened(eccodes: Any, message: bytes) -> AbstractContextManager[int]:
    """EcCodes' handle of a message; its errors become `Corrupt`. Call `check_places` before values are decoded.

    A fork by another thread waits until the handle is released.
    """
    return _Opened(eccodes, message)


def check_places(eccodes: Any, handle: int, message: bytes) -> None:
    """Raises Corrupt if ecCodes finds a section at another offset than the section lengths imply.

    ecCodes uses the templates of the preceding sections. If the two differ, it would read other bytes as values than
    those that were validated.
    """
    for number, start in _sections(message):
        if number <= 1:
            # Section 0 has a fixed length.
            continue
        try:
            found = eccodes.codes_get_long(handle, f"offsetSection{number}")
        except eccodes.KeyValueNotFoundError:
            found = None
        if found != start:
            raise Corrupt("GRIB message", f"ecCodes does not find section {number} at byte {start}")


def decoded(message: bytes, read: Callable[..., _Result], *arguments: Any) -> _Result:
    """Returns ``read(message, *arguments)``, computed here or in a process that may crash; see `decoded_as`."""
    return decoded_as(announced(message), message, read, *arguments)


def decoded_as(is_what: AnnouncedMessage, message: bytes, read: Callable[..., _Result], *arguments: Any) -> _Result:
    """Returns ``read(message, *arguments)``, computed here or in a process that may crash.

    Parameters
    ----------
    is_what
        The announcements of the message.
    message
        One GRIB message.
    read
        A module-level function that calls ecCodes. Its result must be picklable.
    *arguments
        Further arguments, which must be picklable.

    Raises
    ------
    Corrupt
        The decoder crashed, or exceeded its time limit.

    """
    if is_what.is_proven:
        return read(message, *arguments)
    return decoder_process.decoded(message, read, *arguments)
