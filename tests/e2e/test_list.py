"""What is there, as a table, a tree, JSON lines and numbers; and what schemas mean."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from e2e_grib import Field
from e2e_shell import Shell

import junctura


@pytest.fixture
def full(shell: Shell, file: Path) -> Shell:
    """A pool with the ensemble."""
    shell.run("put", file)
    return shell


def test_a_table_has_a_line_for_each_object(full: Shell, fields: dict[Field, bytes]) -> None:
    heading, *lines = full.text("ls").splitlines()
    assert heading.split() == [
        *("class", "expver", "stream", "date", "time", "domain"),
        *("type", "levtype"),
        *("step", "number", "levelist", "param"),
        "size",
    ]
    assert len(lines) == len(fields)
    assert lines == sorted(lines)
    assert "\x1b" not in heading
    assert full.text("ls", "param=t", "step=6", "levelist=500", "number=2").splitlines()[1].split()[-5:-2] == [
        "2",
        "500",
        "t",
    ]
    assert "units" in full.text("ls", "--long").splitlines()[0]


def test_counts_and_trees(full: Shell, fields: dict[Field, bytes]) -> None:
    assert full.text("ls", "--count", "param=t") == f"{len(fields) // 2}\n"
    size = sum(len(data) for data in fields.values())
    assert full.documents("ls", "--count", "--json") == [{"objects": len(fields), "bytes": size}]
    tree = full.text("ls", "--tree")
    assert f"{len(fields)} objects" in tree.splitlines()[0]
    assert "step=0/6" in tree
    assert "levelist=500/850" in tree
    branch = full.documents("ls", "--tree", "--json")[0]
    assert branch["objects"] == len(fields)
    assert branch["axes"]["param"] == ["t", "u"]


@pytest.mark.parametrize(
    "selector", ["*", "param=t", "step=6,number=2/3", "param=t or levelist=500", "name=other", "KEY"]
)
def test_a_counted_tree_is_that_of_the_list(full: Shell, selector: str) -> None:
    for name in ("other", "a b", "x=y,z"):
        full.run("put", "-", "--schema", "free", "--set", f"name={name}", "--set", "space=s", stdin=b"payload")
    full.run("put", "-", "--schema", "free", "--set", "name=other", stdin=b"without a space")
    if selector == "KEY":
        selector = full.documents("ls", "--json", "param=t")[0]["key"]
    for options in (["--tree"], ["--tree", "--json"]):
        # With members of incomplete bundles, of which there are none, it is made of a list.
        assert full.text("ls", *options, selector) == full.text("ls", *options, "--incomplete", selector)
    counted, listed = (full.documents("ls", "--count", "--json", *more, selector) for more in ([], ["--incomplete"]))
    assert counted == listed


def test_a_limit_gives_the_first_of_the_order(full: Shell) -> None:
    for order in ([], ["--sort", "number"]):
        entries = full.documents("ls", "--json", *order)
        for limit in (1, 7, len(entries), len(entries) + 1):
            assert full.documents("ls", "--json", *order, "--limit", str(limit)) == entries[:limit]
    with junctura.Pool(f"unix:{full.folder}/junctura/test.sock") as pool:
        for number in range(2100):
            pool.offer(b"", {"space": "many", "name": f"{number:04}"}, schema="free")
    names = [entry["attributes"]["name"] for entry in full.documents("ls", "--json", "--limit", "2050", "space=many")]
    assert names == [f"{number:04}" for number in range(2050)]
    assert "--limit" in full.error(2, "ls", "--limit", "0")


def test_json_lines_are_in_the_order_that_is_asked_for(full: Shell, fields: dict[Field, bytes]) -> None:
    by_number = [entry["attributes"]["number"] for entry in full.documents("ls", "--json", "--sort", "number")]
    assert by_number == sorted(field.number for field in fields)
    keys = [entry["key"] for entry in full.documents("ls", "--json")]
    assert len(set(keys)) == len(fields)


def test_an_empty_pool_is_nothing_and_no_failure(shell: Shell) -> None:
    assert shell.text("ls") == ""
    assert shell.text("ls", "--tree") == ""
    assert shell.text("ls", "--json") == ""
    assert shell.text("ls", "--count") == "0\n"


def test_stat_counts_everything(full: Shell, fields: dict[Field, bytes]) -> None:
    full.run("get", "--all", "-o", "/dev/null")
    stat = full.stat()
    assert stat["objects"]["visible"] == stat["totals"]["offered"] == stat["totals"]["delivered"] == len(fields)
    assert stat["clients"][0]["name"] == "junctura pool stat"
    text = full.text("pool", "stat")
    assert f"{len(fields)} visible" in text
    assert "mars, record, rowcol, mesh, free, netcdf" in text


def test_withdraw_and_retire(full: Shell, fields: dict[Field, bytes]) -> None:
    key = full.documents("ls", "--json", "param=t", "step=0", "levelist=500", "number=1")[0]["key"]
    assert full.text("pool", "withdraw", key) == "1 version withdrawn\n"
    assert "Gone" in full.error(3, "pool", "withdraw", key)
    attributes = ["class=od", "stream=enfo", "date=20260101", "time=0", "domain=g", "type=pf", "levtype=pl", "step=6"]
    assert (
        full.text("pool", "withdraw", "--force", *attributes, "number=1", "levelist=500.0", "param=t")
        == "1 version withdrawn\n"
    )
    assert "NAME=VALUE" in full.error(2, "pool", "withdraw", "param")
    assert full.documents("pool", "withdraw-all", "--json", "param=t") == [{"objects": len(fields) // 2 - 2}]
    assert full.text("pool", "withdraw-all", "*") == f"{len(fields) // 2} objects withdrawn\n"
    assert full.text("ls", "--count") == "0\n"
    assert "required" in full.error(2, "pool", "withdraw-all")


def test_schemas_are_shown_checked_and_listed(bare: Shell, tmp_path: Path) -> None:
    assert [line.split()[0] for line in bare.text("schema", "list").splitlines()] == [
        "mars",
        "record",
        "rowcol",
        "mesh",
        "free",
        "netcdf",
    ]
    mine = tmp_path / "mine.yaml"
    mine.write_text(bare.text("schema", "show", "mars"))
    built_in, copy = (bare.documents("schema", "check", "--json", name)[0] for name in ("mars", mine))
    assert built_in == copy
    mine.write_text(mine.read_text().replace("type: date", "type: data", 1))
    assert "data" in bare.error(2, "schema", "check", mine)


def test_keys_are_canonical(bare: Shell) -> None:
    key, key_hash = bare.text("schema", "check", "free", "--key", "name=a b", "space=x").splitlines()
    assert key == '{space=x}{}{name="a b"}'
    assert len(key_hash) == 32
    assert "levelist" in bare.error(2, "schema", "check", "mars", "--key", "levelist=high")


def test_selectors_are_explained(bare: Shell) -> None:
    printed = bare.text("schema", "check", "mars", "--explain", "--selector", "step=0/to/12/by/6, param = t")
    assert printed.splitlines() == ["step=0/to/12/by/6,param=t", "step=0/6/12,param=t"]
    request = bare.text("schema", "check", "mars", "--selector", "retrieve,class=OD,date=-1")
    assert request.startswith("class=od,date=20")
    said = bare.error(2, "schema", "check", "mars", "--selector", "class=")
    assert said.splitlines()[-1] == "        ^"


def test_help_has_examples_and_exit_statuses(bare: Shell) -> None:
    assert "130 interrupted" in bare.text("--help")
    for command in ("put", "get", "ls", "watch", "pool stat", "pool withdraw", "store wipe", "schema", "load"):
        assert "Examples:" in bare.text(*command.split(), "--help")
    assert "\x1b" not in bare.run("put", "--help", NO_COLOR="1", CLICOLOR_FORCE="").stdout.decode()


HIDING = "a\u202eb\u2028c\u200bd"


def test_hidden_characters_are_shown(bare: Shell) -> None:
    bare.serve("--schema", "free")
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock", name=f"client {HIDING}") as pool:
        version = pool.offer(b"payload", name=HIDING)
        listed = [bare.text("ls", *options) for options in ((), ("--long",), ("--tree",))]
        listed.append(bare.text("pool", "stat"))
        listed.append(bare.error(3, "get", f'name="x{HIDING}"'))
        for text in listed:
            assert not set(HIDING) & set(text) - set("abcd")
            assert "\\u{202e}" in text
        [document] = bare.documents("ls", "--json")
        assert document["attributes"]["name"] == HIDING
        assert "\u202e" not in bare.text("ls", "--json")
        assert json.loads(bare.text("ls", "--json"))["version"] == str(version)


def test_attributes_that_few_objects_have_get_no_column(bare: Shell) -> None:
    bare.serve("--schema", "free")
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as pool:
        for number in range(100):
            pool.offer(b"", {"name": f"{number:03}", "common": "y", f"own{number:03}": "x"})
    heading, *_, note = bare.text("ls", "--long").splitlines()
    assert "common" in heading
    assert len(heading.split()) == 2 + 64 + 3
    assert "left out, 37 in number" in note


@pytest.mark.parametrize(
    "command", [("ls",), ("pool", "withdraw-all"), ("cp", "{pool}", "unix:other"), ("ls", "--store", "{store}")]
)
def test_an_attribute_that_no_object_has_is_named(full: Shell, tmp_path: Path, command: tuple[str, ...]) -> None:
    """One that resembles a declared attribute is refused; any other matches nothing, since an open schema allows it."""
    store = str(tmp_path / "store")
    full.run("store", "create", "--store", store)
    if command[0] == "cp":
        assert "serving" in full.start("pool", "serve", "--pool", "unix:other", "--budget", "64MiB").said()
    words = [word.format(pool=full.pool, store=store) for word in command]
    slip = 'InvalidSelector: selector: no object has the attribute "parm"; did you mean param (schema mars)?\n'
    assert slip in full.error(2, *words, "parm=t")
    assert slip in full.error(2, *words, "not parm=t")
    assert "did you mean" not in full.run(*words, "param=nothing").stderr.decode()
    if command[0] != "cp":
        unknown = 'junctura: no object has the attribute "color", and no schema declares it\n'
        assert unknown in full.run(*words, "color=red").stderr.decode()
    full.run("put", "-", "--schema", "free", "--set", "name=a", "--set", "parm=q", "--set", "color=red", stdin=b"x")
    if "--store" not in command:
        for selector in ("parm=t", "color=blue"):
            assert "no object has" not in full.run(*words, selector).stderr.decode()


def test_a_value_that_no_schema_reads_is_refused(full: Shell, tmp_path: Path) -> None:
    """In an open schema it is a text: refused where no object of one has the attribute."""
    store = str(tmp_path / "store")
    full.run("store", "create", "--store", store)
    commands = [
        ["ls"],
        ["ls", "--count"],
        ["pool", "withdraw-all"],
        ["ls", "--store", store],
        ["store", "axes", "--store", store],
    ]
    for command in commands:
        for selector in ("date=2026-13-01", "step=six", "levelist=500hPa", "param=t,step=six"):
            said = full.error(2, *command, selector)
            assert "InvalidSelector: selector: schema mars: " in said
            assert said.splitlines()[-1].strip() == "^"
        full.run(*command, "step=1h30m")
    for command in (["get"], ["get", "--all"]):
        assert "schema mars: " in full.error(3, *command, "step=six")
    full.run("put", "-", "--schema", "free", "--set", "name=a", "--set", "step=six", stdin=b"x")
    assert full.text("ls", "--count", "step=six").startswith("1")
    assert full.text("ls", "--count", "step=seven").startswith("0")


def test_commands_that_wait_name_a_slip_and_wait(full: Shell) -> None:
    slip = "did you mean param (schema mars)?"
    for command in (("get",), ("get", "--all")):
        assert slip in full.error(3, *command, "parm=t")
    assert slip in full.error(4, "wait-for", "parm=t", "--timeout", "10ms")
    assert slip in full.run("watch", "parm=t", "--timeout", "10ms").stderr.decode()
    # Others may come with this attribute at any time.
    assert "no object has" not in full.error(4, "wait-for", "kind=product", "--timeout", "10ms")


STEPS = """name: steps
key: {dataset: [run], collocation: [step], element: [level]}
attributes:
  run: {type: integer}
  step: {type: integer}
  level: {type: decimal}
