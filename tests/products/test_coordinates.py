"""Unstructured grids with the places of their points from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import eccodes
import numpy as np
import pytest

from junctura.errors import InvalidArgument
from junctura.products import load_all
from junctura.products._decode import decode
from junctura.products._field import Field
from junctura.products._grid import Grid, directions, grid
from junctura.products._make import Transforms
from junctura.products._operations import ToGrid

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
        (made,) = ToGrid("5/5", method, coordinates=str(file))([field], Transforms())  # type: ignore[arg-type]
        assert np.abs(made.values - truth).max() < bound, method


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    field = decode(_message(np.zeros(_COUNT)))

    def made(file: Path) -> Field:
        (one,) = ToGrid("5/5", "linear", coordinates=str(file))([field], Transforms())
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
