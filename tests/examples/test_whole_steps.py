"""The example of whole steps, with few ranks and one."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/03_bundles/whole_steps.py"


@pytest.mark.parametrize(("ranks", "steps"), [(1, 1), (3, 4)])
def test_every_step_is_whole(ranks: int, steps: int) -> None:
    command = [sys.executable, str(EXAMPLE), "--ranks", str(ranks), "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{steps} whole steps"
