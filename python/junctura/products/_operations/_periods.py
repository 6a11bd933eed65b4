"""Statistics over days and months, of fields of several base times: reanalyses, and forecasts by their valid times."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from junctura._document.located_yaml import Wrong, at
from junctura.errors import InvalidArgument
from junctura.field import Step
from junctura.products._input.decoded_field import Field
from junctura.products._operations._base import Operation, Transform, grouped, listed
from junctura.products._operations._covering import Frame, Part, lacking
from junctura.products._operations._steps import reduced
from junctura.products._outputs._meaning import meaning
from junctura.products._recipe.mars_words import Key, Value, seconds_since, values

_KINDS = ("mean", "min", "max", "sum")
_EPOCH = dt.datetime(1970, 1, 1)
_DAY = 86400
_SECOND = dt.timedelta(seconds=1)


class Period(NamedTuple):
    """A day or a month: its ends in seconds since 1970, and its name: 20190301, 201903."""

    start: int
    end: int
    name: str


class PeriodGroup(NamedTuple):
    """The fields of one period: their common single values, and the words of each."""

    label: Key
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Periods(Operation):
    """Computes one field for each statistic of each day or month, in UTC.

    A field belongs to the period in which it is valid: an instant at midnight to the day that begins then, or with
    ``include: end`` to the one that ends. Of a range of steps the end counts, so ranges need ``include: end``. Fields
    of one base time keep it, and get a range of steps; those of several have the period's start as their base time.

    Attributes
    ----------
    over
        ``day`` or ``month``.
    include
        ``start`` or ``end``: which end of a period belongs to it.
    on
        The names of the periods that are made; all that fields are valid in, where it is empty.

    """

    name = "statistics"
    over: str
    of: tuple[str, ...]
    include: str = "start"
    on: tuple[str, ...] = ()

    @classmethod
    def read(cls, value: dict[str, Any]) -> Periods:
        """Its definition in a recipe."""
        of = tuple(dict.fromkeys(listed(value["of"])))
        with at("of"):
            for kind in of:
                if kind not in _KINDS:
                    raise Wrong(f'"{kind}" is of windows of steps, and over a {value["over"]} are {", ".join(_KINDS)}')
        include = value.get("include")
        if include is None and "sum" in of and len(of) > 1:
            raise Wrong("a sum is of ranges, which include the end of the day: write include: end, or start")
        with at("on"):
            on = _names(value["over"], value["on"]) if "on" in value else ()
        return cls(value["over"], of, include or ("end" if of == ("sum",) else "start"), on)

    def period(self, valid: int) -> Period:
        """Returns the period of a valid time in seconds since 1970."""
        moment = _EPOCH + dt.timedelta(seconds=valid - (self.include == "end"))
        if self.over == "day":
            start = moment.replace(hour=0, minute=0, second=0)
            return Period(_seconds(start), _seconds(start) + _DAY, f"{_digits(start)}")
        start = moment.replace(day=1, hour=0, minute=0, second=0)
        end = (start + dt.timedelta(days=31)).replace(day=1)
        return Period(_seconds(start), _seconds(end), _digits(start)[:6])

    def frame(self, period: Period, bases: Collection[int] = ()) -> Frame:
        """Returns the period as a window of fields of these base times, in seconds since 1970.

        Validation of the recipe has shown that a forecast continues after a period that includes its start. Whether it
        exists before a period that includes its end is unknown: fields that end then may be ranges.
        """
        base = next(iter(bases)) if len(set(bases)) == 1 else None
        words = f"{self.over} {period.name}"
        has_start = self.include == "start"
        return Frame(Step(period.start, period.end), words, False, has_start, base, has_start, may_have_one=False)

    def groups(self, words: Mapping[str, tuple[Value, ...]]) -> list[PeriodGroup]:
        """Returns the fields of each period, for all combinations of these dates, times and steps.

        Raises
        ------
        Wrong
            A period is not filled, two fields are valid at one time, or a period of `on` has no fields.

        """
        given = {word: words[word] for word in ("date", "time", "step") if word in words}
        keys = [Key(dict(zip(given, chosen, strict=True))) for chosen in itertools.product(*given.values())]
        found: dict[Period, dict[int, Key]] = {}
        listed = {(seconds_since(key), _since(key)) for key in keys}
        for key in sorted(keys, key=seconds_since):
            valid = seconds_since(key)
            period = self.period(valid)
            if self.on and period.name not in self.on:
                continue
            other = found.setdefault(period, {}).setdefault(valid, key)
            if other != key:
                raise Wrong(f"{other} and {key} are valid at one time, and would count twice")
        self._check(found, listed)
        is_one_base = all(len(given.get(word, ())) == 1 for word in ("date", "time"))
        return [self._group(period, tuple(of.values()), is_one_base) for period, of in found.items()]

    def _check(self, found: Mapping[Period, Mapping[int, Key]], listed: Collection[tuple[int, int]]) -> None:
        """Checks that periods are filled, as far as the words determine it; `listed` has all valid times with base
        times.
        """
        if absent := [name for name in self.on if name not in {period.name for period in found}]:
            raise Wrong(f"no field is valid in {absent[0]}", "on")
        ordered = sorted(valid for of in found.values() for valid in of)
        for period, of in found.items():
            beside = [valid for valid in ordered if valid not in of] if len(of) == 1 else []
            frame = self.frame(period, [_since(key) for key in of.values()])
            if frame.has_start:
                frame = frame._replace(has_edge=(period.end, frame.base) in listed)
            else:
                frame = frame._replace(has_edge=True, may_have_one=True)  # they may be ranges, which fill it
            if cause := lacking(frame, list(of), beside):
                raise Wrong(f"{cause}; where the first or last {self.over} has not all, name the others in on")

    def _group(self, period: Period, keys: tuple[Key, ...], is_one_base: bool) -> PeriodGroup:
        if not is_one_base:
            return PeriodGroup(Key(date=period.name), keys)
        base = _base(keys[0])
        return PeriodGroup(Key(base, step=_step(period, seconds_since(base))), keys)

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        groups = grouped(fields, "date", "time", "step", "stepType", "timespan")
        return [made for group in groups.values() for made in self._made(group)]

    def _made(self, group: list[Field]) -> Iterator[Field]:
        found: dict[Period, dict[int, tuple[Field, Part, int]]] = {}
        for field in group:
            part, base = _part(field)
            of = found.setdefault(self.period(part.end), {})
            if part.end in of:
                raise InvalidArgument(f"field {field.param}", f"two are valid at {self._at(part.end)}")
            of[part.end] = (field, part, base)
        for period in sorted(found):
            ordered = [found[period][valid] for valid in sorted(found[period])]
            yield from self._of_period(period, *(list(parts) for parts in zip(*ordered, strict=True)))

    def _at(self, valid: int) -> str:
        return self.frame(self.period(valid)).bare(valid)

    def _of_period(self, period: Period, fields: list[Field], parts: list[Part], bases: list[int]) -> Iterator[Field]:
        if len(set(bases)) == 1:
            said: dict[str, Any] = {"step": _step(period, bases[0])}
        else:
            start = _EPOCH + dt.timedelta(seconds=period.start)
            said = {"date": _digits(start), "time": "0000", "step": _step(period, period.start), "increments": "base"}
        for kind in self.of:
            made, step_type = reduced(kind, self.frame(period, bases), fields, parts)
            yield fields[0].having(made, **said, stepType=step_type, stepStart=None, timespan=None)


def _base(key: Key) -> Key:
    """The words of its base time."""
    return Key({word: key[word] for word in ("date", "time") if word in key})


def _since(key: Key) -> int:
    """Its base time, in seconds since 1970."""
    return seconds_since(_base(key))


def _step(period: Period, base: int) -> str:
    return Step(period.start - base, period.end - base).words


def _part(field: Field) -> tuple[Part, int]:
    """Returns the valid time or range of a field, and its base time, in seconds since 1970."""
    is_what = meaning(field)
    if is_what.base is None:
        raise InvalidArgument(f"field {field.param}", "it has no date, so it belongs to no day")
    base = _seconds(is_what.base.replace(tzinfo=None))
    start, end = (None if at is None else base + at // _SECOND for at in (is_what.start, is_what.end))
    assert end is not None
    return Part(start, end, is_what.process == "accum"), base


def _names(over: str, given: Any) -> tuple[str, ...]:
    """Days as 20190301, or months as 201903: one, a list, a/b, or a/to/b."""
    if over == "day":
        return tuple(str(day) for day in values("date", given))
    parts = [str(part).strip() for part in (given if isinstance(given, list) else str(given).split("/"))]
    if len(parts) == 3 and parts[1].lower() == "to":
        first, last = _month(parts[0]), _month(parts[2])
        return tuple(f"{month // 12:04}{month % 12 + 1:02}" for month in range(first, last + 1))
    return tuple(f"{month // 12:04}{month % 12 + 1:02}" for month in map(_month, parts))


def _month(text: str) -> int:
    """Months since the year 0."""
    digits = text.replace("-", "")
    if len(digits) != 6 or not digits.isdecimal() or not 1 <= int(digits[4:]) <= 12 or digits[:4] == "0000":
        raise Wrong(f'"{text[:60]}" is no month as 201903')
    return int(digits[:4]) * 12 + int(digits[4:]) - 1


def _seconds(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // _SECOND


def _digits(moment: dt.datetime) -> str:
    """Eight digits; `strftime` leaves the zeros of years before 1000 out."""
    return f"{moment.year:04}{moment.month:02}{moment.day:02}"
