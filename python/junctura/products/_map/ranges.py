"""Whether all maps of a recipe have one range of colors, before there is any field."""

from __future__ import annotations

from junctura.products._map.styles import style_of
from junctura.products._operations import Ensemble
from junctura.products._recipe import Recipe


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
