"""Servers that end with their components, and servers that die and come back: who is told what."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_shell import JUNCTURA, Shell

import junctura

COMPONENT = """
import sys
import junctura
pool = junctura.Pool(sys.argv[1], name=sys.argv[2], schema="free")
print("here", flush=True)
sys.stdin.readline()
pool.close()
"""


class Component:
    """A program of its own, which stays until it is told to go, or is killed."""

    def __init__(self, shell: Shell, name: str) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", COMPONENT, url(shell), name]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "here\n"

    def go(self) -> None:
        self.process.communicate("go\n", timeout=60)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


def url(shell: Shell) -> str:
    return f"unix:{shell.folder}/junctura/test.sock"


def states(shell: Shell) -> dict[str, str]:
    return {one["name"]: one["state"] for one in shell.stat()["until_gone"]}


@pytest.mark.parametrize("last", ["goes", "is killed"])
def test_lesson_04_a_server_ends_when_its_components_have_come_and_gone(bare: Shell, last: str) -> None:
    """Jobs used marker files and signals to stop the service."""
    server = bare.serve("--until-gone", "model,viewer")
    bare.run("put", "-", "--schema", "free", "--set", "name=a", stdin=b"payload")
    assert states(bare) == {"model": "awaited", "viewer": "awaited"}
    model, viewer = Component(bare, "model"), Component(bare, "viewer")
    second = Component(bare, "model")
    viewer.go()
    model.kill()
    assert states(bare) == {"model": "here", "viewer": "gone"}
    other = Component(bare, "other")
    if last == "goes":
        second.go()
    else:
        second.kill()
    code, _, said = server.end()
    assert (code, "ending: model, viewer disconnected" in said) == (0, True), said
    other.go()


def test_lesson_04_what_is_owed_is_received_before_the_server_ends_with_its_components(bare: Shell) -> None:
    server = bare.serve("--until-gone", "model")
    with junctura.Pool(url(bare), name="archive", schema="free") as archive, archive.require("") as requirement:
        model = Component(bare, "model")
        bare.run("put", "-", "--schema", "free", "--set", "name=a", stdin=b"payload")
        model.kill()
        assert "draining: model disconnected" in server.said()
        with pytest.raises(junctura.Unavailable, match="draining"):
            junctura.Pool(url(bare))
        requirement.demand(name="a").release()
        assert server.end()[0] == 0


def test_who_starts_a_server_says_with_whom_it_ends(bare: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUNCTURA_PROGRAM", str(JUNCTURA))
    (bare.folder / "junctura").mkdir(mode=0o700)
    pool = junctura.Pool(url(bare), name="model", schema="free", start=True, until_gone=["model"])
    pool.offer(b"payload", name="it would stay for this")
    server = os.pidfd_open(pool.stat()["server"]["pid"])
    pool.close()
    assert select.select([server], [], [], 60)[0]
    os.close(server)


REQUIREMENTS = """
requirements:
  archive: {selector: "space=kept"}
  workers: {selector: "space=shared", group: true}
