"""Leases: who is dead is gone at once, who is stopped when its lease is over."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from e2e_shell import Process, Shell

import junctura

HOLDER = """
import sys
import junctura
with junctura.Pool(sys.argv[1], name="holder", schema="free") as pool:
    held = pool.demand(name="held")
    print(held.transport, flush=True)
    try:
        pool.demand(name="never")
    except junctura.Disconnected as error:
        print("Disconnected", held.array().sum(), error, flush=True)
"""


def serve(bare: Shell, lease: str) -> str:
    return start(bare, lease)[1]


def start(bare: Shell, lease: str) -> tuple[Process, str]:
    server = bare.start(
        "pool", "serve", "--pool", "tcp://127.0.0.1:0", "--announce", "--schema", "free", "--lease", lease
    )
    return server, server.line()


def hold(url: str) -> subprocess.Popen[str]:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "tcp\n"
    return holder


def left(events: junctura.Subscription) -> str:
    """Why the holder has left, once it has."""
    while True:
        event = next(events)
        if event.client is not None and event.client.name == "holder":
            return str(event.reason)


def test_a_client_that_is_stopped_is_given_up_after_its_lease(bare: Shell) -> None:
    url = serve(bare, "1s")
    with junctura.Pool(url, schema="free") as pool, pool.subscribe(kinds=["left"]) as events:
        pool.offer(b"\1" * 100_000, name="held", retention=junctura.Released(1))
        holder = hold(url)
        assert pool.stat()["objects"]["held"] == 1
        os.kill(holder.pid, signal.SIGSTOP)
        left(events)
        # What it held is others'.
        with pool.demand(name="held") as again:
            assert again.array("u1").sum() == 100_000
        os.kill(holder.pid, signal.SIGCONT)
        said, _ = holder.communicate(timeout=60)
        # What it holds stays readable to it.
        assert said.startswith("Disconnected 100000 "), said


def test_a_client_that_is_killed_is_gone_at_once(bare: Shell) -> None:
    url = serve(bare, "1h")
    with junctura.Pool(url, schema="free") as pool, pool.subscribe(kinds=["left"]) as events:
        pool.offer(b"\1" * 100_000, name="held", retention=junctura.Released(1))
        holder = hold(url)
        holder.kill()
        holder.communicate()
        left(events)
        with pool.demand(name="held") as again:
            assert again.nbytes == 100_000


def test_a_client_that_only_computes_keeps_its_lease(bare: Shell) -> None:
    """Beats go while the program is busy, and hold what it holds."""
    url = serve(bare, "500ms")
    with junctura.Pool(url, schema="free") as pool, pool.subscribe(kinds=["left"]) as events:
        pool.offer(b"\1" * 100_000, name="held", retention=junctura.Released(1))
        holder = hold(url)
        # Longer than several leases, in which nobody calls anything.
        with pytest.raises(junctura.Timeout):
            events.next(timeout=2.0)
        assert [one["name"] for one in pool.stat()["clients"]].count("holder") == 1
        holder.kill()
        holder.communicate()
        left(events)


def test_a_server_that_is_stopped_is_given_up_after_its_lease(bare: Shell) -> None:
    server, url = start(bare, "500ms")
    with junctura.Pool(url, name="holder", schema="free") as pool:
        pool.offer(b"\1" * 100_000, name="held", retention=junctura.Released(1))
        held = pool.demand(name="held")
        server.signal(signal.SIGSTOP)
        with pytest.raises(junctura.Disconnected, match="nothing was received"):
            pool.demand(name="never")
        with pytest.raises(junctura.Disconnected):
            pool.offer(b"", name="late")
        # What it holds stays readable to it.
        assert held.array("u1").sum() == 100_000
    server.signal(signal.SIGCONT)
    # To the server, that client is gone: what it held is others'.
    with junctura.Pool(url, schema="free") as pool, pool.demand(name="held") as again:
        assert again.nbytes == 100_000
        assert "holder" not in [one["name"] for one in pool.stat()["clients"]]


def test_a_server_that_goes_on_before_the_lease_is_over_has_lost_nothing(bare: Shell) -> None:
    server, url = start(bare, "30s")
    names = [f"n{number}" for number in range(60)]
    with (
        junctura.Pool(url, name="reader", schema="free") as reader,
        junctura.Pool(url, schema="free") as writer,
        reader.follow("", window=4) as follow,
    ):
        writer.offer(b"first", name=names[0])
        taken = [follow.next()]
        server.signal(signal.SIGSTOP)
        offering = threading.Thread(target=lambda: [writer.offer(bytes(100_000), name=name) for name in names[1:]])
        offering.start()
        # Nothing is answered meanwhile, nor is anybody given up.
        offering.join(timeout=1.0)
        assert offering.is_alive()
        server.signal(signal.SIGCONT)
        for number, _ in enumerate(names[1:], start=1):
            taken.pop().release()
            taken.append(follow.next())
            assert taken[0]["name"] == names[number]
        offering.join()
        assert reader.stat()["objects"]["visible"] == len(names)
        assert [one["name"] for one in writer.stat()["clients"]].count("reader") == 1


def test_handshakes_of_strangers_leave_nothing_behind(bare: Shell, tmp_path: Path) -> None:
    bare.run("cert", tmp_path / "secrets", "--host", "127.0.0.1")
    bare.run("token", "make", tmp_path / "secrets", "--for", "friend", "--rights", "admin", "--out", tmp_path / "token")
    secrets = ["--security", str(tmp_path / "secrets")]
    server = bare.start("pool", "serve", "--pool", "tcp://127.0.0.1:0", "--announce", "--schema", "free", *secrets)
    url = server.line()
    port = int(url.rsplit(":", 1)[1])

    def memory() -> tuple[int, int]:
        status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
        anonymous = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
        return anonymous, len(list(Path(f"/proc/{server.pid}/fd").iterdir()))

    def strangers() -> None:
        for words in (
            b"",
            b"GET / HTTP/1.1\r\n\r\n",
            b"JUNCTURA\1\0\1\0\xa0",
            b"\x16\x03\x01\x02\0" + b"\xaa" * 512,
            b"J" * 9000,
        ):
            for _ in range(50):
                with socket.create_connection(("127.0.0.1", port)) as stranger:
                    try:
                        stranger.sendall(words)
                        stranger.shutdown(socket.SHUT_WR)
                        while stranger.recv(4096):
                            pass
                    except OSError:
                        # It has closed already.
                        pass

    strangers()
    before = memory()
    strangers()
    strangers()
    after = memory()
    assert after[1] <= before[1]
    assert after[0] <= before[0] + 2048, f"{before} {after} KiB"
    refused = bare.error(1, "ls", "--pool", url)
    assert "Denied" in refused
    assert "has shown none" in refused
    told = {"JUNCTURA_TOKEN_FILE": str(tmp_path / "token"), "JUNCTURA_CA_FILE": str(tmp_path / "secrets/ca.pem")}
    bare.environment |= told
    stat = bare.text("pool", "stat", "--json", "--pool", url)
    assert "tcp, TLS from 127.0.0.1" in stat
