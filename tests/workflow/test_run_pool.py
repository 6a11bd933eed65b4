"""The pool of a run: what is told of it, and in which order."""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Iterator
from pathlib import Path

import pytest

import junctura
from junctura.workflow._engine import events as ev
from junctura.workflow._engine.pool import Server, Watch
from junctura.workflow._executors.local import Local
from junctura.workflow._spec.tasks import PoolWanted


class Told(queue.SimpleQueue[ev.Event]):
    def until(self, kind: type[ev.Event]) -> list[ev.Event]:
        """All up to the first of a kind."""
        found = [self.get(timeout=60)]
        while not isinstance(found[-1], kind):
            found.append(self.get(timeout=60))
        return found

    def there(self) -> list[ev.Event]:
        found: list[ev.Event] = []
        while not self.empty():
            found.append(self.get())
        return found


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    with junctura.Pool(schema=["free"], name="producer") as one:
        yield one


def test_what_is_there_is_told_at_once_and_what_comes_later(pool: junctura.Pool) -> None:
    pool.offer(b"12", name="early", kind="a")
    pool.offer(b"", name="other", kind="b")
    with pool.bundle("step/0") as bundle:
        bundle.seal()
    told = Told()
    watch = Watch(pool.url, ["kind=a"], told.put)
    first = told.there()
    assert ev.Completed("step/0") in first
    assert [event.name for event in first if isinstance(event, ev.Joined)] == ["producer"]
    seen = [event for event in first if isinstance(event, ev.Offered)]
    assert [(one.attributes["name"], one.nbytes, one.selector) for one in seen] == [("early", 2, "kind=a")]
    with junctura.Pool(pool.url, name="guest"):
        pool.offer(b"", name="late", kind="a")
        with pool.bundle("step/6") as bundle:
            bundle.offer(b"", name="inside", kind="a")
            bundle.seal()
    watch.fence(7)
    came = told.until(ev.Fenced)
    assert came[-1] == ev.Fenced(7)
    assert ev.Completed("step/6") in came
    assert [event.attributes["name"] for event in came if isinstance(event, ev.Offered)] == ["late", "inside"]
    (joined,) = [event for event in came if isinstance(event, ev.Joined)]
    assert joined.name == "guest"
    assert [event.client for event in came if isinstance(event, ev.Left)] == [joined.client]
    watch.close()
    watch.close()


def test_a_bundle_within_another_is_complete_when_that_is(pool: junctura.Pool) -> None:
    with pool.bundle("step") as outer:
        inner = pool.bundle("step/0")
        inner.offer(b"", name="inside")
        inner.seal()
        told = Told()
        watch = Watch(pool.url, [], told.put)
        assert not [event for event in told.there() if isinstance(event, ev.Completed)]
        outer.seal()
        watch.fence(1)
        assert {event.bundle for event in told.until(ev.Fenced) if isinstance(event, ev.Completed)} == {
            "step",
            "step/0",
        }
        watch.close()


def test_who_comes_and_goes_is_told_with_its_host_and_process(pool: junctura.Pool) -> None:
    told = Told()
    watch = Watch(pool.url, [], told.put)
    with junctura.Pool(pool.url, name="guest"):
        pass
    watch.fence(1)
    came = told.until(ev.Fenced)
    (guest,) = [event for event in came if isinstance(event, ev.Joined) and event.name == "guest"]
    (producer,) = [event for event in came if isinstance(event, ev.Joined) and event.name == "producer"]
    assert guest.pid == producer.pid == os.getpid()
    assert guest.host == producer.host != ""
    (left,) = [event for event in came if isinstance(event, ev.Left)]
    assert left.client == guest.client and left.reason != ""
    watch.close()


def test_a_fence_comes_behind_all_that_was_offered_before(pool: junctura.Pool) -> None:
    told = Told()
    watch = Watch(pool.url, ["kind=a", "part=7"], told.put)
    for number in range(20):
        pool.offer_many([(b"", {"name": f"{number}-{part}", "kind": "a", "part": str(part)}) for part in range(100)])
        watch.fence(number)
        came = told.until(ev.Fenced)
        selectors = [event.selector for event in came if isinstance(event, ev.Offered)]
        assert (selectors.count("kind=a"), selectors.count("part=7")) == (100, 1)
    watch.close()


def test_selectors_for_different_schemas_do_not_hide_each_others_objects() -> None:
    field = {"class": "od", "stream": "oper", "type": "fc", "expver": "0001", "levtype": "sfc", "param": "t"}
    with junctura.Pool(schema=["mars", "free"]) as pool:
        told = Told()
        watch = Watch(pool.url, ["param=t", "kind=a"], told.put)
        pool.offer(b"", {**field, "date": "20260101", "time": "0000", "step": 0}, schema="mars")
        pool.offer(b"", name="one", kind="a", schema="free")
        watch.fence(1)
        came = told.until(ev.Fenced)
        assert {event.selector for event in came if isinstance(event, ev.Offered)} == {"param=t", "kind=a"}
        watch.close()


def test_the_end_of_a_pool_is_told_and_fences_are_answered_still(pool: junctura.Pool) -> None:
    told = Told()
    watch = Watch(pool.url, ["kind=a"], told.put)
    pool.stop()
    told.until(ev.PoolEnded)
    watch.fence(3)
    assert told.until(ev.Fenced) == [ev.Fenced(3)]
    watch.close()


def test_a_selector_that_no_schema_can_read_is_an_error(pool: junctura.Pool) -> None:
    with pytest.raises(junctura.InvalidSelector):
        Watch(pool.url, ["kind=("], print)


def test_a_pool_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(junctura.Unavailable):
        Watch(f"unix:{tmp_path}/no.sock", [], print)


def test_a_pool_of_the_run_is_served_by_a_process_and_leaves_nothing(tmp_path: Path) -> None:
    with contextlib.closing(Local()) as executor:
        server = Server(PoolWanted(schema="free", memory_bytes=1 << 20), executor, tmp_path, tmp_path / "pool.log")
        with junctura.Pool(server.url) as pool:
            pool.offer(b"", name="one")
        server.end()
        server.end()
    with pytest.raises(junctura.Unavailable):
        junctura.Pool(server.url)


def test_a_pool_that_cannot_be_served_says_why(tmp_path: Path) -> None:
    schema = tmp_path / "wrong.yaml"
    schema.write_text("no: schema\n")
    with contextlib.closing(Local()) as executor, pytest.raises(junctura.Unavailable) as raised:
        Server(PoolWanted(schema=str(schema)), executor, tmp_path, tmp_path / "pool.log")
    assert "wrong.yaml" in str(raised.value)
