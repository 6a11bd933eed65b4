"""Every file of fields that others wrote, into files of every format: each is right, or refused with the reason.

Xarray, `csv`, ecCodes and Pillow read what was written, which is compared with what ecCodes has of the message: values,
places and times, and in GRIB the parameter, level and member. Of each file there is the first message of each kind of
grid, packing, scanning and edition, and files of millions of points are left out; with ``JUNCTURA_FILES=all``, as in
``make soak``, there are all.
"""

from __future__ import annotations

import csv
import functools
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args

import eccodes
import numpy as np
import numpy.typing as npt
import pytest
import xarray
from grib_messages import messages
from outputs_fields import written
from PIL import Image

from junctura.errors import Error
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import Crop, ToGrid
from junctura.products._outputs import Output
from junctura.products._outputs._output import Format
from junctura.products._regrid.grids import directions
from junctura.products._workers.make_product import FieldTransforms

spatial = pytest.importorskip("scipy.spatial")
# A table of millions of rows takes minutes to be read.
pytestmark = pytest.mark.timeout(900)
IS_ALL = os.environ.get("JUNCTURA_FILES") == "all"
# Four and a half million points.
LARGE = ("odd/ds.waveh.5.grib",)
_NAMES = """
era5-levels-corrupted.grib era5-levels-members.grib fields_with_missing_values.grib lambert_grid.grib
nam.t00z.awp21100.tm00.grib2 reduced_gg.grib regular_gg_ml_g2.grib regular_gg_sfc.grib regular_ll_msl.grib
spherical_harmonics.grib t_analysis_and_fc_0.grib t_on_different_level_types.grib odd/alternate-scanning.grib
odd/cams-egg4-monthly.grib odd/cfrzr_and_cprat.grib odd/hdate.grib odd/mercator.grib
odd/rgg_small_subarea_cellarea_ref.grib odd/rotated_wind_20x20.grib odd/shifted_ll_subarea.grib
odd/single_gridpoint.grib odd/soil-surface-level-mix.grib odd/t_year_missing.grib
"""
NAMES = (*_NAMES.split(), *(LARGE if IS_ALL else ()))
FORMATS = tuple(form for form in get_args(Format) if form != "parquet")
# Why some cannot be written: by file, or by file and format.
SPECTRAL = r"field z: it is spectral \(T63\): bring it to a grid first"
REFUSED: dict[str | tuple[str, str], str] = {
    "spherical_harmonics.grib": SPECTRAL,
    "odd/t_year_missing.grib": "field t: date is 801, expected a day such as 2026-08-01",
    # Parameters of edition 1 that edition 2 does not have.
    ("lambert_grid.grib", "grib2"): "field 3112: ecCodes has no parameter of this paramId in GRIB2: write netcdf",
    ("odd/single_gridpoint.grib", "grib2"): "ecCodes has no parameter of this paramId in GRIB2: write netcdf",
    ("odd/soil-surface-level-mix.grib", "grib2"): "ecCodes has no parameter of this paramId in GRIB2: write netcdf",
}
NO_MESSAGE = {
    "era5-levels-corrupted.grib": "no 7777 where the announced length ends",
    "nam.t00z.awp21100.tm00.grib2": "2 fields in one message: split it",
}
Floats = npt.NDArray[np.float64]


class Points(NamedTuple):
    """Values and their places, in any order."""

    latitudes: Floats
    longitudes: Floats
    values: Floats

    @property
    def places(self) -> Floats:
        return directions(self.latitudes, self.longitudes)


class Truth(NamedTuple):
    """What ecCodes has of a message; no places of spherical harmonics."""

    points: Points
    keys: dict[str, Any]


_KEYS = ("validityDate", "validityTime", "shortName", "typeOfLevel", "level", "perturbationNumber", "centre")
_KIND = ("edition", "gridType", "packingType", "scanningMode", "bitmapPresent")


