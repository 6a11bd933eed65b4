"""Long and short runs of bytes, from arrays whose rows are longer and shorter than what is received at once."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np
import pytest
from mpi_programs import compile_c, ranks

import junctura

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ROW = 2 << 20


@pytest.mark.parametrize(
    "shape",
    [(7,), (1_500_003,), (3, 700_001), (2, 3, 600_000), (3, 1_300_000), (5, 400_003), (900, 1000, 2)],
    ids=str,
)
def test_runs_of_any_length(
    shape: tuple[int, ...],
    family: str,
    made: Path,
    client: junctura.Pool,
    intercepted: dict[str, str],
    run: Run,
    tmp_path: Path,
) -> None:
    rows = f"shape={'x'.join(map(str, shape))} grid={'x'.join(['2', *['1'] * (len(shape) - 1)])}"
    layout, field = junctura.Layout(rows), np.arange(prod(shape), dtype="i4").reshape(shape)
    for rank, mine in enumerate(np.split(field, [(shape[0] + 1) // 2])):
        client.offer_piece(mine, layout, rank, space=str(tmp_path), name="runs.bytes", interface="mpi-io")
    size, rng = field.nbytes, random.Random(prod(shape))
    lengths = [0, 1, 4, 1000, ROW - 4, ROW, ROW + 4, ROW + 5, 2 * ROW, size // 2, size]
    runs = [(0, size), (1, size - 1), (size - 1, 1), (size - size // 3, size // 3)]
    for length in [length for length in lengths if length <= size]:
        runs += [(rng.randint(0, (size - length) // step) * step, length) for step in (1, 4, 4 * shape[-1])]
    words = [str(number) for pair in runs for number in pair]
    program = compile_c(family, "runs", made)
    assert run(ranks(family, 1, program, "runs.bytes", *words), intercepted).stdout == "0 wrong\n"
