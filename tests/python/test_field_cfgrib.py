"""The xarray engine against cfgrib: values, places, dimensions, units and times; each difference with its reason.

Where the two differ, and who is right:

- Rows from east to west (flag table 3.4, bit 1): cfgrib sorts longitudes and not the values. WMO places the first value
  at the first longitude, and so does ecCodes' iterator.
- Points along columns (bit 3): cfgrib takes them for rows. WMO, and ecCodes' iterator but on Gaussian grids.
- Lambert, polar stereographic and Mercator from north to south, or from east to west: cfgrib pairs values in the order
  of the message with ecCodes' places from the southwest on. EcCodes' iterator turns the values.
- Mercator and space view: cfgrib has one dimension; the grids have rows and columns (templates 3.10 and 3.90). So it
  does not turn alternating rows of Mercator either.
- One point: cfgrib leaves dimensions of length 1 out.
- Spherical harmonics: cfgrib calls the dimension of coefficients `values`.
- A level of one value for all variables is a coordinate of cfgrib's by its type; ours is `level`, where the key has it.
- Satellite products (template 4.31) have no step: cfgrib has no valid time; ours is the reference time.
- An area across Greenwich: cfgrib's longitudes are ecCodes' distinct ones, which jump or are sorted without the values.
- A date whose year is missing (edition 1, octet 13 = 255): cfgrib fails; ours has no base time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from python_stores import DATA

import junctura
from junctura import field

eccodes = pytest.importorskip("eccodes")
xarray = pytest.importorskip("xarray")
cfgrib = pytest.importorskip("cfgrib")

from field_messages import message, scanned  # noqa: E402

Array = npt.NDArray[Any]
_FILES = sorted({*DATA.glob("*.grib"), *DATA.glob("*.grib2"), *DATA.glob("odd/*.grib"), *DATA.glob("odd/*.grib2")})
needs_files = pytest.mark.skipif(not _FILES, reason=f"no files in {DATA}")
_UNITS = {"~": "", "unknown": ""}


def _theirs(path: Path) -> list[Any]:
    """The datasets of cfgrib: a file of one message is one, of several as many as it takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(cfgrib.open_datasets(str(path), backend_kwargs={"indexpath": ""}, decode_timedelta=True))


def _messages(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while True:
            try:
                handle = eccodes.codes_grib_new_from_file(file)
            except eccodes.CodesInternalError:
                continue
            if handle is None:
                return
            yield bytes(eccodes.codes_get_message(handle))
            eccodes.codes_release(handle)


def _one(path: Path, content: bytes) -> Any:
    """The variable that cfgrib makes of one message."""
    path.write_bytes(content)
    (dataset,) = _theirs(path)
    return dataset[next(iter(dataset.data_vars))]


def _places(array: Any) -> tuple[Array, Array]:
    whole = xarray.zeros_like(array, dtype=np.float64)
    lat, lon = ((whole + array[name]).transpose(*array.dims).values for name in ("latitude", "longitude"))
    return lat.ravel(), np.mod(lon.ravel() + 1e-9, 360)


def _same_places(ours: Any, theirs: Any) -> None:
    for mine, other in zip(_places(ours), _places(theirs), strict=True):
        apart = np.abs(mine - other)
        assert np.minimum(apart, 360 - apart).max() < 2e-3


def _as_theirs(array: Any, kind: str) -> Any:
    """With the dimensions that cfgrib has; see the head of this module."""
    if kind == "sh":
        return array.rename(coefficient="values")
    if array.size == 1:
        return array.squeeze()
    return array.stack(values=("y", "x"), create_index=False) if kind == "mercator" else array


def _compared(content: bytes, path: Path) -> None:
    theirs, ours = _one(path, content), field.field_of(content)
    array = xarray.DataArray(ours.values, dims=ours.layout.dims, coords=field.coordinates_of(ours))
    array = _as_theirs(array, ours.grid.kind)
    if ours.grid.kind == "mercator" and ours.layout.order is not None and ours.layout.order.is_alternating:
        theirs = theirs.copy(data=ours.layout.order.arranged(theirs.values.copy()).ravel())
    assert array.dims == theirs.dims and array.shape == theirs.shape
    np.testing.assert_array_equal(array.values.astype(np.float32), theirs.values)
    assert ("latitude" in array.coords) == ("latitude" in theirs.coords)
    if "latitude" in array.coords:
        _same_places(array, theirs)
    units = str(theirs.attrs.get("units", ""))
    assert ours.units == _UNITS.get(units, units)
    if ours.valid_time is not None and "valid_time" in theirs.coords:
        assert ours.valid_time == theirs.valid_time.values
        assert ours.times.base == theirs.time.values
    level = ours.level
    if level is not None and level.kind in theirs.coords:
        assert level.value == theirs[level.kind].values
    if ours.member is not None and "number" in theirs.coords:
        assert ours.member == theirs.number.values


# By the reason why cfgrib cannot be the reference; see the head of this module.
_NOT_COMPARED = {
    "t_year_missing.grib": "its date has no year",
    "cams-egg4-monthly.grib": "its area goes across Greenwich",
    "shifted_ll_subarea.grib": "its area goes across Greenwich",
    "alternate-scanning.grib": "its area goes across Greenwich",
}


@needs_files
@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.name))
def test_messages_of_real_files(tmp_path: Path, path: Path) -> None:
    if path.name in _NOT_COMPARED:
        pytest.skip(_NOT_COMPARED[path.name])
    compared = 0
    for number, content in enumerate(_messages(path)):
        # Of long files each twentieth message.
        if number < 20 or not number % 20:
            _compared(content, tmp_path / f"{number}.grib")
            compared += 1
    assert compared


