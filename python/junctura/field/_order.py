"""The scanning order of the rows and columns of a message (WMO edition 2, flag table 3.4).

```text
  message:  0 1 2 3 | 7 6 5 4 | 8 9 10 11      rows consecutive, adjacent rows in opposite directions (bit 4)
  arranged: 0 1 2 3 / 4 5 6 7 / 8 9 10 11      an array of rows and columns, from the first point of the message on
```
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from junctura.field._eccodes import value_of

Array = npt.NDArray[Any]
# In the order of the fields of `Order`. Edition 1 has all but the second (code table 8).
FLAGS = ("jPointsAreConsecutive", "alternativeRowScanning", "iScansNegatively", "jScansPositively")
# EcCodes' missing integer: rows have different lengths.
_MISSING = 2147483647


class Order(NamedTuple):
    """Rows and columns of a grid, and the order in which a message has their points."""

    rows: int
    columns: int
    # Points along a column are consecutive, and not those along a row.
    is_by_column: bool = False
    # Adjacent rows (or columns, if these are consecutive) have opposite directions.
    is_alternating: bool = False
    # Rows run from east to west, columns from south to north.
    is_westward: bool = False
    is_northward: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    def arranged(self, values: Array) -> Array:
        """Values of a message as an array of rows and columns; alternating rows are turned in place."""
        lines = values.reshape((self.columns, self.rows) if self.is_by_column else self.shape)
        if self.is_alternating:
            lines[1::2] = lines[1::2, ::-1].copy()
        return lines.T if self.is_by_column else lines


def order_of(eccodes: Any, handle: int) -> Order | None:
    """The order of a message; None where its grid has no rows of one length."""
    columns, rows = (_count(eccodes, handle, *keys) for keys in (("Ni", "Nx"), ("Nj", "Ny")))
    if not rows or not columns:
        return None
    return Order(rows, columns, *(bool(value_of(eccodes, handle, name)) for name in FLAGS))


def _count(eccodes: Any, handle: int, *keys: str) -> int:
    for key in keys:
        count = value_of(eccodes, handle, key, int)
        if count is not None:
            return 0 if count == _MISSING else int(count)
    return 0
