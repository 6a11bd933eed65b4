"""A pool with a store behind it, from Python."""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import junctura
import junctura.aio


@pytest.fixture
def store(tmp_path: Path) -> junctura.Store:
    with junctura.Store.create(tmp_path / "store", schema="free") as store:
        store.archive(b"kept", name="a")
    return store


@pytest.fixture
def pool(store: junctura.Store) -> Iterator[junctura.Pool]:
    with junctura.Pool(schema="free", store=store.path) as pool:
        pool.offer(b"here", name="b")
        yield pool


def test_what_has_left_the_pool_is_found(pool: junctura.Pool) -> None:
    assert [(entry["name"], entry.archived, len(entry)) for entry in pool.list()] == [("a", True, 4), ("b", False, 4)]
    with pool.demand(name="a") as kept:
        assert (bytes(kept), kept.transport, kept.producer) == (b"kept", "store", 0)
        assert str(kept.version) == "0.0"
        assert kept.attributes == {"space": "default", "name": "a"}
    assert [(obj["name"], bytes(obj)) for obj in pool.follow("", until_live=True)] == [("a", b"kept"), ("b", b"here")]
    with pytest.raises(junctura.errors.Timeout):
        pool.demand(name="c", timeout=0.01)


def test_arrays_come_from_a_store_too(tmp_path: Path) -> None:
    with junctura.Pool(schema="free") as pool, junctura.Store.create(tmp_path / "arrays", schema="free") as store:
        pool.offer(np.array([1, 2, 3], dtype=np.uint8), name="array")
        obj = pool.demand(name="array")
        store.archive(obj, obj.attributes)
    with junctura.Pool(schema="free", store=tmp_path / "arrays") as pool:
        assert pool.demand(name="array").array().tolist() == [1, 2, 3]


def test_pools_and_entries_are_pickled_with_their_store(store: junctura.Store, tmp_path: Path) -> None:
    with junctura.Pool(f"unix:{tmp_path}/s", schema="free", start=True, store=f"file://{store.path}") as pool:
        [entry] = pickle.loads(pickle.dumps(pool.list()))
        assert (entry["name"], entry.archived) == ("a", True)
        with pickle.loads(pickle.dumps(pool)) as again:
            assert bytes(again.demand(name="a")) == b"kept"
        pool.stop()


def test_a_pool_of_tasks_is_opened_with_its_store(store: junctura.Store) -> None:
    async def story() -> None:
        async with junctura.aio.Pool(schema="free", store=store.path) as pool:
            await pool.offer(b"here", name="b")
            assert [bytes(await pool.demand(name=name)) for name in ("a", "b")] == [b"kept", b"here"]
            assert [entry.archived for entry in await pool.list()] == [True, False]

    asyncio.run(story())


def test_tasks_find_what_has_left_the_pool(pool: junctura.Pool) -> None:
    async def story() -> None:
        async with junctura.aio.Pool(pool) as tasks:
            for key, payload, is_archived in (("a", b"kept", True), ("b", b"here", False)):
                for timeout in (0, None):
                    async with asyncio.timeout(60):
                        found = await tasks.demand(name=key, timeout=timeout)
                    assert (bytes(found), found.transport == "store") == (payload, is_archived)
            assert [entry.archived for entry in await tasks.list("name=a/b")] == [True, False]
            with pytest.raises(junctura.NotFound):
                await tasks.demand(name="c", timeout=0)
            with pytest.raises(junctura.Timeout):
                await tasks.demand(name="c", timeout=0.01)
            with pytest.raises(junctura.InvalidSelector):
                await tasks.demand("name=(", timeout=0)
            late = asyncio.create_task(tasks.demand("name=late"))
            given_up = asyncio.create_task(tasks.demand("name=late"))
            await asyncio.sleep(0)
            given_up.cancel()
            await tasks.offer(b"late", name="late")
            assert bytes(await late) == b"late"
            with pytest.raises(asyncio.CancelledError):
                await given_up

    asyncio.run(story())


def test_what_goes_while_a_task_waits_for_it_comes_from_the_store(store: junctura.Store, pool: junctura.Pool) -> None:
    async def story() -> None:
        tasks = junctura.aio.Pool(pool)
        await tasks.offer(b"pool", name="d")
        await tasks.withdraw(name="d")
        with pytest.raises(junctura.errors.Gone):
            await tasks.demand(name="d", timeout=0)
        with store:
            store.archive(b"store", name="d")
        assert bytes(await tasks.demand(name="d")) == b"store"

    asyncio.run(story())


def test_a_demand_that_does_not_wait_finds_what_the_store_has(store: junctura.Store, pool: junctura.Pool) -> None:
    with store:
        store.archive(b"kept", name="c")
    with pool.begin_demand(name="c") as demand:
        while (found := demand.try_get()) is None:
            pass
        assert bytes(found) == b"kept"


def shown(item: object) -> str:
    if isinstance(item, junctura.Object):
        return str(item["name"])
    return "|" if isinstance(item, junctura.Live) else "?"


def test_a_follow_of_tasks_begins_in_the_store_and_goes_on_live(store: junctura.Store, pool: junctura.Pool) -> None:
    with store:
        store.archive(b"kept", name="c")

    async def story() -> None:
        tasks = junctura.aio.Pool(pool)
        async with asyncio.timeout(60), tasks.follow("", gaps="yield", live="yield", window=1) as follow:
            said = ""
            for _ in range(4):
                item = await follow.next()
                said += shown(item)
                if isinstance(item, junctura.Object):
                    assert (item.transport == "store") == (item["name"] in "ac")
                    assert not follow.is_live
                    item.release()
            assert (said, follow.is_live, follow.held) == ("abc|", True, 0)
            with pytest.raises(junctura.errors.Timeout):
                await follow.next(timeout=0)
            await tasks.offer(b"new", name="d")
            assert shown(await follow.next()) == "d"
            cursor = follow.cursor
        assert [obj async for obj in tasks.follow("", cursor=cursor, until_live=True)] == []
        assert [shown(obj) async for obj in tasks.follow("name=a/b", until_live=True)] == ["a", "b"]
        # What has been read is there for who does not wait.
        async with tasks.follow("name=c", until_live=True) as follow:
            assert [shown(await follow.next(timeout=0)), await follow.next()] == ["c", None]

    asyncio.run(story())


