"""Static checks of a plan: the known properties of fields at each position, to reject plans that can only fail.

A strict check, as that of ``--check``, asks ecCodes besides: messages have its parameters and its units. A run does
not, since that takes 0.4 s, and since a pool may contain fields with other names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from junctura._document.located_yaml import Wrong, at
from junctura.errors import InvalidArgument
from junctura.products import _units
from junctura.products._operations import Compute, Mask, Turn, Winds
from junctura.products._outputs._parameters import is_known, meant, units_of
from junctura.products._recipe.definitions import Recipe
from junctura.products._recipe.formulas import formula
from junctura.products._recipe.mars_words import number_of, values

# Units of parameters that are not powers of other units.
_OTHERS = ("psu", "degree", "degrees", "degree true", "mol", "sr", "dbz", "du", "dobson", "bq")
# Actions that change the values of every field, so that the received message is obsolete.
_MAKES_VALUES = ("grid", "wind", "crop", "mask", "fill", "statistics")
_OF_WINDS = {"vo": "u", "d": "v"}
_WIND_UNITS = "m s**-1"


@dataclass(frozen=True)
class Known:
    """The known properties of all fields that pass.

    Attributes
    ----------
    are_values
        Whether the fields have values only, and no messages.
    are_arrays
        Whether they are assembled from arrays in pieces, whose parameter is determined by a name only.
    units
        Units of all fields; empty if unknown.
    by_param
        Units of some parameters, instead of `units`.
    params
        Their parameters; None if unknown.
    named
        Parameters that the plan itself gives to fields.
    is_strict
        Whether everything is rejected that messages of ecCodes' parameters cannot pass.
    are_named_freely
        Whether fields may have names that ecCodes does not know: arrays, and results of functions.

    """

    are_values: bool = False
    are_arrays: bool = False
    units: str = ""
    by_param: Mapping[str, str] = field(default_factory=dict)
    params: tuple[str, ...] | None = None
    named: frozenset[str] = frozenset()
    is_strict: bool = False
    are_named_freely: bool = False

    def of(self, params: Sequence[str]) -> Known:
        """Returns the known properties of the fields that have one of these parameters.

        Raises
        ------
        Wrong
            There is no such field.

        """
        if not self.is_strict or self.params is None or any(number_of(param) for param in (*params, *self.params)):
            self._check_names(params)
            return replace(self, params=tuple(params))
        left = tuple(param for param in params if param in self.params)
        if not left:
            raise Wrong(f"no field here is {_listed(params, 'or')}: those that come are {_listed(self.params, 'and')}")
        self._check_names(left)
        return replace(self, params=left)

    def behind(self, name: str, value: Any) -> Known:
        """Returns the known properties of the results of an action.

        Raises
        ------
        Wrong
            No field can pass it.

        """
        change = _CHANGES.get(name)
        made = self if change is None else change(self, value)
        return replace(made, are_values=True) if name in _MAKES_VALUES else made

    def check_sink(self, name: str, value: Any, recipes: Iterable[Recipe] = ()) -> None:
        """Rejects a sink that accepts none of the fields.

        Parameters
        ----------
        name, value
            The sink.
        recipes
            The recipes that it names.

        """
        if name == "archive" and self.are_values:
            raise Wrong("a store keeps messages, and these are values: write `encode` before it")
        if name == "archive" and "select" in value and "param" in value["select"]:
            with at("select", "param"):
                self.of(_params(value["select"]))
        if name == "file" and value["format"] == "grib2":
            self._check_grib()
        if name == "file" and "units" in value:
            with at("units"):
                self._converted(value["units"])
        for recipe in recipes:
            self._check_inputs(recipe)

    def _selected(self, value: dict[str, Any]) -> Known:
        if "param" not in value:
            return self
        with at("param"):
            return self.of(_params(value))

    def _aggregated(self, value: dict[str, Any]) -> Known:
        return replace(self, are_values=True, are_arrays=True, units=value.get("units", ""), by_param={})

    def _set(self, value: dict[str, Any]) -> Known:
        if not {"param", "paramId", "units"} & value.keys():
            return self
        # A number identifies the parameter regardless of its name.
        params = (str(value["param"]),) if "param" in value and "paramId" not in value else None
        named = self.named | set(params or ())
        units = str(value.get("units", self.units))
        return replace(self, params=params, named=named, units=units, are_named_freely=True)

    def _computed(self, value: dict[str, dict[str, str]]) -> Known:
        if self.is_strict and self.params is not None:
            Compute.read(value).params(self.params)
        units = {param: one["units"] for param, one in value.items()}
        params = None if self.params is None else tuple(dict.fromkeys((*self.params, *value)))
        return replace(self, params=params, named=self.named | value.keys(), by_param={**self.by_param, **units})

    def _masked(self, value: dict[str, Any]) -> Known:
        if not self.is_strict or self.params is None or "where" not in value:
            return self
        Mask.read(value).params(self.params)
        for param in self.params:
            if others := [name for name in formula(value["where"]).names if name != param]:
                cause = f"a plan masks each field alone, and a field of {param} has no {others[0]}"
                raise Wrong(f"{cause}: write select: {{param: {others[0]}}} before it, or `mask` in a recipe", "where")
        return self

    def _with_winds(self, value: dict[str, Any]) -> Known:
        if self.params is None:
            return self
        if self.is_strict and not _OF_WINDS.keys() & set(self.params):
            Turn().params(self.params)
        elif self.is_strict:
            Winds("").params(self.params)
            if "grid" not in value:
                raise Wrong("on which grid? write wind: {grid: 0.5/0.5}")
        made = {wind: _WIND_UNITS for param, wind in _OF_WINDS.items() if param in self.params}
        params = tuple(_OF_WINDS.get(param, param) for param in self.params)
        return replace(self, params=params, by_param={**self.by_param, **made})

    def _converted(self, value: Any) -> Known:
        if not isinstance(value, dict):
            if self.are_arrays and self.is_strict and not self.units and not self.by_param:
                raise Wrong("these arrays have no units to convert from: write aggregate: {units: ...}")
            if self.are_arrays and self.units:
                self._check_unit(self.units)
                _convertible(self.units, value)
            for param in (self.params or ()) if self.is_strict else ():
                if known := self._unit(param):
                    _convertible(known, value, f"{param}: ")
            return replace(self, are_values=True, units=value, by_param={})
        for param, units in value.items():
            with at(param):
                if self.is_strict and self.params is not None and param not in self.params:
                    raise Wrong(f"no field here is {param}: those that come are {_listed(self.params, 'and')}")
                if (self.is_strict or self.are_arrays) and (known := self._unit(param)):
                    _convertible(known, units, f"{param}: ")
        return replace(self, by_param={**self.by_param, **value})

    def _unit(self, param: str) -> str:
        """Returns the unit of a parameter at this position; empty if unknown."""
        stated = self.by_param.get(param, self.units)
        return stated or ("" if self.are_arrays or param in self.named else units_of(param))

    def _check_names(self, params: Sequence[str]) -> None:
        if not self.is_strict or self.are_named_freely:
            return
        for param in params:
            if param not in self.named and not is_known(param):
                raise Wrong(f'ecCodes knows no parameter "{param}"{meant(param)}; write its short name or its paramId')

    def _encoded(self, _value: Any) -> Known:
        self._check_grib()
        return replace(self, are_values=False)

    def _check_grib(self) -> None:
        """Whether fields have all that a message needs: a parameter, where only a name determines it, and units."""
        for param in self.params or ():
            if self.are_arrays or (self.is_strict and param in self.named):
                if not is_known(param):
                    hint = "give its number: set: {paramId: ...}"
                    raise Wrong(f'ecCodes knows no parameter "{param}", and a message needs one that it knows: {hint}')
                units, known = self._unit(param), units_of(param)
                if units and known and units != known:
                    self._check_unit(units)
                    _convertible(units, known, f"{param}: " if self.is_strict else "")
        if self.are_arrays and self.units and self.params is None:
            self._check_unit(self.units)

    def _check_unit(self, units: str) -> None:
        if units.lower() not in _OTHERS:
            _convertible(units, units)

    def _check_inputs(self, recipe: Recipe) -> None:
        """Rejects a recipe that needs a parameter which no field has."""
        if not self.is_strict or self.params is None:
            return
        needed = [str(param) for param in dict(recipe.words)["param"]]
        if not any(number_of(param) for param in (*needed, *self.params)) and (absent := set(needed) - {*self.params}):
            there = _listed(self.params, "and")
            raise Wrong(
                f"{recipe.product} needs {_listed(sorted(absent), 'and')}, and the fields that come are {there}"
            )


_CHANGES: dict[str, Callable[[Known, Any], Known]] = {
    "select": Known._selected,
    "aggregate": Known._aggregated,
    "set": Known._set,
    "compute": Known._computed,
    "mask": Known._masked,
    "wind": Known._with_winds,
    "units": Known._converted,
    "encode": Known._encoded,
    # The results of a function are unknown.
    "python": lambda known, _: Known(is_strict=known.is_strict, are_named_freely=True),
}


def _params(words: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, values("param", words["param"])))


def _listed(params: Sequence[str], joint: str) -> str:
    *others, last = params
    return f"{', '.join(others)} {joint} {last}" if others else last


def _convertible(source: str, target: str, what: str = "") -> None:
    try:
        _units.conversion(source, target)
    except InvalidArgument as error:
        raise Wrong(f"{what}{error.subject}: {error.cause}") from None
