"""Statistics of the members of an ensemble.

All of them in double precision, and members in the order of their numbers, so that the same fields give the same bits
in whatever order they came. Where a value of one member is missing, the statistic is missing. All are made of a few
points at a time, whose values stay near the processor.

The spread is the standard deviation with the number of members as the divisor, not one less: so does ECMWF's own
generation of products (``type=es``). Percentiles are linear between members, as `numpy.percentile` has them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from junctura.errors import InvalidArgument
from junctura.field import member_of
from junctura.products._field import Field
from junctura.products._floats import Floats
from junctura.products._operations._base import Operation, Transform, check_alike, exceeds, grouped, listed
from junctura.products._words import of_object

# So many values of all members together are made into statistics at once, but at least of so many points.
_BLOCK_VALUES, _BLOCK_POINTS_MIN = 32768, 512


@dataclass(frozen=True)
class Statistic:
    """One statistic: ``mean``, ``spread``, ``min``, ``max``, ``percentile`` or ``probability``."""

    kind: str
    value: float = 0.0
    comparison: str = ""


class _Points:
    """The values of all members at some points, and their statistics."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def of(self, one: Statistic) -> Floats:
        """Any but a percentile."""
        made: Floats = self._probability(one) if one.kind == "probability" else getattr(self, one.kind)
        return made

    @functools.cached_property
    def mean(self) -> Floats:
        mean: Floats = np.mean(self.values, axis=0)
        return mean

    @property
    def spread(self) -> Floats:
        # What `numpy.std` does, to the last bit; but it would make the mean once more.
        squares = self.values - self.mean
        squares *= squares
        spread: Floats = np.sqrt(np.mean(squares, axis=0))
        return spread

    @property
    def min(self) -> Floats:
        least: Floats = np.min(self.values, axis=0)
        return least

    @property
    def max(self) -> Floats:
        greatest: Floats = np.max(self.values, axis=0)
        return greatest

    def _probability(self, one: Statistic) -> Floats:
        holds = exceeds(self.values, one.comparison, one.value)
        share = 100.0 * np.count_nonzero(holds, axis=0) / len(self.values)
        made: Floats = np.where(np.isnan(self.values).any(axis=0), np.nan, share)
        return made


@dataclass(frozen=True)
class Ensemble(Operation):
    """Makes one field of each statistic of the members, in this order.

    Fields get the attributes ``statistic`` and ``members`` (how many), and ``percentile``, or ``threshold`` with
    ``thresholdUnits``, ``condition`` (above or below) and ``comparison`` (the word of the recipe); lose their
    ``number``; and get the ``type`` that MARS has for them: em, es, ep, or pb with ``quantile`` (min and max are
    quantiles, too).
    Probabilities are in percent.
    """

    name = "ensemble"
    of: tuple[Statistic, ...]

    @classmethod
    def read(cls, value: list[Any]) -> Ensemble:
        """As a recipe says it."""
        return cls(tuple(statistic for item in value for statistic in _statistics(item)))

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [made for group in grouped(fields, "number", "type").values() for made in self._made(group)]

    def _made(self, group: list[Field]) -> Iterator[Field]:
        members = {_number(field): field for field in group}
        if len(members) < len(group):
            raise InvalidArgument(f"field {group[0].param}", "a member of the ensemble is there twice")
        ordered = [members[number] for number in sorted(members)]
        check_alike(ordered)
        for one, values in zip(self.of, _values(ordered, self.of), strict=True):
            yield _field(ordered[0], one, len(ordered), values)


def _statistics(item: Any) -> Iterator[Statistic]:
    if isinstance(item, str):
        yield Statistic(item)
        return
    ((kind, said),) = item.items()
    if kind == "percentile":
        yield from (Statistic(kind, float(value)) for value in listed(said))
        return
    ((comparison, thresholds),) = said.items()
    yield from (Statistic(kind, float(value), comparison) for value in listed(thresholds))


def _number(field: Field) -> int:
    if member_of(field.attributes) is None:
        raise InvalidArgument(f"field {field.param}", "it is no member of an ensemble: it has no number")
    return int(of_object("number", field.attributes))


def _values(members: Sequence[Field], statistics: Sequence[Statistic]) -> list[Floats]:
    """Of each statistic, on the grid of the members."""
    given = [member.values.reshape(-1) for member in members]
    made = [np.empty(given[0].size) for _ in statistics]
    pairs = list(zip(statistics, made, strict=True))
    percentiles = [pair for pair in pairs if pair[0].kind == "percentile"]
    others = [pair for pair in pairs if pair[0].kind != "percentile"]
    count = max(_BLOCK_VALUES // len(members), _BLOCK_POINTS_MIN)
    for start in range(0, given[0].size, count):
        block = slice(start, start + count)
        points = _Points(np.stack([one[block] for one in given]))
        with np.errstate(invalid="ignore"):
            for one, to in others:
                to[block] = points.of(one)
            if percentiles:
                _sort(points.values)
            for one, to in percentiles:
                to[block] = _percentile(points.values, int(one.value))
    return [values.reshape(members[0].values.shape) for values in made]


def _field(first: Field, one: Statistic, count: int, values: Floats) -> Field:
    """What it is, of so many members."""
    said: dict[str, Any] = {"statistic": one.kind, "number": None, "members": count}
    if one.kind == "probability":
        said |= {"type": "ep", "threshold": one.value, "comparison": one.comparison}
        said["thresholdUnits"] = first.units
        said["condition"] = "above" if one.comparison in ("above", "at_least") else "below"
        return first.having(values, None, "%", **said)
    if one.kind in ("mean", "spread"):
        return first.having(values, **said, type="em" if one.kind == "mean" else "es")
    percentile = {"min": 0, "max": 100}.get(one.kind, int(one.value))
    said |= {"type": "pb", "quantile": f"{percentile}:100"}
    if one.kind == "percentile":
        said["percentile"] = percentile
    return first.having(values, **said)


def _sort(members: Floats) -> None:
    """Puts the members' values of each point in order, in place; where one is missing, all are then.

    A network of comparisons, each of whole rows at once: that of K. E. Batcher, "Sorting networks and their
    applications" (AFIPS 1968), as D. E. Knuth has it for any number (The Art of Computer Programming 3, 5.2.2, M).
    """
    count = len(members)
    for low, high in _comparisons(count):
        least = np.minimum(members[low], members[high])
        np.maximum(members[low], members[high], out=members[high])
        members[low] = least
    members[:, np.isnan(members[-1])] = np.nan


@functools.lru_cache
def _comparisons(count: int) -> tuple[tuple[int, int], ...]:
    """Which two of so many are compared, one after the other."""
    found = []
    top = 1 << max(count - 1, 1).bit_length() - 1
    p = top
    while p:
        q, r, distance = top, 0, p
        while True:
            found += [(i, i + distance) for i in range(count - distance) if i & p == r]
            if q == p:
                break
            distance, q, r = q - p, q >> 1, p
        p >>= 1
    return tuple(found)


def _percentile(ordered: Floats, percentile: int) -> Floats:
    """Of members in order."""
    at = (len(ordered) - 1) * (percentile / 100)
    below = int(np.floor(at))
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    share, difference = at - below, high - low
    # From the nearer end, so that it is met exactly.
    between: Floats = low + difference * share if share < 0.5 else high - difference * (1 - share)
    return between
