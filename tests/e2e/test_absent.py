"""Pools that nobody serves: commands that read start no server, name the pools that there are, or wait."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from e2e_shell import JUNCTURA, Shell

READING = [
    ["ls"],
    ["ls", "--count", "name=a"],
    ["get", "name=a"],
    ["get", "--all", "name=a"],
    ["pool", "stat"],
    ["pool", "group"],
    ["pool", "bundle", "list"],
    ["pool", "wanted", "name=a"],
    ["pool", "withdraw", "name=a"],
    ["pool", "withdraw-all", "*"],
    ["pool", "retract", "worker"],
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_commands_that_read_start_no_server(bare: Shell, command: list[str]) -> None:
    said = bare.error(3, *command)
    assert said == "junctura: NotFound: unix:test: no server runs there; no pool of this user is served here\n"
    assert not list(bare.folder.glob("junctura/*.sock"))


def test_pools_that_are_served_are_named(bare: Shell) -> None:
    bare.serve()
    said = bare.error(3, "ls", "--pool", "unix:other")
    assert said.endswith("no server runs there; pools that are served here: unix:test\n")
    for near in ("unix:tests", "unix:tset"):
        said = bare.error(3, "ls", "--pool", near)
        assert said.endswith("pools that are served here: unix:test; did you mean unix:test?\n")
    said = bare.error(3, "cp", "unix:tests", "unix:test", "*")
    assert said.endswith("did you mean unix:test?\n")


@pytest.mark.parametrize(
    "command",
    [
        ["wait-for", "name=a"],
        ["get", "--wait", "name=a", "-o", "-"],
        ["get", "--timeout", "60s", "name=a", "-o", "-"],
        ["get", "--follow", "name=a", "--count", "1", "-o", "-"],
        ["watch", "name=a", "--count", "1"],
    ],
    ids=" ".join,
)
def test_commands_that_wait_wait_for_the_server(bare: Shell, command: list[str]) -> None:
    waiting = bare.start(*command)
    assert waiting.said().startswith("junctura: waits for the server of unix:test: no server runs there")
    bare.serve("--schema", "free")
    if command[0] == "watch":
        assert "watching" in waiting.said()
    bare.run("put", "-", "--set", "name=a", stdin=b"payload")
    status, out, _ = waiting.end()
    assert status == 0
    assert out == "payload" if command[0] == "get" else "a" in out or "1 object" in out


def test_a_wait_for_a_server_ends_in_time(bare: Shell) -> None:
    for command in (["get", "--timeout", "10ms", "name=a"], ["watch", "--count", "1", "--timeout", "10ms"]):
        assert "Timeout: unix:test: no server runs there" in bare.error(4, *command)
    done = bare.run("wait-for", "name=a", "--timeout", "0s", "--json", status=4)
    assert json.loads(done.stdout)["objects"] == 0
    assert b"no server runs there" in done.stderr
    bare.run("watch", "--timeout", "10ms")
    bare.run("get", "--follow", "name=a", "--timeout", "10ms", "-o", "-")


APART = ["unshare", "--pid", "--fork", "--mount-proc"]


def apart() -> list[str]:
    """The words that start a command in a pid namespace of its own, as a container does."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    for words in (APART, [APART[0], "--user", "--map-current-user", *APART[1:]]):
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            return words
    pytest.skip("this machine allows no pid namespace")


def test_a_pool_is_used_from_another_pid_namespace(bare: Shell, tmp_path: Path) -> None:
    words = apart()
    server = bare.serve("--schema", "free")
    payload = bytes(range(256)) * 4096
    (tmp_path / "x").write_bytes(payload)
    put = [*words, str(JUNCTURA), "put", str(tmp_path / "x"), "--set", "name=x"]
    subprocess.run(put, env=bare.environment, check=True, timeout=60)
    assert bare.run("get", "name=x", "-o", "-").stdout == payload
    get = [*words, str(JUNCTURA), "get", "name=x", "-o", "-"]
    assert subprocess.run(get, env=bare.environment, capture_output=True, check=True, timeout=60).stdout == payload
    server.kill()


def test_a_pool_in_another_pid_namespace_is_used_from_here(bare: Shell) -> None:
    words = apart()
    environment = bare.environment
    command = [*words, str(JUNCTURA), "pool", "serve", "--pool", "unix:test", "--schema", "free"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert "serving" in server.stderr.readline()
        payload = bytes(range(256)) * 4096
        bare.run("put", "-", "--set", "name=x", stdin=payload)
        assert bare.run("get", "name=x", "-o", "-").stdout == payload
        bare.run("pool", "stop", "--now")
        assert server.wait(timeout=60) == 0
