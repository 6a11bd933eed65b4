"""Two coupled programs of MPI, together and alone."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "examples/10_coupled/run.py"


@pytest.mark.parametrize(("atmosphere", "ocean"), [(3, 2), (1, 4)])
def test_each_rank_has_what_a_run_without_ranks_has(atmosphere: int, ocean: int, tmp_path: Path) -> None:
    picture = tmp_path / "coupled.png"
    options = ["--atmosphere", str(atmosphere), "--ocean", str(ocean), "--steps", "6", "--picture", str(picture)]
    done = subprocess.run([sys.executable, str(RUN), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" 0 elements differ") == 4, done.stdout
    assert picture.stat().st_size > 10_000
