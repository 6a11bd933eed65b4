"""the engine of a run: who begins when, who is skipped, who is ended, and how it all ends."""

from __future__ import annotations

import itertools

import pytest
from run_world import BAD, KILLED, World, task, workflow, world

from junctura._transitions import IllegalTransitionError
from junctura.workflow._engine import events as ev
from junctura.workflow._engine.engine import Engine
from junctura.workflow._engine.engine_state import MOVES, TaskPhase, TaskState
from junctura.workflow._spec.tasks import PoolWanted, Task

THEIRS = PoolWanted(url="unix:theirs")
SERVED = PoolWanted(service="server")


def test_without_conditions_all_begin_at_once() -> None:
    one = world(task("a"), task("b"))
    assert one.begun == ["a", "b"]
    one.end("a")
    assert one.over is None
    one.end("b")
    assert one.status() == ("done", 0)


def test_of_nothing_the_run_is_over_at_once() -> None:
    assert world().status() == ("done", 0)


def test_after_waits_for_all_of_a_name() -> None:
    one = world(task("m-0", of="m"), task("m-1", of="m"), task("b", after=("m",)))
    one.end("m-1")
    assert one.begun == ["m-0", "m-1"]
    one.end("m-0")
    assert one.begun[-1] == "b"
    ready = next(note for note in one.notes if note.kind == "ready" and note.words["task"] == "b")
    assert ready.words["reason"] == {"kind": "after", "tasks": ["m"]}


def test_one_of_several_of_a_name_can_be_waited_for() -> None:
    one = world(task("m-0", of="m"), task("m-1", of="m"), task("b", after=("m-1",)))
    one.end("m-1")
    assert one.begun == ["m-0", "m-1", "b"]


def test_those_who_wait_for_what_failed_are_skipped_and_others_go_on() -> None:
    one = world(task("a"), task("b", after=("a",)), task("c", after=("b",)), task("d"))
    one.end("a", BAD)
    assert one.said("skipped") == {"b": "a did not end well", "c": "b did not end well"}
    assert one.over is None
    one.end("d")
    assert one.status() == ("failed", 1)
    assert one.engine.counts() == {"done": 1, "failed": 1, "skipped": 2, "cancelled": 0}


def test_what_may_fail_does_no_harm_and_is_told() -> None:
    one = world(task("a", may_fail=True), task("b", after=("a",)))
    one.end("a", KILLED)
    assert one.said("failed") == {"a": "ended by signal 9"}
    one.end("b")
    assert one.status() == ("done", 0)


def test_attempts_are_counted() -> None:
    one = world(task("a", attempts=3))
    one.end("a", BAD)
    one.end("a", KILLED)
    assert one.live == {"a": 3}
    one.end("a", BAD)
    assert one.status() == ("failed", 1)
    reasons = [note.words["reason"] for note in one.notes if note.kind == "ready"]
    assert reasons == [{"kind": "start"}, {"kind": "restart", "attempt": 2}, {"kind": "restart", "attempt": 3}]


def test_an_end_of_an_attempt_that_is_over_means_nothing() -> None:
    one = world(task("a", attempts=2))
    one.end("a", BAD)
    one.take(ev.Finished("a", 1, BAD))
    one.take(ev.Began("a", 1))
    one.take(ev.Finished("nobody", 1, BAD))
    assert one.live == {"a": 2}


def test_cores_are_held_one_after_another_and_nobody_is_passed_by() -> None:
    one = world(task("a", cores=2), task("b", cores=4), task("c", cores=1), cores=4)
    assert one.begun == ["a"]
    one.end("a")
    assert one.begun == ["a", "b"]
    one.end("b")
    assert one.begun == ["a", "b", "c"]


