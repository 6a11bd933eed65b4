"""Resuming a run: which completed tasks run again because the pool, and with it their objects, are gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run_real import Real
from run_world import BAD, GOOD, task, workflow, world

import junctura
from junctura.workflow._engine import events as ev
from junctura.workflow._engine.resuming import needed_again
from junctura.workflow._executors.jobs import Ended
from junctura.workflow._record.pool_users import PoolUsers
from junctura.workflow._spec.tasks import PoolWanted

# The consumer needs the file `good`, and after it the object of the producer.
FLOW = """workflow: test
{pool}tasks:
  prepare:
    run: ['true']
  producer:
    run: [python, produce.py, a, '1']
    start: {{after: prepare}}
  reader:
    run: [python, consume.py, name=a-0]
    start: {{after: producer}}
  consumer:
    run: [sh, -c, 'test -e "$1" && exec "$2" "$3" name=a-0', sh, "{{here}}/good", python3, "{{here}}/consume.py"]
    start: {{after: reader}}
"""
OTHERS = PoolWanted(url="tcp://node:7000")


def begun(real: Real) -> list[str]:
    """The tasks of the last session of a run, as they began."""
    lines = real.record()
    last = max(number for number, line in enumerate(lines) if line["kind"] == "run")
    return [line["task"] for line in lines[last:] if line["kind"] == "begin"]


def again(real: Real) -> list[str] | None:
    lines = [line for line in real.record() if line["kind"] == "run"]
    named: list[str] | None = lines[-1].get("again")
    return named


def test_a_producer_runs_again_for_a_consumer_that_failed(tmp_path: Path) -> None:
    real = Real(tmp_path, FLOW.format(pool="pool: {schema: free}\n"))
    said = real.run(1)
    assert "resume it with: " in said and "flow.yaml --resume run\n" in said
    assert real.outcomes()["consumer"] == "failed"
    (tmp_path / "good").touch()
    said = real.run(0, "--resume", "run")
    assert "1 task done before run again: their objects are lost" in said
    # The reader has offered nothing.
    assert (begun(real), again(real)) == (["producer", "consumer"], ["producer"])
    assert real.outcomes() == dict.fromkeys(("prepare", "producer", "reader", "consumer"), "done")
    assert real.log("consumer.2") == "a-0 7\n"
    assert "resumed once" in (tmp_path / "run/timeline.html").read_text()


def test_a_resumed_run_can_fail_and_be_resumed(tmp_path: Path) -> None:
    real = Real(tmp_path, FLOW.format(pool="pool: {schema: free}\n"))
    real.run(1)
    assert "resume it with" in real.run(1, "--resume", "run")
    assert begun(real) == ["producer", "consumer"]
    (tmp_path / "good").touch()
    assert "resume it with" not in real.run(0, "--resume", "run")
    assert begun(real) == ["producer", "consumer"]
    assert "resumed twice" in (tmp_path / "run/timeline.html").read_text()


def test_in_a_served_pool_the_producer_does_not_run_again(tmp_path: Path) -> None:
    with junctura.Pool(schema=["free"]) as pool:
        real = Real(tmp_path, FLOW.format(pool=f"pool: {pool.url}\n"))
        assert "flow.yaml --resume run\n" in real.run(1)
        (tmp_path / "good").touch()
        real.run(0, "--resume", "run")
        assert (begun(real), again(real)) == (["consumer"], None)


def test_a_run_whose_served_pool_has_ended_is_not_to_be_resumed() -> None:
    for pool, can_resume in ((OTHERS, False), (None, True)):
        one = world(task("a"), task("b", after=("a",)), pool=pool)
        assert one.engine.can_resume
        one.take(ev.PoolEnded("the server was killed"))
        one.end("a", BAD)
        assert one.status() == ("failed", 1)
        assert one.engine.can_resume == can_resume


def test_objects_of_tasks_for_objects_are_offered_again(tmp_path: Path) -> None:
    derive = "import os, sys, junctura\nwith junctura.Pool(os.environ['JUNCTURA_POOL']) as pool:\n"
    derive += "    pool.offer(b'payload', name='made-of-' + sys.argv[1], kind='made')\n"
    (tmp_path / "derive.py").write_text(derive)
    real = Real(
        tmp_path,
        "workflow: test\npool: {schema: free}\ntasks:\n"
        "  producer:\n    run: [python, produce.py, a, '2']\n"
        "  seen:\n    run: ['true']\n    start: {each: kind=field}\n"
        "  derive:\n    run: [python, derive.py, '{name}']\n    start: {each: kind=field}\n"
        "  last:\n    run: [sh, -c, 'test -e \"$1\" && exec python3 \"$2\" name=made-of-a-1', sh, '{here}/good',"
        " '{here}/consume.py']\n    start: {after: [derive, seen]}\n",
    )
    real.run(1)
    (tmp_path / "good").touch()
    real.run(0, "--resume", "run")
    # Those that only looked at an object are done.
    assert sorted(begun(real)) == ["derive-1", "derive-2", "last", "producer"]
    assert again(real) == ["derive-1", "derive-2", "producer"]


def test_only_a_run_with_something_to_do_repeats_anything() -> None:
    flow = workflow(task("a"), task("b", after=("a",)), task("s", service=True))
    done = frozenset({"a", "s"})
    past = ev.Past(done, producers=frozenset({"a", "b", "s", "gone"}))
    assert needed_again(flow, past) == {"a"}
    assert needed_again(workflow(task("a"), task("b"), pool=OTHERS), past) == frozenset()
    assert needed_again(flow, ev.Past(done | {"b"}, producers=past.producers)) == frozenset()


@pytest.mark.parametrize(("ended", "outcome"), [(GOOD, "done"), (BAD, "failed")])
def test_what_waits_for_a_completed_task_waits_for_those_before_it_that_run_again(ended: Ended, outcome: str) -> None:
    past = ev.Past(frozenset({"p", "d", "e"}), producers=frozenset({"p"}))
    tasks = (task("p"), task("d", after=("p",)), task("e", after=("d",)), task("s", service=True, users=("d", "t")))
    one = world(*tasks, task("t", after=("e",)), past=past)
    one.run("s")
    assert one.live.keys() == {"p", "s"}
    one.end("p", ended)
    if outcome == "done":
        one.end("t")
    assert one.asked == {"s"}
    one.end("s")
    assert one.status()[0] == outcome
    assert one.said("skipped") == ({} if outcome == "done" else {"t": "p did not end well"})
    assert not {"d", "e"} & set(one.begun)


@pytest.mark.parametrize("pool", [None, OTHERS])
def test_a_client_that_is_waited_for_connects_again(pool: PoolWanted | None) -> None:
    flow = workflow(task("model"), task("a", joined=("mod*",)), task("b", joined=("a",)), task("c"), pool=pool)
    clients = {"model": frozenset({"model"}), "a": frozenset({"a"}), "c": frozenset({"c"})}
    past = ev.Past(frozenset({"model", "a", "c"}), clients=clients)
    assert needed_again(flow, past) == {"a", "model"}


def client(event: str, name: str, pid: int, **words: Any) -> dict[str, Any]:
    return {"kind": "event", "event": event, "client": name, "host": "h", "pid": pid, **words}


def users(*lines: dict[str, Any]) -> PoolUsers:
    made = PoolUsers()
    for line in lines:
        made.take(json.loads(json.dumps(line)))
    return made


def test_clients_belong_to_the_task_of_their_name_or_to_all_that_run() -> None:
    def begin(name: str) -> dict[str, Any]:
        return {"kind": "begin", "task": name}

    def end(name: str) -> dict[str, Any]:
        return {"kind": "end", "task": name}

    found = users(
        begin("a"), client("joined", "a", 1), client("left", "a", 1, offered=0), end("a"),
        begin("b"), begin("c"), end("c"), client("joined", "other", 2), client("left", "other", 2, offered=3), end("b"),
        begin("d"), client("joined", "d", 3), client("joined", "d", 3), client("left", "d", 3, offered=0),
        client("left", "d", 3, offered=1), end("d"),
    )  # fmt: skip
    assert {"b", "d"} <= found.producers() and not {"a", "c"} & found.producers()
    assert found.clients()["other"] == {"other", "b"}
    # Of whom nothing more was heard may have offered something; so may those of a record without numbers.
    assert "e" in users(begin("e"), client("joined", "e", 4)).producers()
    assert "e" in users(begin("e"), client("joined", "e", 4), {"kind": "run"}).producers()
    assert "e" in users(begin("e"), client("joined", "e", 4), client("left", "e", 4)).producers()
