"""An object of a store as a file that is open for reading."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from junctura._native import Stored


class _Handle(io.RawIOBase):
    """Reads an object's bytes, from a place on; verified ones all at once, when the first of them is asked for."""

    def __init__(self, stored: Stored, verified: bool) -> None:
        self._stored = stored
        self._verified = verified
        self._whole: memoryview | None = None
        self._length = stored.nbytes
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        begins = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}
        if self.closed or whence not in begins or begins[whence] + offset < 0:
            raise ValueError(f"no place to seek: {offset} from {whence}" if not self.closed else "the file is closed")
        self._at = begins[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Buffer, /) -> int:
        into = memoryview(buffer).cast("B")
        piece = self._read(len(into))
        into[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _read(self, length: int) -> bytes | memoryview:
        if not self._verified:
            return self._stored._read_range(self._at, length)
        if self._whole is None:
            self._whole = memoryview(self._stored._payload())
        return self._whole[self._at : self._at + length]

    def close(self) -> None:
        self._whole = None
        super().close()


def opened(stored: Stored, verified: bool) -> io.BufferedReader:
    """See `Stored.open`."""
    return io.BufferedReader(_Handle(stored, verified))
