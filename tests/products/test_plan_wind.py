"""Winds in plans: both fields are waited for, and made as the closed form has them, or named when one did not come."""

from __future__ import annotations

from pathlib import Path

import eccodes
import numpy as np
import xarray
from grib_messages import gaussian, harmonics
from plan_runs import give, through

import junctura

_EARTH_M = 6371229.0
_SPIN = 1e-6
TURNS = """
sources: [{follow: stream=enfo}]
actions: [{wind: %s}]
sinks: [{file: {format: netcdf, name: "{param}_{step}_{number}.nc"}}]
"""


def spectral(param: str, values: np.ndarray) -> bytes:
    return harmonics(21, values, shortName=param)


def opened(path: Path) -> xarray.DataArray:
    with xarray.open_dataset(path) as data:
        (variable,) = (one for one in data.data_vars.values() if {"latitude", "cell"} & set(one.dims))
        return variable.load()


def test_winds_of_a_sphere_that_turns(tmp_path: Path) -> None:
    """Its vorticity is twice its spin times the sine of the latitude, a multiple of one function."""
    none = np.zeros(22 * 23)
    vorticity = none.copy()
    vorticity[2] = 2 * _SPIN / np.sqrt(3)

    def work(pool: junctura.Pool) -> None:
        for param, number in (("vo", 1), ("vo", 2), ("t", 3), ("d", 2), ("d", 1), ("d", 3)):
            message = spectral(param, vorticity if param == "vo" else none)
            if param == "t":
                message = gaussian(8, np.ones((16, 32)), shortName="t")
            give(pool, message, step=6, param=param, number=number)

    (ran,) = through(tmp_path, TURNS % "{grid: 5/5}", work)
    (told,) = ran.told
    assert "wind" in told and "number=3" in told and "vo did not come beside d (1 such)" in told
    made = sorted(path.name for path in (tmp_path / "out").glob("*.nc"))
    assert made == ["t_6_3.nc", "u_6_1.nc", "u_6_2.nc", "v_6_1.nc", "v_6_2.nc"]
    u, v = (opened(tmp_path / f"out/{param}_6_1.nc").squeeze() for param in "uv")
    expected = _SPIN * _EARTH_M * np.cos(np.radians(u.latitude)) * xarray.ones_like(u)
    assert np.allclose(u, expected, rtol=0, atol=2e-3) and np.allclose(v, 0, atol=1e-5)
    assert (u.attrs["units"], u.attrs["mars_param"]) == ("m s-1", "u")


def test_without_a_grid_vorticity_is_refused_by_name(tmp_path: Path) -> None:
    def work(pool: junctura.Pool) -> None:
        give(pool, spectral("vo", np.zeros(22 * 23)), step=6, param="vo", number=1)
        give(pool, gaussian(8, np.zeros((16, 32)), shortName="d"), step=6, param="d", number=1)

    (ran,) = through(tmp_path, TURNS % "{}", work)
    of_d, of_vo = sorted(ran.told)
    assert "it is on F8, and winds come of spectral fields" in of_d
    assert "winds on which grid? write wind: {grid: 0.5/0.5}" in of_vo


def rotated(param: str, value: float) -> bytes:
    handle = eccodes.codes_grib_new_from_samples("reduced_rotated_gg_pl_grib2")
    try:
        pole = {"latitudeOfSouthernPoleInDegrees": -90, "longitudeOfSouthernPoleInDegrees": 30}
        for key, said in {**pole, "shortName": param, "uvRelativeToGrid": 1}.items():
            eccodes.codes_set(handle, key, said)
        eccodes.codes_set_values(handle, np.full(6114, value))
        return bytes(eccodes.codes_get_message(handle))
    finally:
        eccodes.codes_release(handle)


def test_winds_along_a_grid_are_turned_when_both_are_there(tmp_path: Path) -> None:
    """About the pole of the globe itself nothing turns; winds that are not along their grid go on at once."""

    def work(pool: junctura.Pool) -> None:
        for number in (1, 2):
            give(pool, rotated("u", 12.0), step=6, param="u", number=number)
        give(pool, rotated("v", 5.0), step=6, param="v", number=1)
        give(pool, gaussian(8, np.ones((16, 32)), shortName="u"), step=6, param="u", number=3)

    (ran,) = through(tmp_path, TURNS % "{}", work)
    (told,) = ran.told
    assert "v did not come beside u (1 such)" in told
    made = sorted(path.name for path in (tmp_path / "out").glob("*.nc"))
    assert made == ["u_6_1.nc", "u_6_3.nc", "v_6_1.nc"]
    u, v = (opened(tmp_path / f"out/{param}_6_1.nc").squeeze() for param in "uv")
    assert np.allclose(u, 12, atol=1e-4) and np.allclose(v, 5, atol=1e-4)
