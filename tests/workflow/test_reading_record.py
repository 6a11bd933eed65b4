"""Records as they are read: whole, torn and damaged ones, runs that went on, and what decided how long they took."""

from __future__ import annotations

import io
import itertools
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from junctura import errors
from junctura.workflow._record import history as history_module
from junctura.workflow._record.critical_path import Attribution, Clock
from junctura.workflow._record.history import History, history, lines, read

sys.path.insert(0, str(Path(__file__).parent))
import example_records as examples

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=100)
RUN = {"kind": "run", "at": 100.0, "format": 1, "workflow": "w"}


def of(*said: Any) -> History:
    return history([RUN, *said])


def from_bytes(record: bytes) -> History:
    return history(lines(io.BytesIO(record)))


def test_a_run_is_read_as_it_was() -> None:
    run = history(examples.ensemble())
    member, picture = run.courses["member-3"], run.courses["picture-0"]
    assert (run.first.workflow, run.first.host, run.last.status, run.last.code) == ("ensemble", "node-17", "done", 0)
    assert run.left_out == 0 and run.count("done") == len(run.courses) == 17
    assert [(one.number, one.code, one.signal) for one in member.attempts] == [(1, None, 9), (2, 0, None)]
    assert member.reason and member.reason.kind == "after" and member.reason.tasks == ("prepare",)
    assert picture.reason and picture.reason.attributes["step"] == "24"
    assert picture.known_at == picture.reason.offered_at == picture.ready_at
    assert run.courses["products"].service and run.courses["products"].end_asked
    assert {one.kind for one in run.events} == {"offered", "joined", "left"}
    assert run.seconds == pytest.approx(run.last.end_at - run.first.begin_at)


def test_a_run_that_went_on_has_two_sessions_and_what_became_of_tasks_in_the_end() -> None:
    run = history(examples.resumed())
    assert [one.status for one in run.sessions] == ["", "done"] and run.last.resumed
    assert {one.outcome for one in run.courses.values()} == {"done"}
    assert [one.session for one in run.courses["step-1"].attempts] == [0, 1]
    assert run.seconds < 20 < run.last.begin_at - run.first.begin_at
    cut = run.courses["step-3"].attempts[0]
    assert cut.end_at is None and run.end_of(cut) == run.first.end_at


def test_a_skipped_task_that_runs_when_the_run_goes_on_is_skipped_no_more() -> None:
    skipped: dict[str, Any] = {"kind": "skipped", "at": 101, "task": "a", "cause": "b has failed"}
    run = of(skipped, {**RUN, "at": 200, "resumed": True}, {"kind": "ready", "at": 201, "task": "a"})
    assert run.courses["a"].outcome == run.courses["a"].cause == "" and run.courses["a"].ready_at == 201


def test_a_torn_last_line_is_left_out_and_is_no_nonsense() -> None:
    record = examples.text([RUN, {"kind": "ready", "at": 101, "task": "a"}]).encode()
    for cut in range(len(record) - 40, len(record)):
        run = from_bytes(record[:cut])
        assert run.left_out == 0 and len(run.courses) == 0
    assert list(from_bytes(record).courses) == ["a"]


@pytest.mark.parametrize(
    "said",
    [
        None,
        {"kind": "ready", "at": 101},
        {"kind": "ready", "at": 101, "task": ["a"]},
        {"kind": "ready", "at": "noon", "task": "a"},
        {"kind": "ready", "at": float("nan"), "task": "a"},
        {"kind": "ready", "at": 10**400, "task": "a"},
        {"kind": "ready", "at": -1, "task": "a"},
        {"kind": "ready", "task": "a"},
        {"kind": [], "at": 101},
        {"kind": "begin", "at": 101, "task": "never"},
        {"kind": "end", "at": 101, "task": "never", "attempt": 1},
        {"kind": "event", "at": 101},
        {"at": 101},
    ],
)
def test_a_line_that_makes_no_sense_is_left_out_and_counted(said: Any) -> None:
    run = of(said, {"kind": "ready", "at": 102, "task": "b"})
    assert run.left_out == 1 and list(run.courses) == ["b"]


def test_words_and_kinds_that_are_not_known_are_left_out() -> None:
    run = of({"kind": "weather", "at": 101}, {"kind": "ready", "at": 102, "task": "a", "mood": "good"})
    assert run.left_out == 0 and list(run.courses) == ["a"]


def test_an_attempt_that_is_not_the_one_that_runs_does_not_end_it() -> None:
    start = {"kind": "start", "at": 101, "task": "a", "attempt": 2}
    run = of(start, {"kind": "end", "at": 102, "task": "a", "attempt": 1, "code": 0})
    assert run.left_out == 1 and run.courses["a"].attempts[0].end_at is None


def test_a_clock_that_was_set_back_does_not_turn_time_around() -> None:
    run = of({"kind": "ready", "at": 150, "task": "a"}, {"kind": "start", "at": 120, "task": "a", "attempt": 1})
    assert run.courses["a"].attempts[0].start_at == 150


@pytest.mark.parametrize("record", [b"", b"\n", b"{}\n", b"\xff\xfe\n", b"[1]\n" * 9, b'{"kind": "ready", "at": 1}\n'])
def test_what_is_no_record_is_refused(record: bytes, tmp_path: Path) -> None:
    (tmp_path / "record.jsonl").write_bytes(record)
    with pytest.raises(errors.Corrupt, match="no line says that one begins"):
        read(tmp_path)


