"""Compares two meshes, or two series of steps, with tolerances.

Properties that only one of two formats can express are not compared: types of elements in memory, numbers that count
from 1, absent texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from junctura.mesh._model import Array, MeshBlock, MeshField, MeshSet, MeshStep
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
    for count, (one, other) in enumerate(zip_longest(first, second)):
        if one is None or other is None:
            kind = "second" if other is None else "first"
            yield MeshDifference(None, "steps", f"the {kind} has only {count}")
            return
        if not (one.shares(before[0]) and other.shares(before[1])):
            yield from static_differences(one, other, tolerance)
        before = (one, other)
        for where, what in _step_differences(one, other, tolerance):
            yield MeshDifference(one.step, where, what)


def same_static(first: MeshStep, second: MeshStep | None) -> bool:
    """Whether two meshes have equal points, blocks and sets."""
    return second is not None and next(static_differences(first, second, ValueTolerance()), None) is None


def static_differences(first: MeshStep, second: MeshStep, tolerance: ValueTolerance) -> Iterator[MeshDifference]:
    """Yields differences of points, blocks and sets."""
    found = [
        *_points_differences(first, second, tolerance),
        *_paired("block", first.blocks, second.blocks, lambda one, other: _block(one, other, tolerance)),
        *_paired("set", first.sets, second.sets, lambda one, other: _set(one, other, tolerance)),
    ]
    for where, what in found:
        yield MeshDifference(None, where, what)


Found = Iterator[tuple[str, str]]


def _paired(noun: str, first: Mapping[str, Any], second: Mapping[str, Any], differ: Any) -> Found:
    for name in (*first, *(name for name in second if name not in first)):
        if name not in second:
            yield f"{noun} {name}", "missing in the second"
        elif name not in first:
            yield f"{noun} {name}", "missing in the first"
        else:
            for what in differ(first[name], second[name]):
                yield f"{noun} {name}", what


def _points_differences(first: MeshStep, second: MeshStep, tolerance: ValueTolerance) -> Found:
    def differ(one: Any, other: Any) -> Iterator[str]:
        if one.count != other.count or len(one.axes) != len(other.axes):
            yield f"{one.count} points in {len(one.axes)}-D, and {other.count} in {len(other.axes)}-D"
            return
        axes, others = one.coordinates(), other.coordinates()
        apart = [
            (axis, tolerance.apart(*pair)) for axis, pair in zip("xyz", zip(axes, others, strict=True), strict=False)
        ]
        if any(places.size for _, places in apart):
            order = _order(np.stack(axes, axis=1), np.stack(others, axis=1))
            if order:
                yield f"the same points in another order: {order}"
            else:
                for at, (axis, places) in enumerate(apart):
                    if places.size:
                        yield _values(f"{axis} of point", axes[at], others[at], places)
        yield from _numbers("point", one.ids, other.ids, one.count)

    yield from _paired("points", first.points, second.points, differ)


def _block(one: MeshBlock, other: MeshBlock, tolerance: ValueTolerance) -> Iterator[str]:
    if one.points != other.points:
        yield f"on the points {one.points}, and on {other.points}"
    if one.shape != other.shape:
        yield f"elements of the shape {one.shape}, and {other.shape}"
        return
    if one.dims != other.dims or one.count != other.count:
        dims = [" x ".join(map(str, block.dims)) or str(block.count) for block in (one, other)]
        yield f"{dims[0]} elements, and {dims[1]}"
        return
    yield from _connectivity(one, other)
    if None not in (one.number, other.number) and one.number != other.number:
        yield f"its number is {one.number}, and {other.number}"
    if one.label and other.label and one.label.upper() != other.label.upper():
        yield f"its elements are called {one.label}, and {other.label}"
    yield from _numbers("element", one.ids, other.ids, one.count)
    for where, what in _paired("", one.attributes, other.attributes, _differ("element", tolerance)):
        yield f"attribute{where}: {what}"


def _connectivity(one: MeshBlock, other: MeshBlock) -> Iterator[str]:
    if one.shape in RAGGED:
        parts = [
            (
                block.sizes,
                block.kinds,
                block.connectivity,
                *((block.faces.sizes, block.faces.connectivity) if block.faces else ()),
            )
            for block in (one, other)
        ]
        if not all(_equal(*pair) for pair in zip(*parts, strict=False)):
            order = _order_of_ragged(one, other)
            yield f"the same elements in another order: {order}" if order else "other elements"
    elif not _equal(one.connectivity, other.connectivity):
        points = SHAPES[one.shape].points
        rows = one.connectivity.reshape(-1, points), other.connectivity.reshape(-1, points)
        order = _order(*rows)
        if order:
            yield f"the same elements in another order: {order}"
        else:
            places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
            at = int(places[0])
            yield (
                f"element {at} has the points {_list(rows[0][at])}, and {_list(rows[1][at])} "
                f"({places.size} of {len(rows[0])} {_differs(places.size)})"
            )


def _set(one: MeshSet, other: MeshSet, tolerance: ValueTolerance) -> Iterator[str]:
    if one.association != other.association or one.points != other.points:
        yield f"of {one.association} on {one.points}, and of {other.association} on {other.points}"
        return
    if one.indices.size != other.indices.size:
        yield f"{one.indices.size} entries, and {other.indices.size}"
        return
    sides = [part.sides if part.sides is not None else np.zeros(part.indices.size, int) for part in (one, other)]
    rows = np.stack([one.indices, sides[0]], axis=1), np.stack([other.indices, sides[1]], axis=1)
    places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    if places.size:
        order = _order(*rows)
        at = int(places[0])
        pair = [_list(part[at][: 1 + (one.sides is not None)]) for part in rows]
        yield (
            f"the same entries in another order: {order}"
            if order
            else f"entry {at} is {pair[0]}, and {pair[1]} ({places.size} of {one.indices.size} {_differs(places.size)})"
        )
    if None not in (one.number, other.number) and one.number != other.number:
        yield f"its number is {one.number}, and {other.number}"
    if one.kind and other.kind and one.kind != other.kind:
        yield f"its kind is {one.kind}, and {other.kind}"
    if one.factors is not None and other.factors is not None:
        yield from _differ("factor", tolerance)(one.factors, other.factors)


def _step_differences(first: MeshStep, second: MeshStep, tolerance: ValueTolerance) -> Found:
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
            for what in _differ(noun, tolerance)(values, others[place]):
                yield where, what
    for place in others:
        if place not in fields:
            yield f"field {place[2]} on {_PLACES[place[0]]} {place[1]}", "missing in the first"
    for where, what in _paired("global", first.globals, second.globals, _differ("value", tolerance)):
        yield where, what


def _by_place(fields: Iterable[MeshField]) -> dict[tuple[str, str, str], Array]:
    found: dict[tuple[str, str, str], Array] = {}
    for one in fields:
        for name, values in one.scalars():
            # A block without elements has no values.
            if values.size:
                found[one.association, one.on, name] = values
    return found


def _differ(noun: str, tolerance: ValueTolerance) -> Any:
    def differ(one: Array, other: Array) -> Iterator[str]:
        if one.size != other.size:
            yield f"{one.size} values, and {other.size}"
            return
        places = tolerance.apart(one, other)
        if places.size:
            if places.size > 1:
                order = _order(one.reshape(-1, 1), other.reshape(-1, 1)) if np.unique(one).size == one.size else ""
                if order:
                    yield f"the same values in another order: {order}"
                    return
            yield _values(noun, one, other, places)

    return differ


def _numbers(noun: str, first: Array | None, second: Array | None, count: int) -> Iterator[str]:
    """Without numbers, points and elements are counted."""
    if first is None and second is None:
        return
    counted = np.arange(1, count + 1)
    one, other = counted if first is None else first, counted if second is None else second
    places = np.flatnonzero(one != other)
    # Of the elements of a later block, the count begins elsewhere: only both can differ.
    if places.size and first is not None and second is not None:
        yield _values(f"the number of {noun}", one, other, places)


def _equal(first: Array | None, second: Array | None) -> bool:
    return first is second or (first is not None and second is not None and bool(np.array_equal(first, second)))


def _order(first: Array, second: Array) -> str:
    """Describes the permutation of two tables that have the same rows; empty if they have not."""
    orders = [np.lexsort(table.T[::-1]) for table in (first, second)]
    if not np.array_equal(first[orders[0]], second[orders[1]]):
        return ""
    moved = np.empty(len(first), np.int64)
    moved[orders[0]] = orders[1]
    places = np.flatnonzero(moved != np.arange(len(first)))
    at = int(places[0])
    return f"entry {at} of the first is entry {moved[at]} of the second ({places.size} of {len(first)} moved)"


def _order_of_ragged(one: MeshBlock, other: MeshBlock) -> str:
    if one.faces is not None or one.sizes is None or other.sizes is None:
        return ""
    width = int(max(one.sizes.max(initial=0), other.sizes.max(initial=0)))
    tables = []
    for block in (one, other):
        assert block.sizes is not None
        table = np.full((block.count, width + 1), -1, np.int64)
        table[:, 0] = block.of_kinds
        rows = np.repeat(np.arange(block.count), block.sizes)
        table[rows, 1 + np.arange(block.connectivity.size) - block.offsets[:-1][rows]] = block.connectivity
        tables.append(table)
    return _order(*tables)


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
