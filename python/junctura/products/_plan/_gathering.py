"""Actions that need several fields, and keep fields until all are available."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from junctura._document.located_yaml import Wrong
from junctura.errors import Error, InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._operations import Compute, Operation, Statistics, Turn, Window, Winds, telling
from junctura.products._plan._actions import Each
from junctura.products._plan._item import Item
from junctura.products._recipe.mars_words import Key, Value, canonical, end_of, span_of
from junctura.products._regrid.grids import Spectral
from junctura.products._regrid.vector_rotation import ALONG_GRID, PAIRS
from junctura.products._workers.make_product import FieldTransforms


class OverSteps(Each):
    """Statistics over steps: a window is complete when the field at its end arrives."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics, self.transforms = statistics, FieldTransforms()
        self._fields: dict[Key, dict[Value, Field]] = {}

    def take(self, item: Item) -> Sequence[Item]:
        step = canonical("step", item.attributes.get("step", 0))
        span = span_of(step)
        if span.start != span.end:
            raise InvalidArgument(item.named, "its step is a range already")
        key = telling(item.attributes, "step", "stepType", "timespan")
        fields = self._fields.setdefault(key, {})
        fields[step] = item.field
        if self.statistics.is_within(step):
            return []
        window = self.statistics.window(step)
        needed = [fields[at] for at in self.statistics.needed(window, fields)]
        is_behind = end_of(step) > end_of(self.statistics.begin)
        results = self.statistics.of_window(window)(needed, self.transforms) if is_behind else []
        self._forget(key, window)
        return [item.of(field) for field in results]

    def _forget(self, key: Key, window: Window) -> None:
        """Drops the fields of an ended window, except those at the beginning of the next one."""
        fields, following = self._fields[key], self.statistics.after(window)
        past = [at for at in fields if end_of(at) <= window.span.end]
        for at in [at for at in past if not self.statistics.needed(following, [at])]:
            del fields[at]
        if not fields:
            del self._fields[key]

    def end(self) -> Sequence[Item]:
        left = [
            (key, step) for key, fields in self._fields.items() for step in fields if self.statistics.is_within(step)
        ]
        if left:
            key, step = left[0]
            raise InvalidArgument(f"field {key}", f"step {step} belongs to a window whose end did not come")
        return []


@dataclass
class _Beside:
    """Fields that differ only in their parameter: the received ones, and those computed from them."""

    came: dict[str, Field] = field(default_factory=dict)
    made: dict[str, Field] = field(default_factory=dict)


class Formulas(Each):
    """Formulas between parameters: a field is computed when the last parameter of its formula has arrived.

    Received fields are passed on at once, unless a formula replaces their parameter, as in recipes.
    """

    def __init__(self, compute: Compute) -> None:
        self._made = {one.param: one for one in compute.made}
        # For each formula: the parameters that must arrive, and those that another formula computes first.
        self._needs: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        for one in compute.made:
            if not one.names:
                raise Wrong("a formula without parameters is never due: name one", one.param)
            before = frozenset(one.names) & self._needs.keys()
            self._needs[one.param] = frozenset(one.names) - before, before
        self._named = frozenset[str]().union(*(came for came, _ in self._needs.values()))
        self._waiting: dict[Key, _Beside] = {}

    def take(self, item: Item) -> Sequence[Item]:
        param = str(item.attributes.get("param", ""))
        goes_on = [] if param in self._made else [item]
        if param not in self._named:
            return goes_on
        key = telling(item.attributes, "param")
        beside = self._waiting.setdefault(key, _Beside())
        beside.came[param] = item.field
        try:
            made = [item.of(one) for one in self._computed(beside)]
        except Error:
            # It would fail again with each field that arrives.
            del self._waiting[key]
            raise
        if len(beside.made) == len(self._made):
            del self._waiting[key]
        return [*goes_on, *made]

    def _computed(self, beside: _Beside) -> Iterator[Field]:
        for param, (came, before) in self._needs.items():
            if param not in beside.made and came <= beside.came.keys() and before <= beside.made.keys():
                one = self._made[param]
                used = {name: (beside.made if name in before else beside.came)[name] for name in one.names}
                beside.made[param] = one.of(used)
                yield beside.made[param]

    def end(self) -> Sequence[Item]:
        if self._waiting:
            key, beside = next(iter(self._waiting.items()))
            there, lacking = (", ".join(sorted(names)) for names in (beside.came, self._named - beside.came.keys()))
            raise InvalidArgument(f"fields {key}", f"{lacking} did not come beside {there} ({len(self._waiting)} such)")
        return []


_PARTNERS = {"vo": "d", "d": "vo", **PAIRS, **{north: east for east, north in PAIRS.items()}}


class Pairs(Each):
    """Winds: two components, or vorticity and divergence, are processed when both have arrived; others pass at once.

    Parameters
    ----------
    grid
        The grid for winds computed from spectral vorticity and divergence; empty if not requested.

    """

    def __init__(self, grid: str) -> None:
        self.grid, self.transforms = grid, FieldTransforms()
        self._waiting: dict[tuple[Key, str], Field] = {}

    def take(self, item: Item) -> Sequence[Item]:
        param = str(item.attributes.get("param", "")).partition(".")[0]
        partner = _PARTNERS.get(param)
        operation = None if partner is None else self._operation(param, item)
        if operation is None or partner is None:
            return [item]
        beside = telling(item.attributes, "param")
        other = self._waiting.pop((beside, partner), None)
        if other is None:
            self._waiting[beside, param] = item.field
            return []
        return [item.of(field) for field in operation([other, item.field], self.transforms)]

    def _operation(self, param: str, item: Item) -> Operation | None:
        """Returns the result for a field and its partner; None if it is unchanged."""
        if param not in ("vo", "d"):
            return Turn() if ALONG_GRID in item.field.attributes else None
        if not isinstance(item.field.on, Spectral):
            raise InvalidArgument(item.named, f"it is on {item.field.on.label}, and winds come of spectral fields")
        if not self.grid:
            raise InvalidArgument(item.named, "winds on which grid? write wind: {grid: 0.5/0.5}")
        return Winds(self.grid)

    def end(self) -> Sequence[Item]:
        if self._waiting:
            key, param = next(iter(self._waiting))
            cause = f"{_PARTNERS[param]} did not come beside {param} ({len(self._waiting)} such)"
            raise InvalidArgument(f"fields {key}", cause)
        return []
