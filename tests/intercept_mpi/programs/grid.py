"""Writes an array by columns, or reads it by rows and counts the elements that differ: the array of grid.c.

grid.py write NAME | grid.py read NAME...
"""

import sys

import numpy as np
from mpi4py import MPI

SHAPE = (60, 48)
WORLD = MPI.COMM_WORLD
FIELD = np.arange(SHAPE[0] * SHAPE[1], dtype="f8").reshape(SHAPE)


def part(size: int) -> slice:
    cuts = [rank * (size // WORLD.size) + min(rank, size % WORLD.size) for rank in (WORLD.rank, WORLD.rank + 1)]
    return slice(*cuts)


def view(file: MPI.File, box: tuple[slice, slice]) -> None:
    counts, starts = [each.stop - each.start for each in box], [each.start for each in box]
    filetype = MPI.DOUBLE.Create_subarray(SHAPE, counts, starts).Commit()
    file.Set_view(0, MPI.DOUBLE, filetype)
    filetype.Free()


def write(name: str) -> None:
    file = MPI.File.Open(WORLD, name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    columns = slice(0, SHAPE[0]), part(SHAPE[1])
    view(file, columns)
    file.Write_all(FIELD[columns].copy())
    file.Close()


def read(name: str) -> None:
    file = MPI.File.Open(WORLD, name, MPI.MODE_RDONLY)
    rows = part(SHAPE[0]), slice(0, SHAPE[1])
    view(file, rows)
    mine, status = np.zeros_like(FIELD[rows]), MPI.Status()
    wrong = int(file.Get_size() != FIELD.nbytes)
    file.Read_all(mine, status)
    file.Close()
    wrong += int(status.Get_count(MPI.DOUBLE) != mine.size) + int((mine != FIELD[rows]).sum())
    wrong = WORLD.allreduce(wrong)
    if WORLD.rank == 0:
        print(f"{name}: {wrong} wrong", flush=True)


for each in sys.argv[2:]:
    {"write": write, "read": read}[sys.argv[1]](each)
