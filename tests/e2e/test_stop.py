"""Servers that end: asked by a command, by a signal, with and without somebody who is still owed something."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from e2e_shell import Process, Shell

import junctura


def connect(shell: Shell) -> junctura.Pool:
    return junctura.Pool(f"unix:{shell.folder}/junctura/test.sock", schema="free")


def put(shell: Shell, name: str) -> None:
    shell.run("put", "--quiet", "-", "--schema", "free", "--set", f"name={name}", stdin=b"payload")


def wait_for_the_drain(pool: junctura.Pool) -> None:
    """Whoever waits for what will not come is told when the server begins to drain."""
    with pytest.raises(junctura.Closed, match="draining"):
        pool.demand("name=never")


def test_a_server_that_owes_nothing_ends_at_once_and_the_next_can_begin(bare: Shell) -> None:
    for _ in range(3):
        server = bare.serve()
        put(bare, "a")
        assert "has ended" in bare.run("pool", "stop").stderr.decode()
        assert server.end()[0] == 0
    assert "no server runs there" in bare.error(3, "pool", "stop")
    assert "Unavailable" in bare.error(5, "pool", "stop", "--pool", "unix:@junctura-nobody")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_where_nothing_is_owed(bare: Shell, number: int) -> None:
    server = bare.serve()
    put(bare, "a")
    with connect(bare) as pool, pool.follow() as follow:
        assert next(follow)["name"] == "a"
        server.signal(number)
        assert server.end()[0] == 0


def owing(shell: Shell, *arguments: str) -> tuple[Process, junctura.Pool, junctura.Requirement]:
    server = shell.serve(*arguments)
    pool = connect(shell)
    requirement = pool.require("")
    put(shell, "a")
    return server, pool, requirement


def test_what_is_owed_is_received_first(bare: Shell) -> None:
    server, pool, requirement = owing(bare)
    stop = bare.start("pool", "stop")
    wait_for_the_drain(pool)
    assert bare.stat()["draining"] == {"owed": 1, "undelivered": 0}
    assert "still to be received: 1 by requirements, 0 by follows" in bare.text("pool", "stat")
    assert "draining" in bare.error(5, "ls")
    with pytest.raises(junctura.Closed):
        pool.offer(b"", name="b")
    requirement.demand("name=a").release()
    code, _, said = stop.end()
    assert (code, server.end()[0]) == (0, 0)
    assert "has ended" in said


def test_a_time_or_a_word_ends_it_anyway_and_what_was_left_is_said(bare: Shell) -> None:
    server, _pool, _requirement = owing(bare)
    said = bare.error(4, "pool", "stop", "--timeout", "20ms")
    assert "the server has ended after 20ms (--timeout), and 1 object was not received and is lost: " in said
    code, _, said = server.end()
    assert code == 0
    assert "left: 1, " in said
    server, _pool, _requirement = owing(bare)
    said = bare.run("pool", "stop", "--now").stderr.decode()
    assert "1 object was not received and is lost: " in said
    assert "has ended" in said
    assert server.end()[0] == 0


def test_a_stop_names_what_it_waits_for(bare: Shell, tmp_path: Path) -> None:
    server = bare.serve()
    bare.run("pool", "require", "name=a", "--name", "workers", "--group")
    bare.run("pool", "require", "name=a", "--name", "viewer")
    put(bare, "a")
    stop = bare.start("pool", "stop")
    said = stop.said()
    assert "drains until consumers have received 2 objects: " in said
    assert "1 for group workers (it has no members)" in said
    assert "1 for requirement viewer (no client reads it)" in said
    assert said.endswith("(or --group) receives them; --now ends it at once, and they are lost")
    bare.run("get", "--all", "--requirement", "viewer", "-o", f"{tmp_path}/saved/")
    assert [file.read_bytes() for file in (tmp_path / "saved").iterdir()] == [b"payload"]
    bare.run("pool", "stop", "--now")
    assert stop.end()[0] == 4
    assert server.end()[0] == 0


def test_a_reader_that_is_owed_something_can_connect_while_it_drains(bare: Shell, tmp_path: Path) -> None:
    server = bare.serve()
    bare.run("pool", "require", "name=a/b", "--name", "workers", "--group")
    bare.run("pool", "require", "name=a", "--name", "viewer")
    put(bare, "a")
    put(bare, "b")
    with connect(bare) as pool:
        stop = bare.start("pool", "stop")
        assert "2 for group workers (it has no members)" in stop.said()
        wait_for_the_drain(pool)
    # Whoever wants anything else is refused.
    assert "draining" in bare.error(5, "ls")
    assert "draining" in bare.error(5, "get", "--all", "name=a", "-o", f"{tmp_path}/other/")
    assert "draining" in bare.error(5, "put", "-", "--schema", "free", "--set", "name=c", stdin=b"payload")
    with pytest.raises(junctura.Unavailable, match="draining"), connect(bare) as pool:
        pool.demand("name=a")
    with pytest.raises(junctura.Unavailable, match="draining"), connect(bare) as pool:
        pool.require("name=a", name="another")
    bare.run("get", "--all", "--group", "workers", "-o", f"{tmp_path}/", "--template", "{name}")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a", "b"]
    with connect(bare) as pool, pool.follow(requirement="viewer", until_live=True) as follow:
        assert [bytes(obj) for obj in follow] == [b"payload"]
    code, _, said = stop.end()
    assert (code, server.end()[0]) == (0, 0), said


def test_a_follow_receives_what_was_visible(bare: Shell) -> None:
    server = bare.serve()
    with connect(bare) as reader, connect(bare) as producer:
        follow = reader.follow(window=1)
        for number in range(20):
            producer.offer(b"payload", name=f"{number:02}")
        stop = bare.start("pool", "stop")
        received = [next(follow)["name"] for _ in range(20)]
        with pytest.raises(junctura.Closed):
            next(follow)
        assert received == [f"{number:02}" for number in range(20)]
    assert stop.end()[0] == 0
    assert server.end()[0] == 0


def test_a_follow_that_reads_nothing_is_not_waited_for_and_reports_what_it_missed(bare: Shell) -> None:
    server = bare.serve("--stuck-after", "200ms")
    with connect(bare) as reader:
        follow = reader.follow(window=1, gaps="yield")
        for name in "abc":
            put(bare, name)
        with next(follow) as first:
            assert first["name"] == "a"
            stop = bare.error(3, "pool", "stop")
        assert "Gone: " in stop
        assert "the server has ended, and 2 objects were not received and are lost: " in stop
        assert 'follows "" (2)' in stop
        gap = next(follow)
        assert isinstance(gap, junctura.Gap)
        assert gap.reason == "stopped"
        assert [item["name"] for item in gap.items] == ["b", "c"]
        with pytest.raises(junctura.Closed):
            next(follow)
    code, _, said = server.end()
    assert code == 0
    assert "2 objects were not delivered to follows" in said


def test_a_stop_names_the_follows_that_it_waits_for_and_a_time_ends_the_wait(bare: Shell) -> None:
    server = bare.serve()
    with connect(bare) as reader:
        follow = reader.follow(window=1)
        for name in "abc":
            put(bare, name)
        with next(follow):
            stop = bare.start("pool", "stop", "--timeout", "2s")
            assert "received 2 objects: 2 for follows; after 2s the server ends, and they are lost" in stop.said()
            code, _, said = stop.end()
    assert code == 4
    assert 'follows "" (2)' in said
    assert server.end()[0] == 0


def test_a_second_signal_does_not_wait(bare: Shell) -> None:
    server, pool, requirement = owing(bare, "--drain-timeout", "1h")
    server.signal(signal.SIGTERM)
    assert "draining" in server.said()
    wait_for_the_drain(pool)
    server.signal(signal.SIGTERM)
    assert server.end()[0] == 0
    with pytest.raises(junctura.Closed):
        requirement.demand("name=a")


def test_the_first_signal_has_its_time(bare: Shell) -> None:
    server, _pool, _requirement = owing(bare, "--drain-timeout", "20ms")
    server.signal(signal.SIGINT)
    code, _, said = server.end()
    assert code == 0
    assert "left: 1, " in said
