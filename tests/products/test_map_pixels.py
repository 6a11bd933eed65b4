"""Values and colors of the pixels of maps: each is that of NumPy, in the last bit."""

from __future__ import annotations

from typing import Any

import map_reference
import numpy as np
import pytest
from outputs_fields import field

from junctura import errors
from junctura._native import _dim, _sample, _shade
from junctura.products._map.projection import View
from junctura.products._map.sampling import Samples, samples
from junctura.products._map.styling import colours
from junctura.products._map.styling.scale import scale

GRIDS = ("2/2", "2/2@72/-24/36/44", "2/2@10/350/-10/368", "F24", "N32", "O24")
VIEWS = (
    View("cylindrical", 301, (0, 0)),
    View("robinson", 257, (0, 20)),
    View("globe", 200, (35, 10)),
    View("cylindrical", 111, (50, 10), (20.0, 31.0)),
)
RANGE: dict[str, Any] = {"given": (-1.5, 2.5)}
BARS: tuple[dict[str, Any], ...] = (
    RANGE,
    {"given": (-1.0, 2.0), "middle": 0.0},
    {"given": (1.0, 2.0), "middle": 0.0},
    {"given": (0.01, 3.0), "is_log": True},
    {"levels": (-1.0, -0.1, 0.0, 0.5, 2.0)},
    {"levels": (0.0, 1.0)},
    {},
)
PALETTE = np.arange(colours.SIZE + 2, dtype=np.uint32) * 7 + 1


def values_of(shape: tuple[int, ...], missing: float, seed: int) -> Any:
    random = np.random.default_rng(seed)
    values = random.normal(size=shape)
    values[random.random(shape) < missing] = np.nan
    values.flat[: 3 * (seed % 2)] = [np.inf, -np.inf, 0.0][: 3 * (seed % 2)]
    return values


@pytest.mark.parametrize("missing", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("on", GRIDS)
def test_sampled_values_are_those_of_numpy(on: str, view: View, missing: float) -> None:
    grid = field(on).grid
    made_of = samples(grid, view)
    assert isinstance(made_of, Samples)
    for seed in range(2):
        values = values_of(grid.shape, missing, seed)
        with np.errstate(invalid="ignore"):
            expected = map_reference.sampled(made_of, values)
        assert np.array_equal(made_of.of(values).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("missing", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("given", BARS, ids=str)
def test_colors_are_those_of_numpy_and_missing_values_are_hatched(given: dict[str, Any], missing: float) -> None:
    values = values_of((40, 53), missing, 1).astype(np.float32)
    values.flat[3:9] = [-1.0, 0.0, 2.0, np.nextafter(np.float32(2), np.float32(9)), 0.5, 1e30]
    bar = scale(values.astype(np.float64), "K", **given)
    made = np.empty(values.size, np.uint32)
    _shade(made, 53, (bar.evenly(values.ravel()), None), bar.shading(colours.SIZE), PALETTE, (8, 3))
    x, y = np.arange(53), np.arange(40)[:, None]
    hatched = np.where((x + y) % 8 < 3, colours.SIZE + 1, colours.SIZE)
    found = map_reference.entries(bar, values, colours.SIZE)
    assert np.array_equal(made.reshape(values.shape), PALETTE[np.where(found < 0, hatched, found)])


def test_only_the_pixels_of_values_are_painted() -> None:
    values, bar = np.array([0.0, np.nan], np.float32), scale(np.array([0.0, 1.0]), "K", **RANGE)
    made = np.full(12, 9, np.uint32)
    _shade(made, 4, (values, np.array([10, 5])), bar.shading(colours.SIZE), PALETTE, (8, 3))
    (entry,) = map_reference.entries(bar, values[:1], colours.SIZE)
    expected = np.full(12, 9, np.uint32)
    # Pixel 5 is in the second row and the second column: on a line of the hatch.
    expected[[10, 5]] = PALETTE[[entry, colours.SIZE + 1]]
    assert np.array_equal(made, expected)


def test_light_is_that_of_numpy() -> None:
    random = np.random.default_rng(3)
    pixels = random.integers(0, 256, (500, 4)).astype(np.uint8)
    light = random.integers(0, 257, 500).astype(np.uint16)
    expected = pixels.copy()
    expected[:, :3] = (pixels[:, :3] * light[:, None]) >> 8
    _dim(pixels, light)
    assert np.array_equal(pixels, expected)


def test_parts_that_do_not_fit_are_refused() -> None:
    one, place = np.zeros(1, np.float32), np.zeros(1, np.uint32)
    with pytest.raises(errors.InvalidArgument, match="expected places within the field"):
        _sample(one.copy(), np.zeros(1), (place, place, place, place + 1), (one, one, one))
    with pytest.raises(errors.InvalidArgument, match="expected places of 32 bits"):
        _sample(one.copy(), one, (place, place, place, place), (one, one, one))
    made, bar = np.zeros(2, np.uint32), (0.0, 1.0, 0.0, 1.0)
    for pixels, palette, hatch in (
        (np.array([2]), PALETTE, (8, 3)),
        (None, PALETTE[:2], (8, 3)),
        (None, PALETTE, (0, 0)),
    ):
        with pytest.raises(errors.InvalidArgument, match="expected a value for each"):
            _shade(made, 2, (one, pixels), bar, palette, hatch)
    with pytest.raises(errors.InvalidArgument, match="expected places of 32 bits"):
        _shade(made, 2, (one, None), bar, PALETTE[:1], (8, 3))
    with pytest.raises(errors.InvalidArgument, match="not as many as numbers"):
        _dim(np.zeros((2, 4), np.uint8), np.zeros(1, np.uint16))
