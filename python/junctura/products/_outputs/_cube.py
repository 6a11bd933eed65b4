"""Fields as one data set according to the CF conventions (1.11): the common part of netCDF and Zarr.

```text
  t(realization, time, level, latitude, longitude)       on a grid of rows and columns
  t(realization, time, level, cell)                      on a reduced grid: latitude(cell), longitude(cell)
  t(realization, station, time, level)                   at places: a discrete sampling geometry, `timeSeries`
```
The axis of time is there always, those of members and levels where the fields differ in them; else they are one number.
`time` is when values hold, beside it `forecast_period`, and `time_bnds` where they are of a range of steps. Variables
with ranges that end together and begin at different steps have axes of their own (`time_2`). All fields of one data set
have one grid, and each variable has a field for all combinations of its axes. `forecast_reference_time` is one number,
or has a value for each time where there are several base times, as in reanalyses; no two have one valid time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._outputs._cf import counted, data_attributes, level_attributes, made_by, time_attributes, unit_of
from junctura.products._outputs._meaning import Meaning, hours, meaning, places, step_text
from junctura.products._regrid.grids import Grid

Array: TypeAlias = npt.NDArray[Any]
_AXES = ("realization", "time", "level")
_TIMELESS = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class Variable:
    """An array with named dimensions; `is_data` marks a field, in contrast to coordinates."""

    dims: tuple[str, ...]
    values: Array
    attributes: Mapping[str, Any]
    is_data: bool = False


@dataclass(frozen=True)
class Cube:
    """A data set: its variables by name, coordinates first, and its global attributes."""

    variables: Mapping[str, Variable]
    attributes: Mapping[str, Any]

    def chunks(self, variable: Variable) -> tuple[int, ...]:
        """The chunk shape: one field, so that reading a field reads no more; at places the whole array, which is
        small.
        """
        if "station" in variable.dims:
            return variable.values.shape
        on_grid = ("latitude", "longitude", "cell")
        return tuple(
            extent if dim in on_grid else 1 for dim, extent in zip(variable.dims, variable.values.shape, strict=True)
        )

    @property
    def dims(self) -> dict[str, int]:
        return {
            name: extent
            for variable in self.variables.values()
            for name, extent in zip(variable.dims, variable.values.shape, strict=True)
        }


@dataclass(frozen=True)
class _Place:
    """The position of a field in the cube; times since the first base time."""

    base: dt.timedelta
    time: dt.timedelta
    realization: int | None
    level: float | None


@dataclass(frozen=True)
class _CubePart:
    field: Field
    meaning: Meaning
    place: _Place

    @property
    def start(self) -> dt.timedelta | None:
        """The start of its range of steps, since the first base time."""
        return None if self.meaning.start is None else self.place.base + self.meaning.start


@dataclass
class _Axes:
    """Returns all values of the fields along each axis, in order."""

    values: dict[str, list[Any]] = field(default_factory=dict)

    def dims(self, of: Sequence[_CubePart]) -> tuple[str, ...]:
        """Returns the axes of a variable: time, and those with several values, which are its own, too."""
        return tuple(
            axis
            for axis in _AXES
            if axis == "time" or (len(self.values[axis]) > 1 and getattr(of[0].place, axis) is not None)
        )


def cube(fields: Sequence[Field]) -> Cube:
    """Returns the fields as one data set.

    Raises
    ------
    InvalidArgument
        The fields differ in their grid or base time, or one is duplicate or missing: the error has the details.

    """
    parts = _parts(fields)
    _check_one(parts)
    base, bases = _first_base([part.meaning for part in parts]), _bases(parts)
    named: dict[str, list[_CubePart]] = {}
    for part in parts:
        named.setdefault(_spelled(part.meaning.name), []).append(part)
    axes = _Axes({axis: _values(parts, axis) for axis in _AXES})
    times, time_of = _times(named)
    lies = parts[0].field.grid
    variables = {**_where(lies, _named(parts)), **_which(parts, axes)}
    for time in times:
        variables |= _when(base, bases, axes.values["time"], time)
    beside = [name for name, one in variables.items() if (name,) != one.dims and "bounds" not in one.dims]
    for name, some in named.items():
        if name in variables:
            raise InvalidArgument(f"field {name}", "a coordinate has this name: give it another by its attribute param")
        made = _data(name, some, axes, lies, time_of[name])
        own = [
            one
            for one in beside
            if set(variables[one].dims) <= set(made.dims)
            and (one not in _AXES or getattr(some[0].place, one) is not None)
        ]
        variables[name] = replace(made, attributes={**made.attributes, "coordinates": " ".join(own)})
    return Cube(variables, made_by(lies, parts[0].field, sorted(named)))


def _parts(fields: Sequence[Field]) -> list[_CubePart]:
    found = [(one, meaning(one)) for one in fields]
    first = _first_base([is_what for _, is_what in found])
    return [_CubePart(one, is_what, _place(is_what, (is_what.base or first) - first)) for one, is_what in found]


def _first_base(meanings: Sequence[Meaning]) -> dt.datetime:
    return min((is_what.base for is_what in meanings if is_what.base is not None), default=_TIMELESS)


def _place(is_what: Meaning, base: dt.timedelta) -> _Place:
    number = None if is_what.statistic else is_what.number
    return _Place(base, base + is_what.end, number, is_what.level)


def _bases(parts: Sequence[_CubePart]) -> dict[dt.timedelta, dt.timedelta]:
    """Returns the base time for each valid time.

    Raises
    ------
    InvalidArgument
        Two base times have one valid time.

    """
    bases: dict[dt.timedelta, _CubePart] = {}
    for part in parts:
        other = bases.setdefault(part.place.time, part)
        if other.place.base != part.place.base:
            both = f"steps {step_text(other.meaning)} and {step_text(part.meaning)} of {other.meaning.base} and"
            cause = f"{both} {part.meaning.base} have one valid time: gather steps, or base times, not both"
            raise InvalidArgument(f"field {part.field.param}", cause)
    return {time: part.place.base for time, part in bases.items()}


def _spelled(name: str) -> str:
    """Returns a name that CF allows: letters, digits and underscores, beginning with a letter."""
    spelled = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    return spelled if spelled[:1].isalpha() else f"param_{spelled}"


def _check_one(parts: Sequence[_CubePart]) -> None:
    first = parts[0]
    for part in parts:
        if part.field.grid != first.field.grid:
            cause = f"it is on {part.field.grid.label}, but {first.field.param} on {first.field.grid.label}"
            raise InvalidArgument(f"field {part.field.param}", f"{cause}: one data set has one grid")
        if (part.meaning.base is None) != (first.meaning.base is None):
            raise InvalidArgument(
                f"field {part.field.param}",
                f"its base time is {part.meaning.base}, that of another {first.meaning.base}",
            )
        if part.place.level is not None and part.meaning.levtype != _levtype(parts):
            raise InvalidArgument(
                f"field {part.field.param}", f"levels of {part.meaning.levtype} and {_levtype(parts)} in one data set"
            )


def _levtype(parts: Sequence[_CubePart]) -> str:
    return next((part.meaning.levtype for part in parts if part.place.level is not None), "sfc")


def _values(parts: Sequence[_CubePart], axis: str) -> list[Any]:
    return sorted({getattr(part.place, axis) for part in parts} - {None})


@dataclass(frozen=True)
class _Times:
    """A time axis: the suffix of its names, and the starts of ranges of steps by their ends."""

    suffix: str
    starts: dict[dt.timedelta, dt.timedelta] = field(default_factory=dict)


def _times(named: Mapping[str, Sequence[_CubePart]]) -> tuple[list[_Times], dict[str, _Times]]:
    """Returns the minimum number of time axes, and the axis of each variable."""
    times, time_of = [_Times("")], {}
    for name, parts in named.items():
        own = _starts(name, parts)
        fitting = (time for time in times if all(time.starts.get(end, start) == start for end, start in own.items()))
        found = next(fitting, None)
        if found is None:
            found = _Times(f"_{len(times) + 1}")
            times.append(found)
        found.starts.update(own)
        time_of[name] = found
    return times, time_of


def _starts(name: str, parts: Sequence[_CubePart]) -> dict[dt.timedelta, dt.timedelta]:
    starts: dict[dt.timedelta, dt.timedelta] = {}
    for part in parts:
        if part.start is not None and starts.setdefault(part.place.time, part.start) != part.start:
            cause = "two ranges of steps end together: write them as products of their own"
            raise InvalidArgument(f"field {name}", cause)
    return starts


def _where(lies: Grid, named: Sequence[str] | None) -> dict[str, Variable]:
    north = {"standard_name": "latitude", "long_name": "latitude", "units": "degrees_north"}
    east = {"standard_name": "longitude", "long_name": "longitude", "units": "degrees_east"}
    if lies.is_regular:
        return {
            "latitude": Variable(("latitude",), lies.latitudes, {**north, "axis": "Y"}),
            "longitude": Variable(("longitude",), lies.longitudes, {**east, "axis": "X"}),
        }
    dim = "station" if lies.kind == "points" else "cell"
    found = {
        "latitude": Variable((dim,), lies.latitudes, north),
        "longitude": Variable((dim,), lies.longitudes, east),
    }
    if lies.kind == "points":
        where = lies.name.partition("@")[2].split(",")
        names = [name or place for name, place in zip(named or where, where, strict=True)]
        what = "name of the place" if named else "latitude and longitude of the place"
        found["station_name"] = Variable((dim,), np.array(names), {"long_name": what, "cf_role": "timeseries_id"})
    return found


def _when(
    base: dt.datetime, bases: Mapping[dt.timedelta, dt.timedelta], valid: Sequence[dt.timedelta], of: _Times
) -> dict[str, Variable]:
    """Adds the time axis and related variables: base times, and forecast periods."""
    unit = unit_of([*valid, *of.starts.values()])
    time, bounds = f"time{of.suffix}", f"time_bnds{of.suffix}"
    since = time_attributes(base, unit)
    periods = [end - bases[end] for end in valid]
    about: dict[str, Any] = {**since, "standard_name": "time", "long_name": "time", "axis": "T"}
    found = {
        time: Variable((time,), counted(valid, unit), about | ({"bounds": bounds} if of.starts else {})),
        f"forecast_period{of.suffix}": Variable(
            (time,),
            counted(periods, unit),
            {"standard_name": "forecast_period", "long_name": "time since the base time", "units": unit},
        ),
    }
    reference = {**since, "standard_name": "forecast_reference_time", "long_name": "base time"}
    if len(set(bases.values())) == 1:
        found["forecast_reference_time"] = Variable((), np.array(0.0), reference)
    else:
        based = counted([bases[end] for end in valid], unit)
        found[f"forecast_reference_time{of.suffix}"] = Variable((time,), based, reference)
    if of.starts:
        starts = counted([of.starts.get(end, end) for end in valid], unit)
        found[bounds] = Variable((time, "bounds"), np.stack([starts, counted(valid, unit)], axis=1), {})
    return found


def _named(parts: Sequence[_CubePart]) -> list[str] | None:
    names = [places(part.field) for part in parts]
    return next((found for found in names if found), None)


def _which(parts: Sequence[_CubePart], axes: _Axes) -> dict[str, Variable]:
    found = {}
    if numbers := axes.values["realization"]:
        about = {"standard_name": "realization", "long_name": "member of the ensemble", "units": "1"}
        found["realization"] = _coordinate("realization", np.array(numbers, np.int32), about)
    if levels := axes.values["level"]:
        found["level"] = _coordinate("level", np.array(levels, np.float64), level_attributes(_levtype(parts)))
    return found


def _coordinate(name: str, values: Array, attributes: dict[str, Any]) -> Variable:
    return Variable((name,), values, attributes) if len(values) > 1 else Variable((), values[0], attributes)


def _data(name: str, parts: Sequence[_CubePart], axes: _Axes, lies: Grid, of: _Times) -> Variable:
    # An accumulation since step 0 is zero at step 0, and may be described as instantaneous there.
    said = max(parts, key=lambda part: part.place.time)
    dims = axes.dims(parts)
    shape = tuple(len(axes.values[axis]) for axis in dims)
    values = np.full((*shape, *lies.shape), np.nan, np.float32)
    index = {axis: {value: number for number, value in enumerate(axes.values[axis])} for axis in dims}
    seen = np.zeros(shape, np.bool_)
    for part in parts:
        _check_alike(part, said)
        where = tuple(index[axis].get(getattr(part.place, axis), -1) for axis in dims)
        if -1 in where or seen[where]:
            raise InvalidArgument(f"field {name}", f"{_words(part)}: there is another, or it says less than the others")
        values[where] = part.field.values
        seen[where] = True
    _check_full(name, dims, axes, seen, _first_base([said.meaning]) - said.place.base)
    dims = tuple(f"time{of.suffix}" if axis == "time" else axis for axis in dims)
    if lies.kind == "points":
        at = dims.index(f"time{of.suffix}")
        values, dims = np.moveaxis(values, -1, at), (*dims[:at], "station", *dims[at:])
    else:
        dims += ("latitude", "longitude") if lies.is_regular else ("cell",)
    is_point = bool(of.starts) and not _starts(name, parts)
    about = data_attributes(said.field, said.meaning, f"time{of.suffix}", is_point=is_point)
    return Variable(dims, values, about, is_data=True)


def _check_full(name: str, dims: tuple[str, ...], axes: _Axes, seen: Array, base: dt.datetime) -> None:
    if seen.all():
        return
    first = zip(dims, np.argwhere(~seen)[0], strict=True)
    lacking = ", ".join(_value_text(axis, axes.values[axis][at], base) for axis, at in first)
    raise InvalidArgument(
        f"field {name}", f"none for {lacking}; {int((~seen).sum())} lack in all: expected a full cube"
    )


def _check_alike(part: _CubePart, first: _CubePart) -> None:
    is_alike = part.meaning.process == first.meaning.process or not part.meaning.end
    if part.field.units != first.field.units or not is_alike:
        raise InvalidArgument(
            f"field {first.meaning.name}", f"{_words(part)} has other units or another stepType than {_words(first)}"
        )


def _words(part: _CubePart) -> str:
    said = {"step": step_text(part.meaning), "number": part.place.realization, "levelist": part.place.level}
    return ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)


def _value_text(axis: str, value: Any, base: dt.datetime) -> str:
    if axis != "time":
        return f"{axis} {value:g}"
    return f"step {hours(value):g} h (valid {(base + value).isoformat()[:16]})"
