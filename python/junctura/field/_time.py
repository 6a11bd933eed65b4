"""Times of fields: base time, step or range, and valid time, from the attributes that objects have.

The base time is ``date`` and ``time``; of a hindcast it is ``hdate`` and ``time``, for there ``date`` is that of the
model version. The valid time is the base time and the end of the step. Days are those of the proleptic Gregorian
calendar, years 1 to 9999. Moments are in nanoseconds where they fit, as xarray has them, otherwise in seconds.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "": 3600}
_LENGTH = r"(-?\d+)([smhd]?)"
_STEP = re.compile(rf"{_LENGTH}(?:-{_LENGTH})?")
# Nanoseconds since 1970 in 64 bits reach from 1677 to 2262.
_NANOSECONDS = ("1678-01-01", "2262-01-01")
_NANOSECONDS_LONGEST = 9 * 10**9
_DURATION = re.compile(r"(\d+)([a-z]+)")
_DURATION_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}


class Step(NamedTuple):
    """Seconds from the base time to the beginning and the end of what a field is of; equal at an instant."""

    start: int
    end: int

    @property
    def words(self) -> str:
        """In the words of a selector: ``6``, ``90m``, ``0-24``."""
        unit, seconds = next(
            (unit, seconds)
            for unit, seconds in (("", 3600), ("m", 60), ("s", 1))
            if not (self.start % seconds or self.end % seconds)
        )
        ends = [f"{at // seconds}{unit}" for at in dict.fromkeys((self.start, self.end))]
        return "-".join(ends)


def step_of(text: str) -> Step | None:
    """The step that a text states in hours or with a unit, as ``6``, ``-6``, ``90m`` and ``0-24``; None for others."""
    found = _STEP.fullmatch(text)
    if found is None:
        return None
    first, unit, last, last_unit = found.groups()
    end = int(first if last is None else last) * _SECONDS[unit if last is None else last_unit]
    # As ecCodes writes it, the unit of a range may be that of its end.
    return Step(int(first) * _SECONDS[unit or (last_unit or "")], end)


def day_of(text: str) -> datetime.date:
    """The day that eight digits state: year, month, day."""
    return datetime.date(int(text[:-4]), int(text[-4:-2]), int(text[-2:]))


def seconds_of(text: str) -> int:
    """The seconds since midnight that four or six digits state: hour, minute, second."""
    digits = text.ljust(6, "0")
    return int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])


def moments(seconds: Array) -> Array:
    """Returns moments in nanoseconds if all fit, otherwise in seconds."""
    whole = seconds.astype("datetime64[s]")
    first, beyond = (np.datetime64(day, "s") for day in _NANOSECONDS)
    fits = bool(((whole >= first) & (whole < beyond)).all())
    return whole.astype("datetime64[ns]") if fits else whole


def moments_of(timestamps: list[str]) -> Array | None:
    """Returns canonical timestamps, such as ``2026-11-20T11:00:00.5Z``, in nanoseconds if all fit.

    Otherwise in seconds, or in microseconds, if one has a fraction. None: no unit states each value exactly, as one is
    before 1678 or after 2261, and one has a fraction of a microsecond.
    """
    parts = [text.removesuffix("Z").partition(".") for text in timestamps]
    whole = moments(np.array([seconds for seconds, _, _ in parts], "datetime64[s]").astype(np.int64))
    fractions = np.array([int(digits.ljust(9, "0")) for _, _, digits in parts], "timedelta64[ns]")
    if whole.dtype == np.dtype("datetime64[ns]"):
        return np.asarray(whole + fractions)
    if (fractions.astype(np.int64) % 1000).any():
        return None
    return np.asarray(whole + fractions.astype("timedelta64[us]")) if fractions.astype(np.int64).any() else whole


def durations_of(texts: list[str]) -> Array | None:
    """Returns canonical durations, such as ``90m``, in nanoseconds if all fit.

    Otherwise in the coarsest of seconds, milliseconds and microseconds that states each value exactly; None: no unit
    does, as one exceeds 292 years, and one is a fraction of a microsecond.
    """
    found = [_DURATION.fullmatch(text) for text in texts]
    lengths = [int(one[1]) * _DURATION_NANOSECONDS[one[2]] for one in found if one is not None]
    longest = max(lengths, default=0)
    for unit in ("ns", "s", "ms", "us"):
        size = _DURATION_NANOSECONDS[unit]
        if longest // size < 2**63 and not any(length % size for length in lengths):
            return np.array([length // size for length in lengths], f"timedelta64[{unit}]")
    return None


def durations(seconds: Array) -> Array:
    """Returns durations in nanoseconds if all fit, otherwise in seconds."""
    whole = seconds.astype("timedelta64[s]")
    fits = bool((np.abs(whole.astype(np.int64)) <= _NANOSECONDS_LONGEST).all())
    return whole.astype("timedelta64[ns]") if fits else whole


def valid_times(base: Array, step: Array) -> Array:
    """The moments at which steps from base times end; the two are broadcast."""
    whole = base.astype("datetime64[s]")
    ends = moments(whole + step.astype("timedelta64[s]"))
    return np.asarray(ends + (base - whole)) if (base != whole).any() else ends


class Times(NamedTuple):
    """When a field is valid, and of which forecast; None where it has no date, or no step that can be read."""

    base: np.datetime64 | None
    step: Step | None

    @property
    def valid(self) -> np.datetime64 | None:
        """The moment at which its step ends."""
        if self.base is None or self.step is None:
            return None
        return _moment(self.base.astype("datetime64[s]") + np.timedelta64(self.step.end, "s"))


def _moment(at: np.datetime64) -> np.datetime64:
    found: Any = moments(np.array(at))[()]
    return np.datetime64(found)


def _digits(time: Any) -> str:
    """A time of day as four or six digits; ecCodes has hours and minutes as a number."""
    return f"{time:04}" if isinstance(time, int) else str(time)


def has_step(attributes: Mapping[str, Any]) -> bool:
    """Whether the step is among the attributes: monthly means of forecasts have ``fcmonth`` in its place."""
    return "step" in attributes and "fcmonth" not in attributes


def header_step(eccodes: Any, handle: int) -> Step | None:
    """The step that the header of a message states; None where it has none, or one in months or years."""
    try:
        eccodes.codes_set_string(handle, "stepUnits", "s")
        return Step(*(int(eccodes.codes_get_long(handle, key)) for key in ("startStep", "endStep")))
    except eccodes.CodesInternalError:
        return None


def times_of(attributes: Mapping[str, Any], stated: Step | None = None) -> Times:
    """The times of a field.

    Parameters
    ----------
    attributes
        What the field is, in the words of the schema `mars`.
    stated
        The step where the attributes have none.

    """
    base: np.datetime64 | None
    step = step_of(str(attributes["step"])) if has_step(attributes) else stated
    try:
        day = day_of(str(attributes["hdate"] if "hdate" in attributes else attributes["date"]))
        at = np.datetime64(day, "s") + np.timedelta64(seconds_of(_digits(attributes.get("time", 0))), "s")
        base = _moment(at)
    except (KeyError, ValueError):
        # No date, or one without a year.
        base = None
    return Times(base, step)
