"""Unstructured grids with the places of their points from a file, or from fields in the pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import eccodes
import numpy as np
import pytest
import xarray
from broker_runs import BASE, broker

import junctura
from junctura.errors import InvalidArgument
from junctura.products import load_all
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import ToGrid
from junctura.products._regrid.grids import Grid, directions, grid
from junctura.products._workers.make_product import FieldTransforms

netcdf = pytest.importorskip("netCDF4")
pytest.importorskip("scipy")
_COUNT = 3000


def _places() -> tuple[Any, Any]:
    """Points of a spiral around the globe, as far from one another as 3.7 degrees."""
    turns = np.arange(_COUNT) + 0.5
    north = np.degrees(np.arcsin(1 - 2 * turns / _COUNT))
    return north, np.mod(np.degrees(turns * np.pi * (1 + 5**0.5)), 360)


def _smooth(north: Any, east: Any) -> Any:
    return directions(north, east) @ [3.0, -4.0, 10.0]


def _message(values: Any, **keys: Any) -> bytes:
    handle = eccodes.codes_grib_new_from_samples("GRIB2")
    try:
        said = {"gridType": "unstructured_grid", "numberOfDataPoints": _COUNT, "numberOfValues": _COUNT}
        for key, value in {**said, "bitsPerValue": 24, **keys}.items():
            eccodes.codes_set(handle, key, value)
        eccodes.codes_set_values(handle, np.asarray(values, np.float64))
        return bytes(eccodes.codes_get_message(handle))
    finally:
        eccodes.codes_release(handle)


def _netcdf(path: Path, names: tuple[str, str], units: str, places: tuple[Any, Any]) -> Path:
    with netcdf.Dataset(path, "w") as data:
        data.createDimension("cell", len(places[0]))
        for name, values in zip(names, places, strict=True):
            variable = data.createVariable(name, "f8", ("cell",))
            variable[:] = np.radians(values) if units == "radian" else values
            variable.units = units
    return path


def _grib(path: Path, places: tuple[Any, Any]) -> Path:
    keys = {"discipline": 0, "parameterCategory": 191, "productDefinitionTemplateNumber": 0}
    messages = [_message(values, **keys, parameterNumber=number) for number, values in zip((1, 2), places, strict=True)]
    path.write_bytes(_message(np.zeros(_COUNT)) + b"".join(messages))
    return path


@pytest.mark.parametrize("kind", ["clat", "latitude", "grib"])
def test_places_come_from_a_file(tmp_path: Path, kind: str) -> None:
    places = _places()
    if kind == "grib":
        file = _grib(tmp_path / "c.grib2", places)
    else:
        names = ("clat", "clon") if kind == "clat" else ("latitude", "longitude")
        file = _netcdf(tmp_path / "c.nc", names, "radian" if kind == "clat" else "degrees_north", places)
    field = decode(_message(_smooth(*places)))
    on = grid("5/5")
    assert isinstance(on, Grid)
    truth = _smooth(*on.points()).reshape(on.shape)
    # Of a function that is linear in space, the sphere's curvature within a triangle of 3.7 degrees.
    bounds = {"linear": 11.2 * np.radians(3.7) ** 2 / 4, "nearest": 11.2 * np.radians(3.7), "conservative": 1.5}
    for method, bound in bounds.items():
        (made,) = ToGrid("5/5", method, coordinates=str(file))([field], FieldTransforms())  # type: ignore[arg-type]
        assert np.abs(made.values - truth).max() < bound, method


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    field = decode(_message(np.zeros(_COUNT)))

    def made(file: Path) -> Field:
        (one,) = ToGrid("5/5", "linear", coordinates=str(file))([field], FieldTransforms())
        return one

    north, east = _places()
    with pytest.raises(InvalidArgument, match=r"coordinates .*c.nc: 2999 points, but the field \S+ has 3000"):
        made(_netcdf(tmp_path / "c.nc", ("clat", "clon"), "radian", (north[1:], east[1:])))
    with pytest.raises(InvalidArgument, match="it has no latitudes and longitudes of one size: clat and clon"):
        made(_netcdf(tmp_path / "other.nc", ("x", "y"), "m", (north, east)))
    with pytest.raises(InvalidArgument, match="some are no latitudes"):
        made(_netcdf(tmp_path / "wide.nc", ("lat", "lon"), "m", (2 * north, east)))
    (tmp_path / "nonsense").write_text("nonsense")
    for name, cause in (("nonsense", "it cannot be read"), ("none", "No such file")):
        with pytest.raises(InvalidArgument, match=cause):
            made(tmp_path / name)


def test_a_recipe_names_the_file_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(
        "product: p\nfrom: {param: t, step: 0}\ndo:\n"
        "  - grid: {name: 5/5, coordinates: c.nc}\nto: {format: netcdf, name: p.nc}\n"
    )
    with pytest.raises(InvalidArgument, match=r"there is no file .*c\.nc"):
        load_all([file])
    _netcdf(tmp_path / "c.nc", ("clat", "clon"), "radian", _places())
    (recipe,) = load_all([file])
    (operation,) = recipe.operations
    assert isinstance(operation, ToGrid) and operation.coordinates == str(tmp_path / "c.nc")


def test_without_a_file_a_recipe_is_the_one_that_it_was() -> None:
    assert ToGrid("5/5").text == '{"grid":{"grid":"5/5","method":"linear","places":[]}}'


AXES = """product: p
from: {param: t, step: 0/6}
do:
  - grid: {name: 5/5, coordinates: {latitude: tlat, longitude: tlon}}
