"""The dependency graph: resolves names, reports cycles, and orders the tasks.

```text
  member-0 ──┐
  member-1 ──┼─> member ──> picture        a name of the file that stands for several tasks is a node of its own,
  member-2 ──┘                             so that a thousand times a thousand tasks have two thousand edges
```
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from junctura._document.located_yaml import Wrong, nearest
from junctura.workflow._engine.engine_state import waits_in_pool
from junctura.workflow._spec.placeholders import words
from junctura.workflow._spec.tasks import Task

_PATH_MAX = 10
_NAMES_MAX = 20
_Edges = list[list[int]]


class Graph:
    """Tasks and their dependencies.

    Parameters
    ----------
    tasks
        In the order of the file.

    Raises
    ------
    Wrong
        Two tasks have one name, a name is unknown, or the run could not end: a dependency cycle, or a service that
        waits for its users.

    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._nodes: dict[str, int] = {}
        self._names: list[str] = []
        members = self._name_all()
        self._waits: _Edges = [list(self._found(task, task.start.after, "start", "after")) for task in tasks]
        self._waits += [[] for _ in range(len(self._names) - len(tasks))]
        for node, of_it in members.items():
            self._waits[node] = of_it
        self._members = members

    def ordered(self) -> tuple[Task, ...]:
        """Returns the tasks, each after its dependencies, else in the order of the file."""
        ranks = [max(self._members.get(node, [node])) for node in range(len(self._names))]
        order, left = _order(self._waits, ranks)
        if left:
            path = self._path(left, self._waits)
            raise Wrong(self._cycle(path, "waits for"), "tasks", self._tasks[path[0]].of, "start", "after")
        self._check_services()
        return tuple(self._tasks[node] for node in order if node < len(self._tasks))

    def check_server(self, name: str) -> None:
        """Checks that a task can serve the pool of the others.

        Raises
        ------
        Wrong
            The task does not exist or is not a service, has several instances, or waits for a task that needs the pool.

        """
        if name not in self._nodes:
            raise Wrong(f'there is no task "{name[:60]}"{self._near(name)}', "pool", "service")
        node = self._nodes[name]
        if node in self._members:
            raise Wrong(f'there are several of "{name}": one serves the pool', "pool", "service")
        server = self._tasks[node]
        if not server.service:
            raise Wrong(f'"{name}" is no service, which runs until the others are done', "pool", "service")
        if server.users:
            raise Wrong("it serves the pool, and so runs for all others", "tasks", server.of, "users")
        if server.attempts > 1:
            raise Wrong("it serves the pool, which would be empty the second time", "tasks", server.of, "attempts")
        if server.may_fail:
            raise Wrong("it serves the pool, without which nothing goes on", "tasks", server.of, "may_fail")
        for other in (node, *_reached(node, self._waits)):
            if other < len(self._tasks) and _needs_pool(self._tasks[other]):
                cause = f'it needs the pool, which is there once "{name}" serves it'
                raise Wrong(cause, "tasks", self._tasks[other].of)

    def _name_all(self) -> dict[int, list[int]]:
        """Gives each task its node, and each name that denotes several tasks; returns these tasks by name."""
        groups: dict[str, list[int]] = {}
        for node, task in enumerate(self._tasks):
            if task.name != task.of:
                groups.setdefault(task.of, []).append(node)
        for node, task in enumerate(self._tasks):
            other = self._nodes.get(task.name)
            if other is not None or task.name in groups:
                of = self._tasks[groups[task.name][0] if other is None else other].of
                raise Wrong(f'it would be called "{task.name}", and so is a task of "{of}"', "tasks", task.of)
            self._nodes[task.name] = node
            self._names.append(task.name)
        for of in groups:
            self._nodes[of] = len(self._names)
            self._names.append(of)
        return {self._nodes[of]: nodes for of, nodes in groups.items()}

    def _found(self, task: Task, names: Iterable[str], *keys: str) -> Iterable[int]:
        for index, name in enumerate(names):
            if name not in self._nodes:
                raise Wrong(f'there is no task "{name[:60]}"{self._near(name)}', "tasks", task.of, *keys, index)
            yield self._nodes[name]

    def _near(self, name: str) -> str:
        files = {task.of for task in self._tasks}
        instances = [
            task.name for task in self._tasks if task.name != task.of and name.startswith(task.of) and len(name) < 80
        ]
        said = nearest(name, [*files, *instances[:1000]])
        return said if "did you mean" in said or len(files) + len(instances) <= _NAMES_MAX else ""

    def _check_services(self) -> None:
        users: _Edges = [[] for _ in self._names]
        for node, task in enumerate(self._tasks):
            users[node] = list(self._found(task, task.users, "users"))
        for node, of_it in self._members.items():
            users[node] = of_it
        ending = [[other for other in users[node] if self._is_service(other)] for node in range(len(users))]
        _, left = _order(ending, range(len(ending)))
        if left:
            path = self._path(left, ending)
            raise Wrong(self._cycle(path, "runs until the end of"), "tasks", self._tasks[path[0]].of, "users")
        for node, task in enumerate(self._tasks):
            if task.service:
                self._check_service(node, users)

    def _is_service(self, node: int) -> bool:
        return self._tasks[self._members[node][0] if node in self._members else node].service

    def _check_service(self, node: int, users: _Edges) -> None:
        task = self._tasks[node]
        before = _reached(node, self._waits)
        if task.users:
            direct = {user for name in users[node] for user in self._members.get(name, [name])}
            if early := direct & before:
                name = self._names[min(early)]
                raise Wrong(f'it waits for "{name}", for which it is to run', "tasks", task.of, "users")
        elif all(other.service or index in before for index, other in enumerate(self._tasks)):
            cause = "it waits for all tasks, so that none is left for which it would run"
            if all(other.service for other in self._tasks):
                cause = "there are services only: nothing would end them"
            raise Wrong(cause, "tasks", task.of)

    def _path(self, left: list[int], edges: _Edges) -> list[int]:
        """Returns one cycle among the remaining nodes, from its first task in the file."""
        among = set(left)
        seen: dict[int, int] = {}
        node = left[0]
        while node not in seen:
            seen[node] = len(seen)
            node = next(other for other in edges[node] if other in among)
        path = [one for one, at in seen.items() if at >= seen[node] and one < len(self._tasks)]
        first = path.index(min(path))
        return path[first:] + path[:first]

    def _cycle(self, path: list[int], verb: str) -> str:
        names = [self._names[node] for node in path]
        if len(names) == 1:
            return f"{names[0]} {verb} itself; remove this"
        shown = names if len(names) <= _PATH_MAX else [*names[: _PATH_MAX - 1], "...", names[-1]]
        return f"{names[0]} {verb} " + f", which {verb} ".join([*shown[1:], names[0]]) + "; remove one of these"


def _needs_pool(task: Task) -> bool:
    texts = (*task.command, str(task.folder), *task.environment.values())
    return waits_in_pool(task) or any("pool" in words(text) for text in texts)


def _order(waits: _Edges, ranks: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns all nodes, each after its dependencies, else by rank; and the nodes of cycles."""
    behind: _Edges = [[] for _ in waits]
    missing = [0] * len(waits)
    for node, before in enumerate(waits):
        for other in before:
            behind[other].append(node)
        missing[node] = len(before)
    ready = [(ranks[node], node) for node, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for other in behind[node]:
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, (ranks[other], other))
    return order, [node for node, count in enumerate(missing) if count]


def _reached(start: int, edges: _Edges) -> set[int]:
    """Returns all nodes reachable from a node."""
    found: set[int] = set()
    open_ones = list(edges[start])
    while open_ones:
        node = open_ones.pop()
        if node not in found:
            found.add(node)
            open_ones.extend(edges[node])
    return found
