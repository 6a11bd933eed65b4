"""A store as other programs read it, without our code: attributes in their types, bytes where and as the rows say."""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from store_readers import Row, by_duckdb, by_pyarrow, crc32c, newest_by_duckdb

import junctura

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow.parquet")

SCHEMA = """
name: everything
key:
  dataset: [run]
  element: ["day?", "count?", "level?", step]
open: true
attributes:
  run: {type: string}
  day: {type: date}
  count: {type: integer}
  level: {type: decimal}
  step: {type: step}
  part: {type: float}
  final: {type: bool}
  at: {type: timestamp}
  levels: {type: list of decimal}
"""
# What is given, and what others read of it.
ATTRIBUTES: list[tuple[dict[str, Any], Row]] = [
    (
        {"day": "20260228", "count": -7, "level": "0.5", "step": 6, "part": 0.1, "final": True},
        {"day": date(2026, 2, 28), "count": -7, "level": Decimal("0.5"), "step": "6", "part": 0.1, "final": True},
    ),
    (
        {"day": "17000101", "level": 1000, "step": "0-24", "final": False, "at": "2026-11-20T12:00:00Z"},
        {
            "day": date(1700, 1, 1),
            "level": Decimal(1000),
            "step": "0-24",
            "final": False,
            "at": "2026-11-20T12:00:00Z",
        },
    ),
    (
        {"step": "90m", "count": 2**62, "colour": "red", "levels": [1, 2.5]},
        {"step": "90m", "count": 2**62, "@colour": "red", "levels": "1/2.5"},
    ),
]
RUNS = ["a", "b/ü=1", "c, d"]
COMMITS = 6
READERS = [by_pyarrow, by_duckdb]


