"""Names, units and methods of fields according to the CF conventions."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from junctura.products._input.decoded_field import Field
from junctura.products._outputs._meaning import Meaning, comment
from junctura.products._outputs._parameters import parameter
from junctura.products._regrid.grids import Grid

CONVENTIONS = "CF-1.11"
_PROCESSES = {"avg": "mean", "accum": "sum", "max": "maximum", "min": "minimum"}
_STATISTICS = {"mean": "mean", "spread": "standard_deviation", "min": "minimum", "max": "maximum"}
_DIMENSIONLESS = ("", "~", "-", "(0 - 1)", "(0-1)", "dimensionless", "Numeric", "Proportion", "Fraction")
# UDUNITS takes a geopotential metre for something else than a metre, and CF's geopotential height is in metres.
_UNITS = {"gpm": "m", "gpdm": "dam", "(Code table 4.222)": "1"}
_TEMPERATURES = ("K", "degC", "degF")
_LEVELS: dict[str, dict[str, str]] = {
    "pl": {"standard_name": "air_pressure", "long_name": "pressure", "units": "hPa", "positive": "down"},
    "ml": {"long_name": "number of the model level", "units": "1", "positive": "down"},
    "pt": {
        "standard_name": "air_potential_temperature",
        "long_name": "potential temperature",
        "units": "K",
        "units_metadata": "temperature: on_scale",
    },
    "pv": {"long_name": "potential vorticity", "units": "1e-9 K m2 kg-1 s-1"},
    "hl": {"standard_name": "height", "long_name": "height above the ground", "units": "m"},
}


def udunits(units: str) -> str:
    """Returns units in the notation of UDUNITS: ``m s**-1`` becomes ``m s-1``."""
    if units in _DIMENSIONLESS:
        return "1"
    return _UNITS.get(units) or re.sub(r"\*\*", "", units)


_GREGORIAN = dt.date(1582, 10, 15)


_UNITS_OF_TIME = {
    "hours": dt.timedelta(hours=1),
    "minutes": dt.timedelta(minutes=1),
    "seconds": dt.timedelta(seconds=1),
}


def unit_of(times: Iterable[dt.timedelta]) -> str:
    """Returns the longest unit in which all times are integers, so that none is rounded."""
    found = list(times)
    return next(unit for unit, length in _UNITS_OF_TIME.items() if not any(time % length for time in found))


def counted(times: Sequence[dt.timedelta], unit: str) -> npt.NDArray[np.float64]:
    """Returns times as integers in a unit."""
    return np.array([time // _UNITS_OF_TIME[unit] for time in times], np.float64)


def time_attributes(base: dt.datetime, unit: str = "hours") -> dict[str, str]:
    return {
        "units": f"{unit} since {base.replace(tzinfo=None, microsecond=0).isoformat(' ')}",
        # Days of GRIB are Gregorian throughout; CF's standard calendar is Julian before that day (1.11, section 4.4.1).
        "calendar": "standard" if base.date() >= _GREGORIAN else "proleptic_gregorian",
        "units_metadata": "leap_seconds: none",
    }


def level_attributes(levtype: str) -> dict[str, str]:
    known = _LEVELS.get(levtype, {"long_name": f"level of type {levtype}", "units": "1"})
    return {"positive": "up", **known, "axis": "Z"}


def data_attributes(field: Field, is_what: Meaning, time: str, *, is_point: bool) -> dict[str, Any]:
    """Returns the attributes of a field's variable; MARS words without a CF equivalent begin with ``mars_``.

    `time` is the name of its axis, and `is_point` marks a field of single times on an axis that others use for ranges.
    """
    known = parameter(field)
    units = udunits(field.units or (known.units if known else ""))
    name = known.name if known else field.param
    said: dict[str, Any] = {"long_name": _long_name(name, is_what), "units": units}
    if known and known.cf_name and is_what.statistic != "probability":
        said["standard_name"] = known.cf_name
    if units in _TEMPERATURES:
        # Computed values may be either.
        kind = "difference" if is_what.statistic == "spread" else "on_scale" if known else "unknown"
        said["units_metadata"] = f"temperature: {kind}"
    if methods := _methods(is_what, time, is_point):
        said["cell_methods"] = methods
    if about := comment(is_what):
        said["comment"] = about
    said["mars_param"] = field.param
    if is_what.statistic == "percentile":
        said["percentile"] = is_what.percentile
    if is_what.statistic == "probability":
        said["threshold"], said["condition"] = is_what.threshold, is_what.condition
        if is_what.threshold_units:
            said["threshold_units"] = udunits(is_what.threshold_units)
    return said


def made_by(lies: Grid, field: Field, names: Sequence[str]) -> dict[str, str]:
    """Returns the attributes of the whole data set."""
    known = parameter(field)
    title = f"{known.name if known and len(names) == 1 else ', '.join(names)} on {lies.label}"
    said = {"Conventions": CONVENTIONS, "title": title, "source": "numerical weather prediction model"}
    origin = {
        name: str(field.attributes[name]) for name in ("class", "stream", "type", "expver") if name in field.attributes
    }
    said["institution"] = str(field.attributes.get("centre", "unknown"))
    said["history"] = "written by junctura.products"
    said |= {f"mars_{name}": value for name, value in origin.items()}
    if lies.kind == "points":
        said["featureType"] = "timeSeries"
    return said


def _long_name(name: str, is_what: Meaning) -> str:
    if is_what.statistic is None:
        return name
    if is_what.statistic == "percentile":
        return f"percentile {is_what.percentile} of the ensemble's {name}"
    if is_what.statistic == "probability":
        return f"probability of {name} {is_what.condition} {is_what.threshold:g} {is_what.threshold_units}".rstrip()
    return f"{is_what.statistic} of the ensemble's {name}"


def _methods(is_what: Meaning, time: str, is_point: bool) -> str:
    methods = []
    if is_point or is_what.process is not None:
        methods.append(f"{time}: {'point' if is_what.process is None else _PROCESSES[is_what.process]}")
    if is_what.statistic in _STATISTICS:
        methods.append(f"realization: {_STATISTICS[is_what.statistic]}")
    return " ".join(methods)
