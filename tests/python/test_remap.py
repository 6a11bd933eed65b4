"""Fields on other grids: by hand, against cdo's files, and against matrices that were made cell by cell."""

from __future__ import annotations

import importlib.util
import itertools
import os
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import junctura
from junctura.remap import LonLat, Mesh, Weights

Array = npt.NDArray[Any]
VECTORS = Path(__file__).resolve().parents[3] / "shared/vectors"
needs_vectors = pytest.mark.skipif(not (VECTORS / "w_con.nc").exists(), reason="there are no shared vectors")
NAN = np.nan
SOURCE, TARGET = LonLat.regular(36, 18), LonLat.regular(24, 12)


def smooth(grid: LonLat | Mesh) -> Array:
    lon, lat = (np.radians(angles) for angles in grid.points())
    return np.asarray(2 + np.cos(lat) ** 2 * np.cos(2 * lon)).reshape(grid.shape)


def dense(weights: Weights) -> Array:
    matrix = np.zeros((np.prod(weights.target_shape), np.prod(weights.source_shape)))
    targets, sources, parts = weights.links
    np.add.at(matrix, (targets, sources), parts)
    return matrix


def overlaps(source: LonLat, target: LonLat) -> Array:
    """Conservative weights, pair by pair: which part of each target cell lies in each source cell."""

    def along(one: Array, other: Array) -> Array:
        low, high = np.minimum(one[1:], one[:-1]), np.maximum(one[1:], one[:-1])
        least, most = np.minimum(other[1:], other[:-1]), np.maximum(other[1:], other[:-1])
        return np.asarray(np.maximum(0, np.minimum.outer(high, most) - np.maximum.outer(low, least)))

    x = sum(along(target.lon_bounds, source.lon_bounds + turn) for turn in range(-720, 721, 360))
    y = along(np.sin(np.radians(target.lat_bounds)), np.sin(np.radians(source.lat_bounds)))
    return np.asarray(np.kron(y, np.radians(x)) / target.areas.reshape(-1, 1))


def lines(source: LonLat, target: LonLat) -> Array:
    """Bilinear weights, as two matrices of one dimension; beyond the last row as there."""

    def along(centres: Array, values: Array) -> Array:
        return np.array([np.interp(values, centres, row) for row in np.eye(len(centres))]).T

    order = np.argsort(source.lat)
    y = np.empty((len(target.lat), len(source.lat)))
    y[:, order] = along(source.lat[order], target.lat)
    wide = along(np.append(source.lon, source.lon[0] + 360), (target.lon - source.lon[0]) % 360 + source.lon[0])
    x = wide[:, :-1].copy()
    x[:, 0] += wide[:, -1]
    return np.kron(y, x)


def quads(grid: LonLat) -> Mesh:
    """The same cells with corners."""
    west, east = grid.lon_bounds[:-1], grid.lon_bounds[1:]
    south, north = grid.lat_bounds[:-1], grid.lat_bounds[1:]
    lon = np.broadcast_to(np.stack([west, east, east, west], axis=-1), (*grid.shape, 4))
    lat = np.broadcast_to(np.stack([south, south, north, north], axis=-1)[:, None, :], (*grid.shape, 4))
    east_of, north_of = (part.reshape(grid.shape) for part in grid.points())
    return Mesh(east_of, north_of, lon, lat)


def computed(source: Any, target: Any, method: Any, **options: Any) -> Weights:
    if method != "bilinear":
        pytest.importorskip("netCDF4")
        if importlib.util.find_spec("yac") is None:
            pytest.skip("there is no YAC")
    return Weights.compute(source, target, method, **options)


@pytest.fixture(scope="module")
def conservative() -> Weights:
    return computed(SOURCE, TARGET, "conservative")


# Fields.


def test_a_field_keeps_its_first_dimensions_and_its_type() -> None:
    means = Weights([0, 0, 1, 1], [0, 1, 2, 3], [0.5] * 4, (2, 2), (2,))
    field = np.arange(24.0).reshape(3, 2, 2, 2)
    expected = field.mean(axis=-1)
    np.testing.assert_array_equal(means(field), expected)
    np.testing.assert_array_equal(means(field.reshape(3, 2, 4)), expected)
    assert means(field[0, 0]).shape == (2,)
    for given, kind in (("f4", "f4"), ("f8", "f8"), (">f8", "f8"), ("i2", "f8"), ("f2", "f8")):
        found = means(field.astype(given))
        assert found.dtype == kind and (found == expected).all() and found.flags.writeable
    np.testing.assert_array_equal(means(field.T.copy().T), expected)
    assert means(np.empty((0, 2, 2))).shape == (0, 2)


