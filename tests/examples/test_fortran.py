"""Two coupled models in Fortran, on 2 and 3 ranks, run as a workflow."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/14_fortran"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "ci")
STEPS = 20
# Of each model.
COUPLING_LINES = 30

pytestmark = pytest.mark.skipif(
    any(shutil.which(program) is None for program in ("gfortran", "pkg-config")),
    reason="gfortran or pkg-config is not installed: tools/setup.sh dev",
)


def without_ranks() -> tuple[np.ndarray, np.ndarray]:
    """Both fields behind the last step."""
    i, j = np.arange(1, 121)[:, None], np.arange(1, 91)[None, :]
    sst = 10 + 0.01 * i * j
    wind = 5 - 0.02 * np.arange(1, 61)[:, None] * np.arange(1, 46)[None, :]
    for _ in range(STEPS):
        mean = 0.25 * (((sst[::2, ::2] + sst[1::2, ::2]) + sst[::2, 1::2]) + sst[1::2, 1::2])
        sst, wind = 0.9 * sst + 0.1 * wind.repeat(2, axis=0).repeat(2, axis=1), 0.5 * wind + 0.5 * mean
    return sst, wind


def test_each_rank_has_what_a_run_without_ranks_has(tmp_path: Path) -> None:
    subprocess.run([ROOT / "tools/install_c.sh", tmp_path / "prefix", BUILT], check=True)
    environment = {**os.environ, "PKG_CONFIG_PATH": str(tmp_path / "prefix/lib/pkgconfig")}
    command: list[str | Path] = [BUILT / "junctura", "run", EXAMPLE / "coupled.yaml", "--run-dir", tmp_path / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sst, wind = without_ranks()
    for rank in range(2):
        mine = np.fromfile(tmp_path / f"run/sst.{rank}").reshape(120, 45, order="F")
        assert np.array_equal(mine, sst[:, 45 * rank : 45 * rank + 45])
    for rank in range(3):
        mine = np.fromfile(tmp_path / f"run/wind.{rank}").reshape(20, 45, order="F")
        assert np.array_equal(mine, wind[20 * rank : 20 * rank + 20])


@pytest.mark.parametrize("model", ["ocean", "atmosphere"])
def test_coupling_takes_few_lines(model: str) -> None:
    lines = (EXAMPLE / f"{model}.f90").read_text().splitlines()
    assert sum("! coupling" in line for line in lines[2:]) < COUPLING_LINES
    calls = [line for line in lines if "%open" in line or "%set(" in line or "%put(" in line or "%get(" in line]
    assert all("! coupling" in line for line in calls)
