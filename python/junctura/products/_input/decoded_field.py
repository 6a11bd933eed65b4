"""A decoded field: values, their grid, and their attributes."""

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
        In the shape of `on`, in double precision; NaN if a value is missing, or masked. Read-only: other fields may
        share the memory.
    on
        The grid of the values.
    attributes
        The attributes of the field, in the words of the schema `mars`: ``param``, ``step``, ``number`` and so on.
    units
        Units of the values, in GRIB notation: ``K``, ``m s**-1``.
    header
        Further contents of the message header that GRIB products keep; see `junctura.products._input.header_keys`.

    Examples
    --------
    >>> import junctura.products
    >>> on = junctura.products.grid("30/30")
    >>> field = junctura.products.Field(numpy.full(on.shape, 280.0), on, {"param": "t"}, "K")
    >>> warmer = field.having(field.values + 1, step=6)
    >>> warmer.values.mean().item(), warmer.units, warmer.attributes
    (281.0, 'K', {'param': 't', 'step': 6})

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
        """The grid of its values.

        Raises
        ------
        InvalidArgument
            The field is spectral.

        """
        if isinstance(self.on, Spectral):
            raise InvalidArgument(f"field {self.param}", f"it is spectral ({self.on.name}): bring it to a grid first")
        return self.on

    @property
    def param(self) -> str:
        """The name of the parameter, for messages, too."""
        return str(self.attributes.get("param", "?"))

    def having(
        self, values: Floats, on: Grid | Spectral | None = None, units: str | None = None, /, **attributes: Any
    ) -> Field:
        """Returns the field with other values, another grid, other units or other attributes; None removes an
        attribute.

        An attribute may have any name, including that of an argument.
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
