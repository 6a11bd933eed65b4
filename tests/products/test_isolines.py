"""Lines, labels and ink of maps, against NumPy and against the rules of a readable map."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from junctura import errors
from junctura._native import _blend, _isolines
from junctura.products._map import isolines
from junctura.products._map.coast import coastlines
from junctura.products._map.ink import BRIGHT, DARK, Ink, _pieces
from junctura.products._map.lettering import width
from junctura.products._map.projection import View

LEVELS = tuple(np.arange(-3.0, 3.1, 0.5))
UNEVEN = (-2.0, -1.9, 0.0, 0.3, 2.5)


def noise(high: int = 300, wide: int = 500) -> Any:
    return np.random.default_rng(1).normal(size=(high, wide)).astype(np.float32)


def waves(high: int = 300, wide: int = 500) -> Any:
    y, x = np.mgrid[:high, :wide]
    return (2 * np.sin(x / 40) + np.cos(y / 30 + x / 90)).astype(np.float32)


def with_gaps(high: int = 300, wide: int = 500) -> Any:
    values = waves(high, wide)
    values[100:140, 200:280] = np.nan
    return values


FIELDS = {"noise": noise, "waves": waves, "gaps": with_gaps}


INKS = (BRIGHT, DARK)


def drawn(values: Any, lines: Any, stroke: Any) -> tuple[Any, list[Any]]:
    """How much of each pixel is covered, to a 200th, and the crossings of each line."""
    under = np.full((values.size, 4), 255, np.uint8)
    pixels = np.full_like(under, 200)
    crossings = _isolines((pixels, under), values, values.shape[1], lines, stroke, ((0, 0, 0), (0, 0, 0)))
    assert (pixels[:, 3] == 200).all() and (under == 255).all()
    return (1 - pixels[:, 0] / 200).reshape(values.shape), [np.frombuffer(one, np.int64) for one in crossings]


@pytest.mark.parametrize("levels", [LEVELS, UNEVEN, (0.5,)])
@pytest.mark.parametrize("field", FIELDS)
def test_lines_cover_what_numpy_says(field: str, levels: tuple[float, ...]) -> None:
    values, margin, wide, strength = FIELDS[field](), 7, 1.5, 0.75
    found, crossings = drawn(values, [(level, margin) for level in levels], (wide, 3, 0, strength))
    down, right = np.gradient(values)
    most = np.hypot(down, right).astype(np.float64)
    lines = np.array(levels)
    at = np.abs(values[..., None] - lines).argmin(axis=-1)
    away = np.abs(values - lines[at])
    apart = np.diff(lines).min() if len(lines) > 1 else np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.nan_to_num((wide / 2 + 0.5 - away / most) * np.minimum(1, apart / (3 * most))).clip(0, 1)
    # Colors are whole numbers.
    np.testing.assert_allclose(found, strength * expected, atol=1.02 / 200)
    inner = np.zeros(values.shape, bool)
    inner[margin:-margin, margin:-margin] = True
    for number, one in enumerate(crossings):
        meant = np.flatnonzero((at == number) & (away < 0.5 * most) & inner)
        # Rounding decides at the ends.
        assert len(np.setxor1d(one, meant)) <= 2


def labels_of(values: Any, levels: tuple[float, ...], unit: float) -> list[isolines.Label]:
    pixels = np.zeros((values.size, 4), np.uint8)
    return isolines.draw(pixels, pixels.copy(), values, levels, 0, unit)


@pytest.mark.parametrize("unit", [0.88, 1.0, 2.5])
@pytest.mark.parametrize("field", FIELDS)
def test_labels_lie_on_straight_lines_apart_from_one_another(field: str, unit: float) -> None:
    values = FIELDS[field](*((300, 500) if field == "gaps" else (600, 900)))
    high, wide = values.shape
    labels = labels_of(values, LEVELS, unit)
    down, right = np.gradient(values)
    most = np.hypot(down, right)
    assert labels or unit > 2
    for label in labels:
        row, column, level = round(label.y), round(label.x), float(label.words)
        assert abs(values[row, column] - level) <= 0.5 * most[row, column]
        turn = np.radians(label.angle)
        assert -90 <= label.angle <= 90
        # Along the line the value does not change, but for how far it bends.
        for share in (-0.5, 0.5):
            long = width(label.words, label.size) + 6 * unit
            y, x = round(row - share * long * np.sin(turn)), round(column + share * long * np.cos(turn))
            assert 0 <= y < high and 0 <= x < wide
            assert abs(values[y, x] - level) < (isolines._BEND + 1.5) * unit * most[row, column] + 1e-6
    for one, other in itertools.combinations(labels, 2):
        apart = np.hypot(one.x - other.x, one.y - other.y)
        assert apart > unit * (isolines._APART_SAME if one.words == other.words else isolines._APART)
        assert not np.intersect1d(one.pixels(high, wide), other.pixels(high, wide)).size


def test_a_noisy_field_has_no_more_labels_than_there_is_room_for() -> None:
    values = noise(600, 900)
    labels = labels_of(values, tuple(np.arange(-3.0, 3.01, 0.1)), 1.0)
    # Discs of half the distance do not overlap, nor reach beyond the map by more than that.
    most = (600 + isolines._APART) * (900 + isolines._APART) / (np.pi * (isolines._APART / 2) ** 2)
    assert 10 < len(labels) < most


def test_ink_is_put_on_as_numpy_does() -> None:
    random = np.random.default_rng(2)
    colours = random.integers(0, 256, (5000, 4), np.uint8)
    pixels = random.choice(5000, 900, replace=False)
    cover = random.random(900, np.float32)
    under = colours[pixels, :3].astype(np.float32)
    brightness = colours[pixels, :3].astype(int) @ np.array([299, 587, 114])
    for against in (False, True):
        ink = np.where((brightness < 118_000)[:, None], BRIGHT, DARK) if against else np.array([(200, 10, 90)])
        expected = colours.copy()
        expected[pixels, :3] = under * (1 - cover[:, None]) + ink.astype(np.float32) * cover[:, None]
        made = colours.copy()
        Ink(pixels, cover).onto(made, colours if against else (200, 10, 90))
        np.testing.assert_array_equal(made, expected)


def test_arrays_that_do_not_fit_are_refused() -> None:
    colours, pixels, cover = np.zeros((6, 4), np.uint8), np.array([6]), np.ones(1, np.float32)
    with pytest.raises(errors.InvalidArgument, match="pixels: not all are there"):
        _blend(colours, pixels, cover, INKS)
    with pytest.raises(errors.InvalidArgument, match="pixels: not all are there"):
        _blend(colours, np.array([2]), cover, INKS, colours[:2].copy())
    with pytest.raises(errors.InvalidArgument, match="do not overlap"):
        _blend(colours, np.array([2]), cover, INKS, colours)
    with pytest.raises(errors.InvalidArgument, match="do not overlap"):
        _blend(colours, np.arange(6)[::2], np.ones(3, np.float32), INKS)
    with pytest.raises(errors.InvalidArgument, match="expected pixels of 64 bits"):
        _blend(colours, np.array([2], np.int32), cover, INKS)
    values = np.zeros((2, 3), np.float32)
    for given, cause in (
        (values[:, ::2], "arrays without gaps"),
        (values[:1], "not as many as values"),
        (values.astype(np.float64), "not as many as values"),
    ):
        with pytest.raises(errors.InvalidArgument, match=cause):
            _isolines((colours, colours.copy()), given, 3, [(0.0, 1)], (1, 3, 0, 1), INKS)
    with pytest.raises(errors.InvalidArgument, match="do not overlap"):
        _isolines((colours, colours), values, 3, [(0.0, 1)], (1, 3, 0, 1), INKS)
    assert not colours.any()
    none = np.zeros(0, np.int64)
    _blend(colours, none, np.zeros(0, np.float32), INKS)


@pytest.mark.parametrize("projection", ["cylindrical", "robinson", "globe"])
def test_coastlines_are_cut_as_each_by_itself_is(projection: Any) -> None:
    view = View(projection, 300, (20.0, 170.0))
    lines = [*coastlines("110m"), (np.array([10.0]), np.array([0.0])), (np.array([0.0, 0.0]), np.array([170.0, 175.0]))]
    together = [*_pieces(view, lines)]
    assert together == [piece for line in lines for piece in _pieces(view, [line])]
    assert len(together) > 50 and [*_pieces(view, [])] == []
    for piece in together:
        x, y = np.array(piece[::2]), np.array(piece[1::2])
        # No line jumps to the other side.
        assert len(x) > 1 and np.hypot(np.diff(x), np.diff(y)).max() < 3 * 150
