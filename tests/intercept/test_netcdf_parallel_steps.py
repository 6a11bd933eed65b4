"""A step that several ranks write is visible as a whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from netcdf_programs import AS_ROOT, MPIRUN, PROGRAMS, need, run

import junctura

GONE = "Junctura: the program that writes this file ended before it closed the file"
STEP = {"time", "field", "total"}
ROWS, COLUMNS, STEPS, RANKS = 6, 10, 2, 2


@pytest.fixture
def client(environment: dict[str, str], pool: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[junctura.Pool]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    with junctura.Pool(pool) as opened:
        yield opened


@pytest.fixture(scope="session")
def killing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that kills a rank before one of its collective calls."""
    need("mpicc.openmpi")
    library = tmp_path_factory.mktemp("killing") / "libkill.so"
    words = ["mpicc.openmpi", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*words, str(PROGRAMS / "parallel_kill.c"), "-o", str(library)], check=True)
    return library


def steps_of(client: junctura.Pool, file: str) -> dict[int, set[str]]:
    """The variables of each record that is visible."""
    found: dict[int, set[str]] = {}
    for entry in client.list(f"file={file}, exists(record)"):
        found.setdefault(int(entry["record"]), set()).add(entry["name"])
    return found


def field(step: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return (step * 1000 + np.arange(ROWS)[:, None] * 100 + np.arange(COLUMNS)[None, :]).astype("f4")


def test_all_arrays_of_a_step_become_visible_together(
    compiled: Callable[..., Path], intercepted: dict[str, str], client: junctura.Pool, tmp_path: Path
) -> None:
    need(MPIRUN[0])
    preload = ("-x", f"LD_PRELOAD={intercepted.pop('LD_PRELOAD')}")
    words = [*MPIRUN, "-n", 3, *preload, compiled("parallel_writer.c"), "pool.nc", STEPS, "collective", 0]
    versions: dict[int, list[int]] = {}
    with client.follow("file=pool.nc, exists(record)") as items:
        run(*words, folder=tmp_path, environment={**intercepted, **AS_ROOT})
        while sum(map(len, versions.values())) < STEPS * len(STEP):
            item = items.next(timeout=60)
            versions.setdefault(int(item["record"]), []).append(item.version.sequence)
    # Three arrays, the pieces of two of them, and the state: consecutive versions, from one event.
    for sequences in versions.values():
        assert max(sequences) - min(sequences) < 3 + 3 + 1
    for step in range(STEPS):
        np.testing.assert_array_equal(client.demand_array(f"name=field, record={step}", timeout=0), field(step))


READER = """
import netCDF4, numpy as np
with netCDF4.Dataset("pool.nc") as file:
    field = file["field"]
    total = 0
    for step in range(2):
        for first in (0, 2, 4):
            total += field[step, first : first + 2, :3].sum() + field[step, first : first + 2, 3:].sum()
    print(int(total))
"""


def test_a_reader_of_many_parts_releases_an_array_once(
    compiled: Callable[..., Path], intercepted: dict[str, str], client: junctura.Pool, tmp_path: Path
) -> None:
    need(MPIRUN[0])
    (tmp_path / "map").write_text("retention = released:1\n")
    (tmp_path / "reader.py").write_text(READER)
    preload = ("-x", f"LD_PRELOAD={intercepted['LD_PRELOAD']}")
    plain = {name: value for name, value in {**intercepted, **AS_ROOT}.items() if name != "LD_PRELOAD"}
    words = [*MPIRUN, "-n", RANKS, *preload, compiled("parallel_writer.c"), "pool.nc", STEPS, "collective", 0]
    run(*words, folder=tmp_path, environment={**plain, "JUNCTURA_NETCDF_MAP": str(tmp_path / "map")})
    told = run(sys.executable, "reader.py", folder=tmp_path, environment=intercepted)
    assert int(told) == sum(int(field(step).sum()) for step in range(STEPS))
    client.sync()
    assert steps_of(client, "pool.nc") == {step: STEP - {"field"} for step in range(STEPS)}


@pytest.mark.parametrize("killed", range(RANKS))
def test_a_rank_that_is_killed_between_any_two_calls_leaves_whole_steps(
    killed: int,
    compiled: Callable[..., Path],
    killing: Path,
    intercepted: dict[str, str],
    client: junctura.Pool,
    tmp_path: Path,
) -> None:
    need(MPIRUN[0])
    program, seen = compiled("parallel_writer.c"), set()
    preload = ("-x", f"LD_PRELOAD={intercepted['LD_PRELOAD']}:{killing}")
    plain = {name: value for name, value in {**intercepted, **AS_ROOT}.items() if name != "LD_PRELOAD"}
    for call in count(1):
        file = f"pool-{call}.nc"
        words = [*MPIRUN, "-n", RANKS, *preload, program, file, STEPS, "collective", 0]
        killing_it = {**plain, "KILLED_RANK": str(killed), "KILLED_AT": str(call)}
        done = subprocess.run(
            [str(word) for word in words], cwd=tmp_path, env=killing_it, capture_output=True, timeout=120, check=False
        )
        steps = steps_of(client, file)
        assert set(steps) == set(range(len(steps)))
        for step, variables in steps.items():
            assert variables == STEP, f"killed before call {call}"
            found = client.demand_array(f"file={file}, name=field, record={step}", timeout=0)
            np.testing.assert_array_equal(found, field(step))
        seen.add(len(steps))
        if done.returncode == 0:
            break
        if len(steps) == 1 and client.list(f"file={file}, name=.definitions"):
            # A reader gets the steps that there are, and then the error.
            reader = ["ncdump", "-v", "time", file]
            told = subprocess.run(reader, cwd=tmp_path, env=intercepted, capture_output=True, text=True, check=False)
            assert told.returncode != 0 and GONE in told.stderr
    assert seen == set(range(STEPS + 1))
