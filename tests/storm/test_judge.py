"""The judge of storms sees what it is there to see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from storm_judge import Row, judge


def got(version: str, *, at: int = 1, what: str = "a", digest: str = "1", again: bool = False) -> Row:
    return {"op": "got", "t": at, "id": what, "version": version, "sum": digest, "redelivered": again}


def done(version: str) -> list[Row]:
    return [{"op": "releasing", "version": version}, {"op": "released", "version": version}]


def start(role: str, group: str | None = None) -> Row:
    return {"op": "start", "role": role, "group": group}


END: Row = {"op": "end"}
FOLLOWING: Row = {"op": "following"}
# One object that was acknowledged, one whose producer died before it heard.
OFFERS = [
    start("producer"),
    {"op": "offering", "n": 0, "id": "a", "sum": "1"},
    {"op": "offered", "n": 0, "version": "1.1"},
    {"op": "offering", "n": 1, "id": "b", "sum": "2"},
]
SOME, SAME = start("consumer"), start("consumer", "g")


def broken(directory: Path, *records: list[Row], torn: str = "") -> list[str]:
    for number, rows in enumerate([OFFERS, *records]):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / f"{number}.jsonl").write_text(text + torn)
    return judge(directory).broken


def test_what_is_right_passes(tmp_path: Path) -> None:
    assert broken(tmp_path, [SOME, FOLLOWING, got("1.1"), END], [SAME, got("1.1"), *done("1.1"), END]) == []


def test_an_offer_under_way_may_have_taken_effect_and_then_for_all(tmp_path: Path) -> None:
    both = [got("1.1"), got("1.2", what="b", digest="2")]
    assert broken(tmp_path, [SOME, FOLLOWING, *both, END], torn='{"op": "go') == []
    [lost] = broken(tmp_path, [SOME, FOLLOWING, *both, END], [SAME, got("1.1"), *done("1.1"), END])
    assert "g never had 1.2" in lost


def test_a_killed_member_may_have_completed_what_it_was_releasing(tmp_path: Path) -> None:
    died = [SAME, FOLLOWING, got("1.1"), {"op": "releasing", "version": "1.1"}]
    assert broken(tmp_path, died) == []
    assert broken(tmp_path, died, [SAME, FOLLOWING, got("1.1", at=2, again=True), *done("1.1"), END]) == []
    [lost] = broken(tmp_path, [SAME, FOLLOWING, got("1.1")], [SAME, FOLLOWING, END])
    assert "g never had 1.1" in lost


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([SOME, FOLLOWING, END], "never had 1.1"),
        ([SOME, FOLLOWING, got("1.1", digest="3"), END], "which is"),
        ([SOME, FOLLOWING, got("1.1"), got("1.3"), END], "nobody offered"),
        ([SOME, FOLLOWING, got("1.1"), got("1.1"), END], "twice in one session"),
        ([SOME, FOLLOWING, got("1.1"), {"op": "gap", "items": [], "reason": "expired"}, END], "gap"),
        ([SAME, FOLLOWING, got("1.1"), *done("1.1"), *done("1.1"), END], "completed 1.1 2 times"),
    ],
)
def test_what_is_wrong_is_seen(tmp_path: Path, rows: list[Row], complaint: str) -> None:
    [found] = broken(tmp_path, rows)
    assert complaint in found


def test_a_second_delivery_in_a_group_needs_a_mark(tmp_path: Path) -> None:
    first, second = [SAME, FOLLOWING, got("1.1")], [SAME, FOLLOWING, got("1.1", at=2), *done("1.1"), END]
    [found] = broken(tmp_path, first, second)
    assert "again without a mark" in found


def test_one_that_replaces_another_may_miss_what_that_one_completed(tmp_path: Path) -> None:
    gap = {"op": "gap", "items": [["a", "1.1"]], "reason": "expired"}
    new, killed = [SOME, FOLLOWING, gap, END], [SOME, FOLLOWING, got("1.1")]
    assert broken(tmp_path, new, [*killed, *done("1.1")]) == []
    assert broken(tmp_path, new, [*killed, *done("1.1")[:1]]) == []
    for other in (killed, [*killed, *done("1.1"), END]):
        [found] = broken(tmp_path, new, other)
        assert "gap" in found
    [found] = broken(tmp_path, [SAME, FOLLOWING, gap, END], [*killed, *done("1.1")], [SAME, got("1.1"), *done("1.1")])
    assert "gap" in found


def test_a_version_is_given_once(tmp_path: Path) -> None:
    other = [start("producer"), {"op": "offering", "n": 0, "id": "c", "sum": "1"}]
    other.append({"op": "offered", "n": 0, "version": "1.1"})
    assert any("two offers" in found for found in broken(tmp_path, other))
