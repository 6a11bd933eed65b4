"""The task queue: tasks that can be done, until the crew takes them in the order of their due times."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection
from typing import Protocol

from junctura.products._broker.engine_events import BeginTask
from junctura.products._tasks.tasks import DecodeInput, TaskOrder
from junctura.products._workers.crew import Crew


class InputJoiner(Protocol):
    """The part of the engine that the queue uses."""

    def join(self, first: int, waiting: Collection[int], most: int) -> tuple[TaskOrder, list[int]] | None:
        """Joins a task with other ones that wait, as `ProductEngine.join`."""

    def is_alone(self, number: int) -> bool:
        """Returns whether a task has none to be joined with, as `ProductEngine.is_alone`."""


class TaskQueue:
    """Submits few more messages than workers can begin, so that a task with an earlier due time overtakes others.

    A message has one task, or several when so many tasks wait that every message can have several. Inputs that wait
    for the same products are joined to one task, as long as every worker has some. A message never waits for a task.

    Parameters
    ----------
    crew
        Does the tasks; its `limit` bounds how many messages are in flight.
    joiner
        Joins tasks that decode inputs.

    """

    def __init__(self, crew: Crew, joiner: InputJoiner) -> None:
        self.crew, self._joiner = crew, joiner
        self._waiting: list[tuple[float, int, BeginTask]] = []
        # The numbers of waiting tasks that decode inputs.
        self._inputs: set[int] = set()

    def add(self, task: BeginTask) -> None:
        """Adds a task."""
        heapq.heappush(self._waiting, (task.due, task.order.number, task))
        if isinstance(task.order.task, DecodeInput):
            self._inputs.add(task.order.number)

    def give(self) -> None:
        """Submits as many tasks as the limit allows."""
        while self._waiting and self.crew.in_flight < self.crew.limit:
            due, number, first = self._waiting[0]
            joined = self._joined(number) if number in self._inputs else None
            self.crew.give([joined] if joined else self._together(first), due)

    def _joined(self, first: int) -> TaskOrder | None:
        """Removes a task and those that are joined with it; returns the task that replaces them, if there is one."""
        if not self.crew.joining:
            return None
        found = self._joiner.join(first, self._inputs, math.ceil(len(self._inputs) / self.crew.joining))
        if found is None:
            return None
        order, numbers = found
        self._inputs.difference_update(numbers)
        gone = {*numbers}
        self._waiting = [one for one in self._waiting if one[1] not in gone]
        heapq.heapify(self._waiting)
        return order

    def _together(self, first: BeginTask) -> list[TaskOrder]:
        """Removes the tasks of a message."""
        # All messages in flight have as many before one has more.
        most = min(self.crew.together_max, int(len(self._waiting) // self.crew.limit))
        tasks = [self._pop()]
        while len(tasks) < most and first.is_brief and self._may_follow(*self._waiting[0]):
            tasks.append(self._pop())
        return [task.order for task in tasks]

    def _may_follow(self, _due: float, number: int, task: BeginTask) -> bool:
        """Returns whether a task may be in a message behind another one; an input may be joined with others later."""
        may_join = self.crew.joining and number in self._inputs and not self._joiner.is_alone(number)
        return task.is_brief and not may_join

    def _pop(self) -> BeginTask:
        _, number, task = heapq.heappop(self._waiting)
        self._inputs.discard(number)
        return task
