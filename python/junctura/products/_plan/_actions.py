"""Actions of a plan; each action takes a field, and returns none, one or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from junctura._document.located_yaml import Wrong, at
from junctura.errors import Corrupt, InvalidArgument, Unsupported
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import Operation, masked
from junctura.products._outputs import Output
from junctura.products._outputs.grib2 import made
from junctura.products._plan._item import Item
from junctura.products._recipe.file_names import Template
from junctura.products._recipe.mars_words import Value, of_object
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid, grid
from junctura.products._regrid.interpolate import to_grid
from junctura.products._workers.make_product import FieldTransforms


class Action(Protocol):
    """An operation on every field."""

    @property
    def is_unsettled(self) -> bool:
        """Whether fields that it has taken would be lost if the program were killed now."""

    def settle(self) -> None:
        """Makes the fields persistent; raises an error if that fails."""

    def take(self, item: Item) -> Sequence[Item]:
        """Returns the results for a field."""

    def end(self) -> Sequence[Item]:
        """Returns the remaining results when the sources have ended."""


class Each:
    """The common base of most actions: they keep no fields back."""

    @property
    def is_unsettled(self) -> bool:
        return False

    def settle(self) -> None:
        """Does nothing."""

    def take(self, item: Item) -> Sequence[Item]:
        raise NotImplementedError

    def end(self) -> Sequence[Item]:
        return []


class Select(Each):
    """Passes the fields that have one of the given values for each word."""

    def __init__(self, words: Mapping[str, tuple[Value, ...]]) -> None:
        self.words = {word: frozenset(values) for word, values in words.items()}

    def take(self, item: Item) -> Sequence[Item]:
        return [item] if all(self._has(item, word) for word in self.words) else []

    def _has(self, item: Item, word: str) -> bool:
        try:
            return of_object(word, item.attributes) in self.words[word]
        except (KeyError, Wrong):
            return False


class Set(Each):
    """Changes attributes of fields; a message is not encoded again: `encode` does that."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.attributes = dict(attributes)

    def take(self, item: Item) -> Sequence[Item]:
        return [item.saying(self.attributes)]


class Aggregate(Each):
    """Assembles one field from the pieces that the ranks of a model have offered.

    Parameters
    ----------
    on
        The grid of the whole array.
    units
        Units of its values.
    missing
        The value of missing points.
    mask
        Points that are always missing.
    from_south
        Whether the array begins with the southernmost row.

    """

    def __init__(
        self,
        on: Grid,
        units: str = "",
        missing: float | None = None,
        mask: npt.NDArray[np.bool_] | None = None,
        *,
        from_south: bool = False,
    ) -> None:
        if from_south and not on.is_regular:
            raise Wrong(f"from_south: {on.name} has no rows of equal length")
        self.on, self.units, self.mask, self.from_south = on, units, mask, from_south
        self.missing = missing

    def take(self, item: Item) -> Sequence[Item]:
        if not item.is_in_pieces or item.source is None or item.pool is None:
            return [item]
        kind = item.kind
        if kind.kind not in "fiub":
            raise InvalidArgument(item.named, f"its elements are {kind}, and a field has real numbers")
        # The copy converts single precision to double.
        as_it_comes = None if kind.itemsize < 4 or kind.kind != "f" else "f8"
        whole = item.pool.demand_array(item.source.key, dtype=as_it_comes, timeout=0).astype(np.float64, copy=False)
        if whole.size != self.on.size:
            raise InvalidArgument(item.named, f"{whole.size} values, but the grid {self.on.name} has {self.on.size}")
        field = Field(self._on_grid(whole.reshape(self.on.shape), kind), self.on, item.attributes, self.units)
        return [Item(item.attributes, field=field)]

    def _on_grid(self, values: Floats, kind: np.dtype[Any]) -> Floats:
        """Returns the rows in the order of the grid, with gaps."""
        if self.from_south:
            values = np.ascontiguousarray(values[::-1])
        if self.missing is not None:
            with np.errstate(over="ignore"):
                # A model in single precision has the nearest single-precision number there.
                missing = float(kind.type(self.missing)) if kind.kind == "f" else self.missing
            values[values == missing] = np.nan
        if self.mask is not None:
            values[self.mask] = np.nan
        return values


class Do(Each):
    """An operation of products: `grid`, `crop`, `units`, `mask`, ... on each field alone."""

    def __init__(self, operation: Operation) -> None:
        self.operation, self.transforms = operation, FieldTransforms()

    def take(self, item: Item) -> Sequence[Item]:
        if not self.operation.concerns(item.field.param):
            return [item]
        return [item.of(field) for field in self.operation([item.field], self.transforms)]


class Encode(Each):
    """Encodes each field as a GRIB message."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def take(self, item: Item) -> Sequence[Item]:
        field = item.field
        message = made([field], self.output)
        return [Item(item.attributes, field=field, message=message)]


class Print(Each):
    """Decides which fields pass."""

    def __init__(self, text: str) -> None:
        self.template = Template(text)

    def take(self, item: Item) -> Sequence[Item]:
        print(self.template.fill(item.attributes), flush=True)
        return [item]


def whole_grid(name: str) -> Grid:
    """A grid that an array may have."""
    found = grid(name)
    if not isinstance(found, Grid):
        raise Wrong(f'"{name}" is spectral, and arrays lie on grids')
    return found


def mask_of(file: Path, where: str, on: Grid) -> npt.NDArray[np.bool_]:
    """The points of a grid at which a condition on the field in a file is true; land, for example, of a land-sea mask.

    Raises
    ------
    Wrong
        The file is not a message with one field, or has a different grid, which does not contain this one as an area.

    """
    with at("file"):
        field = _field_in(file)
        if field.on.name not in (on.name, on.name.partition("@")[0]):
            raise Wrong(f"{file.name} is on {field.on.name}, and the array on {on.name}")
    with at("where"):
        return masked(where, {field.param: to_grid(field, on)})


def _field_in(file: Path) -> Field:
    try:
        return decode(file.read_bytes())
    except OSError as error:
        raise Wrong(f"{file}: {error.strerror}") from error
    except (Corrupt, Unsupported) as error:
        raise Wrong(f"{file}: {error.subject}: {error.cause}") from error
