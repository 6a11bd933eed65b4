"""Memory of the pool: filled in place, read-only after the offer, free again without one."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import junctura

SHARED = 1 << 18


@pytest.fixture(params=[100, SHARED], ids=["inline", "shared"])
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_filled_in_place(pool: junctura.Pool, size: int) -> None:
    with pool.allocate(size) as memory:
        assert (memory.nbytes, len(memory), memory.closed) == (size, size, False)
        memory.array()[:] = 7
        view = memoryview(memory)
        assert not view.readonly
        view[1] = 8
        view.release()
        version = memory.offer(name="a")
        assert memory.closed
    obj = pool.demand(name="a")
    assert obj.version == version
    assert obj.array()[:3].tolist() == [7, 8, 7]
    assert "dtype" not in obj.attributes


def test_an_array(pool: junctura.Pool) -> None:
    memory = pool.allocate(shape=(200, 300), dtype=">f4")
    array = memory.array()
    assert (array.shape, array.dtype) == ((200, 300), np.dtype(">f4"))
    array[:] = np.arange(300)
    memory.offer({"name": "a"})
    back = pool.demand(name="a").array()
    assert (back.shape, back.dtype) == ((200, 300), np.dtype(">f4"))
    assert back[7, 5] == 5
    assert pool.allocate(shape=4).array().dtype == np.float64
    assert pool.allocate(shape=(), dtype="i2").array().shape == ()
    assert pool.allocate(shape=(0, 3)).array().shape == (0, 3)
    assert memory.nbytes == 240_000


def test_read_only_after_the_offer(pool: junctura.Pool, size: int) -> None:
    memory = pool.allocate(size)
    arrays = [memory.array(), memory.array("u2"), memory.array("u1", (2, -1))]
    arrays[0][:] = 3
    memory.offer(name="a")
    for array in arrays:
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        arrays[0][0] = 1
    for again in (memory.array, lambda: memoryview(memory), lambda: memory.offer(name="b")):
        with pytest.raises(junctura.Closed):
            again()


def test_arrays_stay_readable(pool: junctura.Pool, size: int) -> None:
    memory = pool.allocate(size)
    array = memory.array()
    array[:] = 3
    memory.offer(name="a")
    del memory
    pool.withdraw_all("")
    pool.close()
    gc.collect()
    assert array.shape == (size,)
    assert int(array.sum()) >= 0


def test_a_part_of_an_array_that_is_dropped_could_write(pool: junctura.Pool) -> None:
    for name in "ab":  # The second time, the dtype is known.
        memory = pool.allocate(shape=(8,), dtype="f4")
        part = memory.array()[3:]
        with pytest.raises(junctura.InvalidArgument, match="1 writable views"):
            memory.offer(name=name)
        del part
        memory.offer(name=name)


def test_not_offered_while_something_could_write(pool: junctura.Pool, size: int) -> None:
    memory = pool.allocate(size)
    view = memoryview(memory)
    with pytest.raises(junctura.InvalidArgument, match="1 writable views"):
        memory.offer(name="a")
    view.release()
    array = memory.array()
    other = np.asarray(memory)
    with pytest.raises(junctura.InvalidArgument, match="1 writable views"):
        memory.offer(name="a")
    array[:] = other
    del other
    memory.offer(name="a")


def test_wrong_attributes_lose_nothing(pool: junctura.Pool, size: int) -> None:
    memory = pool.allocate(size)
    memory.array()[:] = 9
    with pytest.raises(junctura.SchemaMismatch):
        memory.offer(nome="a")
    assert not memory.closed
    memory.array()[0] = 8
    memory.offer(name="a")
    assert pool.demand(name="a").array()[:2].tolist() == [8, 9]


def test_freed_without_an_offer(pool: junctura.Pool, size: int) -> None:
    with pool.allocate(size) as memory:
        array = memory.array()
        array[:] = 4
    assert memory.closed
    assert not array.flags.writeable
    assert array[0] == 4
    with pytest.raises(junctura.Closed):
        memory.offer(name="a")
    memory.free()
    assert pool.list() == []


def test_freed_memory_is_used_again() -> None:
    with junctura.Pool(schema="free", budget="32MiB", offer_timeout=0.0) as pool:
        for _ in range(100):
            with pool.allocate(1 << 22) as memory:
                memory.array()[0] = 1
        for _ in range(100):
            pool.allocate(1 << 22).free()
        for _ in range(100):
            pool.allocate(1 << 22)
        for at in range(100):
            pool.allocate(1 << 22).offer(name=f"{at}", retention=junctura.Released(1))
            pool.demand(name=f"{at}").release()


def test_offered_through_the_pool(pool: junctura.Pool, size: int) -> None:
    memories = [pool.allocate(size) for _ in range(4)]
    for at, memory in enumerate(memories):
        memory.array()[:] = at
    pool.offer(memories[0], name="0")
    with pool.pipeline() as pipeline:
        pipeline.offer(memories[1], name="1")
    pool.offer_many([(memory, {"name": f"{at + 2}"}) for at, memory in enumerate(memories[2:])])
    assert [pool.demand(name=f"{at}").array()[0] for at in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("nbytes", "keywords"),
    [
        (None, {}),
        (3, {"shape": 3}),
        (3, {"dtype": "f4"}),
        (None, {"dtype": "f4"}),
        (None, {"shape": (-1,)}),
        (None, {"shape": "wide"}),
        (None, {"shape": 3, "dtype": "f7"}),
        (None, {"shape": 3, "dtype": "O"}),
    ],
)
def test_what_is_no_size(pool: junctura.Pool, nbytes: int | None, keywords: dict[str, Any]) -> None:
    with pytest.raises(junctura.InvalidArgument):
        pool.allocate(nbytes, **keywords)
