"""Bundles: all or nothing, in one process and among many of which some are killed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest

import junctura


def names(pool: junctura.Pool, **how: Any) -> list[str]:
    return [entry["name"] for entry in pool.list(**how)]


def test_what_a_block_offers_is_seen_at_once(pool: junctura.Pool) -> None:
    with pool.follow() as follow, pool.bundle() as bundle:
        version = pool.offer(np.arange(10_000), name="c")
        assert version.sequence == 0
        pool.offer_many([(b"1", {"name": "b"}), (b"2", {"name": "d"})])
        allocation = pool.allocate(shape=(1000,), dtype="f4")
        allocation.array()[:] = 2
        allocation.offer(name="a")
        with pool.pipeline() as pipeline:
            pipeline.offer(b"", name="e")
        assert pool.list() == [] and bundle.completed is None
        assert names(pool, incomplete=True) == list("abcde")
        bundle.seal()
        assert [next(follow)["name"] for _ in range(5)] == list("abcde")
    assert bundle.completed is not None and bundle.completed.objects == 5
    assert (pool.demand(name="c").array() == np.arange(10_000)).all()
    assert pool.offer(b"", name="after").sequence == 6


def test_another_thread_is_not_in_the_block(pool: junctura.Pool) -> None:
    with pool.bundle():
        thread = threading.Thread(target=lambda: pool.offer(b"", name="elsewhere"))
        thread.start()
        thread.join()
        pool.offer(b"", name="here")
        assert names(pool) == ["elsewhere"]
    assert names(pool) == ["elsewhere", "here"]


def test_a_block_that_another_thread_leaves_is_left_everywhere(pool: junctura.Pool) -> None:
    with pool.bundle("around"):
        blocks = contextlib.ExitStack()
        blocks.enter_context(pool.bundle("within"))
        pool.offer(b"", name="a")
        thread = threading.Thread(target=blocks.close)
        thread.start()
        thread.join()
        assert names(pool) == ["a"]
        pool.offer(b"", name="b")
        assert names(pool) == ["a"], "this thread is in the block around it again"
    assert names(pool) == ["a", "b"]
    assert pool.offer(b"", name="c").sequence == 3


def fail_in(pool: junctura.Pool, bundle: junctura.Bundle) -> None:
    with bundle:
        pool.offer(np.zeros(100_000), name="a")
        _ = 1 / 0


def test_an_exception_publishes_nothing(pool: junctura.Pool) -> None:
    with pool.subscribe(kinds=["aborted"]) as events:
        with pytest.raises(ZeroDivisionError):
            fail_in(pool, pool.bundle())
        event = next(events)
        assert (event.kind, event.bundle) == ("aborted", (None, 1, None))
    assert pool.list() == []
    assert pool.stat()["memory"]["inline_bytes"] == 0


def test_one_with_a_path_is_left_to_others_by_an_exception(pool: junctura.Pool) -> None:
    bundle = pool.bundle("b", members=2)
    with pytest.raises(ZeroDivisionError):
        fail_in(pool, bundle)
    with pytest.raises(junctura.Closed, match="left"):
        bundle.offer(b"", name="b")
    with pool.bundle("b", members=2) as bundle:
        member = bundle.offer(b"", name="b")
        completed = bundle.wait()
    assert completed.objects == 2
    assert completed.version(member) == junctura.Version(pool.incarnation, 2)
    assert completed.first == junctura.Version(pool.incarnation, 1)


def test_versions_are_known_with_completion(pool: junctura.Pool) -> None:
    bundle = pool.bundle("b", members=1000)
    members = bundle.offer_many([(b"", {"name": f"{number:03}"}) for number in reversed(range(1000))])
    completed = bundle.wait()
    versions = [completed.version(member) for member in members]
    assert [version.sequence for version in versions if version] == list(range(1000, 0, -1))
    replaced = pool.bundle()
    first, second = replaced.offer(b"old", name="x"), replaced.offer(b"new", name="x")
    completed = replaced.seal()
    assert completed.version(first) is None and completed.version(second) is not None
    assert bytes(pool.demand(name="x")) == b"new"


def test_what_is_nested_waits_for_what_is_around_it(pool: junctura.Pool) -> None:
    with pool.bundle("a") as outer:
        inner = pool.bundle("a/b")
        member = inner.offer(b"", name="x")
        sealed = inner.seal()
        assert (sealed.objects, sealed.first, inner.completed) == (1, None, None)
        outer.offer(b"", name="w")
    assert inner.wait().version(member) == junctura.Version(pool.incarnation, 2)


def test_errors(pool: junctura.Pool) -> None:
    bundle = pool.bundle("b", members=1)
    with pytest.raises(junctura.Conflict, match="1 members, not 2"):
        pool.bundle("b", members=2)
    with pytest.raises(junctura.Conflict, match="0 of 1"):
        bundle.seal()
    with pytest.raises(junctura.Timeout):
        bundle.wait(0)
    bundle.offer(b"", name="a")
    with pytest.raises(junctura.BundleClosed):
        bundle.offer(b"", name="b")
    with pytest.raises(junctura.BundleClosed):
        pool.bundle("b")
    full = pool.bundle("full", members=2)
    full.offer(b"", name="b")
    inner = pool.bundle("full/inner")
    with pytest.raises(junctura.BundleFull):
        full.offer(b"", name="c")
    assert inner.abort() == 0 and full.abort() == 1
    with pytest.raises(junctura.Closed):
        full.wait()
    with pytest.raises(junctura.InvalidArgument):
        pool.bundle("a b")
    with pytest.raises(junctura.InvalidArgument, match="without a path"):
        pool.bundle(members=3)
    with pytest.raises(junctura.NotFound, match="mars"):
        pool.bundle("x", schema="mars", step=6)
    with pytest.raises(junctura.TypeMismatch):
        pool.bundle("x", space=3)


def test_bundles_are_found(pool: junctura.Pool) -> None:
    with pool.bundle("run/6", {"space": "demo"}, orphan_timeout=30) as bundle:
        bundle.offer(b"12", name="t")
        (entry,) = pool.bundles("space=demo")
        assert (entry.path, entry.state, entry.members, entry.staged_bytes) == ("run/6", "open", 1, 2)
        assert (entry.attributes, entry.openers, entry.orphaned_for) == ({"space": "demo"}, 1, None)
        (staged,) = pool.list(incomplete=True)
        assert staged.staged_in == entry.number
        with pool.demand(name="t", incomplete=True) as obj:
            assert obj.staged and bytes(obj) == b"12"
    assert [entry.path for entry in pool.bundles(under="run")] == ["run/6"]
    assert pool.bundles("space=other") == []
    pool.offer(b"", name="plain")
    assert names(pool, bundle="run/6") == ["t"]
    with pytest.raises(junctura.NotFound):
        pool.list(bundle="nothing")


def test_an_orphan_is_aborted_and_says_what_was_missing() -> None:
    with junctura.Pool(schema="free", orphan_timeout=0.001) as pool, pool.subscribe(kinds=["aborted"]) as events:
        bundle = pool.bundle("b", members=7)
        bundle.offer(b"", name="a")
        bundle.leave()
        event = next(events)
        assert event.bundle == ("b", 1, 7)
        assert event.reason == "all its producers have disconnected"


PRODUCERS, EACH = 16, 625
MEMBERS = PRODUCERS * EACH


def produce(pool: junctura.Pool, producer: int, count: int, pipe: Connection) -> None:
    """Offers its share of one bundle; the second half once it is told to."""
    bundle = pool.bundle("b", members=MEMBERS)
    share = [(b"%d" % number, {"name": f"{number:03}/{producer:02}"}) for number in range(count)]
    bundle.offer_many(share[: count // 2])
    pipe.send("half")
    pipe.recv()
    bundle.offer_many(share[count // 2 :])
    pipe.send(bundle.wait().objects)


def start(pool: junctura.Pool, producer: int) -> tuple[Any, Connection]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=produce, args=(pool, producer, EACH, theirs))
    process.start()
    theirs.close()
    return process, ours


def test_killed_producers_are_replaced_and_readers_see_all_or_nothing(pool: junctura.Pool) -> None:
    seen: list[str] = []
    first: list[int] = []

    def read() -> None:
        with pool.follow(window=64) as follow:
            for _ in range(MEMBERS):
                with next(follow) as obj:
                    seen.append(obj.attributes["name"])
                    first.append(obj.version.sequence)

    reader = threading.Thread(target=read)
    reader.start()
    children = [start(pool, producer) for producer in range(PRODUCERS)]
    for _, pipe in children:
        assert pipe.recv() == "half"
        assert pool.list() == []
    for producer in range(0, PRODUCERS, 3):
        process, pipe = children[producer]
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        pipe.close()
        children[producer] = start(pool, producer)
        assert children[producer][1].recv() == "half"
    assert not seen and pool.list() == []
    for _, pipe in children:
        pipe.send("go on")
    for process, pipe in children:
        assert pipe.recv() == MEMBERS
        process.join()
        assert process.exitcode == 0
    reader.join()
    assert seen == sorted(seen) and len(set(seen)) == MEMBERS
    assert first == list(range(1, MEMBERS + 1))
    assert len(pool.list()) == MEMBERS


def test_when_all_producers_are_killed_nothing_is_left() -> None:
    with (
        junctura.Pool(schema="free", orphan_timeout=0.001) as pool,
        pool.subscribe(kinds=["aborted", "offered"]) as events,
    ):
        children = [start(pool, producer) for producer in range(4)]
        for _, pipe in children:
            assert pipe.recv() == "half"
        for process, _ in children:
            os.kill(process.pid, signal.SIGKILL)
        for process, pipe in children:
            process.join()
            pipe.close()
        event = next(events)
        assert (event.kind, event.bundle) == ("aborted", ("b", 4 * (EACH // 2), MEMBERS))
        assert pool.list() == [] and pool.bundles() == []
        # The memory of very many members is freed in turns, of which each request is one.
        while pool.stat()["memory"]["used_bytes"]:
            pass
