"""Decodes GRIB messages to fields.

The bytes of a message are validated before ecCodes reads them: it must be complete, and have one field. Its grid is
mapped to a name of `junctura.products._regrid.grids`, and its values to the order of this name: rows from north to
south, columns from west to east. Grids with listed points (projections, rotated, reduced areas, HEALPix, unstructured)
have the order of `junctura.field`. A grid without such a name is rejected, with its GRIB name in the error.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import junctura
from junctura import _forks
from junctura._forks import lazy_property
from junctura._grib import checked_messages
from junctura._xarray.label_attributes import needed
from junctura.errors import Corrupt, InvalidArgument, Unsupported
from junctura.field import FLAGS, Order, Step, mars_of, octets_of, order_of, values_of, values_of_simple
from junctura.field._time import day_of, seconds_of
from junctura.products._input.array_tags import untagged
from junctura.products._input.decoded_field import Field
from junctura.products._input.header_keys import LEVEL, header_of, keys_of, level_of, sections_of
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import (
    Grid,
    Spectral,
    grid,
    listed_name,
    reduced_gg,
    regular_area,
    regular_gg,
    regular_ll,
    spectral,
)
from junctura.products._regrid.vector_rotation import ALONG_GRID
from junctura.products._workers.cache import answered

_UNKNOWN = ("unavailable", "MISSING", "unknown", "~")
# GRIB has degrees with three digits (edition 1) or six; ecCodes may round the last one.
_ROUNDED = 1.1e-3
# Shorter sections have the number of a predefined grid of the center (edition 1).
_SECTION_BYTES_MIN = 14
# ECMWF's local section of edition 1 with the member number in octets 50 and 51.
_OF_MEMBERS = b"\1"
# The key under which cached properties of a parameter have the octets that identify it.
_ABOUT = "about"
_OVER_STEPS = ("accum", "avg", "max", "min")
_counting = _forks.Lock()
_decodes = 0


def decodes() -> int:
    """Returns the number of messages that this process has decoded: requests to ecCodes for values."""
    return _decodes


def decode(message: bytes | memoryview, attributes: Mapping[str, Any] | None = None) -> Field:
    """Decodes the field of a message.

    Parameters
    ----------
    message
        One GRIB message of edition 1 or 2, with one field.
    attributes
        The attributes of the field, if known; else they are read from the message (ecCodes' namespace `mars`; `param`
        is the short name if there is one, with `paramId` in addition). For fields over a range of steps, `stepType` and
        `stepStart` (the start of the range) are added; and `uvRelativeToGrid`, if vector components follow a projected
        or rotated grid (see `junctura.products._regrid.vector_rotation`).

    Returns
    -------
    NaN for missing values; `units` are those of the message.
        NaN where a value is missing; `units` are those of the message.

    Raises
    ------
    Corrupt
        The bytes are not a complete message, or announce values that are missing, or ecCodes cannot read them.
    TooLarge
        It has more points than ``JUNCTURA_GRIB_POINTS_MAX`` (67,108,864).
    Unsupported
        Its grid has no name here, or it has several fields.
    ImportError
        Without ecCodes: ``pip install 'junctura[products]'``.

    """
    global _decodes
    whole = bytes(message)
    read = checked_messages.decoded_as(one_field(whole), whole, _read, None if attributes is None else dict(attributes))
    on = _on(read.on, read.values.size) if isinstance(read.on, str) else read.on
    field = Field(read.values, on, read.attributes, read.units, read.header)
    with _counting:
        _decodes += 1
    return field


def _on(name: str, size: int) -> Grid | Spectral:
    """Returns the grid of this name, with as many points as there are values."""
    kind = name.partition(":")[0]
    try:
        found = grid(name)
    except InvalidArgument as error:
        raise Corrupt("GRIB message", f"its grid section, {kind}: {error.cause}") from error
    if found.size != size:
        raise Corrupt("GRIB message", f"{size} values, but its grid {kind} has {found.size} points")
    return found


class _Read(NamedTuple):
    """Returns the properties of a message. A grid with listed points is only named: its points are computed on
    demand.
    """

    values: Floats
    on: Grid | Spectral | str
    attributes: Mapping[str, Any]
    units: str
    header: Mapping[str, str]


def _read(message: bytes, attributes: dict[str, Any] | None) -> _Read:
    with contextlib.ExitStack() as opened:
        sections = sections_of(message, 5)
        of_grid, of_parameter = _known(_about_grid(message, sections)), _known(_about_parameter(message, sections))
        header = header_of(message, sections)
        asked = GribMessage(needed("eccodes", "products"), opened, message, of_grid, of_parameter)
        return _field(asked, header, attributes)


def field_of(obj: junctura.Object, attributes: Mapping[str, Any]) -> Field:
    """Returns the field of an object: a message, or an array with the attributes `grid` and `units`, in place.

    A double-precision array is not copied: the field shares the object's memory.

    Raises
    ------
    InvalidArgument
        An array has no grid, or its size differs from its grid.
    Corrupt, Unsupported, ImportError
        See `decode`.

    """
    if "dtype" not in attributes:
        return decode(memoryview(obj), attributes)
    if "grid" not in attributes:
        raise InvalidArgument("array", "where do its values lie? expected the attribute grid, as 0.5/0.5 or F48")
    on = grid(str(attributes["grid"]))
    values = obj.array().astype(np.float64, copy=False)
    if values.size != on.size:
        raise InvalidArgument(f"array of {values.size} values", f"the grid {on.name} has {on.size} points")
    return Field(values.reshape(on.shape), on, untagged(attributes), str(attributes.get("units", "")))


@dataclass
class GribMessage:
    """A message that ecCodes opens only for a request that no earlier message has answered.

    Opening a message takes as long as all other processing of a field of 10,000 values.
    """

    eccodes: Any
    opened: contextlib.ExitStack
    content: bytes
    # Properties common to all messages of its grid, and of its parameter: reading a key takes as long as decoding
    # hundreds or thousands of values.
    of_grid: dict[str, Any]
    of_parameter: dict[str, Any]

    @lazy_property
    def handle(self) -> int:
        """The handle of ecCodes."""
        return self.opened.enter_context(checked_messages.opened(self.eccodes, self.content))

    def has(self, key: str) -> bool:
        return bool(self.eccodes.codes_is_defined(self.handle, key))

    def number(self, key: str) -> int:
        """A property of its grid."""
        return int(_once(self.of_grid, key, lambda: self.eccodes.codes_get_long(self.handle, key)))

    def degrees(self, key: str) -> float:
        """A property of its grid."""
        return float(_once(self.of_grid, key, lambda: self.eccodes.codes_get_double(self.handle, key)))

    def grid_type(self) -> str:
        """The GRIB name of its grid; the template's number if ecCodes has no name, as 204 (curvilinear)."""
        number = "gridDefinitionTemplateNumber"
        if "gridType" in self.of_grid or self.has("gridType") or not self.has(number):
            return str(_once(self.of_grid, "gridType", lambda: self.text("gridType")))
        return f"of template 3.{self.number(number)}"

    def columns(self) -> list[int]:
        """The number of points in each row."""
        counts = _once(self.of_grid, "pl", lambda: self.eccodes.codes_get_array(self.handle, "pl"))
        return [int(count) for count in counts]

    def units(self) -> str:
        """A property of its parameter."""
        about = self.of_parameter.get(_ABOUT, b"")
        ask = functools.partial(self.text, "units")
        return str(_once(self.of_parameter, "units", lambda: answered((_ABOUT, about), ask) if about else ask()))

    def step_type(self) -> str:
        """A property of its parameter: instantaneous, or the kind of its range of steps; empty if ecCodes has none."""
        return str(_once(self.of_parameter, "stepType", lambda: self.text("stepType") if self.has("stepType") else ""))

    def text(self, key: str) -> str:
        return str(self.eccodes.codes_get_string(self.handle, key))

    def values(self) -> Floats:
        unpacked: Floats | None = values_of_simple(self.content)
        if unpacked is not None:
            return unpacked
        checked_messages.check_places(self.eccodes, self.handle, self.content)
        values: Floats = values_of(self.eccodes, self.handle)
        return values


