"""The number of tasks in a message: one, unless more wait than workers can begin."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from junctura.products._broker.engine_events import BeginTask
from junctura.products._broker.task_queue import TaskQueue
from junctura.products._tasks.tasks import DecodeInput, JoinedTasks, PairWinds, TaskOrder


class Crew:
    """Records the messages, of which `limit` are in flight at most."""

    def __init__(self, limit: float, together_max: int = 4, joining: int = 0) -> None:
        self.limit, self.together_max, self.joining = limit, together_max, joining
        self.messages: list[list[int]] = []
        self.answered = 0

    @property
    def in_flight(self) -> int:
        return len(self.messages) - self.answered

    def give(self, orders: Sequence[TaskOrder], _due: float) -> None:
        self.messages.append([order.number for order in orders])


class Joiner:
    """Joins inputs with even numbers; the other ones are alone."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, list[int], int]] = []

    def join(self, first: int, waiting: Collection[int], most: int) -> tuple[TaskOrder, list[int]] | None:
        self.asked.append((first, sorted(waiting), most))
        chosen = [number for number in sorted(waiting) if not self.is_alone(number)][:most]
        if first not in chosen or len(chosen) < 2:
            return None
        return TaskOrder(100 + first, JoinedTasks(())), chosen

    def is_alone(self, number: int) -> bool:
        return number % 2 == 1


def queue_of(crew: Any, tasks: int, slow: Sequence[int] = ()) -> TaskQueue:
    queue = TaskQueue(crew, Joiner())
    for number in range(tasks):
        queue.add(BeginTask(TaskOrder(number, PairWinds(number)), due=float(number), is_brief=number not in slow))
    queue.give()
    return queue


@pytest.mark.parametrize(
    ("tasks", "messages"),
    [
        (1, [[0]]),
        (4, [[0], [1], [2], [3]]),
        (7, [[0], [1], [2], [3]]),
        (8, [[0, 1], [2], [3], [4]]),
        (100, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]),
    ],
)
def test_a_message_has_several_tasks_when_all_messages_can(tasks: int, messages: list[list[int]]) -> None:
    crew = Crew(limit=4)
    queue_of(crew, tasks)
    assert crew.messages == messages


def test_all_tasks_are_given_in_their_order() -> None:
    crew = Crew(limit=2)
    queue = queue_of(crew, 31)
    while crew.in_flight:
        crew.answered += 1
        queue.give()
    assert [number for message in crew.messages for number in message] == list(range(31))
    # The last ones are for all workers.
    assert [len(message) for message in crew.messages[-2:]] == [1, 1]


def test_a_task_that_takes_long_is_alone() -> None:
    crew = Crew(limit=2)
    queue_of(crew, 20, slow=[0, 3])
    assert crew.messages == [[0], [1, 2]]


def test_a_crew_with_a_scheduler_of_its_own_gets_each_task_alone() -> None:
    crew = Crew(limit=float("inf"), together_max=1)
    queue_of(crew, 30)
    assert crew.messages == [[number] for number in range(30)]


def queue_of_inputs(crew: Any, joiner: Joiner, inputs: int, others: Sequence[int] = ()) -> TaskQueue:
    queue = TaskQueue(crew, joiner)
    for number in range(inputs):
        task = PairWinds(number) if number in others else DecodeInput(number, f"key {number}")
        queue.add(BeginTask(TaskOrder(number, task), due=float(number), is_brief=True))
    queue.give()
    return queue


def test_inputs_are_joined_as_far_as_each_worker_has_some() -> None:
    crew, joiner = Crew(limit=4, joining=2), Joiner()
    queue_of_inputs(crew, joiner, 12, others=[5])
    # Of eleven inputs each of two workers gets six; what is left cannot be joined.
    assert joiner.asked[0] == (0, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11], 6)
    assert crew.messages == [[100], [1], [3], [5]]


def test_inputs_that_are_not_joined_are_in_one_message_as_other_tasks_are() -> None:
    crew = Crew(limit=2, joining=1)
    queue_of_inputs(crew, Joiner(), 9, others=[0, 2])
    # Behind the third task is an input that may be joined.
    assert crew.messages == [[0, 1, 2, 3], [104]]
