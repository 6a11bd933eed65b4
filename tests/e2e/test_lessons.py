"""Lessons of earlier systems that are about servers and the command line; the others are in `tests/python`."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

import pytest
from e2e_shell import Shell

import junctura


def offer_pipelined(pool: junctura.Pool, names: list[str]) -> Callable[[], object]:
    pipeline = pool.pipeline(window=len(names))
    for name in names:
        pipeline.offer(b"x", name=name)
    pipeline.push()
    return pipeline.flush


@pytest.mark.parametrize("count", [100, 1000])
def test_lesson_13_thousands_of_small_messages_travel_in_few_pieces(bare: Shell, count: int) -> None:
    """Thousands of objects smaller than their keys: whatever has gathered is read at once, and answered at once."""
    bare.pool = "unix:messages"
    server = bare.serve("--schema", "free")
    names = [f"a/name/longer/than/its/payload/{at:05}" for at in range(count)]
    with junctura.Pool(f"unix:{bare.folder / 'junctura' / 'messages.sock'}") as pool:
        before = pool.stat()["server"]["traffic"]
        # While the server stands still, all offers are said: how fast the machine is makes no difference.
        server.signal(signal.SIGSTOP)
        os.waitpid(server.pid, os.WUNTRACED)
        flush = offer_pipelined(pool, names)
        server.signal(signal.SIGCONT)
        flush()
        after = pool.stat()["server"]["traffic"]
        assert pool.stat()["totals"]["offered"] == count
    went = {what: after[what] - before[what] for what in after}
    # The offers and one `stat`; their answers, and those of both `stat`.
    assert (went["frames_read"], went["frames_written"]) == (count + 1, count + 1)
    # The ring is read in pieces of 16 KiB at least, one more for its end, and one for `stat`.
    assert went["reads"] <= 2 + went["bytes_read"] // (16 << 10) + 1
    # Each turn of a millisecond is answered: how many there are depends on the machine.
    assert went["writes"] <= 2 + count // 50


def test_lesson_16_a_server_needs_no_start_and_no_stop(bare: Shell) -> None:
    """A pool had to be started and stopped by hand around the job."""
    bare.run("put", "-", "--schema", "free", "--set", "name=a", stdin=b"payload")
    assert bare.run("get", "name=a").stdout == b"payload"
    server = os.pidfd_open(bare.stat()["server"]["pid"])
    bare.run("pool", "withdraw-all", "name=a")
    assert select.select([server], [], [], 60)[0]
    os.close(server)


UNKNOWN = [
    (2, ["frobnicate"]),
    (2, ["ls", "--frobnicate"]),
    (2, ["watch", "--kind", "frobnicated"]),
    (3, ["put", "-", "--schema", "frobnicated", "--set", "name=b"]),
    (2, ["put", "-", "--schema", "free", "--format", "frobnicated", "--set", "name=b"]),
    (2, ["ls", "--pool", "frobnicated:there"]),
    (2, ["pool", "serve", "--pool", "unix:@junctura-frobnicated", "--schema", "frobnicated"]),
    (3, ["pool", "retract", "frobnicated"]),
]


@pytest.mark.parametrize(("status", "command"), UNKNOWN, ids=[" ".join(command) for _, command in UNKNOWN])
def test_lesson_26_an_unknown_name_is_an_error_and_the_server_lives_on(
    shell: Shell, status: int, command: list[str]
) -> None:
    """An unknown plug-in name aborted the server."""
    shell.run("put", "-", "--schema", "free", "--set", "name=a", stdin=b"payload")
    server = shell.stat()["server"]["pid"]
    said = shell.error(status, *command)
    assert "frobnicate" in said
    assert "panicked" not in said
    assert shell.stat()["server"]["pid"] == server
    assert shell.text("ls", "--count") == "1\n"
