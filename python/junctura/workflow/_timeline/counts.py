"""Counts over time: beginnings and ends of intervals, as a curve along the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from junctura.workflow._timeline.canvas import number

Change = tuple[float, float]
_BIN = 2.0


def curve(spans: Iterable[tuple[float, float, float]], left: float, right: float) -> list[float]:
    """Returns means over narrow columns of the page, of intervals (from, to, amount)."""
    columns = max(1, int((right - left) / _BIN))
    # The amounts that begin in each column, and their fraction of the column.
    level, part = [0.0] * (columns + 1), [0.0] * (columns + 1)
    for begin, end, weight in spans:
        for x, sign in ((begin, weight), (end, -weight)):
            place = min(max((x - left) / _BIN, 0.0), float(columns))
            column = min(int(place), columns - 1)
            part[column] += sign * (column + 1 - place)
            level[column + 1] += sign
    values, now = [], 0.0
    for column in range(columns):
        now += level[column]
        values.append(max(0.0, now + part[column]))
    return values


def area(values: Sequence[float], under: Sequence[float], left: float, base: float, scale: float) -> str:
    """Returns the path of the area between two stacked curves."""
    top, bottom = [], []
    for index, (low, value) in enumerate(zip(under, values, strict=True)):
        for x in (left + index * _BIN, left + (index + 1) * _BIN):
            top.append((x, base - (low + value) * scale))
            bottom.append((x, base - low * scale))
    points = _thinned(top) + _thinned(bottom)[::-1]
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + "z"


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Removes points between two points of the same height."""
    kept = points[:1]
    for index in range(1, len(points) - 1):
        if not points[index - 1][1] == points[index][1] == points[index + 1][1]:
            kept.append(points[index])
    return kept + points[1:][-1:]
