"""The demo on a small ensemble: every field arrives, every byte is right, pictures and summary are there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples/01_ensemble/demo.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(DEMO), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("members", "steps"), [(1, 1), (3, 4)])
def test_small_ensemble(tmp_path: Path, members: int, steps: int) -> None:
    done = run("--members", str(members), "--steps", str(steps), "--grid", "5", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["fields"] == summary["verified_fields"] == members * steps * 2
    assert summary["bytes"] == summary["verified_bytes"] > 0
    assert summary["wrong"] == []
    assert [Path(path).name for path in summary["maps"]] == [f"step_{3 * step:03}.png" for step in range(steps)]
    for path in (*summary["maps"], summary["animation"]):
        assert Path(path).stat().st_size > 1000
    assert summary["maps"][-1] in done.stdout


def test_bad_arguments_are_named() -> None:
    done = run("--grid", "7")
    assert done.returncode == 2
    assert "180 degrees" in done.stderr
