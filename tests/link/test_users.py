"""Pools on loopback between users of one host."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from e2e_shell import JUNCTURA, Shell

NOBODY = "65534"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("another user needs root and setpriv")
    file = tmp_path / "secret"
    file.write_text("secret")
    return file


def as_another_user(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    environment = {**os.environ, "HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent", **variables}
    command = [*user, str(JUNCTURA), *arguments]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=60, check=False)


def test_without_secrets_a_pool_on_loopback_is_its_own_users(bare: Shell, secret: Path) -> None:
    server = bare.start("pool", "serve", "--pool", "tcp://127.0.0.1:0", "--announce", "--schema", "free")
    url = server.line()
    bare.run("put", secret, "--pool", url, "--set", "name=mine")
    for trusted in ({}, {"JUNCTURA_CA_FILE": "none"}):
        for arguments in (("get", "name=mine", "-o", "-", "--pool", url), ("pool", "stop", "--pool", url, "--now")):
            refused = as_another_user(*arguments, **trusted)
            assert refused.returncode != 0
            assert "secret" not in refused.stdout
            assert f"runs as user {NOBODY if trusted else 0}" in refused.stderr, refused.stderr
    assert server.popen.poll() is None
    assert bare.text("get", "name=mine", "-o", "-", "--pool", url) == "secret"


def test_a_pool_on_loopback_is_everybodys_where_that_is_asked_for(bare: Shell, secret: Path) -> None:
    url = bare.start(
        "pool", "serve", "--pool", "tcp://127.0.0.1:0", "--announce", "--schema", "free", "--security", "none"
    ).line()
    bare.run("put", secret, "--pool", url, "--set", "name=mine")
    refused = as_another_user("get", "name=mine", "-o", "-", "--pool", url)
    assert "the server runs as user 0" in refused.stderr, refused.stderr
    got = as_another_user("get", "name=mine", "-o", "-", "--pool", url, JUNCTURA_CA_FILE="none")
    assert got.stdout == "secret", got.stderr


@pytest.mark.usefixtures("secret")
def test_another_user_needs_a_token_and_the_certificate(bare: Shell, tmp_path: Path) -> None:
    bare.run("cert", tmp_path / "secrets", "--host", "127.0.0.1")
    bare.run("token", "make", tmp_path / "secrets", "--for", "friend", "--rights", "admin", "--out", tmp_path / "token")
    url = bare.start(
        "pool",
        "serve",
        "--pool",
        "tcp://127.0.0.1:0",
        "--announce",
        "--schema",
        "free",
        "--security",
        str(tmp_path / "secrets"),
    ).line()
    given = Path("/tmp") / f"junctura-{os.getpid()}"
    given.mkdir(mode=0o755)
    try:
        shutil.copy(tmp_path / "token", given / "token")
        os.chown(given / "token", int(NOBODY), int(NOBODY))
        shutil.copy(tmp_path / "secrets/ca.pem", given / "ca.pem")
        (given / "ca.pem").chmod(0o644)
        token = {"JUNCTURA_TOKEN_FILE": str(given / "token")}
        refused = as_another_user("ls", "--count", "*", "--pool", url, **token)
        assert "the server runs as user 0" in refused.stderr, refused.stderr
        shown = as_another_user("ls", "--count", "*", "--pool", url, JUNCTURA_CA_FILE=str(given / "ca.pem"), **token)
        assert shown.stdout.strip() == "0", shown.stderr
    finally:
        shutil.rmtree(given)
