"""An archiver as a part of a program: it keeps what passes, beside the program's own thread."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import junctura


@pytest.fixture
def store(tmp_path: Path) -> junctura.Store:
    return junctura.Store.create(tmp_path / "store", schema="free")


def names(store: junctura.Store) -> set[str]:
    return {obj["name"] for obj in store.list()}


def offer(pool: junctura.Pool, count: int, first: int = 0, **attributes: str) -> None:
    for at in range(first, first + count):
        pool.offer(b"%d" % at, {"name": f"{at}", **attributes})


def test_the_end_of_the_block_has_archived_what_was_offered(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool:
        pool.offer(b"before", name="before")
        with junctura.Archiver(pool, store, "") as archiver:
            offer(pool, 50)
        assert archiver.is_over
        assert archiver.counts == archiver.stop() == archiver.wait()
        assert (archiver.counts.archived, archiver.counts.failed) == (51, 0)
        assert archiver.counts.nbytes == 6 + 10 + 80
        assert names(store) == {"before", *map(str, range(50))}
        # It stands, and keeps what comes for the next one.
        pool.offer(b"", name="later")
        with junctura.Archiver(pool, store, "") as archiver:
            pass
        assert archiver.counts.archived == 1
        assert "later" in names(store)
        assert "archived=1" in repr(archiver)


def test_each_nth_of_each_collocation(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool:
        with junctura.Archiver(pool, store, ["space=a/b", "name!=6"], every=3, requirement="few") as archiver:
            for space in "abc":
                offer(pool, 8, space=space)
        assert (archiver.counts.archived, archiver.counts.left_out) == (6, 8)
        assert {(obj["space"], obj["name"]) for obj in store.list()} == {(s, n) for s in "ab" for n in "037"}
        assert pool.stat()["interests"]["named"] == 1
        pool.retract("few")


def test_durable_offers_are_answered(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool, junctura.Archiver(pool, store, "", every=2):
        pool.offer(b"kept", name="a", durability="durable")
        assert names(store) == {"a"}
        with pytest.raises(junctura.Io, match="left out"):
            pool.offer(b"", name="b", durability="durable")


def test_what_is_held_goes_with_one_commit(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool:
        with junctura.Archiver(pool, store, "", flush_interval="1h") as archiver:
            offer(pool, 30)
        assert {obj.commit for obj in store.list()} == {1}
        with junctura.Archiver(pool, store, "", flush_interval=3600, flush_every=10) as archiver:
            offer(pool, 25, first=30)
        assert archiver.counts.archived == 25
        assert {obj.commit for obj in store.list(after=1)} == {2, 3, 4}
        # Whatever is said of flushes, the window is not waited for.
        with junctura.Archiver(pool, store, "", flush_interval=3600, window=4) as archiver:
            offer(pool, 9, first=60)
        assert archiver.counts.archived == 9


def test_until_live(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool:
        offer(pool, 3)
        archiver = junctura.Archiver(pool, store, "", until_live=True)
        assert archiver.wait().archived == 3
        assert pool.stat()["interests"]["named"] == 0
        offer(pool, 1, first=3)
        assert archiver.stop().archived == 3


def test_it_is_beside_the_threads_of_the_program(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool, pool.subscribe(kinds=["archived"]) as events:
        archiver = junctura.Archiver(pool, store, "*")
        with pytest.raises(junctura.Timeout):
            archiver.wait(0)
        threads = [threading.Thread(target=offer, args=(pool, 100, first)) for first in range(0, 400, 100)]
        for thread in threads:
            thread.start()
        told = [next(events).object for _ in range(400)]
        assert {obj["name"] for obj in told if obj is not None} == set(map(str, range(400)))
        for thread in threads:
            thread.join()
        assert not archiver.is_over
        assert archiver.stop(timeout=60).archived == 400


def test_what_goes_wrong_is_raised_at_the_end(store: junctura.Store, tmp_path: Path) -> None:
    other = junctura.Schema.builtin("free").to_yaml().replace("name: free", "name: other")
    with junctura.Pool(schema=["free", other]) as pool:
        with (
            pytest.raises(junctura.NotFound, match="the store has no such schema"),
            junctura.Archiver(pool, store, "") as archiver,
        ):
            pool.offer(b"stays", name="a", schema="other", retention=junctura.Released(1))
        assert (archiver.counts.archived, archiver.counts.failed) == (0, 1)
        with pytest.raises(junctura.NotFound):
            archiver.stop()
        # What ends the block goes before it.
        with pytest.raises(ZeroDivisionError), junctura.Archiver(pool, store, ""):
            1 / 0  # noqa: B018
        # Who can take it finds it there.
        both = junctura.Store.create(tmp_path / "both", schema=["free", other])
        with junctura.Archiver(pool, both, ""):
            pass
        assert names(both) == {"a"}
        assert pool.list() == []


def test_what_went_by_force_is_missed(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool:
        pool.require("", name="archive")
        pool.offer(b"", name="a")
        pool.withdraw(name="a", force=True)
        with pytest.raises(junctura.Gone, match="1 objects that matched"):
            junctura.Archiver(pool, store, "").stop()


def test_the_end_of_the_pool_is_told(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool:
        archiver = junctura.Archiver(pool, store, "")
        pool.offer(b"owed", name="a")
        pool.stop()
        with pytest.raises((junctura.Closed, junctura.Disconnected)):
            archiver.wait()
        assert names(store) == {"a"}


def test_arguments_that_are_wrong_are_named(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool:
        wrongs: list[tuple[dict[str, Any], str]] = [
            ({"every": 0}, "every"),
            ({"window": 0}, "window"),
            ({"flush_every": 5, "window": 4}, "flush_every"),
            ({"flush_interval": -1}, "flush_interval"),
            ({"requirement": ""}, "name"),
        ]
        for wrong, subject in wrongs:
            with pytest.raises(junctura.InvalidArgument, match=subject):
                junctura.Archiver(pool, store, "", **wrong)
        with pytest.raises(junctura.InvalidArgument, match="selector"):
            junctura.Archiver(pool, store, 7)  # type: ignore[arg-type]
        with pytest.raises(junctura.InvalidSelector):
            junctura.Archiver(pool, store, "name=")
        pool.require("space=a", name="archive")
        with pytest.raises(junctura.Conflict):
            junctura.Archiver(pool, store, "space=b")
        with junctura.Archiver(pool, store, "space=a"), pytest.raises(junctura.Conflict):
            junctura.Archiver(pool, store, "space=a").wait()


def test_one_that_is_forgotten_ends_by_itself_and_says_so(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool:
        offer(pool, 5)
        with pytest.warns(ResourceWarning, match="forgotten"):
            junctura.Archiver(pool, store, "")
        with junctura.Archiver(pool, store, "", requirement="next"):
            pass
        assert len(store.list()) == 5


def test_a_forked_child_leaves_it_to_its_parent(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool, junctura.Archiver(pool, store, "") as archiver:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                archiver.stop()
            except junctura.Closed:
                status = 0
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        pool.offer(b"", name="a", durability="durable")
    assert archiver.counts.archived == 1
