"""Forked and spawned children, threads, and what a killed process leaves."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest

import junctura

SHARED = 1 << 18


def produce(pool: junctura.Pool, member: int, count: int) -> None:
    """What a child does with the pool that it was given."""
    for step in range(count):
        pool.offer(np.full(1000, member * 1000 + step), name=f"{member}/{step}")


def consume(pool: junctura.Pool, count: int, pipe: Connection) -> None:
    with pool.follow(window=8) as follow:
        pipe.send("following")
        pipe.send(sum(int(next(follow).array()[-1]) for _ in range(count)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_share_the_pool(pool: junctura.Pool, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    reader = context.Process(target=consume, args=(pool, 60, theirs))
    reader.start()
    assert ours.recv() == "following"
    writers = [context.Process(target=produce, args=(pool, member, 20)) for member in range(3)]
    for writer in writers:
        writer.start()
    assert ours.recv() == sum(member * 1000 + step for member in range(3) for step in range(20))
    for child in [*writers, reader]:
        child.join()
        assert child.exitcode == 0
    assert len(pool.list()) == 60


def test_a_pool_is_pickled_by_its_url(pool: junctura.Pool) -> None:
    pool.offer(b"payload", name="a")
    named = junctura.Pool(pool.url, name="a name", schema="free", offer_timeout=3.0)
    other = pickle.loads(pickle.dumps(named))
    assert other.url == pool.url
    assert other.client not in (pool.client, named.client)
    assert bytes(other.demand(name="a")) == b"payload"


def test_other_things_are_pickled(pool: junctura.Pool) -> None:
    version = pool.offer(b"", name="a")
    schema = pool.schema()
    selector = junctura.Selector("name=a/b", schema)
    for thing in (version, schema, selector, junctura.Released(3)):
        assert pickle.loads(pickle.dumps(thing)) == thing
    with pytest.raises(TypeError):
        pickle.dumps(pool.demand(name="a"))


def test_what_was_heard_is_pickled_by_value(pool: junctura.Pool) -> None:
    with pool.subscribe() as events, pool.follow(gaps="yield") as follow:
        kept = pool.require("name=lost")
        pool.offer(b"payload", name="a", colour="red")
        pool.offer(b"", name="lost")
        next(follow)
        entry = pool.list("name=a")[0]
        heard = [next(events) for _ in range(2)]
        pool.withdraw(name="a")
        heard.append(next(events))
        with pool.bundle("some/path", members=1) as bundle:
            bundle.offer(np.zeros((2, 3)), name="b")
        while heard[-1].kind != "completed":
            heard.append(next(events))
        pool.require("name=x", name="archive")
        heard.append(next(events))
        kept.retract()
    for thing in (entry, *heard):
        copy = pickle.loads(pickle.dumps(thing))
        assert type(copy) is type(thing) and repr(copy) == repr(thing)
        for name in (
            "attributes",
            "key",
            "version",
            "nbytes",
            "staged_in",
            "spilled",
            "kind",
            "requirement",
            "bundle",
            "location",
            "reason",
        ):
            assert getattr(copy, name, None) == getattr(thing, name, None)
        if isinstance(thing, junctura.Event) and isinstance(copy, junctura.Event):
            assert copy.client == thing.client
            assert (copy.object and copy.object.attributes) == (thing.object and thing.object.attributes)


def test_gaps_are_pickled_by_value(pool: junctura.Pool) -> None:
    with pool.follow(window=1, gaps="yield") as follow:
        for name in "ab":
            pool.offer(b"", name=name)
        with follow.next():
            pool.withdraw(name="b")
        gap = follow.next()
    copy = pickle.loads(pickle.dumps(gap))
    assert isinstance(copy, junctura.Gap)
    assert (copy.reason, copy.unnamed, [item.key for item in copy.items]) == (
        gap.reason,
        gap.unnamed,
        [item.key for item in gap.items],
    )


@pytest.mark.parametrize("make", ["follow", "subscribe", "bundle", "pipeline", "begin_demand", "allocate", "demand"])
def test_handles_are_not_pickled(pool: junctura.Pool, make: str) -> None:
    pool.offer(b"", name="a")
    arguments: dict[str, tuple[Any, ...]] = {"begin_demand": ("name=a",), "demand": ("name=a",), "allocate": (10,)}
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(getattr(pool, make)(*arguments.get(make, ())))


def test_a_pickled_pool_whose_creator_has_ended_says_so() -> None:
    pool = junctura.Pool(schema="free")
    words = pickle.dumps(pool)
    pool.close()
    del pool
    gc.collect()
    with pytest.raises(junctura.Unavailable):
        pickle.loads(words)


def in_child(work: Any) -> None:
    """Runs `work` in a forked child, which ends as programs end."""
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == 0


@pytest.mark.parametrize("size", [100, SHARED])
def test_a_forked_child_releases_nothing_of_its_parent(pool: junctura.Pool, size: int) -> None:
    pool.offer(bytes(size), name="a", retention=junctura.Released(1))
    held: list[Any] = [pool.demand(name="a"), pool.follow("name=x"), pool.require("name=x"), pool.allocate(size)]
    array = pool.demand(name="a").array()

    def work() -> None:
        assert array.sum() == 0
        held.clear()
        gc.collect()

    in_child(work)
    pool.offer(b"", name="still there")
    assert {entry["name"] for entry in pool.list()} == {"a", "still there"}
    assert bytes(held[0]) == bytes(size)


@pytest.mark.parametrize("size", [100, SHARED])
def test_views_are_readable_on_both_sides_of_a_fork(pool: junctura.Pool, size: int) -> None:
    """A child reads what its parent held, gives nothing back for it, and what it asks of such handles is refused."""
    pool.offer(np.arange(size, dtype="u1"), name="a", retention=junctura.Released(1))
    obj = pool.demand(name="a")
    held = [obj.array(), np.asarray(memoryview(obj)), np.from_dlpack(obj)]
    expected = np.arange(size, dtype="u1")
    follow, events, demand = pool.follow("name=x"), pool.subscribe(), pool.begin_demand("name=x")

    def work() -> None:
        assert all(np.array_equal(one, expected) for one in held)
        assert obj["name"] == "a"
        for call in (follow.next, events.next, demand.get):
            with pytest.raises(junctura.Closed, match="forked"):
                call()
        assert pool.list()[0]["name"] == "a"

    for _ in range(3):
        in_child(work)
    assert all(np.array_equal(one, expected) for one in held)
    assert len(pool.list()) == 1
    held.clear()
    gc.collect()
    obj.release()
    assert pool.list() == []
    pool.offer(b"", name="x")
    assert next(follow)["name"] == "x"


def test_a_forked_child_uses_the_pool_anew(pool: junctura.Pool) -> None:
    parent = pool.client

    def work() -> None:
        assert pool.client != parent
        pool.offer(b"from the child", name="a")
        assert len(pool.list()) == 1

    in_child(work)
    assert bytes(pool.demand(name="a")) == b"from the child"
    assert pool.client == parent


def test_a_childs_death_is_noticed(pool: junctura.Pool) -> None:
    pool.offer(b"", name="a", retention=junctura.Released(1))
    with pool.subscribe(kinds=["left"]) as events:
        ours, theirs = multiprocessing.get_context("fork").Pipe()

        def work() -> None:
            obj = pool.demand(name="a")
            theirs.send(obj.key)
            signal.pause()

        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        assert "name=a" in ours.recv()
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        left = next(events)
        assert left.client is not None
        assert left.client.pid == child.pid
        child.join()
    pool.offer(b"", name="b")


PRODUCER = """
import os, signal, sys
import junctura
pool = junctura.Pool(sys.argv[1])
pool.offer(bytes(range(256)) * 4096, name="a")
memory = pool.allocate(1 << 20)
memory.array()[:] = 1
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_producer_offered_stays(pool: junctura.Pool) -> None:
    producer = subprocess.run([sys.executable, "-c", PRODUCER, pool.url], check=False)
    assert producer.returncode == -signal.SIGKILL
    assert [entry["name"] for entry in pool.list()] == ["a"]
    assert bytes(pool.demand(name="a")) == bytes(range(256)) * 4096


