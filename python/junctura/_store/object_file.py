"""An object of a store as a file that is open for reading."""

from __future__ import annotations

import contextlib
import io
import os
from typing import TYPE_CHECKING

from junctura.errors import TooLarge

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from junctura._native import Stored


# Larger objects are verified in pieces and then read in ranges.
WHOLE_NBYTES_MAX = 1 << 30


class _Handle(io.RawIOBase):
    """Reads an object's bytes, from a position on; all bytes are verified at the first read."""

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
        if self._verified and self._whole is None:
            self._verify()
        if self._whole is None:
            return self._stored._read_range(self._at, length)
        return self._whole[self._at : self._at + length]

    def _verify(self) -> None:
        """Reads the whole object, or verifies it in pieces if it is large or memory is short."""
        if self._length <= WHOLE_NBYTES_MAX:
            with contextlib.suppress(TooLarge):
                self._whole = memoryview(self._stored._payload())
                return
        self._stored._check()
        self._verified = False

    def close(self) -> None:
        self._whole = None
        super().close()


def opened(stored: Stored, verified: bool) -> io.BufferedReader:
    """See `Stored.open`."""
    return io.BufferedReader(_Handle(stored, verified))
