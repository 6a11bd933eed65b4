"""The number of tasks in a message: one, unless more wait than workers can begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from junctura.products._broker.engine_events import BeginTask
from junctura.products._broker.task_queue import TaskQueue
from junctura.products._tasks.tasks import PairWinds, TaskOrder


class Crew:
    """Records the messages, of which `limit` are in flight at most."""

    def __init__(self, limit: float, together_max: int = 4) -> None:
        self.limit, self.together_max = limit, together_max
        self.messages: list[list[int]] = []
        self.answered = 0

    @property
    def in_flight(self) -> int:
        return len(self.messages) - self.answered

    def give(self, orders: Sequence[TaskOrder], _due: float) -> None:
        self.messages.append([order.number for order in orders])


def queue_of(crew: Any, tasks: int, slow: Sequence[int] = ()) -> TaskQueue:
    queue = TaskQueue(crew)
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