def test_tasks_for_objects_and_others_take_turns() -> None:
    one = world(*(task(f"m-{number}", of="m") for number in range(4)), task("e", each="x"), cores=1)
    for _ in range(3):
        one.offer("m-0", "x")
    one.tell()
    for _ in range(6):
        one.end(one.begun[-1])
    assert one.begun == ["m-0", "e-1", "m-1", "e-2", "m-2", "e-3", "m-3"]


def test_memory_is_held_by_those_that_say_what_they_need() -> None:
    tasks = (
        task("a", memory_bytes=3),
        task("b"),
        task("c", memory_bytes=2),
        task("d", memory_bytes=9, executor="slurm"),
        task("e"),
    )
    one = world(*tasks, memory_bytes=4)
    assert sorted(one.begun) == ["a", "b", "d"]
    one.end("b")
    assert "c" not in one.begun, "nobody is passed by"
    one.end("a")
    assert one.begun[-2:] == ["c", "e"]


def test_what_runs_elsewhere_holds_no_cores_here() -> None:
    one = world(task("a"), task("b", cores=64, executor="slurm"), task("c"), cores=1)
    assert sorted(one.begun) == ["a", "b"]


def test_a_service_begins_before_its_users_and_ends_when_they_are_over() -> None:
    one = world(task("a"), task("s", service=True))
    assert one.begun == ["s"]
    one.run("s")
    assert one.begun == ["s", "a"]
    one.end("a")
    assert one.asked == {"s"}
    assert one.said("end_asked") == {"s": "its users are done"}
    one.end("s", KILLED)
    assert one.said("done").keys() == {"a", "s"}
    assert one.status() == ("done", 0)


def test_a_service_ends_with_its_own_users_only() -> None:
    one = world(task("s", service=True, users=("a",)), task("a"), task("b"))
    one.run("s")
    one.end("a")
    assert one.asked == {"s"}
    one.end("s")
    assert one.over is None


def test_a_service_that_fails_is_begun_again_and_then_its_users_are_skipped() -> None:
    one = world(task("s", service=True, attempts=2), task("a"))
    one.end("s", BAD)
    assert one.live == {"s": 2}
    one.end("s", BAD)
    assert one.said("skipped") == {"a": "s did not end well"}
    assert one.status() == ("failed", 1)


def test_a_service_that_may_fail_keeps_nobody_who_waits() -> None:
    one = world(task("s", service=True, may_fail=True), task("a"), task("b", after=("a",)))
    one.run("s")
    one.end("s", KILLED)
    one.end("a")
    one.end("b")
    assert one.said("failed") == {"s": "ended by signal 9"} and one.said("skipped") == {}
    assert one.status() == ("done", 0)


def test_a_service_that_may_fail_may_never_begin() -> None:
    one = world(task("s", service=True, may_fail=True), task("a", after=("s",)))
    one.end("s", BAD)
    assert one.begun == ["s", "a"]
    one.end("a")
    assert one.status() == ("done", 0)


def test_a_service_that_ends_well_by_itself_is_done() -> None:
    one = world(task("s", service=True), task("a"), task("b", after=("a",)))
    one.run("s")
    one.end("s")
    one.end("a")
    one.end("b")
    assert one.status() == ("done", 0)


def test_services_that_use_each_other_end_together() -> None:
    one = world(task("s", service=True, users=("t",)), task("t", service=True, users=("s",)), task("a"))
    for name in ("s", "t"):
        one.run(name)
    one.end("a")
    assert one.asked == {"s", "t"}
    one.end("s")
    one.end("t")
    assert one.status() == ("done", 0)


def test_a_service_that_waits_for_what_its_users_offer_does_not_keep_them() -> None:
    one = world(task("s", service=True, on="x=1"), task("a"))
    assert one.begun == ["a"]
    one.end("a")
    assert one.said("cancelled") == {"s": "its users are done"}
    assert one.status() == ("done", 0)


