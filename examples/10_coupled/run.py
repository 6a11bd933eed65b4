"""An atmosphere and an ocean, each a program of MPI with ranks of its own, give each other a field each step.

Then each of them runs alone, against what was recorded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from coupling import SCHEMA, SHAPE, atmosphere_layout, ocean_layout, serial

import junctura

HERE = Path(__file__).parent
# Open MPI refuses root and more ranks than processors unless it is told to.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMP_NUM_THREADS": "1",
}


def start(program: str, ranks: int, *options: str) -> subprocess.Popen[bytes]:
    # The mpirun that is beside this Python, if there is one.
    beside = Path(sys.executable).with_name("mpirun")
    mpirun = str(beside) if beside.exists() else "mpirun"
    command = [sys.executable, str(HERE / program), *options]
    if ranks > 0:
        command = [mpirun, "-n", str(ranks), *command]
    return subprocess.Popen(command, env={**os.environ, **MPI})


def together(*programs: subprocess.Popen[bytes]) -> int:
    """Waits for all of them; how many failed. When one has, the others would wait for it in vain."""
    failed = 0
    for program in programs:
        failed += program.wait() != 0
        if failed:
            for other in programs:
                other.terminate()
    return failed


def draw(path: Path, steps: int, atmosphere: int, ocean: int) -> None:
    """The last fields, each with the borders of its ranks."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    layouts = [atmosphere_layout(atmosphere), ocean_layout(ocean)]
    titles = [f"wind, {atmosphere} ranks in bands", f"sea surface, {ocean} ranks in columns"]
    for axis, field, layout, title in zip(axes, serial(steps), layouts, titles, strict=True):
        image = axis.imshow(field, cmap="viridis")
        figure.colorbar(image, ax=axis, label="m/s" if "wind" in title else "°C")
        owner = np.zeros(SHAPE)
        for rank in range(layout.ranks):
            owner[np.ix_(*layout.indices(rank))] = rank
        axis.contour(owner, levels=np.arange(layout.ranks) + 0.5, colors="white", linewidths=0.7)
        axis.set_title(title)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--atmosphere", type=int, default=3, help="ranks of the atmosphere (3)")
    parser.add_argument("--ocean", type=int, default=2, help="ranks of the ocean (2)")
    parser.add_argument("--steps", type=int, default=20, help="time steps (20)")
    parser.add_argument("--url", help="a pool that is served already; by default one of this process")
    parser.add_argument("--picture", type=Path, help="draw the last fields into this file")
    given = parser.parse_args()
    steps = ["--steps", str(given.steps)]
    with tempfile.TemporaryDirectory() as folder, junctura.Pool(given.url, schema=SCHEMA) as pool:
        recorded = ["--recorded", f"{folder}/recorded"]
        # Whoever takes a field: the ranks of the other model, and the recorder.
        failed = together(
            start("recorder.py", 0, pool.url, *steps, *recorded),
            start("atmosphere.py", given.atmosphere, pool.url, *steps, "--takers", str(given.ocean + 1)),
            start("ocean.py", given.ocean, pool.url, *steps, "--takers", str(given.atmosphere + 1)),
        )
        left = [entry.key for entry in pool.list()]
        print(f"together: {failed} failed; left in the pool: {', '.join(left) or 'nothing'}", flush=True)
        if failed == 0:
            failed += together(start("atmosphere.py", given.ocean, pool.url, *steps, *recorded))
            failed += together(start("ocean.py", given.atmosphere, pool.url, *steps, *recorded))
            print(f"each alone, with the other's number of ranks: {failed} failed", flush=True)
    if given.picture is not None:
        draw(given.picture, given.steps, given.atmosphere, given.ocean)
        print(f"picture: {given.picture}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