"""


@pytest.mark.parametrize("options", [[], ["--long"]])
def test_a_tree_is_in_the_order_of_the_types(bare: Shell, tmp_path: Path, options: list[str]) -> None:
    schema = tmp_path / "steps.yaml"
    schema.write_text(STEPS)
    bare.serve("--schema", str(schema))
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as pool:
        for run, step in [(10, 1), (9, 100), (9, 20), (9, 3)]:
            for level in ("10", "9.5", "0"):
                pool.offer(b"", run=run, step=step, level=level)
    tree = bare.text("ls", "--tree", *options)
    assert re.findall(r"\b(?:run|step)=\d+", tree) == ["run=9", "step=3", "step=20", "step=100", "run=10", "step=1"]
    assert tree.count("level=0/9.5/10" if not options else "level=9.5  ") == 4
    branches = [document["collocation"] for document in bare.documents("ls", "--tree", "--json", *options)]
    assert branches == ["step=3", "step=20", "step=100", "step=1"]


def test_objects_of_several_schemas_have_readable_columns(bare: Shell, tmp_path: Path) -> None:
    for name in ("one", "two"):
        key = "key: {dataset: [], collocation: [], element: [step]}"
        text = f"name: {name}\n{key}\nattributes:\n  step: {{type: integer}}\n  {name}: {{type: string}}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    bare.serve("--schema", str(tmp_path / "one.yaml"), "--schema", str(tmp_path / "two.yaml"))
    for step, name in ((1, "one"), (2, "two"), (3, "one"), (10, "two")):
        bare.run("put", "-", "--quiet", "--schema", name, "--set", f"step={step}", stdin=b"x")
    assert bare.text("ls") == "step  size\n   1   1 B\n   3   1 B\n\nstep  size\n   2   1 B\n  10   1 B\n"
    assert bare.text("ls", "--sort", "step") == (
        "schema  step  size\none        1   1 B\ntwo        2   1 B\none        3   1 B\ntwo       10   1 B\n"
    )