def test_an_object_starts_a_task_once() -> None:
    one = world(task("a"), task("b", on="x=1"))
    event = one.offer("a", "x=1")
    one.offer("a", "x=1")
    one.tell()
    assert one.begun == ["a", "b"]
    ready = next(note for note in one.notes if note.kind == "ready" and note.words["task"] == "b")
    assert ready.words["reason"]["object"] == event.key
    one.end("a")
    one.end("b")
    assert one.status() == ("done", 0)


def test_an_object_that_can_come_no_more_is_a_failure_that_names_it() -> None:
    one = world(task("a"), task("b", on="x=1"), task("c", after=("b",)))
    one.end("a")
    assert one.over is None, "what a offered last is not known yet"
    one.tell()
    assert "x=1" in one.said("failed")["b"]
    assert one.said("skipped").keys() == {"c"}
    assert one.status() == ("failed", 1)


def test_in_a_pool_of_others_an_object_may_always_come() -> None:
    one = world(task("b", on="x=1"), pool=THEIRS)
    one.tell()
    assert one.over is None
    one.take(ev.PoolEnded("the server has ended"))
    assert one.status() == ("failed", 1)


def test_of_a_pool_of_others_that_has_ended_nobody_knows_what_it_had() -> None:
    one = world(task("a"), task("p", each="x=1"), task("q", each="y=1", count=1), task("z", after=("p",)), pool=THEIRS)
    one.offer("a", "x=1")
    one.offer("a", "y=1")
    one.tell()
    one.take(ev.PoolEnded("the pool has ended: the server was killed"))
    assert one.over is None
    for name in ("p-1", "q-1", "a"):
        one.end(name)
    assert one.said("failed") == {"p": "the pool has ended: the server was killed"}
    assert one.said("skipped") == {"z": "p did not end well"}
    assert one.status() == ("failed", 1)


def test_a_service_may_still_bring_an_object_unless_something_has_failed() -> None:
    one = world(task("s", service=True), task("a"), task("b", on="x=1"))
    one.run("s")
    one.end("a")
    one.tell()
    assert one.over is None
    one.offer("s", "x=1")
    one.tell()
    one.end("b")
    one.end("s")
    assert one.status() == ("done", 0)
    one = world(task("s", service=True), task("a"), task("b", on="x=1"))
    one.run("s")
    one.end("a", BAD)
    one.tell()
    assert one.said("failed").keys() == {"a", "b"}
    one.end("s")
    assert one.status() == ("failed", 1)


def test_a_bundle_and_components_are_waited_for() -> None:
    one = world(task("a", bundle="step/6", joined=("model-*", "viewer")), pool=THEIRS)
    one.take(ev.Completed("step/0"))
    one.take(ev.Completed("step/6"))
    one.take(ev.Joined(1, "model-1"))
    one.take(ev.Left(1))
    one.take(ev.Joined(2, "viewer"))
    assert one.begun == []
    one.take(ev.Joined(3, "model-2"))
    assert one.begun == ["a"]


def test_each_object_has_a_task_and_each_version_one() -> None:
    one = world(task("a"), task("p", each="x=1"), task("z", after=("p",)))
    first = one.offer("a", "x=1")
    one.pool.append(first)
    one.offer("a", "x=1", key=first.key)
    one.offer("a", "x=1")
    one.tell()
    assert one.begun == ["a", "p-1", "p-2", "p-3"]
    last = one.offer("a", "x=1")
    one.end("a")
    for name in ("p-1", "p-2", "p-3"):
        one.end(name)
    assert one.over is None and "z" not in one.begun
    one.tell()
    assert one.sights[-1] == ("p", last)
    one.end("p-4")
    one.tell()
    assert one.said("done")["p"] == ""
    one.end("z")
    assert one.status() == ("done", 0)
    assert one.engine.counts()["done"] == 6


def test_one_of_each_that_fails_makes_the_whole_fail() -> None:
    one = world(task("a"), task("p", each="x=1"), task("z", after=("p",)))
    one.offer("a", "x=1")
    one.tell()
    one.end("a")
    one.end("p-1", BAD)
    one.tell()
    assert one.said("failed") == {"p-1": "exit status 1", "p": "1 of 1 did not end well"}
    assert one.said("skipped") == {"z": "p did not end well"}
    assert one.status() == ("failed", 1)


