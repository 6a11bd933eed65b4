"""`junctura wait-for`: until so many objects are there; nothing between what is there and what comes is missed."""

from __future__ import annotations

import signal
from pathlib import Path

from e2e_grib import Field
from e2e_shell import Shell


def put(shell: Shell, *names: str) -> None:
    for name in names:
        shell.run("put", "-", "--schema", "free", "--set", f"name={name}", stdin=name.encode())


def test_what_is_there_counts(shell: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    shell.run("put", file)
    assert shell.text("wait-for", "*", "--count", str(len(fields))) == f"{len(fields)} objects\n"
    assert shell.text("wait-for", "param=t", "--quiet") == ""
    assert shell.text("wait-for", "param=none", "--count", "0") == "0 objects\n"
    # No payload has moved, so nothing was received.
    assert shell.stat()["totals"]["delivered"] == 0


def test_what_comes_counts_once(shell: Shell) -> None:
    put(shell, "a")
    wait = shell.start("wait-for", "space=default", "--count", "3", "--json")
    # What is withdrawn counts only where the command had subscribed before.
    while not shell.stat()["interests"]["standing"]:
        assert wait.popen.poll() is None
    put(shell, "b")
    shell.run("pool", "withdraw", "--schema", "free", "name=b")
    assert wait.popen.poll() is None
    put(shell, "c")
    document = wait.document()
    assert wait.end()[0] == 0
    assert (document["objects"], document["count"], document["reached"]) == (3, 3, True)


def test_a_time_that_is_over_has_its_status(shell: Shell) -> None:
    put(shell, "a")
    for timeout in ("0s", "10ms"):
        said = shell.error(4, "wait-for", "name=a/b", "--count", "2", "--timeout", timeout)
        assert "1 of 2 objects arrived in time" in said
    done = shell.run("wait-for", "name=a/b", "--count", "2", "--timeout", "0s", "--json", status=4)
    assert b'"reached":false' in done.stdout


def test_waits_end_with_ctrl_c_and_with_their_server(shell: Shell) -> None:
    joined = shell.watch("--kind", "joined")
    for end in (signal.SIGINT, None):
        wait = shell.start("wait-for", "name=never")
        joined.document()
        if end is None:
            shell.run("pool", "stop", "--now")
        else:
            wait.signal(end)
        assert wait.end()[0] == (5 if end is None else 130)


def test_wrong_arguments_are_told(shell: Shell) -> None:
    assert "InvalidSelector" in shell.error(2, "wait-for", "step=0/to")
    assert "SELECTOR" in shell.error(2, "wait-for")
    assert "Unavailable" in shell.error(5, "wait-for", "x=1", "--pool", "unix:@nobody-is-here")
