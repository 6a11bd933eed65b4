"""Writers and readers of each interface, with both families of MPI, in all pairs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import junctura
import numpy as np
import pytest
from mpi_programs import FAMILIES, KINDS, grid, missing, of_python, ranks

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SIDES = [(kind, family) for family in FAMILIES for kind in KINDS]
FIELD = np.arange(60 * 48, dtype="f8").reshape(60, 48)
WHY = missing("mpicc.openmpi", "mpicc.mpich", "mpif90.openmpi", "mpif90.mpich")


def surroundings(kind: str, family: str, made: Path) -> dict[str, str]:
    return of_python(family, made) if kind == "mpi4py" else {}


@pytest.mark.skipif(bool(WHY), reason=WHY)
@pytest.mark.parametrize("mode", ["array", "bytes"])
def test_all_pairs_of_writers_and_readers(
    mode: str, made: Path, client: junctura.Pool, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    names = []
    for kind, family in SIDES:
        name = f"{kind}-{family}.{mode}"
        words = ranks(family, 4, *grid(family, kind, made), "write", name)
        run(words, intercepted, **surroundings(kind, family, made))
        names.append(name)
    for kind, family in SIDES:
        words = ranks(family, 3, *grid(family, kind, made), "read", *names)
        said = run(words, intercepted, **surroundings(kind, family, made)).stdout.splitlines()
        assert sorted(said) == sorted(f"{name}: 0 wrong" for name in names), (kind, family)
    # Python and others take them without MPI.
    for name in names:
        array = client.demand_array(name=name, space=str(tmp_path))
        if mode == "array":
            assert (array.dtype, array.shape) == (FIELD.dtype, FIELD.shape)
        assert array.tobytes() == FIELD.tobytes()
    # No file was written.
    assert list(tmp_path.iterdir()) == []


def test_a_reader_starts_first(
    family: str, made: Path, pool: str, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    words = ranks(family, 2, *grid(family, "c", made), "read", "later.array")
    with subprocess.Popen(words, env=intercepted, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as reader:
        run(ranks(family, 3, *grid(family, "c", made), "write", "later.array"), intercepted)
        assert reader.communicate(timeout=120)[0] == "later.array: 0 wrong\n"


@pytest.mark.parametrize(("writers", "readers"), [(2, 1), (1, 4), (5, 2)])
def test_other_numbers_of_ranks(
    writers: int, readers: int, family: str, made: Path, intercepted: dict[str, str], run: Run
) -> None:
    program = grid(family, "c", made)
    run(ranks(family, writers, *program, "write", "a.array", "b.bytes"), intercepted)
    said = run(ranks(family, readers, *program, "read", "a.array", "b.bytes"), intercepted).stdout
    assert said == "a.array: 0 wrong\nb.bytes: 0 wrong\n"


def test_a_file_is_written_again(family: str, made: Path, intercepted: dict[str, str], run: Run) -> None:
    program = grid(family, "c", made)
    for _ in range(3):
        run(ranks(family, 2, *program, "write", "a.array"), intercepted)
    assert run(ranks(family, 2, *program, "read", "a.array"), intercepted).stdout == "a.array: 0 wrong\n"


def test_files_without_a_rule_are_files(
    family: str, made: Path, client: junctura.Pool, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    program = grid(family, "c", made)
    run(ranks(family, 2, *program, "write", "plain.dat"), intercepted)
    assert (tmp_path / "plain.dat").read_bytes() == FIELD.tobytes()
    assert run(ranks(family, 2, *program, "read", "plain.dat"), intercepted).stdout == "plain.dat: 0 wrong\n"
    assert client.list() == []


def test_without_a_pool_files_are_files(
    family: str, made: Path, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    program = grid(family, "c", made)
    done = run(ranks(family, 2, *program, "write", "a.array"), intercepted, JUNCTURA_POOL="unix:/nowhere/pool")
    assert "files are not intercepted" in done.stderr
    assert (tmp_path / "a.array").read_bytes() == FIELD.tobytes()


def test_a_reader_names_what_it_waited_for(family: str, made: Path, intercepted: dict[str, str], run: Run) -> None:
    words = ranks(family, 2, *grid(family, "c", made), "read", "never.array")
    done = run(words, intercepted, code=1, JUNCTURA_MPI_IO_TIMEOUT="0.2")
    assert "never.array" in done.stderr and "junctura-mpiio" in done.stderr