def truth(message: bytes) -> Truth:
    handle = eccodes.codes_new_from_message(message)
    try:
        values = eccodes.codes_get_values(handle)
        keys = {key: _key(handle, key) for key in (*_KEYS, *_KIND, "missingValueManagementUsed", "Ni", "number")}
        if keys["bitmapPresent"] == "1" or keys["missingValueManagementUsed"] == "1":
            values[values == eccodes.codes_get_double(handle, "missingValue")] = np.nan
        if keys["gridType"] == "sh":
            return Truth(Points(np.empty(0), np.empty(0), values), keys)
        if int(keys["scanningMode"] or 0) & 16:
            # EcCodes gives values as they lie in the message, and places as though every row went one way.
            values = values.reshape(-1, int(keys["Ni"] or 1))
            values[1::2] = values[1::2, ::-1].copy()
        north, east = (eccodes.codes_get_array(handle, f"{axis}itudes") for axis in ("lat", "long"))
        return Truth(Points(north, east, values.ravel()), keys)
    finally:
        eccodes.codes_release(handle)


def _key(handle: int, key: str) -> str | None:
    return str(eccodes.codes_get_string(handle, key)) if eccodes.codes_is_defined(handle, key) else None


@functools.cache
def chosen(path: Path) -> list[tuple[Field, Truth]]:
    """The first field of each kind in a file, or all; what is no field is refused by name."""
    found: dict[Any, tuple[Field, Truth]] = {}
    for number, message in enumerate(messages(path)):
        try:
            field = decode(message)
        except Error as error:
            if NO_MESSAGE.get(path.name, "none") not in str(error):
                raise
            continue
        has = truth(message)
        found.setdefault(number if IS_ALL else tuple(has.keys[key] for key in _KIND), (field, has))
    assert found
    return list(found.values())


def is_same(there: Points, right: Points, tolerance: float) -> None:
    """The same values at the same places, whatever order they have."""
    assert there.values.size == right.values.size
    apart, at = spatial.cKDTree(there.places).query(right.places)
    # Edition 1 has degrees of three digits; 2e-5 are 0.001 degrees.
    assert apart.max() < 2e-5
    _, first = np.unique(right.places.round(6), axis=0, return_index=True)
    assert len(np.unique(at[first])) == len(first)
    np.testing.assert_allclose(there.values[at[first]], right.values[first], rtol=0, atol=tolerance)


def scale(points: Points) -> float:
    return float(np.nanmax(np.abs(points.values), initial=0))


def of_data_set(path: Path, right: Truth) -> None:
    with xarray.open_dataset(path, engine="zarr" if path.is_dir() else "netcdf4") as data:
        (variable,) = (one for one in data.data_vars.values() if {"latitude", "cell"} & set(one.dims))
        north, east = xarray.broadcast(data.latitude, data.longitude)
        found = Points(north.values.ravel(), east.values.ravel(), variable.values.ravel().astype(float))
        is_same(found, right.points, 1e-7 * scale(right.points))
        day, hour = str(np.datetime_as_string(data.time.values[0], "h")).split("T")
        assert day.replace("-", "") == right.keys["validityDate"]
        assert int(hour) == int(str(right.keys["validityTime"])) // 100


def of_table(path: Path, right: Truth) -> None:
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    columns = (np.array([float(row[name] or "nan") for row in rows]) for name in ("latitude", "longitude", "value"))
    is_same(Points(*columns), right.points, 0)
    assert {row["valid_time"].replace("-", "")[:8] for row in rows} == {right.keys["validityDate"]}


def of_grib(path: Path, right: Truth) -> None:
    back = truth(path.read_bytes())
    is_same(back.points, right.points, np.ptp(right.points.values[np.isfinite(right.points.values)]) / (1 << 16))
    for key in ("validityDate", "validityTime", "shortName", "centre"):
        assert back.keys[key] == right.keys[key], key
    # Edition 1 has heights of two meters at the surface, and the number 0 for what is no member.
    if right.keys["edition"] == "2" or right.keys["typeOfLevel"] != "surface":
        assert [back.keys[key] for key in ("typeOfLevel", "level")] == [
            right.keys[key] for key in ("typeOfLevel", "level")
        ]
    if right.keys["edition"] == "2" or right.keys["number"] not in (None, "0"):
        assert back.keys["perturbationNumber"] == right.keys["perturbationNumber"]