def test_what_is_missing_is_no_number() -> None:
    means = Weights([0, 0, 1, 1], [0, 1, 2, 3], [0.25, 0.75, 0.5, 0.5], (4,), (3,))
    field = np.array([1.0, NAN, 3.0, 5.0])
    np.testing.assert_array_equal(means(field), [NAN, 4.0, NAN])
    np.testing.assert_array_equal(means(field, norm="destarea"), [0.25, 4.0, NAN])
    np.testing.assert_array_equal(means(field, norm="fracarea"), [1.0, 4.0, NAN])
    masked = np.ma.MaskedArray([1, 9999, 3, 5], [False, True, False, False])
    np.testing.assert_array_equal(means(masked, norm="fracarea"), [1.0, 4.0, NAN])
    np.testing.assert_array_equal(means([1.0, -9.0, 3.0, NAN], norm="fracarea", missing=-9.0), [1.0, 3.0, -9.0])


def test_bits_are_the_same_for_any_number_of_threads(conservative: Weights) -> None:
    fields = np.random.default_rng(7).normal(size=(5, *SOURCE.shape))
    fields[2, 3:5, 7:9] = NAN
    for norm in ("whole", "destarea", "fracarea"):
        one = conservative(fields, norm=norm, threads=1)
        for threads in (2, 3, 7, 1000):
            other = conservative(fields, norm=norm, threads=threads)
            assert other.tobytes() == one.tobytes()


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_bits_are_the_same_for_any_split(conservative: Weights, ranks: int) -> None:
    field = np.random.default_rng(8).normal(size=SOURCE.shape)
    whole = conservative(field)
    cuts = np.linspace(0, whole.size, ranks + 1).astype(int)
    parts = []
    for start, stop in itertools.pairwise(cuts):
        part, stretches = conservative.part(int(start), int(stop))
        needed = np.concatenate([field.ravel()[begin:end] for begin, end in stretches])
        assert part.source_shape == needed.shape and part.target_shape == (stop - start,)
        assert ranks < 7 or needed.size < field.size / 3
        parts.append(part(needed))
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.mark.parametrize("method", ["conservative", "bilinear"])
def test_ranks_take_no_more_than_they_need(pool: junctura.Pool, method: Any) -> None:
    weights = computed(SOURCE, TARGET, method)
    field = np.random.default_rng(9).normal(size=SOURCE.shape)
    given = junctura.Layout(shape=field.shape, grid=(3, 2))
    for rank in range(given.ranks):
        row, column = divmod(rank, 2)
        pool.offer_piece(field[row * 6 :, column * 18 :][:6, :18].copy(), given, rank, name="t")
    cuts = [0, 96, 100, 100, 288]
    taken = weights.layout(cuts)
    parts = []
    for rank, (start, stop) in enumerate(itertools.pairwise(cuts)):
        mine = pool.demand_array("name=t", taken, rank).ravel()
        assert mine.size == taken.room(rank) < field.size
        parts.append(weights.part(start, stop)[0](mine) if start < stop else np.empty(0))
    assert np.concatenate(parts).tobytes() == weights(field).tobytes()


def test_boxes_are_stretches_in_order() -> None:
    shape = (3, 4, 5)
    points = np.arange(60).reshape(shape)
    for start, stop in [(0, 60), (0, 1), (7, 9), (18, 43), (20, 40), (3, 57), (59, 60), (4, 25)]:
        weights = Weights([0] * (stop - start), range(start, stop), [1.0] * (stop - start), shape, (1,))
        boxes = str(weights.layout([0, 1])).partition("slabs=")[2].partition(" ")[0].split(",")
        found = [points[tuple(slice(*map(int, part.split(":"))) for part in box.split("x"))].ravel() for box in boxes]
        assert np.concatenate(found).tolist() == list(range(start, stop))
    for cuts in ([], [0], [1, 2], [0, 2], [0, 2, 1]):
        with pytest.raises(junctura.InvalidArgument, match=r"from 0 to 1|0\.\.2 of 1"):
            weights.layout(cuts)


