"""Waiting on several things at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

import junctura


def test_whoever_has_something_is_named(pool: junctura.Pool) -> None:
    with (
        pool.follow("name=u/v", only_new=True, live="yield") as winds,
        pool.begin_demand("name=orography") as orography,
        pool.subscribe("name=t", kinds=["offered"]) as events,
    ):
        assert isinstance(winds.next(), junctura.Live)
        with pytest.raises(junctura.Timeout):
            pool.wait(winds, orography, events, timeout=0)
        pool.offer(b"heights", name="orography")
        assert pool.wait(winds, orography, events) == [orography]
        obj = orography.try_get()
        assert obj is not None and bytes(obj) == b"heights"
        assert orography.try_get() is None
        with pytest.raises(junctura.NotFound):
            orography.get()
        pool.offer(b"", name="t")
        pool.offer(b"", name="u")
        assert pool.wait(winds, events) == [winds, events]


def test_a_bundle_is_ready_when_it_is_complete_aborted_or_left(pool: junctura.Pool) -> None:
    whole, given_up, left = pool.bundle("whole", members=2), pool.bundle("given-up"), pool.bundle("left")
    whole.offer(b"", name="a")
    with junctura.Pool(pool.url) as other:
        with pytest.raises(junctura.Timeout):
            pool.wait(whole, given_up, left, timeout=0)
        other.bundle("whole", members=2).offer(b"", name="b")
        assert pool.wait(whole, given_up, left) == [whole]
        assert whole.wait().objects == 2
        assert pool.wait(whole, given_up, left) == [whole]
        other.bundle("given-up").abort()
        assert pool.wait(given_up, left) == [given_up]
        with pytest.raises(junctura.Closed):
            given_up.wait()
        left.leave()
        assert pool.wait(left) == [left]
        with pytest.raises(junctura.InvalidArgument):
            other.wait(pool.bundle("elsewhere"))


def test_timers_go_off(pool: junctura.Pool) -> None:
    once, often = junctura.Timer(after=0.001), junctura.Timer(every=0.001)
    assert not junctura.Timer(after=1000).ring()
    rung: list[junctura.Timer] = []
    while len(rung) < 4:
        rung += [timer for timer in pool.wait(once, often) if timer.ring()]
    assert rung.count(once) == 1
    for wrong in ({}, {"after": 1.0, "every": 1.0}, {"every": 0.0}, {"after": -1.0}):
        with pytest.raises(junctura.InvalidArgument):
            junctura.Timer(**wrong)


def test_other_threads_run_meanwhile(pool: junctura.Pool) -> None:
    demand = pool.begin_demand("name=late")
    thread = threading.Thread(target=lambda: pool.offer(b"late", name="late"))
    thread.start()
    assert pool.wait(demand, timeout=60) == [demand]
    assert bytes(demand.get()) == b"late"
    thread.join()


def test_an_event_loop_is_told(pool: junctura.Pool) -> None:
    async def take(count: int) -> list[str]:
        loop = asyncio.get_running_loop()
        names: list[str] = []
        done = loop.create_future()
        with pool.follow() as follow:

            def look() -> None:
                while True:
                    try:
                        obj = follow.next(timeout=0)
                    except junctura.Timeout:
                        break
                    assert isinstance(obj, junctura.Object)
                    names.append(obj["name"])
                if len(names) == count and not done.done():
                    done.set_result(None)

            loop.add_reader(pool, look)
            offers = loop.run_in_executor(None, lambda: [pool.offer(b"", name=f"{n:03}") for n in range(count)])
            await asyncio.wait_for(done, 60)
            await offers
            loop.remove_reader(pool)
        return names

    assert asyncio.run(take(100)) == [f"{n:03}" for n in range(100)]


def test_what_cannot_be_waited_for(pool: junctura.Pool) -> None:
    with pytest.raises(junctura.InvalidArgument, match="nothing to wait for"):
        pool.wait()
    with pytest.raises(junctura.InvalidArgument, match="not a str"):
        pool.wait("name=t")  # type: ignore[type-var]
    with junctura.Pool(schema="free") as other, pytest.raises(junctura.InvalidArgument, match="another pool"):
        pool.wait(other.follow())
    follow = pool.follow()
    follow.close()
    assert pool.wait(follow) == [follow]
