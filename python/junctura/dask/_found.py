"""The objects that match a selector, and the combinations of its values without an object."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from junctura._native import Described, Object, Pool, Schema, Selector
from junctura.dask._fetched import Fetched
from junctura.dask._places import InPool, Reference
from junctura.errors import NotFound

# Number of missing combinations that an error names.
_NAMED_MAX = 5
# Limit of combinations to check.
_COMBINATIONS_MAX = 100_000
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_ITEM = rf"(?:{_QUOTED}|[\w.+:-]+)"
_NAMES_VALUES = re.compile(rf"(\w+)=({_ITEM}(?:/{_ITEM})*)")
_PARTS = re.compile(rf'{_QUOTED}|[(),]|[^"(),]+')


class InPoolFound:
    """The objects of a pool, with columns of attributes, as `junctura._xarray.backend` takes those of a store."""

    def __init__(self, place: InPool, entries: Sequence[Described]) -> None:
        self.place = place
        self.references = [Reference(one.key, one.schema.name, str(one.version)) for one in entries]
        # Entries of one list share their schema objects, or have equal ones.
        self._schemas: list[Schema] = list({one.schema.name: one.schema for one in entries}.values())
        self._attributes = [one.attributes for one in entries]

    def __len__(self) -> int:
        return len(self.references)

    def _column(self, name: str) -> tuple[list[Any], bytes]:
        places: dict[Any, int] = {}
        values: list[Any] = []
        numbers = []
        for about in self._attributes:
            value = about.get(name)
            # Lists are not hashable.
            place = -1 if value is None else places.setdefault(_hashable(value), len(values))
            if place == len(values):
                values.append(value)
            numbers.append(place)
        return values, np.array(numbers, np.int32).tobytes()

    def keys(self) -> list[str]:
        return [one.key for one in self.references]

    def about(self, number: int) -> tuple[str, Mapping[str, Any]]:
        """Returns the key and the attributes of an object, which is not fetched."""
        return self.references[number].key, self._attributes[number]

    def __getitem__(self, number: int) -> Fetched:
        obj: Object = self.place.fetch(self.references[number])
        looked_at = Fetched(obj)
        looked_at._held = bytes(obj)
        # It was only inspected, not held.
        obj.give_back()
        return looked_at


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def in_pool(pool: Pool, selector: str, schema: str | None, partial: bool) -> list[Described]:
    """Returns the objects that match, in the order of their keys.

    Raises
    ------
    NotFound
        No object matches; or combinations that the selector names are missing, unless `partial` allows that.

    """
    found = [one for one in pool.list(selector) if schema in (None, one.schema.name)]
    if not found:
        raise NotFound(selector, f"nothing that is in {pool.url} matches")
    missing = [] if partial else list(itertools.islice(_missing(selector, found), _NAMED_MAX + 1))
    if missing:
        more = ", …" if len(missing) > _NAMED_MAX else ""
        named = ", ".join(missing[:_NAMED_MAX])
        raise NotFound(selector, f"missing: {named}{more}; partial=True does without")
    return list(found)


def _missing(selector: str, found: Sequence[Described]) -> Iterator[str]:
    """Yields the combinations of the selector's values that no object has."""
    schema = found[0].schema
    named = _named(Selector(selector, schema).explain())
    if not named or math.prod(map(len, named.values())) > _COMBINATIONS_MAX:
        return
    numbers = {name: _Numbers(schema, name, values) for name, values in named.items()}
    there = {tuple(numbers[name].of(one.attributes) for name in named) for one in found}
    for combination in itertools.product(*(range(len(values)) for values in named.values())):
        if combination not in there:
            words = (f"{name}={values[at]}" for (name, values), at in zip(named.items(), combination, strict=True))
            yield f"{{{','.join(words)}}}"


def _named(explained: str) -> dict[str, list[str]]:
    """Returns the attributes for which an explained selector lists values, and these values."""
    matches = (_NAMES_VALUES.fullmatch(term) for term in _terms(explained))
    return {match[1]: re.findall(_ITEM, match[2]) for match in matches if match}


def _terms(explained: str) -> list[str]:
    """Returns the terms between commas, except commas in parentheses."""
    terms, depth = [""], 0
    for part in _PARTS.findall(explained):
        depth += {"(": 1, ")": -1}.get(part, 0)
        if part == "," and not depth:
            terms.append("")
        else:
            terms[-1] += part
    return terms


class _Numbers:
    """The position of an object's attribute in the values that a selector lists."""

    def __init__(self, schema: Schema, name: str, values: Sequence[str]) -> None:
        self._name = name
        self._selectors = [Selector(f"{name}={value}", schema) for value in values]
        self._known: dict[str, int] = {}

    def of(self, attributes: Mapping[str, Any]) -> int:
        if self._name not in attributes:
            return -1
        value = attributes[self._name]
        text = repr(value)
        if text not in self._known:
            matching = (at for at, one in enumerate(self._selectors) if one.matches(attributes))
            self._known[text] = next(matching, -1)
        return self._known[text]