def one_field(message: bytes) -> checked_messages.AnnouncedMessage:
    """Returns the announced sizes of a message; rejects bytes other than one message with one field."""
    if message[:4] != b"GRIB":
        raise Corrupt("GRIB message", f"it begins with {message[:4]!r}")
    announced = checked_messages.announced(message)
    if announced.nbytes < len(message):
        raise Corrupt("GRIB message", f"{len(message)} bytes, but it announces {announced.nbytes}")
    if announced.fields > 1:
        cause = f"{announced.fields} fields in one message: split it, e.g. with grib_copy"
        raise Unsupported("GRIB message", cause)
    return announced


def _about_grid(message: bytes, sections: Mapping[int, bytes]) -> bytes:
    """Returns the octets that identify a grid; empty for a predefined grid of the center."""
    if message[7] == 2:
        return sections.get(3, b"")
    described = octets_of(message)
    return b"1" + described if len(described) >= _SECTION_BYTES_MIN else b""


def _about_parameter(message: bytes, sections: Mapping[int, bytes]) -> bytes:
    """Returns the octets that identify a parameter's name and units: all except times and the member number.

    Offsets are those of the WMO's FM 92 GRIB edition 2, section 1 and templates 4.0 and 4.1; fields over a range of
    steps, and those of other templates, are equal only to fields of the same time. Offsets of edition 1 are numbers of
    octets of its section 1, less 1.
    """
    if message[7] == 1:
        product = message[8 : 8 + int.from_bytes(message[8:11], "big")]
        # The table, center, process, parameter and level; the unit of time, and the time range; the subcenter.
        kind = product[3:7] + product[8:12] + product[17:18] + product[20:21] + product[25:26]
        over = product[18:20] if product[20] else b""
        local = product[40:]
        return b"".join((b"1", kind, over, local[:9] + local[11:] if local[:1] == _OF_MEMBERS else local))
    if 4 not in sections:
        return b""
    issued, said = bytearray(sections.get(1, b"")), bytearray(sections[4])
    issued[12:19] = bytes(7)
    template = int.from_bytes(said[7:9], "big")
    if template in (0, 1):
        said[18:22] = bytes(4)
    if template == 1:
        said[35:36] = bytes(1)
    return b"".join((message[6:7], issued, sections.get(2, b""), said))


