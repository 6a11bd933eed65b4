"""Ranges of numbers, ``a/to/b/by/c``, written out without loss: 0/to/1/by/0.1 ends at 1."""

from __future__ import annotations

from decimal import Decimal

from junctura._document.located_yaml import Wrong
from junctura._document.validation import shown


def number(value: Decimal) -> int | float:
    """A whole number where it is one."""
    return int(value) if value == int(value) else float(value)


def written_out(given: str, first: Decimal, last: Decimal, by: Decimal, count_max: int) -> list[Decimal]:
    """Returns all numbers of a range, ascending or descending; `by` is greater than 0.

    Raises
    ------
    Wrong
        There are too many numbers.

    """
    count = int(abs(last - first) / by) + 1
    if count > count_max:
        raise Wrong(f"{shown(given)} has {count} values, at most {count_max} are possible")
    return [first + (by if last >= first else -by) * index for index in range(count)]
