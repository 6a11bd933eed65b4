"""Messages between broker and workers: what was written is read, and nothing else is."""

from __future__ import annotations

import json
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from junctura.errors import Corrupt
from junctura.products._tasks.codec import (
    read_answer,
    read_answers,
    read_order,
    read_orders,
    write_answer,
    write_order,
)
from junctura.products._tasks.tasks import PairWinds, Result, Task, TaskAnswer, TaskOrder, TaskUsage, WindsPaired

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=100)
NUMBERS = st.integers(0, 2**63)


def any_of(union: Any) -> st.SearchStrategy[Any]:
    """Messages of all types, whose fields are all drawn, also those with defaults."""
    return st.one_of(*map(message, get_args(union)))


def message(of: Any) -> st.SearchStrategy[Any]:
    return st.builds(of, **{name: st.from_type(hint) for name, hint in get_type_hints(of).items()})


@FIXED
@given(NUMBERS, any_of(Task))
def test_a_task_is_read_as_it_was_written(number: int, task: Task) -> None:
    order = TaskOrder(number, task)
    # In this form tuples are no lists, and numbers that are none are alike.
    assert repr(read_order(write_order(order))) == repr(order)


@FIXED
@given(NUMBERS, any_of(Result), st.builds(TaskUsage, NUMBERS, NUMBERS, NUMBERS))
def test_an_answer_is_read_as_it_was_written(number: int, result: Result, usage: TaskUsage) -> None:
    answer = TaskAnswer(number, result, usage)
    assert repr(read_answer(write_answer(answer))) == repr(answer)


def test_several_tasks_and_answers_are_one_message() -> None:
    orders = [TaskOrder(number, PairWinds(number, (number,))) for number in (3, 5)]
    answers = [TaskAnswer(number, WindsPaired((number,)), TaskUsage()) for number in (3, 5)]
    assert read_orders(write_order(*orders)) == orders
    assert read_answers(write_answer(*answers)) == answers
    assert read_orders(write_order(orders[0])) == orders[:1]
    with pytest.raises(Corrupt, match="expected an object with number, task"):
        read_orders(b'[{"number": 1, "task": {"tag": "PairWinds", "pair": 1}}, 7]')


def test_the_format_of_a_message() -> None:
    order, answer = (
        TaskOrder(12, PairWinds(7, (7, 8))),
        TaskAnswer(12, WindsPaired((7,), {8: "no"}), TaskUsage(0, 1, 2)),
    )
    assert json.loads(write_order(order)) == {"number": 12, "task": {"tag": "PairWinds", "pair": 7, "keep": [7, 8]}}
    assert json.loads(write_answer(answer)) == {
        "number": 12,
        "result": {"tag": "WindsPaired", "kept": [7], "failed": {"8": "no"}},
        "usage": [0, 1, 2],
    }


@pytest.mark.parametrize(
    ("payload", "cause"),
    [
        (b"{", "invalid JSON"),
        (b"\xff", "invalid JSON"),
        (b"[]", "expected an object with number, task"),
        (b'{"number": 1}', "expected an object with number, task"),
        (b'{"number": 1, "task": 5}', "expected an object with a tag"),
        (b'{"number": 1, "task": {}}', "unknown tag None; known are LookAtInput, MakeWeights, DecodeInput"),
        (b'{"number": 1, "task": {"tag": "Boil"}}', "unknown tag Boil; known are LookAtInput"),
        (b'{"number": 1, "task": {"tag": "WindsPaired"}}', "unknown tag WindsPaired"),
        (b'{"number": 1, "task": {"tag": "PairWinds"}}', "invalid PairWinds: TypeError: .*pair"),
        (b'{"number": 1, "task": {"tag": "PairWinds", "pair": 1, "more": 2}}', "invalid PairWinds: TypeError: .*more"),
        (b'{"number": 1, "task": {"tag": "PairWinds", "pair": 1, "keep": 2}}', "invalid PairWinds: TypeError"),
        (b'{"number": 1, "task": {"tag": "MakeWeights", "weights": ["F16"]}}', "invalid MakeWeights: TypeError"),
    ],
)
def test_what_is_no_task_is_refused_with_the_reason(payload: bytes, cause: str) -> None:
    with pytest.raises(Corrupt, match=cause):
        read_order(payload)


@pytest.mark.parametrize(
    ("payload", "cause"),
    [
        (b'{"number": 1, "usage": [0, 0, 0], "result": {"tag": "PairWinds"}}', "unknown tag PairWinds; known are Grid"),
        (b'{"number": 1, "usage": 5, "result": {"tag": "WeightsMade"}}', "invalid usage"),
        (b'{"number": 1, "result": {"tag": "WeightsMade"}}', "expected an object with number, result, usage"),
        (
            b'{"number": 1, "usage": [0, 0, 0], "result": {"tag": "InputDecoded", "failed": {"x": "no"}}}',
            "invalid InputDecoded: ValueError",
        ),
    ],
)
def test_what_is_no_answer_is_refused_with_the_reason(payload: bytes, cause: str) -> None:
    with pytest.raises(Corrupt, match=cause):
        read_answer(payload)
