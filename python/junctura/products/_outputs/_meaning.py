"""The properties of a field from its attributes: MARS words as numbers and times, for all formats.

Attributes that are read here, besides `param`, `levtype`, `levelist` and `number`:
```text
  date, time        the base time: 20260801, 2026-08-01; 0, 12, 1200, 12:00
  step              6, or a range of steps: 0-6; hours, else with their unit: 90m
  stepType          what happens over a range of steps: accum, avg, max, min
  stepStart         where the range begins, if the field came with it and `step` is its end only
  statistic         over the members of an ensemble: mean, spread, min, max, percentile, probability
  percentile        which one, 0 to 100
  threshold         of a probability
  thresholdUnits    those that the threshold is in, if not those of the parameter
  condition         of a probability: above (by default) or below the threshold
  members           how many members the statistic was made of
  places            names of the points, empty where one has none
```
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from junctura.errors import InvalidArgument
from junctura.field import Step, step_of
from junctura.products._input.decoded_field import Field

Statistic: TypeAlias = Literal["mean", "spread", "min", "max", "percentile", "probability"]
Process: TypeAlias = Literal["accum", "avg", "max", "min"]
# Means over the base times of a period, such as the forecasts or analyses of a month, in edition 1. The date is that of
# the period; nothing happens over a range of steps.
_OVER_BASES = ("avgas", "avgfc", "avgia", "avgid", "avgua")

# The divisor of the spread in `junctura.products._operations`; other software divides by N - 1.
SPREAD = "sqrt(sum((x - mean(x))**2) / N): divided by the number of members N, not by N - 1"


@dataclass(frozen=True)
class Meaning:
    """The properties of a field.

    Attributes
    ----------
    base
        The base time, in UTC.
    start, end
        The steps between which, or the step at which (`start` is None then), it is valid.
    is_window
        Whether it is a statistic over a window of steps, as `operations` compute it, of its parameter: a parameter
        defined over a range of steps, such as mx2t6, is not a window.

    """

    param: str
    base: dt.datetime | None
    start: dt.timedelta | None
    end: dt.timedelta
    process: Process | None
    is_window: bool
    number: int | None
    levtype: str
    level: float | None
    statistic: Statistic | None
    percentile: int | None
    threshold: float | None
    threshold_units: str
    condition: Literal["above", "below"]
    members: int | None
    over_bases: str = ""
    """The kind of mean over base times, as ecCodes names it."""

    @property
    def name(self) -> str:
        """The parameter with its statistics over steps and members: `t`, `t_avg`, `t_p10`, `t_max_above_273.15`.

        An accumulation has the name of its parameter, which usually is one itself.
        """
        of_steps = f"_{self.process}" if self.is_window and self.process in ("avg", "max", "min") else ""
        return f"{self.param}{of_steps}{self._of_members()}"

    def _of_members(self) -> str:
        if self.statistic is None:
            return ""
        if self.statistic == "percentile":
            return f"_p{self.percentile}"
        if self.statistic == "probability":
            return f"_{self.condition}_{self.threshold:g}"
        return f"_{self.statistic}"


def meaning(field: Field) -> Meaning:
    """Returns the properties of a field.

    Raises
    ------
    InvalidArgument
        An attribute is invalid; the error names it.

    """
    read = _Attributes(field.attributes, f"field {field.param}")
    if "param" not in field.attributes:
        raise InvalidArgument("field", "it has no attribute param: what are its values?")
    statistic = read.one_of("statistic", get_args(Statistic))
    start, end = read.steps()
    return Meaning(
        param=field.param,
        base=read.base(),
        start=start,
        end=end,
        process=read.process(),
        is_window=field.attributes.get("stepStart") is None or "-" in str(field.attributes.get("step")),
        number=read.member(),
        levtype=str(field.attributes.get("levtype", "pl" if "levelist" in field.attributes else "sfc")),
        level=read.real("levelist"),
        statistic=statistic,
        percentile=read.percentile(needed=statistic == "percentile"),
        threshold=read.threshold(needed=statistic == "probability"),
        threshold_units=str(field.attributes.get("thresholdUnits", "")),
        condition=read.one_of("condition", ("above", "below")) or "above",
        members=read.whole("members"),
        over_bases=read.over_bases(),
    )


def comment(is_what: Meaning) -> str:
    """Returns a comment for means over base times, and statistics with several formulas in use; empty for others."""
    if is_what.over_bases:
        return f"mean over the base times of the period that begins at the base time ({is_what.over_bases})"
    if is_what.statistic != "spread":
        return ""
    return SPREAD if is_what.members is None else f"{SPREAD}; N = {is_what.members}"


def places(field: Field) -> list[str] | None:
    """Returns the names of the points of a field, if they are named places.

    Raises
    ------
    InvalidArgument
        The number of names differs from the number of points.

    """
    given = field.attributes.get("places")
    if given is None or field.grid.kind != "points":
        return None
    if not isinstance(given, list | tuple) or len(given) != field.grid.size:
        raise InvalidArgument(f"field {field.param}", f"places are not the names of {field.grid.size} points")
    return [str(name) for name in given]


def hours(span: dt.timedelta) -> float:
    return span.total_seconds() / 3600


def step_text(is_what: Meaning) -> str:
    """Returns the step in MARS notation: `6`, `0-6`, `90m`, `60m-90m`."""
    start, end = (
        round(at.total_seconds()) for at in (is_what.end if is_what.start is None else is_what.start, is_what.end)
    )
    return Step(start, end).words


@dataclass(frozen=True)
class _Attributes:
    values: Mapping[str, Any]
    subject: str

    def refused(self, name: str, expected: str) -> InvalidArgument:
        return InvalidArgument(self.subject, f"{name} is {self.values.get(name)!r}, expected {expected}")

    def whole(self, name: str) -> int | None:
        value = self.real(name)
        if value is not None and value != int(value):
            raise self.refused(name, "a whole number")
        return None if value is None else int(value)

    def member(self) -> int | None:
        """Returns the member: the control forecast is member 0 by default; statistics over all members have none."""
        is_control = self.values.get("type") == "cf" and self.values.get("statistic") is None
        return 0 if is_control and self.values.get("number") is None else self.whole("number")

    def real(self, name: str) -> float | None:
        value = self.values.get(name)
        try:
            return None if value is None else float(value)
        except (TypeError, ValueError):
            raise self.refused(name, "a number") from None

    def one_of(self, name: str, possible: tuple[str, ...]) -> Any:
        value = self.values.get(name)
        if value is not None and value not in possible:
            raise self.refused(name, f"one of {', '.join(possible)}")
        return value

    def over_bases(self) -> str:
        kind = str(self.values.get("stepType"))
        return kind if kind in _OVER_BASES else ""

    def process(self) -> Any:
        if self.over_bases():
            return None
        found = self.one_of("stepType", ("instant", *get_args(Process)))
        return None if found == "instant" else found

    def percentile(self, needed: bool) -> int | None:
        value = self.whole("percentile") if needed else None
        if needed and (value is None or not 0 <= value <= 100):
            raise self.refused("percentile", "0 to 100")
        return value

    def threshold(self, needed: bool) -> float | None:
        value = self.real("threshold") if needed else None
        if needed and value is None:
            raise self.refused("threshold", "the value that the probability is about")
        return value

    def base(self) -> dt.datetime | None:
        # The date of a hindcast is that of the model version.
        word = "date" if self.values.get("hdate") is None else "hdate"
        if self.values.get(word) is None:
            return None
        digits = re.sub(r"-", "", str(self.values[word])[:10])
        try:
            # Days before the year 1000 have fewer digits as numbers.
            day = dt.datetime.strptime(digits.zfill(8), "%Y%m%d").replace(tzinfo=dt.timezone.utc)
        except ValueError:
            raise self.refused(word, "a day such as 2026-08-01") from None
        return day + self._time()

    def _time(self) -> dt.timedelta:
        text = str(self.values.get("time", 0))
        match = re.fullmatch(r"(\d{1,2}):(\d\d)(?::\d\d)?", text) or re.fullmatch(r"(\d{1,2})(\d\d)|(\d{1,2})", text)
        if not match:
            raise self.refused("time", "a time such as 12:00")
        parts = [int(part) for part in match.groups() if part]
        hour, minute = (parts + [0])[:2]
        if hour > 23 or minute > 59:
            raise self.refused("time", "a time such as 12:00")
        return dt.timedelta(hours=hour, minutes=minute)

    def steps(self) -> tuple[dt.timedelta | None, dt.timedelta]:
        text = str(self.values.get("step", 0))
        found = step_of(text)
        if found is None:
            raise self.refused("step", "hours such as 6, or a range such as 0-6")
        start = found.start if found.start != found.end else self._step_start(found.end)
        if start > found.end:
            raise self.refused("step", "a range that goes on in time")
        begin, end = (dt.timedelta(seconds=at) for at in (start, found.end))
        return (None if begin == end else begin), end

    def _step_start(self, end: int) -> int:
        """Returns the start of the range of steps; at an instant the step itself."""
        given = self.values.get("stepStart")
        found = None if given is None else step_of(str(given))
        if given is not None and found is None:
            raise self.refused("stepStart", "hours such as 6")
        return end if found is None else found.start
