"""The common base of all operations."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from junctura._document.located_yaml import Wrong, nearest
from junctura._forks import lazy_property
from junctura._native import _ensemble
from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._recipe.mars_words import Key
from junctura.products._recipe.recipe_schema import WORDS
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid

Method = Literal["linear", "bilinear", "nearest", "conservative"]
# Attributes that identify a field: MARS words, and those that operations have added.
_TELLING = (*WORDS, "statistic", "percentile", "threshold", "comparison")
# Attributes of one parameter, not of another.
_OF_PARAM = ("shortName", "paramId", "cfName", "name", "units", "unit")


class Transform(Protocol):
    """Regrids fields."""

    def to_grid(self, field: Field, on: Grid, method: Method) -> Field:
        """Returns the field on another grid; for a spectral field, its values there."""

    def located(self, field: Field, latitude: str, longitude: str) -> Field:
        """Returns the field with the coordinates in fields of these parameters on its grid; see `ToGrid`."""

    def wind(self, vo: Field, d: Field, on: Grid) -> tuple[Field, Field]:
        """Returns eastward and northward wind from vorticity and divergence, both spectral."""


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation on fields; equal to another if and only if its `text` is."""

    name: ClassVar[str]

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:
        """Returns the resulting fields."""
        raise NotImplementedError

    @property
    def is_alone(self) -> bool:
        """Whether it needs a single field (or, for winds, a pair), so that products can share its results."""
        return False

    def params(self, params: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the resulting parameters for these parameters; raises `Wrong` if there are none."""
        return params

    def concerns(self, param: str) -> bool:  # noqa: ARG002 - most concern all
        """Whether it changes fields of a parameter."""
        return True

    @lazy_property
    def text(self) -> str:
        """Its complete definition, in a canonical form: JSON."""
        return json.dumps({self.name: dataclasses.asdict(self)}, sort_keys=True, separators=(",", ":"))


def telling(attributes: Mapping[str, Any], *but: str) -> Key:
    """Returns the attributes that identify a field; others, such as an area or tags, are only passed on.

    The range of steps of a received field belongs to the definition of its parameter.
    """
    is_window = "stepStart" not in attributes and attributes.get("stepType", "instant") != "instant"
    words = (*_TELLING, *(["stepType"] if is_window else []))
    return Key({word: attributes[word] for word in words if word in attributes and word not in but})


def grouped(fields: Sequence[Field], *but: str) -> dict[Key, list[Field]]:
    """Returns groups of fields that differ only in these words, in the order of their first fields."""
    groups: dict[Key, list[Field]] = {}
    for field in fields:
        groups.setdefault(telling(field.attributes, *but), []).append(field)
    return groups


def check_alike(fields: Sequence[Field]) -> None:
    """Raises `InvalidArgument` if they are not on one grid, or not of one unit."""
    first = fields[0]
    for field in fields:
        if field.grid != first.grid:
            raise InvalidArgument(f"field {field.param}", f"it is on {field.on.label}, others are on {first.on.label}")
        if field.units != first.units:
            raise InvalidArgument(f"field {field.param}", f"it is in {field.units}, others are in {first.units}")


def stacked(fields: Sequence[Field]) -> Floats:
    """Returns their values with the fields as first dimension; raises as `check_alike`."""
    check_alike(fields)
    return np.stack([field.values for field in fields])


def combined(fields: Sequence[Field], statistics: Sequence[tuple[str, float]]) -> list[Floats]:
    """Returns pointwise statistics of fields, by the names and numbers of `junctura._native._ensemble`.

    The results have the same bits as NumPy's for fields in this order. Raises as `check_alike`.
    """
    check_alike(fields)
    given = [np.ascontiguousarray(field.values, np.float64).reshape(-1) for field in fields]
    made = [np.empty(given[0].size) for _ in statistics]
    _ensemble(given, statistics, made)
    return [values.reshape(fields[0].values.shape) for values in made]


def renamed(field: Field, param: str, values: Floats, units: str) -> Field:
    """Returns a field of another parameter at the same place and time."""
    said = {word: value for word, value in field.attributes.items() if word not in _OF_PARAM}
    return dataclasses.replace(field, values=values, units=units, attributes={**said, "param": param})


def check_known(names: Sequence[str], params: Sequence[str]) -> None:
    """Raises `Wrong` for the first name that is not one of these parameters."""
    for name in names:
        if name not in params:
            raise Wrong(f'"{name}" is no field here{nearest(name, params)}')


def exceeds(values: Floats, comparison: str, threshold: float) -> npt.NDArray[np.bool_]:
    """Returns where a comparison with a number is true; it is false for missing values."""
    compare = {"above": np.greater, "below": np.less, "at_least": np.greater_equal, "at_most": np.less_equal}
    holds: npt.NDArray[np.bool_] = compare[comparison](values, threshold)
    return holds


def listed(value: Any) -> list[Any]:
    """Returns one or several values as a list."""
    return value if isinstance(value, list) else [value]