@needs_files
@pytest.mark.parametrize("name", [name for name in _NOT_COMPARED if name != "t_year_missing.grib"])
def test_areas_across_greenwich_have_the_values_of_the_iterator(name: str) -> None:
    for content in _messages(DATA / "odd" / name):
        ours = field.field_of(content)
        assert np.all(np.diff(ours.layout.coords["longitude"][1]) > 0)
        handle = eccodes.codes_new_from_message(content)
        eccodes.codes_set(handle, "missingValue", np.nan)
        latitudes, longitudes, values = eccodes.codes_get_array(handle, "latLonValues").reshape(-1, 3).T
        is_alternating = bool(eccodes.codes_get(handle, "alternativeRowScanning"))
        eccodes.codes_release(handle)
        shape = ours.values.shape
        rows = values.reshape(shape).copy()
        if is_alternating:
            rows[1::2] = rows[1::2, ::-1]
        np.testing.assert_array_equal(ours.values, rows)
        lat, lon = (ours.layout.coords[name][1] for name in ("latitude", "longitude"))
        np.testing.assert_allclose(np.repeat(lat, shape[1]), latitudes, atol=1e-3)
        apart = np.mod(np.tile(lon, shape[0]) - longitudes + 180, 360)
        np.testing.assert_allclose(apart, 180, atol=1e-3)


_SCANNED = [
    (kind, edition, mode)
    for kind in ("regular_ll", "regular_gg", "rotated_ll", "rotated_gg", "lambert", "polar_stereographic", "mercator")
    for edition in (1, 2)
    for mode in (0b0000, 0b0001, 0b0100, 0b0101)
    if edition == 2 or not mode & 1
    # From the north, cfgrib pairs values with other points of these.
    if mode & 0b0100 or kind not in ("lambert", "polar_stereographic", "mercator")
]


@pytest.mark.parametrize(("kind", "edition", "mode"), _SCANNED)
def test_grids_in_the_scanning_modes_that_cfgrib_reads(tmp_path: Path, kind: str, edition: int, mode: int) -> None:
    _compared(scanned(kind, mode, edition), tmp_path / "one.grib")


