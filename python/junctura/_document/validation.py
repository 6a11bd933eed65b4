"""Specifications of documents: the one source for validation and for a JSON Schema.

A `Spec` defines the valid values at one position. `Spec.check` raises `Wrong`, with the path to the error, the closest
valid word, and all further errors in the value; `Spec.json` is the definition as JSON Schema (draft 2020-12), for
editors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from junctura._document.located_yaml import WRONG_MAX, Wrong, nearest, raise_all

Json = dict[str, Any]


class Spec(Protocol):
    """The specification of one value."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """The types of values that are intended for it."""

    @property
    def what(self) -> str:
        """A description, for messages."""

    def check(self, value: Any) -> None:
        """Raises `Wrong` unless the value is valid."""

    def json(self) -> Json:
        """Returns the JSON Schema."""


def _expect(spec: Spec, value: Any) -> None:
    if type(value) not in spec.kinds:
        raise Wrong(f"expected {spec.what}, not {shown(value)}{_in_quotes(value)}")


def _in_quotes(value: Any) -> str:
    """Returns a hint if a value is a YAML mapping that results from a word in braces without quotes."""
    if isinstance(value, dict) and list(value.values()) == [None]:
        return f'; words in braces stand in quotes: "{{{next(iter(value))[:60]}}}"'
    return ""


def shown(value: Any) -> str:
    """Formats a value for messages."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f'"{value[:60]}"' if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Text:
    """A text, optionally with a pattern."""

    doc: str = ""
    pattern: str = ""
    what: str = "a text"
    length_max: int = 1000
    length_min: int = 1
    kinds: tuple[type, ...] = (str,)

    def check(self, value: Any) -> None:
        _expect(self, value)
        if not self.length_min <= len(value) <= self.length_max:
            bounds = f"{self.length_min} to {self.length_max}"
            raise Wrong(f"expected {self.what} of {bounds} characters, not {len(value)}")
        if self.pattern and not _fits(self.pattern, value):
            raise Wrong(f"expected {self.what}, not {shown(value)}")

    def json(self) -> Json:
        said = {"type": "string", "minLength": self.length_min, "maxLength": self.length_max, "pattern": self.pattern}
        return _documented(self.doc, {name: part for name, part in said.items() if part != ""})


