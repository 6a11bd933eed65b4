"""A sparse matrix in rows (CSR): interpolation weights as they are kept and applied.

Its parts have the names that they have in SciPy, so ``csr_array((matrix.data, matrix.indices, matrix.indptr),
matrix.shape)`` is the same matrix. The package itself needs SciPy where weights are made, and not where they are used:
to import it takes longer than dozens of fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from junctura._native import _weighted_sums
from junctura.products._regrid.floats import Floats

_ROWS_MAX = 1 << 32


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """Weights of target points, row by row.

    Attributes
    ----------
    data
        The weight of each link.
    indices
        The column of each link.
    indptr
        Where the links of each row begin, and where the last one ends.
    shape
        Rows and columns.

    """

    data: Floats
    indices: npt.NDArray[np.uint32]
    indptr: npt.NDArray[np.int64]
    shape: tuple[int, int]

    @classmethod
    def of(cls, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> SparseMatrix:
        """With parts of whatever types; the matrix and its parts are read-only."""
        if shape[1] > _ROWS_MAX:
            raise ValueError(f"{shape[1]} columns are more than {_ROWS_MAX}")
        made = cls(
            np.ascontiguousarray(data, np.float64),
            np.ascontiguousarray(indices, np.uint32),
            np.ascontiguousarray(indptr, np.int64),
            shape,
        )
        for part in (made.data, made.indices, made.indptr):
            part.flags.writeable = False
        return made

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> SparseMatrix:
        """Without a link."""
        return cls.of((), (), np.zeros(shape[0] + 1), shape)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    def rows(self, wanted: npt.NDArray[np.intp]) -> SparseMatrix:
        """Some rows, in this order."""
        counts = np.diff(self.indptr)[wanted]
        starts = np.concatenate([[0], np.cumsum(counts)])
        links = np.arange(starts[-1]) + np.repeat(self.indptr[wanted] - starts[:-1], counts)
        return self.of(self.data[links], self.indices[links], starts, (len(wanted), self.shape[1]))

    def spread(self, places: npt.NDArray[np.intp], count: int) -> SparseMatrix:
        """The rows at these places among `count`, the others of which are empty."""
        counts = np.zeros(count + 1, np.int64)
        counts[places + 1] = np.diff(self.indptr)
        return self.of(self.data, self.indices, np.cumsum(counts), (count, self.shape[1]))

    def applied(self, values: Floats) -> Floats:
        """The values of the target, missing as in `junctura.products._regrid.interpolate`."""
        if values.size != self.shape[1]:
            raise ValueError(f"{values.size} values for {self.shape[1]} columns")
        made = np.empty(self.shape[0])
        given = np.ascontiguousarray(values, np.float64).reshape(-1)
        _weighted_sums(made, (self.indptr, self.indices, self.data), given)
        return made
