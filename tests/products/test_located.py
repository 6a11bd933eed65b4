"""Grids whose points are listed: weights against closed forms, brute force, pyproj and SciPy; nothing outside."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import eccodes
import grib_messages
import numpy as np
import pytest
from outputs_fields import written

from junctura.errors import Error, InvalidArgument, Unsupported
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._map.sampling import CellSamples, samples
from junctura.products._map.seen import view_of
from junctura.products._operations import Crop, ToGrid, Turn
from junctura.products._outputs import Output
from junctura.products._regrid import located_weights
from junctura.products._regrid.grids import Grid, directions, gaussian_latitudes, grid
from junctura.products._regrid.interpolate import to_grid
from junctura.products._workers.make_product import FieldTransforms

spatial = pytest.importorskip("scipy.spatial")
interpolate = pytest.importorskip("scipy.interpolate")
_EARTH_M = 6371229.0
_PLANE = {"shapeOfTheEarth": 6, "Nx": 60, "Ny": 50, "iScansNegatively": 0, "jScansPositively": 1}
# Across the prime meridian; around the north pole; across the date line.
_PROJECTED: dict[str, tuple[str, dict[str, Any]]] = {
    "lambert": (
        "+proj=lcc +lat_1=45 +lat_2=55 +lat_0=50 +lon_0=5",
        {"DxInMetres": 30e3, "DyInMetres": 30e3, "Latin1InDegrees": 45, "Latin2InDegrees": 55, "LaDInDegrees": 50}
        | {"LoVInDegrees": 5, "latitudeOfFirstGridPointInDegrees": 42, "longitudeOfFirstGridPointInDegrees": 354},
    ),
    "polar_stereographic": (
        "+proj=stere +lat_0=90 +lat_ts=60 +lon_0=10",
        {"DxInMetres": 60e3, "DyInMetres": 60e3, "LaDInDegrees": 60, "orientationOfTheGridInDegrees": 10}
        | {"latitudeOfFirstGridPointInDegrees": 70, "longitudeOfFirstGridPointInDegrees": 320},
    ),
    "mercator": (
        "+proj=merc +lat_ts=20 +lon_0=0",
        {"DiInMetres": 40e3, "DjInMetres": 40e3, "LaDInDegrees": 20, "latitudeOfFirstGridPointInDegrees": 5}
        | {"longitudeOfFirstGridPointInDegrees": 170, "latitudeOfLastGridPointInDegrees": 22.9}
        | {"longitudeOfLastGridPointInDegrees": 192.6},
    ),
}
_AROUND = ("rotated_gg", "healpix ring", "healpix nested", "reduced_rotated_gg", "rotated_ll globe")
_ALL = (*_PROJECTED, "rotated_ll", "reduced area", *_AROUND)


def _message(sample: str, size: int, **keys: Any) -> bytes:
    handle = eccodes.codes_grib_new_from_samples(sample)
    try:
        for key, value in keys.items():
            eccodes.codes_set(handle, key, value)
        eccodes.codes_set_values(handle, np.random.default_rng(4).normal(size=size))
        return bytes(eccodes.codes_get_message(handle))
    finally:
        eccodes.codes_release(handle)


@functools.cache
def _field(kind: str) -> Field:
    """A field of each kind, by a message that ecCodes wrote."""
    if kind in _PROJECTED:
        plane = {key: value for key, value in _PLANE.items() if kind != "mercator" or key not in ("Nx", "Ny")}
        plane |= {"Ni": 60, "Nj": 50} if kind == "mercator" else {}
        said = {"gridType": kind, "numberOfDataPoints": 3000, "numberOfValues": 3000, **plane, **_PROJECTED[kind][1]}
        return decode(_message("GRIB2", 3000, **said))
    if kind.startswith("healpix"):
        said = {"gridType": "healpix", "Nside": 8, "orderingConvention": kind.split()[1], "numberOfDataPoints": 768}
        said |= {"longitudeOfFirstGridPointInDegrees": 45, "numberOfValues": 768}
        return decode(_message("GRIB2", 768, **said))
    pole = {"latitudeOfSouthernPoleInDegrees": -35, "longitudeOfSouthernPoleInDegrees": 15}
    if kind.startswith("rotated_ll"):
        ends, shape = ((90, 0, -90, 354), (31, 60)) if kind.endswith("globe") else ((12, -15, -11, 15), (24, 31))
        names = ("latitudeOfFirst", "longitudeOfFirst", "latitudeOfLast", "longitudeOfLast")
        said = {f"{name}GridPointInDegrees": end for name, end in zip(names, ends, strict=True)}
        said |= {"Ni": shape[1], "Nj": shape[0], "angleOfRotationInDegrees": 0, **pole}
        between = (ends[3] - ends[1]) / (shape[1] - 1), (ends[0] - ends[2]) / (shape[0] - 1)
        said |= {f"{axis}DirectionIncrementInDegrees": by for axis, by in zip("ij", between, strict=True)}
        return decode(_message("rotated_ll_pl_grib2", shape[0] * shape[1], **said))
    if kind == "reduced area":
        return _reduced_area()
    size = {"rotated_gg": 8192, "reduced_rotated_gg": 6114}[kind]
    return decode(_message(f"{kind}_pl_grib2", size, **pole))


def _reduced_area() -> Field:
    """The points of N32 from 72 to 33 degrees north and 24 degrees west to 45 east."""
    whole = grid("N32")
    assert isinstance(whole, Grid)
    rows = [row for row in np.unique(whole.latitudes)[::-1] if 33 <= row <= 72]
    counts = []
    for row in rows:
        east = whole.longitudes[whole.latitudes == row]
        counts.append(int(((east <= 45) | (east >= 336)).sum()))
    handle = eccodes.codes_grib_new_from_samples("reduced_gg_pl_32_grib2")
    try:
        said = {
            "Nj": len(rows),
            "latitudeOfFirstGridPointInDegrees": rows[0],
            "longitudeOfFirstGridPointInDegrees": 336,
        }
        said |= {"latitudeOfLastGridPointInDegrees": rows[-1], "longitudeOfLastGridPointInDegrees": 45}
        for key, value in {**said, "numberOfDataPoints": sum(counts)}.items():
            eccodes.codes_set(handle, key, value)
        starts = [int((whole.latitudes == row).sum()) for row in rows]
        eccodes.codes_set_array(handle, "pl", starts)
        eccodes.codes_set_values(handle, np.random.default_rng(4).normal(size=sum(counts)))
        return decode(bytes(eccodes.codes_get_message(handle)))
    finally:
        eccodes.codes_release(handle)


def _on(name: str) -> Grid:
    named = grid(name)
    assert isinstance(named, Grid)
    return named


def _near(kind: str) -> Grid:
    """Places of which some lie within a grid, with both poles and the date line."""
    place = _field(kind).grid
    rng = np.random.default_rng(8)
    some = rng.integers(0, place.size, 150)
    north = np.clip(place.latitudes[some] + rng.normal(0, 1.5, 150), -90, 90)
    east = np.mod(place.longitudes[some] + rng.normal(0, 1.5, 150) + 180, 360) - 180
    places = [*zip(north, east, strict=True), (90, 0), (-90, 0), (90, 77), (10, 180), (10, -180), (49, 0), (49, 360)]
    return _on(f"points@{','.join(f'{lat:.5f}/{lon:.5f}' for lat, lon in places)}")


def _weights(kind: str, method: str) -> tuple[Grid, Grid, Any]:
    source, target = _field(kind).grid, _near(kind)
    return source, target, located_weights.weights(source, target, method)


@pytest.mark.parametrize("kind", _ALL)
def test_a_grid_is_named_by_its_section(kind: str) -> None:
    field = _field(kind)
    again = _on(field.grid.name)
    assert again == field.grid and again.kind == "listed" and len(again.name) < 400
    assert np.array_equal(again.points(), field.grid.points()) and field.values.shape == again.shape


def test_points_of_rotated_grids_are_those_of_the_turned_sphere() -> None:
    gaussian = np.repeat(gaussian_latitudes(32), 128)
    place = _field("rotated_gg").grid
    x, y = _rotated(place.latitudes, place.longitudes)
    assert np.allclose(y, gaussian, rtol=0, atol=1e-9)
    assert np.allclose(np.mod(x - np.tile(np.arange(128) * 360 / 128, 64) + 180, 360), 180, rtol=0, atol=1e-9)
    place = _field("reduced_rotated_gg").grid
    _, y = _rotated(place.latitudes, place.longitudes)
    assert np.allclose(y, _on("N32").latitudes, rtol=0, atol=1e-3)
    place = _field("rotated_ll globe").grid
    _, y = _rotated(place.latitudes, place.longitudes)
    assert np.allclose(y, np.repeat(np.linspace(90, -90, 31), 60), rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", _ALL)
def test_nearest_is_the_nearest_of_all(kind: str) -> None:
    source, target, matrix = _weights(kind, "nearest")
    products = directions(*target.points()) @ directions(*source.points()).T
    found = matrix.indices
    assert np.array_equal(np.unique(np.diff(matrix.indptr)), [1] if kind in _AROUND else [0, 1])
    rows = np.flatnonzero(np.diff(matrix.indptr))
    assert np.allclose(products[rows, found], products[rows].max(axis=1), rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", [kind for kind in _ALL if kind not in _PROJECTED and kind != "rotated_ll"])
def test_linear_weights_are_those_of_a_triangle_of_neighbors(kind: str) -> None:
    source, target, matrix = _weights(kind, "linear")
    rows = np.flatnonzero(np.diff(matrix.indptr))
    assert len(rows) > 50 and (kind not in _AROUND or len(rows) == target.size)
    places = directions(*target.points())[rows]
    # Barycentric: their sum of the corners is where the ray to the place meets the plane of the triangle.
    met = (matrix @ directions(*source.points()))[rows]
    assert np.allclose(np.cross(met, places), 0, atol=1e-12) and matrix.data.min() >= 0
    assert np.allclose(matrix.sum(axis=1)[rows], 1, rtol=0, atol=1e-12) and np.diff(matrix.indptr).max() <= 3
    # No corner is farther away than neighbors on these grids are, 6 to 11 degrees.
    apart = np.einsum(
        "nk,nk->n",
        directions(*source.points())[matrix.indices],
        np.repeat(directions(*target.points()), np.diff(matrix.indptr), axis=0),
    )
    assert np.degrees(np.arccos(apart.min())) < 11


def _plane(kind: str, north: Any, east: Any) -> tuple[Any, Any]:
    """Columns and rows, counted from 0, of places."""
    if kind == "rotated_ll":
        x, y = _rotated(north, east)
        return x + 15, y + 11
    said = _PROJECTED[kind][1]
    width = said.get("DxInMetres", said.get("DiInMetres"))
    ends = [[said[f"{name}OfFirstGridPointInDegrees"]] for name in ("longitude", "latitude")]
    x, y = _projected(_PROJECTED[kind][0], east, north)
    first = _projected(_PROJECTED[kind][0], *ends)
    around = 2 * np.pi * _EARTH_M * np.cos(np.radians(20)) if kind == "mercator" else np.inf
    x = x - first[0]
    if kind == "mercator":
        x = np.mod(x + around / 4, around) - around / 4
    return x / width, (y - first[1]) / width


def _projected(definition: str, east: Any, north: Any) -> Any:
    """Metres on a plane, by pyproj in a process of its own: its PROJ and MIR's do not bear one another in one."""
    if importlib.util.find_spec("pyproj") is None:
        pytest.skip("pyproj is not installed")
    given = np.array([east, north], np.float64)
    program = f"""
import sys
import numpy, pyproj
given = numpy.frombuffer(sys.stdin.buffer.read()).reshape(2, -1)
made = pyproj.Proj("{definition} +R={_EARTH_M}")(*given)
sys.stdout.buffer.write(numpy.array(made).tobytes())
"""
    run = subprocess.run([sys.executable, "-c", program], input=given.tobytes(), stdout=subprocess.PIPE, check=True)
    return np.frombuffer(run.stdout).reshape(given.shape)


