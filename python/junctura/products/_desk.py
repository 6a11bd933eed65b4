"""The broker's desk: tasks that are ready, the one that is due first first; workers get them by the broker's pool."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import junctura
from junctura.products import _tasks
from junctura.products._tasks import Task


class Desk:
    """Hands tasks out, never many more than workers can begin: so what comes later and is more urgent goes before.

    Parameters
    ----------
    pool
        The broker's.
    limit
        How many may be out at once.

    """

    def __init__(self, pool: junctura.Pool, limit: int) -> None:
        self.pool, self.limit = pool, limit
        self._waiting: list[tuple[float, int, Task]] = []
        self._then: dict[int, Callable[[_tasks.Done], None]] = {}
        self._count = 0

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._then

    def add(self, make: Callable[[int], Task], then: Callable[[_tasks.Done], None], due: float) -> None:
        """A task that is ready; `make` is given its number, and `then` what came of it."""
        number, self._count = self._count, self._count + 1
        self._then[number] = then
        heapq.heappush(self._waiting, (due, number, make(number)))

    def give(self) -> None:
        """Hands out as many as may be."""
        while self._waiting and len(self._then) - len(self._waiting) < self.limit:
            _, number, task = heapq.heappop(self._waiting)
            self.pool.offer(_tasks.write(task), name=f"task/{number}", kind="task")

    def take(self, obj: junctura.Object) -> None:
        """What a worker says of its task."""
        with obj:
            done = _tasks.read_done(bytes(obj))
        then = self._then.pop(done.number, None)
        # A worker that was taken for dead may be late.
        if then is not None:
            then(done)
            for name in (f"task/{done.number}", f"done/{done.number}"):
                _tasks.forget(self.pool, name)