def test_threads_share_a_pool(pool: junctura.Pool) -> None:
    failures: list[BaseException] = []

    def guarded(work: Any, *arguments: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def await_all(member: int) -> None:
        for step in range(30):
            assert pool.demand(name=f"{member}/{step}").array()[0] == member * 1000 + step

    readers = [guarded(await_all, member) for member in range(4)]
    writers = [guarded(produce, pool, member, 30) for member in range(4)]
    for thread in [*readers, *writers]:
        thread.join()
    assert failures == []
    assert len(pool.list()) == 120


def test_threads_share_a_follow(pool: junctura.Pool) -> None:
    produce(pool, 0, 100)
    follow = pool.follow(until_live=True)
    seen: list[str] = []

    def read() -> None:
        seen.extend(obj["name"] for obj in follow)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(f"0/{step}" for step in range(100))


def test_a_wait_lets_other_threads_run(pool: junctura.Pool) -> None:
    answer: list[bytes] = []
    waiting = threading.Thread(target=lambda: answer.append(bytes(pool.demand(name="a"))))
    waiting.start()
    pool.offer(b"payload", name="a")
    waiting.join()
    assert answer == [b"payload"]


EXIT = """
import junctura, numpy
pool = junctura.Pool(schema="free")
pool.offer(numpy.zeros(100_000), name="a")
array = pool.demand(name="a").array()
follow = pool.follow()
requirement = pool.require("name=b")
memory = pool.allocate(shape=(1000, 1000))
view = memory.array()
events = pool.subscribe()
"""


def test_a_program_ends_with_everything_open() -> None:
    ended = subprocess.run([sys.executable, "-X", "dev", "-c", EXIT], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


SUBINTERPRETER = """
import _xxsubinterpreters as interpreters
import junctura
made = interpreters.create()
try:
    interpreters.run_string(made, "import junctura._native")
except interpreters.RunFailedError as failed:
    print(failed)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module has another name")
def test_subinterpreters_are_refused() -> None:
    ended = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True, check=False)
    assert "interpreter" in ended.stdout + ended.stderr
    assert "ImportError" in ended.stdout + ended.stderr
