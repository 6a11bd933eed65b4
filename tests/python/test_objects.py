"""Objects and their views: what is held, what is released, and when."""

from __future__ import annotations

import gc
import os
import weakref
from typing import Any

import numpy as np
import pytest

import junctura

SHARED = 1 << 18

# Pools are reached over TCP here (see CONTRIBUTING.md).
TCP = os.environ.get("JUNCTURA_TEST_DETOUR") == "tcp"


@pytest.fixture(params=[100, SHARED], ids=["inline", "shared"])
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def once(pool: junctura.Pool, size: int) -> junctura.Object:
    """An object that goes with its first release."""
    pool.offer(np.arange(size, dtype="u1"), name="a", retention=junctura.Released(1))
    return pool.demand(name="a")


def is_there(pool: junctura.Pool) -> bool:
    return bool(pool.list())


def test_what_it_says_of_itself(pool: junctura.Pool, size: int) -> None:
    version = pool.offer(bytes(size), name="a", colour="red")
    obj = pool.demand(name="a")
    assert obj.version == version
    assert obj.key == "{space=default}{}{name=a}"
    assert obj.attributes == {"space": "default", "name": "a", "colour": "red"}
    assert obj.attributes is not obj.attributes
    assert obj.schema == pool.schema("free")
    assert obj.transport == ("inline" if size != SHARED else "tcp" if TCP else "shared")
    assert obj.producer == pool.client
    assert obj.cursor is None
    assert not obj.in_snapshot
    assert obj["colour"] == obj.get("colour") == "red"
    assert "colour" in obj
    assert "weight" not in obj
    assert "colour" in pool.list()[0]
    assert obj.get("weight") is None
    assert obj.get("weight", 3) == 3
    with pytest.raises(junctura.NotFound) as raised:
        obj["weight"]
    assert raised.value.subject == "weight"
    assert "name=a" in repr(obj)
    assert bool(obj)


def test_forgetting_it_releases_it(pool: junctura.Pool, size: int) -> None:
    obj = once(pool, size)
    assert is_there(pool)
    del obj
    assert not is_there(pool)


def test_its_block_releases_it(pool: junctura.Pool, size: int) -> None:
    with once(pool, size) as obj:
        assert is_there(pool)
    assert obj.released
    assert not is_there(pool)


def test_releasing_it(pool: junctura.Pool, size: int) -> None:
    obj = once(pool, size)
    obj.release()
    obj.release()
    assert not is_there(pool)
    assert obj.released
    assert obj.version.sequence == 1
    for look in (lambda: obj.key, lambda: obj.attributes, obj.array, lambda: len(obj), lambda: obj["name"]):
        with pytest.raises(junctura.Closed):
            look()
    with pytest.raises(junctura.Closed):
        memoryview(obj)
    assert "released" in repr(obj)


def test_views_hold_it(pool: junctura.Pool, size: int) -> None:
    obj = once(pool, size)
    part = obj.array()[3:5]
    view = memoryview(obj)
    del obj
    gc.collect()
    assert is_there(pool)
    assert part.tolist() == [3, 4]
    del part
    assert is_there(pool)
    view.release()
    assert not is_there(pool)


@pytest.mark.parametrize("end", ["release", "block", "give back"])
def test_views_stay_valid_after_its_release(pool: junctura.Pool, size: int, end: str) -> None:
    obj = once(pool, size)
    array = obj.array()
    view = memoryview(obj)
    if end == "block":
        with obj:
            pass
    else:
        (obj.release if end == "release" else obj.give_back)()
    obj.release()
    assert obj.released and "released" in repr(obj)
    with pytest.raises(junctura.Closed):
        obj.array()
    del obj
    gc.collect()
    # Memory that was free by now would be used again.
    for number in range(8):
        pool.offer(bytes(size), name=f"filler {number}", retention=junctura.Released(1))
        pool.demand(name=f"filler {number}").release()
    expected = np.arange(size, dtype="u1")
    assert np.array_equal(array, expected) and bytes(view) == expected.tobytes()
    del array
    view.release()
    pool.sync()
    assert pool.stat()["objects"]["held"] == 0


