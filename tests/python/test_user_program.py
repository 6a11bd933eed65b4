"""A program of a user, outside of this repository: its style is clean, and it runs. `make lint` checks its types."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import junctura

PROGRAM = Path(__file__).parent / "user/program.py"


def test_it_uses_every_public_name() -> None:
    text = PROGRAM.read_text()
    missing = [name for name in junctura.__all__ if f"junctura.{name}" not in text]
    missing += [f"aio.{name}" for name in junctura.aio.__all__ if f"junctura.aio.{name}" not in text]
    missing += [f"remap.{name}" for name in junctura.remap.__all__ if f"junctura.remap.{name}" not in text]
    assert missing == []


@pytest.mark.parametrize(
    "command",
    [
        [
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--select",
            "E,F,B,UP,SIM,N,D1,ANN,RET,PERF",
            "--line-length",
            "120",
            ".",
        ],
        ["program.py"],
    ],
    ids=["ruff", "python"],
)
def test_it_is_right(command: list[str], tmp_path: Path) -> None:
    shutil.copy(PROGRAM, tmp_path)
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
