"""Following, requiring, withdrawing and hearing of it."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import junctura


def names(follow: junctura.Follow, count: int) -> list[str]:
    return [next(follow)["name"] for _ in range(count)]


def offer(pool: junctura.Pool, *given: str) -> None:
    for name in given:
        pool.offer(name.encode(), name=name)


def test_what_is_there_then_what_comes(pool: junctura.Pool) -> None:
    offer(pool, "b", "a")
    with pool.follow() as follow:
        assert follow.snapshot_sequence == 2
        offer(pool, "d", "c")
        assert names(follow, 2) == ["a", "b"]
        assert names(follow, 2) == ["d", "c"]
        assert follow.is_live
        with pytest.raises(junctura.Timeout):
            follow.next(timeout=0)
        with pytest.raises(junctura.Timeout):
            follow.next(timeout=0.001)
    assert list(follow) == []
    assert follow.next() is None


def test_until_live(pool: junctura.Pool) -> None:
    offer(pool, *"abc")
    assert [bytes(obj) for obj in pool.follow("name=a/c", until_live=True)] == [b"a", b"c"]
    assert list(pool.follow("name=x", until_live=True)) == []
    follow = pool.follow(until_live=True, order_by="name")
    assert [obj.in_snapshot for obj in follow] == [True] * 3


def test_until_live_from_a_cursor(pool: junctura.Pool) -> None:
    offer(pool, *"ab")
    with pool.follow() as follow:
        cursor = [follow.next(timeout=60) for _ in range(2)][-1].cursor
    offer(pool, *"dc")
    with pool.follow(cursor=cursor, until_live=True, live="yield") as follow:
        offer(pool, "e")
        found = list(follow)
    assert isinstance(found[0], junctura.Live)
    assert [obj["name"] for obj in found[1:]] == ["d", "c"]


def test_only_new(pool: junctura.Pool) -> None:
    offer(pool, "a")
    with pool.follow(only_new=True, live="yield") as follow:
        offer(pool, "b")
        items: list[object] = []
        while not items or not isinstance(items[-1], junctura.Object):
            items.append(follow.next(timeout=60))
        assert items[-1]["name"] == "b"
        assert all(isinstance(item, junctura.Live) for item in items[:-1])


def test_live_is_told_where_it_is_asked_for(pool: junctura.Pool) -> None:
    offer(pool, "a")
    with pool.follow(live="yield") as follow:
        assert next(follow)["name"] == "a"
        assert isinstance(follow.next(), junctura.Live)


def test_cursors(pool: junctura.Pool) -> None:
    offer(pool, *"abcd")
    with pool.follow() as follow:
        assert follow.cursor is None
        assert names(follow, 2) == ["a", "b"]
        cursor = follow.cursor
    offer(pool, "e")
    with pool.follow(cursor=cursor) as follow:
        assert names(follow, 2) == ["c", "d"]
        obj = next(follow)
        assert (obj["name"], obj.cursor) == ("e", follow.cursor)
        cursor = obj.cursor
    offer(pool, "f")
    with pool.follow(cursor=cursor) as follow:
        assert names(follow, 1) == ["f"]
    with pytest.raises(junctura.InvalidArgument):
        pool.follow(cursor="c1nonsense")
    with junctura.Pool(schema="free") as other, pytest.raises(junctura.Expired):
        other.follow(cursor=cursor)


def test_gaps(pool: junctura.Pool) -> None:
    def miss(gaps: str) -> junctura.Follow:
        """A follow whose second object goes before it is given: its window is full."""
        offer(pool, *"abc")
        follow = pool.follow(window=1, gaps=gaps)  # type: ignore[arg-type]
        with next(follow) as first:
            assert first["name"] == "a"
            pool.withdraw_all("name=b", force=True)
        return follow

    follow = miss("raise")
    with pytest.raises(junctura.Gone) as raised:
        next(follow)
    gap = raised.value.gap
    assert gap is not None
    assert [item["name"] for item in gap.items] == ["b"]
    assert gap.reason == "withdrawn"
    assert "name=b" in raised.value.subject
    assert next(follow)["name"] == "c"
    follow.close()

    with junctura.Pool(schema="free") as pool, miss("yield") as follow:
        gap = follow.next()
        assert isinstance(gap, junctura.Gap)
        assert len(gap) == 1
        assert gap.items[0].key == "{space=default}{}{name=b}"
        assert gap.items[0].version.sequence == 2
        assert next(follow)["name"] == "c"
    with junctura.Pool(schema="free") as pool, miss("ignore") as follow:
        assert next(follow)["name"] == "c"


def test_wrong_arguments(pool: junctura.Pool) -> None:
    with pytest.raises(junctura.InvalidSelector):
        pool.follow("name=")
    for wrong in ({"gaps": "swallow"}, {"live": "maybe"}):
        with pytest.raises(junctura.InvalidArgument):
            pool.follow(**wrong)  # type: ignore[arg-type]


def test_the_window_bounds_what_is_held(pool: junctura.Pool) -> None:
    offer(pool, *(f"{at:03}" for at in range(20)))
    with pool.follow(window=4) as follow:
        held = [next(follow) for _ in range(4)]
        assert follow.held == 4
        with pytest.raises(junctura.Timeout):
            follow.next(timeout=0.001)
        del held[0]
        held.append(next(follow))
        assert [obj["name"] for obj in held] == ["001", "002", "003", "004"]


@pytest.mark.parametrize("is_viewed", [False, True])
def test_what_an_ended_follow_has_delivered_is_released_at_once(pool: junctura.Pool, is_viewed: bool) -> None:
    for name in "abcdef":
        pool.offer(name.encode(), name=name, retention=junctura.Released(1))
    views = []
    with junctura.Pool(pool.url) as other, other.subscribe(kinds=["expired"]) as events:
        follow = pool.follow(window=6)
        held = [next(follow) for _ in range(3)]
        # Those that have arrived and were not received are given back.
        follow.close()
        for obj in held:
            with obj:
                views += [memoryview(obj)] if is_viewed else []
        expired = [next(events).object for _ in range(3)]
        assert [obj and obj["name"] for obj in expired] == ["a", "b", "c"]
    assert [view.tobytes() for view in views] == ([b"a", b"b", b"c"] if is_viewed else [])


@pytest.mark.parametrize("is_viewed", [False, True])
def test_a_task_whose_window_is_full_releases_before_it_waits(pool: junctura.Pool, is_viewed: bool) -> None:
    def offer(name: str) -> None:
        with junctura.Pool(pool.url) as other:
            other.offer(name.encode(), name=name)

    async def main() -> list[str]:
        received, views = [], []
        async with junctura.aio.Pool(pool) as ours, ours.follow(window=1) as follow:
            async for obj in follow:
                with obj:
                    views += [memoryview(obj)] if is_viewed else []
                    received.append(obj["name"])
                if len(received) == 5:
                    return received
                await asyncio.to_thread(offer, "abcde"[len(received)])
        return received

    offer("a")
    assert asyncio.run(main()) == list("abcde")


def test_a_full_window_warns_before_it_waits(pool: junctura.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(pool, *"abc")
    messages: list[str] = []
    with pool.follow(window=2) as follow:
        held = [next(follow), next(follow)]

        def show(message: Warning | str, *_: object, **__: object) -> None:
            messages.append(str(message))
            held.clear()

        monkeypatch.setattr(warnings, "showwarning", show)
        warnings.simplefilter("always")
        assert next(follow)["name"] == "c"
    assert len(messages) == 1
    assert "all 2 of its window" in messages[0]


def test_a_requirement_keeps_what_it_is_owed(pool: junctura.Pool) -> None:
    with pool.require("name=a/b") as requirement:
        assert requirement.selector == "name=a/b"
        offer(pool, *"abc")
        assert pool.withdraw(name="c") == 1
        with pytest.raises(junctura.Timeout):
            pool.withdraw(name="a", timeout=0.0)
        with requirement.follow(until_live=True) as follow:
            assert [bytes(obj) for obj in follow] == [b"a", b"b"]
        assert pool.withdraw(name="a", timeout=60.0) == 1
        with requirement.demand(name="b", timeout=60.0) as obj:
            assert bytes(obj) == b"b"
    with pytest.raises(junctura.Closed):
        requirement.follow()
    requirement.retract()
    with pytest.raises(junctura.InvalidSelector):
        pool.require("name=")


def test_a_retracted_requirement_keeps_nothing(pool: junctura.Pool) -> None:
    requirement = pool.require("name=a", versions="newest")
    offer(pool, "a")
    requirement.retract()
    assert pool.withdraw(name="a") == 1


def test_a_named_requirement_outlives_its_clients(pool: junctura.Pool) -> None:
    with (
        junctura.Pool(pool.url, name="maker") as maker,
        maker.require("name=a/b", name="archive", time_to_live=3600.0) as requirement,
    ):
        assert (requirement.name, requirement.selector) == ("archive", "name=a/b")
    offer(pool, *"abc")
    with pytest.raises(junctura.Timeout, match=r"requirement archive .*nobody reads"):
        pool.withdraw(name="a", timeout=0.0)
    with pytest.raises(junctura.Conflict, match="it stands for"):
        pool.require("name=a", name="archive", time_to_live=3600.0)
    with junctura.Pool(pool.url, name="a reader") as reader, reader.follow(requirement="archive") as follow:
        first, second = next(follow), next(follow)
        with pytest.raises(junctura.Conflict, match="a reader"):
            pool.follow(requirement="archive")
        assert [bytes(first), bytes(second)] == [b"a", b"b"]
        first.release()
        assert reader.stat()["named_requirements"][0]["in_flight"] == 1
        second.release()
    assert pool.retract("archive") == 0
    with pytest.raises(junctura.NotFound):
        pool.demand(name="a", requirement="archive", timeout=0.0)


def test_a_named_requirement_ends_for_all(pool: junctura.Pool) -> None:
    pool.require("", name="all").retract()
    with pytest.raises(junctura.NotFound):
        pool.retract("all")
    standing = pool.require("", name="all", versions="newest")
    offer(pool, "a", "b")
    with pool.demand(name="a", requirement="all") as obj:
        assert bytes(obj) == b"a"
    assert pool.retract("all") == 1
    standing.retract()
    with pytest.raises(junctura.InvalidArgument):
        pool.require("", time_to_live=1.0)
    with pytest.raises(junctura.InvalidArgument, match="versions"):
        pool.require("", versions="last")  # type: ignore[arg-type]


def test_gaps_of_a_named_requirement_wait_for_its_reader(pool: junctura.Pool) -> None:
    with pool.subscribe(kinds=["required", "retracted"]) as events, pool.require("", name="all"):
        offer(pool, "a")
        pool.withdraw(name="a", force=True)
        with pool.follow(requirement="all", gaps="yield", until_live=True) as follow:
            (gap,) = iter(follow.next, None)
        assert (len(gap), gap.unnamed, gap.reason) == (1, 0, "withdrawn")
        pool.retract("all")
        made, retracted = next(events), next(events)
        assert (made.kind, made.requirement) == ("required", ("all", ""))
        assert (retracted.kind, retracted.requirement) == ("retracted", ("all", ""))


def test_a_withdrawal_waits_for_the_release(pool: junctura.Pool) -> None:
    requirement = pool.require("name=a")
    offer(pool, "a")
    obj = requirement.demand(name="a")
    gone: list[int] = []
    withdrawal = threading.Thread(target=lambda: gone.append(pool.withdraw(name="a")))
    withdrawal.start()
    assert bytes(obj) == b"a"
    obj.release()
    withdrawal.join()
    assert gone == [1]


def test_withdrawing_by_force_leaves_a_gap(pool: junctura.Pool) -> None:
    with pool.require("name=a") as requirement:
        offer(pool, "a")
        assert pool.withdraw(name="a", force=True) == 1
        with requirement.follow(gaps="yield", until_live=True) as follow:
            gaps = [item for item in iter(follow.next, None) if isinstance(item, junctura.Gap)]
    assert [item["name"] for gap in gaps for item in gap.items] in (["a"], [])


def test_retiring(pool: junctura.Pool) -> None:
    offer(pool, *"abc")
    assert pool.withdraw_all("name=a/b") == 2
    assert pool.withdraw_all("name=a/b") == 0
    assert [entry["name"] for entry in pool.list()] == ["c"]
    with pytest.raises(junctura.InvalidSelector):
        pool.withdraw_all("name=")


REJECTING = """
name: rejecting
key: {dataset: [run], element: [step]}
attributes: {run: {type: string}, step: {type: integer}}
same_key: reject
"""


def test_a_model_runs_again_when_its_keys_are_free(tmp_path: Path) -> None:
    schema = tmp_path / "rejecting.yaml"
    schema.write_text(REJECTING)
    with junctura.Pool(schema=schema) as pool:

        def run() -> None:
            for step in range(3):
                pool.offer(b"a field", run="a", step=step)

        run()
        with pool.require("", name="archive") as archive:
            assert pool.withdraw_all("step>0", force=True) == 2
            with pytest.raises(junctura.AlreadyExists, match="--forget"):
                pool.offer(b"a field", run="a", step=1)
            # The call waits for owed objects, and forgets nothing before.
            with pytest.raises(junctura.Timeout):
                pool.withdraw_all("run=a", timeout=0.01, forget=True)
            with pytest.raises(junctura.AlreadyExists):
                pool.offer(b"a field", run="a", step=1)
            with archive.follow(gaps="yield", until_live=True) as follow:
                first, gap = sorted(follow, key=lambda item: isinstance(item, junctura.Gap))
                assert first["step"] == 0
                assert len(gap) == 2, "its gap is told"
                first.release()
            assert pool.withdraw_all("run=a", forget=True) == 3
            with pytest.raises(junctura.NotFound):
                pool.demand(run="a", step=1, timeout=0)
            run()
            with archive.follow(until_live=True) as follow:
                assert [obj["step"] for obj in follow] == [0, 1, 2]
        assert pool.withdraw(run="a", step=1) == 1
        assert pool.withdraw(run="a", step=1, forget=True) == 1
        assert pool.withdraw(run="a", step=2, forget=True) == 1
        for step in (1, 2):
            pool.offer(b"a field", run="a", step=step)


def test_events(pool: junctura.Pool) -> None:
    with pool.subscribe("name=a") as events:
        offer(pool, "a", "b")
        pool.withdraw(name="a")
        with junctura.Pool(pool.url, name="a visitor"):
            pass
        heard = [next(events) for _ in range(4)]
        with pytest.raises(junctura.Timeout):
            events.next(timeout=0.0)
    offered, withdrawn, joined, left = heard
    assert [event.kind for event in heard] == ["offered", "withdrawn", "joined", "left"]
    assert offered.object is not None
    assert (offered.object["name"], offered.nbytes) == ("a", 1)
    assert withdrawn.object is not None
    assert withdrawn.object.version == offered.object.version
    assert joined.client is not None
    assert joined.client.name == "a visitor"
    assert joined.client == left.client
    assert joined.object is None
    assert left.reason
    assert "a visitor" in repr(left)
    assert list(events) == []


def test_events_of_some_kinds(pool: junctura.Pool) -> None:
    with pool.subscribe(kinds=["withdrawn"]) as events:
        offer(pool, "a")
        pool.withdraw(name="a")
        assert next(events).kind == "withdrawn"
    with pytest.raises(junctura.InvalidArgument, match="none of offered"):
        pool.subscribe(kinds=["invented"])  # type: ignore[list-item]
    with pytest.raises(junctura.InvalidSelector):
        pool.subscribe("name=")


def begin_waiting(stream: Any, given: list[Any]) -> threading.Thread:
    """Starts a thread that waits for the next item; returns when the thread is about to wait."""
    is_begun = threading.Event()

    def wait() -> None:
        is_begun.set()
        given.append(stream.next())

    thread = threading.Thread(target=wait)
    thread.start()
    is_begun.wait()
    return thread


@pytest.mark.parametrize(
    "begin", [lambda pool: pool.follow(only_new=True), lambda pool: pool.subscribe(kinds=["offered"])]
)
def test_a_wait_behind_another_thread_ends_in_time(begin: Callable[[junctura.Pool], Any]) -> None:
    with junctura.Pool(schema="free") as pool:
        stream = begin(pool)
        given: list[Any] = []
        thread = begin_waiting(stream, given)
        # Whichever of the two has the turn.
        for timeout in (0, 0.15):
            with pytest.raises(junctura.Timeout, match="nothing arrived in time"):
                stream.next(timeout=timeout)
        offer(pool, "a")
        thread.join()
        # The turn is free again, and the object was given once.
        with pytest.raises(junctura.Timeout):
            stream.next(timeout=0)
        (item,) = given
        found = item.object if isinstance(item, junctura.Event) else item
        assert found is not None and found["name"] == "a"
        stream.close()


@pytest.mark.parametrize("begin", [lambda pool: pool.follow(only_new=True), lambda pool: pool.subscribe()])
def test_another_thread_may_close_what_one_waits_for(begin: Callable[[junctura.Pool], Any]) -> None:
    with junctura.Pool(schema="free") as pool:
        stream = begin(pool)
        given: list[Any] = []
        threads = [begin_waiting(stream, given) for _ in range(2)]
        stream.close()
        for thread in threads:
            thread.join()
        assert given == [None, None]


@pytest.mark.parametrize("begin", [lambda pool: pool.follow(), lambda pool: pool.subscribe()])
def test_an_iterator_ends_with_its_first_error(begin: Callable[[junctura.Pool], Any]) -> None:
    pool = junctura.Pool(schema="free")
    stream = begin(pool)
    pool.stop(timeout=0)
    try:
        last = list(stream)
    except junctura.Error as error:
        last = [error]
    assert len(last) <= 1
    assert list(stream) == []
    assert stream.next(timeout=0) is None
