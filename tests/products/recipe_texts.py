"""Recipes as texts, and what they are read as."""

from __future__ import annotations

from junctura._document.located_yaml import documents
from junctura.products._recipe.definitions import Recipe
from junctura.products._recipe.reading import recipe_of


def recipe(text: str) -> Recipe:
    """The only recipe of a text."""
    (document,) = documents(text.encode(), "dir/t.yaml")
    return recipe_of(document)


def asked(
    to: str = "format: grib2, name: 'x_{step}_{number}_{levelist}'",
    do: str = "",
    fields: str = "param: t, levelist: 850, step: 0/6/12, number: 1/2",
) -> Recipe:
    """A recipe of four lines."""
    return recipe(f"product: p\nfrom: {{{fields}}}\ndo: [{do}]\nto: {{{to}}}\n")
