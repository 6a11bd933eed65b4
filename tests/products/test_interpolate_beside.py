"""Interpolation beside what shares nothing with MIR, which makes its weights: SciPy, areas of boxes, a known function.

```text
  bilinear       scipy.interpolate.RegularGridInterpolator
  linear         scipy.spatial.ConvexHull of points in space, whose sides are Delaunay's triangles
  nearest        scipy.spatial.cKDTree, of points in space
  conservative   overlaps of boxes between circles of latitude, as areas on the sphere
  all            a function that is known everywhere: the error falls with the square of the distance of points
```
Who interpolates between points may choose between which: MIR's sides of quadrilaterals are straight lines in space
where SciPy's are rows and columns, and its triangles of reduced grids stand between two rows. Of a smooth function that
makes a difference which falls with the square of the distance, too; the limits say how much.
"""

from __future__ import annotations

import importlib.util

import numpy as np
import numpy.typing as npt
import pytest

from junctura.products._input.decoded_field import Field
from junctura.products._regrid.grids import Grid, grid, points
from junctura.products._regrid.interpolate import to_grid
from junctura.products._regrid.weight_matrices import Method

interpolate = pytest.importorskip("scipy.interpolate")
spatial = pytest.importorskip("scipy.spatial")
if importlib.util.find_spec("mir") is None:
    pytest.skip("MIR is not installed", allow_module_level=True)

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(11)
# Anywhere between the polar circles, and so on no meridian or row of a grid.
ANYWHERE = points(zip(np.degrees(np.arcsin(RNG.uniform(-0.9, 0.9, 400))), RNG.uniform(0, 360, 400), strict=True))


def on(name: str) -> Grid:
    named = grid(name)
    assert isinstance(named, Grid)
    return named


def in_space(where: Grid) -> Floats:
    north, east = map(np.radians, where.points())
    return np.column_stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])


def smooth(where: Grid) -> Floats:
    """A polynomial in space, of the fourth degree: smooth everywhere on the sphere, also at the poles."""
    x, y, z = in_space(where).T
    made: Floats = (x * y + z**3 - 0.7 * x * z + 2 * x * y * z**2).reshape(where.shape)
    return made


def known(name: str) -> Field:
    return Field(smooth(on(name)), on(name), {"param": "t"})


# So far apart are points, in degrees.
APART = {"6/6": 6.0, "3/3": 3.0, "1.5/1.5": 1.5, "F16": 90 / 16, "F32": 90 / 32, "N32": 90 / 32, "O16": 5.0, "O32": 2.5}
# Of the square of that; seen were 3.0e-4, 1.3e-4 and 1.8e-4.
ERROR_MAX, BILINEAR_MAX, LINEAR_MAX = 3.3e-4, 1.5e-4, 2.2e-4


@pytest.mark.parametrize("method", ["linear", "bilinear"])
@pytest.mark.parametrize("source", APART)
def test_the_error_falls_with_the_square_of_the_distance(source: str, method: Method) -> None:
    error = np.abs(to_grid(known(source), ANYWHERE, method).values - smooth(ANYWHERE)).max()
    assert error <= ERROR_MAX * APART[source] ** 2


@pytest.mark.parametrize("source", ["6/6", "3/3", "1.5/1.5"])
def test_bilinear_is_that_of_scipy(source: str) -> None:
    field = known(source)
    around = np.append(field.grid.longitudes, 360.0)
    values = np.concatenate([field.values, field.values[:, :1]], axis=1)[::-1]
    beside = interpolate.RegularGridInterpolator((field.grid.latitudes[::-1], around), values)
    expected = beside(np.column_stack(ANYWHERE.points()))
    apart = np.abs(to_grid(field, ANYWHERE, "bilinear").values - expected)
    assert apart.max() <= BILINEAR_MAX * APART[source] ** 2


@pytest.mark.parametrize("source", ["6/6", "F16", "N32", "O16"])
def test_linear_is_that_of_triangles_around(source: str) -> None:
    field = known(source)
    corners = spatial.ConvexHull(in_space(field.grid)).simplices
    # A place is a sum of three corners, up to its length: of those around it with no weight below zero.
    weights = in_space(ANYWHERE) @ np.linalg.inv(in_space(field.grid)[corners])
    around = weights.min(axis=2).argmax(axis=0)
    weights = weights[around, np.arange(ANYWHERE.size)]
    assert weights.min() > -1e-9
    expected = np.sum(weights * field.values.ravel()[corners[around]], axis=1) / weights.sum(axis=1)
    apart = np.abs(to_grid(field, ANYWHERE, "linear").values - expected)
    assert apart.max() <= LINEAR_MAX * APART[source] ** 2


@pytest.mark.parametrize("source", ["6/6", "3/3", "F16", "N32", "O16"])
@pytest.mark.parametrize("target", ["5/5", "O8", "anywhere"])
def test_no_point_is_nearer_than_the_nearest(source: str, target: str) -> None:
    where = ANYWHERE if target == "anywhere" else on(target)
    field = Field(np.arange(float(on(source).size)).reshape(on(source).shape), on(source), {"param": "t"})
    taken = to_grid(field, where, "nearest").values.ravel().astype(int)
    nearest, _ = spatial.cKDTree(in_space(field.grid)).query(in_space(where))
    chosen = np.linalg.norm(in_space(field.grid)[taken] - in_space(where), axis=1)
    # Where two are as near as each other, either is right.
    np.testing.assert_allclose(chosen, nearest, rtol=0, atol=1e-9)


def edges(where: Grid) -> tuple[Floats, Floats]:
    """Of boxes: sines of the latitudes and longitudes halfway between rows and columns; the poles are the ends."""
    between = (where.latitudes[1:] + where.latitudes[:-1]) / 2
    half = 180 / where.shape[1]
    return (
        np.sin(np.radians(np.concatenate([[90.0], between, [-90.0]]))),
        np.append(where.longitudes, 360.0) - half,
    )


def overlaps(of: Floats, others: Floats, turn: float = 0.0) -> Floats:
    """How much each interval has of each other one; `turn` leads once around."""
    found = np.zeros((len(of) - 1, len(others) - 1))
    for shift in {-turn, 0.0, turn}:
        (low, high), (low_there, high_there) = (np.sort([ends[:-1], ends[1:]], axis=0) for ends in (of, others + shift))
        found += np.maximum(0, np.minimum.outer(high, high_there) - np.maximum.outer(low, low_there))
    return found


@pytest.mark.parametrize(("source", "target"), [("2/2", "5/5"), ("6/6", "4/4"), ("3/3", "1.5/1.5"), ("4/4", "12/9")])
def test_conservative_means_are_those_of_boxes(source: str, target: str) -> None:
    values = RNG.normal(size=on(source).shape)
    (rows, columns), (rows_there, columns_there) = edges(on(target)), edges(on(source))
    high, wide = overlaps(rows, rows_there), overlaps(columns, columns_there, 360.0)
    expected = (high / high.sum(axis=1, keepdims=True)) @ values @ (wide / wide.sum(axis=1, keepdims=True)).T
    made = to_grid(Field(values, on(source), {"param": "t"}), on(target), "conservative").values
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-12)