@dataclass(frozen=True)
class Number:
    """A number within inclusive bounds."""

    doc: str = ""
    low: float | None = None
    high: float | None = None
    whole: bool = False

    @property
    def kinds(self) -> tuple[type, ...]:
        return (int,) if self.whole else (int, float)

    @property
    def what(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        if self.low is None and self.high is None:
            return kind
        if self.high is None:
            return f"{kind} of {self.low} or more"
        return f"{kind} from {self.low} to {self.high}"

    def check(self, value: Any) -> None:
        _expect(self, value)
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise Wrong(f"expected {self.what}, not {value}")

    def json(self) -> Json:
        said: Json = {"type": "integer" if self.whole else "number"}
        said |= {} if self.low is None else {"minimum": self.low}
        said |= {} if self.high is None else {"maximum": self.high}
        return _documented(self.doc, said)


@dataclass(frozen=True)
class Flag:
    """A boolean."""

    doc: str = ""
    kinds: tuple[type, ...] = (bool,)
    what: str = "true or false"

    def check(self, value: Any) -> None:
        _expect(self, value)

    def json(self) -> Json:
        return _documented(self.doc, {"type": "boolean"})


@dataclass(frozen=True)
class Word:
    """One of several words, each with its description."""

    words: Mapping[str, str]
    doc: str = ""
    what: str = "a word"
    kinds: tuple[type, ...] = (str,)

    def check(self, value: Any) -> None:
        if type(value) is not str:
            raise Wrong(f"expected one of {', '.join(self.words)}, not {shown(value)}")
        if value not in self.words:
            raise Wrong(f'"{value[:60]}" is no {self.what.removeprefix("a ")}{nearest(value, self.words)}')

    def json(self) -> Json:
        return _documented(
            self.doc, {"oneOf": [{"const": word, "description": meaning} for word, meaning in self.words.items()]}
        )


@dataclass(frozen=True)
class ListOf:
    """A list of values of one kind."""

    item: Spec
    doc: str = ""
    low: int = 1
    high: int = 1000
    what: str = "a list"
    kinds: tuple[type, ...] = (list,)

    def check(self, value: Any) -> None:
        _expect(self, value)
        if not self.low <= len(value) <= self.high:
            raise Wrong(f"a list of {len(value)}, expected {self.low} to {self.high}")
        raise_all([wrong for index, item in enumerate(value) for wrong in _found(self.item, item, index)])

    def json(self) -> Json:
        return _documented(
            self.doc, {"type": "array", "items": self.item.json(), "minItems": self.low, "maxItems": self.high}
        )


@dataclass(frozen=True)
class KnownMapping:
    """A mapping with known keys; exactly one of those in `one` is present."""

    keys: Mapping[str, Spec]
    needs: tuple[str, ...] = ()
    doc: str = ""
    one: tuple[str, ...] = ()
    what: str = "a mapping"
    kinds: tuple[type, ...] = (dict,)

    def check(self, value: Any) -> None:
        _expect(self, value)
        known = {key: item for key, item in value.items() if key in self.keys}
        unknown = [key for key in value if key not in known]
        # Each is compared with all keys, to find the closest.
        named = unknown[: WRONG_MAX - 1]
        found = [Wrong(f'"{key[:60]}" is no key here{nearest(key, self.keys)}', key) for key in named]
        if len(unknown) > len(named):
            found.append(Wrong(f"{len(unknown) - len(named)} more keys are not known here"))
        # A missing key may be misspelled as an unknown one.
        found = found or self._missing(known)
        raise_all([*found, *(wrong for key, item in known.items() for wrong in _found(self.keys[key], item, key))])

    def _missing(self, known: Mapping[str, Any]) -> list[Wrong]:
        found = [Wrong(f'"{key}" is missing') for key in self.needs if key not in known]
        if self.one and len(there := [key for key in self.one if key in known]) != 1:
            cause = "both are there, and one is possible" if there else "one of them is missing"
            found.append(Wrong(f"{' or '.join(self.one)}: {cause}"))
        return found

    def json(self) -> Json:
        said: Json = {"type": "object", "properties": {key: spec.json() for key, spec in self.keys.items()}}
        said |= {"required": list(self.needs)} if self.needs else {}
        said |= {"oneOf": [{"required": [key]} for key in self.one]} if self.one else {}
        return _documented(self.doc, said | {"additionalProperties": False})


@dataclass(frozen=True)
class Table:
    """A mapping with keys of the user's choice."""

    item: Spec
    doc: str = ""
    key: str = r"^\w+$"
    key_what: str = "a name of letters, digits and _"
    high: int = 100
    what: str = "a mapping"
    kinds: tuple[type, ...] = (dict,)

    def check(self, value: Any) -> None:
        _expect(self, value)
        if not 0 < len(value) <= self.high:
            raise Wrong(f"a mapping of {len(value)}, expected 1 to {self.high}")
        found = [Wrong(f'"{key[:60]}" is not {self.key_what}', key) for key in value if not _fits(self.key, key)]
        raise_all([*found, *(wrong for key, item in value.items() for wrong in _found(self.item, item, key))])

    def json(self) -> Json:
        return _documented(
            self.doc,
            {
                "type": "object",
                "patternProperties": {self.key: self.item.json()},
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": self.high,
            },
        )


@dataclass(frozen=True)
class OneKey:
    """A mapping with one key, which determines the specification of its value."""

    keys: Mapping[str, Spec]
    doc: str = ""
    what: str = "a mapping with one key"
    word: str = "key"
    kinds: tuple[type, ...] = (dict,)

    def check(self, value: Any) -> None:
        _expect(self, value)
        for key in value:
            if key not in self.keys:
                raise Wrong(f'"{key[:60]}" is no {self.word}{nearest(key, self.keys)}')
        if len(value) != 1:
            raise Wrong(f"expected {self.what}, not {len(value)} ({', '.join(value)})")
        ((key, item),) = value.items()
        _inside(self.keys[key], item, key)

    def json(self) -> Json:
        choices = [KnownMapping({key: spec}, (key,)).json() for key, spec in self.keys.items()]
        return _documented(self.doc, {"oneOf": choices})


@dataclass(frozen=True)
class Kinds:
    """A mapping in which the value of one key determines the other keys."""

    key: str
    records: Mapping[str, KnownMapping]
    doc: str = ""
    otherwise: KnownMapping | None = None
    what: str = "a mapping"
    kinds: tuple[type, ...] = (dict,)

    def check(self, value: Any) -> None:
        _expect(self, value)
        if self.key not in value:
            if self.otherwise is None or not set(self.otherwise.needs) & set(value):
                raise Wrong(f'"{self.key}" is missing')
            return self.otherwise.check(value)
        words = Word(dict.fromkeys(self.records, ""), what=f"a {self.key}")
        _inside(words, value[self.key], self.key)
        return self._of(value[self.key]).check(value)

    def _of(self, word: str) -> KnownMapping:
        record = self.records[word]
        return KnownMapping({self.key: Word({word: record.doc}), **record.keys}, (self.key, *record.needs), record.doc)

    def json(self) -> Json:
        choices = [self._of(word) for word in self.records] + ([self.otherwise] if self.otherwise else [])
        return _documented(self.doc, {"oneOf": [choice.json() for choice in choices]})


@dataclass(frozen=True)
class Nested:
    """A reference to another part of the same schema, which contains this reference."""

    found: Callable[[], KnownMapping]
    name: str
    what: str = "a mapping"
    kinds: tuple[type, ...] = (dict,)

    def check(self, value: Any) -> None:
        self.found().check(value)

    def json(self) -> Json:
        return {"$ref": f"#/$defs/{self.name}"}


@dataclass(frozen=True)
class Either:
    """One of several alternatives with different types."""

    specs: tuple[Spec, ...]
    doc: str = ""

    @property
    def kinds(self) -> tuple[type, ...]:
        return tuple(kind for spec in self.specs for kind in spec.kinds)

    @property
    def what(self) -> str:
        return " or ".join(spec.what for spec in self.specs)

    def check(self, value: Any) -> None:
        _expect(self, value)
        next(spec for spec in self.specs if type(value) in spec.kinds).check(value)

    def json(self) -> Json:
        return _documented(self.doc, {"anyOf": [spec.json() for spec in self.specs]})


def _fits(pattern: str, text: str) -> bool:
    # The end of the text, as in JSON Schema, not the end of its last line.
    return re.search(pattern, text, re.ASCII) is not None and not text.endswith("\n")


def _inside(spec: Spec, value: Any, step: str | int) -> None:
    raise_all(_found(spec, value, step))


def _found(spec: Spec, value: Any, step: str | int) -> tuple[Wrong, ...]:
    """Returns the errors of a value at this position."""
    try:
        spec.check(value)
    except Wrong as wrong:
        return wrong.within(step).each()
    return ()


def _documented(doc: str, said: Json) -> Json:
    return {"description": doc, **said} if doc else said
