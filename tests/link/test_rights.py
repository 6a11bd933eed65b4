"""Tokens with rights: what each of them allows, and what becomes of one that is revoked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_shell import Shell

import junctura


class Guarded:
    """A pool that asks for tokens, served by a shell."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell, self.folder = shell, folder
        self.secrets = folder / "secrets"
        shell.run("cert", self.secrets, "--host", "127.0.0.1")
        # The key comes with the first token.
        self.admin = self.token("owner", "admin")
        options = ("--announce", "--schema", "free", "--security", str(self.secrets))
        shell.environment["JUNCTURA_LOG"] = "info"
        self.server = shell.start("pool", "serve", "--pool", "tcp://127.0.0.1:0", *options)
        del shell.environment["JUNCTURA_LOG"]
        self.url = self.server.line()

    def token(self, name: str, rights: str) -> Path:
        """A new token: its file."""
        file = self.folder / f"{name}.token"
        said = self.shell.run("token", "make", self.secrets, "--for", name, "--rights", rights, "--out", file)
        assert b"grants" in said.stderr
        return file

    def id(self, name: str) -> str:
        """The id that the list has for this name."""
        found = [
            token["id"]
            for token in self.shell.documents("token", "list", self.secrets, "--json")
            if token["name"] == name
        ]
        assert len(found) == 1
        return str(found[0])

    def run(self, token: Path, *arguments: str | Path, status: int = 0, stdin: bytes = b"") -> str:
        """Runs a command with a token: its output, or its messages where it fails."""
        variables = {"JUNCTURA_POOL": self.url, "JUNCTURA_TOKEN_FILE": str(token)}
        done = self.shell.run(*arguments, status=status, stdin=stdin, **variables)
        return (done.stderr if status else done.stdout).decode()

    def put(self, token: Path, name: str, status: int = 0) -> str:
        return self.run(token, "put", "-", "--set", f"name={name}", "--quiet", stdin=b"field", status=status)


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    """No transport is excluded: the rights are those of the token on the server's own machine, too."""
    shell = Shell()
    monkeypatch.delenv("JUNCTURA_TRANSPORTS", raising=False)
    yield Guarded(shell, tmp_path)
    shell.close()


def test_a_viewer_reads_and_changes_nothing(guarded: Guarded) -> None:
    viewer, model = guarded.token("viewer", "read"), guarded.token("model", "read,offer")
    guarded.put(model, "one")
    guarded.run(guarded.admin, "pool", "require", "name=kept", "--name", "keeper")
    assert guarded.run(viewer, "get", "name=one", "-o", "-") == "field"
    assert guarded.run(viewer, "ls", "--count", "*").strip() == "1"
    assert "token" in guarded.run(viewer, "pool", "stat", "--json")
    for right, arguments in (
        ("offer", ("pool", "withdraw", "name=one", "--schema", "free")),
        ("offer", ("pool", "withdraw-all", "name=one")),
        ("admin", ("pool", "retract", "keeper")),
        ("admin", ("pool", "stop", "--pool", guarded.url)),
        ("admin", ("pool", "stop", "--pool", guarded.url, "--now")),
    ):
        message = guarded.run(viewer, *arguments, status=1)
        assert f"needs the right {right}" in message, message
        assert f"token {guarded.id('viewer')} of this client has read;" in message, message
        assert "junctura token make FOLDER" in message
    assert "needs the right offer" in guarded.put(viewer, "two", status=1)
    assert "needs the right admin" in guarded.run(model, "pool", "stop", "--pool", guarded.url, status=1)
    assert guarded.run(model, "ls", "--count", "*").strip() == "1"
    guarded.run(guarded.admin, "pool", "stop", "--pool", guarded.url, "--now")
    assert guarded.server.end()[0] == 0


def test_the_token_of_a_client_is_shown_and_logged(guarded: Guarded) -> None:
    viewer = guarded.token("viewer", "read")
    shown = f"token {guarded.id('viewer')} (read) of viewer"
    assert shown in guarded.run(viewer, "pool", "stat")
    guarded.put(guarded.admin, "one")
    guarded.run(viewer, "get", "name=one", "-o", "-")
    guarded.run(guarded.admin, "pool", "stop", "--pool", guarded.url, "--now")
    status, _, log = guarded.server.end()
    assert status == 0
    (line,) = [line for line in log.splitlines() if "has connected" in line and "of viewer" in line]
    assert shown in line and 'name="junctura get"' in line


