"""The task queue: tasks that can be done, until the crew takes them in the order of their due times."""

from __future__ import annotations

import heapq

from junctura.products._tasks.tasks import TaskOrder
from junctura.products._workers.crew import Crew


class TaskQueue:
    """Submits few more tasks than workers can begin, so that a task with an earlier due time overtakes others.

    Parameters
    ----------
    crew
        Does the tasks; its `limit` bounds how many are in flight.

    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._waiting: list[tuple[float, int, TaskOrder]] = []

    def add(self, order: TaskOrder, due: float) -> None:
        """Adds a task."""
        heapq.heappush(self._waiting, (due, order.number, order))

    def give(self, outstanding: int) -> None:
        """Submits as many tasks as the limit allows; `outstanding` have no answer yet, including the queued ones."""
        while self._waiting and outstanding - len(self._waiting) < self.crew.limit:
            due, _, order = heapq.heappop(self._waiting)
            self.crew.give(order, due)