def _rotated(north: Any, east: Any) -> tuple[Any, Any]:
    """Longitude and latitude on the sphere that is turned, in closed form (the southern pole at 35 S, 15 E)."""
    lat, lon = np.radians(north), np.radians(np.asarray(east) - 15)
    tilt = np.radians(90 - 35)
    sine = np.cos(tilt) * np.sin(lat) - np.sin(tilt) * np.cos(lat) * np.cos(lon)
    x = np.arctan2(np.cos(lat) * np.sin(lon), np.cos(tilt) * np.cos(lat) * np.cos(lon) + np.sin(tilt) * np.sin(lat))
    return np.degrees(x), np.degrees(np.arcsin(sine))


@pytest.mark.parametrize("kind", [*_PROJECTED, "rotated_ll"])
def test_linear_is_bilinear_on_the_plane_and_nothing_is_outside(kind: str) -> None:
    field, target = _field(kind), _near(kind)
    rows, columns = field.grid.lines
    x, y = _plane(kind, field.grid.latitudes, field.grid.longitudes)
    expected = np.meshgrid(np.arange(columns), np.arange(rows)[::-1] if kind == "rotated_ll" else np.arange(rows))
    assert np.allclose([x, y], [part.ravel() for part in expected], rtol=0, atol=2e-4)
    x, y = _plane(kind, *target.points())
    is_in = (x >= 0) & (x <= columns - 1) & (y >= 0) & (y <= rows - 1)
    assert 30 < is_in.sum() < target.size
    north, east = map(np.radians, field.grid.points())
    smooth = np.sin(5 * north) + np.cos(3 * east) * np.cos(north) ** 3
    values = smooth.reshape(rows, columns)[:: -1 if kind == "rotated_ll" else 1]
    theirs = interpolate.RegularGridInterpolator((np.arange(rows), np.arange(columns)), values)
    for method in ("linear", "bilinear"):
        made = to_grid(Field(smooth, field.grid, {"param": "t"}), target, method).values
        assert np.array_equal(~np.isnan(made), is_in), method
        # Their planes differ by the curvature within a cell, some 0.1 % of the differences there.
        assert np.allclose(made[is_in], theirs((y[is_in], x[is_in])), rtol=0, atol=2e-4), method


