"""Every file of fields that others wrote, from an archive through a run to files of every format.

A field goes the whole way: it is archived, found by a recipe, decoded by a worker, turned if it is a wind, brought to a
grid, cut out and written. What other libraries read is compared with what the operations make of the decoded message;
`test_real_operations.py` and `test_real_outputs.py` compare those with other computations.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xarray
from grib_messages import messages
from PIL import Image

import junctura
from junctura.errors import Error
from junctura.products import Broker, Report, load_all
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import Crop, ToGrid
from junctura.products._operations._places import Turn
from junctura.products._workers.make_product import FieldTransforms

pytestmark = pytest.mark.timeout(900)
Floats = npt.NDArray[np.float64]
FORMATS = ("netcdf", "zarr", "csv", "grib2", "png")
AREA = {"north": 72, "west": -25, "south": 34, "east": 45}
_NAMES = """
era5-levels-corrupted.grib era5-levels-members.grib fields_with_missing_values.grib lambert_grid.grib
nam.t00z.awp21100.tm00.grib2 reduced_gg.grib regular_gg_ml_g2.grib regular_gg_sfc.grib regular_ll_msl.grib
spherical_harmonics.grib t_analysis_and_fc_0.grib t_on_different_level_types.grib odd/alternate-scanning.grib
odd/cams-egg4-monthly.grib odd/cfrzr_and_cprat.grib odd/ds.waveh.5.grib odd/hdate.grib odd/mercator.grib
odd/rgg_small_subarea_cellarea_ref.grib odd/rotated_wind_20x20.grib odd/shifted_ll_subarea.grib
odd/single_gridpoint.grib odd/soil-surface-level-mix.grib odd/t_year_missing.grib
"""
NAMES = tuple(_NAMES.split())
WINDS = "odd/rotated_wind_20x20.grib"
# ecCodes has no level of edition 2 for this one of edition 1.
REFUSED = {("lambert_grid.grib", "grib2"): "field nlwrs: levtype 'heightAboveGround' is not one of sfc, pl"}


def sound(path: Path) -> Iterator[bytes]:
    """Messages that can be decoded."""
    for message in messages(path):
        try:
            decode(message)
        except Error:
            continue
        yield message


def ran(folder: Path, given: list[bytes], do: list[Any]) -> Report:
    """A recipe for each format, of fields that are archived."""
    file = folder / "given.grib"
    file.write_bytes(b"".join(given))
    store = junctura.Store.from_grib(folder / "store", file)
    listed = store.list("")
    said = {word: str(listed[0].attributes[word]) for word in ("step", "levelist", "number", "date", "time")
            if word in listed[0].attributes}  # fmt: skip
    params = [str(one["param"]) for one in listed]
    files = [folder / f"{form}.yaml" for form in FORMATS]
    for file, form in zip(files, FORMATS, strict=True):
        keep = [{"keep": params[0]}] if form == "png" and len(params) > 1 else []
        recipe: dict[str, Any] = {"product": form, "from": {"param": params, **said}, "do": [*do, *keep]}
        file.write_text(json.dumps({**recipe, "to": {"format": form, "name": f"p.{form}"}}))
    return Broker(load_all(files), None, folder / "out", store=store.url, workers=1).run()


def expected(given: list[bytes], method: Any, *, is_turned: bool) -> Floats:
    transforms, fields = FieldTransforms(), [decode(message) for message in given]
    turned: Any = Turn()(fields, transforms) if is_turned else fields
    made: list[Field] = Crop(**{side: float(at) for side, at in AREA.items()})(
        ToGrid("1/1", method)(turned, transforms), transforms
    )
    return np.stack([one.values for one in made])


def in_data_set(path: Path) -> Floats:
    with warnings.catch_warnings(), xarray.open_dataset(path, engine="zarr" if path.is_dir() else "netcdf4") as data:
        # Years before 1582.
        warnings.simplefilter("ignore")
        fields = (one for one in data.data_vars.values() if "latitude" in one.dims)
        return np.stack([one.values.reshape(one.shape[-2:]) for one in fields]).astype(float)


def in_table(path: Path) -> Floats:
    rows = csv.DictReader(io.StringIO(path.read_text()))
    return np.array([float(row["value"] or "nan") for row in rows])


def in_grib(path: Path) -> Floats:
    return np.stack([decode(message).values for message in messages(path)])


READ: dict[str, Callable[[Path], Floats]] = {
    "netcdf": in_data_set, "zarr": in_data_set, "csv": in_table, "grib2": in_grib
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_field_goes_from_an_archive_to_every_format_or_is_refused(shared: Path, tmp_path: Path, name: str) -> None:
    given = list(itertools.islice(sound(shared / name), 2 if name == WINDS else 1))
    method = "nearest" if min(decode(given[0]).on.shape) < 2 else "linear"
    do: list[Any] = [{"wind": {}}] if name == WINDS else []
    report = ran(tmp_path, given, [*do, {"grid": {"name": "1/1", "method": method}}, {"crop": AREA}])
    for one in report.failed:
        assert REFUSED[name, one.product] in one.cause
    assert {one.product for one in report.failed} == {form for file, form in REFUSED if file == name}
    values = expected(given, method, is_turned=name == WINDS)
    known = values[np.isfinite(values)]
    # Single precision, 16 bits of the extent, and as they are.
    largest, extent = (float(of(known)) if known.size else 0.0 for of in (lambda x: np.abs(x).max(), np.ptp))
    apart = {"netcdf": 1e-7 * largest, "zarr": 1e-7 * largest, "csv": 0.0, "grib2": extent / (1 << 16)}
    for made in report.made:
        if made.product == "png":
            with Image.open(made.path) as picture:
                assert picture.mode == "RGB" and len(picture.getcolors(picture.width * picture.height) or ()) > 3
            continue
        found = READ[made.product](made.path).reshape(values.shape)
        np.testing.assert_allclose(found, values, rtol=0, atol=apart[made.product])


def test_no_file_is_left_out(shared: Path) -> None:
    assert {str(path.relative_to(shared)) for path in shared.glob("**/*.grib*")} == set(NAMES)
