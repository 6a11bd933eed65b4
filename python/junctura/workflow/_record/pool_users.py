"""Which tasks of a run were clients of its pool, and which of them have offered objects, as its record shows.

A client has the name of its task, unless its program sets another one; a client with a name that no task has may
belong to every task that ran when it connected. A client whose end is not in the record may have offered objects.
"""

from __future__ import annotations

from typing import Any

Line = dict[str, Any]


class PoolUsers:
    """Takes the lines of a record, in their order."""

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._running: set[str] = set()
        # By name, host and process: for each of its connections, the tasks that it may belong to.
        self._present: dict[tuple[Any, ...], list[frozenset[str]]] = {}
        self._producers: set[str] = set()
        self._clients: dict[str, set[str]] = {}

    def take(self, line: Line) -> None:
        """Adds a line."""
        kind, task = line.get("kind"), line.get("task")
        if kind == "run":
            self._forget_present()
        elif kind == "begin" and isinstance(task, str):
            self._begun.add(task)
            self._running.add(task)
        elif kind == "end" and isinstance(task, str):
            self._running.discard(task)
        elif kind == "event" and isinstance(name := line.get("client"), str):
            self._take_client(line, name)

    def producers(self) -> frozenset[str]:
        """Returns the tasks that have offered objects, or may have."""
        return frozenset(self._producers.union(*(tasks for many in self._present.values() for tasks in many)))

    def clients(self) -> dict[str, frozenset[str]]:
        """Returns for each name of a client the tasks that it may have belonged to."""
        return {name: frozenset(tasks) for name, tasks in self._clients.items()}

    def _take_client(self, line: Line, name: str) -> None:
        client = (name, line.get("host"), line.get("pid"))
        if line.get("event") == "joined":
            # Its task may not be recorded as running yet: the two messages take different ways.
            tasks = frozenset({name}) if name in self._begun else frozenset({name, *self._running})
            self._present.setdefault(client, []).append(tasks)
            self._clients.setdefault(name, set()).update(tasks)
        elif line.get("event") == "left":
            many = self._present.get(client, [])
            tasks = many.pop() if many else frozenset({name})
            if line.get("offered") != 0:
                self._producers |= tasks

    def _forget_present(self) -> None:
        """A run has ended, and with it its tasks."""
        self._producers = set(self.producers())
        self._present.clear()
        self._running.clear()