def _known(about: bytes) -> dict[str, Any]:
    """Returns the cached properties of messages with the same octets; nothing without octets."""
    return _shared(about) if about else {}


@functools.lru_cache(maxsize=256)
def _shared(about: bytes) -> dict[str, Any]:
    return {_ABOUT: about}


def _once(known: dict[str, Any], key: str, ask: Callable[[], Any]) -> Any:
    if key not in known:
        known[key] = ask()
    return known[key]


def _field(message: GribMessage, header: Mapping[str, str], attributes: Mapping[str, Any] | None) -> _Read:
    on, values = values_on_grid(message)
    known = {**_over_steps(message), **(_attributes(message) if attributes is None else attributes)}
    if "number" not in known and known.get("type") != "cf" and "typeOfEnsembleForecast" in keys_of(header):
        # MARS has no member numbers of other centers.
        known["number"] = int(message.text("perturbationNumber"))
    if not {"step", "hdate"} & known.keys() and (step := _step_since(message, known)):
        known["step"] = step
    if isinstance(on, str) and message.has(ALONG_GRID) and message.number(ALONG_GRID):
        known[ALONG_GRID] = -1 if message.has("iScansNegatively") and message.number("iScansNegatively") else 1
    units = message.units()
    return _Read(values, on, known, "" if units in _UNKNOWN else units, {**header, LEVEL: level_of(known)})


def values_on_grid(message: GribMessage) -> tuple[Grid | Spectral | str, Floats]:
    """Returns the grid of a message and its values there; for a grid with listed points, its name."""
    found: tuple[Grid | Spectral | str, Floats] = _ON.get(message.grid_type(), _listed)(message)
    return found


def _listed(message: GribMessage) -> tuple[str, Floats]:
    """Returns a grid with listed points: projections, rotated and unstructured grids, and so on."""
    kind = message.grid_type()
    section, edition = octets_of(message.content), message.content[7]
    if kind.endswith("sh") or not kind.isidentifier() or len(section) < _SECTION_BYTES_MIN:
        raise Unsupported(f"grid {kind}", "fields of this kind are not read")
    if message.has("scanningMode") and message.number("scanningMode") & 0x0F:
        raise Unsupported(f"grid {kind}", "its rows are staggered")
    values, order = message.values(), order_of(message.eccodes, message.handle)
    if order is not None and order.rows * order.columns == values.size:
        values = np.ascontiguousarray(order.arranged(values)).reshape(-1)
    return listed_name(kind, edition, section), values


def _attributes(message: GribMessage) -> dict[str, Any]:
    found = mars_of(message.eccodes, message.handle)
    if "param" in found:
        short = message.text("shortName")
        number = int(message.eccodes.codes_get_long(message.handle, "paramId"))
        found["param"] = (str(found["param"]) if number else _codes(message)) if short in _UNKNOWN else short
        if number:
            found["paramId"] = number
    return found


def _codes(message: GribMessage) -> str:
    """Returns a parameter without a name in the form of schemas: discipline, category and number; 0 in edition 1."""
    keys = ("discipline", "parameterCategory", "parameterNumber")
    return ".".join(map(message.text, keys)) if message.content[7] == 2 else "0"


