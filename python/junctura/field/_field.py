"""A decoded GRIB field: identity, values, coordinates, grid, times, level, member and units."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura.field._eccodes import decoded, value_of
from junctura.field._grid import Grid, grid_of
from junctura.field._layout import Layout, layout_of
from junctura.field._level import Level, level_of, member_of
from junctura.field._order import Order, order_of
from junctura.field._time import Times, has_step, header_step, times_of
from junctura.field._values import values_of

Array = npt.NDArray[Any]
_UNKNOWN = ("unknown", "~", "", "unavailable", "MISSING")


class Placed(NamedTuple):
    """Where the values of a message are, and on which level."""

    layout: Layout
    grid: Grid
    level: Level | None


@dataclass(frozen=True, eq=False)
class Field:
    """A field as its message states it.

    Attributes
    ----------
    keys
        What the field is: the attributes of its object, or what ecCodes' namespace `mars` has of its message.
    values
        Of the shape of `layout`, in double precision; NaN where a value is missing.
    layout
        Dimensions, and latitudes and longitudes (degrees) in the order of the values.
    grid
        What the header states of the grid, with its fingerprint.
    times
        Base time, step or range, and valid time.
    level
        Type and value of the level.
    member
        The ensemble member; 0 for the control forecast, None where the field is of no ensemble.
    units
        Of the values, as GRIB spells them; empty where unknown.

    """

    keys: Mapping[str, Any]
    values: Array
    layout: Layout
    grid: Grid
    times: Times
    level: Level | None = None
    member: int | None = None
    units: str = ""

    @property
    def valid_time(self) -> np.datetime64 | None:
        """The moment that the field is of, or at which its range of steps ends."""
        return self.times.valid


def field_of(message: bytes, keys: Mapping[str, Any] | None = None) -> Field:
    """The field of a GRIB message: of several fields in one, the first.

    Parameters
    ----------
    message
        A GRIB message of edition 1 or 2.
    keys
        What the field is, where that is known; by default what ecCodes' namespace `mars` has.

    Raises
    ------
    Corrupt
        The message is not whole, or announces values that it does not have, or ecCodes cannot read it.
    TooLarge
        It has more points than ``JUNCTURA_GRIB_POINTS_MAX`` (67,108,864).
    ImportError
        Without ecCodes: ``pip install 'junctura[grib]'``.

    """
    field: Field = decoded(message, functools.partial(_read, None if keys is None else dict(keys)), has_places=True)
    return field


def _read(keys: dict[str, Any] | None, eccodes: Any, handle: int) -> Field:
    layout, grid, level = placed(eccodes, handle)
    known = mars_of(eccodes, handle) if keys is None else keys
    units = value_of(eccodes, handle, "units", str)
    return Field(
        known,
        layout.arranged(values_of(eccodes, handle)),
        layout,
        grid,
        times_of(known, None if has_step(known) else header_step(eccodes, handle)),
        level,
        member_of(known),
        "" if units is None or units in _UNKNOWN else units,
    )


def placed(eccodes: Any, handle: int) -> Placed:
    """Where the values of a message are; they are not decoded."""
    return Placed(layout_of(eccodes, handle), grid_of(eccodes, handle), level_of(eccodes, handle))


def arranged(eccodes: Any, handle: int) -> tuple[Array, Layout]:
    """The values of a message in the order and shape of its layout."""
    layout = layout_of(eccodes, handle)
    return layout.arranged(values_of(eccodes, handle)), layout


def ordered(eccodes: Any, handle: int) -> tuple[Array, Order | None]:
    """The values of a message in its own order, and that order; no coordinates are computed."""
    return values_of(eccodes, handle), order_of(eccodes, handle)


def mars_of(eccodes: Any, handle: int) -> dict[str, Any]:
    """Returns the keys of ecCodes' namespace `mars` for a message, without those that have no value."""
    found: dict[str, Any] = {}
    keys = eccodes.codes_keys_iterator_new(handle, "mars")
    try:
        while eccodes.codes_keys_iterator_next(keys):
            name = eccodes.codes_keys_iterator_get_name(keys)
            value = value_of(eccodes, handle, name)
            if value is not None and not name.startswith("_") and value not in _UNKNOWN:
                found[name] = value
    finally:
        eccodes.codes_keys_iterator_delete(keys)
    return found


def coordinates_of(field: Field) -> dict[str, Any]:
    """The coordinates of a field as xarray takes them: places, a height or depth, member, valid time."""
    coords: dict[str, Any] = field.layout.labelled()
    if field.level is not None and field.level.attrs is not None:
        coords[field.level.kind] = ((), field.level.value, field.level.attrs)
    if field.member is not None:
        coords["number"] = field.member
    if field.valid_time is not None:
        coords["valid_time"] = field.valid_time
    return coords
