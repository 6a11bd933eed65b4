"""Objects of a store that were moved to another place: nobody who reads notices."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import junctura


def filled(path: Path, **options):
    store = junctura.Store.create(path, schema="free", **options)
    for space in ("2024", "2025"):
        for name in range(50):
            store.archive(bytes([name]) * 20_000, space=space, name=str(name))
        store.flush()
    return store


def payloads(store):
    return {(found.attributes["space"], found.attributes["name"]): bytes(found.read()) for found in store.list()}


def tier_of(found):
    return found.location.file.split("/")[0]


def test_what_is_moved_reads_as_before(tmp_path):
    store = filled(tmp_path / "store")
    expected = payloads(store)
    seen = store.snapshot().list("space=2024")
    store.add_tier("cold", tmp_path / "cold")
    assert store.tiers == {"cold": str(tmp_path / "cold")}
    moved = store.move_to("space=2024", "cold")
    assert (moved.objects, moved.nbytes, moved.damaged) == (50, 1_000_000, [])
    again = junctura.Store(tmp_path / "store")
    for opened in (store, again):
        assert payloads(opened) == expected
        assert {tier_of(found) for found in opened.list("space=2024")} == {"tiers"}
        assert {tier_of(found) for found in opened.list("space=2025")} == {"data"}
    # Who found it before reads it where it was.
    assert {tier_of(found) for found in seen} == {"data"}
    assert [bytes(found.read()) for found in seen] == [expected["2024", str(name)] for name in range(50)]
    assert again.stats()["data"]["tiers"]["cold"] == {"objects": 50, "bytes": 1_000_000}
    assert store.check().damaged_count == 0
    assert store.move_to("", "data").objects == 50
    assert payloads(junctura.Store(tmp_path / "store")) == expected


def test_other_programs_find_each_object_by_its_uri(tmp_path):
    store = filled(tmp_path / "store", data=tmp_path / "data")
    store.add_tier("cold", tmp_path / "cold")
    store.move_to("space=2024", "cold")
    for found in junctura.Store(tmp_path / "store").list():
        place = found.location
        assert place.uri == f"file://{tmp_path / ('cold' if found['space'] == '2024' else 'data') / place.file}"
        with Path(place.uri.removeprefix("file://")).open("rb") as file:
            file.seek(place.offset)
            assert file.read(place.nbytes) == bytes([int(found["name"])]) * 20_000


def test_a_move_that_is_killed_at_any_moment_shows_nobody(tmp_path):
    store = filled(tmp_path / "store")
    expected = payloads(store)
    store.add_tier("cold", tmp_path / "cold")
    program = "import junctura, sys; junctura.Store(sys.argv[1]).move_to('', 'cold')"
    for _ in range(3):
        there = set((tmp_path / "cold").rglob("*"))
        process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "store")])
        # In the middle of its work: it has begun a file.
        while process.poll() is None and set((tmp_path / "cold").rglob("*")) == there:
            pass
        process.kill()
        process.wait()
        assert payloads(junctura.Store(tmp_path / "store")) == expected
    store.move_to("", "cold")
    assert payloads(store) == expected
    assert {tier_of(found) for found in store.list()} == {"tiers"}


# A commit moves no more objects.
BATCH = 100_000
COUNT = 250_000
# Moves everything, until it is committed that a part of it was moved: it says so, and waits to be killed. It looks
# in the middle of its work, between two objects, so that nothing goes on meanwhile.
STOPS_AFTER_A_COMMIT = """
import signal, sys, junctura

store, watched = (junctura.Store(sys.argv[1]) for _ in range(2))
before = watched.snapshot().commit

def look(*_):
    if (commit := watched.snapshot().commit) > before:
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(commit, flush=True)
        sys.stdin.read()