@pytest.mark.parametrize("kind", _PROJECTED)
@pytest.mark.parametrize("westward", [0, 1])
@pytest.mark.parametrize("northward", [0, 1])
def test_rows_and_columns_go_as_the_scanning_mode_states(kind: str, westward: int, northward: int) -> None:
    """WMO, flag table 3.4, by pyproj; the first point is the southwestern one, as for ecCodes (decision 74)."""
    plane = {key: value for key, value in _PLANE.items() if kind != "mercator" or key not in ("Nx", "Ny")}
    plane |= {"Ni": 60, "Nj": 50} if kind == "mercator" else {}
    said = {"gridType": kind, "numberOfDataPoints": 3000, "numberOfValues": 3000, **plane, **_PROJECTED[kind][1]}
    message = _message("GRIB2", 3000, **{**said, "iScansNegatively": westward, "jScansPositively": northward})
    field = decode(message)
    x, y = (np.rint(axis).astype(int) for axis in _plane(kind, *field.grid.points()))
    columns = np.arange(60)[:: -1 if westward else 1]
    rows = np.arange(50)[:: 1 if northward else -1]
    assert np.array_equal(x.reshape(50, 60), np.tile(columns, (50, 1)))
    assert np.array_equal(y.reshape(50, 60), np.repeat(rows, 60).reshape(50, 60))
    assert np.array_equal(field.values, decode(_message("GRIB2", 3000, **said)).values)