@pytest.fixture(params=[["appended"], ["exclusive"], ["appended", "--data"], ["exclusive", "--data"]], ids="-".join)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An empty store, in either order of commits, with its data beside the catalogue or elsewhere."""
    order, *elsewhere = request.param
    schema = tmp_path / "everything.yaml"
    schema.write_text(SCHEMA)
    command = [
        "store",
        "create",
        "--quiet",
        "--store",
        str(tmp_path / "store"),
        "--schema",
        str(schema),
        "--commits",
        order,
    ]
    if elsewhere:
        command += ["--data", str(tmp_path / "large")]
    subprocess.run([sys.executable, "-m", "junctura", *command], check=True)
    return tmp_path / "store"


def payload(commit: int, number: int) -> bytes:
    """Some within commits, others in files, and one without any bytes."""
    if (commit, number) == (0, 0):
        return b""
    return f"{commit}/{number} ".encode() * (9000 if commit % 3 == 1 else 1)


def fill(root: Path) -> list[Row]:
    """Commits with a version of each object; what they are to others, in the order in which they were committed."""
    store = junctura.Store(root)
    expected = []
    for commit in range(COMMITS):
        with store:
            for number, (given, read) in enumerate(ATTRIBUTES):
                bytes_of_it = payload(commit, number)
                store.archive(bytes_of_it, {**given, "run": RUNS[number]})
                expected.append({**read, "run": RUNS[number], "payload": bytes_of_it, "_commit": commit + 1})
        if commit % 2:
            store.checkpoint()
    return expected


def plain(row: Row) -> Row:
    """What a row says that does not depend on where its bytes lie."""
    places = ("_file", "_offset", "_length", "_checksum", "_codec", "_unpacked")
    left_out = (*places, "_number", "_incarnation", "_sequence")
    return {name: value for name, value in row.items() if value is not None and name not in left_out}


@pytest.mark.parametrize("reader", READERS)
def test_others_find_every_version_with_its_attributes_and_bytes(root: Path, reader: Any) -> None:
    expected = fill(root)
    rows = reader(root)
    assert [plain(row) for row in rows] == expected
    assert [row["_number"] for row in rows] == list(range(len(expected)))
    assert all(row["_length"] == len(row["payload"]) for row in rows)
    assert all(row["_checksum"] == crc32c(row["payload"]) for row in rows)


@pytest.mark.parametrize("reader", READERS)
def test_what_was_removed_is_not_found(root: Path, reader: Any) -> None:
    expected = fill(root)
    store = junctura.Store(root)
    store.purge("run=a")
    store.wipe("count=-7/4611686018427387904")
    store.checkpoint()
    left = [row for row in expected if row["run"] == RUNS[1]]
    assert [plain(row) for row in reader(root)] == left


def test_the_newest_version_has_the_highest_number(root: Path) -> None:
    fill(root)
    store = junctura.Store(root)
    with store:
        # Twice in one commit.
        for round_of_it in range(2):
            store.archive(b"again" * (1 + round_of_it), {**ATTRIBUTES[0][0], "run": RUNS[0]})
    store.checkpoint()
    found = newest_by_duckdb(root, 'run, "day", "count", "level", step', "run, _commit, _length")
    assert sorted(found) == [(RUNS[0], 7, 10), (RUNS[1], 6, 4), (RUNS[2], 6, 4)]
    assert sorted((obj["run"], obj.commit, obj.nbytes) for obj in store.list()) == sorted(found)


@pytest.mark.parametrize("reader", READERS)
def test_what_came_after_the_checkpoint_is_not_in_its_files(root: Path, reader: Any) -> None:
    expected = fill(root)
    with junctura.Store(root) as store:
        store.archive(b"later", run="z", step=0)
    assert len(reader(root)) == len(expected) == len(junctura.Store(root).list(all_versions=True)) - 1


Commits = Literal["appended", "exclusive"]
# What is packed in each way, and not.
CODECS = {"a": "zstd", "b": "lz4", "c": None}


def packed_and_moved(path: Path, commits: Commits) -> list[Row]:
    """Objects of each codec, within commits and in files, some of them in a tier; what they are to others."""
    packing = {f"run={run}": codec for run, codec in CODECS.items() if codec}
    store = junctura.Store.create(path / "store", schema=SCHEMA, commits=commits, compression=packing)
    store.add_tier("cold", path / "cold")
    numbers = random.Random(1)
    expected = []
    for step in range(5):
        small = [b"", b"small", bytes(3000)]
        # Half of it is nothing that can be packed.
        large = [numbers.randbytes(60_000) + bytes(60_000)]
        for run in CODECS:
            for part, bytes_of_it in enumerate(small + large if step < 4 else small):
                store.archive(bytes_of_it, run=run, step=step, part=part)
                expected.append({"run": run, "step": str(step), "part": float(part), "payload": bytes_of_it})
        store.flush()
    store.move_to("step=1/3", "cold")
    store.checkpoint()
    return expected


def kind(row: Row) -> tuple[str, str | None]:
    """In which part of the store an object lies, and how it is packed."""
    return row["_file"].split("/")[0], row.get("_codec")


@pytest.mark.parametrize("commits", ["appended", "exclusive"])
@pytest.mark.parametrize("reader", READERS)
def test_others_unpack_what_is_packed_and_find_what_is_in_a_tier(tmp_path: Path, commits: Commits, reader: Any) -> None:
    expected = packed_and_moved(tmp_path, commits)
    rows = reader(tmp_path / "store")
    attributes = ("run", "step", "part", "payload")
    assert [{name: row[name] for name in attributes} for row in rows] == expected
    assert all(row["_checksum"] == crc32c(row["payload"]) for row in rows)
    places = ("data", "tiers", "log" if commits == "appended" else "commits")
    assert {kind(row) for row in rows} == {(place, codec) for place in places for codec in CODECS.values()}
    assert all(row["_length"] < row["_unpacked"] == len(row["payload"]) for row in rows if row["_codec"])


@pytest.mark.parametrize("reader", READERS)
def test_others_see_by_the_checksum_what_is_damaged(tmp_path: Path, reader: Any) -> None:
    packed_and_moved(tmp_path, "appended")
    moved = [row for row in reader(tmp_path / "store") if kind(row) == ("tiers", None)]
    victim = max(moved, key=lambda row: row["_length"])
    with (tmp_path / "cold" / victim["_file"]).open("r+b") as file:
        file.seek(victim["_offset"] + 100)
        file.write(bytes([victim["payload"][100] ^ 1]))
    damaged = [row for row in reader(tmp_path / "store") if row["_checksum"] != crc32c(row["payload"])]
    assert [row["_number"] for row in damaged] == [victim["_number"]]