def _over_steps(message: GribMessage) -> dict[str, Any]:
    """Returns the kind and the range of steps; MARS has only its end."""
    kind = message.step_type()
    if kind not in _OVER_STEPS:
        return {}
    return {"stepType": kind, "stepStart": message.text("startStep")}


def _step_since(message: GribMessage, known: Mapping[str, Any]) -> str:
    """Returns the time from the MARS date to the valid time, for fields without a step, as monthly means; empty if 0.

    An invalid date is rejected where it is used.
    """
    if "date" not in known or not message.has("validityDate"):
        return ""
    date, time = (_digits(known.get(word, 0)) for word in ("date", "time"))
    with contextlib.suppress(ValueError):
        seconds = _moment(message.text("validityDate"), message.text("validityTime")) - _moment(date, time)
        return Step(round(seconds), round(seconds)).words if seconds > 0 else ""
    return ""


def _moment(day: str, time: str) -> float:
    """Returns the time in seconds."""
    begin = dt.datetime.combine(day_of(day), dt.time(), dt.timezone.utc)
    return begin.timestamp() + seconds_of(time.zfill(4))


def _digits(said: Any) -> str:
    return str(said).replace("-", "").replace(":", "")


def _spherical_harmonics(message: GribMessage) -> tuple[Spectral, Floats]:
    j, k, m = (message.number(key) for key in "JKM")
    if not j == k == m:
        raise Unsupported("grid sh", f"truncated at J={j} K={k} M={m}, expected a triangle")
    return _fitting(spectral(j), message.values())


def _reduced_gg(message: GribMessage) -> tuple[Grid | str, Floats]:
    n, rows = message.number("N"), message.number("Nj")
    counts = message.columns()
    points = message.number("numberOfDataPoints")
    if rows != 2 * n or len(counts) != rows or sum(counts) != points or 0 in counts:
        return _listed(message)
    if message.number("scanningMode") or abs(message.degrees(_FIRST[1])) > _ROUNDED:
        return _listed(message)
    return _fitting(reduced_gg(n, counts), message.values())


_FIRST = ("latitudeOfFirstGridPointInDegrees", "longitudeOfFirstGridPointInDegrees")
_LAST = ("latitudeOfLastGridPointInDegrees", "longitudeOfLastGridPointInDegrees")


class _Extent(NamedTuple):
    """Returns the rows and columns of a regular grid."""

    columns: int
    rows: int
    north: float
    west: float
    south: float
    east: float

    def says(self) -> str:
        rows = f"{self.rows} rows from {self.north} to {self.south}"
        return f"{rows} and {self.columns} columns from {self.west} to {self.east}"


def _extent(message: GribMessage) -> _Extent:
    columns, rows = message.number("Ni"), message.number("Nj")
    points = message.number("numberOfDataPoints")
    if columns * rows != points:
        raise Corrupt("GRIB message", f"{rows} rows and {columns} columns of {points} points")
    ends = sorted(message.degrees(key) for key in (_FIRST[0], _LAST[0]))
    west, east = (message.degrees(key) for key in (_FIRST[1], _LAST[1]))
    if message.number("iScansNegatively"):
        west, east = east, west
    if east < west or (east == west and columns > 1):
        west -= 360
    elif west >= 180:
        west, east = west - 360, east - 360
    return _Extent(columns, rows, ends[1], west, ends[0], east)


def _regular_ll(message: GribMessage) -> tuple[Grid, Floats]:
    extent = _extent(message)
    name = f"grid regular_ll of {extent.says()}"
    if extent.rows < 2 or extent.columns < 2:
        return _alone(message, extent, name)
    dlon = (extent.east - extent.west) / (extent.columns - 1)
    dlat = (extent.north - extent.south) / (extent.rows - 1)
    for axis, between in (("i", dlon), ("j", dlat)):
        if message.number(f"{axis}DirectionIncrementGiven"):
            _agree(extent, between, message.degrees(f"{axis}DirectionIncrementInDegrees"))
    try:
        whole = regular_ll(_divisor(360, dlon), _divisor(180, dlat))
    except (InvalidArgument, ZeroDivisionError):
        return _alone(message, extent, name)
    return _placed(message, whole, extent, name) if _is_part(whole, extent) else _alone(message, extent, name)