def of_map(path: Path, right: Truth) -> None:
    with Image.open(path) as picture:
        colours = picture.getcolors(picture.width * picture.height)
    known = right.points.values[np.isfinite(right.points.values)]
    assert picture.mode == "RGB" and colours is not None
    # A field has many colours, and one with a single value has at least that.
    assert len(colours) > (100 if np.unique(known).size > 20 else 3)


CHECKS: dict[str, Callable[[Path, Truth], None]] = {
    "netcdf": of_data_set, "zarr": of_data_set, "csv": of_table, "grib2": of_grib, "png": of_map
}  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_field_is_written_right_or_refused(
    shared: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, form: Any
) -> None:
    given = chosen(shared / name)
    cause = REFUSED.get(name) or REFUSED.get((name, form))
    made = 0
    for number, (field, right) in enumerate(given):
        path = tmp_path / f"{number}.{form}"
        try:
            written(Output(form, width=200, bits=18), path, field)
        except Error as error:
            if cause is None or not re.search(cause, str(error)) or path.exists():
                raise
            continue
        made += 1
        CHECKS[form](path, right)
    assert made or cause
    assert capfd.readouterr() == ("", "")


def inside(points: Points) -> tuple[float, float, float, float]:
    """North, west, south and east of an area in the middle of some points."""
    north, east = points.latitudes, np.mod(points.longitudes + 180, 360) - 180
    (south, north_end), (west, east_end) = (np.quantile(axis, [0.2, 0.8]) for axis in (north, east))
    return float(north_end), float(west), float(south), float(east_end)


@pytest.mark.parametrize("name", NAMES)
def test_an_area_has_the_points_within_it_or_is_refused(shared: Path, name: str) -> None:
    for field, right in chosen(shared / name):
        if right.points.latitudes.size < 2:
            continue
        north, west, south, east = inside(right.points)
        if not field.grid.is_regular:
            with pytest.raises(Error, match="no rows of equal length: bring it to a grid first"):
                Crop(north, west, south, east)([field], FieldTransforms())
            continue
        (made,) = Crop(north, west, south, east)([field], FieldTransforms())
        east_of = np.mod(right.points.longitudes + 180, 360) - 180
        within = (right.points.latitudes <= north) & (right.points.latitudes >= south)
        within &= (east_of >= west) & (east_of <= east)
        is_same(Points(*made.grid.points(), made.values.ravel()), Points(*(part[within] for part in right.points)), 0)


@pytest.mark.parametrize("name", NAMES)
def test_on_a_grid_each_value_is_that_of_the_nearest_point(shared: Path, name: str) -> None:
    for field, right in chosen(shared / name):
        if right.points.latitudes.size < 2:
            continue
        if "uvRelativeToGrid" in field.attributes and field.param in ("10u", "10v"):
            with pytest.raises(Error, match=r"write wind: \{\} before"):
                ToGrid("4/4", "nearest")([field], FieldTransforms())
            continue
        target = "1/1" if np.ptp(right.points.latitudes) < 20 else "4/4"
        (made,) = ToGrid(target, "nearest")([field], FieldTransforms())
        known = np.flatnonzero(np.isfinite(made.values.ravel()))
        assert known.size
        places = directions(*made.grid.points())[known]
        tree = spatial.cKDTree(right.points.places)
        apart, _ = tree.query(places)
        # Several points may be as near as each other: one of them has the value.
        near = tree.query_ball_point(places, apart * (1 + 1e-6) + 1e-7)
        for value, at in zip(made.values.ravel()[known], near, strict=True):
            assert value in right.points.values[at]


def test_no_file_is_left_out(shared: Path) -> None:
    there = {str(path.relative_to(shared)) for path in shared.glob("**/*.grib*")}
    assert there == {*NAMES, *LARGE}
