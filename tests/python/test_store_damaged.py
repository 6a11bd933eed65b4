"""What `docs/guide/errors.md` says is to be done about a damaged store (at `Corrupt`) helps."""

from __future__ import annotations

from pathlib import Path

import pytest

import junctura

COMMITS = 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Commits of an object each, small and large ones by turns, and a checkpoint behind the second and the third."""
    with junctura.Store.create(tmp_path / "store", schema="free") as store:
        for number in range(COMMITS):
            store.archive(payload(number), name=str(number))
            store.flush()
            if number in (1, 2):
                store.checkpoint()
    return tmp_path / "store"


def payload(number: int) -> bytes:
    return bytes([number]) * (100_000 if number % 2 else 100)


def found(path: Path) -> dict[str, bytes]:
    """What somebody finds who opens the store now."""
    return {obj["name"]: bytes(obj.read()) for obj in junctura.Store(path).list()}


def expected(count: int) -> dict[str, bytes]:
    return {str(number): payload(number) for number in range(count)}


def damage(file: Path, at: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte[0] ^ 4]))


def checkpoints(path: Path) -> list[Path]:
    return sorted((path / "checkpoints").glob("*.json"))


def is_as_good_as_new(path: Path, count: int) -> None:
    """It has so many objects, takes another one, and makes checkpoints."""
    assert found(path) == expected(count)
    with junctura.Store(path) as store:
        store.archive(payload(count), name=str(count))
    store.checkpoint()
    assert found(path) == expected(count + 1)
    assert junctura.Store(path).check().damaged_count == 0


@pytest.mark.parametrize("number", range(COMMITS))
def test_an_object_is_archived_again(path: Path, number: int) -> None:
    store = junctura.Store(path)
    (obj,) = store.list(f"name={number}")
    damage(path / obj.location.file, obj.location.offset + 50)
    with pytest.raises(junctura.Corrupt, match=f"name={number}"):
        obj.read()
    with store:
        store.archive(payload(number), name=str(number))
    assert found(path) == expected(COMMITS)
    store.purge()
    assert junctura.Store(path).check().damaged_count == 0


def test_an_object_that_cannot_be_had_again_is_wiped(path: Path) -> None:
    store = junctura.Store(path)
    (obj,) = store.list("name=1")
    (path / obj.location.file).unlink()
    assert store.check().damaged_count > 0
    store.wipe("name=1/3")
    assert sorted(found(path)) == ["0", "2"]
    assert junctura.Store(path).check().damaged_count == 0


@pytest.mark.parametrize("left", [0, 1], ids=["the log", "an older one"])
def test_without_a_checkpoint_the_one_before_counts(path: Path, left: int) -> None:
    *others, newest = checkpoints(path)
    newest.write_text("{")
    with pytest.raises(junctura.Corrupt, match="checkpoints/"):
        junctura.Store(path).list()
    newest.unlink()
    for other in others[left:]:
        other.unlink()
    is_as_good_as_new(path, COMMITS)


def test_without_a_segment_the_log_counts(path: Path) -> None:
    for segment in (path / "segments").glob("*.parquet"):
        damage(segment, 40)
    with pytest.raises(junctura.Corrupt, match="segments/"):
        junctura.Store(path).list()
    for checkpoint in checkpoints(path):
        checkpoint.unlink()
    is_as_good_as_new(path, COMMITS)


def test_what_was_before_the_damage_of_a_commit_goes_into_a_new_store(path: Path) -> None:
    (log,) = (path / "log").glob("*[0-9]")
    damage(log, log.stat().st_size - 10)
    with pytest.raises(junctura.Corrupt, match="behind commit 3,"):
        junctura.Store(path).list()
    saved = path.with_name("saved")
    with junctura.Store.create(saved, schema="free") as new:
        for obj in junctura.Store(f"file://{path}?until=damage").list():
            new.archive(obj.read(), obj.attributes)
    is_as_good_as_new(saved, COMMITS - 1)
