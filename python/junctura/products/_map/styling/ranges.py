"""Whether all maps of a recipe have one color range, before any field exists; and the common range of several maps.

Also checks whether a range without units is in those of the style, and not in those of the field. Data shared by all
maps of a recipe are computed here before workers are forked, which would compute them again: lines as pixels, and the
source values of each pixel.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._map.styling.scale import ends
from junctura.products._map.styling.styles import Style, can_convert, style_of
from junctura.products._operations import Compute, Crop, Ensemble, ToGrid, Units, Winds
from junctura.products._outputs._output import Output
from junctura.products._outputs._parameters import units_of
from junctura.products._recipe.definitions import Recipe
from junctura.products._recipe.mars_words import Value
from junctura.products._regrid.grids import Grid
from junctura.products._units import conversion, unit

# A range is taken to be in other units if little of the range is within the values of the field, and much within the
# style's range.
_BESIDE, _WITHIN = 0.05, 0.5


def has_range(recipe: Recipe) -> bool:
    """Whether the recipe, or the style of each field, has a range; True for formats other than maps."""
    options = recipe.output.options
    if recipe.output.format != "png" or "range" in options or "levels" in options:
        return True
    return all(style.has_range for _, _, _, style in _styles(recipe))


def doubts(recipe: Recipe) -> list[str]:
    """Returns a hint for a range without units that has few values of a field in its units, but many in its style's."""
    options = recipe.output.options
    key = "range" if "range" in options else "levels"
    stated = options.get(key)
    if recipe.output.format != "png" or not stated or "units" in options:
        return []
    low, high = float(stated[0]), float(stated[-1])
    found: list[str] = []
    for param, levtype, statistic, style in _styles(recipe):
        ends, wanted = style.ends, style.units
        if statistic == "probability" or ends is None or not wanted or _share(low, high, ends) <= _WITHIN:
            continue
        shown = unit(wanted)
        if shown.factor == 1 and shown.offset == 0:
            # GRIB has the units of the SI. To ask ecCodes for them takes 0.4 s.
            continue
        units = _units(recipe, param, levtype)
        if not units or not can_convert(wanted, units):
            continue
        to = conversion(wanted, units)(np.array(ends), is_difference=statistic == "spread")
        if _share(low, high, (float(to[0]), float(to[1]))) < _BESIDE:
            found.append(
                f"{key} from {low:g} to {high:g} is in {units}, the units of {param}, which has hardly such values; "
                f"write units: {wanted} beside it if it is in {wanted}"
            )
    return list(dict.fromkeys(found))


def unfit_units(recipe: Recipe) -> list[str]:
    """Returns a hint for each unit to which a parameter cannot be converted, if fields have the units of ecCodes."""
    units = {param: units_of(param) for param in map(str, dict(recipe.words)["param"])}
    found: list[str] = []
    for operation in recipe.operations:
        if isinstance(operation, Winds):
            units = {}
        elif isinstance(operation, Compute):
            units |= {one.param: one.units for one in operation.made}
        elif isinstance(operation, Ensemble) and any(one.kind == "probability" for one in operation.of):
            units = {}
        elif isinstance(operation, Units):
            for param in filter(operation.concerns, units):
                to = dict(operation.to).get(param) or dict(operation.to)[""]
                found += _unfit(param, units[param], to)
                units[param] = to
    for param in filter(units.__contains__, recipe.params):
        found += _unfit(param, units[param], _written_units(recipe, param))
    return found


def _written_units(recipe: Recipe, param: str) -> str:
    """Returns the units that the format or its option states; empty if values keep theirs."""
    return units_of(param) if recipe.output.format == "grib2" else str(recipe.output.options.get("units", ""))


def _unfit(param: str, units: str, to: str) -> list[str]:
    try:
        if units and to and units != to:
            conversion(units, to)
    except InvalidArgument as error:
        return [f"{param} cannot be converted to {to}: {error.cause}"]
    return []


