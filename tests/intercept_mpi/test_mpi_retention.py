"""Files that the pool removes when as many ranks have read them as their retention states: each rank counts once."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mpi_programs import compile_c, grid, ranks

import junctura

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("mode", ["array", "bytes"])
@pytest.mark.parametrize("readers", [1, 3])
def test_a_file_is_removed_when_all_ranks_have_closed_it(
    readers: int, mode: str, family: str, made: Path, client: junctura.Pool, intercepted: dict[str, str], run: Run
) -> None:
    program, name = grid(family, "c", made), f"a.{mode}"
    run(ranks(family, 4, *program, "write", name), intercepted, JUNCTURA_MPI_IO_RETENTION=f"released:{readers}")
    assert len(client.list("interface=mpi-io")) == 1
    done = run(ranks(family, readers, *program, "read", name), intercepted)
    assert done.stdout == f"{name}: 0 wrong\n"
    assert "junctura" not in done.stderr
    client.sync()
    assert client.list() == []


@pytest.mark.parametrize("rows", [5, 900_001])
def test_many_reads_of_a_rank_count_once(
    rows: int, family: str, made: Path, client: junctura.Pool, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    field = np.arange(rows * 3, dtype="i4").reshape(rows, 3)
    layout = junctura.Layout(f"shape={rows}x3 grid=2x1")
    for rank, mine in enumerate(np.split(field, [(rows + 1) // 2])):
        client.offer_piece(
            mine, layout, rank, space=str(tmp_path), name="runs.bytes", interface="mpi-io", retention="released:1"
        )
    rng = random.Random(rows)
    starts = [rng.randrange(field.nbytes) for _ in range(4)]
    runs = [(0, field.nbytes), *((start, rng.randint(0, field.nbytes - start)) for start in starts)]
    words = [str(number) for pair in runs for number in pair]
    program = compile_c(family, "runs", made)
    assert run(ranks(family, 1, program, "runs.bytes", *words), intercepted).stdout == "0 wrong\n"
    client.sync()
    assert client.list() == []


def test_a_writer_that_reads_its_own_array_is_no_reader(
    family: str, made: Path, client: junctura.Pool, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    program = compile_c(family, "again", made)
    run(ranks(family, 2, program, "a.array"), intercepted, JUNCTURA_MPI_IO_RETENTION="released:1")
    assert client.demand_array(name="a.array", space=str(tmp_path), timeout=10).size == 48
