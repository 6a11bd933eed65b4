"""The task queue: tasks that can be done, until the crew takes them in the order of their due times."""

from __future__ import annotations

import heapq

from junctura.products._broker.engine_events import BeginTask
from junctura.products._workers.crew import Crew


class TaskQueue:
    """Submits few more messages than workers can begin, so that a task with an earlier due time overtakes others.

    A message has one task, or several when so many tasks wait that every message can have several. A message never
    waits for a task.

    Parameters
    ----------
    crew
        Does the tasks; its `limit` bounds how many messages are in flight.

    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._waiting: list[tuple[float, int, BeginTask]] = []

    def add(self, task: BeginTask) -> None:
        """Adds a task."""
        heapq.heappush(self._waiting, (task.due, task.order.number, task))

    def give(self) -> None:
        """Submits as many tasks as the limit allows."""
        while self._waiting and self.crew.in_flight < self.crew.limit:
            # All messages in flight have as many before one has more.
            most = min(self.crew.together_max, int(len(self._waiting) // self.crew.limit))
            due, _, first = heapq.heappop(self._waiting)
            tasks = [first]
            while len(tasks) < most and first.is_brief and self._waiting[0][2].is_brief:
                tasks.append(heapq.heappop(self._waiting)[2])
            self.crew.give([task.order for task in tasks], due)
