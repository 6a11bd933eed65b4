"""Two listings side by side: keys, attributes, bytes, and values within a tolerance."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from python_stores import grib

import junctura


@pytest.fixture
def store(tmp_path: Path) -> junctura.Store:
    return junctura.Store.create(tmp_path / "store", schema="free")


def compared(store: junctura.Store, **tolerance: float) -> junctura.Comparison:
    first, second = (store.list(f"space={space}") for space in "ab")
    return junctura.compare(first, second, ignore=["space"], **tolerance)


def test_what_two_experiments_do_not_have_in_common(store: junctura.Store) -> None:
    with store:
        for space, names in (("a", "12345"), ("b", "23456")):
            for name in names:
                payload = f"{space if name == '3' else ''}{name}".encode()
                store.archive(payload, space=space, name=name, unit=space if name == "4" else "K")
    found = compared(store)
    assert (found.both, found.is_same, found.values) == (4, False, None)
    assert [obj["name"] for obj in found.only_first.values()] == ["1"]
    assert [obj["name"] for obj in found.only_second.values()] == ["6"]
    assert found.attributes == {"{}{}{name=4}": {"unit": ("a", "b")}}
    [(key, (first, second))] = found.bytes.items()
    assert (key, first.read(), second.read()) == ("{}{}{name=3}", b"a3", b"b3")
    assert junctura.compare(store.list(), store.list()).is_same
    with pytest.raises(junctura.errors.InvalidArgument, match="colour"):
        junctura.compare(store.list(), store.list(), ignore=["colour"])
    with pytest.raises(junctura.errors.InvalidArgument, match="several objects"):
        junctura.compare(store.list(), store.list(), ignore=["space"])


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ([1.0, 2.0], [1.0, 2.25], 0.25),
        ([1.0, 2.0], [1.0, 2.01], None),
        ([1.0, math.nan], [1.01, math.nan], None),
        ([1.0, math.nan], [1.0, 2.0], math.inf),
        ([1.0, 2.0], [1.0, 2.0, 3.0], math.inf),
    ],
)
def test_values_are_the_same_within_a_tolerance(
    store: junctura.Store, first: list[float], second: list[float], apart: float | None
) -> None:
    with store:
        for space, values in (("a", first), ("b", second)):
            # Its shape is an attribute outside the key.
            store.archive(np.array(values), space=space, name="t")
    found = compared(store, atol=0.1)
    assert found.values == ({} if apart is None else {"{}{}{name=t}": apart})
    assert found.is_same == (apart is None)
    assert not compared(store).is_same
    assert compared(store, rtol=10.0).is_same == (apart is None or math.isfinite(apart))


def test_fields_that_are_coded_otherwise_have_the_same_values(tmp_path: Path) -> None:
    values = np.linspace(200.0, 300.0, 16 * 31)
    stores = []
    for bits in (16, 24):
        store = junctura.Store.create(tmp_path / f"{bits}", schema="free")
        with store:
            store.archive(grib(bitsPerValue=bits, values=values), name="t")
        stores.append(store.list())
    assert not junctura.compare(*stores).is_same
    assert junctura.compare(*stores, atol=0.01).is_same
    apart = junctura.compare(*stores, atol=0.0).values
    assert apart is not None
    assert 0 < apart["{space=default}{}{name=t}"] < 0.01


def test_what_has_no_values_is_as_far_apart_as_can_be(store: junctura.Store, tmp_path: Path) -> None:
    with store:
        for space in "ab":
            store.archive(space.encode(), space=space, name="text")
            store.archive(b"GRIB, says " + space.encode(), space=space, name="no message")
    # Only the command takes bytes that do not fit the type.
    for space, nbytes in (("a", 16), ("b", 15)):
        (tmp_path / space).write_bytes(bytes(nbytes))
        attributes = [f"--set={item}" for item in (f"space={space}", "name=cut", "dtype=float64")]
        words = ["store", "archive", str(tmp_path / space), "--store", str(tmp_path / "store"), *attributes]
        subprocess.run([sys.executable, "-m", "junctura", *words, "--schema", "free"], check=True)
    assert compared(store, atol=1e9).values == {
        f"{{}}{{}}{{name={name}}}": math.inf for name in ("text", '"no message"', "cut")
    }
