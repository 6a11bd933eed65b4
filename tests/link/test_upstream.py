"""Processes of one machine that share a link to a pool of another one (``junctura pool serve --upstream``)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e_shell import Process, Shell
from test_weather import LOAD, end, serve

import junctura

CONSUMERS = 16
OBJECTS = 10
BYTES = 4 << 20
CONSUMER = """
import sys
import junctura
with junctura.Pool(sys.argv[1], name="consumer") as pool:
    print(pool.route, flush=True)
    follow = pool.follow("class=od")
    for n in range(int(sys.argv[2])):
        with next(follow) as item:
            field = item.array("u1")
            assert field[0] == field[-1] == int(item["step"]), item
    print("done", flush=True)
    sys.stdin.read()
"""
FIXED = {"class": "od", "expver": "0001", "stream": "oper", "date": "20000101", "time": "0000", "type": "fc"}


class Wire:
    """Passes on what comes, and counts what goes towards the clients."""

    def __init__(self, port: int) -> None:
        self.gate = port
        self.bytes = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.gate))
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.carry, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self.carry, args=(far, near, True), daemon=True).start()

    def carry(self, source: socket.socket, sink: socket.socket, is_counted: bool) -> None:
        try:
            while piece := source.recv(1 << 20):
                self.bytes += len(piece) if is_counted else 0
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            sink.close()

    def close(self) -> None:
        self.listener.close()


@pytest.fixture
def near(bare: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell of a machine that has an upstream: memory may be used."""
    for environment in (bare.environment, os.environ):
        environment["JUNCTURA_TRANSPORTS"] = "shm,tcp"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(bare.folder))
    return bare


def upstream(shell: Shell, url: str) -> Process:
    process = shell.start("pool", "serve", "--upstream", url, "--announce")
    assert process.line().startswith("unix:upstream-")
    return process


@contextmanager
def consumers(shell: Shell, url: str, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-c", CONSUMER, url, str(OBJECTS)]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(command, env=shell.environment, stdin=pipe, stdout=pipe, text=True) for _ in range(count)
    ]
    try:
        for one in started:
            assert one.stdout is not None
            route = one.stdout.readline()
            assert route.startswith("shm: unix:upstream-"), route
        yield started
    finally:
        for one in started:
            one.kill()
            one.communicate()


def offer(pool: junctura.Pool) -> None:
    for step in range(OBJECTS):
        attributes = {**FIXED, "levtype": "sfc", "step": step, "param": "t"}
        pool.offer(bytes([step]) * BYTES, attributes)


def test_sixteen_processes_cost_one_transfer(near: Shell) -> None:
    far = serve(near, "--budget", "256MiB")
    wire = Wire(int(far.rsplit(":", 1)[1]))
    upstream(near, wire.url)
    with junctura.Pool(near.pool) as pool, consumers(near, wire.url, CONSUMERS) as started:
        offer(pool)
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == "done\n"
        transfers = wire.bytes / BYTES
        assert OBJECTS <= transfers < OBJECTS + 0.5, f"{transfers} payloads for {CONSUMERS} x {OBJECTS}"
        names = [client["name"] for client in pool.stat()["clients"]]
        assert names.count("consumer") == CONSUMERS
    wire.close()


def test_whoever_is_killed_there_is_gone_at_once_and_the_others_stay(near: Shell) -> None:
    far = serve(near, "--budget", "256MiB")
    road = upstream(near, far)
    with junctura.Pool(near.pool) as pool, pool.subscribe(kinds=["left"]) as left:
        with consumers(near, far, 3) as started:
            offer(pool)
            for one in started:
                assert one.stdout is not None
                assert one.stdout.readline() == "done\n"
            started[0].kill()
            assert next(left).client is not None
            assert sum(client["name"] == "consumer" for client in pool.stat()["clients"]) == 2
            road.kill()
            gone = [next(left) for _ in range(2)]
            assert all(one.client is not None and one.client.name == "consumer" for one in gone)
        # Another one takes over its socket.
        upstream(near, far)
        with junctura.Pool(far) as again, again.demand("step=3") as item:
            assert "upstream" in str(again.route)
            assert item.array("u1").sum() == 3 * BYTES


def test_one_that_leads_nowhere_is_passed_by(near: Shell) -> None:
    far = serve(near, "--budget", "64MiB")
    road = upstream(near, far)
    (path,) = (path for path in near.folder.rglob("upstream-*") if path.is_socket())
    road.kill()
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def hang_up() -> None:
            listener.accept()[0].close()

        nobody = threading.Thread(target=hang_up)
        nobody.start()
        with junctura.Pool(far) as pool:
            assert "upstream" not in pool.route
            pool.offer(b"field", {**FIXED, "levtype": "sfc", "step": 1, "param": "t"})
        nobody.join()


def test_it_ends_in_order(near: Shell) -> None:
    far = serve(near, "--budget", "64MiB")
    road = upstream(near, far)
    with junctura.Pool(far) as pool:
        road.signal(signal.SIGTERM)
        with pytest.raises(junctura.Disconnected, match="this machine's way to the pool was closed"):
            pool.demand("step=1")
    assert road.end()[0] == 0
    near.error(5, "pool", "serve", "--upstream", "tcp://127.0.0.1:1")


@pytest.mark.parametrize("size", ["1KiB", "100KiB"])
def test_a_load_with_kills_goes_by_it(near: Shell, tmp_path: Path, size: str) -> None:
    far = serve(near, "--budget", "96MiB")
    road = near.start("pool", "serve", "--upstream", far, "--pool", "unix:road", "--announce")
    assert road.line() == "unix:road"
    kills = ["--kills", "producers=4,consumers=4,members=8", "--seed", "20261121"]
    roads = ["--consume-from", "unix:road", "--offer-to", "unix:road"]
    command = ["load", "pool", "--pool", near.pool, *roads, "--json", "--history", str(tmp_path), *LOAD, "--size", size]
    end(near, near.start(*command, "--rate", "1000", *kills), tmp_path)
