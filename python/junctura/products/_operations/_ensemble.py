"""Statistics of the members of an ensemble.

Computed in double precision, with members in the order of their numbers, so that the same fields result in the same
bits in any order of arrival. If a value of one member is missing, the statistic is missing. The native module computes
them (crate `junctura-values`).

The spread is the standard deviation with the number of members as the divisor, not one less, as in ECMWF's own product
generation (``type=es``). Percentiles are linearly interpolated between members, as in `numpy.percentile`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from junctura.errors import InvalidArgument
from junctura.field import member_of
from junctura.products._input.decoded_field import Field
from junctura.products._operations._base import Operation, Transform, combined, grouped, listed
from junctura.products._recipe.mars_words import of_object
from junctura.products._regrid.floats import Floats


@dataclass(frozen=True)
class Statistic:
    """One statistic: ``mean``, ``spread``, ``min``, ``max``, ``percentile`` or ``probability``."""

    kind: str
    value: float = 0.0
    comparison: str = ""


@dataclass(frozen=True)
class Ensemble(Operation):
    """Computes one field for each statistic of the members, in this order.

    Fields get the attributes ``statistic`` and ``members`` (how many), and ``percentile``, or ``threshold`` with
    ``thresholdUnits``, ``condition`` (above or below) and ``comparison`` (the word of the recipe); lose their
    ``number``; and get the ``type`` that MARS has for them: em, es, ep, or pb with ``quantile`` (min and max are
    quantiles, too).
    Probabilities are in percent.
    """

    name = "ensemble"
    of: tuple[Statistic, ...]

    @classmethod
    def read(cls, value: Any) -> Ensemble:
        """Its definition in a recipe: one statistic, or a list."""
        return cls(tuple(statistic for item in listed(value) for statistic in _statistics(item)))

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [made for group in grouped(fields, "number", "type").values() for made in self._made(group)]

    def _made(self, group: list[Field]) -> Iterator[Field]:
        members = {_number(field): field for field in group}
        if len(members) < len(group):
            raise InvalidArgument(f"field {group[0].param}", "a member of the ensemble is there twice")
        ordered = [members[number] for number in sorted(members)]
        made = combined(ordered, [(one.comparison or one.kind, one.value) for one in self.of])
        for one, values in zip(self.of, made, strict=True):
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


def _field(first: Field, one: Statistic, count: int, values: Floats) -> Field:
    """Returns the attributes of the statistic of this many members."""
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