def _alone(message: GribMessage, extent: _Extent, name: str) -> tuple[Grid, Floats]:
    """Returns values on rows and columns that do not belong to a global grid."""
    values, east = _in_order(message, extent), extent.east
    if extent.columns > 1 and abs(extent.east - extent.west - 360) < _ROUNDED:
        values = _without_repeated(values, name)
        east -= (extent.east - extent.west) / (extent.columns - 1)
    rows, columns = values.shape
    try:
        return _fitting(regular_area(rows, columns, extent.north, extent.west, extent.south, east), values)
    except InvalidArgument as error:
        raise Corrupt("GRIB message", f"{extent.says()}: {error.cause}") from error


def _agree(extent: _Extent, between: float, said: float) -> None:
    if abs(between - said) > _ROUNDED:
        raise Corrupt("GRIB message", f"{extent.says()} are {between:g} degrees apart, but it says {said:g}")


def _regular_gg(message: GribMessage) -> tuple[Grid | str, Floats]:
    extent = _extent(message)
    n = message.number("N")
    name = f"grid regular_gg of N={n} with {extent.says()}"
    whole = regular_gg(n)
    return _placed(message, whole, extent, name) if _is_part(whole, extent) else _listed(message)


def _divisor(circle: int, increment: float) -> float:
    """Returns the increment that divides it, if a rounded increment is close."""
    return circle / round(circle / increment)


def _placed(message: GribMessage, whole: Grid, extent: _Extent, name: str) -> tuple[Grid, Floats]:
    """Returns values in the order of the grid, or of the area of the grid, with these rows and columns."""
    rows, first, last = _ends(whole, extent)
    spacing = 360 / whole.shape[1]
    values = _in_order(message, extent)
    if last - first == whole.shape[1]:
        values, last = _without_repeated(values, name), last - 1
    if values.shape == whole.shape:
        return _fitting(whole, np.roll(values, first, axis=1) if first % whole.shape[1] else values)
    return _fitting(whole.around(whole.latitudes[rows], np.array([first, last]) * spacing), values)


def _ends(whole: Grid, extent: _Extent) -> tuple[npt.NDArray[np.intp], int, int]:
    """Returns the first and last row and column of a grid that are closest to these."""
    spacing = 360 / whole.shape[1]
    rows = _nearest(whole.latitudes, [extent.north, extent.south])
    return rows, round(extent.west / spacing), round(extent.east / spacing)


def _is_part(whole: Grid, extent: _Extent) -> bool:
    """Whether these are consecutive rows and columns of a grid."""
    rows, first, last = _ends(whole, extent)
    spacing = 360 / whole.shape[1]
    ends = (*(whole.latitudes[rows] - [extent.north, extent.south]), first * spacing - extent.west)
    is_there = max(map(abs, ends)) <= _ROUNDED and abs(last * spacing - extent.east) <= _ROUNDED
    return is_there and (rows[1] - rows[0] + 1, last - first + 1) == (extent.rows, extent.columns)


def _without_repeated(values: Floats, name: str) -> Floats:
    """Returns values of a full circle without the last column, which repeats the first one."""
    if not np.array_equal(values[:, 0], values[:, -1], equal_nan=True):
        raise Unsupported(name, "its first and last columns are on one meridian and differ")
    return np.ascontiguousarray(values[:, :-1])


def _nearest(latitudes: Floats, wanted: list[float]) -> npt.NDArray[np.intp]:
    rows: npt.NDArray[np.intp] = np.abs(latitudes[:, None] - wanted).argmin(axis=0)
    return rows


def _in_order(message: GribMessage, extent: _Extent) -> Floats:
    """Returns rows from north to south, columns from west to east, for any scanning mode of the message."""
    if message.number("scanningMode") & 0x0F:
        raise Unsupported(f"grid {message.grid_type()}", "its rows are staggered")
    order = Order(extent.rows, extent.columns, *(bool(message.number(flag)) for flag in FLAGS))
    values = message.values()
    if values.size != extent.rows * extent.columns:
        raise Corrupt("GRIB message", f"{values.size} values for {extent.says()}")
    ordered = order.arranged(values)
    if order.is_northward:
        ordered = ordered[::-1]
    if order.is_westward:
        ordered = ordered[:, ::-1]
    return np.ascontiguousarray(ordered)


def _fitting(on: Any, values: Floats) -> tuple[Any, Floats]:
    if values.shape != on.shape:
        raise Corrupt("GRIB message", f"{values.size} values, but {on.name} has {on.size}")
    return on, values


_ON: dict[str, Any] = {
    "regular_ll": _regular_ll,
    "regular_gg": _regular_gg,
    "reduced_gg": _reduced_gg,
    "sh": _spherical_harmonics,
}
