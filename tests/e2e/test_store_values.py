"""`junctura store compare --values`: objects with other bytes, whose values Python decodes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from e2e_grib import Field, message
from e2e_shell import Shell

import junctura

PYTHON = ["--python", sys.executable]


@pytest.fixture
def stores(bare: Shell, tmp_path: Path) -> list[str]:
    """Two, and how they are compared."""
    how = []
    for name, option in (("first", "--store"), ("second", "--with")):
        bare.run("store", "create", "--store", tmp_path / name, "-q")
        how += [option, str(tmp_path / name)]
    return how


def archive(bare: Shell, stores: list[str], name: str, *payloads: bytes, **attributes: str) -> None:
    """An object of this name in both."""
    said = [word for pair in {"name": name, **attributes}.items() for word in ("--set", "=".join(pair))]
    for store, payload in zip(stores[1::2], payloads, strict=True):
        bare.run("store", "archive", "--store", store, "-", "--schema", "free", *said, stdin=payload)


def array(stores: list[str], name: str, *values: list[float]) -> None:
    """An array of this name in both, which has a shape."""
    for store, some in zip(stores[1::2], values, strict=True):
        with junctura.Store(store) as opened:
            opened.archive(np.array([some]), name=name, schema="free")


def compared(bare: Shell, stores: list[str], *how: str, status: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    done = bare.run("store", "compare", *stores, *how, *PYTHON, "--json", status=status)
    *differences, summary = map(json.loads, done.stdout.splitlines())
    return differences, summary


def test_arrays_are_the_same_within_a_tolerance(bare: Shell, stores: list[str]) -> None:
    array(stores, "same", [1.0, 2.0], [1.0, 2.0])
    array(stores, "zero", [0.0, 2.0], [-0.0, 2.0])
    array(stores, "near", [100.0, 2.0], [100.25, 2.0])
    (near,), summary = compared(bare, stores, "--values", status=1)
    assert (near["key"], near["difference"], near["apart"]) == ("{space=default}{}{name=near}", "values", 0.25)
    assert (summary["both"], summary["bytes"], summary["values"]) == (3, 2, 1)
    for tolerance in ("--atol=0.25", "--rtol=0.003"):
        assert compared(bare, stores, tolerance, status=0) == ([], {**summary, "values": 0})
    assert compared(bare, stores, "--atol=0.2", "--rtol=1e-4", status=1)[0] == [near]
    said = bare.run("store", "compare", *stores, "--values", *PYTHON, status=1).stdout.decode().splitlines()
    assert said[0].endswith("; values differ by up to 0.25")
    assert said[1].startswith("3 keys in both: 2 with other bytes (1 with other values), ")
    # Without it, as before: nothing is read.
    assert "2 with other bytes, " in bare.run("store", "compare", *stores, "-q", status=1).stdout.decode()


def test_what_cannot_be_brought_together_is_apart_without_bound(bare: Shell, stores: list[str]) -> None:
    archive(bare, stores, "text", b"one", b"other")
    archive(bare, stores, "cut", bytes(16), bytes(15), dtype="float64")
    array(stores, "none", [1.0], [float("nan")])
    differences, summary = compared(bare, stores, "--atol", "1e9", status=1)
    assert [one["apart"] for one in differences] == [None] * 3
    assert summary["values"] == 3


def test_fields_are_decoded(bare: Shell, stores: list[str]) -> None:
    pytest.importorskip("eccodes")
    for store, fill in zip(stores[1::2], (7, 9), strict=True):
        bare.run("store", "archive", "--store", store, "-", stdin=message(Field(), fill))
    ((field,), _) = compared(bare, stores, "--atol", "1", status=1)
    assert field["apart"] == 2.0
    assert compared(bare, stores, "--atol", "2", status=0)[0] == []


def test_damage_is_told_and_no_difference(bare: Shell, stores: list[str]) -> None:
    array(stores, "a", [0.0] * 20_000, [1.0] * 20_000)
    (line,) = bare.documents("store", "inspect", *stores[:2], "--json")
    with Path(line["uri"].removeprefix("file://")).open("r+b") as file:
        file.seek(line["offset"])
        file.write(b"\1")
    assert "were archived with" in bare.error(1, "store", "compare", *stores, "--values", *PYTHON)


def test_without_the_package_it_says_what_is_missing(bare: Shell, stores: list[str], tmp_path: Path) -> None:
    def refused(python: str | Path) -> str:
        return bare.error(1, "store", "compare", *stores, "--values", "--python", python)

    assert "--python selects" in refused("no-such-python")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    python.chmod(0o755)
    assert "pip install 'PATH[grib]'" in refused(python)
    assert "--values" in bare.error(2, "store", "compare", *stores, "--python", sys.executable)
    for wrong in ("-1", "nan", "little"):
        assert "is expected" in bare.error(2, "store", "compare", *stores, f"--atol={wrong}")
