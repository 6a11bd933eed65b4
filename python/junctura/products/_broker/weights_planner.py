"""The weights planner: which weights inputs need, so that each matrix is made once, before fields that need it.

The weights that products need are known when the grid of their inputs is. So a worker looks at the first input of each
kind; then a task of its own makes each matrix, and the inputs that need the matrix wait. Otherwise all workers with
inputs of one kind would make the same matrix, and each of them one matrix after the other.

The planner has no pool and begins no task: it returns what is missing, and which inputs become ready.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import junctura
from junctura.products._broker.task_graph import GraphNode, ProductGraph
from junctura.products._operations import Crop, Method, Operation, ToGrid, Winds
from junctura.products._regrid.grids import Grid
from junctura.products._regrid.grids import grid as named
from junctura.products._regrid.interpolate import is_part
from junctura.products._regrid.weight_matrices import Quantity, kept_as, path_of
from junctura.products._tasks.tasks import LegendreSpec, WeightsSpec

# Fields that agree in these attributes are taken to be on one grid. Where they are not, a worker makes what it needs.
_KIND = ("class", "expver", "stream", "type", "levtype", "domain", "origin", "model", "param", "grid", "dtype")
_POINTS = "points@"
_TRUNCATION = "T"


def kind_of(attributes: Mapping[str, Any]) -> Hashable:
    """Returns the attributes that inputs on the same grid have in common."""
    return tuple(str(attributes.get(word)) for word in _KIND)


def is_on_disk(weights: WeightsSpec) -> bool:
    """Returns whether weights are kept on disk. If they are damaged, the task that reads them makes them again."""
    try:
        return path_of(*weights).exists()
    except (OSError, ImportError):
        # The task that needs them reports what is missing.
        return True


class WeightsPlanner:
    """Which weights exist, and which inputs wait for a grid or for weights.

    Parameters
    ----------
    graph
        The graph of all products.
    is_kept
        Returns whether weights exist already.

    """

    def __init__(self, graph: ProductGraph, is_kept: Callable[[WeightsSpec], bool] = is_on_disk) -> None:
        self._graph, self._is_kept = graph, is_kept
        self._hinted: set[LegendreSpec] = set()
        # The grid by kind, and the inputs that wait for it.
        self._grids: dict[Hashable, str] = {}
        self._awaiting_grid: dict[Hashable, list[int]] = {}
        # Weights that exist, the inputs that wait for others, and by input how many those are.
        self._available: set[WeightsSpec] = set()
        self._awaiting_weights: dict[WeightsSpec, list[int]] = {}
        self._missing: dict[int, int] = {}

    def needs_grid(self, nodes: Sequence[int]) -> bool:
        """Returns whether anything that depends on these inputs alone is regridded."""
        return any(self._targets(node) for node in self._graph.below(nodes))

    def grid(self, kind: Hashable) -> str | None:
        """Returns the grid of a kind of inputs; None until it was found."""
        return self._grids.get(kind)

    def await_grid(self, kind: Hashable, number: int) -> bool:
        """Has an input wait for the grid of its kind; returns whether it is the first to wait."""
        waiting = self._awaiting_grid.setdefault(kind, [])
        waiting.append(number)
        return len(waiting) == 1

    def grid_found(self, kind: Hashable, grid: str) -> list[int]:
        """Records the grid of a kind of inputs; returns the inputs that waited for it."""
        self._grids[kind] = grid
        return self._awaiting_grid.pop(kind)

    def missing(self, nodes: Sequence[int], grid: str, quantity: Quantity) -> list[WeightsSpec]:
        """Returns the weights that inputs on a grid need and that do not exist yet."""
        wanted = {weights for node in nodes for weights in self._needed(node, grid, quantity)}
        self._available.update(filter(self._is_kept, wanted - self._available))
        return sorted(wanted - self._available)

    def await_weights(self, number: int, missing: Collection[WeightsSpec]) -> list[WeightsSpec]:
        """Has an input wait for weights; returns those for which no other input waits."""
        self._missing[number] = len(missing)
        fresh = [weights for weights in missing if weights not in self._awaiting_weights]
        for weights in missing:
            self._awaiting_weights.setdefault(weights, []).append(number)
        return fresh

    def weights_settled(self, weights: WeightsSpec) -> list[int]:
        """Records that weights exist, or cannot be made; returns the inputs that wait for no others."""
        self._available.add(weights)
        ready = []
        for number in self._awaiting_weights.pop(weights):
            self._missing[number] -= 1
            if not self._missing[number]:
                del self._missing[number]
                ready.append(number)
        return ready

    def hints(self, nodes: Sequence[int], grid: str) -> list[LegendreSpec]:
        """Returns, once each, the Legendre functions that inputs need if they are spectral."""
        if not grid.startswith(_TRUNCATION):
            return []
        found = []
        for node in self._graph.below(nodes):
            for target, is_wind in self._targets(node) if node.operation is None else ():
                legendre = LegendreSpec(int(grid[1:]), _whole(target), is_wind)
                if legendre not in self._hinted and legendre.target:
                    self._hinted.add(legendre)
                    found.append(legendre)
        return found

    def _targets(self, node: GraphNode) -> list[tuple[str, bool]]:
        """Returns the grids to which a node's fields are brought next, and whether they become winds there."""
        operations = [self._graph.nodes[child].operation for child in node.children]
        return [(one.grid, isinstance(one, Winds)) for one in operations if isinstance(one, ToGrid | Winds)]

    def _needed(self, node: int, grid: str, quantity: Quantity) -> Iterator[WeightsSpec]:
        """Yields the weights that operations on a field on this grid need."""
        sources = {node: grid}
        for below in self._graph.below([node]):
            if not isinstance(below.operation, ToGrid):
                before = sources[below.parents[0]] if below.parents else grid
                sources.setdefault(below.number, _cropped(before, below.operation))
                continue
            source, target = sources[below.parents[0]], below.operation.grid
            sources[below.number] = "" if target.startswith(_POINTS) else target
            is_known = not (below.operation.coordinates or below.operation.axes)
            if is_known and source and not source.startswith(_TRUNCATION) and self._graph.kept_of([below.number]):
                yield from _between(source, target, below.operation.method, quantity)


def _between(source: str, target: str, method: Method, quantity: Quantity) -> Iterator[WeightsSpec]:
    """Yields the weights from one grid to another."""
    origin, on = named(source), named(target)
    if isinstance(origin, Grid) and isinstance(on, Grid) and not is_part(origin, on):
        origin, on = kept_as(origin, on)
        yield WeightsSpec(origin.name, on.name, method, quantity)


def _cropped(name: str, operation: Operation | None) -> str:
    """Returns the grid behind an operation that is not one to a grid."""
    if not isinstance(operation, Crop) or not name or name.startswith(_TRUNCATION):
        return name
    on = named(name)
    assert isinstance(on, Grid)
    try:
        return operation.area(on).name
    except junctura.InvalidArgument:
        # The task that crops reports the error.
        return ""


def _whole(name: str) -> str:
    """Returns the grid of which a grid is an area: Legendre functions are those of whole grids. Empty if none."""
    on = named(name)
    return on.whole if isinstance(on, Grid) else ""
