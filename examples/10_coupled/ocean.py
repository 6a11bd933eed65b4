"""The ocean: takes the wind, gives the surface of the sea. `mpirun -n RANKS python ocean.py URL`."""

from __future__ import annotations

import sys

import numpy as np
from coupling import BEFORE, arguments, connect, ocean_layout, sea, serial
from mpi4py import MPI

import junctura

comm = MPI.COMM_WORLD
given = arguments(__doc__)
layout = ocean_layout(comm.size)
rows, columns = layout.indices(comm.rank)
sst = np.full(layout.extents(comm.rank)[0], BEFORE, order="F")

with connect(given) as pool:
    exchange = junctura.Exchange(pool, layout, comm=comm, retention=junctura.Released(given.takers))
    for step in range(given.steps):
        blowing = exchange.get(field="wind", step=step)
        sst = sea(sst, blowing)
        if given.recorded is None:
            exchange.put(sst, field="sst", step=step)

_, expected = serial(given.steps)
wrong = comm.allreduce(int((sst != expected[np.ix_(rows, columns)]).sum()))
if comm.rank == 0:
    print(f"ocean: {comm.size} ranks, {given.steps} steps, {wrong} elements differ from a run without ranks")
sys.exit(1 if wrong else 0)
