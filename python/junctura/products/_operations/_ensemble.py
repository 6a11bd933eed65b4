"""Statistics of the members of an ensemble.

All of them in double precision, and members in the order of their numbers, so that the same fields give the same bits
in whatever order they came. Where a value of one member is missing, the statistic is missing.

The spread is the standard deviation with the number of members as the divisor, not one less: so does ECMWF's own
generation of products (``type=es``). Percentiles are linear between members, as `numpy.percentile` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from junctura.errors import InvalidArgument
from junctura.products._field import Field
from junctura.products._floats import Floats
from junctura.products._operations._base import Operation, Transform, exceeds, grouped, listed, stacked
from junctura.products._words import canonical


@dataclass(frozen=True)
class Statistic:
    """One statistic: ``mean``, ``spread``, ``min``, ``max``, ``percentile`` or ``probability``."""

    kind: str
    value: float = 0.0
    comparison: str = ""


_PLAIN: dict[str, Callable[[Floats], Floats]] = {
    "mean": lambda members: np.mean(members, axis=0),
    "spread": lambda members: np.std(members, axis=0),
    "min": lambda members: np.min(members, axis=0),
    "max": lambda members: np.max(members, axis=0),
}


@dataclass(frozen=True)
class Ensemble(Operation):
    """Makes one field of each statistic of the members, in this order.

    Fields get the attributes ``statistic`` and ``members`` (how many), and ``percentile``, or ``threshold`` with
    ``thresholdUnits``, ``condition`` (above or below) and ``comparison`` (the word of the requirement); lose their
    ``number``; and get the ``type`` that MARS has for them: em, es, ep, or pb with ``quantile`` (min and max are
    quantiles, too).
    Probabilities are in percent.
    """

    name = "ensemble"
    of: tuple[Statistic, ...]

    @classmethod
    def read(cls, value: list[Any]) -> Ensemble:
        """As a requirement says it."""
        return cls(tuple(statistic for item in value for statistic in _statistics(item)))

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [made for group in grouped(fields, "number", "type").values() for made in self._made(group)]

    def _made(self, group: list[Field]) -> Iterator[Field]:
        members = {_number(field): field for field in group}
        if len(members) < len(group):
            raise InvalidArgument(f"field {group[0].param}", "a member of the ensemble is there twice")
        first = members[min(members)]
        values = stacked([members[number] for number in sorted(members)])
        ordered = np.sort(values, axis=0) if any(one.kind == "percentile" for one in self.of) else values
        with np.errstate(invalid="ignore"):
            for one in self.of:
                yield _field(first, one, ordered if one.kind == "percentile" else values)


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
    if "number" not in field.attributes:
        raise InvalidArgument(f"field {field.param}", "it is no member of an ensemble: it has no number")
    return int(canonical("number", field.attributes["number"]))


def _field(first: Field, one: Statistic, members: Floats) -> Field:
    said: dict[str, Any] = {"statistic": one.kind, "number": None, "members": len(members)}
    if one.kind == "probability":
        said |= {"type": "ep", "threshold": one.value, "comparison": one.comparison}
        said["thresholdUnits"] = first.units
        said["condition"] = "above" if one.comparison in ("above", "at_least") else "below"
        return first.having(_probability(members, one), units="%", **said)
    if one.kind in ("mean", "spread"):
        said["type"] = "em" if one.kind == "mean" else "es"
        return first.having(_PLAIN[one.kind](members), **said)
    percentile = {"min": 0, "max": 100}.get(one.kind, int(one.value))
    said |= {"type": "pb", "quantile": f"{percentile}:100"}
    if one.kind == "percentile":
        return first.having(_percentile(members, percentile), **said, percentile=percentile)
    return first.having(_PLAIN[one.kind](members), **said)


def _probability(members: Floats, one: Statistic) -> Floats:
    share = 100.0 * np.count_nonzero(exceeds(members, one.comparison, one.value), axis=0) / len(members)
    made: Floats = np.where(np.isnan(members).any(axis=0), np.nan, share)
    return made


def _percentile(ordered: Floats, percentile: int) -> Floats:
    """Of members in order; missing values are behind all others."""
    at = (len(ordered) - 1) * (percentile / 100)
    below = int(np.floor(at))
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    share, difference = at - below, high - low
    # From the nearer end, so that it is met exactly.
    between = low + difference * share if share < 0.5 else high - difference * (1 - share)
    return np.where(np.isnan(ordered[-1]), np.nan, between)
