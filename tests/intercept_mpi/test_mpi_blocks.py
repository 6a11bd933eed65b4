"""Arrays that are distributed in blocks: the ranks that read them have another grid, another block, or other views."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mpi_programs import compile_c, ranks

import junctura

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("mode", ["array", "bytes"])
@pytest.mark.parametrize(
    ("shape", "writers", "block", "readers", "wanted", "order"),
    [
        ((64, 48), (4, 3), 4, (2, 2), 4, "C"),
        ((37, 53), (2, 3), 5, (3, 1), 7, "C"),
        ((37, 53), (3, 2), 5, (2, 2), 3, "F"),
        ((16, 16), (1, 1), 16, (4, 4), 1, "C"),
    ],
)
def test_grids_of_blocks(
    shape: tuple[int, int],
    writers: tuple[int, int],
    block: int,
    readers: tuple[int, int],
    wanted: int,
    order: str,
    mode: str,
    family: str,
    made: Path,
    client: junctura.Pool,
    intercepted: dict[str, str],
    run: Run,
    tmp_path: Path,
) -> None:
    program, name = compile_c(family, "cyclic", made), f"blocks.{mode}"
    words = [program, "write", name, *shape, *writers, block, order]
    assert run(ranks(family, writers[0] * writers[1], *words), intercepted).stdout == "0 wrong\n"
    words = [program, "read", name, *shape, *readers, wanted, order]
    assert run(ranks(family, readers[0] * readers[1], *words), intercepted).stdout == "0 wrong\n"
    held = client.demand_array(name=name, space=str(tmp_path), timeout=10)
    field = np.arange(shape[0] * shape[1], dtype="i4")
    assert held.tobytes() == field.tobytes()
    if mode == "array":
        # Dimensions are in the order of the file: the slowest first.
        assert held.shape == (shape if order == "C" else shape[::-1])
