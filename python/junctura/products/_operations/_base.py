"""What all operations have in common."""

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
# What tells one field from another: words of MARS, and what operations have said of it.
_TELLING = (*WORDS, "statistic", "percentile", "threshold", "comparison")
# What is said of one parameter and not of another.
_OF_PARAM = ("shortName", "paramId", "cfName", "name", "units", "unit")


class Transform(Protocol):
    """What brings fields from one grid to another."""

    def to_grid(self, field: Field, on: Grid, method: Method) -> Field:
        """The field on another grid; of a spectral one, its values there."""

    def located(self, field: Field, latitude: str, longitude: str) -> Field:
        """The field with the places that fields of these parameters on its grid state; see `ToGrid`."""

    def wind(self, vo: Field, d: Field, on: Grid) -> tuple[Field, Field]:
        """Eastward and northward wind of vorticity and divergence, both spectral."""


@dataclasses.dataclass(frozen=True)
class Operation:
    """One thing that is done with fields; equal to another if and only if its `text` is."""

    name: ClassVar[str]

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:
        """The fields that come out."""
        raise NotImplementedError

    @property
    def is_alone(self) -> bool:
        """Whether it needs one field only (or, for winds, one pair), so that products can share what it makes."""
        return False

    def params(self, params: tuple[str, ...]) -> tuple[str, ...]:
        """Which parameters come out where these go in; raises `Wrong` where they cannot."""
        return params

    def concerns(self, param: str) -> bool:  # noqa: ARG002 - most concern all
        """Whether it changes fields of a parameter."""
        return True

    @lazy_property
    def text(self) -> str:
        """All about it, in one form: JSON."""
        return json.dumps({self.name: dataclasses.asdict(self)}, sort_keys=True, separators=(",", ":"))


def telling(attributes: Mapping[str, Any], *but: str) -> Key:
    """What of its attributes tells one field from another; all else, such as an area or tags, only goes with it.

    A range of steps that a field came with belongs to what its parameter means.
    """
    is_window = "stepStart" not in attributes and attributes.get("stepType", "instant") != "instant"
    words = (*_TELLING, *(["stepType"] if is_window else []))
    return Key({word: attributes[word] for word in words if word in attributes and word not in but})


def grouped(fields: Sequence[Field], *but: str) -> dict[Key, list[Field]]:
    """Fields that differ in nothing but these words, in the order in which their groups begin."""
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
    """Their values, the first dimension counts fields; raises as `check_alike`."""
    check_alike(fields)
    return np.stack([field.values for field in fields])


def combined(fields: Sequence[Field], statistics: Sequence[tuple[str, float]]) -> list[Floats]:
    """Statistics of fields, point by point, by the names and numbers of `junctura._native._ensemble`.

    They have the bits of NumPy for fields in this order. Raises as `check_alike`.
    """
    check_alike(fields)
    given = [np.ascontiguousarray(field.values, np.float64).reshape(-1) for field in fields]
    made = [np.empty(given[0].size) for _ in statistics]
    _ensemble(given, statistics, made)
    return [values.reshape(fields[0].values.shape) for values in made]


def renamed(field: Field, param: str, values: Floats, units: str) -> Field:
    """A field of another parameter at the same place and time."""
    said = {word: value for word, value in field.attributes.items() if word not in _OF_PARAM}
    return dataclasses.replace(field, values=values, units=units, attributes={**said, "param": param})


def check_known(names: Sequence[str], params: Sequence[str]) -> None:
    """Raises `Wrong` for the first name that is no parameter here."""
    for name in names:
        if name not in params:
            raise Wrong(f'"{name}" is no field here{nearest(name, params)}')


def exceeds(values: Floats, comparison: str, threshold: float) -> npt.NDArray[np.bool_]:
    """Where a comparison with a number holds; where a value is missing it does not."""
    compare = {"above": np.greater, "below": np.less, "at_least": np.greater_equal, "at_most": np.less_equal}
    holds: npt.NDArray[np.bool_] = compare[comparison](values, threshold)
    return holds


def listed(value: Any) -> list[Any]:
    """One or several, as a list."""
    return value if isinstance(value, list) else [value]
