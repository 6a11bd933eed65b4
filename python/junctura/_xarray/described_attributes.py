"""Attributes outside the key, which describe objects: coordinates along the dimensions that determine them.

| the objects have | the attribute becomes |
|---|---|
| one value | a scalar coordinate, or an attribute of the dataset if it is a text |
| one value in each variable | an attribute of each variable |
| other values along some dimensions | a coordinate along these, in all variables that have them |
| other values in several variables at one place | a coordinate for each variable, such as ``t_temperature`` |

A coordinate is NaN, NaT or an empty text where an object has no value, and where no object is. Values are those of the
catalogue: no object is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray

from junctura._native import Schema
from junctura._xarray import label_attributes
from junctura._xarray.cube_axes import Column, CubeAxis, axis_of

Array = npt.NDArray[Any]
# Attributes of arrays and of grids.
_OF_THE_PAYLOAD = {"dtype", "shape", "dims", "content_type", "labels", "units", "unit"}
_OF_GRIDS = {"gridType", "points", "md5GridSection"}
# Attributes of variables by convention.
_OF_VARIABLES = {"long_name", "standard_name"}
# In the place of the number of a value.
_NONE, _NO_OBJECT = -1, -2


class CubeTable(NamedTuple):
    """The dimensions of a variable, and for each position in its cube the object there; -1: none."""

    dims: list[str]
    objects: Array


class Described(NamedTuple):
    """Where attributes have their place in a dataset."""

    coords: dict[str, xarray.Variable]
    # Of the dataset.
    attrs: dict[str, Any]
    # Of each variable.
    of_variables: dict[str, dict[str, Any]]


def names_of(schema: Schema) -> list[str]:
    """Returns the attributes outside the key that describe objects."""
    # That schema describes the GRIB message.
    if schema.name == "mars":
        return []
    left_out = {*schema.key_attributes, *_OF_THE_PAYLOAD, *_OF_GRIDS}
    return [name for name in schema.attributes if name not in left_out]


def described(
    schema: Schema,
    column: Callable[[str], Column],
    tables: Mapping[str, CubeTable],
    taken: Collection[str],
    scalars: Collection[str],
) -> Described:
    """Returns the attributes outside the key.

    Parameters
    ----------
    schema
        Of the objects.
    column
        Returns the values of an attribute.
    tables
        The objects of each variable.
    taken
        Names that other coordinates, dimensions and variables have.
    scalars
        Names that are scalar coordinates also if they are texts.

    """
    found = Described({}, {}, {name: {} for name in tables})
    units = label_attributes.units_of(schema)
    for name in names_of(schema):
        values, numbers = column(name)
        kind = schema.attributes[name]
        is_one = len(values) == 1 and bool((numbers == 0).all())
        if not values or (is_one and (name == "name" or kind.startswith("list of "))):
            # An attribute of each variable already.
            continue
        axis = _axis(name, (values, numbers), kind, units.get(name))
        _place(name, axis, tables, found, {*taken, *found.coords}, name in scalars)
    return found


def _axis(name: str, column: Column, kind: str, unit: str | None) -> CubeAxis:
    values, places = column
    attrs = {"units": unit} if unit else {}
    if kind == "bool":
        numbers = np.array([*map(int, values), _NONE])
        return CubeAxis(np.array([False, True]), numbers[places], attrs, [])
    if kind.startswith("list of "):
        values = ["/".join(map(str, value)) for value in values]
    return axis_of(name, (values, places), kind, attrs)


def _place(
    name: str,
    axis: CubeAxis,
    tables: Mapping[str, CubeTable],
    found: Described,
    taken: Collection[str],
    is_scalar: bool,
) -> None:
    codes = {
        variable: np.where(table.objects < 0, _NO_OBJECT, axis.places[table.objects])
        for variable, table in tables.items()
    }
    determining = {variable: _determining(table.dims, codes[variable]) for variable, table in tables.items()}
    of_any = {dim for dims in determining.values() for dim in dims}
    if not of_any:
        numbers = {variable: int(line.max()) for variable, line in codes.items()}
        _place_constants(_free(name, taken), axis, numbers, found, is_scalar)
        return
    lines = {
        variable: _line(table.dims, codes[variable], of_any)
        for variable, table in tables.items()
        if of_any.issubset(table.dims)
    }
    shared = _merged(list(lines.values()))
    if shared is not None:
        _add(found, _free(name, taken), *shared, axis)
    for variable, table in tables.items():
        if shared is not None and variable in lines:
            continue
        if determining[variable]:
            line = _line(table.dims, codes[variable], determining[variable])
            _add(found, _free(f"{variable}_{name}", taken), *line, axis)
        elif (number := int(codes[variable].max())) >= 0:
            found.of_variables[variable][name] = _plain(axis.values[number])


def _place_constants(name: str, axis: CubeAxis, numbers: Mapping[str, int], found: Described, is_scalar: bool) -> None:
    """Places an attribute of which each variable has one value, or none."""
    first = next(iter(numbers.values()), _NONE)
    is_everywhere = first >= 0 and set(numbers.values()) == {first}
    is_text = axis.values.dtype.kind in "OU"
    if is_everywhere and (is_scalar or not is_text):
        found.coords[name] = xarray.Variable((), axis.values[first], axis.attrs)
    elif is_everywhere and name not in _OF_VARIABLES:
        found.attrs[name] = _plain(axis.values[first])
    else:
        for variable, number in numbers.items():
            if number >= 0:
                found.of_variables[variable][name] = _plain(axis.values[number])


def _determining(dims: list[str], codes: Array) -> list[str]:
    """Returns the dimensions along which the values of objects differ, the first ones if several are equivalent."""
    left = list(dims)
    for dim in reversed(dims):
        at = left.index(dim)
        highest = codes.max(at)
        is_present = codes != _NO_OBJECT
        if (is_present <= (codes == np.expand_dims(highest, at))).all():
            left.remove(dim)
            codes = highest
    return left


def _line(dims: list[str], codes: Array, kept: Collection[str]) -> tuple[list[str], Array]:
    """Returns the values along some dimensions, where they are constant along the others."""
    others = tuple(at for at, dim in enumerate(dims) if dim not in kept)
    return [dim for dim in dims if dim in kept], codes.max(others)


def _merged(lines: list[tuple[list[str], Array]]) -> tuple[list[str], Array] | None:
    """Returns the values of several variables along the same dimensions; None if they are different at one place."""
    if not lines:
        return None
    dims, merged = lines[0]
    for _, line in lines[1:]:
        if ((merged != line) & (merged != _NO_OBJECT) & (line != _NO_OBJECT)).any():
            return None
        merged = np.maximum(merged, line)
    return dims, merged


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _add(found: Described, name: str, dims: list[str], codes: Array, axis: CubeAxis) -> None:
    values = axis.values[codes]
    gaps = codes < 0
    if gaps.any():
        kind = values.dtype.kind
        values = values.astype(np.float64) if kind in "biu" else values
        values[gaps] = "NaT" if kind in "mM" else "" if kind in "OU" else np.nan
    found.coords[name] = xarray.Variable(dims, values, axis.attrs)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else str(value)