"""


class Producer:
    """What a producer knows: the versions that were acknowledged, and which of them it has withdrawn."""

    def __init__(self, shell: Shell) -> None:
        self.pool = junctura.Pool(url(shell), name="producer", schema="free")
        self.there: dict[junctura.Version, str] = {}

    def offer(self, space: str, count: int) -> None:
        for at in range(count):
            version = self.pool.offer(bytes(at * 1000), space=space, name=f"{len(self.there)}")
            assert version is not None
            self.there[version] = space

    def withdraw(self, version: junctura.Version) -> None:
        space, name = self.there.pop(version), f"{version.sequence - 1}"
        self.pool.withdraw(space=space, name=name, force=True)


def receive(follow: junctura.Follow, count: int) -> set[junctura.Version]:
    received = set()
    for _ in range(count):
        obj = follow.next()
        received.add(obj.version)
        obj.release()
    return received


def test_what_is_reported_lost_with_a_server_is_what_was_lost(bare: Shell, tmp_path: Path) -> None:
    """A server is killed, and comes back under its name: its clients can tell what they had from what is lost."""
    requirements = tmp_path / "requirements.yaml"
    requirements.write_text(REQUIREMENTS)
    server = bare.serve("--requirements", str(requirements))
    producer = Producer(bare)
    clients = [junctura.Pool(url(bare), schema="free") for _ in range(5)]
    early, late, nothing, archive, worker = clients
    # Readers that saw all, a part, nothing; a reader and a member of what outlives its clients.
    follows = {early: early.follow("space=looked"), late: late.follow("space=looked")}
    silent = nothing.follow("space=nobody")
    kept, shared = archive.follow(requirement="archive"), worker.follow(group="workers")
    for space, count in (("looked", 12), ("kept", 8), ("shared", 8)):
        producer.offer(space, count)
    received = {early: receive(follows[early], 12), late: receive(follows[late], 5)}
    received[archive], received[worker] = receive(kept, 3), receive(shared, 2)
    cursors = {client: follow.cursor for client, follow in follows.items()}
    producer.withdraw(max(version for version, space in producer.there.items() if space == "looked"))
    there = {entry.version: entry["space"] for entry in producer.pool.list()}
    assert producer.there == there
    assert silent.cursor is None
    old = producer.pool.incarnation

    server.kill()
    for client in clients:
        with pytest.raises(junctura.Disconnected):
            client.list()
    with pytest.raises(junctura.Disconnected):
        producer.pool.offer(b"", name="never")
    with pytest.raises(junctura.Disconnected):
        next(follows[early])
    bare.serve("--requirements", str(requirements))

    again = junctura.Pool(url(bare), schema="free")
    assert again.incarnation > old
    assert again.list() == []
    # What is gone is what the producer knows to have been there: every version of its own that belongs to the old life.
    assert {version for version in producer.there if version.incarnation < again.incarnation} == set(there)
    for client, cursor in cursors.items():
        assert cursor is not None
        with pytest.raises(junctura.Expired, match=f"incarnation {old}.*this is {again.incarnation}") as told:
            again.follow("space=looked", cursor=cursor)
        assert cursor in told.value.subject
        until = junctura.Version.of_cursor(cursor)
        assert str(until) in told.value.cause
        reported = {version for version, space in there.items() if space == "looked" and version > until}
        lost = {version for version, space in there.items() if space == "looked"} - received[client]
        assert reported == lost
    # Requirements of the file stand again, and are owed nothing of the old life: what was not received is lost.
    stat = again.stat()["named_requirements"]
    assert [(one["name"], one["owed"]) for one in stat] == [("archive", 0), ("workers", 0)]
    for client, space, left in ((archive, "kept", 5), (worker, "shared", 6)):
        owed = {version for version, of in there.items() if of == space} - received[client]
        assert len(owed) == left
        newest = max(received[client])
        assert {version for version, of in there.items() if of == space and version > newest} == owed
    # Life goes on: newer versions are larger, and a new cursor is good.
    version = again.offer(b"", space="looked", name="0")
    assert version is not None
    assert version > max(there)
    with again.follow("space=looked") as follow:
        assert receive(follow, 1) == {version}
        cursor = follow.cursor
    with again.follow("space=looked", cursor=cursor) as resumed:
        again.offer(b"", space="looked", name="1")
        assert next(resumed)["name"] == "1"


def test_a_server_does_not_start_with_requirements_that_are_none(bare: Shell, tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.yaml"
    requirements.write_text('requirements:\n  a: {selector: "name=a"}\n  b: {selector: "name=="}\n')
    said = bare.error(2, "pool", "serve", "--pool", bare.pool, "--requirements", requirements)
    assert "line 3" in said
    assert "InvalidSelector" in said
    requirements.write_text("requirements:\n  a: {}\n")
    assert "needs the field selector" in bare.error(
        2, "pool", "serve", "--pool", bare.pool, "--requirements", requirements
    )
