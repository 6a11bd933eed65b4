"""Compares two meshes, or two series of steps, with tolerances.

Properties that only one of two formats can express are not compared: types of elements in memory, numbers that count
from 1, absent texts. If one mesh has the form of an Exodus file, the other one is brought into this form.

Points or elements in another order are one difference. Connectivity, sets and values may follow this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from junctura.mesh._joined import JoinedForm, is_joined
from junctura.mesh._model import Array, MeshBlock, MeshField, MeshSet, MeshStep
from junctura.mesh._orders import MeshOrders, RaggedElements, described, inverse, names_in_order, order_of
from junctura.mesh._shapes import RAGGED, SHAPES

# Of 4-byte floats.
_FLOAT_EPS = float(np.finfo(np.float32).eps)
_PLACES = {"vertex": "points", "element": "block", "set": "set"}


@dataclass(frozen=True)
class ValueTolerance:
    """Two values are equal if they differ by at most `absolute` + `relative` * the greater magnitude.

    NaN equals NaN, and infinities equal themselves. `float_eps` also accepts what 4-byte floats cannot distinguish.

    Examples
    --------
    >>> tolerance = junctura.mesh.ValueTolerance(absolute=0.01)
    >>> tolerance.apart(numpy.array([1.0, 2.0]), numpy.array([1.005, 2.5])).tolist()
    [1]

    """

    absolute: float = 0.0
    relative: float = 0.0
    float_eps: bool = False

    def apart(self, first: Array, second: Array) -> Array:
        """Returns the places where two arrays of equal size differ."""
        if first is second:
            return np.empty(0, np.int64)
        unequal = first != second
        if first.dtype.kind == "f" and second.dtype.kind == "f":
            unequal &= ~(np.isnan(first) & np.isnan(second))
        places = np.flatnonzero(unequal)
        relative = max(self.relative, _FLOAT_EPS if self.float_eps else 0.0)
        if not places.size or (not self.absolute and not relative):
            return places
        one, other = first[places].astype(float), second[places].astype(float)
        with np.errstate(invalid="ignore", over="ignore"):
            allowed = self.absolute + relative * np.maximum(np.abs(one), np.abs(other))
            close = np.isfinite(one) & np.isfinite(other) & (np.abs(one - other) <= allowed)
        apart: Array = places[~close]
        return apart


class MeshDifference(NamedTuple):
    """A difference.

    Attributes
    ----------
    step
        The number of the step in the first series; None if it is of all steps.
    where
        The part that differs: ``field p on block fluid``.
    what
        How it differs.

    Examples
    --------
    >>> print(junctura.mesh.MeshDifference(3, "field p on block fluid", "has other components"))
    step 3: field p on block fluid: has other components

    """

    step: int | None
    where: str
    what: str

    def __str__(self) -> str:
        return f"{'' if self.step is None else f'step {self.step}: '}{self.where}: {self.what}"


def compare(
    first: Iterable[MeshStep], second: Iterable[MeshStep], tolerance: ValueTolerance | None = None
) -> Iterator[MeshDifference]:
    """Yields the differences of two series, step by step; steps are paired in order.

    If one mesh has the form of an Exodus file (one set of points, ``nodes``, and no structured or mixed blocks), the
    other one is compared as its copy into such a file.

    Parameters
    ----------
    first, second
        Meshes of steps: an opened file or URL, a list.
    tolerance
        Of coordinates and values. Default: none.

    Examples
    --------
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> moved = {"nodes": junctura.mesh.MeshPoints((numpy.array([0, 1, 2.5]),))}
    >>> for difference in compare([MeshStep(points, blocks)], [MeshStep(moved, blocks)]):
    ...     print(difference)
    points nodes: x of point 2 is 2.0 and 2.5 (1 of 3 differs, by at most 0.5)

    """
    tolerance = tolerance or ValueTolerance()
    before: tuple[MeshStep | None, MeshStep | None] = (None, None)
    forms: tuple[JoinedForm | None, JoinedForm | None] = (None, None)
    orders = MeshOrders()
    for count, (one, other) in enumerate(zip_longest(first, second)):
        if one is None or other is None:
            kind = "second" if other is None else "first"
            yield MeshDifference(None, "steps", f"the {kind} has only {count}")
            return
        is_new = not (one.shares(before[0]) and other.shares(before[1]))
        before = (one, other)
        if is_new:
            forms = _forms(one, other)
            orders = MeshOrders()
            yield from static_differences(_formed(one, forms[0]), _formed(other, forms[1]), tolerance, orders)
        for where, what in _step_differences(_formed(one, forms[0]), _formed(other, forms[1]), tolerance, orders):
            yield MeshDifference(one.step, where, what)


def _formed(mesh: MeshStep, form: JoinedForm | None) -> MeshStep:
    return mesh if form is None else form.mesh(mesh)


def _forms(one: MeshStep, other: MeshStep) -> tuple[JoinedForm | None, JoinedForm | None]:
    are_joined = is_joined(one), is_joined(other)
    return (
        JoinedForm(one) if are_joined == (False, True) else None,
        JoinedForm(other) if are_joined == (True, False) else None,
    )


def same_static(first: MeshStep, second: MeshStep | None) -> bool:
    """Whether two meshes have equal points, blocks and sets."""
    return second is not None and next(static_differences(first, second, ValueTolerance()), None) is None


def static_differences(
    first: MeshStep, second: MeshStep, tolerance: ValueTolerance, orders: MeshOrders | None = None
) -> Iterator[MeshDifference]:
    """Yields differences of points, blocks and sets, and keeps the orders of points and elements that differ."""
    orders = MeshOrders() if orders is None else orders
    found = [
        *_points_differences(first, second, tolerance, orders),
        *_blocks_differences(first, second, tolerance, orders),
        *_sets_differences(first, second, tolerance, orders),
    ]
    for where, what in found:
        yield MeshDifference(None, where, what)


Found = Iterator[tuple[str, str]]


def _paired(noun: str, first: Mapping[str, Any], second: Mapping[str, Any], differ: Any) -> Found:
    """Calls `differ` with a name and both values; names that only one has are differences."""
    for name in (*first, *(name for name in second if name not in first)):
        if name not in second:
            yield f"{noun} {name}", "missing in the second"
        elif name not in first:
            yield f"{noun} {name}", "missing in the first"
        else:
            for what in differ(name, first[name], second[name]):
                yield f"{noun} {name}", what


def _points_differences(first: MeshStep, second: MeshStep, tolerance: ValueTolerance, orders: MeshOrders) -> Found:
    def differ(name: str, one: Any, other: Any) -> Iterator[str]:
        if one.count != other.count or len(one.axes) != len(other.axes):
            yield f"{one.count} points in {len(one.axes)}-D, and {other.count} in {len(other.axes)}-D"
            return
        axes, others = one.coordinates(), other.coordinates()
        apart = [
            (axis, tolerance.apart(*pair)) for axis, pair in zip("xyz", zip(axes, others, strict=True), strict=False)
        ]
        if any(places.size for _, places in apart):
            table = np.stack(axes, axis=1)
            order = order_of(table, np.stack(others, axis=1))
            if order is not None:
                orders.add_points(name, table, order)
                yield f"the same points in another order: {described(order)}"
            else:
                for at, (axis, places) in enumerate(apart):
                    if places.size:
                        yield _values(f"{axis} of point", axes[at], others[at], places)
        yield from _numbers("point", one.ids, other.ids, orders.points.get(name))

    yield from _paired("points", first.points, second.points, differ)


def _blocks_differences(first: MeshStep, second: MeshStep, tolerance: ValueTolerance, orders: MeshOrders) -> Found:
    def differ(name: str, one: MeshBlock, other: MeshBlock) -> Iterator[str]:
        return _block(name, one, other, tolerance, orders)

    yield from _paired("block", first.blocks, second.blocks, differ)
    orders.tell_apart()
    for points in first.points:
        names, others = names_in_order(first.blocks_on(points), second.blocks_on(points))
        if names != others:
            yield f"blocks on {points}", f"the same blocks in another order: {', '.join(names)}; {', '.join(others)}"


def _block(name: str, one: MeshBlock, other: MeshBlock, tolerance: ValueTolerance, orders: MeshOrders) -> Iterator[str]:
    if one.points != other.points:
        yield f"on the points {one.points}, and on {other.points}"
    # A file does not keep the shape of a block without elements.
    if one.shape != other.shape and (one.count or other.count):
        yield f"elements of the shape {one.shape}, and {other.shape}"
        return
    if one.dims != other.dims or one.count != other.count:
        dims = [" x ".join(map(str, block.dims)) or str(block.count) for block in (one, other)]
        yield f"{dims[0]} elements, and {dims[1]}"
        return
    if one.count and one.shape != "structured":
        yield from _connectivity(name, one, other, orders)
    if None not in (one.number, other.number) and one.number != other.number:
        yield f"its number is {one.number}, and {other.number}"
    if one.label and other.label and one.label.upper() != other.label.upper():
        yield f"its elements are called {one.label}, and {other.label}"
    order = orders.blocks.get(name)
    yield from _numbers("element", one.ids, other.ids, order)
    differ = _differ("element", tolerance, order)
    for where, what in _paired("", one.attributes, other.attributes, lambda _, *pair: differ(*pair)):
        yield f"attribute{where}: {what}"


def _connectivity(name: str, one: MeshBlock, other: MeshBlock, orders: MeshOrders) -> Iterator[str]:
    first, second = orders.located(one, is_second=False), orders.located(other, is_second=True)
    order = None
    if one.shape in RAGGED:
        elements, others = RaggedElements.of(first), RaggedElements.of(second)
        is_equal = elements.equals(others)
        if not is_equal:
            order = elements.order_in(others)
    else:
        rows = [block.connectivity.reshape(-1, SHAPES[one.shape].points) for block in (first, second)]
        is_equal = _equal(*rows)
        if not is_equal:
            order = order_of(*rows)
    if is_equal or order is not None:
        orders.match(one, other, order)
    if order is not None:
        orders.blocks[name] = order
        yield f"the same elements in another order: {described(order)}"
    elif not is_equal and one.shape in RAGGED:
        yield "other elements"
    elif not is_equal:
        places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
        at = int(places[0])
        points = [_list(block.connectivity.reshape(rows[0].shape)[at]) for block in (one, other)]
        yield (
            f"element {at} has the points {points[0]}, and {points[1]} "
            f"({places.size} of {len(rows[0])} {_differs(places.size)})"
        )


def _sets_differences(first: MeshStep, second: MeshStep, tolerance: ValueTolerance, orders: MeshOrders) -> Found:
    # Made for the first set of elements or sides on each set of points.
    elements: dict[str, Array] = {}

    def differ(_: str, one: MeshSet, other: MeshSet) -> Iterator[str]:
        if one.association != other.association or one.points != other.points:
            yield f"of {one.association} on {one.points}, and of {other.association} on {other.points}"
            return
        points = other.points
        if _equal(one.indices, other.indices):
            pass
        elif other.association != "vertex":
            if points not in elements:
                elements[points] = orders.elements(first, second, points)
            other = replace(other, indices=elements[points][other.indices])
        elif points in orders.points:
            other = replace(other, indices=inverse(orders.points[points])[other.indices])
        yield from _set(one, other, tolerance)

    yield from _paired("set", first.sets, second.sets, differ)


def _set(one: MeshSet, other: MeshSet, tolerance: ValueTolerance) -> Iterator[str]:
    if one.indices.size != other.indices.size:
        yield f"{one.indices.size} entries, and {other.indices.size}"
        return
    sides = [part.sides if part.sides is not None else np.zeros(part.indices.size, int) for part in (one, other)]
    rows = np.stack([one.indices, sides[0]], axis=1), np.stack([other.indices, sides[1]], axis=1)
    places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    if places.size:
        order = order_of(*rows)
        at = int(places[0])
        pair = [_list(part[at][: 1 + (one.sides is not None)]) for part in rows]
        yield (
            f"the same entries in another order: {described(order)}"
            if order is not None
            else f"entry {at} is {pair[0]}, and {pair[1]} ({places.size} of {one.indices.size} {_differs(places.size)})"
        )
    if None not in (one.number, other.number) and one.number != other.number:
        yield f"its number is {one.number}, and {other.number}"
    if one.kind and other.kind and one.kind != other.kind:
        yield f"its kind is {one.kind}, and {other.kind}"
    if one.factors is not None and other.factors is not None:
        yield from _differ("factor", tolerance)(one.factors, other.factors)


def _step_differences(first: MeshStep, second: MeshStep, tolerance: ValueTolerance, orders: MeshOrders) -> Found:
    times = [np.array([np.nan if one.time is None else one.time]) for one in (first, second)]
    if tolerance.apart(*times).size:
        yield "time", f"{first.time} and {second.time}"
    fields, others = _by_place(first.fields), _by_place(second.fields)
    for place, values in fields.items():
        where = f"field {place[2]} on {_PLACES[place[0]]} {place[1]}"
        if place not in others:
            yield where, "missing in the second"
        else:
            noun = {"vertex": "point", "element": "element", "set": "entry"}[place[0]]
            for what in _differ(noun, tolerance, orders.of(place[0], place[1]))(values, others[place]):
                yield where, what
    for place in others:
        if place not in fields:
            yield f"field {place[2]} on {_PLACES[place[0]]} {place[1]}", "missing in the first"
    differ = _differ("value", tolerance)
    yield from _paired("global", first.globals, second.globals, lambda _, *pair: differ(*pair))


def _by_place(fields: Iterable[MeshField]) -> dict[tuple[str, str, str], Array]:
    found: dict[tuple[str, str, str], Array] = {}
    for one in fields:
        for name, values in one.scalars():
            # A block without elements has no values.
            if values.size:
                found[one.association, one.on, name] = values
    return found


def _differ(noun: str, tolerance: ValueTolerance, order: Array | None = None) -> Any:
    """`order` is that of the points or elements that have the values: they may follow it."""

    def differ(one: Array, other: Array) -> Iterator[str]:
        if one.size != other.size:
            yield f"{one.size} values, and {other.size}"
            return
        places = tolerance.apart(one, other)
        if places.size and order is not None and order.size == other.size:
            other = other[order]
            places = tolerance.apart(one, other)
        if places.size:
            if places.size > 1:
                moved = order_of(one.reshape(-1, 1), other.reshape(-1, 1)) if np.unique(one).size == one.size else None
                if moved is not None:
                    yield f"the same values in another order: {described(moved)}"
                    return
            yield _values(noun, one, other, places)

    return differ


def _numbers(noun: str, first: Array | None, second: Array | None, order: Array | None) -> Iterator[str]:
    """Without numbers, points and elements are counted; the count of a later block begins elsewhere."""
    if first is None or second is None or _equal(first, second):
        return
    second = second if order is None else second[order]
    places = np.flatnonzero(first != second)
    if places.size:
        yield _values(f"the number of {noun}", first, second, places)


def _equal(first: Array | None, second: Array | None) -> bool:
    return first is second or (first is not None and second is not None and bool(np.array_equal(first, second)))


def _values(noun: str, one: Array, other: Array, places: Array) -> str:
    at = int(places[0])
    with np.errstate(invalid="ignore", over="ignore"):
        most = np.nanmax(np.append(np.abs(one[places].astype(float) - other[places].astype(float)), 0.0))
    return (
        f"{noun} {at} is {one[at]} and {other[at]} "
        f"({places.size} of {one.size} {_differs(places.size)}, by at most {most:.6g})"
    )


def _differs(count: int) -> str:
    return "differs" if count == 1 else "differ"


def _list(numbers: Array) -> str:
    return " ".join(map(str, numbers.tolist()))
