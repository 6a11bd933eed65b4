"""The work queue: every task is done, and the one whose worker was killed is done by the other."""

import json
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "examples/02_workers/demo.py"


def test_all_tasks_are_done_though_a_worker_is_killed() -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO), "--tasks", "7", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    story = json.loads(done.stdout)
    assert story["done"] == 7
    assert story["by"] == {"one": 2, "two": 5}
    assert story["again"] == [2]
    assert story["wrong"] == []


def test_bad_arguments_are_named() -> None:
    done = subprocess.run([sys.executable, str(DEMO), "--tasks", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "at least 4" in done.stderr
