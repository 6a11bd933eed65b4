"""Two coupled programs of MPI, together and alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/10_coupled"


def run(picture: Path, steps: int, *options: str, **environment: str) -> None:
    command = [sys.executable, str(EXAMPLE / "run.py"), "--picture", str(picture), "--steps", str(steps), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" 0 elements differ") == 4, done.stdout
    # The atmosphere needs no sea after its last step.
    assert f"left in the pool: {{run=example}}{{field=sst}}{{step={steps - 1}}}\n" in done.stdout
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(("atmosphere", "ocean"), [(3, 2), (1, 4)])
def test_each_rank_has_what_a_run_without_ranks_has(atmosphere: int, ocean: int, tmp_path: Path) -> None:
    run(tmp_path / "coupled.png", 6, "--atmosphere", str(atmosphere), "--ocean", str(ocean))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A pool at a port of this machine, with the schema of the example."""
    words = [sys.executable, "-c", "import coupling; print(coupling.SCHEMA)"]
    schema = subprocess.run(words, cwd=EXAMPLE, capture_output=True, text=True, check=True).stdout
    (tmp_path / "coupled.yaml").write_text(schema)
    serve = ["pool", "serve", "--pool", "tcp://127.0.0.1:0", "--announce", "--schema", str(tmp_path / "coupled.yaml")]
    command = [sys.executable, "-m", "junctura", *serve]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def test_by_the_network_it_is_the_same(served: str, tmp_path: Path) -> None:
    run(tmp_path / "coupled.png", 4, "--url", served, JUNCTURA_TRANSPORTS="tcp")
