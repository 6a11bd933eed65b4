"""A hundred sequences of random types, views and calls, byte for byte against the file of the real library."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from mpi_programs import FAMILIES, compile_c, missing, ranks

import junctura

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FILES, AT_ONCE, RANKS = 100, 10, 3
# OMPIO of Open MPI 4.1 fails on some of the patterns; what is written is compared with ROMIO's.
WHY = missing("mpicc.mpich")


def lines(folder: Path, prefix: str) -> list[list[str]]:
    """What each rank saw."""
    return [(folder / f"{prefix}rank-{rank}.log").read_text().splitlines() for rank in range(RANKS)]


@pytest.mark.skipif(bool(WHY), reason=WHY)
@pytest.mark.parametrize("first", range(0, FILES, AT_ONCE))
def test_random_patterns(
    first: int,
    made: Path,
    client: junctura.Pool,
    environment: dict[str, str],
    intercepted: dict[str, str],
    run: Run,
    tmp_path: Path,
) -> None:
    last = first + AT_ONCE
    program = compile_c("mpich", "patterns", made)
    run(ranks("mpich", RANKS, program, "real-", first, last, ".bytes"), environment)
    for family in FAMILIES:
        if missing(f"mpicc.{family}"):
            continue
        words = ranks(family, RANKS, compile_c(family, "patterns", made), f"{family}-", first, last, ".bytes")
        run(words, intercepted)
        assert lines(tmp_path, f"{family}-") == lines(tmp_path, "real-")
        for number in range(first, last):
            name = f"{family}-{number}.bytes"
            held = client.demand_array(name=name, space=str(tmp_path), timeout=60)
            assert held.tobytes() == (tmp_path / f"real-{number}.bytes").read_bytes(), name
            client.withdraw_all(f"name={name}")
