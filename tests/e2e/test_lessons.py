"""Lessons of earlier systems that are about servers and the command line; the others are in `tests/python`."""

from __future__ import annotations

import os
import select

import pytest
from e2e_shell import Shell


def test_lesson_16_a_server_needs_no_start_and_no_stop(bare: Shell) -> None:
    """A pool had to be started and stopped by hand around the job."""
    bare.run("put", "-", "--schema", "free", "--set", "name=a", stdin=b"payload")
    assert bare.run("get", "name=a").stdout == b"payload"
    server = os.pidfd_open(bare.stat()["server"]["pid"])
    bare.run("retire", "name=a")
    assert select.select([server], [], [], 60)[0]
    os.close(server)


UNKNOWN = [
    (2, ["frobnicate"]),
    (2, ["ls", "--frobnicate"]),
    (2, ["watch", "--kind", "frobnicated"]),
    (3, ["put", "-", "--schema", "frobnicated", "--set", "name=b"]),
    (2, ["put", "-", "--schema", "free", "--format", "frobnicated", "--set", "name=b"]),
    (2, ["ls", "--pool", "frobnicated:there"]),
    (2, ["serve", "unix:@junctura-frobnicated", "--schema", "frobnicated"]),
    (3, ["retract", "frobnicated"]),
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
