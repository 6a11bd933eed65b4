"""Where the variables of a netCDF file of the classic formats (CDF-1, 2 and 5) end.

The netCDF library reads zeros behind the end of a truncated file, so a reader compares these places with the size of
the file. Source: the specification of the classic format in the NetCDF Users Guide.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from junctura.errors import Corrupt

_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
# Bytes of the types 1 to 11.
_BYTES = (0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8)


class _PlacedVariable(NamedTuple):
    begin: int
    nbytes: int
    """Of one record, if it has records."""
    has_records: bool


class ClassicFile:
    """The places of the variables of a file.

    Parameters
    ----------
    path
        The file, of a classic format.

    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._size = Path(path).stat().st_size
        with Path(path).open("rb") as file:
            self._variables, self._records = _HeaderReader(file, path).variables()
        records = [one.nbytes for one in self._variables.values() if one.has_records]
        # A single variable with records is not padded.
        self._record = records[0] if len(records) == 1 else sum(-(-nbytes // 4) * 4 for nbytes in records)

    @staticmethod
    def is_one(path: str) -> bool:
        """Whether a file begins as one of a classic format."""
        with Path(path).open("rb") as file:
            return file.read(4) in (b"CDF\1", b"CDF\2", b"CDF\5")

    def check(self, name: str, record: int | None) -> None:
        """Raises Corrupt if the file ends before a variable, or before one of its records (None: the last one)."""
        one = self._variables.get(name)
        if one is None or not one.nbytes:
            return
        end = one.begin + one.nbytes
        if one.has_records:
            last = self._records - 1 if record is None else record
            if last < 0:
                return
            end += last * self._record
        if end > self._size:
            cause = f"the file is truncated: {name} ends at byte {end}, and the file has {self._size}"
            raise Corrupt(self._path, cause)


class _HeaderReader:
    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file = file
        self._path = path
        version = file.read(4)[3]
        # Of counts, and of places.
        self._count = ">Q" if version == 5 else ">I"
        self._place = ">I" if version == 1 else ">Q"

    def variables(self) -> tuple[dict[str, _PlacedVariable], int]:
        """Returns the variables, and the number of records."""
        records = self._number(self._count)
        dims = [self._dimension() for _ in range(self._list(_DIMENSION))]
        self._skip_attributes()
        return dict(self._variable(dims) for _ in range(self._list(_VARIABLE))), records

    def _dimension(self) -> int:
        self._name()
        return self._number(self._count)

    def _variable(self, dims: list[int]) -> tuple[str, _PlacedVariable]:
        name = self._name()
        shape = [dims[self._number(self._count)] for _ in range(self._number(self._count))]
        self._skip_attributes()
        kind = self._number(">I")
        self._number(self._count)
        begin = self._number(self._place)
        has_records = bool(shape) and shape[0] == 0
        return name, _PlacedVariable(begin, math.prod(shape[has_records:]) * _BYTES[kind], has_records)

    def _skip_attributes(self) -> None:
        for _ in range(self._list(_ATTRIBUTE)):
            self._name()
            kind = self._number(">I")
            self._bytes(self._number(self._count) * _BYTES[kind])

    def _list(self, expected: int) -> int:
        tag, count = self._number(">I"), self._number(self._count)
        if tag not in (0, expected):
            raise Corrupt(self._path, f"the header of the netCDF file has the tag {tag} in place of {expected}")
        return count

    def _name(self) -> str:
        return self._bytes(self._number(self._count)).decode("utf-8", "replace")

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count)
        if len(found) < count:
            raise Corrupt(self._path, "the file ends within its header")
        self._file.read(-count % 4)
        return found

    def _number(self, kind: str) -> int:
        found: int = struct.unpack(kind, self._file.read(struct.calcsize(kind)))[0]
        return found