@pytest.mark.parametrize("kind", _AROUND)
def test_cells_of_a_globe_are_those_of_voronoi(kind: str) -> None:
    source = _field(kind).grid
    places = directions(*source.points())
    _, single = np.unique(places.round(10), axis=0, return_index=True)
    expected = spatial.SphericalVoronoi(places[single], threshold=1e-9).calculate_areas()
    areas = located_weights._cells_of(source)[1].duals().areas
    assert np.allclose(areas.sum(), 4 * np.pi, rtol=1e-6)
    if len(single) == source.size:
        assert np.allclose(areas[single], expected, rtol=1e-3)


@pytest.mark.parametrize("kind", _ALL)
def test_conservative_means_keep_the_mean(kind: str) -> None:
    if importlib.util.find_spec("yac") is None:
        pytest.skip("YAC is not installed")
    field = _field(kind)
    source, target = field.grid, _on("5/5")
    covered = ~np.isnan(to_grid(field, target, "nearest").values)
    made = to_grid(field, target, "conservative").values
    assert np.array_equal(~np.isnan(made), covered)
    ones = to_grid(Field(np.ones(source.size), source), target, "conservative").values
    assert np.allclose(ones[covered], 1, rtol=0, atol=1e-9)
    if kind in _AROUND:
        half = np.sin(np.radians(np.clip([target.latitudes + 2.5, target.latitudes - 2.5], -90, 90)))
        mean = np.average(made.mean(axis=1), weights=half[0] - half[1])
        areas = located_weights._cells_of(source)[1].duals().areas
        assert mean == pytest.approx(np.average(field.values, weights=areas), abs=2e-5)


