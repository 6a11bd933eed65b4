"""GRIB2: headers by ecCodes, simple packing of values by this package, other packings by ecCodes.

Setting the codes of a parameter takes longer than packing its values. Therefore a message without time and values is
cached for each kind of field, and copied.

Ensemble statistics, and statistics over a range of steps, are encoded by the template of the product definition (WMO,
Manual on Codes, code table 4.0):
```text
                at a time   over a range of steps
  forecast          0             8
  member            1            11
  mean, spread...   2            12      derived forecast, code table 4.7
  probability       5             9      in %, code table 4.9
  percentile        6            10
  quantile         86            87      percentiles, minimum and maximum, in words of MARS
  hindcast         60            61      a member of one
```
For fields with a class and the center ECMWF, the local section has the MARS words, with the type em, es, ep or pb. A pb
field is encoded as a quantile, for example 10 of 100: ecCodes expects it in templates 86 and 87 only, and with others
`grib_get -m` fails. The minimum is quantile 0 and the maximum 100, since MARS has no types for them.

The base time of a hindcast is that of its `hdate`; the `date` of MARS is then that of the model version, which only the
templates of members have: `grib_get -m` shows both.

Header contents without MARS words are kept: the originating center and process, the local section, the bounds of a
layer, and types of level without a name here (see `junctura.products._input.header_keys`).

Each parameter has one unit in GRIB: values, and the threshold of a probability, are converted to it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from junctura import _forks
from junctura._native import _with_values
from junctura._xarray.label_attributes import needed
from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._input.header_keys import keys_of, local_of, sections_of, surfaces_of, with_local
from junctura.products._outputs._meaning import Meaning, meaning, step_text
from junctura.products._outputs._output import Output
from junctura.products._outputs._parameters import has_units, key_of, parameter, set_key
from junctura.products._outputs._quiet import quiet
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid, grid, stating
from junctura.products._regrid.vector_rotation import ALONG_GRID
from junctura.products._units import Conversion, conversion
from junctura.products._workers.cache import answered

Keys: TypeAlias = tuple[tuple[str, str | int | float], ...]

# A number that no field has; marks missing values for ecCodes, which encodes them as a bitmap.
_MISSING = -1.0e100
_TEMPLATES = {
    "forecast": (0, 8),
    "member": (1, 11),
    "derived": (2, 12),
    "probability": (5, 9),
    "percentile": (6, 10),
    "quantile": (86, 87),
    "hindcast": (60, 61),
}
# Code table 4.7.
_DERIVED = {"mean": 0, "spread": 4, "min": 8, "max": 9}
# Code table 4.9.
_PROBABILITY = {"above": 3, "below": 4}
# Code table 4.10.
_PROCESSES = {"avg": 0, "accum": 1, "max": 2, "min": 3}
# Common code table C-11.
_ECMWF = 98
# Code table 4.5.
_NO_SURFACE = 255
# Flag table 3.4: columns are consecutive, or alternate rows have the opposite direction.
_IN_OTHER_ORDER = 0x30
# Code table 4.4.
_HOUR = 1
# Code table 4.11: successive fields have the same forecast time, and base times that follow one another.
_SUCCESSIVE_BASES = 1
_LEVELS = {
    "sfc": "surface",
    "pl": "isobaricInhPa",
    "ml": "hybrid",
    "pt": "theta",
    "pv": "potentialVorticity",
    "hl": "heightAboveGround",
    "sol": "soilLayer",
}
_END_OF_RANGE = "yearOfEndOfOverallTimeInterval"
# MARS names of ensemble statistics.
_TYPES = {"mean": "em", "spread": "es", "probability": "ep", "percentile": "pb", "min": "pb", "max": "pb"}
_LOCAL = {"class": "marsClass", "type": "marsType", "stream": "marsStream", "expver": "experimentVersionNumber"}
_PACKINGS = {"simple": "grid_simple", "ccsds": "grid_ccsds"}


def made(fields: Sequence[Field], to: Output) -> bytes:
    """Returns the messages of the fields, concatenated."""
    return b"".join(_message(field, to) for field in fields)


@_forks.passage()
@quiet()
def _message(field: Field, to: Output) -> bytes:
    eccodes = needed("eccodes", "products")
    is_what = meaning(field)
    if field.grid.kind == "points":
        raise InvalidArgument(_subject(field), "GRIB2 has no grid of places: write them as csv or netcdf")
    template = _template(
        field.grid.name,
        field.attributes.get(ALONG_GRID, 0),
        key_of(field),
        _level_keys(field, is_what),
        _product_keys(field, is_what),
        _packing_keys(to),
        local_of(field.header),
        is_surface=_is_at_surface(field),
    )
    values = _values(field, is_what)
    with template.lock:
        # Its times are those of the previous field.
        _set(template.message, _subject(field), _base_keys(is_what))
        _set_step(template, _subject(field), is_what)
        _check_range(template.message, field, is_what)
        header = bytes(eccodes.codes_get_message(template.message))
    packed = _with_values(header, values, to.bits) if to.packing == "simple" else None
    if packed is not None:
        return packed
    message = eccodes.codes_new_from_message(header)
    try:
        _set_values(message, field, values)
        return bytes(eccodes.codes_get_message(message))
    finally:
        eccodes.codes_release(message)


def _subject(field: Field) -> str:
    return f"field {field.param}"


class _Template:
    """A message without times and values; released with its last user."""

    def __init__(self, message: int) -> None:
        self.message = message
        # Whether its step is a number of hours.
        self.is_in_hours = False
        self.lock = _forks.Lock()
        self._release = needed("eccodes", "products").codes_release
        self._is_ending = sys.is_finalizing

    def __del__(self) -> None:
        # ecCodes may be unloaded first at the exit of Python.
        if self._is_ending():
            return
        self._release(self.message)


@functools.lru_cache(maxsize=256)
def _template(
    grid_name: str,
    along_grid: int,
    param: tuple[str, str | int],
    level: Keys,
    product: Keys,
    packing: Keys,
    local: bytes,
    *,
    is_surface: bool,
) -> _Template:
    about = (grid_name, along_grid, param, level, product, packing, local)
    said = answered(("template", *about, is_surface), lambda: _header(*about, is_surface=is_surface).hex())
    return _Template(needed("eccodes", "products").codes_new_from_message(bytes.fromhex(said)))


def _header(
    grid_name: str,
    along_grid: int,
    param: tuple[str, str | int],
    level: Keys,
    product: Keys,
    packing: Keys,
    local: bytes,
    *,
    is_surface: bool,
) -> bytes:
    """Returns a message without times and values."""
    eccodes = needed("eccodes", "products")
    message = _on_listed(grid_name, along_grid) if grid_name.count(":") > 1 else _on_rows(grid_name)
    template = _Template(message)
    eccodes.codes_set(message, "tablesVersion", eccodes.codes_get(message, "tablesVersionLatest"))
    subject = f"field {param[1]}"
    # Levels are set first, since they distinguish parameters, and again, since a parameter may imply its own; except
    # surface levels in MARS words: the parameter determines the surface best.
    before = [pair for pair in level if pair[0] == "typeOfLevel" or "FixedSurface" in pair[0]]
    _set(message, subject, [*product, *before])
    _set_parameter(message, param)
    _set(message, subject, level if len(level) > 1 and not is_surface else ())
    _set(message, subject, packing)
    made = _with_local(template, subject, local, product) if local else template
    return bytes(eccodes.codes_get_message(made.message))


def _with_local(template: _Template, subject: str, local: bytes, product: Keys) -> _Template:
    """Adds the local section of the received field, with the current MARS words."""
    eccodes = needed("eccodes", "products")
    whole = with_local(bytes(eccodes.codes_get_message(template.message)), local)
    made = _Template(eccodes.codes_new_from_message(whole))
    _set(made.message, subject, [pair for pair in product if pair[0] in _LOCAL.values()])
    return made


def _set(message: int, subject: str, keys: Iterable[tuple[str, str | int | float]]) -> None:
    eccodes = needed("eccodes", "products")
    key: str = ""
    value: str | int | float = ""
    try:
        for key, value in keys:
            eccodes.codes_set(message, key, value)
    except eccodes.CodesInternalError as error:
        raise InvalidArgument(subject, f"GRIB2 cannot say {key} = {value!r}: {error}") from error


def _set_parameter(message: int, param: tuple[str, str | int]) -> None:
    eccodes = needed("eccodes", "products")
    try:
        set_key(message, param)
    except eccodes.CodesInternalError as error:
        by_number = "" if param[0] == "paramId" else "state its number by the attribute paramId, or "
        cause = f"ecCodes has no parameter of this {param[0]} in GRIB2: {by_number}write netcdf, which takes any"
        raise InvalidArgument(f"field {param[1]}", cause) from error


def _is_at_surface(field: Field) -> bool:
    """Whether MARS has no further words for its level; also the case for mean sea level and the tropopause."""
    second = keys_of(field.header).get("typeOfSecondFixedSurface", _NO_SURFACE)
    return field.attributes.get("levtype") == "sfc" and second == _NO_SURFACE


def _level_keys(field: Field, is_what: Meaning) -> Keys:
    kind = _LEVELS.get(is_what.levtype)
    surfaces = surfaces_of(field.header, field.attributes)
    is_layer = dict(surfaces).get("typeOfSecondFixedSurface", _NO_SURFACE) != _NO_SURFACE
    if surfaces and (is_layer or kind is None or _is_at_surface(field) or "levtype" not in field.attributes):
        return surfaces
    if kind is None:
        raise InvalidArgument(_subject(field), f"levtype {is_what.levtype!r} is not one of {', '.join(_LEVELS)}")
    if is_what.level is None or kind == "surface":
        return (("typeOfLevel", kind),)
    if is_what.level == int(is_what.level):
        return (("typeOfLevel", kind), ("level", int(is_what.level)))
    if kind != "isobaricInhPa":
        raise InvalidArgument(_subject(field), f"levelist is {is_what.level:g}, expected a whole number")
    return (("typeOfLevel", "isobaricInPa"), *_pressure_keys(field, is_what.level))


def _pressure_keys(field: Field, hectopascals: float) -> Keys:
    """Returns a pressure in Pa (code table 4.5, 100) as an integer and a power of ten, exactly."""
    pascals = decimal.Decimal(repr(hectopascals)) * 100
    exponent = pascals.normalize().as_tuple().exponent
    factor = max(0, -int(exponent))
    scaled = int(pascals.scaleb(factor))
    # Four bytes, of which all ones mean missing.
    if scaled >= 0xFFFFFFFF:
        raise InvalidArgument(_subject(field), f"GRIB2 cannot say levelist = {hectopascals!r} hPa exactly")
    if not factor:
        return (("level", scaled),)
    return (("scaleFactorOfFirstFixedSurface", factor), ("scaledValueOfFirstFixedSurface", scaled))


def _product_keys(field: Field, is_what: Meaning) -> Keys:
    kind, keys = _kind_keys(field, is_what)
    at_time, over_range = _TEMPLATES[kind]
    is_range = is_what.start is not None or is_what.process is not None
    keys = [("productDefinitionTemplateNumber", over_range if is_range else at_time), *keys]
    if is_what.process is not None:
        keys.append(("typeOfStatisticalProcessing", _PROCESSES[is_what.process]))
    if field.attributes.get("increments") == "base":
        keys.append(("typeOfTimeIncrement", _SUCCESSIVE_BASES))
    return (*_origin_keys(field, is_what), *keys, *_process_keys(field, kind))


def _process_keys(field: Field, kind: str) -> Keys:
    """Sets the generating process as received; for a member also the kind of member and the ensemble size."""
    kept = keys_of(field.header)
    names = ["subCentre", "typeOfGeneratingProcess", "backgroundProcess", "generatingProcessIdentifier"]
    if kind in ("member", "hindcast"):
        names += ["typeOfEnsembleForecast", "numberOfForecastsInEnsemble"]
    return tuple((name, kept[name]) for name in names if name in kept)


def _kind_keys(field: Field, is_what: Meaning) -> tuple[str, list[tuple[str, str | int | float]]]:
    members: list[tuple[str, str | int | float]] = []
    if is_what.members is not None:
        members = [("numberOfForecastsInEnsemble", is_what.members)]
    if is_what.statistic is None:
        if is_what.number is None:
            return "forecast", []
        members.insert(0, ("perturbationNumber", is_what.number))
        return ("member", members) if "hdate" not in field.attributes else ("hindcast", members + _version_keys(field))
    if _TYPES[is_what.statistic] == "pb" and _has_local_section(field):
        quantile = {"min": 0, "max": 100}.get(is_what.statistic, is_what.percentile or 0)
        return "quantile", [("totalNumberOfQuantiles", 100), ("quantileValue", quantile)]
    if is_what.statistic == "percentile":
        return "percentile", [("percentileValue", is_what.percentile or 0)]
    if is_what.statistic == "probability":
        return "probability", [("probabilityType", _PROBABILITY[is_what.condition]), *_threshold_keys(field, is_what)]
    return "derived", [("derivedForecast", _DERIVED[is_what.statistic]), *members]


def _version_keys(field: Field) -> list[tuple[str, str | int | float]]:
    """Sets the day of the model version, which is the MARS date of a hindcast."""
    date = field.attributes.get("date")
    if date is None:
        return []
    digits = str(date).replace("-", "")
    parts = (("Year", digits[:-4]), ("Month", digits[-4:-2]), ("Day", digits[-2:]))
    return [(f"{name}OfModelVersion", int(number)) for name, number in parts]


def _threshold_keys(field: Field, is_what: Meaning) -> list[tuple[str, str | int | float]]:
    """Returns the threshold as an integer and a power of ten, with nine digits."""
    limit = "Lower" if is_what.condition == "above" else "Upper"
    threshold = np.array(is_what.threshold or 0.0)
    if convert := _to_units_of_grib(field, is_what.threshold_units):
        threshold = convert(threshold)
    mantissa, exponent = f"{threshold:.8e}".split("e")
    digits = mantissa.replace(".", "").rstrip("0") or "0"
    places = len(digits.lstrip("-")) - 1 - int(exponent)
    return [(f"scaleFactorOf{limit}Limit", places), (f"scaledValueOf{limit}Limit", int(digits))]


def _has_local_section(field: Field) -> bool:
    """Whether ECMWF's local section has information beyond the center, which then must be ECMWF.

    Fields without a MARS description have the center's name as their class.
    """
    return field.attributes.get("class", "ecmf") != "ecmf" and _centre(field) == "ecmf"


def _centre(field: Field) -> str:
    """Returns the name of the center, or its number if only the header has it."""
    kept = keys_of(field.header).get("centre", _ECMWF)
    return str(field.attributes.get("centre", "ecmf" if kept == _ECMWF else kept))


def _origin_keys(field: Field, is_what: Meaning) -> list[tuple[str, str | int | float]]:
    """Sets the originating center, from MARS words if they are known."""
    keys: list[tuple[str, str | int | float]] = [("centre", _centre(field))]
    if not _has_local_section(field):
        return keys
    given = dict(field.attributes)
    if is_what.statistic is not None:
        given["type"] = _TYPES[is_what.statistic]
    keys += [("setLocalDefinition", 1), ("grib2LocalSectionNumber", 1)]
    return keys + [(key, str(given[name])) for name, key in _LOCAL.items() if given.get(name) is not None]


def _base_keys(is_what: Meaning) -> list[tuple[str, str | int | float]]:
    base = is_what.base or dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return [("dataDate", int(f"{base:%Y%m%d}")), ("dataTime", int(f"{base:%H%M}"))]


def _set_step(template: _Template, subject: str, is_what: Meaning) -> None:
    """Sets the step. ecCodes takes 75 µs to read a text: of whole hours after whole hours, only the number changes."""
    text, is_at_time = step_text(is_what), is_what.start is None
    if is_at_time and template.is_in_hours and text.isdecimal():
        _set(template.message, subject, [("forecastTime", int(text))])
        return
    _set(template.message, subject, [("step" if is_at_time else "stepRange", text)])
    template.is_in_hours = is_at_time and text.isdecimal() and _has_hours(template.message, int(text))


def _has_hours(message: int, hours: int) -> bool:
    eccodes = needed("eccodes", "products")
    # Some parameters are only defined over a range of steps, whose end is a date and a time.
    if eccodes.codes_is_defined(message, _END_OF_RANGE):
        return False
    ask = eccodes.codes_get_long
    return (ask(message, "indicatorOfUnitForForecastTime"), ask(message, "forecastTime")) == (_HOUR, hours)


def _check_range(message: int, field: Field, is_what: Meaning) -> None:
    eccodes = needed("eccodes", "products")
    if is_what.start is not None and eccodes.codes_get(message, "typeOfStatisticalProcessing", int) == 255:
        raise InvalidArgument(
            _subject(field),
            f"step {step_text(is_what)}: say what happens over it by stepType avg, accum, max, min",
        )


def _to_units_of_grib(field: Field, units: str) -> Conversion | None:
    known = parameter(field)
    if known is None or not units or not known.units or has_units(field, units):
        return None
    try:
        return conversion(units, known.units)
    except InvalidArgument as error:
        cause = f"it is in {units!r}, and in GRIB2 in {known.units!r} ({error.cause}): write netcdf"
        raise InvalidArgument(_subject(field), cause) from error


def _packing_keys(to: Output) -> Keys:
    return (("packingType", _PACKINGS[to.packing]), ("bitsPerValue", to.bits))


def _values(field: Field, is_what: Meaning) -> Floats:
    """Returns the values in the unit of GRIB, in one dimension."""
    values = np.ascontiguousarray(field.values, np.float64).ravel()
    if is_what.statistic == "probability":
        values = values * 100 if field.units in ("1", "") else values
    elif convert := _to_units_of_grib(field, field.units):
        values = convert(values, is_difference=is_what.statistic == "spread")
    return values


def _set_values(message: int, field: Field, values: Floats) -> None:
    if np.isinf(values).any():
        raise InvalidArgument(_subject(field), "a value is infinite, which GRIB2 cannot say: is it missing (NaN)?")
    missing = np.isnan(values)
    if missing.any():
        _set(message, _subject(field), [("bitmapPresent", 1), ("missingValue", _MISSING)])
        values = np.where(missing, _MISSING, values)
    needed("eccodes", "products").codes_set_values(message, values)


def _on_listed(name: str, along_grid: int) -> int:
    """Returns a message on a grid as in the received message, with values row by row."""
    eccodes = needed("eccodes", "products")
    stated = eccodes.codes_new_from_message(stating(name))
    try:
        eccodes.codes_set(stated, "edition", 2)
        if eccodes.codes_is_defined(stated, "scanningMode"):
            eccodes.codes_set(stated, "scanningMode", eccodes.codes_get_long(stated, "scanningMode") & ~_IN_OTHER_ORDER)
        if eccodes.codes_is_defined(stated, ALONG_GRID):
            eccodes.codes_set(stated, ALONG_GRID, int(along_grid != 0))
        of_grid = sections_of(bytes(eccodes.codes_get_message(stated)), 7)
    finally:
        eccodes.codes_release(stated)
    sample = _Template(_sample())
    usual = sections_of(bytes(eccodes.codes_get_message(sample.message)), 4)
    body = b"".join([usual[1], of_grid[3], usual[4], of_grid[5], of_grid[6], of_grid[7], b"7777"])
    whole = b"GRIB\0\0\0\2" + (16 + len(body)).to_bytes(8, "big") + body
    return int(eccodes.codes_new_from_message(whole))


def _sample() -> int:
    return int(needed("eccodes", "products").codes_grib_new_from_samples("GRIB2"))


def _on_rows(name: str) -> int:
    """Returns a message on a regular or reduced grid."""
    message = _sample()
    _set_grid(message, name)
    return message


def _set_grid(message: int, name: str) -> None:
    eccodes = needed("eccodes", "products")
    lies = grid(name)
    assert isinstance(lies, Grid)
    keys = {"regular_ll": _regular_ll, "regular_gg": _regular_gg, "reduced_gg": _reduced_gg}[lies.kind](lies)
    _set(message, f"grid {name[:80]}", keys)
    if lies.kind == "reduced_gg":
        eccodes.codes_set_array(message, "pl", _columns(lies).tolist())


def _corners(lies: Grid, last_longitude: float) -> list[tuple[str, str | int | float]]:
    return [
        ("latitudeOfFirstGridPointInDegrees", float(lies.latitudes[0])),
        ("longitudeOfFirstGridPointInDegrees", float(lies.longitudes[0]) % 360),
        ("latitudeOfLastGridPointInDegrees", float(lies.latitudes[-1])),
        ("longitudeOfLastGridPointInDegrees", last_longitude % 360),
    ]


def _regular_ll(lies: Grid) -> list[tuple[str, str | int | float]]:
    rows, columns = lies.shape
    dlon, dlat = map(float, lies.whole.split("/")) if lies.whole else _increments(lies)
    return [
        ("gridType", "regular_ll"),
        ("Ni", columns),
        ("Nj", rows),
        ("iDirectionIncrementInDegrees", dlon),
        ("jDirectionIncrementInDegrees", dlat),
        *_corners(lies, float(lies.longitudes[-1])),
    ]


def _increments(lies: Grid) -> tuple[float, float]:
    """Returns the distances of columns and rows; a single row or column has the other distance, else a degree."""
    rows, columns = lies.shape
    dlon = float(lies.longitudes[-1] - lies.longitudes[0]) / (columns - 1) if columns > 1 else 0.0
    dlat = float(lies.latitudes[0] - lies.latitudes[-1]) / (rows - 1) if rows > 1 else 0.0
    return dlon or dlat or 1.0, dlat or dlon or 1.0


def _regular_gg(lies: Grid) -> list[tuple[str, str | int | float]]:
    rows, columns = lies.shape
    n = int(lies.name.partition("@")[0][1:])
    return [
        ("gridType", "regular_gg"),
        ("N", n),
        ("Ni", columns),
        ("Nj", rows),
        ("iDirectionIncrementInDegrees", 90 / n),
        *_corners(lies, float(lies.longitudes[-1])),
    ]


def _reduced_gg(lies: Grid) -> list[tuple[str, str | int | float]]:
    columns = _columns(lies)
    # The last column of the longest row, from which ecCodes detects global grids.
    longest = int(columns.max())
    return [
        ("gridType", "reduced_gg"),
        ("N", len(columns) // 2),
        ("Nj", len(columns)),
        *_corners(lies, 360 - 360 / longest),
    ]


def _columns(lies: Grid) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the number of columns in each row of a reduced grid."""
    starts = np.flatnonzero(np.diff(lies.latitudes)) + 1
    return np.diff(np.concatenate([[0], starts, [lies.size]]))