def _share(low: float, high: float, ends: tuple[float, float]) -> float:
    """Returns the fraction of one range within another."""
    return max(0.0, min(high, ends[1]) - max(low, ends[0])) / (high - low)


def _styles(recipe: Recipe) -> Iterator[tuple[str, str, str | None, Style]]:
    """Parameter, kind of level, statistic and style of all fields that maps are made of."""
    words = dict(recipe.words)
    made: list[str | None] = [
        one.kind for operation in recipe.operations if isinstance(operation, Ensemble) for one in operation.of
    ]
    own = str(recipe.output.options.get("styles", ""))
    levels: list[float | None] = [float(level) for level in words.get("levelist", ())]
    levtypes = [str(levtype) for levtype in words.get("levtype", ("pl" if "levelist" in words else "sfc",))]
    for param in recipe.params:
        for levtype in levtypes:
            for level in levels or [None]:
                for statistic in made or [None]:
                    yield param, levtype, statistic, style_of(param, levtype, level, statistic, own=own)


def _units(recipe: Recipe, param: str, levtype: str) -> str:
    """The units of a field when its map is made, as far as the recipe and ecCodes state them."""
    for operation in reversed(recipe.operations):
        if isinstance(operation, Units) and operation.concerns(param):
            return dict(operation.to).get(param) or dict(operation.to)[""]
        if isinstance(operation, Compute) and (units := {one.param: one.units for one in operation.made}.get(param)):
            return units
    return units_of(param, levtype)


def extremes(field: Field, units: str | None) -> tuple[float, float] | None:
    """Returns the minimum and maximum of a map in the units of its option `range`; None without values."""
    known = field.values[np.isfinite(field.values)]
    if not known.size:
        return None
    if units is not None and units != field.units:
        is_difference = field.attributes.get("statistic") == "spread"
        known = conversion(field.units, units)(known, is_difference=is_difference)
    return float(known.min()), float(known.max())


def range_of(found: Iterable[tuple[float, float]]) -> tuple[float, float] | None:
    """Returns a rounded range of several maps; None if they have a single value, or there is a single map."""
    values = np.array(list(found))
    if len(values) < 2 or values.min() == values.max():
        return None
    low, high = ends(values)
    return round(low, 12), round(high, 12)


def prepare(recipes: Iterable[Recipe]) -> None:
    """Computes the shared data of map recipes. Data that are not known yet are computed with the first map."""
    for recipe in recipes:
        if recipe.output.format == "png":
            with contextlib.suppress(Exception):
                _prepare(recipe)


def _prepare(recipe: Recipe) -> None:
    from junctura.products._map.picture import prepare as prepare_map

    on = _grid_of(recipe)
    if on is not None:
        prepare_map(_field(recipe, on), Output("png", **recipe.output.options))


def _grid_of(recipe: Recipe) -> Grid | None:
    on: Grid | None = None
    for operation in recipe.operations:
        if isinstance(operation, ToGrid | Winds):
            on = operation.on
        elif isinstance(operation, Crop) and on is not None:
            on = operation.area(on)
    return on


def _field(recipe: Recipe, on: Grid) -> Field:
    """Returns a field as in the recipe, with plausible values."""
    words: dict[str, tuple[Value, ...]] = dict(recipe.words)
    said: dict[str, Any] = {word: words[word][0] for word in ("levtype", "levelist") if word in words}
    said |= {"param": str(recipe.params[0]), "date": "20000101", "time": "00:00", "step": 0}
    for operation in recipe.operations:
        if isinstance(operation, Ensemble):
            one = operation.of[0]
            said |= {"statistic": one.kind, "members": 1, "percentile": int(one.value), "threshold": one.value}
    values = np.broadcast_to(np.linspace(0, 1, on.shape[-1]), on.shape)
    units = units_of(said["param"], said.get("levtype"))
    return Field(np.ascontiguousarray(values), on, said, units)