def test_tasks_for_objects_wait_for_what_their_each_waits_for() -> None:
    one = world(task("a"), task("p", each="x=1", after=("a",)))
    one.offer("a", "x=1")
    one.tell()
    assert one.begun == ["a"]
    one.end("a", BAD)
    assert one.said("skipped").keys() == {"p-1", "p"}
    assert one.status() == ("failed", 1)


def test_a_count_closes_an_each() -> None:
    one = world(task("p", each="x=1", count=2), pool=THEIRS)
    for _ in range(3):
        one.offer("somebody", "x=1")
    one.tell()
    assert one.begun == ["p-1", "p-2"]
    one.end("p-1")
    one.end("p-2")
    assert one.status() == ("done", 0)


def test_too_few_objects_are_a_failure() -> None:
    one = world(task("a"), task("p", each="x=1", count=2))
    one.offer("a", "x=1")
    one.tell()
    one.end("a")
    one.end("p-1")
    one.tell()
    assert one.said("failed") == {"p": "only 1 of 2 objects came"}
    assert one.status() == ("failed", 1)


def test_an_each_stays_open_for_what_waits_for_another() -> None:
    one = world(task("a"), task("p", each="x=1"), task("b", after=("p",)), task("q", each="y=1"))
    one.end("a")
    one.tell()
    assert one.begun == ["a", "b"]
    one.offer("b", "y=1")
    one.end("b")
    one.tell()
    assert one.begun == ["a", "b", "q-1"]
    one.end("q-1")
    one.tell()
    assert one.status() == ("done", 0)


def test_names_that_are_taken_are_left_out() -> None:
    one = world(task("a"), task("p-1"), task("p", each="x=1"))
    one.offer("a", "x=1")
    one.tell()
    assert one.begun == ["a", "p-1", "p-2"]


def test_an_interrupt_ends_services_last() -> None:
    one = world(task("s", service=True), task("a"), task("b", after=("a",)), task("p", each="x=1"))
    one.run("s")
    one.take(ev.RunInterrupted())
    assert one.asked == {"a"}
    assert one.said("cancelled").keys() == {"b", "p"}
    one.end("a", KILLED)
    assert one.asked == {"s"} or one.asked == {"a", "s"}
    one.end("s", KILLED)
    assert one.said("cancelled").keys() == {"a", "b", "p"}
    assert one.status() == ("interrupted", 130)


def test_a_second_interrupt_ends_all_at_once() -> None:
    one = world(task("s", service=True), task("a"))
    one.run("s")
    one.take(ev.RunInterrupted())
    one.take(ev.RunInterrupted())
    at_once = {note.words["task"] for note in one.notes if note.kind == "end_asked" and note.words["at_once"]}
    assert at_once == {"s", "a"}
    one.end("s", KILLED)
    one.end("a", KILLED)
    assert one.status() == ("interrupted", 130)


def test_a_run_whose_time_is_over_fails() -> None:
    one = world(task("a", attempts=2))
    one.take(ev.Stopped("the run's time is over"))
    one.end("a", KILLED)
    assert one.status() == ("failed", 1)
    assert one.over is not None and one.over.cause == "the run's time is over"


def test_the_end_of_the_own_pool_is_the_end_of_the_run() -> None:
    one = world(task("a"))
    one.take(ev.PoolEnded("the server was killed"))
    assert one.asked == {"a"}
    one.end("a", KILLED)
    assert one.status() == ("failed", 1)


def served(*tasks: Task) -> World:
    """A run whose pool is served by a task; it has begun."""
    one = world(*tasks, task("server", service=True), pool=SERVED)
    assert one.begun == ["server"]
    one.take(ev.AttemptServed("server", 1, "tcp://node:7000"))
    assert [note.words["pool"] for note in one.notes if note.words.get("event") == "served"] == ["tcp://node:7000"]
    return one


