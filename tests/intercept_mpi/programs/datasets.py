"""Writes a file of HDF5 by all ranks, with groups, attributes and chunks: datasets.py NAME."""

import sys

import h5py
import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
FIELD = np.arange(1200.0).reshape(40, 30)
rows = 40 // WORLD.size
mine = slice(WORLD.rank * rows, (WORLD.rank + 1) * rows)
with h5py.File(sys.argv[1], "w", driver="mpio", comm=WORLD) as file:
    file.create_dataset("t", FIELD.shape, dtype="f8")[mine] = FIELD[mine]
    file.create_group("run").attrs["step"] = 6
    ranks = file.create_dataset("run/ranks", (40, 8), dtype="i4", chunks=(10, 8))
    with ranks.collective:
        ranks[mine] = WORLD.rank
    file.flush()
    ranks.attrs["done"] = True
