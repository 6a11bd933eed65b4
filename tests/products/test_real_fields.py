"""Fields that others wrote, all the way: out of messages, to another grid, cut out, and into files of every format.

What is in a file is read by somebody else (ecCodes by way of `decode`, xarray, Pillow, `csv`) and compared.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from grib_messages import messages
from outputs_fields import written
from PIL import Image

from junctura.errors import Error
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import Crop, ToGrid
from junctura.products._outputs import Output, meaning
from junctura.products._workers.make_product import FieldTransforms

FILES = (
    "era5-levels-corrupted.grib",
    "era5-levels-members.grib",
    "fields_with_missing_values.grib",
    "reduced_gg.grib",
    "regular_gg_ml_g2.grib",
    "regular_gg_sfc.grib",
    "regular_ll_msl.grib",
    "spherical_harmonics.grib",
    "t_analysis_and_fc_0.grib",
    "t_on_different_level_types.grib",
)
_BITS = 16


@functools.cache
def fields(path: Path) -> list[Field]:
    """All that can be decoded, on three degrees of Europe."""
    found = []
    for message in messages(path):
        with contextlib.suppress(Error):
            found.append(decode(message))
    assert found
    transforms = FieldTransforms()
    return Crop(72.0, -24.0, 33.0, 45.0)(ToGrid("3/3")(found, transforms), transforms)


def sets(path: Path) -> list[list[Field]]:
    """Those that can be in one data set."""
    found: dict[Any, list[Field]] = {}
    for field in fields(path):
        is_what = meaning(field)
        found.setdefault((is_what.base, is_what.levtype, is_what.param), []).append(field)
    return list(found.values())


@pytest.mark.parametrize("name", FILES)
def test_as_grib2(shared: Path, tmp_path: Path, name: str) -> None:
    given = fields(shared / name)
    path = written(Output("grib2", bits=_BITS), tmp_path / "p", *given)
    back = [decode(message) for message in messages(path)]
    assert len(back) == len(given)
    for one, field in zip(back, given, strict=True):
        assert (one.on, one.param, one.units) == (field.on, field.param, field.units)
        said = ("date", "time", "step", "number", "levelist", "levtype", "stepType", "stepStart")
        assert {w: one.attributes.get(w) for w in said} == {w: field.attributes.get(w) for w in said}
        packed = np.nanmax(field.values) - np.nanmin(field.values)
        np.testing.assert_allclose(one.values, field.values, rtol=0, atol=packed / (1 << _BITS))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["netcdf", "zarr"])
def test_as_a_data_set(shared: Path, tmp_path: Path, kind: Any, name: str) -> None:
    for number, some in enumerate(sets(shared / name)):
        path = written(Output(kind), tmp_path / str(number), *some)
        with xarray.open_dataset(path, engine="netcdf4" if kind == "netcdf" else kind) as data:
            (variable,) = (one for one in data.data_vars.values() if "latitude" in one.dims)
            assert variable.shape[-2:] == some[0].grid.shape and variable.size == sum(f.values.size for f in some)
            for field in some:
                is_what = meaning(field)
                where = {"realization": is_what.number, "level": is_what.level}
                found = variable.sel({name: at for name, at in where.items() if name in variable.dims}).isel(time=0)
                np.testing.assert_array_equal(found.values, field.values.astype(np.float32))
                assert found.attrs["units"] and found.attrs["long_name"] != field.param


@pytest.mark.parametrize("name", FILES)
def test_as_a_table(shared: Path, tmp_path: Path, name: str) -> None:
    given = fields(shared / name)
    rows = list(csv.DictReader(io.StringIO(written(Output("csv"), tmp_path / "p", *given).read_text())))
    values = np.array([float(row["value"] or "nan") for row in rows])
    np.testing.assert_array_equal(values, np.concatenate([field.values.ravel() for field in given]))
    latitudes, longitudes = given[0].grid.points()
    places = [(float(row["latitude"]), float(row["longitude"])) for row in rows[: latitudes.size]]
    assert places == list(zip(latitudes, longitudes, strict=True))
    assert all(row["param"] and row["units"] for row in rows)


@pytest.mark.parametrize("name", FILES)
def test_as_a_map(shared: Path, tmp_path: Path, name: str) -> None:
    for number, field in enumerate(fields(shared / name)):
        path = written(Output("png", width=300), tmp_path / f"{number}.png", field)
        with Image.open(path) as picture:
            colours = picture.getcolors(picture.width * picture.height)
        assert (picture.mode, picture.width) == ("RGB", 300) and colours is not None and len(colours) > 100