def test_a_record_that_is_not_there_or_cannot_be_read_is_an_error_of_the_house(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFound, match="no record"):
        read(tmp_path)
    with pytest.raises(errors.NotFound):
        read(tmp_path / "never")
    (tmp_path / "record.jsonl").mkdir()
    with pytest.raises(errors.Io):
        read(tmp_path)
    with pytest.raises(errors.Io):
        read("a\0b")


def test_a_later_format_is_refused() -> None:
    with pytest.raises(errors.Unsupported, match="format 2"):
        history([{**RUN, "format": 2}])


def test_limits_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_TASKS_MAX", 2)
    monkeypatch.setattr(history_module, "_ATTEMPTS_MAX", 2)
    monkeypatch.setattr(history_module, "_EVENTS_MAX", 2)
    with pytest.raises(errors.LimitExceeded, match="more than 2 tasks"):
        of(*({"kind": "ready", "at": 101, "task": str(n)} for n in range(3)))
    with pytest.raises(errors.LimitExceeded, match="more than 2 attempts"):
        of(*({"kind": "start", "at": 101, "task": "a", "attempt": n} for n in range(3)))
    run = of(*({"kind": "event", "at": 101, "event": "offered"} for _ in range(5)))
    assert (len(run.events), run.events_left_out) == (2, 3)


def test_a_record_of_very_many_bytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "record").open("wb") as file:
        file.truncate((2 << 30) + 1)
    with pytest.raises(errors.LimitExceeded, match="more than 2 GiB"):
        read(tmp_path / "record")


def test_a_line_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_LINE_BYTES_MAX", 32)
    record = json.dumps(RUN).encode() + b"\n"
    file = io.BytesIO(record + b'{"kind": 1}\n' + record[:-1])
    assert len(record) > 32 and list(lines(file)) == [None, {"kind": 1}]


@FIXED
@given(st.data())
def test_no_damage_to_a_record_raises_anything_but_errors_of_the_house(data: st.DataObject) -> None:
    record = bytearray(examples.text(examples.three()).encode())
    for _ in range(data.draw(st.integers(1, 20))):
        at = data.draw(st.integers(0, len(record) - 1))
        record[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    try:
        run = from_bytes(bytes(record))
    except errors.Error:
        return
    Attribution(run).chain()


WORDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
KINDS = ["run", "ready", "start", "begin", "end", "done", "failed", "skipped", "event", "end_asked", "run_end"]
LINES = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS), "at": st.floats(90, 200)},
    optional={
        "task": st.sampled_from("abc") | WORDS,
        "attempt": st.integers(0, 3) | WORDS,
        "reason": st.fixed_dictionaries(
            {"kind": st.sampled_from(["after", "object", "joined", "bundle", "restart"])},
            optional={
                "tasks": st.lists(st.sampled_from("abc")) | WORDS,
                "object": st.sampled_from("xy") | WORDS,
                "offered_at": st.floats(90, 200) | WORDS,
                "clients": st.lists(st.sampled_from("abc")) | WORDS,
            },
        ),
        "event": st.sampled_from(["offered", "joined"]) | WORDS,
        "object": st.sampled_from("xy") | WORDS,
        "client": st.sampled_from(["a", "b.1"]) | WORDS,
        "service": st.booleans(),
        "tasks": st.lists(st.fixed_dictionaries({"task": st.sampled_from("abc")})) | WORDS,
    },
)


@FIXED
@given(st.lists(LINES, max_size=30))
def test_the_chain_makes_up_the_whole_length_whatever_a_record_says(said: list[dict[str, Any]]) -> None:
    run = of(*said)
    clock, chain = Clock(run), Attribution(run).chain()
    assert sum(link.seconds for link in chain) == pytest.approx(clock.length)
    assert clock.length == pytest.approx(run.seconds)
    for one, following in itertools.pairwise(chain):
        assert one.end == pytest.approx(following.begin)
    for course in run.courses.values():
        assert all(0 <= wait.begin < wait.end <= clock.length + 1e-6 for wait in Attribution(run).waits(course))


def test_the_chain_leads_through_who_offered_the_object() -> None:
    run = history(examples.ensemble())
    for course in run.courses.values():
        origin = Attribution(run).origin(course)
        if course.of == "picture":
            assert origin.course is not None and origin.course.name == course.name.replace("picture", "member")


def test_an_object_from_nobody_knows_whom_ends_the_chain() -> None:
    ready: dict[str, Any] = {"kind": "ready", "at": 103, "task": "a"}
    reason = {"kind": "object", "object": "x", "offered_at": 102}
    steps = [{"kind": kind, "at": 104 + n, "task": "a", "attempt": 1} for n, kind in enumerate(("start", "begin"))]
    run = of({**ready, "reason": reason}, *steps, {"kind": "end", "at": 107, "task": "a", "attempt": 1, "code": 0})
    chain = Attribution(run).chain()
    assert [(one.kind, one.seconds) for one in chain] == [("object", 3), ("room", 1), ("queue", 1), ("run", 2)]
    assert "does not say from whom" in chain[0].words
    assert [(one.kind, one.seconds) for one in Attribution(run).waits(run.courses["a"])] == [
        ("object", 1),
        ("room", 1),
        ("queue", 1),
    ]


def test_any_order_of_lines_can_be_read() -> None:
    said = examples.resumed()[1:]
    for seed in range(20):
        random.Random(seed).shuffle(said)
        assert len(of(*said).courses) >= 7
