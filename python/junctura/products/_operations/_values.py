"""Operations on values: formulas, units, missing values, and selection of fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from junctura._document.located_yaml import Wrong
from junctura.errors import InvalidArgument
from junctura.products import _units
from junctura.products._input.decoded_field import Field
from junctura.products._input.header_keys import STATED
from junctura.products._operations._base import (
    Operation,
    Transform,
    check_known,
    exceeds,
    grouped,
    listed,
    renamed,
)
from junctura.products._recipe.formulas import formula
from junctura.products._regrid.floats import Floats


@dataclass(frozen=True)
class Computed:
    """A field to compute: its parameter, its formula, and the unit of the result (which is not checked)."""

    param: str
    formula: str
    units: str

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters in its formula."""
        return formula(self.formula).names

    def of(self, by_param: dict[str, Field]) -> Field:
        """Computes the field from those of one place and time; other attributes are those of the first field."""
        like = next(iter(by_param.values()))
        made = renamed(like, self.param, evaluated(self.formula, by_param), self.units)
        return made.having(made.values, **_over_steps([by_param[name] for name in self.names] or [like]))


@dataclass(frozen=True)
class Compute(Operation):
    """Adds fields computed from others that differ only in their parameters; a later one may need an earlier."""

    name = "compute"
    made: tuple[Computed, ...]

    @classmethod
    def read(cls, value: dict[str, dict[str, str]]) -> Compute:
        """Its definition in a recipe."""
        made = [
            Computed(param, formula(said["formula"]).text, _units.canonical(said["units"]))
            for param, said in value.items()
        ]
        return cls(tuple(made))

    def params(self, params: tuple[str, ...]) -> tuple[str, ...]:
        for one in self.made:
            check_known(one.names, params)
            params = tuple(dict.fromkeys((*params, one.param)))
        return params

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [field for group in grouped(fields, "param").values() for field in self._with_more(group)]

    def _with_more(self, group: list[Field]) -> list[Field]:
        by_param = {field.param: field for field in group}
        for one in self.made:
            by_param[one.param] = one.of(by_param)
        return list(by_param.values())


def _over_steps(used: Sequence[Field]) -> dict[str, Any]:
    """Returns the common range of steps of the fields; results of fields with different ranges have none."""
    words = ("stepType", "stepStart")
    ranges = {tuple(field.attributes.get(word) for word in words) for field in used}
    return dict(zip(words, ranges.pop() if len(ranges) == 1 else (None, None), strict=True))


def evaluated(text: str, by_param: dict[str, Field]) -> Floats:
    """Evaluates a formula between fields, which must be on one grid; NaN if it has no value."""
    read = formula(text)
    for name in read.names:
        if name not in by_param:
            raise InvalidArgument(f"formula {text[:60]!r}", f"{name} is missing beside {', '.join(by_param)}")
    used = [by_param[name] for name in read.names]
    on = (used or list(by_param.values()))[0].grid
    for field in used:
        if field.grid != on:
            raise InvalidArgument(
                f"formula {text[:60]!r}", f"{field.param} is on {field.on.label}, {used[0].param} is on {on.label}"
            )
    values = read({field.param: field.values for field in used})
    return np.array(np.broadcast_to(values, on.shape))


def masked(where: str, by_param: dict[str, Field]) -> npt.NDArray[np.bool_]:
    """Returns where a condition between fields is true or unknown: these points become missing."""
    holds = evaluated(where, by_param)
    goes: npt.NDArray[np.bool_] = np.isnan(holds) | (holds != 0)
    return goes


@dataclass(frozen=True)
class Units(Operation):
    """Converts units: ``""`` denotes all parameters. For a spread, only the scale changes."""

    name = "units"
    to: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, value: Any) -> Units:
        """Its definition in a recipe."""
        said = value if isinstance(value, dict) else {"": value}
        return cls(tuple(sorted((param, _units.canonical(unit)) for param, unit in said.items())))

    @property
    def is_alone(self) -> bool:
        return True

    def concerns(self, param: str) -> bool:
        return self._unit(param) is not None

    def params(self, params: tuple[str, ...]) -> tuple[str, ...]:
        check_known([param for param, _ in self.to if param], params)
        return params

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [self._converted(field) for field in fields]

    def _unit(self, param: str) -> str | None:
        units = dict(self.to)
        return units.get(param, units.get(""))

    def _converted(self, field: Field) -> Field:
        unit = self._unit(field.param)
        if unit is None:
            return field
        try:
            convert = _units.conversion(field.units, unit)
        except InvalidArgument as error:
            raise InvalidArgument(f"field {field.param}", f"{error.subject}: {error.cause}") from error
        is_difference = field.attributes.get("statistic") == "spread"
        # An offset between units applies only to the first of the coefficients.
        on = field.grid if convert.shift else field.on
        said = {word: value for word, value in field.attributes.items() if word not in ("unit", "units")}
        values = convert(field.values, is_difference=is_difference)
        header = {**field.header, STATED: unit}
        return replace(field, values=values, on=on, units=unit, attributes=said, header=header)


@dataclass(frozen=True)
class Mask(Operation):
    """Masks values that satisfy a comparison with a number, or all fields where a condition between them is true."""

    name = "mask"
    comparison: str
    value: float = 0.0
    where: str = ""

    @classmethod
    def read(cls, value: dict[str, Any]) -> Mask:
        """Its definition in a recipe."""
        ((comparison, said),) = value.items()
        if comparison == "where":
            return cls("", where=formula(said).text)
        return cls(comparison, float(said))

    @property
    def is_alone(self) -> bool:
        return not self.where

    def params(self, params: tuple[str, ...]) -> tuple[str, ...]:
        if self.where:
            check_known(formula(self.where).names, params)
        return params

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        if not self.where:
            return [_without(field, exceeds(field.values, self.comparison, self.value)) for field in fields]
        return [field for group in grouped(fields, "param").values() for field in self._where(group)]

    def _where(self, group: list[Field]) -> list[Field]:
        goes = masked(self.where, {field.param: field for field in group})
        for field in group:
            if field.values.shape != goes.shape:
                raise InvalidArgument(f"field {field.param}", f"it is on {field.on.label}, the condition is not")
        return [_without(field, goes) for field in group]


def _without(field: Field, goes: Any) -> Field:
    return field.having(np.where(goes, np.nan, field.values), field.grid)


@dataclass(frozen=True)
class Fill(Operation):
    """Replaces missing values by a number."""

    name = "fill"
    value: float

    @classmethod
    def read(cls, value: float) -> Fill:
        """Its definition in a recipe."""
        return cls(float(value))

    @property
    def is_alone(self) -> bool:
        return True

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [
            field.having(np.where(np.isnan(field.values), self.value, field.values), field.grid) for field in fields
        ]


@dataclass(frozen=True)
class Keep(Operation):
    """Keeps the fields of these parameters, in their order."""

    name = "keep"
    of: tuple[str, ...]

    @classmethod
    def read(cls, value: Any) -> Keep:
        """Its definition in a recipe."""
        of = listed(value)
        if len(set(of)) < len(of):
            raise Wrong("a parameter stands there twice")
        return cls(tuple(of))

    def params(self, params: tuple[str, ...]) -> tuple[str, ...]:
        check_known(self.of, params)
        return tuple(param for param in params if param in self.of)

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [field for field in fields if field.param in self.of]
