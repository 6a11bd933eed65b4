"""What is committed to a store, as it comes: options and verbs that a pool has, too; and how far long work has come."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from e2e_shell import JUNCTURA, Shell, shown_until_its_end


@pytest.fixture
def store(bare: Shell, tmp_path: Path) -> list[str]:
    where = ["--store", str(tmp_path / "store")]
    bare.run("store", "create", *where, "--schema", "free", "-q")
    return where


def archive(bare: Shell, store: list[str], name: str, payload: bytes | None = None, *said: str) -> None:
    payload = name.encode() if payload is None else payload
    bare.run("store", "archive", *store, "-", "--set", f"name={name}", *said, stdin=payload)


def test_a_watch_tells_what_is_committed_from_now_on(bare: Shell, store: list[str]) -> None:
    archive(bare, store, "before")
    watches = [bare.start("watch", *store, "name=a/b", "--count", "2", *how) for how in ([], ["--json"])]
    for watch in watches:
        assert watch.said() == f"junctura: watching {store[1]}"
    archive(bare, store, "a", bytes(100_000))
    archive(bare, store, "other")
    archive(bare, store, "b")
    lines = bare.documents("store", "inspect", *store, "name=a/b", "--json")
    status, said, _ = watches[0].end()
    assert (status, said.splitlines()) == (
        0,
        [
            f"archived 2 {lines[0]['key']} 97.7 KiB in {lines[0]['uri']} at {lines[0]['offset']}",
            f"archived 4 {lines[1]['key']} 1 B in {lines[1]['uri']} at {lines[1]['offset']}",
        ],
    )
    status, said, _ = watches[1].end()
    first, _ = map(json.loads, said.splitlines())
    assert status == 0
    assert (first["event"], first["commit"], first["bytes"], first["schema"]) == ("archived", 2, 100_000, "free")
    assert first["attributes"]["name"] == "a"
    assert [first[name] for name in ("key", "uri", "offset")] == [lines[0][name] for name in ("key", "uri", "offset")]


def test_a_watch_ends_when_it_is_time(bare: Shell, store: list[str]) -> None:
    archive(bare, store, "before")
    assert bare.text("watch", *store, "--timeout", "1ms") == ""
    assert "1 more were expected" in bare.error(4, "watch", *store, "--count", "1", "--timeout", "1ms")
    assert "cannot be used with" in bare.error(2, "watch", *store, "--kind", "offered")
    watch = bare.start("watch", *store)
    assert "watching" in watch.said()
    watch.signal(signal.SIGINT)
    assert watch.end()[0] == 130


def test_what_is_there_and_what_comes_is_waited_for(bare: Shell, store: list[str]) -> None:
    archive(bare, store, "a")
    assert bare.text("wait-for", *store, "name=a") == "1 object\n"
    assert bare.text("wait-for", *store, "name=none", "--count", "0") == "0 objects\n"
    waits = bare.start("wait-for", *store, "name=a/b", "--count", "2", "--json")
    # Another version of a key is not another object.
    archive(bare, store, "a", b"again")
    archive(bare, store, "b")
    document = waits.document()
    assert waits.end()[0] == 0
    assert (document["objects"], document["count"], document["reached"]) == (2, 2, True)
    for timeout in ("0s", "10ms"):
        said = bare.error(4, "wait-for", *store, "name=a/c", "--count", "2", "--timeout", timeout)
        assert "1 of 2 objects arrived in time" in said
    assert "name=" in bare.error(2, "wait-for", *store, "name=")


def test_a_retrieval_goes_on_until_so_many_came(bare: Shell, store: list[str], tmp_path: Path) -> None:
    archive(bare, store, "a")
    waits = bare.start("store", "retrieve", *store, "name=a/b/c/d", "--count", "3", "-o", "-")
    for name in "bcd":
        archive(bare, store, name)
    assert waits.end()[:2] == (0, "abc")
    assert bare.run("store", "retrieve", *store, "*", "--count", "2", "-o", "-").stdout == b"ab"
    out = tmp_path / "out"
    said = bare.error(4, "store", "retrieve", *store, "name=a/b", "--count", "3", "--timeout", "1ms", "-o", out)
    assert "1 more were expected" in said
    assert not out.exists()


def test_masked_versions_are_retrieved_too(bare: Shell, store: list[str], tmp_path: Path) -> None:
    for payload in (b"1", b"2", b"3"):
        archive(bare, store, "a", payload)
    assert bare.run("store", "retrieve", *store, "name=a", "-o", "-").stdout == b"3"
    every = ["store", "retrieve", *store, "name=a", "--all-versions"]
    assert bare.run(*every, "-o", "-").stdout == b"123"
    assert bare.run(*every, "--count", "2", "-o", "-").stdout == b"12"
    bare.run(*every, "-o", f"{tmp_path}/each/")
    files = {path.name.rpartition("version=")[2]: path.read_bytes() for path in (tmp_path / "each").iterdir()}
    assert files == {"1": b"1", "2": b"2", "3": b"3"}
    assert "missing: {name=b}" in bare.error(3, "store", "retrieve", *store, "name=a/b", "--all-versions", "-o", "-")


def test_a_retrieval_is_ordered(bare: Shell, store: list[str]) -> None:
    for name, rank in (("c", "x"), ("a", "z"), ("b", "y"), ("d", "x")):
        archive(bare, store, name, None, "--set", f"rank={rank}")
    for how, expected in (([], b"cabd"), (["--sort", "name"], b"abcd"), (["--sort", "rank"], b"cdba")):
        assert bare.run("store", "retrieve", *store, "*", *how, "-o", "-").stdout == expected
    assert bare.run("store", "retrieve", *store, "*", "--sort", "name", "--count", "4", "-o", "-").stdout == b"abcd"


def with_terminal(bare: Shell, *command: str) -> tuple[subprocess.Popen[bytes], int]:
    """Begins it with a terminal for what it says beside its output; gives our end of that."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen(
        [str(JUNCTURA), *command],
        env={**bare.environment, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    return process, ours


def test_a_terminal_is_shown_how_far_it_is(bare: Shell, store: list[str], tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"n{number}").write_bytes(bytes(100_000))
    bare.run("store", "archive", *store, *(tmp_path / f"n{number}" for number in range(60)))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    retrieval, ours = with_terminal(bare, "store", "retrieve", *store, "*", "-o", str(pipe))
    shown, left = b"", 60 * 100_000
    with pipe.open("rb", buffering=0) as payloads:
        while left > 0:
            left -= len(payloads.read(min(left, 100_000)))
            # The reader is in no hurry until there is a bar, which comes when it takes long.
            if not shown and select.select([ours], [], [], 0.05)[0]:
                shown += os.read(ours, 65536)
    shown += shown_until_its_end(ours)
    assert retrieval.wait(timeout=60) == 0
    assert b"5.72 MiB" in shown
    assert b"60 objects, " in shown


def test_a_terminal_is_shown_that_work_goes_on(bare: Shell, store: list[str]) -> None:
    archive(bare, store, "a")
    logs = sorted(path for path in Path(store[1], "log").iterdir() if path.name.isdigit())
    with logs[-1].open("rb+") as log:
        # Nobody commits as long as another one has the log.
        fcntl.flock(log, fcntl.LOCK_EX)
        wipe, ours = with_terminal(bare, "store", "wipe", *store, "name=a", "--yes")
        shown = b""
        while b"removing" not in shown:
            shown += os.read(ours, 65536)
        fcntl.flock(log, fcntl.LOCK_UN)
    shown_until_its_end(ours)
    assert wipe.communicate(timeout=60)[0] == b"removed 1 object, 1 B\n"
    assert wipe.returncode == 0
