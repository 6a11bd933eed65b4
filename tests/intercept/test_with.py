"""The command ``junctura with``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from netcdf_programs import BUILT, ROOT, need

JUNCTURA = str(BUILT / "junctura")
WITH = [JUNCTURA, "with", "--netcdf", "pool*.nc=pool", "--"]


@pytest.fixture(autouse=True)
def libraries() -> None:
    """As `make build-ci` does."""
    if not (BUILT / "libjunctura-netcdf.so").exists():
        subprocess.run([str(ROOT / "tools/build_intercept.sh"), str(BUILT), "strict"], check=True)


@pytest.fixture
def served(environment: dict[str, str], pool: str) -> dict[str, str]:
    return {**environment, "JUNCTURA_POOL": pool}


def run(
    command: list[str], environment: dict[str, str], folder: Path, status: int = 0
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_it_reports_what_was_intercepted(compiled: Callable[..., Path], served: dict[str, str], tmp_path: Path) -> None:
    program = str(compiled("steps.c"))
    told = run([*WITH, program, "write", "pool.nc", "2", "1000"], served, tmp_path).stderr
    assert "netcdf: pool.nc (pool, 1 process): 8 objects offered" in told
    assert not (tmp_path / "pool.nc").exists()
    read = run([*WITH, program, "read", "pool.nc"], served, tmp_path)
    assert read.stdout.startswith("step 0\nstep 1\nend: ")
    assert "pool.nc (pool, 1 process): 5 objects received" in read.stderr
    other = run([*WITH, program, "write", "other.nc", "2", "1000"], served, tmp_path).stderr
    assert "nothing was intercepted: no rule puts one of the files that were opened into the pool" in other
    assert "left to the real library: other.nc" in other
    quiet = [JUNCTURA, "with", "--quiet", "--netcdf", "pool*.nc=pool", "--", "true"]
    assert run(quiet, served, tmp_path).stderr == ""


def test_the_status_is_that_of_the_program(served: dict[str, str], tmp_path: Path) -> None:
    run([*WITH, "sh", "-c", "exit 7"], served, tmp_path, 7)
    run([*WITH, "sh", "-c", "kill -9 $$"], served, tmp_path, 128 + signal.SIGKILL)
    told = run([*WITH, "./missing"], served, tmp_path, 3).stderr
    assert "NotFound: ./missing" in told


def test_signals_reach_the_program(served: dict[str, str], tmp_path: Path) -> None:
    script = "trap 'echo ended; exit 9' TERM; echo ready; while :; do read -r line || :; done"
    with subprocess.Popen(
        [*WITH, "sh", "-c", script], cwd=tmp_path, env=served, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.stdout.readline() == "ended\n"
        assert process.wait(timeout=60) == 9


def test_a_program_that_is_linked_statically_is_refused(served: dict[str, str], tmp_path: Path) -> None:
    need("gcc")
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "main.c", "-o", "model"], cwd=tmp_path, check=True)
    for words in (["./model"], ["env", "./model"]):
        told = run([*WITH, *words], served, tmp_path, 1).stderr
        assert "Unsupported: ./model: statically linked" in told


@pytest.mark.parametrize("rules", ["pool*.nc", "pool*.nc=both", "=pool", ""])
def test_rules_are_checked_first(rules: str, served: dict[str, str], tmp_path: Path) -> None:
    told = run([JUNCTURA, "with", "--netcdf", rules, "--", "touch", "made"], served, tmp_path, 2).stderr
    assert "--netcdf: expected PATTERN=MODE, where MODE is one of pool, tee, stub, file" in told
    assert not (tmp_path / "made").exists()


def test_a_server_is_started_where_none_runs(
    compiled: Callable[..., Path], environment: dict[str, str], tmp_path: Path
) -> None:
    program = str(compiled("steps.c"))
    alone = {**environment, "JUNCTURA_POOL": "unix:alone"}
    run([*WITH, program, "write", "pool.nc", "1", "1000"], alone, tmp_path)
    listed = json.loads(run([JUNCTURA, "ls", "--json", "name=T2"], alone, tmp_path).stdout.splitlines()[0])
    assert os.path.realpath(tmp_path) in json.dumps(listed)
    run([JUNCTURA, "pool", "stop", "--now"], alone, tmp_path)
