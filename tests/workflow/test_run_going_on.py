"""Runs that go on, and which one is the latest."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from run_real import LIMIT_S, Real

import junctura
from junctura.errors import Conflict
from junctura.workflow._engine.run import run
from junctura.workflow._executors.jobs import Ended, Executor, Job, Running
from junctura.workflow._executors.local import Local
from junctura.workflow._spec.reading import load

TASKS = "workflow: test\ntasks:\n"
COMMAND = [sys.executable, "-m", "junctura.workflow", "flow.yaml", "--quiet"]


def go(folder: Path, *options: str) -> int:
    """A run in a folder of its own choice."""
    done = subprocess.run([*COMMAND, *options], cwd=folder, timeout=LIMIT_S, check=False, capture_output=True)
    return done.returncode


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]


def test_the_latest_run_goes_on_where_it_is_whatever_is_the_latest_then(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(
        TASKS
        + '  first:\n    run: [sh, -c, \'test -e "{here}/good" && ln -sfn nowhere "{here}/runs/test/latest"\']\n'
        + "  last:\n    run: [echo, '{run}']\n    start: {after: first}\n"
    )
    assert go(tmp_path) == 1
    folder = (tmp_path / "runs/test/latest").resolve()
    (tmp_path / "good").touch()
    assert go(tmp_path, "--resume", "runs/test/latest") == 0
    assert (folder / "logs/last.1.log").read_text() == f"{folder}\n"
    assert [line["resumed"] for line in lines(folder) if line["kind"] == "run"] == [False, True]


def test_a_run_that_never_began_is_not_the_latest(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(TASKS + "  one:\n    run: ['true']\n")
    assert go(tmp_path) == 0
    runs = tmp_path / "runs/test"
    before = sorted(path.name for path in runs.iterdir())
    latest = (runs / "latest").readlink()
    (tmp_path / "flow.yaml").write_text(f"pool: unix:{tmp_path}/no.sock\n" + TASKS + "  one:\n    run: ['true']\n")
    assert go(tmp_path) == 2
    assert sorted(path.name for path in runs.iterdir()) == before
    assert (runs / "latest").readlink() == latest


def test_of_the_first_run_that_never_began_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(f"pool: unix:{tmp_path}/no.sock\n" + TASKS + "  one:\n    run: ['true']\n")
    assert go(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["flow.yaml"]


def shown(command: Sequence[str], folder: Path) -> str:
    """What a command shows on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while some := os.read(ours, 1 << 16):
            said += some
    except OSError:
        # The other end has been closed.
        pass
    os.close(ours)
    assert process.wait(LIMIT_S) == 0
    return said.decode()


def test_what_was_done_before_is_shown_as_done(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(
        TASKS
        + "  first:\n    run: ['true']\n    matrix: {number: 1/to/3}\n"
        + "  last:\n    run: [test, -e, '{here}/good']\n    start: {after: first}\n"
    )
    assert go(tmp_path) == 1
    (tmp_path / "good").touch()
    said = shown([*COMMAND[:-1], "--resume", "runs/test/latest"], tmp_path)
    last = said[said.rindex("waiting") :]
    # Waiting, ready, running, done, failed.
    assert re.search(r"first +· +· +· +3 +·", last), last
    assert re.search(r"last +· +· +· +1 +·", last), last


def test_in_a_pool_of_others_only_what_failed_is_done_again(tmp_path: Path) -> None:
    with junctura.Pool(schema=["free"]) as pool:
        real = Real(
            tmp_path,
            f"workflow: test\npool: {pool.url}\ntasks:\n"
            "  produce:\n    run: [python, produce.py, a, '3']\n"
            "  picture:\n    run: [sh, -c, 'test \"$1\" != a-1 || test -e \"$2\"', sh, '{name}', '{here}/good']\n"
            "    start: {each: kind=field}\n"
            "  last:\n    run: ['true']\n    start: {after: picture}\n",
        )
        real.run(1)
        assert real.outcomes()["last"] == "skipped"
        (tmp_path / "good").touch()
        real.run(0, "--resume", "run")
        second = lines(tmp_path / "run")
        begun = [line["task"] for line in second if line["kind"] == "start"]
        assert sorted(begun) == ["last", "picture-1", "picture-2", "picture-2", "picture-3", "produce"]


class Cluster:
    """A batch system that has jobs of an earlier run; an `Executor`."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.ended: list[str] = []

    def start(
        self,
        job: Job,
        on_begin: Callable[[], None],
        on_end: Callable[[Ended], None],
        on_taken: Callable[[str], None] | None = None,
    ) -> Running:
        raise NotImplementedError

    def check(self, _job: Job) -> str:
        return ""

    def end_left(self, identities: Sequence[str]) -> Mapping[str, str]:
        self.ended += identities
        return {identity: self.refusal for identity in identities if self.refusal}

    def close(self) -> None:
        pass


LEFT = [
    {"kind": "run", "at": 1.0, "format": 1, "workflow": "test", "tasks": []},
    {"kind": "start", "at": 1.0, "task": "a", "attempt": 1},
    {"kind": "taken", "at": 1.0, "task": "a", "attempt": 1, "identity": "slurm job 11"},
    {"kind": "begin", "at": 1.0, "task": "a", "attempt": 1, "identity": "slurm job 11"},
    {"kind": "end", "at": 2.0, "task": "a", "attempt": 1, "code": 1},
    {"kind": "start", "at": 2.0, "task": "a", "attempt": 2},
    {"kind": "taken", "at": 2.0, "task": "a", "attempt": 2, "identity": "slurm job 12"},
    {"kind": "start", "at": 2.0, "task": "b", "attempt": 1},
    {"kind": "begin", "at": 2.0, "task": "b", "attempt": 1, "identity": "process 4711"},
]


def go_on(folder: Path, cluster: Cluster) -> int:
    (folder / "flow.yaml").write_text(TASKS + "  one:\n    run: ['true']\n")
    (folder / "run/logs").mkdir(parents=True)
    (folder / "run/record.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LEFT))
    executors: dict[str, Executor] = {"local": Local(), "slurm": cluster}
    return run(load(folder / "flow.yaml"), folder / "run", executors=executors, resume=True).code


def test_jobs_that_outlived_their_run_are_ended_before_it_goes_on(tmp_path: Path) -> None:
    cluster = Cluster()
    assert go_on(tmp_path, cluster) == 0
    assert cluster.ended == ["slurm job 12"]


def test_a_run_with_a_job_that_cannot_be_ended_does_not_go_on(tmp_path: Path) -> None:
    with pytest.raises(Conflict, match=r"slurm job 12.*may run still.*nobody answers"):
        go_on(tmp_path, Cluster("nobody answers"))
    assert len(lines(tmp_path / "run")) == len(LEFT)
