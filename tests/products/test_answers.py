"""What ecCodes answered once is not asked again, and is the same from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from outputs_fields import field

from junctura.products._outputs import _parameters, grib2
from junctura.products._outputs._output import Output
from junctura.products._workers.cache import Array, answered, arrays_of


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path))
    return tmp_path / "eccodes"


def test_an_answer_is_asked_for_once(cache: Path) -> None:
    asked: list[str] = []

    def ask() -> list[str]:
        asked.append("one")
        return ["K", "Temperature"]

    assert [answered(("one", 1), ask) for _ in range(3)] == [["K", "Temperature"]] * 3
    assert answered(("one", 2), lambda: None) is answered(("one", 2), ask) is None
    assert (asked, len(list(cache.iterdir()))) == (["one"], 2)


@pytest.mark.parametrize("damage", [b"", b"[", b"\xff", b"1", b"[]", b'{"question": "another", "answer": "K"}'])
def test_what_is_damaged_is_asked_for_again(cache: Path, damage: bytes) -> None:
    answered("one", lambda: "K")
    (path,) = cache.iterdir()
    path.write_bytes(damage)
    assert [answered("one", lambda: "m"), answered("one", lambda: "s")] == ["m", "m"]


def test_an_answer_needs_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path / "file"))
    assert answered("one", lambda: "K") == "K"


def test_a_full_folder_gets_no_more(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("junctura.products._workers.cache._FILES_MAX", 2)
    assert [answered(question, lambda: "K") for question in "abc"] == ["K"] * 3
    assert len(list(cache.iterdir())) == 2


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("JUNCTURA_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", fail)
    assert answered("one", lambda: "K") == "K"


@pytest.mark.parametrize("name", ["ECCODES_DEFINITION_PATH", "ECCODES_EXTRA_DEFINITION_PATH"])
def test_of_tables_of_ones_own_nothing_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "/own")
    assert [answered("one", lambda: "K"), answered("one", lambda: "m")] == ["K", "m"]
    assert not cache.exists()


def test_what_fails_is_not_kept(cache: Path) -> None:
    def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        answered("one", fail)
    assert not cache.exists()


@pytest.mark.parametrize("packing", ["simple", "ccsds"])
def test_a_message_is_the_same_from_disk(cache: Path, packing: Literal["simple", "ccsds"]) -> None:
    fields = [
        field(class_="od"),
        field("O16", number=3, step="0-6", stepType="max"),
        field(statistic="probability", threshold=280.5, condition="above", members=6, step="90m"),
    ]
    to = Output("grib2", packing=packing)
    made = []
    for _ in range(2):
        grib2._template.cache_clear()
        _parameters._looked_up.cache_clear()
        made.append([grib2.made([one], to) for one in fields])
    assert made[0] == made[1]
    assert len(list(cache.iterdir())) >= len(fields)


def test_arrays_are_computed_once(cache: Path) -> None:
    computed: list[str] = []

    def make() -> list[Array]:
        computed.append("one")
        return [np.array([3, 1, 2]), np.array([0.5, np.nan], np.float32), np.array([7], np.uint8), np.array([1e9])]

    for _ in range(3):
        found = arrays_of("maps", ("one", 1), make)
        assert [(one.dtype.name, one.tolist()) for one in found[::2]] == [("int64", [3, 1, 2]), ("uint8", [7])]
        assert all(one.flags.aligned for one in found)
        np.testing.assert_array_equal(found[1], np.array([0.5, np.nan], np.float32))
    assert [one.tolist() for one in arrays_of("maps", ("one", 2), list)] == []
    assert (computed, len(list((cache.parent / "maps").iterdir()))) == (["one"], 2)


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "another"])
def test_damaged_arrays_are_computed_again(cache: Path, damage: str) -> None:
    arrays_of("maps", "one", lambda: [np.arange(5.0)])
    (path,) = (cache.parent / "maps").iterdir()
    content = path.read_bytes()
    changed = {"cut": content[:-1], "empty": b"", "changed": content[:-1] + b"\1"}
    if damage == "another":
        arrays_of("maps", "two", lambda: [np.arange(7.0)])
        changed[damage] = next(file for file in path.parent.iterdir() if file != path).read_bytes()
    path.write_bytes(changed[damage])

    def sized(size: int) -> list[Array]:
        return arrays_of("maps", "one", lambda: [np.ones(size)])

    assert [sized(size)[0].size for size in (2, 3)] == [2, 2]