def test_a_new_key_is_reported_and_a_time_has_a_unit(guarded: Guarded, tmp_path: Path) -> None:
    make = ("token", "make", tmp_path / "secrts", "--for", "one")
    assert b"30 has no unit: 30d are days" in guarded.shell.run(*make, "--valid", "30", status=2).stderr
    new = "made a new key in"
    assert new in guarded.shell.run(*make).stderr.decode()
    assert new not in guarded.shell.run(*make).stderr.decode()


def test_a_viewer_removes_the_requirement_that_it_made(guarded: Guarded) -> None:
    viewer, other = guarded.token("viewer", "read"), guarded.token("other", "read")
    guarded.run(viewer, "pool", "require", "name=one", "--name", "mine")
    assert "needs the right admin" in guarded.run(other, "pool", "retract", "mine", status=1)
    guarded.run(viewer, "pool", "retract", "mine")


def test_every_client_of_an_upstream_has_the_rights_of_its_token(guarded: Guarded) -> None:
    guarded.put(guarded.admin, "one")
    guarded.shell.environment["JUNCTURA_TOKEN_FILE"] = str(guarded.token("viewer", "read"))
    near = guarded.shell.start("pool", "serve", "--upstream", guarded.url, "--announce").line()
    assert guarded.shell.text("get", "name=one", "-o", "-", "--pool", near) == "field"
    assert "needs the right admin" in guarded.shell.error(1, "pool", "stop", "--pool", near)


def test_python_names_the_right_that_is_missing(guarded: Guarded) -> None:
    viewer = guarded.token("viewer", "read")
    with junctura.Pool(guarded.url, token_file=viewer) as pool:
        assert pool.route.startswith("tcp"), "memory would be shared with all rights"
        with pytest.raises(junctura.Denied, match="needs the right offer"):
            pool.offer(b"field", name="one")
        with pytest.raises(junctura.Denied, match="needs the right offer"):
            pool.withdraw_all("name=one", timeout=0)
        assert list(pool.list("*")) == []


def test_tokens_are_listed_without_secrets_and_revoked_one_by_one(guarded: Guarded) -> None:
    viewer, model = guarded.token("viewer", "read"), guarded.token("model", "read,offer")
    listed = guarded.shell.text("token", "list", guarded.secrets)
    rows = [line.split() for line in listed.splitlines()[1:]]
    assert [(row[1], row[3]) for row in rows] == [
        ("read,offer,admin", "owner"),
        ("read", "viewer"),
        ("read,offer", "model"),
    ]
    for file in (viewer, model, guarded.secrets / "tokens.key"):
        assert file.read_text().strip()[-40:] not in listed + (guarded.secrets / "tokens.list").read_text()
    assert (guarded.secrets / "tokens.list").stat().st_mode & 0o077 == 0

    lost = junctura.Pool(guarded.url, token_file=viewer)
    kept = junctura.Pool(guarded.url, token_file=model)
    follow = lost.follow("name=never")
    said = guarded.shell.run("token", "revoke", guarded.secrets, guarded.id("viewer")).stderr.decode()
    assert "viewer is revoked" in said
    message = guarded.run(viewer, "ls", status=1)
    assert "revoked" in message, message
    # The live connection ends by itself.
    with pytest.raises(junctura.Denied, match="token: it was revoked"):
        next(follow)
    with pytest.raises(junctura.Denied, match="junctura token make"):
        lost.list()
    kept.offer(b"field", name="one")
    kept.close()
    assert "the list does not have it" in guarded.shell.error(3, "token", "revoke", guarded.secrets, "00000000")


def test_a_pool_on_loopback_names_the_files_it_looked_for(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    environment: dict[str, Any] = {"JUNCTURA_POOL": guarded.url, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    bare = guarded.shell.run("ls", status=1, **environment).stderr.decode()
    assert "has shown none; JUNCTURA_TOKEN_FILE is not set" in bare, bare
    usual = tmp_path / "config/junctura/token"
    usual.parent.mkdir(parents=True)
    usual.write_bytes(guarded.admin.read_bytes())
    usual.chmod(0o600)
    message = guarded.shell.run("ls", status=1, **environment).stderr.decode()
    assert f"{usual} is used beyond loopback only: set JUNCTURA_TOKEN_FILE={usual}" in message, message
    assert os.environ["XDG_CONFIG_HOME"] in message
    guarded.shell.run("ls", **environment, JUNCTURA_TOKEN_FILE=str(usual))
