"""Calls that files in the pool do not have, and programs that mean no file in the pool."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mpi_programs import BUILT, compile_c, compile_static, grid, of_python, ranks

import junctura

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_what_is_not_intercepted_has_an_error_or_a_file(
    family: str, made: Path, client: junctura.Pool, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    done = run(ranks(family, 2, compile_c(family, "shared", made), "a.bytes"), intercepted)
    assert sorted(done.stdout.splitlines()) == ["rank 0: 0 failures", "rank 1: 0 failures"]
    assert "another representation than native" in done.stderr
    assert "MPI_File_write_shared" in done.stderr
    assert "use the mode `file`" in done.stderr
    assert client.list() == []
    assert (tmp_path / "a.bytes").stat().st_size == 8


def test_each_process_reports(family: str, made: Path, intercepted: dict[str, str], run: Run, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    words = ranks(family, 3, *grid(family, "c", made), "write", "a.array", "plain.dat")
    run(words, intercepted, JUNCTURA_INTERCEPT_REPORT=str(reports))
    said = [json.loads(each.read_text()) for each in reports.glob("*.json")]
    assert sorted(one["rank"] for one in said) == [0, 1, 2]
    rows = [row for one in said for row in one["files"]]
    assert {(row["path"], row["mode"]) for row in rows} == {(str(tmp_path / "a.array"), "array"), ("plain.dat", "file")}
    assert sum(row["offered_bytes"] for row in rows) == 60 * 48 * 8


def test_a_program_without_rules_is_unchanged(
    family: str, made: Path, environment: dict[str, str], preload: str, run: Run, tmp_path: Path
) -> None:
    words = ranks(family, 2, *grid(family, "c", made), "write", "a.array")
    plain = {**environment, "LD_PRELOAD": preload}
    assert "junctura" not in run(words, plain).stderr
    assert (tmp_path / "a.array").stat().st_size == 60 * 48 * 8
    # Neither does a program without MPI notice the library.
    assert run(["/bin/echo", "hello"], {**plain, "JUNCTURA_MPI_IO": "*=array"}).stdout == "hello\n"


@pytest.mark.parametrize("name", ["plain.dat", "a.array"])
def test_python_finds_the_forms_of_large_counts_that_its_mpi_lacks(
    name: str,
    family: str,
    made: Path,
    intercepted: dict[str, str],
    preload: str,
    client: junctura.Pool,
    run: Run,
    tmp_path: Path,
) -> None:
    """mpi4py calls MPI_File_write_all_c where a library has it, and one that is preloaded has it."""
    if (family, name) == ("mpich", "plain.dat"):
        pytest.skip("MPICH 4.0.2 itself cannot write through the view of mpi4py, also without a preload")
    alone = next(one for one in preload.split() if family in Path(one).name)
    words = ranks(family, 2, *grid(family, "mpi4py", made))
    more = {**of_python(family, made), "LD_PRELOAD": alone}
    run([*words, "write", name], intercepted, **more)
    assert run([*words, "read", name], intercepted, **more).stdout == f"{name}: 0 wrong\n"
    assert (tmp_path / name).exists() == (name == "plain.dat")
    assert len(client.list()) == (name == "a.array")


@pytest.mark.parametrize("count", [1, 2, 4])
def test_several_files_are_open_at_once(
    count: int, family: str, made: Path, client: junctura.Pool, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    program = compile_c(family, "several", made)
    for what in ("write", "read"):
        run([*ranks(family, count, program), what], intercepted)
    assert [found.name for found in tmp_path.iterdir()] == ["plain.dat"]
    names = {"first.array", "second.array", "steps.bytes"}
    names |= {f"half{half}.array" for half in range(min(count, 2))} | {f"own{rank}.bytes" for rank in range(count)}
    for name in names:
        held = client.demand_array(name=name, space=str(tmp_path), timeout=10)
        assert held.nbytes == 4 * 12 * 4 * (3 if name.endswith(".bytes") else 1)
    assert (tmp_path / "plain.dat").stat().st_size == 4 * 12 * 4 * 3


def test_an_array_that_is_written_again_becomes_bytes(
    family: str, made: Path, client: junctura.Pool, intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    done = run(ranks(family, 2, compile_c(family, "again", made), "a.array"), intercepted)
    assert "was written again after its array was offered" in done.stderr
    wanted = np.arange(48, dtype="i4")
    wanted[3] = -1
    held = client.demand_array(name="a.array", space=str(tmp_path), timeout=10)
    assert held.tobytes() == wanted.tobytes()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/usr/lib/x86_64-linux-gnu/libmpich.a").exists(), reason="there is no static MPI here")
def test_a_program_with_a_static_mpi_is_refused(environment: dict[str, str], run: Run, tmp_path: Path) -> None:
    program = compile_static("grid", tmp_path)
    assert run([str(program), "write", "plain.dat"], environment).returncode == 0
    subprocess.run(["strip", str(program)], check=True)
    words = [str(BUILT / "junctura"), "with", "--mpi-io", "*.array=array", "--", *ranks("mpich", 2, program)]
    done = run([*words, "write", "a.array"], environment, code=1)
    assert f"Unsupported: {program}: MPI is statically linked into it" in done.stderr