signal.signal(signal.SIGALRM, look)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
store.move_to("", "cold")
"""


def test_a_move_that_is_killed_goes_on_behind_its_last_commit(tmp_path):
    path = tmp_path / "store"
    with junctura.Store.create(path, schema="free") as store:
        store.archive_many((b"x", {"name": str(number)}) for number in range(COUNT))
    store.add_tier("cold", tmp_path / "cold")
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", STOPS_AFTER_A_COMMIT, str(path)], stdin=pipe, stdout=pipe, text=True
    )
    committed = process.stdout.readline()
    process.kill()
    process.communicate()
    assert int(committed) == store.snapshot().commit
    tiers = store.stats()["data"]["tiers"]
    moved = tiers["cold"]["objects"]
    assert moved in (BATCH, 2 * BATCH)
    files = {file: file.read_bytes() for file in (tmp_path / "cold").rglob("*") if file.is_file()}
    # What was committed is not copied again.
    assert store.move_to("", "cold").objects == COUNT - moved
    assert {file: file.read_bytes() for file in files} == files
    assert {tier_of(found) for found in junctura.Store(path).list()} == {"tiers"}
    assert store.check().damaged_count == 0


def test_other_programs_find_it_through_the_checkpoint(tmp_path):
    arrow = pytest.importorskip("pyarrow.parquet")
    store = filled(tmp_path / "store", compression="zstd")
    store.add_tier("cold", tmp_path / "cold")
    store.move_to("space=2024", "cold")
    newest = max((tmp_path / "store/checkpoints").glob("*.json"))
    rows = []
    for file in json.loads(newest.read_text())["files"]:
        rows += arrow.read_table(tmp_path / "store" / file).to_pylist()
    places = {(row["space"], row["name"]): row["_file"].split("/")[0] for row in rows}
    assert {places[space, name] for space, name in places if space == "2024"} == {"tiers"}
    place = json.loads((tmp_path / "store/tiers/cold.json").read_text())["place"]
    moved = [row for row in rows if row["space"] == "2024"]
    assert all(Path(place, row["_file"]).stat().st_size >= row["_offset"] + row["_length"] for row in moved)


def test_what_is_left_is_gathered(tmp_path):
    store = filled(tmp_path / "store")
    store.wipe("space=2024,name!=7")
    expected = payloads(store)
    assert store.gather().objects == 0, "what was written to lately stays"
    for path in (tmp_path / "store/data").rglob("*"):
        os.utime(path, (0, 0))
    gathered = store.gather()
    assert (gathered.objects, gathered.nbytes) == (1, 20_000)
    assert payloads(store) == payloads(junctura.Store(tmp_path / "store")) == expected


def test_a_tier_that_is_not_there_is_told_and_nothing_of_it_is_forgotten(tmp_path):
    store = filled(tmp_path / "store")
    expected = payloads(store)
    store.add_tier("cold", tmp_path / "cold")
    store.move_to("space=2024", "cold")
    (tmp_path / "cold").rename(tmp_path / "elsewhere")
    away = junctura.Store(tmp_path / "store")
    with pytest.raises(junctura.Unavailable, match="is it mounted"):
        away.list("space=2024")[0].read()
    for ask in (away.check, away.compact, away.stats, lambda: away.move_to("space=2025", "cold")):
        with pytest.raises(junctura.Unavailable):
            ask()
    # What lies elsewhere is there, and may be written.
    assert len(away.list("space=2025")[0].read()) == 20_000
    away.archive(b"new", space="2026", name="new")
    away.flush()
    assert away.checkpoint().commit > 0
    assert not (tmp_path / "cold").exists()
    (tmp_path / "elsewhere").rename(tmp_path / "cold")
    expected["2026", "new"] = b"new"
    assert payloads(away) == payloads(junctura.Store(tmp_path / "store")) == expected


def test_a_place_is_one_stores(tmp_path):
    filled(tmp_path / "one").add_tier("cold", tmp_path / "cold")
    other = filled(tmp_path / "other")
    with pytest.raises(junctura.AlreadyExists, match="has a tier of this name there"):
        other.add_tier("cold", tmp_path / "cold")
    other.add_tier("other-cold", tmp_path / "cold")
    assert other.move_to("", "other-cold").objects == 100
    with pytest.raises(junctura.InvalidArgument, match="lost with the process"):
        other.add_tier("quick", "memory:quick")


def test_a_copy_reads_until_it_is_adopted(tmp_path):
    store = filled(tmp_path / "store")
    store.add_tier("cold", tmp_path / "cold")
    store.move_to("", "cold")
    expected = payloads(store)
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    copy = junctura.Store(tmp_path / "copy")
    assert payloads(copy) == expected
    with pytest.raises(junctura.Conflict, match="tier --adopt"):
        copy.compact()
    copy.adopt()
    copy.compact()
    with pytest.raises(junctura.Conflict):
        store.compact()
    assert payloads(store) == expected


def test_what_is_no_tier_is_refused(tmp_path):
    store = filled(tmp_path / "store")
    with pytest.raises(junctura.NotFound, match="it has data"):
        store.move_to("", "cold")
    with pytest.raises(junctura.InvalidArgument, match="a-z"):
        store.add_tier("Cold Store", tmp_path / "cold")
    store.add_tier("cold", tmp_path / "cold")
    with pytest.raises(junctura.AlreadyExists):
        store.add_tier("cold", tmp_path / "elsewhere")
    with pytest.raises(junctura.InvalidSelector):
        store.move_to("space=", "cold")