to: {format: netcdf, name: "{step}.nc"}
"""


@pytest.mark.parametrize("units", ["degrees", "radians"])
def test_places_come_from_fields_in_the_pool(tmp_path: Path, units: str) -> None:
    """As from a file: of step 0 alone, and beside such fields of another grid."""
    north, east = _places()
    values = _smooth(north, east)
    given = (np.radians(north), np.radians(east)) if units == "radians" else (north, east)
    (by_file,) = ToGrid("5/5", coordinates=str(_netcdf(tmp_path / "c.nc", ("lat", "lon"), "", (north, east))))(
        [decode(_message(values))], FieldTransforms()
    )
    on = decode(_message(values)).grid.name
    with junctura.Pool(schema="mars") as pool:
        for param, axis in zip(("tlat", "tlon"), given, strict=True):
            pool.offer(np.zeros(12), {**BASE, "param": param, "step": 0, "levelist": 1, "grid": "3x4@60/0/-60/270"})
            pool.offer(axis, {**BASE, "param": param, "step": 0, "grid": on, "units": units})
        for step in (0, 6):
            pool.offer(_message(values + step), {**BASE, "param": "t", "step": step})
        report = broker(tmp_path, pool, AXES).run()
    assert not report.failed, report.failed
    for step in (0, 6):
        with xarray.open_dataset(tmp_path / f"out/{step}.nc") as data:
            np.testing.assert_allclose(data.t.squeeze(), by_file.values + step, rtol=0, atol=1e-4)


def test_without_such_fields_a_product_is_not_made(tmp_path: Path) -> None:
    with junctura.Pool(schema="mars") as pool:
        for step in (0, 6):
            pool.offer(_message(np.zeros(_COUNT)), {**BASE, "param": "t", "step": step})
        report = broker(tmp_path, pool, AXES).run()
    assert len(report.failed) == 2
    assert all("no field tlat on its grid is in the pool: offer it before" in one.cause for one in report.failed)
    field = decode(_message(np.zeros(_COUNT)))
    regrid = ToGrid.read({"name": "5/5", "coordinates": {"latitude": "tlat", "longitude": "tlon"}})
    with pytest.raises(InvalidArgument, match="no field tlat on its grid is here: name a file of coordinates"):
        regrid([field], FieldTransforms())
