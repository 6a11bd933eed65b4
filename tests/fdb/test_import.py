"""What FDB's own package wrote is listed, imported and compared byte for byte."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from e2e_shell import Shell
from fdb_root import Fdb, in_order

import junctura

SCHEMA = """\
# Types of all rules.
date: Date; expver: Expver; levelist: Double; number: Integer; param: Param; step: Step; time: Time;

[ class=od/rd, expver, stream=enfo/efov, date, time, domain?g
    [ type=pf/cf, levtype
        [ step, number?, levelist?, param ]]
    [ type=tu, levtype, reference:First3, grid-
        [ step, param ]]]
[ class, expver, stream, domain
    [ type=cl [ date:ClimateMonthly, time, param ]]]
"""
COMMON = {"expver": "0001", "time": "0000", "domain": "g"}
ENFO = {**COMMON, "class": "rd", "stream": "efov", "date": "20260101", "type": "pf", "levtype": "pl", "param": "130"}
CLIMATE = {**COMMON, "class": "ms", "stream": "mnth", "type": "cl", "param": "167"}

Field = dict[str, Any]


def field(key: dict[str, str], text: str) -> Field:
    return {"key": key, "text": text}


GRIB: list[Field] = [
    {"grib": {"class": "od", "paramId": param, "step": step, "level": level, "number": number}}
    for param in (130, 131)
    for step in (0, 6)
    for level in (500, 850)
    for number in (1, 2, 3)
]
OTHERS: list[Field | None] = [
    *(field({**ENFO, "step": step}, f"step {step}") for step in ("6", "0-24", "30m", "1h30m", "0-1h30m", "90m-3h")),
    field({**ENFO, "step": "6", "number": "12", "levelist": "0.5"}, "half a level"),
    field({**ENFO, "step": "6", "levelist": "0.00001"}, "a small one"),
    field({name: text for name, text in ENFO.items() if name != "domain"} | {"type": "cf", "step": "6"}, "no domain"),
    field({**ENFO, "step": "6", "type": "tu", "reference": "abcdef", "grid": "f640"}, "of three letters"),
    field({**CLIMATE, "date": "20260501"}, "a month of the climate"),
    None,
    field({**ENFO, "step": "6"}, "again"),
    None,
    field({**ENFO, "step": "6"}, "and again, which is the newest"),
]


@pytest.fixture
def filled(fdb: Fdb) -> Fdb:
    """Fields under each rule, some of them written several times."""
    (fdb.root / "schema").write_text(SCHEMA)
    fdb.write(*GRIB, None, *OTHERS)
    return fdb


@pytest.fixture
def to(tmp_path: Path) -> list[str]:
    return ["--store", str(tmp_path / "archive")]


def imported(bare: Shell, fdb: Fdb, *arguments: str | Path) -> dict[str, Any]:
    """Imports everything, or what is asked for; returns the summary."""
    return bare.documents("store", "import", "fdb", fdb.root, "--python", fdb.python, "--json", *arguments)[-1]


def kept(bare: Shell, to: list[str]) -> dict[str, bytes]:
    """What a store has, by the key as FDB would print it."""
    ours = [line["key"] for line in bare.documents("ls", *to, "--json")]
    of_fdb = bare.text("ls", *to, "--style", "fdb").splitlines()
    objects = {obj.key: obj.read() for obj in junctura.Store(to[1]).list()}
    return {in_order(theirs): objects[key] for theirs, key in zip(of_fdb, ours, strict=True)}


def test_everything_is_copied_byte_for_byte(bare: Shell, filled: Fdb, to: list[str]) -> None:
    """D: schema files and fields of that archive are imported."""
    fields = filled.fields()
    assert len(fields) == 24 + 11
    summary = imported(bare, filled, *to, "--create", "--every", "10")
    assert (summary["objects"], summary["there_already"], summary["failed"]) == (len(fields), 0, 0)
    assert summary["bytes"] == sum(map(len, fields.values()))
    assert kept(bare, to) == fields
    assert b"and again, which is the newest" in fields.values()
    assert sum(bytes_of_it.startswith(b"GRIB") for bytes_of_it in fields.values()) == 24
    assert bare.documents("store", "check", *to, "--json")[-1]["damaged"] == 0


def test_both_list_the_same_lines(bare: Shell, filled: Fdb, to: list[str]) -> None:
    imported(bare, filled, *to, "--create")
    for theirs, ours in ([], []), (["--length"], ["--long"]):
        asked = ["--porcelain", "--minimum-keys=", *theirs]
        listed = [filled.tool("fdb-list", *asked, f"class={name}") for name in ("od", "rd", "ms")]
        printed = bare.text("ls", *to, "--style", "fdb", *ours)
        assert sorted(printed.splitlines()) == sorted("".join(listed).splitlines())
        assert len(printed.splitlines()) == len(filled.fields())


def test_again_it_copies_what_is_new(bare: Shell, filled: Fdb, to: list[str]) -> None:
    first = imported(bare, filled, *to, "--create")
    again = imported(bare, filled, *to)
    assert (again["objects"], again["there_already"]) == (0, first["objects"])

    filled.write(field({**ENFO, "step": "6"}, "once more"), field({**ENFO, "step": "7"}, "a new one"))
    more = imported(bare, filled, *to)
    assert (more["objects"], more["there_already"]) == (2, first["objects"] - 1)
    assert kept(bare, to) == filled.fields()
    assert bare.text("ls", *to, "--count", "--all-versions") == f"{first['objects'] + 2}\n"


def versions(to: list[str], selector: str) -> list[bytes]:
    """Of a key, the oldest first."""
    return [obj.read() for obj in junctura.Store(to[1]).list(selector, all_versions=True)]


def test_versions_that_are_masked_come_in_their_order(bare: Shell, fdb: Fdb, to: list[str]) -> None:
    (fdb.root / "schema").write_text("[ class [ type [ number ]]]")

    def write(*fields: tuple[str, str] | None) -> None:
        fdb.write(*(one and field({"class": "rd", "type": "x", "number": one[0]}, one[1]) for one in fields))

    write(("1", "a1"), ("2", "b1"), None, ("1", "a2"), None, ("1", "never flushed"), ("1", "a3"), ("2", "b2"))
    write(("3", "c1"), ("1", "a4"))
    assert imported(bare, fdb, *to, "--create", "--dry-run", "--all-versions")["objects"] == 7
    summary = imported(bare, fdb, *to, "--create", "--all-versions", "--every", "2")
    assert (summary["objects"], summary["there_already"], summary["failed"]) == (7, 0, 0)
    assert kept(bare, to) == fdb.fields()
    assert versions(to, "number=1") == [b"a1", b"a2", b"a3", b"a4"]
    assert versions(to, "number=2") == [b"b1", b"b2"]

    again = imported(bare, fdb, *to, "--all-versions")
    assert (again["objects"], again["there_already"]) == (0, 7)
    write(("2", "b3"))
    write(("2", "b2"))
    more = imported(bare, fdb, *to, "--all-versions")
    assert (more["objects"], more["there_already"]) == (2, 7)
    assert versions(to, "number=2") == [b"b1", b"b2", b"b3", b"b2"]

    # Where the newest was copied before, it stays the newest.
    late = ["--store", f"{to[1]}-late"]
    imported(bare, fdb, *late, "--create", "number=1")
    assert versions(late, "number=1") == [b"a4"]
    assert imported(bare, fdb, *late, "--all-versions", "number=1")["objects"] == 4
    assert versions(late, "number=1") == [b"a4", b"a1", b"a2", b"a3", b"a4"]
    assert imported(bare, fdb, *late, "--all-versions")["objects"] == 5
    assert kept(bare, late) == fdb.fields()


def test_two_fields_that_would_be_one_are_named_with_all_versions(bare: Shell, fdb: Fdb, to: list[str]) -> None:
    (fdb.root / "schema").write_text("number: Integer; [ class [ type [ number ]]]")
    fdb.write(*(field({"class": "rd", "type": "x", "number": number}, number) for number in ("7", "007")))
    said = bare.error(1, "store", "import", "fdb", fdb.root, "--python", fdb.python, *to, "--create", "--all-versions")
    assert "FDB has another field that is {class=rd}{type=x}{number=7} here" in said


def test_only_what_is_asked_for(bare: Shell, filled: Fdb, to: list[str], tmp_path: Path) -> None:
    summary = imported(bare, filled, *to, "--create", "--dry-run", "param=130", "number=1/2")
    assert summary["objects"] == 8
    assert not (tmp_path / "archive").exists(), "nothing was changed"
    assert imported(bare, filled, *to, "--create", "param=130", "number=1/2")["objects"] == 8
    assert all("number=1" in key or "number=2" in key for key in kept(bare, to))


def test_configurations_of_fdb(bare: Shell, filled: Fdb, to: list[str], tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(filled.config()))
    python = ["--python", str(filled.python)]
    count = bare.documents("store", "import", "fdb", config, *python, *to, "--create", "--json")[-1]["objects"]
    assert count == len(filled.fields())

    home = tmp_path / "home/etc/fdb"
    home.mkdir(parents=True)
    shutil.copy(config, home)
    again = bare.documents("store", "import", "fdb", tmp_path / "home", *python, *to, "--json")[-1]
    assert (again["objects"], again["there_already"]) == (0, count)


def test_the_schemas_are_those_that_fdb_prints(bare: Shell, filled: Fdb, tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    printed.write_text(filled.tool("fdb-schema"))
    ours, theirs = (bare.documents("schema", "check", file, "--json") for file in (filled.root / "schema", printed))
    assert [schema["key"] for schema in ours] == [schema["key"] for schema in theirs]
    assert ours[1]["key"]["collocation"] == ["type", "levtype", "reference"]


def test_what_the_store_has_no_schema_for_is_named(bare: Shell, filled: Fdb, to: list[str], tmp_path: Path) -> None:
    narrow = tmp_path / "narrow"
    narrow.write_text(SCHEMA.replace("reference:First3", "bcmodel"))
    bare.run("store", "create", *to, "--schema", narrow)
    said = bare.error(2, "store", "import", "fdb", filled.root, "--python", filled.python, *to)
    assert "levtype=pl,reference=abc,type=tu}{param=130,step=6}" in said
    assert "no schema of the store has these attributes in these levels" in said
    said = bare.error(2, "store", "import", "fdb", filled.root, "--python", filled.python, *to, "--keep-going")
    assert "1 failed in all" in said
    assert bare.text("ls", *to, "--count") == f"{len(filled.fields()) - 1}\n"


def test_two_fields_that_would_be_one_are_named(bare: Shell, fdb: Fdb, to: list[str]) -> None:
    (fdb.root / "schema").write_text("number: Integer; [ class [ type [ number ]]]")
    fdb.write(*(field({"class": "rd", "type": "x", "number": number}, number) for number in ("7", "007")))
    said = bare.error(1, "store", "import", "fdb", fdb.root, "--python", fdb.python, *to, "--create")
    assert "FDB has another field that is {class=rd}{type=x}{number=7} here" in said


def test_errors_say_what_is_wrong(bare: Shell, filled: Fdb, to: list[str], tmp_path: Path) -> None:
    python = ["--python", str(filled.python)]
    assert "junctura store create" in bare.error(3, "store", "import", "fdb", filled.root, *python, *to)
    assert "neither schema nor etc/fdb" in bare.error(3, "store", "import", "fdb", tmp_path / "none", *python, *to)
    without = ["--python", sys.executable]
    assert "pip install pyfdb fdb5lib" in bare.error(1, "store", "import", "fdb", filled.root, *without, *to)
    assert "--python selects" in bare.error(1, "store", "import", "fdb", filled.root, "--python", "no-such-python", *to)

    data = next((filled.root / "root").rglob("*.data"))
    data.rename(data.with_suffix(".gone"))
    said = bare.error(1, "store", "import", "fdb", filled.root, *python, *to, "--create")
    assert data.name in said and "No such file" in said

    (filled.root / "schema").write_text(SCHEMA + "[ broken ]\n")
    said = bare.error(2, "store", "import", "fdb", filled.root, *python, "--store", tmp_path / "other", "--create")
    assert "schema line 11, column 1: a rule has three levels" in said
    assert not (tmp_path / "other").exists()
