"""Links of several streams: whoever is killed in the middle of a large payload has harmed nobody."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e_shell import Process, Shell
from test_upstream import upstream
from test_weather import begin, end, serve

import junctura

BYTES = (8 << 20) + 12345
# Each has keys of its own; what a group has released is gone.
PRODUCER = """
import os
import sys
import junctura
bytes = int(sys.argv[2])
with junctura.Pool(sys.argv[1], name="producer") as pool:
    for step in range(1_000_000):
        print(step, flush=True)
        attributes = {"class": "od", "expver": str(os.getpid()), "stream": "oper", "date": "20000101", "time": "0000",
                      "type": "fc", "levtype": "sfc", "step": step, "param": "t"}
        pool.offer(step.to_bytes(4, "little") * (bytes // 4), attributes, retention=junctura.Released(1))
"""
CONSUMER = """
import sys
import junctura
with junctura.Pool(sys.argv[1], name="consumer") as pool:
    for item in pool.follow("class=od", group="g"):
        with item:
            field = item.array("u4")
            assert (field == field[0]).all(), item
            print(int(field[0]), flush=True)
"""


@pytest.fixture
def several(bare: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell whose links have three streams."""
    monkeypatch.setenv("JUNCTURA_STREAMS", "3")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(bare.folder))
    bare.environment["JUNCTURA_STREAMS"] = "3"
    return bare


@contextmanager
def running(shell: Shell, code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code, *arguments]
    one = subprocess.Popen(command, env=shell.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield one
    finally:
        one.kill()
        one.communicate()


def lines(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdout is not None
    for _ in range(count):
        assert process.stdout.readline(), process.communicate()[1]


def are_whole(pool: junctura.Pool) -> int:
    """How many objects there are; each is as it was offered."""
    found = pool.list("class=od")
    for entry in found:
        with pool.demand(f"expver={entry['expver']},step={entry['step']}") as item:
            field = item.array("u4")
            assert field.nbytes == BYTES // 4 * 4
            assert (field == field[0]).all()
            assert field[0] == int(entry["step"])
    return len(found)


def is_all_free(pool: junctura.Pool, budget: int) -> None:
    """Once everything is withdrawn, nobody keeps memory: as much as there is can be offered again."""
    pool.withdraw_all("")
    for step in range(budget // BYTES // 2):
        attributes = {"class": "od", "expver": "free", "stream": "oper", "date": "20000101", "time": "0000"}
        pool.offer(bytes(BYTES), {**attributes, "type": "fc", "levtype": "sfc", "step": step, "param": "t"})
    pool.withdraw_all("")


@pytest.mark.parametrize("offers", [1, 2, 5, 9])
def test_a_producer_that_is_killed_leaves_whole_objects_or_none(several: Shell, offers: int) -> None:
    far = serve(several, "--budget", "192MiB")
    with junctura.Pool(several.pool) as pool, pool.subscribe(kinds=["left"]) as left:
        with running(several, PRODUCER, far, str(BYTES)) as producer:
            lines(producer, offers)
            producer.kill()
            gone = next(left)
            assert gone.client is not None
            assert gone.client.name == "producer"
        assert are_whole(pool) >= offers - 1
        is_all_free(pool, 192 << 20)


@pytest.mark.parametrize("received", [1, 4, 7])
def test_what_a_killed_consumer_had_goes_to_another(several: Shell, received: int) -> None:
    far = serve(several, "--budget", "256MiB")
    with (
        junctura.Pool(several.pool) as pool,
        pool.subscribe(kinds=["left"]) as left,
        running(several, CONSUMER, far) as consumer,
        running(several, PRODUCER, far, str(BYTES)) as producer,
    ):
        lines(consumer, received)
        consumer.kill()
        while True:
            gone = next(left)
            if gone.client is not None and gone.client.name == "consumer":
                break
        with running(several, CONSUMER, far) as other:
            lines(other, 12)
        assert producer.poll() is None


def test_a_server_that_is_killed_is_disconnected(several: Shell) -> None:
    server = several.start(
        "pool", "serve", "--pool", "tcp://127.0.0.1:0", "--announce", "--schema", "mars", "--budget", "192MiB"
    )
    far = server.line()
    with running(several, PRODUCER, far, str(BYTES)) as producer:
        lines(producer, 5)
        server.kill()
        _, said = producer.communicate(timeout=60)
        assert "Disconnected" in said


def test_a_server_that_is_stopped_is_given_up_after_its_lease(several: Shell) -> None:
    options = ["--schema", "mars", "--budget", "192MiB", "--lease", "500ms"]
    server = several.start("pool", "serve", "--pool", "tcp://127.0.0.1:0", "--announce", *options)
    far = server.line()
    with running(several, PRODUCER, far, str(BYTES)) as producer:
        lines(producer, 5)
        server.signal(signal.SIGSTOP)
        _, said = producer.communicate(timeout=60)
        assert "Disconnected" in said
        assert "nothing was received" in said
    server.signal(signal.SIGCONT)
    with junctura.Pool(far) as pool:
        are_whole(pool)
        assert [one["name"] for one in pool.stat()["clients"]].count("producer") == 0


@pytest.fixture
def near(several: Shell) -> Shell:
    """A shell of a machine that has an upstream: memory may be used."""
    for environment in (several.environment, os.environ):
        environment["JUNCTURA_TRANSPORTS"] = "shm,tcp"
    return several


def shared(shell: Shell, far: str) -> Process:
    del shell.environment["JUNCTURA_STREAMS"]
    process = shell.start("pool", "serve", "--upstream", far, "--streams", "4", "--announce")
    assert process.line().startswith("unix:upstream-")
    return process


def test_clients_of_an_upstream_are_killed_one_by_one(near: Shell) -> None:
    far = serve(near, "--budget", "256MiB")
    shared(near, far)
    with junctura.Pool(near.pool) as pool, pool.subscribe(kinds=["left"]) as left:
        with running(near, CONSUMER, far) as consumer:
            for offers in (1, 3):
                with running(near, PRODUCER, far, str(BYTES)) as producer:
                    lines(producer, offers)
                    producer.kill()
                    gone = next(left)
                    assert gone.client is not None
                    assert gone.client.name == "producer"
            with running(near, PRODUCER, far, str(BYTES)) as producer:
                lines(consumer, 5)
                with running(near, CONSUMER, far) as other:
                    lines(other, 2)
                    other.kill()
                    lines(consumer, 5)
                assert producer.poll() is None
        are_whole(pool)


def test_an_upstream_that_is_killed_takes_its_clients_along_and_nothing_else(near: Shell) -> None:
    far = serve(near, "--budget", "256MiB")
    road = shared(near, far)
    with junctura.Pool(near.pool) as pool:
        with running(near, PRODUCER, far, str(BYTES)) as producer:
            lines(producer, 4)
            road.kill()
            _, said = producer.communicate(timeout=60)
            assert "Disconnected" in said
        assert are_whole(pool) >= 3
        upstream(near, far)
        with running(near, PRODUCER, far, str(BYTES)) as producer:
            lines(producer, 4)
        is_all_free(pool, 256 << 20)


def test_how_many_is_for_the_program_to_say_too(several: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    far = serve(several, "--budget", "64MiB")
    for count in (1, 8):
        with junctura.Pool(far, streams=count) as pool, pickle.loads(pickle.dumps(pool)) as again:
            assert again.stat()["clients"]
    for count in (0, 9):
        with pytest.raises(junctura.InvalidArgument, match="from 1 to 8"):
            junctura.Pool(far, streams=count)
    for text in ("0", "9", "many", ""):
        monkeypatch.setenv("JUNCTURA_STREAMS", text)
        with pytest.raises(junctura.InvalidArgument, match="from 1 to 8"):
            junctura.Pool(far)
    with junctura.Pool(far, streams=2):
        pass


def test_a_load_of_large_objects_with_kills(several: Shell, tmp_path: Path, tell: Callable[[str], None]) -> None:
    url = serve(several, "--budget", "256MiB")
    options = ["--size", "2MiB", "--rate", "60", "--kills", "producers=4,consumers=4,members=8", "--seed", "20261122"]
    figures = end(several, begin(several, url, tmp_path, *options), tmp_path)
    told = f"{figures['killed']} killed, {figures['objects_per_s']:.0f} objects/s"
    tell(f"{told}, {figures['redelivered']} delivered again")
    refused = several.error(2, "pool", "serve", "--upstream", url, "--streams", "9")
    assert "from 1 to 8" in refused