def test_many_views_of_released_objects_stay_valid(pool: junctura.Pool) -> None:
    """Every second view is kept while memory is used again and again."""
    kept = []
    for number in range(200):
        pool.offer(np.full(SHARED, number, dtype="u1"), name=f"{number}", retention=junctura.Released(1))
        with pool.demand(name=f"{number}") as obj:
            array = obj.array()
        if number % 2:
            kept.append((number, array))
        if number % 10 == 9:
            del kept[: len(kept) // 2]
        assert all((array == expected).all() for expected, array in kept)
    del array, kept
    gc.collect()
    assert pool.stat()["objects"]["held"] == 0


def test_views_are_read_only(pool: junctura.Pool, size: int) -> None:
    obj = once(pool, size)
    view = memoryview(obj)
    assert view.readonly
    assert view.format == "B"
    with pytest.raises(TypeError):
        view[0] = 1
    array = obj.array()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_views_outlive_the_pool(size: int) -> None:
    pool = junctura.Pool(schema="free")
    pool.offer(np.arange(size, dtype="u1"), name="a")
    array = pool.demand(name="a").array()
    pool.close()
    del pool
    gc.collect()
    assert array[5] == 5
    assert array.sum() == np.arange(size, dtype="u1").sum()


def test_views_outlive_a_withdrawal(pool: junctura.Pool, size: int) -> None:
    pool.offer(np.arange(size, dtype="u1"), name="a")
    array = pool.demand(name="a").array()
    assert pool.withdraw(name="a") == 1
    pool.offer_many([(bytes(size), {"name": f"{at}"}) for at in range(20)])
    assert array[5] == 5


def test_an_empty_payload(pool: junctura.Pool) -> None:
    pool.offer(b"", name="a")
    obj = pool.demand(name="a")
    assert bytes(obj) == b""
    assert bool(obj)
    array = obj.array()
    assert array.shape == (0,)
    assert not array.flags.writeable
    obj.release()


def test_weak_references(pool: junctura.Pool) -> None:
    obj = once(pool, 10)
    reference = weakref.ref(obj)
    assert reference() is obj
    del obj
    assert reference() is None


def test_dlpack(pool: junctura.Pool) -> None:
    pool.offer(np.arange(3.0), name="a")
    array = pool.demand(name="a").array()
    assert np.from_dlpack(array).tolist() == [0, 1, 2]


def test_demands(pool: junctura.Pool) -> None:
    pool.offer(b"1", name="a")
    pool.offer(b"2", name="b")
    assert bytes(pool.demand("name=a")) == b"1"
    assert bytes(pool.demand("")) == b"2"
    assert bytes(pool.demand({"name": "a"})) == b"1"
    assert bytes(pool.demand({"space": "default"}, name="b")) == b"2"
    assert bytes(pool.demand("{space=default}{}{name=a}")) == b"1"
    with pytest.raises(junctura.NotFound):
        pool.demand(name="c", timeout=0)
    with pytest.raises(junctura.Timeout):
        pool.demand(name="c", timeout=0.001)
    with pytest.raises(junctura.InvalidSelector) as raised:
        pool.demand("name==a")
    assert raised.value.picture is not None
    for wrong in ((), ("name=a", {"name": "a"})):
        with pytest.raises((junctura.InvalidArgument, TypeError)):
            pool.demand(*wrong)
    with pytest.raises(junctura.InvalidArgument):
        pool.demand("name=a", name="a")
    with pytest.raises(junctura.SchemaMismatch):
        pool.demand(colour="red")


def test_gone(pool: junctura.Pool) -> None:
    pool.offer(b"", name="a")
    assert pool.withdraw(name="a") == 1
    with pytest.raises(junctura.Gone) as raised:
        pool.demand(name="a")
    assert "withdrawn" in raised.value.cause
    with pytest.raises(junctura.Error):
        pool.withdraw(name="a")


def test_lists(pool: junctura.Pool) -> None:
    for at, name in enumerate("cab"):
        pool.offer(bytes(at), name=name, rank=f"{3 - at}")
    assert [entry["name"] for entry in pool.list()] == ["a", "b", "c"]
    assert [entry["name"] for entry in pool.list(order_by="name")] == ["a", "b", "c"]
    assert [(entry.nbytes, len(entry)) for entry in pool.list("name=c/b")] == [(2, 2), (0, 0)]
    entry = pool.list("name=a")[0]
    assert entry.key == "{space=default}{}{name=a}"
    assert entry.attributes["rank"] == "2"
    assert entry.get("weight", 0) == 0
    assert entry.schema.name == "free"
    assert isinstance(entry, junctura.Described)
    with pytest.raises(junctura.NotFound):
        entry["weight"]
    with pytest.raises(junctura.InvalidSelector):
        pool.list("name=")


def test_a_list_of_many(pool: junctura.Pool) -> None:
    pool.offer_many([(b"", {"name": f"{at:05}"}) for at in range(20_000)])
    entries = pool.list()
    assert len(entries) == 20_000
    assert [entry["name"] for entry in entries[:2]] == ["00000", "00001"]


@pytest.mark.parametrize(
    ("attributes", "payload"),
    [
        ({"dtype": "[" * 500 + "]" * 500, "shape": [1]}, bytes(8)),
        ({"dtype": "[(", "shape": [1]}, bytes(8)),
        ({"dtype": "[x]", "shape": [1]}, bytes(8)),
        ({"dtype": "[('a', '<f8', 1e9)]", "shape": [1]}, bytes(8)),
        ({"dtype": "\ud7ff", "shape": [1]}, bytes(8)),
        ({"dtype": "[" + "('a','<f8')," * 80 + "]", "shape": [1]}, bytes(8)),
        ({"dtype": "<f8", "shape": [10**12]}, b""),
        ({"dtype": "<f8", "shape": [0, 10**18, 10**18]}, b""),
        ({"dtype": "<f8", "shape": [-1]}, bytes(8)),
        ({"dtype": "<f8", "shape": [1, -1]}, bytes(8)),
        ({"dtype": "<f8", "shape": [2**63 - 1]}, bytes(8)),
        ({"dtype": "<f8", "shape": [1] * 1000}, bytes(8)),
    ],
)
def test_what_a_producer_states_of_an_array_is_checked(attributes: dict[str, Any], payload: bytes) -> None:
    # The type is in the key: an offer does not compare it with the data.
    unchecked = """
name: unchecked
key: {dataset: [], collocation: [], element: [name, dtype]}
attributes:
  name: {type: string}
  dtype: {type: string}
  shape: {type: list of integer}
"""
    with junctura.Pool(schema=unchecked) as pool:
        pool.offer(payload, attributes, name="a")
        with pytest.raises(junctura.InvalidArgument):
            pool.demand("name=a").array()
