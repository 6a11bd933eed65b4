"""The axes of a cube of fields: the values that objects have in an attribute, and the place of each object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura import field

Array = npt.NDArray[Any]
# The values of an attribute, and for each object the index of its value; -1 if it has none.
Column = tuple[list[Any], Array]


class CubeAxis(NamedTuple):
    """The values of one dimension, and the place of each object along it; -1 where it has none."""

    values: Array
    places: Array
    attrs: Mapping[str, str]
    # In the words of a selector.
    words: list[str]
    # Of steps: seconds from the base time to the end of each.
    seconds: Array | None = None


def axis_of(name: str, column: Column, kind: str, attrs: Mapping[str, str]) -> CubeAxis:
    """The axis of an attribute of this type, one of a schema's."""
    values, places = column
    if kind == "step":
        return _steps(name, values, places)
    if kind == "date" and are_days(values):
        days = [int(np.datetime64(field.day_of(value), "s").astype(np.int64)) for value in values]
        return _sorted(name, field.moments(np.array(days, np.int64)), values, places)
    if kind in ("timestamp", "duration"):
        times = field.moments_of(values) if kind == "timestamp" else field.durations_of(values)
        # Texts where no unit states each value exactly.
        if times is not None:
            return _sorted(name, times, values, places, attrs)
    if kind in ("integer", "decimal", "float"):
        # Of a decimal the same type in every selection.
        return _sorted(name, np.array(values, np.int64 if kind == "integer" else np.float64), values, places, attrs)
    return _sorted(name, np.array([str(value) for value in values]), values, places)


def are_days(texts: list[Any]) -> bool:
    """Whether texts are days; climatologies have months, or days without a year."""
    return all(str(text).isdecimal() for text in texts)


def base_times(dates: tuple[str, Column], times: Column) -> CubeAxis:
    """Days, which all objects have, and times of day as moments; 00 UTC where an object has no time of day."""
    name, (days, day_places) = dates
    hours = [*times[0], "0000"]
    places = np.where(times[1] < 0, len(hours) - 1, times[1])
    begins = np.array([field.day_of(text) for text in days], "datetime64[D]").astype("datetime64[s]")
    seconds = np.array([field.seconds_of(text) for text in hours], "timedelta64[s]")
    pairs, numbers = np.unique(day_places.astype(np.int64) * len(hours) + places, return_inverse=True)
    found = field.moments((begins[pairs // len(hours)] + seconds[pairs % len(hours)]).astype(np.int64))
    named = [f"{name}={days[pair // len(hours)]},time={hours[pair % len(hours)]}" for pair in pairs.tolist()]
    axis = _sorted("", found, named, numbers.reshape(-1))
    return axis._replace(attrs={"standard_name": "forecast_reference_time"}, words=axis.words)


def members(numbers: Column, types: Column) -> tuple[Column, Column | None]:
    """The numbers of members, where a control forecast (type ``cf``) counts as member 0; and the types.

    The types are left out where the number distinguishes control and perturbed forecasts.
    """
    values, places = list(numbers[0]), numbers[1]
    if "cf" not in types[0]:
        return numbers, types
    is_control = types[1] == types[0].index("cf")
    is_filled = is_control & (places < 0)
    if not is_filled.any():
        return numbers, types
    is_perturbed_too = 0 in values and (places[~is_control] == values.index(0)).any()
    if 0 not in values:
        values.append(0)
    filled = np.where(is_filled, values.index(0), places)
    is_told_apart = set(types[0]) == {"cf", "pf"} and not is_perturbed_too
    return (values, filled), None if is_told_apart else types


def _steps(name: str, texts: list[Any], places: Array) -> CubeAxis:
    """Steps as durations: the end of a range, if ends are unique; otherwise texts."""
    steps = [field.step_of(str(text)) for text in texts]
    if any(step is None for step in steps):
        return _sorted(name, np.array([str(text) for text in texts]), texts, places)
    ends = np.array([step.end for step in steps if step is not None], np.int64)
    if len(set(ends.tolist())) == len(texts):
        axis = _sorted(name, field.durations(ends), texts, places)
        return axis._replace(seconds=np.sort(ends))
    axis = _sorted(name, np.array([str(text) for text in texts]), texts, places)
    return axis._replace(seconds=ends[np.argsort([str(text) for text in texts])])


def _sorted(
    name: str, values: Array, texts: list[Any], places: Array, attrs: Mapping[str, str] | None = None
) -> CubeAxis:
    """In the order of the values, each once."""
    unique, first, numbers = np.unique(values, return_index=True, return_inverse=True)
    numbers = np.append(numbers.reshape(-1), -1)
    words = [f"{name}={texts[at]}" if name else str(texts[at]) for at in first]
    return CubeAxis(unique, numbers[places], attrs or {}, words)
