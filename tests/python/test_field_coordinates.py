"""Which value lies where: ecCodes' iterator is the reference, and WMO's flag table 3.4 where that ignores it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import junctura
from junctura import field

eccodes = pytest.importorskip("eccodes")
xarray = pytest.importorskip("xarray")

from field_messages import COLUMNS, ROWS, message, scanned, triples  # noqa: E402

Array = npt.NDArray[Any]
Triples = set[tuple[float, float, float]]
_KINDS = (
    "regular_ll",
    "rotated_ll",
    "regular_gg",
    "rotated_gg",
    "lambert",
    "polar_stereographic",
    "mercator",
    "lambert_azimuthal_equal_area",
)
_CASES = [
    (kind, edition, mode)
    for kind in _KINDS
    for edition in (1, 2)
    for mode in range(16)
    # Edition 1 has no alternating rows, and not the last kind.
    if edition == 2 or (not mode & 1 and kind != _KINDS[-1])
]


def rounded(latitudes: Array, longitudes: Array, values: Array) -> Triples:
    """Triples that are equal where the points are, to 0.01 degrees (edition 1 states thousandths)."""
    lon = np.asarray(longitudes).ravel() % 360
    return {
        (round(float(a), 2) + 0.0, round(float(b), 2) % 360, round(float(c), 6))
        for a, b, c in zip(np.asarray(latitudes).ravel(), lon, np.asarray(values).ravel(), strict=True)
    }


def of_field(values: Array, layout: field.Layout) -> Triples:
    return of_array(xarray.DataArray(values, dims=layout.dims, coords=layout.labelled()))


def of_array(array: Any) -> Triples:
    full = array.broadcast_like(array.latitude * array.longitude)
    lat, lon = (array[name].broadcast_like(full).transpose(*full.dims) for name in ("latitude", "longitude"))
    return rounded(lat.values, lon.values, full.values)


def by_flags(mode: int) -> Array:
    """The values by rows and columns from the first point on, as flag table 3.4 orders them (bits 3 and 4)."""
    numbers = np.arange(ROWS * COLUMNS, dtype=np.float64)
    found = np.zeros((ROWS, COLUMNS))
    by_column, alternating = bool(mode & 2), bool(mode & 1)
    outer, inner = (COLUMNS, ROWS) if by_column else (ROWS, COLUMNS)
    for number in numbers:
        line, along = divmod(int(number), inner)
        along = inner - 1 - along if alternating and line % 2 else along
        found[(along, line) if by_column else (line, along)] = number
    assert outer * inner == numbers.size
    return found


def reference(kind: str, edition: int, mode: int) -> Triples:
    """The points that the iterator has for consecutive rows in one direction, with the values of the flags."""
    points = triples(scanned(kind, mode & 0b1100, edition))
    place = {round(value): (lat, lon) for lat, lon, value in points}
    lat, lon = np.array([place[number] for number in range(ROWS * COLUMNS)]).T
    return rounded(lat, lon, by_flags(mode))


def is_iterator_right(kind: str, mode: int) -> bool:
    """Whether ecCodes 2.50 follows flag table 3.4.

    It ignores alternating rows (bit 4) but on the three projections below, where it turns rows instead of columns if
    columns are consecutive; and on Gaussian grids it takes columns (bit 3) for rows.
    """
    by_column, alternating = bool(mode & 2), bool(mode & 1)
    if kind in ("lambert", "polar_stereographic", "mercator"):
        return not (by_column and alternating)
    return not alternating and not (by_column and kind.endswith("_gg"))


@pytest.mark.parametrize(("kind", "edition", "mode"), _CASES)
def test_each_value_is_at_its_point(kind: str, edition: int, mode: int) -> None:
    content = scanned(kind, mode, edition)
    expected = reference(kind, edition, mode)
    if is_iterator_right(kind, mode):
        assert rounded(*triples(content).T) == expected
    found = field.field_of(content)
    regular = kind.startswith("regular")
    assert found.layout.dims == (("latitude", "longitude") if regular else ("y", "x"))
    assert found.values.shape == (ROWS, COLUMNS)
    assert of_field(found.values, found.layout) == expected


@pytest.mark.parametrize("kind", _KINDS)
def test_engine_and_objects_have_the_same_points(tmp_path: Path, kind: str) -> None:
    for mode in (0, 1, 3, 6, 7, 13):
        file = tmp_path / f"{mode}.grib"
        file.write_bytes(scanned(kind, mode))
        store = junctura.Store.from_grib(tmp_path / str(mode), file)
        expected = reference(kind, 2, mode)
        data = xarray.open_dataset(store.path, engine="junctura")
        array = data[next(iter(data.data_vars))]
        assert of_array(array) == expected
        assert of_array(array.isel({array.dims[0]: slice(1, 3)})) < expected
        assert of_array(store.list()[0].to_xarray()) == expected


_SPANS = [
    # First and last longitude, points, and the axis: one way, the easternmost at most 360.
    (350.0, 10.0, 3, 0, [-10, 0, 10]),
    (330.0, 0.0, 2, 0, [330, 360]),
    (300.0, 60.0, 5, 0, [-60, -30, 0, 30, 60]),
    (170.0, 190.0, 3, 0, [170, 180, 190]),
    (170.0, -170.0, 3, 0, [170, 180, 190]),
    (180.0, 150.0, 12, 0, [*range(-180, 180, 30)]),
    (-180.0, 150.0, 12, 0, [*range(-180, 180, 30)]),
    (0.0, 330.0, 12, 0, [*range(0, 360, 30)]),
    (0.0, 360.0, 13, 0, [*range(0, 361, 30)]),
    (10.0, 350.0, 3, 1, [10, 0, -10]),
    (190.0, 170.0, 3, 1, [190, 180, 170]),
    (330.0, 0.0, 12, 1, [*range(330, -1, -30)]),
    (20.0, 20.0, 1, 0, [20]),
]


@pytest.mark.parametrize(("first", "last", "count", "is_westward", "expected"), _SPANS)
@pytest.mark.parametrize("edition", [1, 2])
def test_longitudes_go_one_way(
    edition: int, first: float, last: float, count: int, is_westward: int, expected: list[float]
) -> None:
    content = message(
        f"regular_ll_pl_grib{edition}",
        np.arange(2.0 * count),
        Ni=count,
        Nj=2,
        longitudeOfFirstGridPointInDegrees=first,
        longitudeOfLastGridPointInDegrees=last,
        iScansNegatively=is_westward,
    )
    assert field.field_of(content).layout.coords["longitude"][1].tolist() == expected


def _healpix(ordering: str) -> bytes:
    count = 12 * 4**2
    keys: dict[str, Any] = {
        "gridType": "healpix",
        "Nside": 4,
        "orderingConvention": ordering,
        "numberOfDataPoints": count,
    }
    first: dict[str, Any] = {"longitudeOfFirstGridPointInDegrees": 45}
    return message("GRIB2", np.arange(float(count)), bitsPerValue=16, **keys, **first)


def _reduced_area(west: float, east: float) -> bytes:
    """The four northernmost rows of N32 between two meridians."""
    lengths = [20, 27, 36, 40]
    points = sum(len([k for k in range(-n, n) if west <= k * 360 / n <= east]) for n in lengths)
    north, *_, south = list(eccodes.codes_get_gaussian_latitudes(32))[:4]
    ends: dict[str, Any] = {"latitudeOfFirstGridPointInDegrees": north, "latitudeOfLastGridPointInDegrees": south}
    ends |= {"longitudeOfFirstGridPointInDegrees": west, "longitudeOfLastGridPointInDegrees": east}
    return message(
        "reduced_gg_pl_32_grib2", np.arange(float(points)), {"pl": lengths}, Nj=4, **ends, numberOfDataPoints=points
    )


_POINTS = {
    "reduced_gg": lambda: message("reduced_gg_pl_32_grib2", np.arange(6114.0), bitsPerValue=24),
    "reduced_gg, edition 1": lambda: message("reduced_gg_pl_32_grib1", np.arange(6114.0), bitsPerValue=24),
    "reduced_ll": lambda: message("reduced_ll_sfc_grib2"),
    "reduced_gg, an area": lambda: _reduced_area(0, 90),
    "reduced_gg, an area across Greenwich": lambda: _reduced_area(-36, 54),
    "healpix ring": lambda: _healpix("ring"),
    "healpix nested": lambda: _healpix("nested"),
}


@pytest.mark.parametrize("case", _POINTS)
def test_grids_without_rows_have_one_dimension(case: str) -> None:
    content = _POINTS[case]()
    found = field.field_of(content)
    theirs = triples(content)
    assert found.layout.dims == ("values",)
    np.testing.assert_array_equal(found.layout.coords["latitude"][1], theirs[:, 0])
    np.testing.assert_array_equal(found.layout.coords["longitude"][1], theirs[:, 1])
    np.testing.assert_array_equal(found.values, theirs[:, 2])


def _unstructured() -> bytes:
    return message("GRIB2", np.arange(20.0), gridType="unstructured_grid", numberOfDataPoints=20, bitsPerValue=8)


def _albers() -> bytes:
    size: dict[str, Any] = {"Nx": 5, "Ny": 4, "DxInMetres": 10000, "DyInMetres": 10000}
    return message("GRIB2", np.arange(20.0), gridType="albers", **size, bitsPerValue=8)


@pytest.mark.parametrize("make", [_unstructured, _albers])
def test_grids_whose_points_eccodes_cannot_compute_have_values(tmp_path: Path, make: Any) -> None:
    file = tmp_path / "one.grib"
    file.write_bytes(make())
    store = junctura.Store.from_grib(tmp_path / "store", file)
    data = xarray.open_dataset(store.path, engine="junctura")
    for array in (data[next(iter(data.data_vars))], store.list()[0].to_xarray()):
        assert array.dims == ("values",) and array.values.tolist() == list(range(20))
        assert not {"latitude", "longitude"} & set(array.coords)


def test_a_view_from_space_has_rows_and_columns() -> None:
    keys: dict[str, Any] = {
        "gridType": "space_view",
        "Nx": 5,
        "Ny": 4,
        "dx": 3622,
        "dy": 3610,
        "NrInRadiusOfEarth": 6.6107,
    }
    place: dict[str, Any] = {"XpInGridLengths": 2, "YpInGridLengths": 2, "Xo": 0, "Yo": 0, "shapeOfTheEarth": 6}
    content = message("GRIB2", np.arange(20.0), **keys, **place, bitsPerValue=8)
    found = field.field_of(content)
    assert found.layout.dims == ("y", "x")
    assert of_field(found.values, found.layout) == rounded(*triples(content).T)


def test_a_header_that_contradicts_itself_is_an_error_of_this_package() -> None:
    content = bytearray(scanned("regular_ll", 0))
    # Octets 35 to 38 of section 3, which begins at octet 38 of the message: rows.
    content[37 + 34 : 37 + 38] = (7).to_bytes(4, "big")
    with pytest.raises(junctura.Corrupt):
        field.field_of(bytes(content))


def test_no_points_are_computed_for_a_regular_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    whole = eccodes.codes_get_array

    def noted(handle: int, key: str, *more: Any) -> Any:
        asked.append(key)
        return whole(handle, key, *more)

    monkeypatch.setattr(eccodes, "codes_get_array", noted)
    for kind in ("regular_ll", "regular_gg"):
        field.decoded(scanned(kind, 0), field.placed, has_places=True)
    assert not {"latitudes", "longitudes", "latLonValues"} & set(asked)
