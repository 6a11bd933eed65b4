"""The broker's desk: tasks that are ready, the one that is due first first, until a crew does them."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from junctura.products._tasks.task_messages import Done, Task
from junctura.products._workers.crew import Crew


class Desk:
    """Hands tasks out, never many more than workers can begin: so what comes later and is more urgent goes before.

    Parameters
    ----------
    crew
        Who does them; it says how many may be out at once.

    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._waiting: list[tuple[float, int, Task]] = []
        self._then: dict[int, Callable[[Done], None]] = {}
        self._count = 0

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._then

    def add(self, make: Callable[[int], Task], then: Callable[[Done], None], due: float) -> None:
        """A task that is ready; `make` is given its number, and `then` what came of it."""
        number, self._count = self._count, self._count + 1
        self._then[number] = then
        heapq.heappush(self._waiting, (due, number, make(number)))

    def give(self) -> None:
        """Hands out as many as may be."""
        while self._waiting and len(self._then) - len(self._waiting) < self.crew.limit:
            due, _, task = heapq.heappop(self._waiting)
            self.crew.give(task, due)

    def take(self, done: Done) -> None:
        """What came of a task."""
        then = self._then.pop(done.number, None)
        # A worker that was taken for dead may be late.
        if then is not None:
            then(done)
