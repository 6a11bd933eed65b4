"""What all commands have in common: broken pipes, versions, manual pages, completions, names, styles."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_shell import JUNCTURA, Shell, shown_until_its_end

from junctura.remap import Weights

# Commands that print, and do it though little is there; each once with a reader that has gone.
PRINTING = [
    ["--help"],
    ["--version"],
    ["put", "FILE", "--set", "name=again", "--schema", "free", "--verbose"],
    ["get", "--schema", "free", "--key", "name=one", "-o", "-"],
    ["get", "--follow", "name=one", "--count", "1", "-o", "-"],
    ["ls"],
    ["ls", "--json"],
    ["ls", "--tree"],
    ["watch", "--timeout", "100ms"],
    ["wait-for", "name=one"],
    ["wait-for", "name=one", "--json"],
    ["cp", "unix:test", "unix:other", "name=one", "--verbose"],
    ["wanted", "--schema", "free", "name=kept"],
    ["bundle", "open", "a"],
    ["bundle", "list"],
    ["bundle", "show", "a"],
    ["bundle", "abort", "a"],
    ["require", "name=kept", "--name", "one-more"],
    ["retract", "one-more"],
    ["group", "list"],
    ["groups"],
    ["group", "show", "workers"],
    ["withdraw", "--schema", "free", "name=again"],
    ["withdraw-all", "name=nothing"],
    ["run", "RECIPE", "--check", "--python", "PYTHON"],
    ["timeline", "RUN", "--python", "PYTHON"],
    ["timeline", "RUN", "--out", "-", "--python", "PYTHON"],
    ["stat"],
    ["stat", "--json"],
    ["schema", "list"],
    ["schema", "show", "mars"],
    ["schema", "check", "mars"],
    ["weights", "convert", "WEIGHTS", "CONVERTED", "--python", "PYTHON"],
    ["layout", "show", "shape=8 grid=2"],
    ["layout", "plan", "--from", "shape=8 grid=2", "--to", "shape=8", "--rank", "0"],
    ["layout", "draw", "--from", "shape=8 grid=2", "--to", "shape=8"],
    ["create", "--store", "STORE"],
    ["archive", "FILE", "--store", "STORE", "--set", "name=one", "--schema", "free", "--verbose"],
    ["archiver", "unix:test", "name=one", "--store", "STORE", "--until-live"],
    ["ls", "--store", "STORE"],
    ["retrieve", "--store", "STORE", "name=one", "-o", "-"],
    ["axes", "--store", "STORE"],
    ["inspect", "--store", "STORE", "name=one"],
    ["check", "--store", "STORE"],
    ["stat", "--store", "STORE"],
    ["compare", "--store", "STORE", "--with", "STORE"],
    ["compare", "--store", "STORE", "--with", "STORE", "--values", "--python", "PYTHON"],
    ["wait-for", "--store", "STORE", "name=one"],
    ["watch", "--store", "STORE", "--timeout", "1ms"],
    ["purge", "--store", "STORE"],
    ["checkpoint", "--store", "STORE"],
    ["tier", "--store", "STORE", "cold", "COLD"],
    ["tier", "--store", "STORE"],
    ["move", "--store", "STORE", "--to", "data", "name=one"],
    ["compact", "--store", "STORE", "--gather"],
    ["wipe", "--store", "STORE", "name=one", "--dry-run"],
    ["doctor"],
    ["doctor", "--json"],
    ["bench", "--time", "10ms"],
    ["hammer", "--duration", "50ms", "--warmup", "10ms"],
    ["completions", "bash"],
    ["man"],
    ["token", "SECRETS", "--for", "viewer"],
    ["cert", "SECRETS", "--host", "localhost"],
    ["group", "remove", "workers"],
    ["stop"],
]

# These work once.
ONCE = ("put", "stop", "group", "retract", "bundle", "withdraw", "create")


def parts() -> list[str]:
    """Every command, as the help lists them."""
    said = subprocess.run([str(JUNCTURA), "--help"], capture_output=True, text=True, check=True).stdout
    lines = said.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    return [name for name in names if name != "help"]


def test_a_reader_that_has_gone_is_no_failure_of_any_command(shell: Shell, tmp_path: Path) -> None:
    # `import` prints what others keep, and needs their packages.
    # `config` prints what a wheel has.
    silent = {"serve", "import", "config"}
    assert set(parts()) - silent == {command[0] for command in PRINTING if command[0][0] != "-"} - {"groups"}
    (tmp_path / "one").write_text("one")
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    shell.run("put", tmp_path / "one", "--schema", "free", "--set", "name=one")
    shell.run("require", "name=kept", "--name", "keeper")
    shell.run("require", "name=shared", "--name", "workers", "--group")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("product: one\nfrom: {param: t, step: 6}\nto: {format: grib2, name: one.grib2}\n")
    run = tmp_path / "run"
    run.mkdir()
    head = {"kind": "run", "at": 0.0, "format": 1, "workflow": "one", "run": "run", "tasks": []}
    (run / "record.jsonl").write_text(json.dumps(head) + "\n")
    weights = tmp_path / "weights"
    Weights([0], [0], [1.0], (2,), (2,)).write(weights, "binary")
    words = {
        "WEIGHTS": str(weights),
        "CONVERTED": str(tmp_path / "converted"),
        "RUN": str(run),
        "FILE": str(tmp_path / "one"),
        "RECIPE": str(recipe),
        "PYTHON": sys.executable,
        "SECRETS": str(secrets),
        "STORE": str(tmp_path / "store"),
        "COLD": str(tmp_path / "cold"),
    }
    for command in PRINTING:
        for streams in (["stdout"], ["stdout", "stderr"]):
            if streams[1:] and command[0] in ONCE:
                continue
            reader, writer = os.pipe()
            os.close(reader)
            given = [words.get(word, word) for word in command]
            where = dict.fromkeys(streams, writer)
            done = subprocess.run(
                [str(JUNCTURA), *given],
                env=shell.environment,
                stdin=subprocess.DEVNULL,
                check=False,
                timeout=60,
                **{"stderr": subprocess.PIPE, **where},  # type: ignore[call-overload]
            )
            os.close(writer)
            assert done.returncode == 0, (command, streams, done.stderr)
            assert b"panicked" not in (done.stderr or b"")
            assert b"pipe" not in (done.stderr or b"")


def test_a_server_whose_messages_nobody_reads_goes_on(bare: Shell) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [str(JUNCTURA), "serve", "--announce"], env=bare.environment, stdout=subprocess.PIPE, stderr=writer
    )
    os.close(reader)
    os.close(writer)
    assert process.stdout is not None
    assert process.stdout.readline() == b"unix:test\n"
    bare.run("stop")
    assert process.wait(timeout=60) == 0


def test_the_version_says_what_matters(bare: Shell) -> None:
    short, long = bare.text("-V"), bare.text("--version")
    assert short.count("\n") == 1
    assert long.startswith(short.strip())
    for word in ("protocol", "built for", "schemas", "mars"):
        assert word in long


def test_every_command_has_a_page_that_renders(bare: Shell, tmp_path: Path) -> None:
    bare.run("man", "--out", tmp_path / "man1")
    pages = {page.stem: page for page in (tmp_path / "man1").iterdir()}
    assert {"junctura", "junctura-bundle-open", "junctura-schema-check"} <= set(pages)
    assert {f"junctura-{part}" for part in parts()} <= set(pages)
    assert not any("worker" in name or "help" in name for name in pages)
    for name, page in pages.items():
        text = page.read_text()
        assert text.splitlines()[2].startswith(f".TH {name} 1")
        assert "EXIT STATUS" in text or name.count("-") == 1
    assert bare.text("man") == pages["junctura"].read_text()
    tools = [["mandoc", "-W", "error", "-T", "utf8"], ["man", "--warnings", "-l"]]
    if tool := next((tool for tool in tools if shutil.which(tool[0])), None):
        done = subprocess.run([*tool, *map(str, pages.values())], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "FROM" in done.stdout


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completions_know_every_command(bare: Shell, tmp_path: Path, name: str) -> None:
    script = bare.text("completions", name)
    for part in parts():
        assert part in script
    assert "hammer-worker" not in script
    if shutil.which(name):
        path = tmp_path / "script"
        path.write_text(script)
        subprocess.run([name, "-n", str(path)], check=True)
    if name == "bash":
        words = "COMP_WORDS=(junctura wait-for --ti); COMP_CWORD=2; _junctura junctura --ti wait-for"
        asked = f'source "$1"; {words}; echo "${{COMPREPLY[@]}}"'
        told = subprocess.run(["bash", "-c", asked, "-", str(path)], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == "--timeout"


def test_a_client_is_called_as_one_likes(shell: Shell, tmp_path: Path) -> None:
    joined = shell.watch("--kind", "joined")
    (tmp_path / "x").write_text("x")
    shell.run("put", tmp_path / "x", "--schema", "free", "--set", "name=x", "--as", "model")
    assert joined.document()["client"]["name"] == "model"
    shell.run("get", "--schema", "free", "--name", "viewer", "--key", "name=x", "-o", "-")
    assert joined.document()["client"]["name"] == "viewer"
    shell.run("require", "name=y", "--name", "needs", "--as", "operator")
    assert joined.document()["client"]["name"] == "operator"
    shell.run("ls", JUNCTURA_NAME="by-variable")
    assert joined.document()["client"]["name"] == "by-variable"


def test_a_server_ends_when_commands_of_these_names_have_gone(bare: Shell, tmp_path: Path) -> None:
    server = bare.serve("--until-gone", "model,viewer")
    (tmp_path / "x").write_text("x")
    bare.run("put", tmp_path / "x", "--schema", "free", "--set", "name=x", "--as", "model")
    assert server.popen.poll() is None
    bare.run("get", "--schema", "free", "--key", "name=x", "-o", "-", "--as", "viewer")
    assert server.end()[0] == 0


@pytest.mark.parametrize(
    ("variables", "on_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"CLICOLOR": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_styles_are_for_terminals(shell: Shell, variables: dict[str, str], on_terminal: bool, elsewhere: bool) -> None:
    plain = {key: value for key, value in shell.environment.items() if "COLOR" not in key}
    environment = {**plain, "TERM": "xterm", **variables}
    for command in (["stat"], ["doctor"], ["--help"]):
        piped = subprocess.run([str(JUNCTURA), *command], env=environment, capture_output=True, check=True)
        assert (b"\x1b[" in piped.stdout) == elsewhere
        ours, theirs = pty.openpty()
        process = subprocess.Popen([str(JUNCTURA), *command], env=environment, stdout=theirs)
        os.close(theirs)
        shown = shown_until_its_end(ours)
        assert process.wait(timeout=60) == 0
        assert (b"\x1b[" in shown) == on_terminal


def test_groups_are_listed_without_a_word_more(shell: Shell) -> None:
    assert shell.text("groups") == "no groups\n"
    shell.run("require", "param=t", "--name", "workers", "--group")
    assert [group["name"] for group in shell.documents("groups", "--json")] == ["workers"]
    assert shell.text("group") == shell.text("group", "list")
    shell.run("retract", "workers")
    assert shell.text("groups") == "no groups\n"


def test_a_machine_is_measured(bare: Shell) -> None:
    figures = bare.documents("bench", "--time", "20ms", "--json")[0]
    for name, value in figures.items():
        for number in value.values() if isinstance(value, dict) else [value]:
            assert number > 0, name
    said = bare.text("bench", "--time", "20ms")
    for words in ("through a pool", "the machine itself", "what this means"):
        assert words in said