def test_who_serves_the_pool_begins_first_and_ends_last() -> None:
    one = served(task("s", service=True), task("a"))
    assert one.begun == ["server", "s"]
    one.run("s")
    one.end("a")
    assert one.asked == {"s"}
    one.end("s", KILLED)
    assert one.asked == {"s", "server"}
    one.take(ev.PoolEnded("the server was stopped"))
    one.end("server", KILLED)
    assert one.status() == ("done", 0)


def test_who_comes_before_the_pool_uses_no_service() -> None:
    one = world(task("a"), task("s", service=True), task("b"), task("server", service=True, after=("a",)), pool=SERVED)
    assert one.begun == ["a"]
    one.end("a")
    one.run("server")
    one.run("s")
    assert one.begun == ["a", "server", "s", "b"]


def test_the_end_of_a_pool_that_a_task_serves_is_the_end_of_the_run() -> None:
    one = served(task("a"))
    one.take(ev.PoolEnded("the server was killed"))
    assert one.asked == {"a"}
    one.end("a", KILLED)
    assert one.asked == {"a", "server"}
    one.end("server")
    assert one.status() == ("failed", 1)


def test_nothing_comes_of_who_only_serves_the_pool() -> None:
    one = served(task("a"), task("b", on="x=1"))
    one.end("a")
    one.tell()
    assert "nothing runs any more that could bring it" in one.said("failed")["b"]
    one.end("server", KILLED)
    assert one.status() == ("failed", 1)


def test_an_interrupt_ends_services_and_then_the_pool() -> None:
    one = served(task("s", service=True), task("a"))
    one.run("s")
    one.take(ev.RunInterrupted())
    assert one.asked == {"a"}
    one.end("a", KILLED)
    assert one.asked == {"a", "s"}
    one.end("s")
    # The record has all that happened in the pool before the pool ends.
    assert one.asked == {"a", "s"}
    one.tell()
    assert one.asked == {"a", "s", "server"}
    one.end("server")
    assert one.status() == ("interrupted", 130)


def test_what_is_done_is_not_done_again() -> None:
    past = ev.Past(frozenset({"a", "s"}), {"a": 1, "b": 2, "s": 1})
    one = world(task("a"), task("s", service=True), task("b", after=("a",), attempts=2), past=past)
    assert one.begun == ["s"]
    one.run("s")
    assert one.live == {"s": 2, "b": 3}
    one.end("b", BAD)
    assert one.live == {"s": 2, "b": 4}
    past = ev.Past(frozenset({"a", "b"}))
    assert world(task("a"), task("s", service=True), task("b"), past=past).status() == ("done", 0)


def test_objects_that_come_again_are_known_again() -> None:
    seen = (ev.Seen("p-1", "p", "k1", "1.1", is_done=True), ev.Seen("p-2", "p", "k2", "1.2", is_done=False))
    past = ev.Past(frozenset({"p-1"}), {"p-1": 1, "p-2": 1}, seen)
    one = world(task("a"), task("p", each="x=1"), past=past)
    assert one.begun == ["a"]
    for key in ("k1", "k2", "k3", "k1"):
        one.offer("a", "x=1", key=key, incarnation=2)
    one.tell()
    # The second of k1 is a newer version of this life.
    assert one.begun == ["a", "p-2", "p-3", "p-4"]
    assert one.live["p-2"] == 2
    for name in list(one.live):
        one.end(name)
    one.tell()
    assert one.status() == ("done", 0)


def test_an_object_that_is_still_in_the_pool_is_not_taken_twice() -> None:
    seen = (ev.Seen("p-1", "p", "k1", "1.1", is_done=True), ev.Seen("p-2", "p", "k2", "1.2", is_done=False))
    one = world(task("p", each="x=1", count=2), pool=THEIRS, past=ev.Past(frozenset({"p-1"}), {}, seen))
    one.offer("others", "x=1", key="k1")
    one.offer("others", "x=1", key="k2")
    one.tell()
    assert one.begun == ["p-2"]
    one.end("p-2")
    assert one.status() == ("done", 0)