def test_who_is_cancelled_while_the_store_is_read_loses_nothing(tmp_path: Path) -> None:
    names = [f"{number:03}" for number in range(200)]
    with junctura.Store.create(tmp_path / "many", schema="free") as store:
        store.archive_many((bytes(30_000), {"name": name}) for name in names)

    async def story(pool: junctura.Pool) -> None:
        given = []
        async with asyncio.timeout(60), junctura.aio.Pool(pool).follow("", until_live=True) as follow:
            turns = itertools.cycle((0, 1, 2, 5))
            while True:
                asked = asyncio.create_task(follow.next())
                for _ in range(next(turns)):
                    await asyncio.sleep(0)
                asked.cancel()
                try:
                    item = await asked
                except asyncio.CancelledError:
                    continue
                if item is None:
                    break
                given.append(item["name"])
        assert given == names

    with junctura.Pool(schema="free", store=tmp_path / "many") as pool:
        asyncio.run(story(pool))


def test_a_store_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with junctura.Store.create(tmp_path / "gone", schema="free") as store:
        store.archive(b"kept", name="a")

    async def story(pool: junctura.Pool) -> None:
        tasks = junctura.aio.Pool(pool)
        (tmp_path / "gone").rename(tmp_path / "elsewhere")
        with pytest.raises(junctura.errors.Error):
            await tasks.follow("")
        (tmp_path / "elsewhere").rename(tmp_path / "gone")
        assert [shown(obj) async for obj in tasks.follow("", until_live=True)] == ["a"]

    with junctura.Pool(schema="free", store=tmp_path / "gone") as pool:
        asyncio.run(story(pool))


def test_where_no_store_is_there_is_no_pool(tmp_path: Path) -> None:
    with pytest.raises(junctura.errors.NotFound):
        junctura.Pool(schema="free", store=tmp_path / "nowhere")
    with pytest.raises(junctura.errors.InvalidArgument):
        junctura.Pool(schema="free", store="ftp://somewhere/else")


def schema(name: str, same_key: str) -> str:
    """One like `free`, by another name."""
    text = junctura.Schema.builtin("free").to_yaml()
    return text.replace("name: free", f"name: {name}").replace("same_key: reject", f"same_key: {same_key}")


def test_a_key_that_the_store_has_is_refused_where_the_schema_rejects_another(tmp_path: Path) -> None:
    schemas = [schema("once", "reject"), schema("again", "supersede")]
    path = tmp_path / "both"
    with junctura.Store.create(path, schema=schemas) as store:
        for name in ("once", "again"):
            store.archive(b"kept", schema=name, name="a")
    with junctura.Pool(schema=schemas, store=path) as pool:
        told = rf"an object with this key is in the store behind the pool \(commit 1, file://{path}/"
        with pytest.raises(junctura.AlreadyExists, match=told) as raised:
            pool.offer(b"", name="a", schema="once")
        assert raised.value.subject == "{space=default}{}{name=a}"
        memory = pool.allocate(1 << 20)
        with pytest.raises(junctura.AlreadyExists, match="behind the pool"):
            memory.offer(name="a", schema="once")
        with pytest.raises(junctura.AlreadyExists, match="behind the pool"):
            pool.offer(bytes(1 << 20), name="a", schema="once")
        with pytest.raises(junctura.AlreadyExists, match="behind the pool"):
            pool.offer_many([(b"", {"name": "b"}), (b"", {"name": "a"})], schema="once")
        with pool.bundle("a/bundle") as bundle:
            bundle.offer(b"", name="c", schema="once")
            with pytest.raises(junctura.AlreadyExists, match="behind the pool"):
                bundle.offer(b"", name="a", schema="once")
        pool.offer(b"newer", name="a", schema="again")
        assert sorted(entry["name"] for entry in pool.list() if not entry.archived) == ["a", "b", "c"]
        # Nothing is kept of what was refused.
        assert pool.allocate(1 << 20).offer(name="d", schema="once")


def test_what_an_earlier_pool_has_archived_is_refused_by_the_next(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    for is_first in (True, False):
        with junctura.Pool(schema="free", store=store.path) as pool:
            if is_first:
                with junctura.Archiver(pool, store, ""):
                    pool.offer(b"", name="a", retention="released_by:archive")
            with pytest.raises(junctura.AlreadyExists, match="behind the pool"):
                pool.offer(b"", name="a")
            assert pool.stat()["objects"]["visible"] == 0
    # Who has not named the store does not look there.
    with junctura.Pool(schema="free") as pool:
        pool.offer(b"", name="a")


def test_offers_of_tasks_are_refused_for_keys_that_the_store_has(tmp_path: Path) -> None:
    with junctura.Store.create(tmp_path / "store", schema="free") as store:
        store.archive(b"kept", name="a")

    async def offered() -> None:
        with junctura.Pool(schema="free", store=store.path) as pool:
            tasks = junctura.aio.Pool(pool)
            for data in (b"", bytes(1 << 18)):
                with pytest.raises(junctura.AlreadyExists, match="in the store behind the pool"):
                    await tasks.offer(data, name="a")
            await tasks.offer(b"", name="b")

    asyncio.run(offered())
