"""One rank of two models that exchange a field both ways with each step, by YAC: as ``coupled.c``.

``coupled_yac.py fine|coarse RANKS ROWS COLUMNS STEPS``, in one run of MPI with RANKS ranks of each.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

from junctura.remap._yac import load_mpi

WARM = 20


def main() -> int:
    """Exchanges fields; rank 0 of the fine grid prints milliseconds a step."""
    name, ranks, rows, columns, steps = sys.argv[1], *map(int, sys.argv[2:6])
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"]) % ranks
    load_mpi()
    import yac

    half = 1 if name == "fine" else 2
    ny, nx = rows // half, columns // half
    first, last = ny * rank // ranks, ny * (rank + 1) // ranks
    yac.def_calendar(yac.Calendar.PROLEPTIC_GREGORIAN)
    run = yac.YAC()
    run.def_datetime("2020-01-01T00:00:00", "2020-02-01T00:00:00")
    component = run.def_comp(name)
    lon, lat = np.linspace(0, 2 * np.pi, nx + 1), np.linspace(-np.pi / 2, np.pi / 2, ny + 1)
    mine = lat[first : last + 1]
    grid = yac.Reg2dGrid(name, lon[:-1], mine, cyclic=[True, False])
    cells = np.arange(first * nx, last * nx)
    grid.set_global_index(cells, yac.Location.CELL)
    grid.set_global_index(np.arange(first * nx, (last + 1) * nx), yac.Location.CORNER)
    centers = ((lon[1:] + lon[:-1]) / 2, (mine[1:] + mine[:-1]) / 2)
    points = grid.def_points(yac.Location.CELL, *centers)
    fields = {what: yac.Field.create(what, component, points, 1, "1", yac.TimeUnit.SECOND) for what in ("sst", "wind")}
    down, up = yac.InterpolationStack(), yac.InterpolationStack()
    down.add_conservative(1, False, False, yac.ConservNormalizationType.FRACAREA)
    up.add_nnn(yac.NNNReductionType.AVG, 1, 0.0, 1.0)
    for source, target, what, stack in (("fine", "coarse", "sst", down), ("coarse", "fine", "wind", up)):
        couple = (source, source, what, target, target, what, "1", yac.TimeUnit.SECOND)
        run.def_couple(*couple, yac.Reduction.TIME_NONE, stack)
    run.enddef()
    out, into = ("sst", "wind") if name == "fine" else ("wind", "sst")
    start = 0.0
    for step in range(WARM + steps):
        if step == WARM:
            start = time.perf_counter()
        values = step + np.arange(len(cells), dtype="f8") % 7
        fields[out].put(values)
        received, _ = fields[into].get()
        # The first cell of a rank has the number of the step, and the coarse one a mean near it.
        assert abs(float(received.ravel()[0]) - step) <= (0 if name == "fine" else 7)
    if name == "fine" and rank == 0:
        print(json.dumps({"step_ms": (time.perf_counter() - start) * 1e3 / steps}), flush=True)
    run.cleanup()
    return 0


if __name__ == "__main__":
    sys.exit(main())