def test_an_object_of_the_record_that_is_still_in_the_pool_is_noted_once() -> None:
    past = ev.Past(offered=frozenset({"1.1"}))
    for pool, noted in ((THEIRS, ["1.2"]), (None, ["1.1", "1.2"])):
        one = world(task("a"), task("p", each="x=1"), pool=pool, past=past)
        for key in ("k1", "k2"):
            one.offer("a", "x=1", key=key)
        one.tell()
        assert [note.words["version"] for note in one.notes if note.words.get("event") == "offered"] == noted


def resumed_with(*seen: ev.Seen) -> World:
    """A run that goes on, in a pool of others that has one object: the third version of `k`."""
    past = ev.Past(frozenset(one.task for one in seen if one.is_done), {}, seen)
    one = world(task("p", each="x=1"), pool=THEIRS, past=past)
    # What is there is told before anything else.
    one.pool.appendleft(ev.Offered("x=1", "k", "1.3"))
    one.tell()
    return one


def test_an_object_that_was_replaced_meanwhile_is_what_its_task_gets() -> None:
    one = resumed_with(ev.Seen("p-1", "p", "k", "1.1", is_done=False))
    assert one.begun == ["p-1"]
    one.end("p-1")
    one.tell()
    assert one.status() == ("done", 0)


def test_a_task_for_a_version_that_was_replaced_before_waits_no_longer() -> None:
    seen = [ev.Seen(f"p-{number}", "p", "k", f"1.{number}", is_done=False) for number in (1, 2, 3)]
    one = resumed_with(*seen)
    assert sorted(one.begun) == ["p-1", "p-2", "p-3"]
    for name in one.begun:
        one.end(name)
    one.tell()
    assert one.status() == ("done", 0)


def test_a_newer_version_of_what_is_done_has_a_task_of_its_own() -> None:
    one = resumed_with(ev.Seen("p-1", "p", "k", "1.1", is_done=True))
    assert one.begun == ["p-2"]
    one.end("p-2")
    one.tell()
    assert one.status() == ("done", 0)


def test_each_version_of_an_earlier_life_is_known_again() -> None:
    seen = [ev.Seen(f"p-{number}", "p", "k", f"1.{number}", is_done=True) for number in (1, 2)]
    one = world(task("a"), task("p", each="x=1"), past=ev.Past(frozenset({"p-1", "p-2"}), {}, tuple(seen)))
    for _ in range(3):
        one.offer("a", "x=1", key="k", incarnation=2)
    one.tell()
    assert one.begun == ["a", "p-3"]


def test_an_object_that_went_with_the_pool_is_named() -> None:
    past = ev.Past(frozenset({"a"}), {}, (ev.Seen("p-1", "p", "k1", "1.1", is_done=False),))
    one = world(task("a"), task("p", each="x=1"), past=past)
    one.tell()
    assert "k1" in one.said("failed")["p-1"]
    assert one.status() == ("failed", 1)


def test_what_is_asked_of_the_pool() -> None:
    engine = Engine(workflow(task("a", on="x=1"), task("p", each="y=1"), task("q", each="y=1")), 1)
    assert engine.selectors == {"x=1", "y=1"}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(TaskPhase, TaskPhase)))
def test_a_phase_follows_by_the_table_or_is_a_named_error(before: TaskPhase, after: TaskPhase) -> None:
    state = TaskState(task("a"), before)
    if after in MOVES[before]:
        state.move(after)
        assert state.phase is after
    else:
        with pytest.raises(IllegalTransitionError, match=f"^task a: {after.value} after {before.value}$"):
            state.move(after)
        assert state.phase is before
