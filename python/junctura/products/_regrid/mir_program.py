"""The program that makes interpolation weights with MIR, in a process of its own.

MIR writes to standard output, exits the process on serious errors, and makes forked children of a process that has used
it hang. A worker cannot tolerate that, so MIR runs in a child, which receives its task as JSON on standard input, with
the path of the file for the matrix.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


def weights(task: dict[str, Any], folder: Path) -> Any:
    """Returns the matrix of a task, as MIR writes it beside an interpolation of zeros."""
    import mir
    from mir.weight_matrix import WeightMatrix

    path = folder / "weights.mat"
    job = mir.Job()
    for name, value in {**task["options"], "interpolation-matrix": str(path)}.items():
        job.set(name, value)
    job.execute(mir.GridSpecInput(json.dumps(task["source"])), mir.EmptyOutput())
    if not path.exists():
        sys.exit("MIR made no matrix")
    return WeightMatrix.from_mat(path).to_csr()


def main() -> int:
    """Reads a task, writes a matrix."""
    target = Path(sys.argv[1])
    # Output of MIR is for debugging.
    os.dup2(2, 1)
    matrix = weights(json.load(sys.stdin), target.parent)
    # Columns of a row stay in MIR's order: sums in another order would have other bits.
    parts = {"starts": matrix.indptr, "columns": matrix.indices, "weights": matrix.data}
    np.savez(target, **parts, shape=np.array(matrix.shape))
    return 0


if __name__ == "__main__":
    # The folder of this file must not be on the import path.
    del sys.path[0]
    sys.exit(main())
