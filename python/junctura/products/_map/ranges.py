"""Whether all maps of a recipe have one range of colors, before there is any field; and which range all would have."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from junctura.products._field import Field
from junctura.products._map.scale import ends
from junctura.products._map.styles import style_of
from junctura.products._operations import Ensemble
from junctura.products._recipe import Recipe
from junctura.products._units import conversion


def has_range(recipe: Recipe) -> bool:
    """Whether the recipe, or the style of each field, states the range; True for other formats than maps."""
    options, words = recipe.output.options, dict(recipe.words)
    if recipe.output.format != "png" or "range" in options or "levels" in options:
        return True
    made: list[str | None] = [
        one.kind for operation in recipe.operations if isinstance(operation, Ensemble) for one in operation.of
    ]
    own = str(options.get("styles", ""))
    levels: list[float | None] = [float(level) for level in words.get("levelist", ())]
    levtypes = [str(levtype) for levtype in words.get("levtype", ("pl" if "levelist" in words else "sfc",))]
    return all(
        style_of(param, levtype, level, statistic, own=own).has_range
        for param in recipe.params
        for levtype in levtypes
        for level in levels or [None]
        for statistic in made or [None]
    )


def extremes(field: Field, units: str | None) -> tuple[float, float] | None:
    """The least and the greatest value of a map in the units of its option `range`; None without values."""
    known = field.values[np.isfinite(field.values)]
    if not known.size:
        return None
    if units is not None and units != field.units:
        is_difference = field.attributes.get("statistic") == "spread"
        known = conversion(field.units, units)(known, is_difference=is_difference)
    return float(known.min()), float(known.max())


def range_of(found: Iterable[tuple[float, float]]) -> tuple[float, float] | None:
    """Round numbers around the values of several maps; None where they have one value only, or one map has them."""
    values = np.array(list(found))
    if len(values) < 2 or values.min() == values.max():
        return None
    low, high = ends(values)
    return round(low, 12), round(high, 12)
