"""What a plan does with fields on their way; each action takes a field, and gives none, one or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from junctura._yaml import Wrong
from junctura.errors import InvalidArgument
from junctura.products._field import Field
from junctura.products._grid import Grid, grid
from junctura.products._make import Transforms
from junctura.products._names import Template
from junctura.products._operations import Operation
from junctura.products._outputs import Output
from junctura.products._outputs.grib2 import made
from junctura.products._plan._item import Item
from junctura.products._words import Value, canonical


class Action(Protocol):
    """One thing that is done with every field."""

    @property
    def is_unsettled(self) -> bool:
        """Whether what it has taken would be lost if the program were killed now."""

    def settle(self) -> None:
        """Makes it last; raises where that cannot be."""

    def take(self, item: Item) -> Sequence[Item]:
        """What goes on of a field."""

    def end(self) -> Sequence[Item]:
        """What still goes on when nothing more comes."""


class Each:
    """What most actions have in common: they keep nothing back."""

    @property
    def is_unsettled(self) -> bool:
        return False

    def settle(self) -> None:
        """There is nothing to be done."""

    def take(self, item: Item) -> Sequence[Item]:
        raise NotImplementedError

    def end(self) -> Sequence[Item]:
        return []


class Select(Each):
    """Lets fields pass that have one of these values of each word."""

    def __init__(self, words: Mapping[str, tuple[Value, ...]]) -> None:
        self.words = {word: frozenset(values) for word, values in words.items()}

    def take(self, item: Item) -> Sequence[Item]:
        return [item] if all(self._has(item, word) for word in self.words) else []

    def _has(self, item: Item, word: str) -> bool:
        try:
            return canonical(word, item.attributes[word]) in self.words[word]
        except (KeyError, Wrong):
            return False


class Set(Each):
    """Gives fields other attributes; a message is not made anew for that: `encode` does it."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.attributes = dict(attributes)

    def take(self, item: Item) -> Sequence[Item]:
        return [item.saying(self.attributes)]


class Aggregate(Each):
    """Makes one field of the pieces that the ranks of a model have offered.

    Parameters
    ----------
    on
        The grid of the whole array.
    units
        Of its values.
    missing
        The value that stands for missing ones.

    """

    def __init__(self, on: Grid, units: str, missing: float | None) -> None:
        self.on, self.units, self.missing = on, units, missing

    def take(self, item: Item) -> Sequence[Item]:
        if not item.is_in_pieces or item.source is None or item.pool is None:
            return [item]
        whole = item.pool.demand_array(item.source.key, dtype="f8", timeout=0)
        if whole.size != self.on.size:
            raise InvalidArgument(item.named, f"{whole.size} values, but the grid {self.on.name} has {self.on.size}")
        if self.missing is not None:
            whole[whole == self.missing] = np.nan
        field = Field(whole.reshape(self.on.shape), self.on, item.attributes, self.units)
        return [Item(item.attributes, field=field)]


class Do(Each):
    """An operation of products: `grid`, `crop`, `units`, `mask`, ... on each field alone."""

    def __init__(self, operation: Operation) -> None:
        self.operation, self.transforms = operation, Transforms()

    def take(self, item: Item) -> Sequence[Item]:
        if not self.operation.concerns(item.field.param):
            return [item]
        return [item.of(field) for field in self.operation([item.field], self.transforms)]


class Encode(Each):
    """Makes a message of GRIB of each field."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def take(self, item: Item) -> Sequence[Item]:
        field = item.field
        message = made([field], self.output)
        return [Item(item.attributes, field=field, message=message)]


class Print(Each):
    """Says which fields pass."""

    def __init__(self, text: str) -> None:
        self.template = Template(text)

    def take(self, item: Item) -> Sequence[Item]:
        print(self.template.fill(item.attributes), flush=True)
        return [item]


def whole_grid(name: str) -> Grid:
    """A grid on which an array may lie."""
    found = grid(name)
    if not isinstance(found, Grid):
        raise Wrong(f'"{name}" is spectral, and arrays lie on grids')
    return found
