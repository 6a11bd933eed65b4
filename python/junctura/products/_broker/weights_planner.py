"""Weights are made before the fields that need them are decoded: each matrix once, several at the same time.

Which weights products need is known when the grid of their inputs is. So a worker looks at the first field of each
kind, without decoding it; then the broker has each matrix made by a task of its own, and the fields that need it wait
for that. Otherwise all workers that get fields of one kind would make the same matrix, and each of them one matrix
after the other.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import junctura
from junctura._grib import checked_messages
from junctura._xarray.label_attributes import needed
from junctura.products._broker.task_graph import Graph, Node
from junctura.products._broker.task_messages import Legendre, Weights
from junctura.products._input import decoding
from junctura.products._operations import Crop, Method, Operation, ToGrid, Winds
from junctura.products._regrid.grids import Grid, Spectral
from junctura.products._regrid.grids import grid as named
from junctura.products._regrid.interpolate import is_part, quantity_of
from junctura.products._regrid.weight_matrices import Quantity, kept_as, path_of

# Fields that agree in these are taken to be on one grid. Where they are not, a worker makes what it needs.
_KIND = ("class", "expver", "stream", "type", "levtype", "domain", "origin", "model", "param", "grid", "dtype")
_POINTS = "points@"
_TRUNCATION = "T"


class Preparing:
    """Knows which weights are there, and which fields wait for some.

    Parameters
    ----------
    graph
        Of all products.
    look
        Has somebody look on which grid the object of a key is, with `grid_of`; calls back with what that says.
    make
        Has weights made; calls back when they are, or cannot be.
    hint
        Is told once of each Legendre functions that will be needed; nothing waits for them.

    """

    def __init__(
        self,
        graph: Graph,
        look: Callable[[str, Callable[[str], None]], None],
        make: Callable[[Weights, Callable[[], None]], None],
        hint: Callable[[Legendre], None],
    ) -> None:
        self._graph, self._look, self._make, self._hint = graph, look, make, hint
        self._hinted: set[Legendre] = set()
        # The grids of kinds of fields, and who waits for them.
        self._grids: dict[Hashable, str] = {}
        self._unknown: dict[Hashable, list[Callable[[str], None]]] = {}
        self._are_there: set[Weights] = set()
        self._missing: dict[Weights, list[Callable[[Weights], None]]] = {}

    def first(self, key: str, attributes: Mapping[str, Any], inputs: Sequence[int], then: Callable[[], None]) -> None:
        """Does something as soon as the weights are there that an object needs as these inputs."""
        if not any(self._targets(node) for node in self._graph.below(inputs)):
            then()
            return
        kind = tuple(str(attributes.get(word)) for word in _KIND)
        quantity = quantity_of(str(attributes.get("param", "")))

        def go(grid: str) -> None:
            self._grids[kind] = grid
            self._tell(inputs, grid)
            self._when_there({weights for node in inputs for weights in self._needed(node, grid, quantity)}, then)

        if kind in self._grids:
            go(self._grids[kind])
        elif kind in self._unknown:
            self._unknown[kind].append(go)
        else:
            self._unknown[kind] = [go]
            self._look(key, lambda grid: self._looked(kind, grid))

    def _looked(self, kind: Hashable, grid: str) -> None:
        for go in self._unknown.pop(kind):
            go(grid)

    def _targets(self, node: Node) -> list[tuple[str, bool]]:
        """The grids that a node's fields are brought to next, and whether they become winds there."""
        operations = [self._graph.nodes[child].operation for child in node.children]
        return [(one.grid, isinstance(one, Winds)) for one in operations if isinstance(one, ToGrid | Winds)]

    def _tell(self, inputs: Sequence[int], grid: str) -> None:
        """Of the Legendre functions for these inputs, if they are spectral."""
        if not grid.startswith(_TRUNCATION):
            return
        for node in self._graph.below(inputs):
            for target, is_wind in self._targets(node):
                legendre = Legendre(int(grid[1:]), _whole(target), is_wind)
                if node.operation is None and legendre not in self._hinted and legendre.target:
                    self._hinted.add(legendre)
                    self._hint(legendre)

    def _needed(self, node: int, grid: str, quantity: Quantity) -> Iterator[Weights]:
        """Which weights come up on the way from a field on this grid."""
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

    def _when_there(self, wanted: set[Weights], then: Callable[[], None]) -> None:
        self._are_there.update(filter(_is_kept, wanted - self._are_there))
        left = wanted - self._are_there
        if not left:
            then()
            return

        def made(weights: Weights) -> None:
            left.discard(weights)
            if not left:
                then()

        for weights in sorted(left):
            if weights in self._missing:
                self._missing[weights].append(made)
            else:
                self._missing[weights] = [made]
                self._make(weights, functools.partial(self._made, weights))

    def _made(self, weights: Weights) -> None:
        self._are_there.add(weights)
        for tell in self._missing.pop(weights):
            tell(weights)


def _is_kept(weights: Weights) -> bool:
    """Whether they lie on disk. If they are damaged, who reads them makes them anew."""
    try:
        return path_of(*weights).exists()
    except (OSError, ImportError):
        # Whoever needs them says what is missing.
        return True


def _between(source: str, target: str, method: Method, quantity: Quantity) -> Iterator[Weights]:
    """The weights that fields need on their way from one grid to another."""
    origin, on = named(source), named(target)
    if isinstance(origin, Grid) and isinstance(on, Grid) and not is_part(origin, on):
        origin, on = kept_as(origin, on)
        yield Weights(origin.name, on.name, method, quantity)


def _cropped(name: str, operation: Operation | None) -> str:
    """The grid behind an operation that is not one to a grid."""
    if not isinstance(operation, Crop) or not name or name.startswith(_TRUNCATION):
        return name
    on = named(name)
    assert isinstance(on, Grid)
    try:
        return operation.area(on).name
    except junctura.InvalidArgument:
        # Who does it will say what is wrong.
        return ""


def _whole(name: str) -> str:
    """Of the grid of which it is an area: Legendre functions are those of whole grids. Empty if it is none."""
    on = named(name)
    return on.whole if isinstance(on, Grid) else ""


def grid_of(obj: junctura.Object) -> str:
    """Which grid the field of an object is on, or its truncation; empty if it is on points, or cannot be told."""
    try:
        name = str(obj.attributes["grid"]) if "dtype" in obj.attributes else _grid_of_message(bytes(obj))
        on = named(name)
    except (junctura.Error, KeyError, ImportError):
        # Who decodes it will say what is wrong.
        return ""
    return "" if isinstance(on, Grid) and on.kind == "points" else on.name


def _grid_of_message(message: bytes) -> str:
    return checked_messages.decoded_as(decoding.one_field(message), message, _grid_in)


def _grid_in(message: bytes) -> str:
    with contextlib.ExitStack() as opened:
        return _Header(needed("eccodes", "products"), opened, message, {}, {}).on()


class _Header(decoding._Message):
    """A message of which only the grid is wanted: values are not decoded."""

    def on(self) -> str:
        on: Grid | Spectral | str = decoding._ON.get(self.grid_type(), decoding._listed)(self)[0]
        return on if isinstance(on, str) else on.name

    def values(self) -> npt.NDArray[np.float64]:
        return np.zeros(self.eccodes.codes_get_size(self.handle, "values"))
