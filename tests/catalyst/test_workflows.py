"""The example: one solver, whose pictures are drawn from files, in its own process and from the pool."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import ROOT, has
from catalyst_programs import CatalystBuild
from mesh_payload import parse

import junctura

EXAMPLE = ROOT / "examples/15_mesh_in_transit"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader"}
Wave = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="session")
def built(catalyst: CatalystBuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The solver, and the implementation of Catalyst that calls Python."""
    folder = tmp_path_factory.mktemp("wave")
    environment = {**os.environ, "CC": "gcc", "MPICC": "mpicc.mpich"}
    subprocess.run([EXAMPLE / "build.sh", folder, catalyst.folder], check=True, env=environment)
    return folder


@pytest.fixture
def variables(built: Path, catalyst: CatalystBuild, environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """What both the solver and viewers need."""
    return {
        **environment,
        **AS_ROOT,
        "CATALYST_IMPLEMENTATION_PATHS": f"{built}/catalyst:{catalyst.implementation.parent}",
        "WAVE_PYTHON": sys.executable,
        "WAVE_OUT": str(tmp_path / "out"),
        "PYTHONPATH": str(Path(junctura.__file__).parents[1]),
        "JUNCTURA_POOL": "unix:test",
    }


def needs_pyvista() -> None:
    if importlib.util.find_spec("pyvista") is None:
        pytest.skip("pyvista is not installed: tools/setup.sh dev")


def wave(built: Path, ranks: int, variables: dict[str, str], *words: object, **more: str) -> str:
    """Runs the solver; its output."""
    start = ["mpiexec.mpich", "-n", str(ranks), str(built / "wave_mpi")] if ranks > 1 else [str(built / "wave")]
    command = [*start, *map(str, words)]
    done = subprocess.run(command, env={**variables, **more}, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stderr, done.stderr
    return done.stdout


def steps_of(pool: junctura.Pool, case: str) -> dict[int, list[Any]]:
    """The trees of each step, by rank."""
    found: dict[int, list[Any]] = {}
    for entry in pool.list(f"case={case},part=fields", order_by="step"):
        selector = f"case={case},rank={entry['rank']}"
        with (
            pool.demand(f"{selector},part=fields,step={entry['step']}", timeout=0) as step,
            pool.demand(f'{selector},part=mesh,mesh="{step["mesh"]}"', timeout=0) as mesh,
        ):
            tree = parse(bytes(memoryview(step)), bytes(memoryview(mesh)))
        found.setdefault(entry["step"], []).append((entry["rank"], tree))
    return {step: [tree for _, tree in sorted(trees, key=lambda part: part[0])] for step, trees in found.items()}


def pressure(trees: list[Any], n: int) -> np.ndarray:
    """The pressure on all points of the duct; blocks and ranks share planes, which must be equal."""
    planes: list[np.ndarray] = []
    for tree in trees:
        for name, mesh in tree.items():
            block = mesh["fields"]["pressure"]["values"].reshape(-1, n, n)
            if planes and name:
                np.testing.assert_array_equal(planes[-1], block[0])
            planes += list(block[1:] if planes else block)
    return np.stack(planes)


def test_ranks_do_not_change_the_result(pool: junctura.Pool, built: Path, variables: dict[str, str]) -> None:
    if not has("mpicc.mpich"):
        pytest.skip("mpicc.mpich is not installed: tools/setup.sh dev")
    n = 12
    for ranks in (1, 3, 4):
        options = {"CATALYST_IMPLEMENTATION_NAME": "junctura", "JUNCTURA_CATALYST": f"case=on{ranks}"}
        wave(built, ranks, variables, n, 3, 8, **options)
    one = steps_of(pool, "on1")
    for ranks in (3, 4):
        other = steps_of(pool, f"on{ranks}")
        assert sorted(other) == [0, 1, 2]
        for step, trees in other.items():
            assert len(trees) == ranks
            np.testing.assert_array_equal(pressure(trees, n), pressure(one[step], n))


def test_the_wave_is_that_of_the_equation(pool: junctura.Pool, built: Path, variables: dict[str, str]) -> None:
    """The same scheme in NumPy."""
    n, steps, substeps = 12, 2, 5
    wave(built, 1, variables, n, steps, substeps, CATALYST_IMPLEMENTATION_NAME="junctura")
    h = 1 / (n - 1)
    z, y, x = (np.indices((2 * n, n, n)) * h) - 0.5
    r2 = x * x + y * y + z * z
    now = np.where(r2 < 0.04, 1 - 25 * r2, 0.0)
    before = now.copy()
    inside = (slice(1, -1),) * 3
    for step in range(steps):
        for _ in range(substeps):
            after = np.zeros_like(now)
            near = sum(np.roll(now, shift, axis)[inside] for axis in range(3) for shift in (1, -1))
            after[inside] = 2 * now[inside] - before[inside] + 0.25 * (near - 6 * now[inside])
            before, now = now, after
        np.testing.assert_allclose(pressure(steps_of(pool, "wave")[step], n), now, atol=1e-13)


def test_three_ways_draw_the_same_pictures(
    pool: junctura.Pool, built: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    needs_pyvista()
    case = (10, 3, 5)
    for script in ("to_files", "in_situ"):
        where = {"WAVE_SCRIPT": str(EXAMPLE / f"{script}.py"), "WAVE_OUT": str(tmp_path / script)}
        wave(built, 1, variables, *case, CATALYST_IMPLEMENTATION_NAME="python", **where)
    words = [
        sys.executable,
        str(EXAMPLE / "from_files.py"),
        str(tmp_path / "to_files"),
        "--out",
        str(tmp_path / "files"),
    ]
    subprocess.run(words, env=variables, check=True, timeout=300, stdout=subprocess.DEVNULL)
    words = [sys.executable, str(EXAMPLE / "from_pool.py"), "--pool", "unix:test", "--out", str(tmp_path / "pool")]
    with subprocess.Popen([*words, "--last", "2"], env=variables, stdout=subprocess.PIPE, text=True) as viewer:
        assert viewer.stdout is not None
        assert viewer.stdout.readline() == "ready\n"
        wave(built, 1, variables, *case, CATALYST_IMPLEMENTATION_NAME="junctura")
        assert viewer.wait(timeout=300) == 0
    steps = set()
    for step in range(3):
        name = f"wave-{step:04}.png"
        pictures = [(tmp_path / way / name).read_bytes() for way in ("files", "in_situ", "pool")]
        assert pictures[0] == pictures[1] == pictures[2]
        steps.add(pictures[0])
    assert len(steps) == 3
    assert pool.list("part=fields") != []


def test_a_killed_viewer_of_several_ranks_goes_on(
    pool: junctura.Pool, built: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    needs_pyvista()
    if not has("mpicc.mpich"):
        pytest.skip("mpicc.mpich is not installed: tools/setup.sh dev")
    words = [sys.executable, str(EXAMPLE / "from_pool.py"), "--pool", "unix:test", "--out", str(tmp_path)]
    with subprocess.Popen(words, env=variables, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        options = {"CATALYST_IMPLEMENTATION_NAME": "junctura", "JUNCTURA_CATALYST": "case=wave"}
        wave(built, 4, variables, 12, 1, 4, **options)
        assert first.stdout.readline() == "step 0\n"
        first.kill()
    # The simulation, too, is started again: the step that was offered stays, and the others follow.
    wave(built, 4, variables, 12, 4, 4, **options)
    second = subprocess.run(
        [*words, "--last", "3"], env=variables, capture_output=True, text=True, timeout=300, check=True
    )
    assert second.stdout == "ready\nstep 1\nstep 2\nstep 3\n"
    assert sorted(picture.name for picture in tmp_path.glob("*.png")) == [f"wave-{step:04}.png" for step in range(4)]
    assert len(pool.list("case=wave,part=fields")) == 16
