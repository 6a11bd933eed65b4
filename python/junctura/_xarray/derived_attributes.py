"""Attributes that GRIB adds to the keys of MARS, where they need no dimension of their own.

| the fields of each variable have | the attribute becomes |
|---|---|
| one value | an attribute of the variable |
| one value at each place along a dimension, as the bottom of each layer | a coordinate along it, or attributes |
| anything else | a dimension, as any other attribute has |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura._xarray.cube_axes import CubeAxis

Array = npt.NDArray[Any]
# The attributes, and the dimension that each may follow.
_ADDED = {
    "bottomLevel": "level",
    "timespan": "step",
    "variant": "number",
    "stattype": "",
    "probability": "",
    "process": "",
}


class Following(NamedTuple):
    """Attributes without a dimension of their own."""

    # The dimension and the values of each coordinate.
    coords: dict[str, tuple[str, Array]]
    # The attributes of each variable: a value, or texts or numbers along a dimension.
    attrs: dict[str, dict[str, Any]]

    def has(self, name: str) -> bool:
        """Whether an attribute has no dimension."""
        return name in self.coords or any(name in of_one for of_one in self.attrs.values())


def following(axes: Mapping[str, CubeAxis], variables: Mapping[str, Array]) -> Following:
    """Which attributes need no dimension.

    Parameters
    ----------
    axes
        Of all objects.
    variables
        The numbers of the objects of each variable.

    """
    found = Following({}, {})
    for name, dim in _ADDED.items():
        if name not in axes or not _differs(axes[name], variables.values()):
            continue
        axis = axes[name]
        having = {variable: numbers for variable, numbers in variables.items() if (axis.places[numbers] >= 0).any()}
        lines = {variable: _line(axis, axes.get(dim), numbers) for variable, numbers in having.items()}
        known = {variable: line for variable, line in lines.items() if line is not None}
        if not having or len(known) < len(having):
            continue
        first = next(iter(known.values()))
        is_shared = len(known) == len(variables) and all(map(partial(_are_same, first), known.values()))
        if first.ndim and is_shared:
            found.coords[name] = dim, first
        else:
            for variable, line in known.items():
                found.attrs.setdefault(variable, {})[name] = _plain(line)
    return found


def _differs(axis: CubeAxis, variables: Iterable[Array]) -> bool:
    """Whether the axis has several values, or a variable has objects with a value and others without."""
    return len(axis.values) > 1 or any(len(np.unique(axis.places[numbers])) > 1 for numbers in variables)


def _line(axis: CubeAxis, dim: CubeAxis | None, numbers: Array) -> Array | None:
    """The value that all of these objects have, or those along a dimension; None if there are several at one place."""
    places = axis.places[numbers]
    if (places == places[0]).all():
        return np.asarray(axis.values[places[0]])
    if dim is None:
        return None
    along = dim.places[numbers]
    found = np.full(len(dim.values), -1, np.int64)
    found[along] = places
    if (along < 0).any() or (found[along] != places).any():
        return None
    values = axis.values[found]
    nothing = np.nan if values.dtype.kind in "iuf" else ""
    return np.where(found < 0, nothing, values) if (found < 0).any() else values


def _are_same(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f" and other.dtype.kind == "f")


def _plain(line: Array) -> Any:
    """As an attribute, which every format can have: of several texts one."""
    return ",".join(line.tolist()) if line.ndim and line.dtype.kind == "U" else line.tolist()
