"""The atmosphere: takes the sea of the step before, gives the wind. `mpirun -n RANKS python atmosphere.py URL`."""

from __future__ import annotations

import sys

import numpy as np
from coupling import BEFORE, arguments, atmosphere_layout, connect, serial, wind
from mpi4py import MPI

import junctura

comm = MPI.COMM_WORLD
given = arguments(__doc__)
layout = atmosphere_layout(comm.size)
rows, columns = layout.indices(comm.rank)
sst = np.full(layout.extents(comm.rank)[0], BEFORE)
blowing = sst

with connect(given) as pool:
    exchange = junctura.Exchange(pool, layout, comm=comm, retention=junctura.Released(given.takers))
    for step in range(given.steps):
        if step > 0:
            exchange.get(field="sst", step=step - 1, out=sst)
        blowing = wind(step, rows, columns, sst)
        if given.recorded is None:
            exchange.put(blowing, field="wind", step=step)

expected, _ = serial(given.steps)
wrong = comm.allreduce(int((blowing != expected[np.ix_(rows, columns)]).sum()))
if comm.rank == 0:
    print(f"atmosphere: {comm.size} ranks, {given.steps} steps, {wrong} elements differ from a run without ranks")
sys.exit(1 if wrong else 0)
