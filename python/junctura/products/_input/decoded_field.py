"""A decoded field: values, where they lie, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from junctura._array.numpy_payload import array_of
from junctura.errors import InvalidArgument
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid, Spectral


@dataclass(frozen=True, eq=False)
class Field:
    """Values on a grid, or coefficients of spherical harmonics.

    Attributes
    ----------
    values
        Of the shape that `on` has, in double precision; NaN where a value is missing, or masked. Not to be written to:
        others may have the same memory.
    on
        Where the values lie.
    attributes
        What the field means, in the words of the schema `mars`: ``param``, ``step``, ``number`` and so on.
    units
        Of the values, as GRIB spells them: ``K``, ``m s**-1``.
    header
        What a message said besides that products in GRIB keep; see `junctura.products._input.header_keys`.

    """

    values: Floats
    on: Grid | Spectral
    attributes: Mapping[str, Any] = field(default_factory=dict)
    units: str = ""
    header: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.values, np.ma.MaskedArray):
            object.__setattr__(self, "values", array_of(self.values, np.float64))
        if self.values.shape != self.on.shape:
            raise InvalidArgument(
                "field", f"values of the shape {self.values.shape}, but {self.on.name} has {self.on.shape}"
            )

    @property
    def grid(self) -> Grid:
        """Where its values lie.

        Raises
        ------
        InvalidArgument
            It is a spectral field.

        """
        if isinstance(self.on, Spectral):
            raise InvalidArgument(f"field {self.param}", f"it is spectral ({self.on.name}): bring it to a grid first")
        return self.on

    @property
    def param(self) -> str:
        """Which parameter it is, for messages, too."""
        return str(self.attributes.get("param", "?"))

    def having(
        self, values: Floats, on: Grid | Spectral | None = None, units: str | None = None, /, **attributes: Any
    ) -> Field:
        """The same field with other values, on another grid, in other units, with other attributes; None: without one.

        An attribute may have any name, also that of a parameter.
        """
        changed = {**self.attributes, **attributes}
        kept = {name: value for name, value in changed.items() if value is not None}
        return replace(
            self,
            values=values,
            on=self.on if on is None else on,
            units=self.units if units is None else units,
            attributes=kept,
        )