def test_links_are_what_was_given() -> None:
    weights = Weights([1, 0, 1], [0, 1, 0], [0.25, 1.0, 0.5], (2,), (2,))
    assert [part.tolist() for part in weights.links] == [[0, 1], [1, 0], [1.0, 0.75]]
    assert len(weights) == 2 and repr(weights) == "Weights((2,) -> (2,), 2 links)"
    assert weights == Weights(*weights.links, (2,), (2,)) and weights != Weights([], [], [], (2,), (2,))


@pytest.mark.parametrize(
    ("links", "shapes", "words"),
    [
        (([0], [4], [1.0]), ((4,), (1,)), "link 0 is of source point 4"),
        (([0], [-1], [1.0]), ((4,), (1,)), "link 0 is of source point"),
        (([1], [0], [1.0]), ((4,), (1,)), "link 0 is of target point 1"),
        (([0], [0], [NAN]), ((4,), (1,)), "weight NaN"),
        (([0, 0], [0], [1.0]), ((4,), (1,)), "2 targets, 1 sources and 1 weights"),
        (([0.5], [0], [1.0]), ((4,), (1,)), "targets are no list of numbers"),
        (([0], [0], [1.0]), ((), (1,)), "the source has the shape"),
        (([], [], []), ((4,), (0,)), "the target has the shape"),
    ],
)
def test_wrong_links_are_named(links: Any, shapes: Any, words: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=words):
        Weights(*links, *shapes)


def test_wrong_fields_are_named() -> None:
    weights = Weights([0], [0], [1.0], (2, 2), (1,))
    for field, words in (
        (np.zeros((2, 3)), r"the shape \(2, 3\)"),
        (np.zeros((2, 2), complex), "complex"),
        (np.float64(1), "the shape"),
    ):
        with pytest.raises(junctura.InvalidArgument, match=words):
            weights(field)
    with pytest.raises(junctura.InvalidArgument, match="is not one of whole"):
        weights(np.zeros(4), norm="all")  # type: ignore[arg-type]
    with pytest.raises(junctura.InvalidArgument, match="0 threads"):
        weights(np.zeros(4), threads=0)
    with pytest.raises(junctura.InvalidArgument, match="areas of the source"):
        weights.conservation(np.zeros(4))
    with pytest.raises(junctura.InvalidArgument, match=r"0\.\.2 of 1"):
        weights.part(0, 2)


# Grids.


def test_bounds_are_half_way_and_end_at_poles() -> None:
    grid = LonLat([0, 10, 30], [80, 60, 40])
    assert grid.lon_bounds.tolist() == [-5, 5, 20, 40] and grid.lat_bounds.tolist() == [90, 70, 50, 30]
    assert not grid.is_cyclic and LonLat(np.arange(0, 360, 30), [-45, 45]).is_cyclic
    assert np.isclose(quads(LonLat.regular(90, 45)).areas.sum(), 4 * np.pi, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LonLat([10, 0], [0, 1]), "columns do not go east"),
        (lambda: LonLat([0, 10], [0, 2, 1]), "lat: they do not go one way"),
        (lambda: LonLat([0, NAN], [0, 1]), "lon: not all are numbers"),
        (lambda: LonLat([0, 10], [[0, 1]]), "lat: centres of columns or rows"),
        (lambda: LonLat([0], [0, 1]), "lon_bounds: they have to be said"),
        (lambda: LonLat([0, 10], [0, 1], lat_bounds=[0, 1]), "lat_bounds: 3 are expected"),
        (lambda: LonLat([0, 10], [0, 1], lat_bounds=[0.2, 0.5, 1]), "centre 0, 0.0, is not between"),
        (lambda: LonLat([0, 10], [80, 100]), "beyond a pole"),
        (lambda: LonLat([0, 10], [0, 1], mask=[True]), "the mask has the shape"),
        (lambda: LonLat([0, 10], [0, 1], mask=[[1, None], [1, 1]]), "the mask has elements of type object"),  # type: ignore[arg-type]
        (lambda: LonLat([0, 10], [0, 1], mask=[["0", "1"], ["1", "1"]]), "the mask has elements of type <U1"),
        (lambda: LonLat.regular(0, 2), "0 columns"),
        (lambda: Mesh([0], [0], [[0, 1]], [[0, 1]]), "three corners"),
        (lambda: Mesh([0], [0], [[0, 1, 2]], [[0, 1, 2, 3]]), "do not have the same shape"),
        (lambda: Weights.compute(SOURCE, TARGET, "cubic"), "'cubic' is not one of"),  # type: ignore[arg-type]
        (lambda: Weights.compute(quads(SOURCE), TARGET, "bilinear"), "needs a LonLat grid"),
        (lambda: computed(SOURCE, LonLat([0, 180], [-45, 45]), "nearest"), "a column is 180 degrees wide"),
    ],
)
def test_wrong_grids_are_named(make: Any, words: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=words):
        make()


