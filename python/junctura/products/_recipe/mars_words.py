"""The MARS words of a recipe: expands lists and ranges, and defines keys that identify fields.

Values are normalized, so that those of a file and of an object are comparable: steps are integer hours, or texts as
``90m`` and, for ranges, ``0-24``; members are integers, levels numbers, days ``20261120``, times ``0600``; other values
are texts.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from junctura._document.located_yaml import Wrong
from junctura._document.ranges import number, written_out
from junctura._document.validation import shown
from junctura._selectors import SELECTOR_BYTES_MAX, SELECTOR_VALUES_MAX
from junctura.field import Step, member_of, seconds_of, step_of
from junctura.products._recipe.recipe_schema import WORDS

Value: TypeAlias = "str | int | float"
VALUES_MAX = 10_000
_LENGTH_MAX = 200
_UNQUOTED = re.compile(r"[A-Za-z0-9._+:-]+")
# An attribute in the text of a key.
_ATTRIBUTE = re.compile(r'([^{},=]+)=("(?:[^"\\]|\\.)*"|[^{},]*)')
_RESERVED = {"to", "by", "and", "or", "not", "exists"}
_ORDERED = ("step", "number", "levelist", "date", "time", "hdate", "fcmonth", "direction", "frequency", "bottomLevel")
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def of_object(word: str, attributes: Mapping[str, Any]) -> Value:
    """Returns the value of a word in an object; a control forecast (type ``cf``) without a number is member 0.

    Raises
    ------
    KeyError, Wrong
        The object has no value, or an invalid one.

    """
    is_control = word == "number" and "number" not in attributes and member_of(attributes) == 0
    return 0 if is_control else canonical(word, attributes[word])


class Key(Mapping[str, Any]):
    """Immutable, hashable words and their values.

    Examples
    --------
    >>> Key(step=6, param="t") == Key({"param": "t", "step": 6}), str(Key(step=6, param="t"))
    (True, 'param=t,step=6')

    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self._items = dict(sorted({**(items or {}), **more}.items()))
        self._hash = hash(tuple(self._items.items()))

    def __getitem__(self, word: str) -> Any:
        return self._items[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, Key) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return Key, (self._items,)

    def __str__(self) -> str:
        return ",".join(f"{word}={value}" for word, value in self._items.items())

    def __repr__(self) -> str:
        return f"Key({self})"


def differing(one: str, other: str) -> list[str]:
    """Returns the words in which two keys of objects differ."""
    first, second = (dict(_ATTRIBUTE.findall(key)) for key in (one, other))
    return [word for word in {**first, **second} if first.get(word) != second.get(word)]


def canonical(word: str, value: Any) -> Value:
    """Returns the normalized form of a value.

    Raises
    ------
    Wrong
        The word does not allow this value.

    """
    if isinstance(value, datetime.timedelta):
        value = f"{round(value.total_seconds())}s"
    made = _form(word, _text(value))
    if made is None:
        raise Wrong(f"{shown(value)} is not {_WHAT.get(word, f'a text of 1 to {_LENGTH_MAX} characters')}")
    return made


