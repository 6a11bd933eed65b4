"""A pool that a task of the workflow serves: it is there before the others, and goes after them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from run_real import Real, interrupt
from run_world import task, workflow

import junctura
from junctura.workflow._engine.run import run
from junctura.workflow._executors.jobs import Ended, Job
from junctura.workflow._spec.tasks import PoolWanted

HEAD = "workflow: test\npool: {service: server}\ntasks:\n"
SERVER = "  server:\n    service: [junctura, pool, serve, --pool, 'tcp://127.0.0.1:0', --announce, --schema, free]\n"
SERVICE = "  service:\n    service: [python, serve.py]\n"
PRODUCER = "  produce:\n    run: [python, produce.py, a, '3']\n"


def kinds(real: Real, kind: str) -> list[str]:
    """Of which tasks the record has a line of a kind, in its order."""
    return [line["task"] for line in real.record() if line["kind"] == kind]


def served(real: Real) -> list[Any]:
    return [line["pool"] for line in real.record() if line.get("event") == "served"]


def test_tasks_meet_where_the_server_says_it_is(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        HEAD
        + "  picture:\n    run: [python, consume.py, '{object}']\n    start: {each: kind=field}\n"
        + "  last:\n    run: [echo, '{pool}']\n    start: {after: picture, joined: service}\n"
        + PRODUCER
        + SERVICE
        + SERVER
        + "    start: {after: first}\n"
        + "  first:\n    run: [echo]\n",
    )
    assert "pool tcp://127.0.0.1:" in real.run(0)
    assert set(real.outcomes().values()) == {"done"}
    assert sorted(real.log(f"picture-{number}.1") for number in range(1, 4)) == [
        f"a-{number} 7\n" for number in range(3)
    ]
    (pool,) = served(real)
    assert real.log("server.1") == real.log("last.1") == f"{pool}\n"
    assert kinds(real, "begin")[:2] == ["first", "server"]
    assert kinds(real, "end")[-2:] == ["service", "server"]
    assert kinds(real, "end_asked") == ["service", "server"]


def test_a_server_that_ends_before_it_serves_is_named(tmp_path: Path) -> None:
    real = Real(tmp_path, HEAD + PRODUCER + "  server:\n    service: [python, die.py]\n")
    assert "server did not end well" in real.run(1)
    assert real.outcomes() == {"server": "failed", "produce": "skipped"}
    assert served(real) == []


@pytest.mark.parametrize("after", ["", "; exec sleep 1000"])
def test_a_server_that_runs_already_is_not_used(tmp_path: Path, after: str) -> None:
    with junctura.Pool(schema="free") as earlier:
        earlier.offer(b"payload", name="a-1", kind="field", of="an earlier run")
        text = (
            HEAD
            + "  picture:\n    run: [python, consume.py, '{object}']\n    start: {each: kind=field}\n"
            + PRODUCER
            + f"  server:\n    service: [sh, -c, 'junctura pool serve --pool {earlier.url} --announce{after}']\n"
        )
        real = Real(tmp_path, text)
        said = real.run(1)
        assert len(earlier.list()) == 1
    assert f"server: a server runs at {earlier.url} already: stop the server there, or choose another address" in said
    assert real.outcomes() == {"server": "failed", "picture": "skipped", "produce": "skipped"}
    assert served(real) == []


class Announcing:
    """An executor, and its only job, which has announced an address and ended before the run takes the address."""

    identity = "job 1"

    def __init__(self, url: str) -> None:
        self.url = url

    def start(
        self,
        job: Job,
        on_begin: Callable[[], None],
        on_end: Callable[[Ended], None],
        on_taken: Callable[[str], None] | None = None,
    ) -> Announcing:
        assert on_taken is not None
        job.log.write_text(f"{self.url}\n")
        on_begin()
        on_end(Ended(0))
        return self

    def end(self, *, at_once: bool = False) -> None:
        assert not at_once

    def check(self, job: Job) -> str:
        assert job.command
        return ""

    def end_left(self, identities: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(identities, "")

    def close(self) -> None:
        pass


def test_an_address_is_not_used_when_its_task_has_ended(tmp_path: Path) -> None:
    with junctura.Pool(schema="free") as earlier:
        flow = workflow(task("server", service=True), task("user"), pool=PoolWanted(service="server"))
        outcome = run(flow, tmp_path, executors={"local": Announcing(earlier.url)})
    cause = f"it announced {earlier.url} and ended: stop the server there, or choose another address"
    assert outcome.failures == {"server": cause, "user": "server did not end well"}


def test_a_server_that_announces_nothing_has_failed(tmp_path: Path) -> None:
    real = Real(tmp_path, HEAD + PRODUCER + "  server:\n    service: [echo, well]\n")
    assert "server: it ended before it served the pool" in real.run(1)
    assert real.outcomes() == {"server": "failed", "produce": "skipped"}


def test_an_address_where_nobody_is_ends_the_run(tmp_path: Path) -> None:
    real = Real(
        tmp_path, HEAD + PRODUCER + "  server:\n    service: [sh, -c, 'echo tcp://127.0.0.1:1; exec sleep 1000']\n"
    )
    assert "the pool that server serves cannot be reached: Unavailable: tcp://127.0.0.1:1" in real.run(1)
    assert real.outcomes() == {"server": "done", "produce": "cancelled"}


def test_the_end_of_the_server_is_the_end_of_the_run(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        HEAD
        + SERVER
        + "  one:\n    run: [sh, -c, 'junctura pool stop; exec sleep 1000']\n"
        + "  two:\n    run: [echo]\n",
    )
    assert "the pool has ended" in real.run(1)
    assert real.outcomes()["one"] == "cancelled"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_server_last(tmp_path: Path, number: int) -> None:
    os.mkfifo(tmp_path / "begun")
    real = Real(
        tmp_path,
        HEAD
        + SERVER
        + SERVICE
        + "  one:\n    run: [sh, -c, 'echo > \"{here}/begun\"; exec sleep 1000']\n    start: {joined: service}\n",
    )
    process = real.start()
    with (tmp_path / "begun").open() as pipe:
        pipe.read()
    interrupt(process, number)
    real.end(process, 130)
    assert kinds(real, "end") == ["one", "service", "server"]


def test_an_interrupt_of_one_that_never_serves(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    real = Real(
        tmp_path, HEAD + PRODUCER + "  server:\n    service: [sh, -c, 'echo > \"{here}/begun\"; exec sleep 1000']\n"
    )
    process = real.start()
    with (tmp_path / "begun").open() as pipe:
        pipe.read()
    interrupt(process)
    real.end(process, 130)
    assert real.outcomes() == {"server": "done", "produce": "cancelled"}


def test_a_run_that_goes_on_has_a_new_pool(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        HEAD + SERVER + "  good:\n    run: [echo]\n" + "  once:\n    run: [python, once.py, '{here}/there']\n",
    )
    real.run(1)
    real.run(0, "--resume", "run")
    assert [line["attempt"] for line in real.record() if line["kind"] == "start" and line["task"] == "server"] == [1, 2]
    assert kinds(real, "start").count("good") == 1
    assert len(set(served(real))) == 2
