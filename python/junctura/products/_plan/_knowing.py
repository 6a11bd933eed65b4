"""Static checks of a plan: the known properties of fields at each position, to reject plans that can only fail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from junctura._document.located_yaml import Wrong
from junctura.errors import InvalidArgument
from junctura.products import _units
from junctura.products._outputs._parameters import is_known, units_of
from junctura.products._recipe.mars_words import values

# Units of parameters that are not powers of other units.
_OTHERS = ("psu", "degree", "degrees", "degree true", "mol", "sr", "dbz", "du", "dobson", "bq")
# Actions that change the values of every field, so that the received message is obsolete.
_MAKES_VALUES = ("grid", "wind", "crop", "mask", "fill", "statistics")
_OF_WINDS = {"vo": "u", "d": "v"}


@dataclass(frozen=True)
class Known:
    """The known properties of all fields that pass.

    Attributes
    ----------
    are_values
        Whether the fields have values only, and no messages.
    are_arrays
        Whether they are assembled from arrays in pieces, whose parameter is determined by a name only.
    units
        Units of such arrays; empty if unknown.
    params
        Their parameters; None if unknown.

    """

    are_values: bool = False
    are_arrays: bool = False
    units: str = ""
    params: tuple[str, ...] | None = None

    def behind(self, name: str, value: Any) -> Known:
        """Returns the known properties of the results of an action.

        Raises
        ------
        Wrong
            No field can pass it.

        """
        if name == "select" and "param" in value:
            return replace(self, params=tuple(map(str, values("param", value["param"]))))
        if name == "aggregate":
            return replace(self, are_values=True, are_arrays=True, units=value.get("units", ""))
        if name == "set" and {"param", "paramId", "units"} & value.keys():
            # A number identifies the parameter regardless of its name.
            params = (str(value["param"]),) if "param" in value and "paramId" not in value else None
            return replace(self, params=params, units=str(value.get("units", self.units)))
        if name == "compute":
            made = tuple(value) if isinstance(value, dict) else ()
            return replace(self, units="", params=None if self.params is None else (*self.params, *made))
        if name == "units":
            return self._converted(value)
        if name == "encode":
            self._check_grib()
            return replace(self, are_values=False)
        if name == "wind" and self.params is not None:
            return replace(self, are_values=True, params=tuple(_OF_WINDS.get(param, param) for param in self.params))
        if name in _MAKES_VALUES:
            return replace(self, are_values=True)
        # The results of a function are unknown.
        return Known() if name == "python" else self

    def check_sink(self, name: str, value: Any) -> None:
        """Rejects a sink that accepts none of the fields."""
        if name == "archive" and self.are_values:
            raise Wrong("a store keeps messages, and these are values: write `encode` before it")
        if name == "file" and value["format"] == "grib2":
            self._check_grib()

    def _converted(self, value: Any) -> Known:
        if not isinstance(value, str):
            return replace(self, units="")
        if self.are_arrays and self.units:
            self._check_unit()
            _convertible(self.units, value)
        return replace(self, are_values=True, units=value)

    def _check_grib(self) -> None:
        """Whether arrays have all that a message needs: a parameter, determined by the name, and units."""
        if not self.are_arrays:
            return
        for param in self.params or ():
            if not is_known(param):
                hint = "give its number: set: {paramId: ...}"
                raise Wrong(f'ecCodes knows no parameter "{param}", and a message needs one that it knows: {hint}')
            known = units_of(param)
            if self.units and known and self.units != known:
                self._check_unit()
                _convertible(self.units, known)
        if self.units and self.params is None:
            self._check_unit()

    def _check_unit(self) -> None:
        if self.units.lower() not in _OTHERS:
            _convertible(self.units, self.units)


def _convertible(source: str, target: str) -> None:
    try:
        _units.conversion(source, target)
    except InvalidArgument as error:
        raise Wrong(f"{error.subject}: {error.cause}") from None
