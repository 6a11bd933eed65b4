"""A reader that has stopped stops nobody; a slow one slows, and loses nothing (lessons 9 and 26)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import junctura

FIELD = np.arange(100_000, dtype="f4")
BUDGET = 32 << 20


@pytest.fixture
def small() -> Iterator[junctura.Pool]:
    """A pool with room for some eighty fields."""
    with junctura.Pool(schema="free", budget=BUDGET) as pool:
        yield pool


def produce(pool: junctura.Pool, count: int) -> None:
    for step in range(count):
        pool.offer(FIELD, name=str(step), retention=junctura.Released(1))


def stat(pool: junctura.Pool) -> dict[str, Any]:
    return pool.stat()


def test_a_stuck_reader_is_broken_and_named_and_a_healthy_one_gets_everything(small: junctura.Pool) -> None:
    with (
        small.subscribe(kinds=["broken"]) as events,
        small.require("", stuck_after=0.2) as stuck,
        small.require("") as healthy,
        stuck.follow(window=1, gaps="yield") as held,
        healthy.follow() as read,
    ):
        producer = threading.Thread(target=produce, args=(small, 500))
        producer.start()
        obj = next(held)
        assert [next(read)["name"] for _ in range(500)] == [str(step) for step in range(500)]
        producer.join()
        event = next(events)
        assert (event.kind, event.requirement) == ("broken", ("", ""))
        assert event.client is not None
        assert "released nothing for 0.2 s" in event.reason
        [broken] = stat(small)["broken_requirements"]
        assert broken["why"] == event.reason
        # What it holds is still there, and with its release it hears of what it missed and goes on.
        assert np.array_equal(obj.array(), FIELD)
        obj.release()
        missed = 0
        while missed < 499:
            gap = next(held)
            assert isinstance(gap, junctura.Gap)
            assert gap.reason == "broken"
            missed += len(gap)
        assert missed == 499
        assert stat(small)["broken_requirements"] == []
        small.offer(FIELD, name="next")
        assert next(held)["name"] == "next"


def test_two_that_are_stuck_on_the_same_objects_are_both_broken(small: junctura.Pool) -> None:
    for name in ("one", "two"):
        small.require("", name=name, stuck_after=0.1)
    with small.require("") as healthy, healthy.follow() as read:
        producer = threading.Thread(target=produce, args=(small, 300))
        producer.start()
        assert sum(1 for _ in zip(range(300), read, strict=False)) == 300
        producer.join()
    assert sorted(one["name"] for one in stat(small)["broken_requirements"]) == ["one", "two"]


def test_a_viewer_drops_what_is_over_its_quota_and_slows_nobody(small: junctura.Pool) -> None:
    quota = 10 * FIELD.nbytes
    with (
        small.require("", on_full="break", quota=quota) as viewer,
        viewer.follow(window=2, gaps="yield") as shown,
    ):
        producer = threading.Thread(target=produce, args=(small, 400))
        with small.require("") as model, model.follow() as read:
            producer.start()
            for _ in range(400):
                next(read)
            producer.join()
        assert stat(small)["totals"]["leases_waited"] == 0
        seen, missed = 0, 0
        while seen + missed < 400:
            item = next(shown)
            if isinstance(item, junctura.Gap):
                missed += len(item)
            else:
                seen += 1
        assert seen > 0
        assert missed > 0


def test_a_slow_reader_loses_nothing_and_slows_the_producer(small: junctura.Pool) -> None:
    with small.require("", stuck_after=60.0) as slow, slow.follow(window=4) as read:
        producer = threading.Thread(target=produce, args=(small, 400))
        producer.start()
        # It takes one only when the producer has got as far as memory allows, or has ended.
        for step in range(400):
            assert next(read)["name"] == str(step)
            assert stat(small)["memory"]["used_bytes"] <= BUDGET
        producer.join()
    assert stat(small)["totals"]["broken"] == 0


def test_terms_that_make_no_sense_are_refused(small: junctura.Pool) -> None:
    with pytest.raises(junctura.InvalidArgument, match="quota"):
        small.require("", quota=5)
    with pytest.raises(junctura.InvalidArgument, match="on_full"):
        small.require("", on_full="explode")  # type: ignore[arg-type]
    with pytest.raises(junctura.InvalidArgument, match="stuck after"):
        small.require("", stuck_after=0.0)
    with pytest.raises(junctura.InvalidArgument, match="size"):
        small.require("", on_full="break", quota="3 apples")
    small.require("", on_full="break", quota="2MiB").retract()
    small.require("", name="n", on_full="break")
    with pytest.raises(junctura.Conflict, match="breaks when memory is full"):
        small.require("", name="n")