@pytest.mark.parametrize(
    "packing", ["simple", "ccsds", "jpeg", "png", "ieee", "complex", "complex_spatial_differencing"]
)
@pytest.mark.parametrize("missing", ["none", "some", "all but one"])
def test_packings(tmp_path: Path, packing: str, missing: str) -> None:
    values = np.rint(280 + 40 * np.sin(np.arange(496) / 7))
    values[{"none": slice(0, 0), "some": slice(5, 60), "all but one": slice(1, None)}[missing]] = np.nan
    content = message("regular_ll_pl_grib2", values, bitsPerValue=16)
    handle = eccodes.codes_new_from_message(content)
    if not (packing.startswith("complex") and missing == "all but one"):
        eccodes.codes_set(handle, "packingType", f"grid_{packing}")
    content = bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    _compared(content, tmp_path / "one.grib")


_TEMPLATES = [*range(16), 31, *range(40, 50), 51, *range(53, 64), 67, 68, *range(70, 74), *range(76, 86)]


@pytest.mark.parametrize("template", _TEMPLATES)
def test_product_definition_templates(tmp_path: Path, template: int) -> None:
    content = message(
        "regular_ll_pl_grib2",
        np.arange(496.0),
        productDefinitionTemplateNumber=template,
        dataDate=20260110,
        dataTime=600,
    )
    _compared(content, tmp_path / "one.grib")


@pytest.mark.parametrize(
    "keys",
    [
        {"dataDate": 20260110, "dataTime": 600, "step": 18},
        {"dataDate": 20260110, "dataTime": 1815, "indicatorOfUnitOfTimeRange": 0, "forecastTime": 90},
        {"dataDate": 20260110, "dataTime": 0, "forecastTime": -6},
        {"dataDate": 20260110, "dataTime": 0, "productDefinitionTemplateNumber": 8, "stepRange": "6-24"},
        {"dataDate": 19000228, "dataTime": 2300, "step": 1},
        {"dataDate": 20260110, "dataTime": 0, "shortName": "2t"},
        {"dataDate": 20260110, "dataTime": 0, "shortName": "10u"},
    ],
    ids=str,
)
def test_times_and_levels(tmp_path: Path, keys: dict[str, Any]) -> None:
    _compared(message("regular_ll_pl_grib2", np.zeros(496), **keys), tmp_path / "one.grib")


@needs_files
@pytest.mark.parametrize("name", ["era5-levels-members.grib", "lambert_grid.grib", "odd/hdate.grib"])
def test_datasets_have_the_dimensions_and_coordinates_of_cfgrib(tmp_path: Path, name: str) -> None:
    store = junctura.Store.from_grib(tmp_path / "store", DATA / name)
    ours = xarray.open_dataset(store.path, engine="junctura")
    (theirs,) = _theirs(DATA / name)
    theirs = theirs.rename({level: "level" for level in theirs.coords if level in ("isobaricInhPa",)})
    for (mine, variable), other in zip(ours.data_vars.items(), theirs.data_vars.values(), strict=True):
        assert set(variable.dims) == set(other.dims), mine
        np.testing.assert_array_equal(
            variable.values,
            other.transpose(*variable.dims).sel({d: ours[d] for d in variable.dims if d in theirs.indexes}),
        )
        _same_places(variable, other.transpose(*variable.dims))
    for name in {"time", "step", "valid_time", "number", "heightAboveGround"} & set(theirs.coords) & set(ours.coords):
        np.testing.assert_array_equal(np.sort(ours[name].values, axis=None), np.sort(theirs[name].values, axis=None))


@pytest.mark.parametrize(
    ("centre", "table", "number"),
    [
        *(("ecmf", table, number) for table, number in ((128, 167), (128, 228), (140, 229), (162, 53), (228, 131))),
        *(("kwbc", table, number) for table, number in ((2, 33), (129, 193), (130, 160), (131, 240))),
        *(("edzw", table, number) for table, number in ((2, 61), (201, 31), (202, 120), (203, 133))),
        *(("lfpw", 1, number) for number in (11, 160)),
        ("cnmc", 200, 10),
        ("eums", 1, 51),
    ],
)
def test_local_tables_of_edition_1(tmp_path: Path, centre: str, table: int, number: int) -> None:
    header: dict[str, Any] = {"centre": centre, "table2Version": table, "indicatorOfParameter": number}
    content = message("regular_ll_pl_grib1", np.arange(496.0), **header, dataDate=20260110, dataTime=600, step=12)
    _compared(content, tmp_path / "one.grib")
