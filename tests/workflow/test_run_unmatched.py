"""Tasks whose selector matched no object: a warning or a failure, and the probable mistake."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from run_real import LIMIT_S, Real
from run_world import BAD, World, task, world

import junctura
from junctura.workflow._engine import events as ev
from junctura.workflow._engine import pool as pool_of_run
from junctura.workflow._engine.selector_hint import NAME, selector_hint
from junctura.workflow._record.history import read
from junctura.workflow._spec.tasks import PoolWanted

THEIRS = PoolWanted(url="unix:theirs")
HINT = "did you mean x=10?"
FLOW = """workflow: test
pool: {schema: free}
tasks:
  model:
    run: [python, produce.py, a, '1']
  plot:
    run: [echo, "{name}"]
    start: {START}
  report:
    run: [echo, well]
    start: {after: plot}
"""


def warned(one: World) -> set[str]:
    return {note.words["task"] for note in one.notes if note.words.get("warning")}


def planned(start: Mapping[str, Any], **settings: Any) -> World:
    """A producer, a task for each object, and a task after it; the selector has a probable mistake."""
    one = world(task("a"), task("p", each="x=1", **start), task("z", after=("p",)), **settings)
    one.hints["x=1"] = HINT
    return one


def test_an_each_without_an_object_is_done_with_a_warning() -> None:
    one = planned({})
    one.end("a")
    one.tell()
    assert one.said("done")["p"] == f"no object matched x=1; {HINT}" and warned(one) == {"p"}
    one.end("z")
    assert one.status() == ("done", 0)
    assert one.engine.counts() == {"done": 2, "failed": 0, "skipped": 0, "cancelled": 0}


def test_an_each_that_allows_it_is_done_without_a_warning() -> None:
    one = planned({"none": "allow"})
    one.end("a")
    one.tell()
    assert one.said("done")["p"] == "no object matched x=1" and warned(one) == set()
    one.end("z")
    assert one.status() == ("done", 0)


@pytest.mark.parametrize("may_fail", [False, True])
def test_an_each_that_needs_an_object_fails(may_fail: bool) -> None:
    one = planned({"none": "fail", "may_fail": may_fail})
    one.end("a")
    one.tell()
    assert one.said("failed") == {"p": f"no object matched x=1; {HINT}"} and warned(one) == set()
    if may_fail:
        one.end("z")
    assert one.said("skipped") == ({} if may_fail else {"z": "p did not end well"})
    assert one.status() == (("done", 0) if may_fail else ("failed", 1))


def test_an_each_with_an_object_needs_no_more() -> None:
    one = planned({"none": "fail"})
    one.offer("a", "x=1")
    one.end("a")
    one.tell()
    one.end("p-1")
    one.tell()
    one.end("z")
    assert one.status() == ("done", 0) and warned(one) == set()


def test_tasks_that_failed_before_are_named() -> None:
    failing = [task(name) for name in "bcde"]
    one = world(*failing, task("p", each="x=1"), task("z", after=("p",)))
    one.end("b", BAD)
    one.end("c")
    for name in "de":
        one.end(name, BAD)
    one.tell()
    assert one.said("done")["p"] == "no object matched x=1; b, d and e failed" and warned(one) == {"p"}
    one.end("z")
    assert one.status() == ("failed", 1)


@pytest.mark.parametrize("start", [{}, {"none": "allow"}, {"none": "fail"}])
def test_an_each_is_skipped_when_a_task_failed_that_it_states(start: dict[str, Any]) -> None:
    one = planned({"after": ("a",), **start})
    one.end("a", BAD)
    assert one.said("skipped") == {"p": "a did not end well", "z": "p did not end well"}
    assert one.status() == ("failed", 1) and warned(one) == set()


def test_an_each_is_skipped_when_what_it_states_could_not_start() -> None:
    one = world(task("a"), task("m", on="y=1"), task("p", each="x=1", after=("m",)), task("z", after=("p",)))
    one.hints["y=1"] = "did you mean y=10?"
    one.end("a")
    one.tell()
    assert one.said("failed")["m"].endswith("could bring it; did you mean y=10?")
    assert one.said("skipped").keys() == {"p", "z"}
    assert one.status() == ("failed", 1)


def test_missing_objects_of_a_count_have_the_hint() -> None:
    one = planned({"count": 3})
    one.end("a")
    one.tell()
    assert one.said("failed") == {"p": f"only 0 of 3 objects came; {HINT}"}
    assert one.status() == ("failed", 1)


def test_an_object_that_arrives_with_the_hint_starts_its_task() -> None:
    one = world(task("m", on="x=1"), task("b"))
    one.end("b")
    one.take(one.pool.popleft())
    assert list(one.pool) == [ev.Hinted("x=1", "")]
    one.take(ev.Offered("x=1", "x:1", "1.1"))
    one.tell()
    one.end("m")
    assert one.status() == ("done", 0)


def test_a_pool_that_ends_gives_no_hint_and_blocks_nothing() -> None:
    one = world(task("a"), task("p", each="x=1"), pool=THEIRS)
    one.end("a")
    one.take(one.pool.popleft())
    assert list(one.pool) == [ev.Hinted("x=1", "")]
    one.take(ev.PoolEnded("the server was killed"))
    assert one.said("failed") == {} and one.said("done") == {"a": "", "p": "no object matched x=1"}
    assert one.status() == ("done", 0) and warned(one) == {"p"}


def test_an_interrupt_does_not_wait_for_a_hint() -> None:
    one = planned({})
    one.end("a")
    one.take(one.pool.popleft())
    one.pool.clear()
    one.take(ev.RunInterrupted())
    assert one.said("cancelled").keys() == {"p", "z"}
    one.tell()
    assert one.status() == ("interrupted", 130)


def test_a_resumed_run_looks_for_objects_again() -> None:
    past = ev.Past(frozenset({"a", "p"}))
    one = planned({}, past=past, pool=THEIRS)
    one.pool.appendleft(ev.Offered("x=1", "x:1", "1.1"))
    one.tell()
    one.end("p-1")
    one.tell()
    assert warned(one) == set() and one.said("done")["p"] == ""


@pytest.mark.parametrize("key", ["each", "on"])
def test_hints_of_very_many_selectors_are_limited(key: str) -> None:
    names = [f"p-{number}" for number in range(300)]
    one = world(task("a"), *(task(name, of="p", **{key: f"x={name}"}) for name in names))
    one.hints = {f"x={name}": HINT for name in names}
    one.end("a")
    # A request that nothing waits for changes nothing.
    one.take(ev.Hinted("x=y", HINT))
    one.tell()
    assert one.status() == (("done", 0) if key == "each" else ("failed", 1))
    assert warned(one) == (set(names) if key == "each" else set())
    ends = one.said("done" if key == "each" else "failed").values()
    assert sum(HINT in cause for cause in ends) == 100 == len(one.engine._hints)


def test_of_very_many_failed_tasks_three_are_named() -> None:
    failing = [f"f-{number}" for number in range(200)]
    one = world(*map(task, failing), task("p", each="x=1"), cores=200)
    for name in failing:
        one.end(name, BAD)
    one.tell()
    assert one.said("done")["p"] == "no object matched x=1; f-0, f-1, f-2 and 197 more failed"


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("kind=feild", "did you mean kind=field?"),
        ("kind=feild,of=a", "nothing matches kind=feild; did you mean kind=field?"),
        ("knd=field", 'no object has the attribute "knd"; did you mean kind?'),
        ("name=a-7", ""),
        ("kind=picture", ""),
    ],
)
def test_the_hint_is_that_of_selectors_elsewhere(selector: str, hint: str) -> None:
    with junctura.Pool(schema=["free"]) as pool:
        pool.offer(b"", name="a-1", kind="field", of="a")
        # Each request is answered, though a pool reports a form once.
        assert [selector_hint(pool.url, selector) for _ in range(2)] == [hint, hint]


def test_a_pool_that_cannot_be_reached_gives_no_hint(tmp_path: Path) -> None:
    assert selector_hint(f"unix:{tmp_path}/no.sock", "kind=feild") == ""


class Answerless:
    """A pool that fails, or never answers."""

    error: Exception | None = None

    def __init__(self, _url: str, name: str) -> None:
        assert name == NAME

    def __enter__(self) -> Answerless:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _begin_mistakes(self, _selector: str) -> Answerless:
        if self.error is not None:
            raise self.error
        return self

    _begin_value_hints = _begin_mistakes

    def poll(self, _wake: Callable[[], None]) -> None:
        return None


@pytest.mark.parametrize("error", [None, ValueError("unexpected"), RuntimeWarning("as an error")])
def test_no_error_and_no_silence_of_a_pool_ends_the_run(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answerless, "error", error)
    monkeypatch.setattr(junctura, "Pool", Answerless)
    assert selector_hint("unix:any", "kind=feild", time.monotonic() + 0.01) == ""
    # None is requested after the deadline.
    monkeypatch.delattr(junctura, "Pool")
    assert selector_hint("unix:any", "kind=feild", time.monotonic()) == ""


def test_a_watch_that_is_closed_requests_no_more_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []
    is_requested = threading.Event()

    def hint(_url: str, selector: str, _deadline: float) -> str:
        requested.append(selector)
        is_requested.set()
        assert watch._closing.wait(LIMIT_S)
        return ""

    monkeypatch.setattr(pool_of_run, "selector_hint", hint)
    with junctura.Pool(schema=["free"]) as pool:
        watch = pool_of_run.Watch(pool.url, [], lambda _event: None)
        for number in range(3):
            watch.hint(f"x={number}")
        assert is_requested.wait(LIMIT_S)
        watch.close()
    assert requested == ["x=0"]


def test_result_record_and_timeline_have_the_warning(tmp_path: Path) -> None:
    real = Real(tmp_path, FLOW.replace("{START}", "{each: kind=feild}"))
    cause = "no object matched kind=feild; did you mean kind=field?"
    said = real.run(0)
    assert "done: 2 done, 1 warning, in " in said and f"\n  warning: plot: {cause}\n" in said
    assert f"plot is done: {cause}" in said
    (last,) = [line for line in said.splitlines() if "test done after " in line]
    assert re.search(r"test done after \S+ m?s: 2 done, 1 warning$", last), last
    lines = real.record()
    (line,) = [line for line in lines if line.get("warning")]
    assert (line["kind"], line["task"], line["cause"], line["counts"]) == ("done", "plot", cause, False)
    assert lines[-1]["warnings"] == 1
    assert [course.name for course in read(tmp_path / "run").warned] == ["plot"]
    page = (tmp_path / "run/timeline.html").read_text()
    assert "<dt>warnings</dt>" in page and f"<li><b>plot</b>: {cause}</li>" in page


def test_the_result_for_programs_has_the_warning(tmp_path: Path) -> None:
    real = Real(tmp_path, FLOW.replace("{START}", "{each: knd=field}").replace("a, '1'", "a, '1', x"))
    (tmp_path / "produce.py").write_text((tmp_path / "produce.py").read_text() + "if len(sys.argv) > 3: sys.exit(1)\n")
    text = real.run(1, "--json", "--quiet")
    document = json.loads(text)
    assert document["failures"].keys() == {"model"} and document["resume"].endswith("flow.yaml --resume run")
    assert document["warnings"]["plot"].startswith("no object matched knd=field; model failed")


def test_with_none_allow_there_is_no_warning(tmp_path: Path) -> None:
    real = Real(tmp_path, FLOW.replace("{START}", "{each: kind=feild, none: allow}"))
    document = json.loads(real.run(0, "--json", "--quiet"))
    assert (document["warnings"], document["resume"]) == ({}, None)
    assert "<dt>warnings</dt>" not in (tmp_path / "run/timeline.html").read_text()


def test_the_printed_command_resumes_a_run_whose_selector_was_corrected(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    real = Real(folder, "")
    file = folder / "it's [1].yaml"
    text = FLOW.replace("{START}", "{each: kind=feild, none: fail}")
    (folder / "flow.yaml").write_text(text)
    said = real.run(1)
    assert "  plot: no object matched kind=feild; did you mean kind=field?\n" in said
    assert real.outcomes() == {"model": "done", "plot": "failed", "report": "skipped"}
    # Any name of a file, and any folder of the run.
    file.write_text(text)
    run = shlex.join(
        [sys.executable, "-m", "junctura.workflow", file.name, "--run-dir", "r $1", "--parallel", "3", "-q"]
    )
    command = resuming(shell(run, folder, 1))
    assert shlex.split(command)[-5:] == [file.name, "--resume", "r $1", "--parallel", "3"]
    file.write_text(text.replace("feild", "field"))
    assert shell(command, folder, 0).startswith("done: 3 done, in ")
    record = (folder / "r $1/record.jsonl").read_text().splitlines()
    begun = [line["task"] for line in map(json.loads, record) if line["kind"] == "begin"]
    # The objects of its own pool were lost.
    assert begun == ["model", "model", "plot-1", "report"]


def resuming(said: str) -> str:
    (command,) = re.findall(r"^resume it with: (.*)$", said, re.M)
    return str(command)


def shell(command: str, folder: Path, code: int) -> str:
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=dict(os.environ),
        timeout=LIMIT_S,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done
    return done.stdout


def test_the_command_does_not_take_a_path_for_an_option(tmp_path: Path) -> None:
    (tmp_path / "-f.yaml").write_text("workflow: w\ntasks:\n  a: {run: [test, -e, '{here}/good']}\n")
    command = resuming(shell(f"{shlex.quote(sys.executable)} -m junctura.workflow ./-f.yaml --run-dir=-r", tmp_path, 1))
    assert shlex.split(command)[-3:] == ["./-f.yaml", "--resume", "./-r"]
    (tmp_path / "good").touch()
    assert shell(command, tmp_path, 0).startswith("done: 1 done")