def _text(value: Any) -> str:
    if isinstance(value, datetime.time):
        return value.strftime("%H%M")
    if isinstance(value, datetime.date):
        return _digits(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _digits(day: datetime.date) -> str:
    """Returns eight digits; `strftime` omits the leading zeros of years before 1000."""
    return f"{day.year:04}{day.month:02}{day.day:02}"


@functools.lru_cache(maxsize=4096)
def _form(word: str, text: str) -> Value | None:
    return _FORMS.get(word, _any)(text) if text else None


def _any(text: str) -> str | None:
    return text if len(text) <= _LENGTH_MAX else None


def _step(text: str) -> Value | None:
    found = re.fullmatch(r"(-?[0-9dhms]+)(?:-(-?[0-9dhms]+))?", text)
    if found is None:
        return None
    if found[2] is None:
        at = _length(found[1], "h")
        return None if at is None else step_at(at)
    # In the notation of ecCodes, the unit of a range may be that of its end.
    unit = found[2].lstrip("-0123456789")
    start, end = _length(found[1], unit if unit in _SECONDS else "h"), _length(found[2], "h")
    return Step(start, end).words if start is not None and end is not None and start < end else None


def _length(text: str, unit: str) -> int | None:
    """Returns the seconds of a duration as 6 (in this unit), -6, 90m or 1h30m; None for other texts."""
    if not re.fullmatch(r"-?([0-9]{1,7}|([0-9]{1,7}[dhms])+)", text):
        return None
    length = sum(int(count) * _SECONDS[said or unit] for count, said in re.findall(r"([0-9]+)([dhms]?)", text))
    return -length if text.startswith("-") else length


def number_of(param: Value) -> int | None:
    """Returns ecCodes' identifier for a numeric parameter, with or without its table; None for other parameters.

    Examples
    --------
    >>> number_of("131"), number_of("131.128"), number_of("20.3"), number_of("u")
    (131, 131, 3020, None)

    """
    found = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,6}))?", str(param))
    if found is None:
        return None
    table = int(found[2] or 128)
    return int(found[1]) + (0 if table == 128 else table * 1000)


def step_at(seconds: int) -> Value:
    """Returns the step this many seconds after the base time: integer hours, or a text as 90m."""
    return seconds // 3600 if seconds % 3600 == 0 else Step(seconds, seconds).words


def span_of(step: Value) -> Step:
    """Returns the seconds of both ends of a step, or a range of steps; equal for a single step."""
    found = step_of(str(step))
    assert found is not None, step
    return found


def _whole(text: str) -> Value | None:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def _level(text: str) -> Value | None:
    return number(Decimal(text)) if re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", text) else None


def _date(text: str) -> Value | None:
    try:
        day = datetime.datetime.strptime(text.replace("-", ""), "%Y%m%d")
    except ValueError:
        return None
    return _digits(day) if re.fullmatch(r"[0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else None


def _time(text: str) -> Value | None:
    digits = text.replace(":", "") if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}", text) else text
    if not re.fullmatch(r"[0-9]{1,4}", digits):
        return None
    full = f"{digits:0>2}00" if len(digits) <= 2 else f"{digits:0>4}"
    return full if full[:2] < "24" and full[2:] < "60" else None


_FORMS = {
    "step": _step,
    "number": _whole,
    "levelist": _level,
    "date": _date,
    "time": _time,
    "hdate": _date,
    "bottomLevel": _level,
    **dict.fromkeys(("fcmonth", "direction", "frequency"), _whole),
}
_WHAT = {
    "step": "a step: hours as 6, minutes as 90m, or a range as 0-24",
    "number": "a member: a whole number from 0",
    "levelist": "a level: a number",
    "date": "a day as 20261120",
    "time": "a time as 0600",
    "hdate": "a day as 20261120",
    **dict.fromkeys(("fcmonth", "direction", "frequency"), "a whole number"),
    "bottomLevel": "a level: a number",
}


def values(word: str, given: Any) -> tuple[Value, ...]:
    """Returns all selected values: one, a list, ``a/b/c``, or ``a/to/b/by/c`` expanded.

    Raises
    ------
    Wrong
        A value is invalid or duplicate, or there are too many values.

    """
    found: dict[Value, None] = {}
    for part in _parts(word, given):
        for value in part:
            if value in found:
                raise Wrong(f"{shown(value)} stands there twice")
            found[value] = None
        # Each part has few values, and there may be many parts.
        if len(found) > VALUES_MAX:
            raise Wrong(f"more than {VALUES_MAX} values are not possible")
    return tuple(found)


def _parts(word: str, given: Any) -> Iterator[tuple[Value, ...]]:
    if isinstance(given, list):
        return (_of_item(word, item, index) for index, item in enumerate(given))
    return iter([_of_text(word, given)])


def _of_item(word: str, item: Any, index: int) -> tuple[Value, ...]:
    try:
        return _of_text(word, item)
    except Wrong as wrong:
        raise wrong.within(index) from None


