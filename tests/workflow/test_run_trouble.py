"""Runs to which nobody listens any more, or whose logs have no room: they end as they should all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from run_real import LIMIT_S, MARK, Real, interrupt

TASKS = "workflow: test\ntasks:\n"
WAITS = "  one:\n    run: [sh, -c, 'echo > \"{here}/begun\"; exec sleep 1000']\n"


def opened(path: Path) -> None:
    """Waits until a task opens a pipe."""
    with path.open() as pipe:
        pipe.read()


def command(module: str, *options: str) -> list[str]:
    return [sys.executable, "-m", module, "flow.yaml", "--run-dir", "run", *options]


@pytest.mark.parametrize("module", ["junctura._run", "junctura.workflow"])
def test_a_run_that_failed_says_so_by_its_status_also_when_nobody_reads_it(tmp_path: Path, module: str) -> None:
    # What it says is more than Python keeps until the end.
    tasks = "  bad:\n    run: ['false']\n    matrix: {number: 1/to/300}\n    start: {after: first}\n"
    real = Real(tmp_path, TASKS + "  first:\n    run: ['false']\n" + tasks)
    process = real.start("--json", "--quiet", module=module)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(LIMIT_S) == 1
    real.check_nothing_is_left()
    assert real.outcomes()["first"] == "failed"


def test_an_interrupt_ends_in_order_what_nobody_listens_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    real = Real(tmp_path, TASKS + WAITS + "  service:\n    service: [sleep, '1000']\n")
    process = real.start(module="junctura._run")
    assert process.stdout is not None and process.stderr is not None
    opened(tmp_path / "begun")
    process.stderr.close()
    process.stdout.close()
    interrupt(process, signal.SIGINT)
    assert process.wait(LIMIT_S) == 130
    real.check_nothing_is_left()
    lines = real.record()
    assert [line["task"] for line in lines if line["kind"] == "end"] == ["one", "service"]
    assert lines[-1]["status"] == "interrupted"


def test_a_run_needs_neither_output_nor_errors(tmp_path: Path) -> None:
    real = Real(tmp_path, TASKS + "  one:\n    run: ['false']\n")
    closed = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command("junctura._run")]
    assert subprocess.run(closed, cwd=tmp_path, timeout=LIMIT_S, check=False).returncode == 1
    assert real.outcomes() == {"one": "failed"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_run_needs_no_encoding_of_its_output(tmp_path: Path, encoding: str) -> None:
    Real(tmp_path, TASKS + "  one:\n    run: ['true']\n  two:\n    run: ['true']\n    start: {after: one}\n")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for options in (["--check"], ["--run-dir", "läuft-ž"], ["--run-dir", "läuft-č", "--json"]):
        words = [sys.executable, "-m", "junctura._run", "flow.yaml", *options]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode(encoding)


def test_a_full_disk_of_logs_is_the_end_of_tasks_and_named(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        TASKS
        + "  fill:\n    run: [sh, -c, 'head -c 1M /dev/zero']\n    may_fail: true\n"
        + "  later:\n    run: ['true']\n    start: {after: fill}\n"
        + "  last:\n    run: ['true']\n    start: {after: later}\n",
    )
    logs = tmp_path / "run/logs"
    logs.mkdir(parents=True)
    mounted = f'mount -t tmpfs -o size=64k none {logs} && exec "$@"'
    apart = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no user namespaces here: a small disk cannot be made")
    done = subprocess.run(
        [*apart, *command("junctura.workflow", "--quiet")],
        cwd=tmp_path,
        env={**os.environ, MARK: real.mark},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 1, done
    assert "fill: the disk of its log is full" in done.stdout
    assert f"later: {logs}/later.1.log: the disk is full" in done.stdout
    assert real.outcomes() == {"fill": "failed", "later": "failed", "last": "skipped"}
    real.check_nothing_is_left()
