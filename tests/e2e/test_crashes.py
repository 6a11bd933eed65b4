"""Clients and servers that die, race, send garbage or stop reading: what was promised stays true for all others."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from e2e_grib import Field, message
from e2e_shell import JUNCTURA, Document, Process, Shell


def left(watch: Process, pid: int) -> Document:
    """Waits until the pool has told that a process left."""
    while True:
        event = watch.document()
        if event["event"] == "left" and event["client"]["pid"] == pid:
            return event


def test_a_killed_producer_leaves_what_was_acknowledged(shell: Shell, fields: dict[Field, bytes]) -> None:
    watch = shell.watch("--kind", "left")
    put = shell.start("put", "-", "--json", stdin=subprocess.PIPE)
    data = list(fields.values())
    put.write(data[0] + data[1])
    told = [put.document() for _ in range(2)]
    # Half a message: it is not there yet when the producer dies.
    put.write(data[2][:100])
    put.kill()
    assert left(watch, put.pid)["reason"]
    assert [shell.run("get", line["key"]).stdout for line in told] == data[:2]
    assert shell.text("ls", "--count") == "2\n"
    shell.run("put", "-", stdin=data[2])
    assert shell.text("ls", "--count") == "3\n"


def test_a_producer_killed_while_it_fills_leaves_nothing(shell: Shell) -> None:
    watch = shell.watch("--kind", "left")
    empty = shell.stat()["memory"]
    put = shell.start("put", "-", "-v", stdin=subprocess.PIPE)
    whole, large = message(Field(number=1)), message(Field(number=2, points=2_000_000))
    put.write(whole)
    assert "number=1" in put.line()
    # Read straight into the pool's memory, and never finished.
    put.write(large[:1_500_000])
    put.kill()
    left(watch, put.pid)
    assert shell.text("ls", "--count") == "1\n"
    shell.run("pool", "withdraw-all", "*")
    memory = shell.stat()["memory"]
    assert memory["occupied_bytes"] == empty["occupied_bytes"] == 0
    shell.run("put", "-", stdin=large)
    assert shell.run("get", "number=2").stdout == large


def test_a_killed_consumer_holds_nothing_any_more(shell: Shell, tmp_path: Path) -> None:
    watch = shell.watch("--kind", "left")
    (tmp_path / "large").write_bytes(bytes(5 << 20))
    shell.run("put", "--schema", "free", tmp_path / "large")
    # Nobody reads its output: it holds the object while it writes.
    get = shell.start("get", "--all", "-o", "-")
    assert get.popen.stdout is not None
    assert get.popen.stdout.read(1) == b"\0"
    assert shell.stat()["objects"]["held"] == 1
    get.kill()
    left(watch, get.pid)
    stat = shell.stat()
    assert stat["objects"]["held"] == 0
    assert stat["objects"]["visible"] == 1


def test_a_killed_watcher_is_told_to_the_others(shell: Shell) -> None:
    watch, victim = shell.watch("--kind", "joined,left"), shell.watch()
    assert watch.document()["client"]["pid"] == victim.pid
    victim.kill()
    event = left(watch, victim.pid)
    assert event["client"]["name"] == "junctura watch"
    assert event["client"]["host"] == socket.gethostname()
    assert event["reason"]


def test_events_come_in_order(shell: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    watch = shell.watch("--kind", "offered,withdrawn", "param=t")
    human = shell.start("watch", "--kind", "withdrawn", "--count", "1")
    assert "watching" in human.said()
    shell.run("put", file)
    shell.run("pool", "withdraw-all", "param=t")
    half = len(fields) // 2
    events = [watch.document() for _ in range(2 * half)]
    assert [event["event"] for event in events] == ["offered"] * half + ["withdrawn"] * half
    sequences = [int(event["version"].split(".")[1]) for event in events[:half]]
    assert sequences == sorted(sequences)
    status, out, _ = human.end()
    assert status == 0
    assert out.startswith("withdrawn ")
    assert shell.error(4, "watch", "--count", "1", "--timeout", "10ms")
    shell.run("watch", "--timeout", "10ms")


def test_the_first_to_ask_starts_a_server_that_stays_while_it_holds_objects(bare: Shell, file: Path) -> None:
    bare.run("put", file)
    server = bare.stat()["server"]["pid"]
    assert bare.text("ls", "--count") == "16\n"
    assert bare.stat()["server"]["pid"] == server
    # A server of which nobody is the parent here: it has ended when its process is gone.
    gone = os.pidfd_open(server)
    bare.run("pool", "withdraw-all", "*")
    assert select.select([gone], [], [], 60)[0]
    os.close(gone)


def test_many_that_find_no_server_start_one(bare: Shell, fields: dict[Field, bytes]) -> None:
    puts = [bare.start("put", "-", stdin=subprocess.PIPE) for _ in fields]
    for put, data in zip(puts, fields.values(), strict=True):
        put.write(data)
    assert [put.end()[0] for put in puts] == [0] * len(puts)
    assert bare.text("ls", "--count") == f"{len(fields)}\n"


def test_of_two_servers_of_one_name_one_serves(bare: Shell) -> None:
    servers = [bare.start("pool", "serve", "--pool", bare.pool) for _ in range(4)]
    said = [server.said() for server in servers]
    serving = [line for line in said if "serving" in line]
    refused = [line for line in said if "AlreadyExists" in line]
    assert (len(serving), len(refused)) == (1, 3), said
    assert bare.text("ls", "--count") == "0\n"


def test_a_killed_server_is_noticed_and_its_name_is_free_again(bare: Shell, fields: dict[Field, bytes]) -> None:
    server = bare.serve()
    first, second = list(fields.values())[:2]
    bare.run("put", "-", stdin=first)
    watch = bare.watch()
    server.kill()
    status, _, said = watch.end()
    assert status == 5
    assert "Disconnected" in said
    assert (bare.folder / "junctura/test.sock").exists()
    bare.serve()
    bare.run("put", "-", stdin=second)
    assert bare.run("get", "--all", "-o", "-").stdout == second


def test_a_killed_server_is_started_again_by_who_asks(bare: Shell, fields: dict[Field, bytes]) -> None:
    first, second = list(fields.values())[:2]
    bare.run("put", "-", stdin=first)
    old = bare.stat()
    os.kill(old["server"]["pid"], signal.SIGKILL)
    bare.run("put", "-", stdin=second)
    new = bare.stat()
    assert new["incarnation"] > old["incarnation"]
    assert new["objects"]["visible"] == 1


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 4096, b"\xff" * 4096, random.Random(3).randbytes(100_000), b"J"],
    ids=["another protocol", "zeros", "ones", "random", "too short"],
)
def test_garbage_ends_the_client_that_sends_it_alone(shell: Shell, file: Path, garbage: bytes) -> None:
    shell.run("put", file)
    watch = shell.watch()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(shell.folder / "junctura/test.sock"))
        client.settimeout(60)
        try:
            client.sendall(garbage)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        except (BrokenPipeError, ConnectionResetError):
            pass
    shell.run("pool", "withdraw-all", "param=t")
    event = watch.document()
    while event["event"] != "withdrawn":
        event = watch.document()
    assert shell.text("ls", "--count") == "8\n"


def test_a_client_that_stops_reading_stops_nobody(shell: Shell, tmp_path: Path) -> None:
    stopped = shell.watch()
    stopped.signal(signal.SIGSTOP)
    follower = shell.start("get", "--all", "--count", "2000", "-o", "-")
    many = b"".join(message(Field(number=number % 200, step=number // 200)) for number in range(2000))
    path = tmp_path / "many.grib2"
    path.write_bytes(many)
    # The follower's output is not read either while all of it is offered.
    shell.run("put", path)
    assert shell.text("ls", "--count") == "2000\n"
    assert len(follower.popen.communicate(timeout=60)[0]) == len(many)
    stopped.signal(signal.SIGCONT)
    events = [stopped.document()["event"] for _ in range(2000)]
    assert events.count("offered") >= 1990


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused(bare: Shell) -> None:
    bare.folder.chmod(0o755)
    for pool in (f"unix:{bare.folder}/open.sock", f"unix:@junctura-e2e-{os.getpid()}"):
        bare.pool = pool
        bare.serve()
        other = subprocess.run(
            [str(JUNCTURA), "ls", "--pool", pool],
            env=bare.environment,
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
        if b"ermission denied" in other.stderr and b"junctura:" not in other.stderr:
            pytest.skip("another user cannot run the command where it is built")
        assert other.returncode == 1, other.stderr
        assert b"Denied" in other.stderr
        assert bare.run("ls", "--count", "--pool", pool).stdout == b"0\n"