def _of_text(word: str, given: Any) -> tuple[Value, ...]:
    parts = [part.strip() for part in given.split("/")] if isinstance(given, str) else [given]
    if parts[0] == "*" or parts[0] == "all":
        raise Wrong("every value must be named, so that it is known what to wait for")
    if len(parts) > 1 and any(str(part).lower() in ("to", "by") for part in parts):
        return _range(word, given, [str(part) for part in parts])
    return tuple(canonical(word, part) for part in parts)


def _range(word: str, given: str, parts: list[str]) -> tuple[Value, ...]:
    keywords = [part.lower() for part in parts[1::2]]
    if word not in _ORDERED or (len(parts), keywords) not in ((3, ["to"]), (5, ["to", "by"])):
        what = f"{word} has no ranges" if word not in _ORDERED else "a range is a/to/b or a/to/b/by/c"
        raise Wrong(f"{shown(given)}: {what}")
    first, last = canonical(word, parts[0]), canonical(word, parts[2])
    if word in ("step", "time"):
        return _times(word, given, first, last, parts[4] if len(parts) == 5 else "1")
    by = _increment(parts[4]) if len(parts) == 5 else Decimal(1)
    if word in ("date", "hdate"):
        days = written_out(given, Decimal(_ordinal(first)), Decimal(_ordinal(last)), by, VALUES_MAX)
        return tuple(_digits(datetime.date.fromordinal(int(day))) for day in days)
    found = written_out(given, Decimal(str(first)), Decimal(str(last)), by, VALUES_MAX)
    return tuple(canonical(word, number(value)) for value in found)


def _times(word: str, given: str, first: Value, last: Value, by: str) -> tuple[Value, ...]:
    """Returns steps, or times of day, at equal intervals: hours, unless they have a unit."""
    if word == "time":
        ends = [Step(*[seconds_of(str(value))] * 2) for value in (first, last)]
    else:
        ends = [span_of(value) for value in (first, last)]
    if any(end.start != end.end for end in ends):
        raise Wrong(f"{shown(given)}: the ends of a range are single steps")
    between = _length(by, "h") or int(_increment(by) * 3600)
    if between < 0:
        raise Wrong(f"{shown(by)} is no number above 0 to go on by")
    found = written_out(given, Decimal(ends[0].end), Decimal(ends[1].end), Decimal(between), VALUES_MAX)
    if word == "step":
        return tuple(step_at(int(at)) for at in found)
    return tuple(f"{int(at) // 3600:02}{int(at) % 3600 // 60:02}" for at in found)


def _ordinal(day: Value) -> int:
    return datetime.datetime.strptime(str(day), "%Y%m%d").toordinal()


def _increment(text: str) -> Decimal:
    number = text
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", number) or not Decimal(number):
        raise Wrong(f"{shown(text)} is no number above 0 to go on by")
    return Decimal(number)


def seconds_since(words: Mapping[str, Value]) -> int:
    """Returns the seconds from 1970 to the valid time of a date, a time and a step; time and step default to 0."""
    day = datetime.datetime.strptime(str(words["date"]), "%Y%m%d").toordinal() - datetime.date(1970, 1, 1).toordinal()
    return day * 86400 + seconds_of(str(words.get("time", "0000"))) + end_of(words.get("step", 0))


def end_of(step: Value) -> int:
    """Returns the second at which a step, or a range of steps, ends."""
    return span_of(step).end


def selectors(words: Mapping[str, tuple[Value, ...]]) -> list[str]:
    """Returns selectors for all fields with these values: one, unless it would exceed the length limit."""
    asked = ",".join(f"{word}={'/'.join(map(_item, words[word]))}" for word in WORDS if word in words)
    if len(asked.encode()) <= SELECTOR_BYTES_MAX and sum(map(len, words.values())) <= SELECTOR_VALUES_MAX:
        return [asked]
    longest = max(words, key=lambda word: len(words[word]))
    half = len(words[longest]) // 2
    parts = (words[longest][:half], words[longest][half:])
    return [text for part in parts for text in selectors({**words, longest: part})]


def _item(value: Value) -> str:
    text = str(value)
    if _UNQUOTED.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