def test_both_orders_of_healpix_have_their_points() -> None:
    ring, nested = _field("healpix ring").grid, _field("healpix nested").grid
    assert not np.array_equal(ring.latitudes, nested.latitudes)
    first, second = (np.sort(np.round(directions(*on.points()), 9), axis=0) for on in (ring, nested))
    assert np.array_equal(first, second)


def test_a_bay_is_outside() -> None:
    rng = np.random.default_rng(3)
    north, east = rng.uniform(30, 60, 4000), rng.uniform(-20, 20, 4000)
    bay = (north > 40) & (np.abs(east) < 10)
    cells = located_weights._Triangles(directions(north[~bay], east[~bay]))
    probe = directions(np.array([55.0, 45, 35, 55, 62, 45]), np.array([0.0, 0, 0, 15, 0, 25]))
    assert cells.around(probe)[1].any(axis=1).tolist() == [False, False, True, True, False, False]


def test_a_grid_without_places_is_refused_by_name() -> None:
    said = {"gridType": "unstructured_grid", "numberOfDataPoints": 500, "numberOfValues": 500}
    field = decode(_message("GRIB2", 500, **said))
    assert field.grid.size == 500 and np.isnan(field.grid.latitudes).all()
    with pytest.raises(Unsupported, match="its header does not state where its points are"):
        to_grid(field, _on("5/5"))