def test_the_grid_of_an_array_of_xarrays() -> None:
    xarray = pytest.importorskip("xarray")
    coords = {"latitude": [60.0, 40.0, 20.0], "longitude": [0.0, 10.0]}
    array = xarray.DataArray(np.arange(6.0).reshape(3, 2), coords, ("latitude", "longitude"))
    grid = LonLat.of(array)
    assert grid.shape == array.shape and grid.lat.tolist() == coords["latitude"]
    found = computed(grid, LonLat([5, 6], [30, 50]), "bilinear")(array)
    np.testing.assert_allclose(found, [[3.5, 3.6], [1.5, 1.6]], rtol=1e-15)
    with pytest.raises(junctura.InvalidArgument, match="no coordinate longitude"):
        LonLat.of(array.drop_vars("longitude"))
    with pytest.raises(junctura.InvalidArgument, match="last dimensions are"):
        LonLat.of(array.T)


# Weights that are computed.


def test_conservative_weights_are_shares_of_area(conservative: Weights) -> None:
    expected = overlaps(SOURCE, TARGET)
    np.testing.assert_allclose(dense(conservative), expected, rtol=0, atol=1e-13)
    field = smooth(SOURCE)
    assert abs(conservative(field) - smooth(TARGET)).max() < 0.05
    kept = conservative.conservation(field)
    assert kept.relative_error < 1e-12
    np.testing.assert_allclose(kept.source, (SOURCE.areas * field).sum(), rtol=1e-13)
    np.testing.assert_allclose(kept.target, (TARGET.areas * conservative(field)).sum(), rtol=1e-12)


def uneven(random: np.random.Generator) -> LonLat:
    """A globe or a region of columns and rows of any width, from somewhere, north or south first, some cells masked."""
    nx, ny = random.integers(9, 25, 2)
    widths, heights = random.uniform(0.2, 1, nx), random.uniform(0.2, 1, ny)
    is_globe = random.random() < 0.5
    around, tall = (360.0, 180.0) if is_globe else (random.uniform(30, 300), random.uniform(20, 80))
    lon = random.uniform(-200, 200) + around * np.concatenate([[0], np.cumsum(widths) / widths.sum()])
    lat = (-90 if is_globe else random.uniform(-90, 5)) + tall * np.concatenate(
        [[0], np.cumsum(heights)]
    ) / heights.sum()
    lat = np.clip(lat, -90, 90)[:: random.choice([-1, 1])]
    if is_globe:
        lon[-1] = lon[0] + 360
    mask = random.random((ny, nx)) > 0.3 if random.random() < 0.5 else None
    centres = ((edges[1:] + edges[:-1]) / 2 for edges in (lon, lat))
    return LonLat(*centres, lon_bounds=lon, lat_bounds=lat, mask=mask)


@pytest.mark.parametrize("seed", range(8))
def test_grids_of_any_kind(seed: int) -> None:
    random = np.random.default_rng(seed)
    source, target = uneven(random), uneven(random)
    weights = computed(source, target, "conservative", norm="destarea")
    expected = overlaps(source, target)
    if source.mask is not None:
        expected = expected * source.mask.ravel()
    if target.mask is not None:
        expected = expected * target.mask.reshape(-1, 1)
    np.testing.assert_allclose(dense(weights), expected, rtol=0, atol=1e-9)
    assert weights.conservation(random.normal(size=source.shape)).relative_error < 1e-12


