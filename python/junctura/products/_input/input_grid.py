"""The grid of an input, determined from its header without decoding values."""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt

import junctura
from junctura._grib import checked_messages
from junctura._xarray.label_attributes import needed
from junctura.products._input.decoding import GribMessage, one_field, values_on_grid
from junctura.products._regrid.grids import Grid
from junctura.products._regrid.grids import grid as named


def grid_of(obj: junctura.Object) -> str:
    """Returns the grid of an object's field, or its truncation; empty if it is on points, or unknown."""
    try:
        name = str(obj.attributes["grid"]) if "dtype" in obj.attributes else _grid_of_message(bytes(obj))
        on = named(name)
    except (junctura.Error, KeyError, ImportError):
        # The task that decodes it reports the error.
        return ""
    return "" if isinstance(on, Grid) and on.kind == "points" else on.name


def _grid_of_message(message: bytes) -> str:
    return checked_messages.decoded_as(one_field(message), message, _grid_in)


def _grid_in(message: bytes) -> str:
    with contextlib.ExitStack() as opened:
        on, _ = values_on_grid(_HeaderMessage(needed("eccodes", "products"), opened, message, {}, {}))
        return on if isinstance(on, str) else on.name


class _HeaderMessage(GribMessage):
    """A message whose grid is needed, but not its values: they are not decoded."""

    def values(self) -> npt.NDArray[np.float64]:
        return np.zeros(self.eccodes.codes_get_size(self.handle, "values"))