@pytest.mark.parametrize("form", ["netcdf", "zarr", "csv", "png"])
def test_points_without_places_are_written_to_no_file(tmp_path: Path, form: Any) -> None:
    said = {"gridType": "unstructured_grid", "numberOfDataPoints": 500, "numberOfValues": 500}
    field = decode(_message("GRIB2", 500, **said))
    with pytest.raises(InvalidArgument, match="grid unstructured_grid has no places of points: bring it"):
        written(Output(form), tmp_path / "p", field)
    assert not list(tmp_path.iterdir())
    again = decode(written(Output("grib2", bits=24), tmp_path / "p", field).read_bytes())
    assert again.on == field.on and np.allclose(again.values, field.values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", _ALL)
def test_grib_keeps_the_grid(tmp_path: Path, kind: str) -> None:
    """Values and places as ecCodes has them of the message that the field came with, and of the product."""
    field = _field(kind)
    path = written(Output("grib2", bits=24), tmp_path / "p", field)
    with path.open("rb") as file:
        handle = eccodes.codes_grib_new_from_file(file)
    try:
        found = [eccodes.codes_get_array(handle, key) for key in ("values", "latitudes", "longitudes")]
        assert eccodes.codes_get(handle, "gridType") == field.grid.name.partition(":")[0]
    finally:
        eccodes.codes_release(handle)
    assert np.allclose(found[0], field.values, rtol=0, atol=np.ptp(field.values) / (1 << 24))
    # Of `rotated_gg` ecCodes has the places before they are turned.
    if kind != "rotated_gg":
        apart = directions(found[1], found[2]) - directions(*field.grid.points())
        assert np.abs(apart).max() < 1e-9
    assert decode(path.read_bytes()).on == field.on


@pytest.mark.parametrize("scanning", [{"jPointsAreConsecutive": 1}, {"alternativeRowScanning": 1}])
def test_grib_has_rows_in_one_way(tmp_path: Path, scanning: dict[str, int]) -> None:
    said = {"gridType": "lambert", "numberOfDataPoints": 3000, "numberOfValues": 3000, **_PLANE, **scanning}
    field = decode(_message("GRIB2", 3000, **said, **_PROJECTED["lambert"][1]))
    again = decode(written(Output("grib2", bits=24), tmp_path / "p", field).read_bytes())
    assert np.allclose(again.values, field.values, rtol=0, atol=1e-6)
    assert np.allclose(again.grid.points(), field.grid.points(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("projection", ["cylindrical", "robinson", "globe"])
@pytest.mark.parametrize("kind", [*_PROJECTED, "rotated_ll", "reduced area", "healpix ring", "reduced_rotated_gg"])
def test_a_map_has_what_is_in_the_cells_and_nothing_outside(kind: str, projection: Any) -> None:
    lies = _field(kind).grid
    view = view_of(lies, Output("png", projection=projection, width=200))
    found = samples(lies, view)
    north, east, seen = (part.ravel() for part in view.places())
    is_in = np.zeros(north.size, np.bool_)
    is_in[found.pixels] = True
    assert is_in.any() and seen[is_in].all()
    made = found.of(np.sin(np.radians(lies.latitudes)))
    # Linear in cells of up to seven degrees.
    assert np.allclose(made, np.sin(np.radians(north[is_in])), rtol=0, atol=6e-3)
    if kind in _AROUND:
        assert is_in[seen].all()
    if kind in _PROJECTED or kind == "rotated_ll":
        rows, columns = lies.lines
        x, y = _plane(kind, north[seen], east[seen])
        expected = (x > 0) & (x < columns - 1) & (y > 0) & (y < rows - 1)
        close = 0.01
        rim = np.minimum(np.abs([x, x - columns + 1]).min(axis=0), np.abs([y, y - rows + 1]).min(axis=0)) < close
        assert np.array_equal(is_in[seen][~rim], expected[~rim])


def test_a_map_of_what_is_missing_in_a_cell_is_that_of_the_nearest() -> None:
    lies = _field("lambert").grid
    found = samples(lies, view_of(lies, Output("png", width=200)))
    assert isinstance(found, CellSamples)
    values = np.ones(lies.lines)
    values[20:30, 20:40] = np.nan
    made = found.of(values.ravel())
    nearest = np.isnan(values.ravel()[found.points[np.arange(len(made)), found.shares.argmax(axis=1)]])
    assert nearest.any() and np.array_equal(np.isnan(made), nearest)


@pytest.mark.parametrize("name", ["lambert:1:AAAA", "lambert:2:eNpjYGBQZmZgYGD8AiRSGbABACZxAYE", "x:2:!", "lambert:2:"])
def test_a_name_without_a_section_is_refused(name: str) -> None:
    with pytest.raises(Error):
        grid(name)


def test_every_file_goes_through_grid_and_crop_or_is_refused(shared: Path) -> None:
    transforms, refused = FieldTransforms(), set()
    for path in sorted(shared.rglob("*.grib*")):
        try:
            field, *others = (decode(message) for message in itertools.islice(grib_messages.messages(path), 2))
        except Error:
            refused.add(path.name)
            continue
        if path.name == "rotated_wind_20x20.grib":
            field, _ = Turn()([field, *others], transforms)
        method = "nearest" if min(field.on.shape) < 2 else "linear"
        (made,) = ToGrid("1/1", method)([field], transforms)  # type: ignore[arg-type]
        (cut,) = Crop(72, -25, 34, 45)([made], transforms)
        assert cut.grid == _on("1/1@72/-25/34/45")
        inside = made.values[~np.isnan(made.values)]
        # One point lies between those of the target.
        assert len(inside) or field.on.size == 1, path.name
        if not field.on.name.startswith("T"):
            assert (inside >= np.nanmin(field.values) - 1e-9).all(), path.name
            assert (inside <= np.nanmax(field.values) + 1e-9).all(), path.name
    # What they are refused for is looked at where messages are decoded.
    assert refused == {"era5-levels-corrupted.grib"}


def test_what_has_no_rows_is_not_cut() -> None:
    with pytest.raises(InvalidArgument, match="it has no rows of equal length: bring it to a grid first"):
        Crop(72, -25, 34, 45)([_field("lambert")], FieldTransforms())
