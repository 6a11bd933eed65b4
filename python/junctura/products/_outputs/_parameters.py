"""ecCodes' description of a parameter: its number, its names, its units."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from junctura import _forks
from junctura._xarray.label_attributes import needed
from junctura.products._input.decoded_field import Field
from junctura.products._outputs._quiet import quiet
from junctura.products._recipe.mars_words import number_of
from junctura.products._workers.cache import answered

# Of WMO: the last with which ecCodes has maxima "in the last 6 hours".
_OLDER_TABLES = 32
# Discipline, category and number: the name of a field whose parameter has no name in ecCodes.
_CODES, _OF_CODES = r"\d{1,3}\.\d{1,3}\.\d{1,3}", "codes"
# With these names ecCodes finds rarely used parameters of ECMWF's own tables, some in other units.
_MEANT = {"sst": 34, "sr": 173, "ssr": 176, "str": 177, "tsr": 178, "ttr": 179}
# Names of parameters in netCDF files, such as those of ERA5, of which GRIB has others.
_OF_NETCDF = {"t2m": "2t", "d2m": "2d", "u10": "10u", "v10": "10v", "u100": "100u", "v100": "100v"}


@dataclass(frozen=True)
class Parameter:
    """A parameter as ecCodes describes it."""

    key: tuple[str, str | int]
    units: str
    is_on_pressure: bool

    @property
    def name(self) -> str:
        """The long name; read on demand, since ecCodes then reads all names."""
        return _words(self.key, self.is_on_pressure)[0]

    @property
    def cf_name(self) -> str:
        """The CF standard name; empty if there is none."""
        return _words(self.key, self.is_on_pressure)[1]


def parameter(field: Field) -> Parameter | None:
    """Returns the parameter of a field from `paramId`, else `param` (short name or number); None if unknown."""
    return _looked_up(key_of(field), str(field.attributes.get("levtype", "")) == "pl")


def key_of(field: Field) -> tuple[str, str | int]:
    """Returns the ecCodes key that identifies the parameter, and its value; or the edition 2 codes without a name."""
    return _key(str(field.attributes.get("paramId") or field.param))


def is_known(param: str) -> bool:
    """Whether ecCodes has a parameter of this short name or number, on some kind of level."""
    has_codes = _key(param)[0] == _OF_CODES
    return has_codes or any(_looked_up(_key(param), is_on_pressure) for is_on_pressure in (False, True))


def meant(param: str) -> str:
    """Returns a hint: the ecCodes name of a parameter with a different name elsewhere; empty without one."""
    return f"; did you mean {_OF_NETCDF[param.lower()]}?" if param.lower() in _OF_NETCDF else ""


def has_units(field: Field, units: str) -> bool:
    """Whether this is a unit of the parameter in GRIB, on some kind of level: heights in gpm or m."""
    found = (_looked_up(key_of(field), is_on_pressure) for is_on_pressure in (False, True))
    return any(known.units == units for known in found if known)


def read_tables(param: str) -> None:
    """Loads ecCodes' parameter tables, for this process and later forks, unless its answers are on disk: 0.4 s.

    Parameters
    ----------
    param
        Any parameter in ecCodes.

    """
    for is_on_pressure in (False, True):
        _words(_key(param), is_on_pressure)
        _looked_up(_key(param), is_on_pressure)
    # Most received fields have older tables, which have their own files. If an earlier run has read them for this
    # parameter, the answers that they give are on disk.
    answered(("older tables", param), _units_of_sample)


def _units_of_sample() -> str:
    eccodes = needed("eccodes", "products")
    message = eccodes.codes_grib_new_from_samples("GRIB2")
    try:
        return _word(eccodes, message, "units")
    finally:
        eccodes.codes_release(message)


def units_of(param: str, levtype: str | None = None) -> str:
    """Returns ecCodes' unit of a parameter; empty if it has none, or one that depends on the level."""
    levels = (False, True) if levtype is None else (levtype == "pl",)
    found = {known.units for level in levels if (known := _looked_up(_key(param), level))}
    return found.pop() if len(found) == 1 else ""


def _key(given: str) -> tuple[str, str | int]:
    if re.fullmatch(_CODES, given):
        return _OF_CODES, given
    if (number := number_of(given)) is not None:
        return "paramId", number
    return ("paramId", _MEANT[given]) if given in _MEANT else ("shortName", given)


def set_key(message: int, key: tuple[str, str | int]) -> None:
    """Sets the parameter of a message with the newest tables; with older tables, if only these have it.

    The newest tables have different names for some (`max_2t`), and reject those (`mx2t6`) that are common in archives.

    Raises
    ------
    eccodes.CodesInternalError
        No table has the parameter.

    """
    eccodes = needed("eccodes", "products")
    if key[0] == _OF_CODES:
        names = ("discipline", "parameterCategory", "parameterNumber")
        for name, code in zip(names, str(key[1]).split("."), strict=True):
            eccodes.codes_set(message, name, int(code))
        return
    try:
        eccodes.codes_set(message, *key)
    except eccodes.CodesInternalError:
        eccodes.codes_set(message, "tablesVersion", _OLDER_TABLES)
        eccodes.codes_set(message, *key)


@functools.lru_cache(maxsize=1024)
def _looked_up(key: tuple[str, str | int], is_on_pressure: bool) -> Parameter | None:
    # With codes, a parameter need not be in a table.
    is_known = key[0] != _OF_CODES or bool(_words(key, is_on_pressure)[0])
    found = _said(key, is_on_pressure, ("units",)) if is_known else None
    return None if found is None else Parameter(key, found[0], is_on_pressure)


@functools.lru_cache(maxsize=1024)
def _words(key: tuple[str, str | int], is_on_pressure: bool) -> tuple[str, ...]:
    """Returns the name of a parameter, and its CF standard name; empty if there is none."""
    return _said(key, is_on_pressure, ("name", "cfName")) or ("", "")


def _said(key: tuple[str, str | int], is_on_pressure: bool, names: Sequence[str]) -> tuple[str, ...] | None:
    """Returns ecCodes' description of a parameter; None if ecCodes does not have it."""
    question = ("parameter", key, is_on_pressure, *names)
    found = answered(question, lambda: _asked(key, is_on_pressure, names))
    return None if found is None else tuple(found)


@_forks.passage()
@quiet()
def _asked(key: tuple[str, str | int], is_on_pressure: bool, names: Sequence[str]) -> list[str] | None:
    eccodes = needed("eccodes", "products")
    message = eccodes.codes_grib_new_from_samples("GRIB2")
    try:
        eccodes.codes_set(message, "tablesVersion", eccodes.codes_get(message, "tablesVersionLatest"))
        if is_on_pressure:
            # At the surface some have different names: the geopotential is the orography there.
            eccodes.codes_set(message, "typeOfLevel", "isobaricInhPa")
        set_key(message, key)
        return [_word(eccodes, message, name) for name in names]
    except eccodes.CodesInternalError:
        return None
    finally:
        eccodes.codes_release(message)


def _word(eccodes: Any, message: int, key: str) -> str:
    word = str(eccodes.codes_get_string(message, key))
    return "" if word in ("unknown", "~") else word
