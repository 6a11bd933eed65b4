"""Makes one product: the remaining operations on its fields, and the file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._input.grid_coordinates import located_by
from junctura.products._map.styling.ranges import extremes, has_range
from junctura.products._operations import Ensemble, Transform
from junctura.products._outputs import Output, is_made, write
from junctura.products._outputs._meaning import SPREAD
from junctura.products._outputs._output import Format
from junctura.products._recipe.definitions import OPEN_WORDS, Recipe, Wanted
from junctura.products._recipe.file_names import Template
from junctura.products._regrid.grids import Grid
from junctura.products._regrid.harmonics import wind
from junctura.products._regrid.interpolate import to_grid
from junctura.products._regrid.weight_matrices import Method

# Slow products let quick ones pass whose inputs arrived up to this many seconds later: images, and sorting of members.
_SLOW_S = {"png": 1.0, "zarr": 1.0}
_USUAL_S, _SORTED_S = 0.01, 0.1
# Fields of latitudes and longitudes, of two grids.
_PLACES_KEPT = 4


class BuiltFile(NamedTuple):
    """A product that was made."""

    path: Path
    nbytes: int
    words: dict[str, Any]
    """Attributes common to its fields that the recipe need not have: ``date``, ``time``, ``class``, ..."""
    extremes: tuple[float, float] | None = None
    """Minimum and maximum of a map with its own range."""


class FieldTransforms:
    """Regrids fields in this process, for `Operation`.

    Parameters
    ----------
    find
        Returns the fields of a parameter, for the coordinates of unstructured grids; by default there are none.

    """

    def __init__(self, find: Callable[[str], Iterable[Field]] | None = None) -> None:
        self._find = find
        # The most recently requested grids and parameters.
        self._places: dict[tuple[str, str], Field] = {}

    def located(self, field: Field, latitude: str, longitude: str) -> Field:
        if field.grid.is_located:
            return field
        return located_by(field, *(self._places_of(field, param) for param in (latitude, longitude)))

    def _places_of(self, field: Field, param: str) -> Field:
        wanted = (field.grid.name, param)
        if wanted not in self._places:
            found = () if self._find is None else self._find(param)
            one = next((one for one in found if one.on == field.on), None)
            if one is None:
                where = "in the pool: offer it before" if self._find else "here: name a file of coordinates"
                raise InvalidArgument(f"field {field.param}", f"no field {param} on its grid is {where}")
            while len(self._places) >= _PLACES_KEPT:
                del self._places[next(iter(self._places))]
            self._places[wanted] = one
        return self._places[wanted]

    def to_grid(self, field: Field, on: Grid, method: str) -> Field:
        return to_grid(field, on, cast("Method", method))

    def wind(self, vo: Field, d: Field, on: Grid) -> tuple[Field, Field]:
        return wind(vo, d, on)


def patience_s(wanted: Wanted) -> float:
    """Returns the delay in seconds by which the inputs of another product may be later and still be processed first."""
    is_sorted = any(isinstance(operation, Ensemble) for operation in wanted.rest)
    return _SLOW_S.get(wanted.recipe.output.format, _SORTED_S if is_sorted else _USUAL_S)


def is_quick(wanted: Wanted) -> bool:
    """Whether the worker that decodes its last input may make it at once: urgent work does not wait long."""
    return patience_s(wanted) <= _SORTED_S


def is_there(wanted: Wanted, out: Path) -> bool:
    """Whether the product exists, made from the same recipe.

    The forecast run of an existing product is known in advance only if the recipe has a date and a time.
    """
    if not {"date", "time"} <= dict(wanted.recipe.words).keys() or not is_named(wanted):
        return False
    return is_made(out / wanted.name(), fingerprint(wanted))


def is_named(wanted: Wanted) -> bool:
    """Whether the complete file name is known before the fields arrive."""
    return set(Template(wanted.recipe.output.name).words) <= set(wanted.attributes)


def fingerprint(wanted: Wanted) -> str:
    """Returns the digest of a product's definition: its recipe, and the position of its file."""
    return hashlib.sha256(f"{wanted.recipe.fingerprint} {wanted.attributes}".encode()).hexdigest()


def make(
    wanted: Wanted,
    fields: Sequence[Field],
    transform: Transform,
    out: Path,
    sources: Sequence[tuple[str, str]],
) -> BuiltFile:
    """Makes a product.

    Parameters
    ----------
    wanted
        The product.
    fields
        Its fields, after the shared operations.
    transform
        Regrids fields.
    out
        The directory of all products.
    sources
        Keys and versions of the inputs.

    """
    known = {word: fields[0].attributes[word] for word in OPEN_WORDS if word in fields[0].attributes}
    left = list(fields)
    for operation in wanted.rest:
        left = operation(left, transform)
    output = Output(cast("Format", wanted.recipe.output.format), **wanted.options(**known))
    path = out / wanted.name(**known)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = write(left, output, path, _provenance(wanted, sources))
    has_own_range = output.format == "png" and not has_range(wanted.recipe)
    return BuiltFile(path, written.bytes, known, extremes(left[0], output.units) if has_own_range else None)


def _formulas(recipe: Recipe) -> dict[str, Any]:
    """Returns the statistics with differing definitions elsewhere; GRIB cannot encode the definition."""
    ensembles = [operation for operation in recipe.operations if isinstance(operation, Ensemble)]
    has_spread = any(one.kind == "spread" for operation in ensembles for one in operation.of)
    return {"formulas": {"spread": SPREAD}} if has_spread else {}


def _provenance(wanted: Wanted, sources: Sequence[tuple[str, str]]) -> dict[str, Any]:
    recipe = wanted.recipe
    return {
        "product": recipe.product,
        "attributes": dict(wanted.attributes),
        "fingerprint": fingerprint(wanted),
        "recipe": {"where": recipe.where, "fingerprint": recipe.fingerprint},
        **_formulas(recipe),
        "operations": [json.loads(operation.text) for operation in recipe.operations],
        "inputs": [{"key": key, "version": version} for key, version in sources],
    }
