"""The program that makes interpolation weights with MIR, beside the one that wants them.

MIR writes to the standard output when it likes, ends the process where something is very wrong, and makes forked
children of a process that has used it hang. None of that belongs into a worker, so it is done in a child, which gets
its task as JSON on its standard input and the name of the file that the matrix goes to.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


def weights(task: dict[str, Any], folder: Path) -> Any:
    """The matrix of a task, as MIR writes it beside an interpolation of nothing."""
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
    # Whatever MIR prints is for those who look for a mistake.
    os.dup2(2, 1)
    matrix = weights(json.load(sys.stdin), target.parent)
    # Columns of a row stay in MIR's order: sums in another one would have other bits.
    parts = {"starts": matrix.indptr, "columns": matrix.indices, "weights": matrix.data}
    np.savez(target, **parts, shape=np.array(matrix.shape))
    return 0


if __name__ == "__main__":
    # The folder of this file is no place for imports.
    del sys.path[0]
    sys.exit(main())