@pytest.mark.parametrize("norm", ["destarea", "fracarea"])
def test_what_is_covered_in_part_is_so_by_the_norm(norm: Any) -> None:
    land = np.zeros(SOURCE.shape, bool)
    land[4:9, 10:20] = True
    region = LonLat(np.arange(0, 100, 7.0), np.arange(-40, 41, 8.0))
    sea = LonLat.regular(36, 18, mask=~land)
    for target in (TARGET, region):
        weights = computed(sea, target, "conservative", norm=norm)
        expected = overlaps(SOURCE, target) * ~land.ravel()
        covered = expected.sum(axis=1)
        if norm == "fracarea":
            expected = np.divide(expected, covered[:, None], out=np.zeros_like(expected), where=covered[:, None] > 0)
        np.testing.assert_allclose(dense(weights), expected, rtol=0, atol=1e-12)
        field = smooth(SOURCE) + np.where(land, 1e20, 0)
        found = weights(field)
        np.testing.assert_array_equal(np.isnan(found).ravel(), covered == 0)
        assert weights.conservation(field).relative_error < 1e-12


def test_rows_may_go_south(conservative: Weights) -> None:
    turned = LonLat(SOURCE.lon, SOURCE.lat[::-1], lon_bounds=SOURCE.lon_bounds, lat_bounds=SOURCE.lat_bounds[::-1])
    for method in ("conservative", "nearest", "bilinear"):
        upright = computed(SOURCE, TARGET, method)(smooth(SOURCE))
        np.testing.assert_allclose(computed(turned, TARGET, method)(smooth(turned)), upright, rtol=0, atol=1e-12)
    back = computed(TARGET, turned, "conservative")
    assert back.conservation(conservative(smooth(SOURCE))).relative_error < 1e-12


def test_bilinear_weights_are_two_lines() -> None:
    weights = computed(SOURCE, TARGET, "bilinear")
    np.testing.assert_allclose(dense(weights), lines(SOURCE, TARGET), rtol=0, atol=1e-14)
    assert abs(weights(smooth(SOURCE)) - smooth(TARGET)).max() < 0.05
    region = LonLat(np.arange(300, 400, 10.0), np.arange(40, -41, -8.0))
    lon, lat = np.meshgrid([-55.0, 10.0, 36.0, 355.0, 30.0, 180.0], [-41.0, 3.0, 44.0, 44.5])
    points = Mesh(lon, lat, lon[..., None] + [0, 1, 1], lat[..., None] + [0, 0, 1])
    plane = np.add.outer(2 * region.lat, region.lon)
    found = computed(region, points, "bilinear")(plane)
    turned = (lon - 350 + 180) % 360 - 180 + 350
    expected = 2 * np.clip(lat, -40, 40) + np.clip(turned, 300, 390)
    expected[(abs(lat) > 44) | (turned < 295) | (turned > 395)] = NAN
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_bilinear_at_a_masked_source_takes_the_others() -> None:
    mask = np.ones((2, 4), bool)
    mask[0, 0] = False
    source = LonLat([0, 90, 180, 270], [-45, 45], mask=mask)
    weights = computed(source, LonLat([45, 135], [0, 10], lat_bounds=[-5, 5, 15]), "bilinear")
    field = np.array([[1e20, 2.0, 4.0, 6.0], [1.0, 3.0, 5.0, 7.0]])
    np.testing.assert_allclose(weights(field)[0], [(2 + 1 + 3) / 3, (2 + 4 + 3 + 5) / 4], rtol=1e-15)


def test_nearest_is_nearest() -> None:
    mask = np.random.default_rng(3).random(SOURCE.shape) > 0.2
    for grid in (SOURCE, LonLat.regular(36, 18, mask=mask), quads(SOURCE)):
        weights = computed(grid, TARGET, "nearest")
        targets, sources, parts = weights.links
        assert targets.tolist() == list(range(288)) and (parts == 1).all()
        (slon, slat), (tlon, tlat) = ([np.radians(angles) for angles in one.points()] for one in (grid, TARGET))
        cosine = np.sin(tlat)[:, None] * np.sin(slat) + np.cos(tlat)[:, None] * np.cos(slat) * np.cos(
            tlon[:, None] - slon
        )
        if grid.mask is not None:
            assert grid.mask.ravel()[sources].all()
            cosine[:, ~grid.mask.ravel()] = -2
        np.testing.assert_allclose(cosine[targets, sources], cosine.max(axis=1), rtol=0, atol=1e-12)


