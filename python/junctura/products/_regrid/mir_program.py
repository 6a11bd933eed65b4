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
import numpy.typing as npt


def read_matrix(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Reads a sparse matrix of MIR: a stream of eckit with its sizes, the form of its numbers, and three arrays.

    `mir.weight_matrix` reads it, too, but imports SciPy, which takes longer than to make most matrices.

    Returns
    -------
    dict
        `starts`, `columns` and `weights` of the compressed rows, and `shape`.

    """
    from eckit.stream import Stream

    with path.open("rb") as file:
        stream = Stream(file)
        shape = stream.read_unsigned_long(), stream.read_unsigned_long()
        count = stream.read_unsigned_long()
        order = "<" if stream.read_int() else ">"
        index_bytes, weight_bytes = stream.read_unsigned_long(), stream.read_unsigned_long()
        stream.read_unsigned_long()  # bytes of a size
        index, weight = np.dtype(f"{order}u{index_bytes}"), np.dtype(f"{order}f{weight_bytes}")
        starts, columns, weights = (np.frombuffer(stream.read_large_blob(), kind) for kind in (index, index, weight))
    if len(starts) != shape[0] + 1 or not len(columns) == len(weights) == count:
        sys.exit("MIR wrote a matrix whose sizes contradict each other")
    # Columns of a row stay in MIR's order: sums in another order would have other bits.
    return {
        "starts": starts.astype(np.int64),
        "columns": columns.astype(np.uint32),
        "weights": weights.astype(np.float64),
        "shape": np.array(shape),
    }


def weights(task: dict[str, Any], folder: Path) -> dict[str, npt.NDArray[Any]]:
    """Returns the matrix of a task, as MIR writes it beside an interpolation of zeros."""
    import mir

    path = folder / "weights.mat"
    job = mir.Job()
    for name, value in {**task["options"], "interpolation-matrix": str(path)}.items():
        job.set(name, value)
    job.execute(mir.GridSpecInput(json.dumps(task["source"])), mir.EmptyOutput())
    if not path.exists():
        sys.exit("MIR made no matrix")
    return read_matrix(path)


def main() -> int:
    """Reads a task, writes a matrix."""
    target = Path(sys.argv[1])
    # Output of MIR is for debugging.
    os.dup2(2, 1)
    parts: dict[str, Any] = weights(json.load(sys.stdin), target.parent)
    np.savez(target, **parts)
    return 0


if __name__ == "__main__":
    # The folder of this file must not be on the import path.
    del sys.path[0]
    sys.exit(main())
