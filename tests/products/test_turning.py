"""Winds along the rows of a grid turned to east and north: against the analytic rotation, and refused where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import eccodes
import grib_messages
import numpy as np
import pytest

from junctura._document.located_yaml import Wrong
from junctura.errors import InvalidArgument, Unsupported
from junctura.products import load_all
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import ToGrid, Turn, Winds
from junctura.products._regrid.grids import Grid, grid
from junctura.products._regrid.interpolate import to_grid
from junctura.products._workers.make_product import FieldTransforms

_POLE = (-35.0, 15.0)


def _message(sample: str, keys: dict[str, Any], param: str, size: int) -> bytes:
    handle = eccodes.codes_grib_new_from_samples(sample)
    try:
        for key, value in {**keys, "shortName": param, "uvRelativeToGrid": 1}.items():
            eccodes.codes_set(handle, key, value)
        eccodes.codes_set_values(handle, np.random.default_rng(len(param + sample)).normal(size=size))
        return bytes(eccodes.codes_get_message(handle))
    finally:
        eccodes.codes_release(handle)


def _rotated(ends: tuple[float, float, float, float], shape: tuple[int, int], **more: Any) -> dict[str, Any]:
    names = ("latitudeOfFirst", "longitudeOfFirst", "latitudeOfLast", "longitudeOfLast")
    keys = {f"{name}GridPointInDegrees": end for name, end in zip(names, ends, strict=True)}
    between = (abs(ends[3] - ends[1]) / (shape[1] - 1), abs(ends[0] - ends[2]) / (shape[0] - 1))
    keys |= {f"{axis}DirectionIncrementInDegrees": by for axis, by in zip("ij", between, strict=True)}
    return {**keys, "Nj": shape[0], "Ni": shape[1], "angleOfRotationInDegrees": 0, **_SOUTH, **more}


_SOUTH = {"latitudeOfSouthernPoleInDegrees": _POLE[0], "longitudeOfSouthernPoleInDegrees": _POLE[1]}
_LAMBERT = {
    "gridType": "lambert",
    "shapeOfTheEarth": 6,
    "Nx": 60,
    "Ny": 50,
    "DxInMetres": 30e3,
    "DyInMetres": 30e3,
    "Latin1InDegrees": 45,
    "Latin2InDegrees": 55,
    "LaDInDegrees": 50,
    "LoVInDegrees": 5,
    "numberOfValues": 3000,
    "latitudeOfFirstGridPointInDegrees": 42,
    "longitudeOfFirstGridPointInDegrees": 354,
    "numberOfDataPoints": 3000,
    "jScansPositively": 1,
}
_KINDS: dict[str, tuple[str, dict[str, Any], int]] = {
    "rotated area": ("rotated_ll_pl_grib2", _rotated((12, -15, -11, 15), (24, 31)), 744),
    "rotated area from south": ("rotated_ll_pl_grib2", _rotated((-11, -15, 12, 15), (24, 31), jScansPositively=1), 744),
    "rotated area from east": ("rotated_ll_pl_grib2", _rotated((12, 15, -11, -15), (24, 31), iScansNegatively=1), 744),
    "rotated globe": ("rotated_ll_pl_grib2", _rotated((90, 0, -90, 354), (31, 60)), 1860),
    "lambert": ("GRIB2", _LAMBERT, 3000),
    "reduced_rotated": ("reduced_rotated_gg_pl_grib2", _SOUTH, 6114),
    # Components are along increasing x and y (WMO, flag table 3.3), whichever way rows and columns go (3.4).
    "lambert from east": ("GRIB2", {**_LAMBERT, "iScansNegatively": 1}, 3000),
    "lambert from north": ("GRIB2", {**_LAMBERT, "jScansPositively": 0}, 3000),
    "lambert from northeast": ("GRIB2", {**_LAMBERT, "iScansNegatively": 1, "jScansPositively": 0}, 3000),
}


def _pair(kind: str) -> list[Field]:
    sample, keys, size = _KINDS[kind]
    return [decode(_message(sample, keys, param, size)) for param in ("u", "v")]


def _angle(kind: str, on: Grid, pole: tuple[float, float] = _POLE) -> Any:
    """From east to the direction of x, to the left, in radians; in closed form."""
    north, east = np.radians(on.latitudes), np.radians(on.longitudes)
    if kind.startswith("lambert"):
        one, other = np.radians([45.0, 55.0])
        half = [np.tan(np.pi / 4 + at / 2) for at in (one, other)]
        cone = np.log(np.cos(one) / np.cos(other)) / np.log(half[1] / half[0])
        return -cone * (np.mod(east - np.radians(5) + np.pi, 2 * np.pi) - np.pi)
    # North of the rotated sphere is towards its pole; x is 90 degrees to the right of that.
    pole_north, pole_east = np.radians(-pole[0]), np.radians(pole[1] + 180)
    to_east = np.cos(pole_north) * np.sin(pole_east - east)
    to_north = np.cos(north) * np.sin(pole_north) - np.sin(north) * np.cos(pole_north) * np.cos(pole_east - east)
    return np.arctan2(to_north, to_east) - np.pi / 2


@pytest.mark.parametrize("kind", _KINDS)
def test_winds_are_turned_by_the_analytic_angle(kind: str) -> None:
    given = _pair(kind)
    u, v = Turn()(given, FieldTransforms())
    angle = _angle(kind, given[0].grid)
    x, y = (field.values for field in given)
    expected = np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y
    if kind == "reduced_rotated":
        assert np.allclose([u.values, v.values], expected, rtol=0, atol=1e-9)
        return
    # At the poles of the rotated sphere the direction of x is that of a meridian which is no longer known.
    rows = given[0].grid.lines[0]
    some = np.ones(x.size, np.bool_).reshape(given[0].grid.lines)
    if kind == "rotated globe":
        some[[0, rows - 1]] = False
    # Neighbors of points at the rims of a projection are on one side.
    for made, theirs in zip((u, v), expected, strict=True):
        assert np.abs(made.values - theirs)[some.ravel()].max() < 3e-3, kind
        assert np.abs(made.values - theirs).reshape(some.shape)[2:-2, 2:-2].max() < 2e-5, kind
    assert np.allclose(np.hypot(u.values, v.values), np.hypot(x, y)) and "uvRelativeToGrid" not in u.attributes
    assert (u.param, v.param, u.units) == ("u", "v", given[0].units)


def test_a_wind_from_the_west_stays_one() -> None:
    given = _pair("rotated area")
    angle = _angle("rotated area", given[0].grid)
    along = [10 * np.cos(angle), -10 * np.sin(angle)]
    turned = Turn()([field.having(part) for field, part in zip(given, along, strict=True)], FieldTransforms())
    u, v = ToGrid("2/2")(turned, FieldTransforms())
    inside = ~np.isnan(u.values)
    assert inside.sum() > 50
    assert np.allclose(u.values[inside], 10, atol=0.01) and np.allclose(v.values[inside], 0, atol=0.01)


def test_a_component_along_the_grid_is_not_regridded() -> None:
    u, v = _pair("lambert")
    on = grid("2/2")
    assert isinstance(on, Grid)
    for field in (u, v):
        with pytest.raises(InvalidArgument, match=r"along the rows or columns of its grid: write wind: \{\} before"):
            to_grid(field, on)
    with pytest.raises(InvalidArgument, match="v is missing beside u"):
        Turn()([u], FieldTransforms())
    scalar = u.having(u.values, param="t")
    assert not np.isnan(to_grid(scalar, on).values).all()
    keys = {"gridType": "unstructured_grid", "numberOfDataPoints": 500, "numberOfValues": 500}
    fields = [decode(grib_messages._made("GRIB2", {**keys, "shortName": param}, np.zeros(500))) for param in "uv"]
    along = [field.having(field.values, uvRelativeToGrid=1) for field in fields]
    with pytest.raises(Unsupported, match="without rows cannot be turned"):
        Turn()(along, FieldTransforms())


def test_winds_to_east_and_north_stay_as_they_are() -> None:
    messages = [grib_messages.gaussian(8, np.random.default_rng(1).normal(size=(16, 32)), shortName=p) for p in "uv"]
    fields = [decode(message) for message in messages]
    assert Turn()(fields, FieldTransforms()) == fields


def test_the_file_of_a_rotated_globe(shared: Path) -> None:
    given = [decode(message) for message in grib_messages.messages(shared / "odd/rotated_wind_20x20.grib")]
    assert all(field.attributes["uvRelativeToGrid"] == 1 for field in given)
    made = Turn()(given, FieldTransforms())
    before, after = (np.hypot(u.values, v.values) for u, v in (given, made))
    assert np.allclose(before, after) and not np.allclose(made[0].values, given[0].values)
    # In closed form, but at the poles of the globe and of the rotated sphere.
    angle = _angle("rotated", given[0].grid, (-20.0, -40.0))
    x, y = (field.values for field in given)
    far = np.abs(given[0].grid.latitudes) < 88
    assert np.allclose(made[0].values[far], (np.cos(angle) * x - np.sin(angle) * y)[far], rtol=0, atol=1e-3)
    assert np.allclose(made[1].values[far], (np.sin(angle) * x + np.cos(angle) * y)[far], rtol=0, atol=1e-3)


def _recipe(folder: Path, param: str, do: str) -> Any:
    file = folder / "r.yaml"
    file.write_text(f"product: p\nfrom: {{param: {param}, step: 0}}\ndo: {do}\nto: {{format: netcdf, name: p.nc}}\n")
    (recipe,) = load_all([file])
    return recipe


def test_a_recipe_turns_winds(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, "[u, v]", "[{wind: {}}, {grid: 2/2}]")
    assert [type(operation) for operation in recipe.operations] == [Turn, ToGrid] and recipe.params == ("u", "v")
    spectral = _recipe(tmp_path, "[vo, d]", "[{wind: {}}, {grid: 2/2}]")
    assert [type(operation) for operation in spectral.operations] == [Winds, ToGrid]
    with pytest.raises((InvalidArgument, Wrong), match="both components of a wind"):
        _recipe(tmp_path, "[u, t]", "[{wind: {}}, {grid: 2/2}]")


def test_the_winds_of_a_file_on_a_cone(shared: Path) -> None:
    """A tangent cone (Latin1 = Latin2 = 25): the angle is the sine of that times the longitude from LoV (265)."""
    eccodes.codes_grib_multi_support_on()
    try:
        with (shared / "nam.t00z.awp21100.tm00.grib2").open("rb") as file:
            fields = []
            while (handle := eccodes.codes_grib_new_from_file(file)) is not None:
                if eccodes.codes_get(handle, "shortName") in ("u", "v") and eccodes.codes_get(handle, "level") == 500:
                    fields.append(decode(eccodes.codes_get_message(handle)))
                eccodes.codes_release(handle)
    finally:
        eccodes.codes_grib_multi_support_off()
    x, y = fields
    assert (x.param, y.param) == ("u", "v") and x.attributes["levelist"] == 500
    u, v = Turn()(fields, FieldTransforms())
    angle = -np.sin(np.radians(25)) * np.radians(np.mod(x.grid.longitudes - 265 + 180, 360) - 180)
    for made, theirs in (
        (u, np.cos(angle) * x.values - np.sin(angle) * y.values),
        (v, np.sin(angle) * x.values + np.cos(angle) * y.values),
    ):
        apart = np.abs(made.values - theirs).reshape(x.grid.lines)
        # Rows of points 81 km apart; at the rims their neighbors are on one side.
        assert apart[:, 1:-1].max() < 0.02 and apart.max() < 0.1
