"""Lines, labels and ink of maps, against NumPy and against the rules of a readable map."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from junctura import errors
from junctura._native import _blend, _isolines
from junctura.products._map.lettering import width
from junctura.products._map.lines import isolines
from junctura.products._map.lines.coast import coastlines
from junctura.products._map.lines.ink import BRIGHT, DARK, Ink, _around, _pieces, inks_on
from junctura.products._map.projection import View
from junctura.products._map.styling import colours

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


INKS = (DARK, BRIGHT)


def drawn(values: Any, lines: Any, stroke: Any, halo: tuple[float, float] = (0, 0)) -> tuple[Any, list[Any]]:
    """How much of each pixel is covered, to a 200th, and the crossings of each line."""
    pixels = np.full((values.size, 4), 200, np.uint8)
    black = ((0, 0, 0), (0, 0, 0))
    crossings = _isolines(pixels, values, values.shape[1], [(*line, black) for line in lines], (*stroke, *halo))
    assert (pixels[:, 3] == 200).all()
    return (1 - pixels[:, 0] / 200).reshape(values.shape), [np.frombuffer(one, np.int64) for one in crossings]


@pytest.mark.parametrize("halo", [(0, 0), (1.5, 0.5)])
@pytest.mark.parametrize("levels", [LEVELS, UNEVEN, (0.5,)])
@pytest.mark.parametrize("field", FIELDS)
def test_lines_cover_what_numpy_says(field: str, levels: tuple[float, ...], halo: tuple[float, float]) -> None:
    values, margin, wide, strength = FIELDS[field](), 7, 1.5, 0.75
    found, crossings = drawn(values, [(level, margin) for level in levels], (wide, 3, 0, strength), halo)
    down, right = np.gradient(values)
    most = np.hypot(down, right).astype(np.float64)
    lines = np.array(levels)
    at = np.abs(values[..., None] - lines).argmin(axis=-1)
    away = np.abs(values - lines[at])
    apart = np.diff(lines).min() if len(lines) > 1 else np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        faded = np.minimum(1, apart / (3 * most))
        line, around = (
            np.nan_to_num((reach + 0.5 - away / most) * faded).clip(0, 1) for reach in (wide / 2, wide / 2 + halo[0])
        )
    # Colors are whole numbers.
    np.testing.assert_allclose(found, 1 - (1 - strength * line) * (1 - halo[1] * around), atol=1.02 / 200)
    inner = np.zeros(values.shape, bool)
    inner[margin:-margin, margin:-margin] = True
    for number, one in enumerate(crossings):
        meant = np.flatnonzero((at == number) & (away < 0.5 * most) & inner)
        # Rounding decides at the ends.
        assert len(np.setxor1d(one, meant)) <= 2


def labels_of(values: Any, levels: tuple[float, ...], unit: float) -> list[isolines.Label]:
    pixels = np.zeros((values.size, 4), np.uint8)
    return isolines.draw(pixels, values, [(level, INKS) for level in levels], 0, unit)


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


def test_no_label_stands_out_from_a_globe_or_the_map() -> None:
    high = wide = 400
    y, x = np.mgrid[:high, :wide]
    values = waves(high, wide)
    values[np.hypot(y - 200, x - 200) > 190] = np.nan
    for shown in (values, waves(high, wide)):
        pixels = np.zeros((values.size, 4), np.uint8)
        labels = isolines.draw(pixels, shown, [(float(level), INKS) for level in LEVELS], 0, 1.0)
        assert len(labels) > 5
        for label in labels:
            half, tall = width(label.words, label.size) / 2, 0.6 * label.size
            sine, cosine = np.sin(np.radians(label.angle)), np.cos(np.radians(label.angle))
            for end, side in itertools.product((-half, half), (-tall, tall)):
                row, column = label.y - end * sine + side * cosine, label.x + end * cosine + side * sine
                assert 0 <= row < high and 0 <= column < wide and np.isfinite(shown[int(row), int(column)])


def test_ink_is_put_on_as_numpy_does() -> None:
    random = np.random.default_rng(2)
    ground = random.integers(0, 256, (5000, 4), np.uint8)
    pixels = random.choice(5000, 900, replace=False)
    line, halo = random.random((2, 900), np.float32)
    made = ground.copy()
    Ink(pixels, line, halo).onto(made, INKS)
    expected = ground.copy()
    with_halo = ground[pixels, :3] * (1 - halo[:, None]) + np.array(BRIGHT, np.float32) * halo[:, None]
    expected[pixels, :3] = with_halo * (1 - line[:, None]) + np.array(DARK, np.float32) * line[:, None]
    np.testing.assert_array_equal(made, expected)


def test_a_line_has_one_ink_on_all_colors() -> None:
    """Where dark and light classes meet it does not change."""
    values = np.broadcast_to(np.arange(40, dtype=np.float32), (60, 40)).copy()
    pixels = np.full((values.size, 4), 250, np.uint8)
    pixels.reshape(60, 40, 4)[::2] = 10
    isolines.draw(pixels, values, [(20.0, INKS)], 0, 1.0)
    line, halo, beside = pixels.reshape(60, 40, 4)[:, [20, 21, 25], 0].astype(int).T
    assert (line < 60).all() and (halo[::2] > 60).all() and (halo[1::2] > 150).all()
    assert set(beside) == {10, 250}


def contrast(one: Any, other: Any) -> float:
    """Of two colours, by WCAG 2.2."""

    def luminance(colour: Any) -> float:
        parts = np.asarray(colour) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", colours.NAMES)
def test_a_line_has_contrast_to_the_color_of_its_value(name: str) -> None:
    for colour in colours.table(name):
        line, _ = inks_on(colour)
        assert contrast(line, colour) > 3.9


@pytest.mark.parametrize("reach", [1, 2, 5, 100])
def test_a_halo_is_the_greatest_cover_around_a_pixel(reach: int) -> None:
    cover = np.where(np.random.default_rng(3).random((30, 41)) < 0.02, 200, 0).astype(np.uint8)
    expected = ndimage.maximum_filter(cover, 2 * reach + 1, mode="constant")
    np.testing.assert_array_equal(_around(cover, reach), expected)


def test_arrays_that_do_not_fit_are_refused() -> None:
    ground, pixels, cover = np.zeros((6, 4), np.uint8), np.array([6]), np.ones(1, np.float32)
    covers, stroke = (cover, cover.copy()), (1, 3, 0, 1, 1, 0.5)
    with pytest.raises(errors.InvalidArgument, match="pixels: not all are there"):
        _blend(ground, pixels, covers, INKS)
    for given in ((cover, np.ones(2, np.float32)), (np.ones(2, np.float32), cover)):
        with pytest.raises(errors.InvalidArgument, match="pixels: not all are there"):
            _blend(ground, np.array([2]), given, INKS)
    overlapping = ground.view(np.float32)[:1, 0]
    with pytest.raises(errors.InvalidArgument, match="do not overlap"):
        _blend(ground, np.array([2]), (overlapping, cover), INKS)
    with pytest.raises(errors.InvalidArgument, match="do not overlap"):
        _blend(ground, np.arange(6)[::2], (np.ones(3, np.float32), np.ones(3, np.float32)), INKS)
    with pytest.raises(errors.InvalidArgument, match="expected pixels of 64 bits"):
        _blend(ground, np.array([2], np.int32), covers, INKS)
    values = np.zeros((2, 3), np.float32)
    for wrong, cause in (
        (values[:, ::2], "arrays without gaps"),
        (values[:1], "not as many as values"),
        (values.astype(np.float64), "not as many as values"),
    ):
        with pytest.raises(errors.InvalidArgument, match=cause):
            _isolines(ground, wrong, 3, [(0.0, 1, INKS)], stroke)
    with pytest.raises(errors.InvalidArgument, match="do not overlap"):
        _isolines(ground, ground.view(np.float32)[:, 0], 3, [(0.0, 1, INKS)], stroke)
    assert not ground.any()
    none = np.zeros(0, np.int64)
    _blend(ground, none, (np.zeros(0, np.float32), np.zeros(0, np.float32)), INKS)


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
