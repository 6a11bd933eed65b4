"""Sweeps: the values of a task's matrix, and all their combinations.

A value is a string, a number or a boolean; a list has several, and ``0/to/240/by/6`` is a range of numbers, alone or in
a list. The first key changes slowest.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from junctura._document.located_yaml import Wrong, at, nearest
from junctura._document.ranges import number, written_out
from junctura._document.validation import shown
from junctura.workflow._spec.placeholders import RESERVED, Value, escaped, words, written
from junctura.workflow._spec.schema import TASKS_MAX

Values: TypeAlias = "dict[str, Value]"
_NUMBER = r"-?[0-9]{1,12}(\.[0-9]{1,12})?"
_RANGE = re.compile(rf"(?P<first>{_NUMBER})/to/(?P<last>{_NUMBER})(/by/(?P<by>[0-9]{{1,12}}(\.[0-9]{{1,12}})?))?")
_NEARLY = re.compile(rf"{_NUMBER}/to/|[^/]*/to/{_NUMBER}(/|$)")


def combinations(matrix: Mapping[str, Any], exclude: Sequence[Mapping[str, Value]] = ()) -> list[Values]:
    """Returns the values of each task of a matrix; positions of errors are relative to the task.

    Raises
    ------
    Wrong
        A value is invalid or duplicate, a word is reserved, there are too many combinations, or none.

    """
    values: dict[str, tuple[Value, ...]] = {}
    for word, given in matrix.items():
        with at("matrix", word):
            if word in RESERVED:
                raise Wrong(f'"{{{word}}}" means something else: choose another word')
            values[word] = tuple(_values(given))
    if (count := math.prod(map(len, values.values()))) > TASKS_MAX:
        raise Wrong(f"{count} tasks, at most {TASKS_MAX} are possible", "matrix")
    left_out = [_checked(one, values, index) for index, one in enumerate(exclude)]
    all_of_them = (dict(zip(values, one, strict=True)) for one in itertools.product(*values.values()))
    left = [one for one in all_of_them if not any(_has(one, texts) for texts in left_out)]
    if not left:
        raise Wrong("no combination is left", "exclude")
    return left


def _values(given: Any) -> Iterator[Value]:
    seen: set[str] = set()
    items = given if isinstance(given, list) else [given]
    for index, item in enumerate(items):
        with at(*([index] if isinstance(given, list) else [])):
            for value in _written_out(item):
                if written(value) in seen:
                    raise Wrong(f"{shown(value)} stands there twice")
                words(escaped(written(value)))
                seen.add(written(value))
                yield value


def _written_out(item: Value) -> Sequence[Value]:
    if not isinstance(item, str) or not _NEARLY.match(item):
        return [item]
    found = _RANGE.fullmatch(item)
    if found is None:
        raise Wrong(f"{shown(item)}: a range is a/to/b or a/to/b/by/c, of numbers")
    by = Decimal(found["by"] or 1)
    if not by:
        raise Wrong(f"{shown(item)}: 0 is no number to go on by")
    return [number(one) for one in written_out(item, Decimal(found["first"]), Decimal(found["last"]), by, TASKS_MAX)]


def _checked(excluded: Mapping[str, Value], values: Mapping[str, tuple[Value, ...]], index: int) -> dict[str, str]:
    """Returns the excluded combinations, as texts; an error in an exclusion would have no effect."""
    for word, value in excluded.items():
        with at("exclude", index, word):
            if word not in values:
                raise Wrong(f'"{word}" is not in the matrix{nearest(word, values)}')
            texts = [written(one) for one in values[word]]
            if written(value) not in texts:
                raise Wrong(f"{shown(value)} is no value of the matrix{_near(written(value), texts)}")
    return {word: written(value) for word, value in excluded.items()}


def _near(text: str, texts: list[str]) -> str:
    return nearest(text, texts) if len(texts) <= 20 else ""


def _has(values: Values, texts: Mapping[str, str]) -> bool:
    return all(written(values[word]) == text for word, text in texts.items())
