"""What all commands have in common: broken pipes, versions, manual pages, completions, names, styles."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from e2e_shell import JUNCTURA, Shell, shown_until_its_end

import junctura.mesh
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
    ["metrics"],
    ["top", "--once", "--delay", "100ms"],
    ["pool", "health"],
    ["pool", "wanted", "--schema", "free", "name=kept"],
    ["pool", "bundle", "open", "a"],
    ["pool", "bundle", "list"],
    ["pool", "bundle", "show", "a"],
    ["pool", "bundle", "abort", "a"],
    ["pool", "require", "name=kept", "--name", "one-more"],
    ["pool", "retract", "one-more"],
    ["pool", "group", "list"],
    ["pool", "groups"],
    ["pool", "group", "show", "workers"],
    ["pool", "withdraw", "--schema", "free", "name=again"],
    ["pool", "withdraw-all", "name=nothing"],
    ["run", "RECIPE", "--check", "--python", "PYTHON"],
    ["timeline", "RUN", "--python", "PYTHON"],
    ["timeline", "RUN", "--out", "-", "--python", "PYTHON"],
    ["mesh", "info", "MESH", "--python", "PYTHON"],
    ["view", "name=one", "--field", "p", "--out", "p-%d.png", "--now", "--pool", "unix:test", "--python", "PYTHON"],
    ["pool", "stat"],
    ["pool", "stat", "--json"],
    ["explain", "name=one"],
    ["explain", "--memory"],
    ["schema", "list"],
    ["schema", "show", "mars"],
    ["schema", "check", "mars"],
    ["weights", "convert", "WEIGHTS", "CONVERTED", "--python", "PYTHON"],
    ["layout", "show", "shape=8 grid=2"],
    ["layout", "plan", "--from", "shape=8 grid=2", "--to", "shape=8", "--rank", "0"],
    ["layout", "draw", "--from", "shape=8 grid=2", "--to", "shape=8"],
    ["store", "create", "--store", "STORE"],
    ["store", "archive", "FILE", "--store", "STORE", "--set", "name=one", "--schema", "free", "--verbose"],
    ["store", "archiver", "--pool", "unix:test", "name=one", "--store", "STORE", "--until-live"],
    ["ls", "--store", "STORE"],
    ["store", "retrieve", "--store", "STORE", "name=one", "-o", "-"],
    ["store", "axes", "--store", "STORE"],
    ["store", "inspect", "--store", "STORE", "name=one"],
    ["store", "check", "--store", "STORE"],
    ["store", "stat", "--store", "STORE"],
    ["store", "compare", "--store", "STORE", "--with", "STORE"],
    ["store", "compare", "--store", "STORE", "--with", "STORE", "--values", "--python", "PYTHON"],
    ["wait-for", "--store", "STORE", "name=one"],
    ["watch", "--store", "STORE", "--timeout", "1ms"],
    ["store", "purge", "--store", "STORE"],
    ["store", "checkpoint", "--store", "STORE"],
    ["store", "tier", "--store", "STORE", "cold", "COLD"],
    ["store", "tier", "--store", "STORE"],
    ["store", "move", "--store", "STORE", "--to", "data", "name=one"],
    ["store", "compact", "--store", "STORE", "--gather"],
    ["store", "wipe", "--store", "STORE", "name=one", "--dry-run"],
    ["doctor"],
    ["doctor", "--json"],
    ["load", "handover", "--time", "10ms"],
    ["load", "pool", "--duration", "50ms", "--warmup", "10ms"],
    ["load", "store", "--scale", "0.001", "--size", "1KiB"],
    ["completions", "bash"],
    ["man"],
    ["token", "make", "SECRETS", "--for", "viewer"],
    ["token", "list", "SECRETS"],
    ["cert", "SECRETS", "--host", "localhost"],
    ["pool", "group", "remove", "workers"],
    ["pool", "stop"],
]

# The board is memory of the server's machine.
HERE_ONLY = {("metrics",), ("top",)}

# These work once.
ONCE_IN = {"pool": ("stop", "group", "retract", "bundle", "withdraw"), "store": ("create",)}
ONCE = {("put",), *((group, name) for group, names in ONCE_IN.items() for name in names)}


# Groups whose commands are listed by their own help; others print, too.
GROUPS = ("pool", "store", "load")


def listed(text: str) -> list[str]:
    """The commands in a help text."""
    options = text.index("\nOptions:\n")
    lines = [line for line in text[:options].splitlines() if line.startswith("  ") and line[2] != " "]
    return [name for line in lines if (name := line.split()[0]) not in ("help", "-h,")]


def parts() -> list[tuple[str, ...]]:
    """Every command, as the help texts list them."""

    def shown(*command: str) -> list[str]:
        help_text = [str(JUNCTURA), *command, "--help"]
        return listed(subprocess.run(help_text, capture_output=True, text=True, check=True).stdout)

    alone = [(name,) for name in shown() if name not in GROUPS]
    return alone + [(group, name) for group in GROUPS for name in shown(group)]


def name_of(command: list[str]) -> tuple[str, ...]:
    """The words of a command line that are its name."""
    return tuple(command[: 2 if command[0] in GROUPS else 1])


def test_a_reader_that_has_gone_is_no_failure_of_any_command(shell: Shell, tmp_path: Path) -> None:
    # `import` prints what others keep, and needs their packages.
    # `config` prints what a wheel has. `with` prints nothing on standard output: its program does.
    silent = {("pool", "serve"), ("store", "import"), ("config",), ("with",)}
    assert set(parts()) - silent == {name_of(line) for line in PRINTING if line[0][0] != "-"} - {("pool", "groups")}
    (tmp_path / "one").write_text("one")
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    shell.run("put", tmp_path / "one", "--schema", "free", "--set", "name=one")
    shell.run("pool", "require", "name=kept", "--name", "keeper")
    shell.run("pool", "require", "name=shared", "--name", "workers", "--group")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("product: one\nfrom: {param: t, step: 6}\nto: {format: grib2, name: one.grib2}\n")
    run = tmp_path / "run"
    run.mkdir()
    head = {"kind": "run", "at": 0.0, "format": 1, "workflow": "one", "run": "run", "tasks": []}
    (run / "record.jsonl").write_text(json.dumps(head) + "\n")
    weights = tmp_path / "weights"
    Weights([0], [0], [1.0], (2,), (2,)).write(weights, "binary")
    mesh = tmp_path / "mesh.exo"
    meshes = junctura.mesh.create(mesh)
    points = {"nodes": junctura.mesh.MeshPoints((np.arange(2.0),))}
    meshes.write(junctura.mesh.MeshStep(points, {"rod": junctura.mesh.MeshBlock("nodes", "line", np.arange(2))}))
    meshes.close()
    words = {
        "WEIGHTS": str(weights),
        "CONVERTED": str(tmp_path / "converted"),
        "RUN": str(run),
        "MESH": str(mesh),
        "FILE": str(tmp_path / "one"),
        "RECIPE": str(recipe),
        "PYTHON": sys.executable,
        "SECRETS": str(secrets),
        "STORE": str(tmp_path / "store"),
        "COLD": str(tmp_path / "cold"),
    }
    printing = PRINTING
    if "JUNCTURA_TEST_DETOUR" in os.environ:
        printing = [command for command in PRINTING if name_of(command) not in HERE_ONLY]
    for command in printing:
        for streams in (["stdout"], ["stdout", "stderr"]):
            if streams[1:] and name_of(command) in ONCE:
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
            # The pool of this test has no mesh.
            expected = 3 if name_of(command) == ("view",) else 0
            assert done.returncode == expected, (command, streams, done.stderr)
            assert b"panicked" not in (done.stderr or b"")
            assert b"pipe" not in (done.stderr or b"")


def test_a_server_whose_messages_nobody_reads_goes_on(bare: Shell) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [str(JUNCTURA), "pool", "serve", "--announce"], env=bare.environment, stdout=subprocess.PIPE, stderr=writer
    )
    os.close(reader)
    os.close(writer)
    assert process.stdout is not None
    assert process.stdout.readline() == b"unix:test\n"
    bare.run("pool", "stop")
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
    assert {"junctura", "junctura-pool-bundle-open", "junctura-schema-check"} <= set(pages)
    assert {"-".join(("junctura", *part)) for part in parts()} <= set(pages)
    assert not any("worker" in name or "help" in name for name in pages)
    for name, page in pages.items():
        text = page.read_text()
        assert text.splitlines()[2].startswith(f".TH {name} 1")
        assert "EXIT STATUS" in text or name.count("-") < 3
        assert "\n.SH ENVIRONMENT\n" in text
        assert "\n.SH SEE ALSO\n" in text
    assert bare.text("man") == pages["junctura"].read_text()
    tools = [["mandoc", "-W", "error", "-T", "utf8"], ["man", "--warnings", "-l"]]
    if tool := next((tool for tool in tools if shutil.which(tool[0])), None):
        done = subprocess.run([*tool, *map(str, pages.values())], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "FROM" in done.stdout


def test_examples_in_pages_are_those_of_the_help(bare: Shell, tmp_path: Path) -> None:
    bare.run("man", "--out", tmp_path)
    for part in parts():
        _, _, lines = bare.text(*part, "--help").partition("\nExamples:\n")
        page = (tmp_path / f"{'-'.join(('junctura', *part))}.1").read_text()
        shown = page.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\").splitlines()
        for line in lines.partition("\n\n")[0].splitlines():
            assert line in shown, part


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completions_know_every_command(bare: Shell, tmp_path: Path, name: str) -> None:
    script = bare.text("completions", name)
    for part in parts():
        assert part[-1] in script
    assert "load__echo" not in script and "load__subcmd__echo" not in script
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
    shell.run("pool", "require", "name=y", "--name", "needs", "--as", "operator")
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
    for command in (["pool", "stat"], ["doctor"], ["--help"]):
        piped = subprocess.run([str(JUNCTURA), *command], env=environment, capture_output=True, check=True)
        assert (b"\x1b[" in piped.stdout) == elsewhere
        ours, theirs = pty.openpty()
        process = subprocess.Popen([str(JUNCTURA), *command], env=environment, stdout=theirs)
        os.close(theirs)
        shown = shown_until_its_end(ours)
        assert process.wait(timeout=60) == 0
        assert (b"\x1b[" in shown) == on_terminal


def test_groups_are_listed_without_a_word_more(shell: Shell) -> None:
    assert shell.text("pool", "groups") == "no groups\n"
    shell.run("pool", "require", "param=t", "--name", "workers", "--group")
    assert [group["name"] for group in shell.documents("pool", "groups", "--json")] == ["workers"]
    assert shell.text("pool", "group") == shell.text("pool", "group", "list")
    shell.run("pool", "retract", "workers")
    assert shell.text("pool", "groups") == "no groups\n"


def test_a_machine_is_measured(bare: Shell) -> None:
    figures = bare.documents("load", "handover", "--time", "20ms", "--json")[0]
    for name, value in figures.items():
        for number in value.values() if isinstance(value, dict) else [value]:
            assert number > 0, name
    said = bare.text("load", "handover", "--time", "20ms")
    for words in ("through a pool", "the machine itself", "interpretation"):
        assert words in said


@pytest.mark.parametrize(
    ("words", "tip"),
    [
        (["serve"], "there is `junctura pool serve`"),
        (["stat"], "there is `junctura pool stat` and `junctura store stat`"),
        (["rm"], "`pool withdraw` removes one object"),
        (["list"], "`ls` lists the objects of a pool"),
        (["store", "ls"], "there is `junctura ls`, with --store for a store"),
        (["store", "get"], "`get` gets payloads from a pool, `store retrieve` from a store"),
        (["pool", "top"], "there is `junctura top`"),
        (["pool", "stop", "unix:mine"], "--pool unix:mine names the pool"),
    ],
)
def test_a_command_that_is_meant_is_named(bare: Shell, words: list[str], tip: str) -> None:
    said = bare.error(2, *words)
    assert f"\n  tip: {tip}" in said
    assert said.count("tip:") == 1


def test_a_schema_to_edit_is_valid_and_replaces_no_file(bare: Shell, tmp_path: Path) -> None:
    schema = tmp_path / "flow.yaml"
    bare.run("schema", "init", "flow", "--out", schema)
    assert bare.documents("schema", "check", schema, "--json")[0]["name"] == "flow"
    assert "flow.yaml" in bare.error(1, "schema", "init", "other", "--out", schema)
    assert bare.text("schema", "init", "flow") == schema.read_text()


def test_a_second_server_announces_the_address_of_the_first(bare: Shell) -> None:
    bare.serve("--schema", "free")
    assert bare.text("pool", "serve", "--pool", "unix:test", "--announce") == "unix:test\n"
    assert "unix:test already" in bare.error(0, "pool", "serve", "--pool", "unix:test", "--announce")
    assert "an address is unix:NAME" in bare.error(2, "ls", "--pool", "")
