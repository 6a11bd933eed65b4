"""`junctura store import fdb` with a listing that a script makes up: FDB itself is tested in `tests/fdb`."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from e2e_shell import Shell

RULES = "step: Step; [ class, stream=enfo/efov [ type [ step, number?, param ]]]"
SCHEMA = {"schema": {"file": "/fdb/schema", "text": RULES}}


class Listing:
    """A program in the place of Python, which prints lines and then does something else."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "python"
        self.lines = folder / "lines"
        self.data = folder / "data"
        self.data.write_bytes(b"onetwothree")

    def field(self, offset: int, length: int, **element: str) -> dict[str, Any]:
        key = [{"class": "rd", "stream": "efov"}, {"type": "pf"}, {"param": "130", "number": "", **element}]
        place = {"scheme": "", "file": str(self.data), "offset": offset, "length": length}
        return {"field": {"key": key, **place}}

    def says(self, *told: object, then: str = "") -> None:
        self.lines.write_text("".join(json.dumps(line) + "\n" for line in told))
        self.program.write_text(f"#!/bin/sh\ncat '{self.lines}'\n{then}\n")
        self.program.chmod(0o755)


@pytest.fixture
def listing(tmp_path: Path) -> Listing:
    return Listing(tmp_path)


@pytest.fixture
def command(tmp_path: Path, listing: Listing) -> list[str]:
    python = ["--python", str(listing.program)]
    return ["store", "import", "fdb", str(tmp_path), *python, "--store", str(tmp_path / "store"), "--create"]


def test_what_is_listed_is_kept(bare: Shell, listing: Listing, command: list[str], tmp_path: Path) -> None:
    listing.says(SCHEMA, listing.field(0, 3, step="6"), listing.field(3, 3, step="1h30m", number="2"), "end")
    told = bare.documents(*command, "--json")
    assert [(line["key"], line["version"]) for line in told[:-1]] == [
        ("{class=rd,stream=efov}{type=pf}{step=6,param=130}", "1"),
        ("{class=rd,stream=efov}{type=pf}{step=90m,number=2,param=130}", "1"),
    ]
    assert bare.text("ls", "--store", tmp_path / "store", "--style", "fdb", "--long") == (
        "{class=rd,stream=efov}{type=pf}{step=1h30m,number=2,param=130}, length=3\n"
        "{class=rd,stream=efov}{type=pf}{step=6,param=130}, length=3\n"
    )
    assert bare.run("store", "retrieve", "--store", tmp_path / "store", "number=2", "-o", "-").stdout == b"two"
    assert bare.text(*command).endswith(", 2 there already\n")


def test_a_listing_that_ends_early_is_an_error_with_its_last_words(
    bare: Shell, listing: Listing, command: list[str], tmp_path: Path
) -> None:
    field = listing.field(0, 3, step="6")
    listing.says(SCHEMA, field, then="echo the last words >&2; exit 7")
    said = bare.error(1, *command)
    assert "ended early (exit status: 7): the last words" in said
    assert bare.text("ls", "--store", tmp_path / "store", "--count") == "0\n"

    # What was flushed before is there, and the next import goes on.
    bare.error(1, *command, "--every", "1")
    assert bare.text("ls", "--store", tmp_path / "store", "--count") == "1\n"
    listing.says(SCHEMA, field, listing.field(3, 3, step="7"), "end")
    assert bare.text(*command).startswith("1 object, ")


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (["end"], "does not begin with a schema"),
        ([SCHEMA, SCHEMA], "has no field"),
        ([{"error": {"code": "NotFound", "cause": "no FDB at all"}}], "NotFound: FDB"),
        ([SCHEMA, {"error": {"code": "Io", "cause": "the disk is gone"}}], "the disk is gone"),
        ([SCHEMA, {"field": {"key": []}}], "invalid length"),
        ([{"schema": {"file": "/fdb/schema", "text": "", "error": "not readable"}}], "/fdb/schema: the schema file"),
        ([{"schema": {"file": "/fdb/schema", "text": "[ a ]"}}], "/fdb/schema: schema line 1, column 1"),
    ],
)
def test_what_a_listing_cannot_say(
    bare: Shell, listing: Listing, command: list[str], told: list[object], says: str
) -> None:
    listing.says(*told)
    done = bare.start(*command)
    status, _, said = done.end()
    assert status > 0 and says in said


def test_bytes_that_cannot_be_read_are_named(bare: Shell, listing: Listing, command: list[str]) -> None:
    short = listing.field(9, 3, step="6")
    listing.says(SCHEMA, short, "end")
    assert "{class=rd,stream=efov}{type=pf}{param=130,step=6}" in bare.error(1, *command)
    short["field"] |= {"scheme": "fdb", "file": "host:7654/data"}
    listing.says(SCHEMA, short, "end")
    assert "its bytes are at fdb: host:7654/data, and only files are read" in bare.error(1, *command)
    short["field"] |= {"scheme": "file", "file": str(listing.data), "length": 1 << 62}
    listing.says(SCHEMA, short, "end")
    assert "do not fit into memory" in bare.error(2, *command)


def test_ctrl_c_ends_the_listing_too(bare: Shell, listing: Listing, command: list[str]) -> None:
    listing.says(SCHEMA, listing.field(0, 3, step="6"), then="exec sleep 60")
    running = bare.start(*command, "--every", "1", "--verbose")
    assert running.line() == "1 {class=rd,stream=efov}{type=pf}{step=6,param=130} (schema fdb)"
    # A terminal sends it to both.
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    for process in [running.pid, *map(int, children)]:
        os.kill(process, signal.SIGINT)
    assert running.end()[0] == 130


def test_schema_files_of_fdb_wherever_a_schema_is_named(bare: Shell, tmp_path: Path) -> None:
    rules = tmp_path / "fields.rules"
    rules.write_text("step: Step; [ class [ type=tu [ step ]] [ type [ step, number? ]]]")
    store = ["--store", str(tmp_path / "store")]
    assert (
        "a store for fields-1, fields-2, mars" in bare.run("store", "create", *store, "--schema", rules).stderr.decode()
    )
    (tmp_path / "file").write_text("a field")
    key = [word for pair in ("class=rd", "type=x", "step=1d") for word in ("--set", pair)]
    bare.run("store", "archive", *store, tmp_path / "file", "--schema", "fields-2", *key)
    assert bare.text("ls", *store, "--style", "fdb") == "{class=rd}{type=x}{step=24}\n"
    assert bare.text("schema", "show", rules).count("\n---\n") == 1
    assert bare.text("schema", "check", rules, "--key", "class=rd", "type=x", "step=1d").startswith(
        "{class=rd}{type=x}"
    )
    rules.write_text("[ class [ type: Typo [ step ]]]")
    assert "line 1, column 17" in bare.error(2, "schema", "check", rules)
    assert "column 17" in bare.error(2, "store", "create", "--store", tmp_path / "other", "--schema", rules)