def test_meshes_conserve() -> None:
    mesh = quads(LonLat.regular(20, 10))
    field = np.random.default_rng(4).normal(size=SOURCE.shape)
    there = computed(SOURCE, mesh, "conservative")
    assert there.target_shape == (10, 20) and there.conservation(field).relative_error < 1e-12
    np.testing.assert_allclose(there(np.ones(SOURCE.shape)), 1, rtol=1e-12)
    back = computed(mesh, SOURCE, "conservative")
    assert back.conservation(there(field)).relative_error < 1e-12


def test_yac_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, conservative: Weights) -> None:
    assert len(conservative)
    (tmp_path / "yac.py").write_text("raise RuntimeError('no weights today')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(junctura.Unsupported, match="no weights today"):
        Weights.compute(SOURCE, TARGET, "nearest")


# Files.


@needs_vectors
@pytest.mark.parametrize(("name", "make"), [("con", overlaps), ("bil", lines)])
def test_files_of_cdo(name: str, make: Any) -> None:
    pytest.importorskip("netCDF4")
    weights = Weights.read(VECTORS / f"w_{name}.nc")
    assert (weights.source_shape, weights.target_shape) == ((18, 36), (12, 24))
    np.testing.assert_allclose(dense(weights), make(SOURCE, TARGET), rtol=0, atol=1e-13)
    field = smooth(SOURCE)
    found = weights(field)
    np.testing.assert_allclose(found, (make(SOURCE, TARGET) @ field.ravel()).reshape(12, 24), rtol=1e-13)
    if name == "con":
        assert weights.conservation(field).relative_error < 1e-12
    for threads in (2, 3, 7):
        assert weights(field, threads=threads).tobytes() == weights(field, threads=1).tobytes()


@needs_vectors
def test_ours_are_those_of_cdo(conservative: Weights) -> None:
    for name, ours in (("con", conservative), ("bil", computed(SOURCE, TARGET, "bilinear"))):
        np.testing.assert_allclose(dense(ours), dense(Weights.read(VECTORS / f"w_{name}.nc")), rtol=0, atol=1e-13)


@pytest.fixture(scope="module")
def judge() -> ModuleType:
    """`remap_oracle.py`, which has weights of its own."""
    path = VECTORS / "remap_oracle.py"
    if not path.exists():
        pytest.skip("the judge is not here")
    for needed in ("netCDF4", "scipy"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location("remap_oracle", path)
    assert spec is not None and spec.loader is not None
    oracle = importlib.util.module_from_spec(spec)
    sys.modules["remap_oracle"] = oracle
    spec.loader.exec_module(oracle)
    return oracle


@pytest.mark.parametrize(
    ("method", "name", "file"),
    [("conservative", "conservative", "con"), ("bilinear", "bilinear", "bil"), ("nearest", "nearest", None)],
)
def test_an_independent_judge_has_the_same_weights(judge: ModuleType, method: Any, name: str, file: Any) -> None:
    source, target = judge.grid(36, 18), judge.grid(24, 12)
    matrix = getattr(judge, name)(source, target)
    ours = computed(SOURCE, TARGET, method)
    field = judge.smooth(source)
    np.testing.assert_array_equal(field.reshape(SOURCE.shape), smooth(SOURCE))
    if name == "nearest":
        # Every other column lies half way between two of the source's, and either may be meant.
        _, sources, parts = ours.links
        assert (parts == 1).all() and (matrix.data == 1).all()
        (slon, slat), (tlon, tlat) = ([np.radians(angles) for angles in one.points()] for one in (SOURCE, TARGET))
        ours_at, theirs_at = (
            np.sin(tlat) * np.sin(slat[found]) + np.cos(tlat) * np.cos(slat[found]) * np.cos(tlon - slon[found])
            for found in (sources, matrix.indices)
        )
        np.testing.assert_allclose(ours_at, theirs_at, rtol=0, atol=1e-12)
        assert (sources == matrix.indices).mean() >= 0.5
        return
    np.testing.assert_allclose(dense(ours), matrix.toarray(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours(field).ravel(), matrix @ field, rtol=1e-12)
    theirs, _ = judge.scrip(VECTORS / f"w_{file}.nc")
    read = Weights.read(VECTORS / f"w_{file}.nc")
    np.testing.assert_array_equal(dense(read), theirs.toarray())
    if name == "conservative":
        kept = ours.conservation(field)
        np.testing.assert_allclose(kept.source, judge.area(source) @ field, rtol=1e-12)
        np.testing.assert_allclose(kept.target, judge.area(target) @ (matrix @ field), rtol=1e-12)


def test_what_is_written_is_read(tmp_path: Path, conservative: Weights) -> None:
    land = np.random.default_rng(5).random(SOURCE.shape) > 0.5
    for weights in (
        conservative,
        computed(LonLat.regular(36, 18, mask=land), TARGET, "conservative", norm="destarea"),
        computed(SOURCE, TARGET, "bilinear"),
        Weights([0], [1], [0.5], (2,), (3,)),
    ):
        weights.write(tmp_path / "weights.nc")
        assert Weights.read(tmp_path / "weights.nc") == weights
        assert pickle.loads(pickle.dumps(weights)) == weights


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_files_of_esmf(tmp_path: Path, form: Any) -> None:
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "esmf.nc"
    with netcdf.Dataset(path, "w", format=form) as data:
        data.normalization, data.map_method = "fracarea", "Conservative remapping"
        for name, extent in (("n_a", 4), ("n_b", 2), ("n_s", 4), ("src_grid_rank", 2), ("dst_grid_rank", 1)):
            data.createDimension(name, extent)
        for name, size, values in (
            ("src_grid_dims", "src_grid_rank", [4, 1]),
            ("dst_grid_dims", "dst_grid_rank", [2]),
            ("row", "n_s", [1, 1, 2, 2]),
            ("col", "n_s", [1, 2, 3, 4]),
            ("S", "n_s", [0.5, 0.5, 0.25, 0.75]),
            ("mask_a", "n_a", [1, 1, 0, 1]),
            ("mask_b", "n_b", [1, 1]),
            ("area_a", "n_a", [1.0] * 4),
            ("area_b", "n_b", [2.0, 3.0]),
            ("frac_a", "n_a", [1.0, 1.0, 0.0, 1.0]),
            ("frac_b", "n_b", [1.0, 0.25]),
        ):
            data.createVariable(name, "f8" if isinstance(values[0], float) else "i4", (size,))[:] = values
    weights = Weights.read(path)
    assert (weights.source_shape, weights.target_shape, weights.method) == ((1, 4), (2,), "Conservative remapping")
    np.testing.assert_array_equal(weights([[1.0, 3.0, 100.0, 4.0]], norm="fracarea"), [2.0, 4.0])
    kept = weights.conservation([[1.0, 3.0, 100.0, 4.0]])
    assert kept.source == 8 and kept.target == 4 + 0.25 * 3 * 0.75 * 4


def test_files_that_are_none(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "other.nc"
    with pytest.raises(junctura.NotFound, match="no such file"):
        Weights.read(path)
    path.write_bytes(b"no netCDF")
    with pytest.raises(junctura.Io):
        Weights.read(path)

    def write(**variables: Array) -> None:
        with netcdf.Dataset(path, "w") as data:
            for name, values in variables.items():
                dims = tuple(f"{name}_{at}" for at in range(values.ndim))
                for dim, extent in zip(dims, values.shape, strict=True):
                    data.createDimension(dim, extent)
                data.createVariable(name, values.dtype, dims)[:] = values

    write(t=np.zeros(3))
    with pytest.raises(junctura.Corrupt, match="no file of weights"):
        Weights.read(path)
    one = np.ones(1, np.int32)
    write(src_address=one, dst_address=one, remap_matrix=np.ones((1, 4)))
    with pytest.raises(junctura.Unsupported, match="4 weights for each link"):
        Weights.read(path)
    write(src_address=one, dst_address=one, remap_matrix=np.ones((2, 1)))
    with pytest.raises(junctura.Corrupt, match="2 weights"):
        Weights.read(path)
    write(src_address=one, dst_address=one, remap_matrix=np.ones((1, 1)))
    with pytest.raises(junctura.InvalidArgument, match="give source_shape"):
        Weights.read(path)
    assert Weights.read(path, source_shape=(1,), target_shape=(2, 1)).target_shape == (2, 1)
    with pytest.raises(junctura.Io):
        Weights([0], [0], [1.0], (1,), (1,)).write(tmp_path / "no/such/folder.nc")
