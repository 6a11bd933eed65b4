"""A key is a selector of its object alone, in a pool and in a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from python_stores import FIELD

import junctura

MEMBER = {**FIELD, "number": "1"}


def keys(objects: Iterable[junctura.Stored | junctura.Entry]) -> list[str]:
    return [obj.key for obj in objects]


@pytest.fixture
def store(tmp_path: Path) -> junctura.Store:
    """With a field, the same of a member, and an older version of each."""
    store = junctura.Store.create(tmp_path / "store", schema="mars")
    for payload in (b"old", b"new"):
        with store:
            store.archive(payload, FIELD)
            store.archive(payload, MEMBER)
    return store


def test_a_store_gives_the_object_of_a_key(store: junctura.Store) -> None:
    common = ",".join(f"{name}={value}" for name, value in FIELD.items())
    both = keys(store.list(common))
    assert len(both) == 2, "a selector by values matches the member, too"
    for key in both:
        assert keys(store.list(key)) == keys(store.retrieve(key)) == [key]
        assert store.retrieve(key)[0].read() == b"new"
        assert len(store.snapshot().versions(key)) == 2
        assert all(len(values) == 1 for values in store.axes(key).values())
    (field,) = [key for key in both if "number" not in key]
    assert store.wipe(field).objects == 2
    assert keys(store.list()) == [key for key in both if key != field]
    with pytest.raises(junctura.NotFound, match="2t"):
        store.retrieve(field)
    assert store.retrieve(field, partial=True).missing != []


def test_what_is_no_key_is_refused(store: junctura.Store) -> None:
    for wrong in ("{", "{class=od", "{colour=red}"):
        with pytest.raises(junctura.InvalidSelector):
            store.list(wrong)


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    with junctura.Pool(schema="mars") as pool:
        yield pool


def test_a_pool_gives_the_object_of_a_key(pool: junctura.Pool) -> None:
    for attributes in (FIELD, MEMBER):
        pool.offer(b"payload", attributes)
    pool.sync()
    both = keys(pool.list())
    assert len(both) == 2
    for key in both:
        assert keys(pool.list(key)) == [key]
        assert pool.demand(key).key == key
    pool.withdraw(both[0])
    assert keys(pool.list()) == both[1:]
