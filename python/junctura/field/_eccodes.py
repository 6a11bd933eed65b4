"""GRIB messages as ecCodes has them open: one thread at a time, after a check of their announced sizes.

`decoded` calls a function with ecCodes and a handle; `junctura._grib.checked_messages` decides whether this process or
one that may crash does that. The functions of this folder that take ``(eccodes, handle)`` are called so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from junctura import _forks
from junctura._grib import checked_messages
from junctura._xarray.label_attributes import needed

_Looked = TypeVar("_Looked")
# One thread at a time calls ecCodes.
_ECCODES = _forks.Lock()


def message_of(payload: Any) -> bytes | None:
    """The GRIB message that a payload is; None for other payloads.

    Parameters
    ----------
    payload
        An object of a pool or store, or anything with a buffer.

    """
    found = payload._payload() if hasattr(payload, "_payload") else payload
    view = memoryview(found)
    return bytes(view) if bytes(view[:4]) == b"GRIB" else None


def decoded(message: bytes, look: Callable[[Any, int], _Looked], has_places: bool = False) -> _Looked:
    """Returns ``look(eccodes, handle)`` for a GRIB message.

    Parameters
    ----------
    message
        A GRIB message.
    look
        A function of a module, which gets ecCodes and the message's handle. Its result can be pickled.
    has_places
        Whether it asks for the places of all values, which ecCodes computes from what the header states of the grid.

    Raises
    ------
    Corrupt, TooLarge
        See `junctura._grib.checked_messages`; or ecCodes cannot read the message.
    ImportError
        Without ecCodes: ``pip install 'junctura[grib]'``.

    """
    announced = checked_messages.announced(message)
    if has_places:
        announced = announced._replace(is_proven=announced.is_proven and announced.is_regular)
    found: _Looked = checked_messages.decoded_as(announced, message, _looked, look)
    return found


def _looked(message: bytes, look: Callable[[Any, int], _Looked]) -> _Looked:
    eccodes = needed("eccodes", "grib")
    with _ECCODES, checked_messages.opened(eccodes, message) as handle:
        checked_messages.check_places(eccodes, handle, message)
        return look(eccodes, handle)


def value_of(eccodes: Any, handle: int, key: str, kind: type | None = None) -> Any:
    """The value of a key; None where the message does not have it, or ecCodes cannot compute it."""
    try:
        return eccodes.codes_get(handle, key) if kind is None else eccodes.codes_get(handle, key, kind)
    except eccodes.CodesInternalError:
        return None
