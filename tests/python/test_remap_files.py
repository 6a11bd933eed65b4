"""Files of weights for other programs: cdo brings a field to the other grid with ours, to the bit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import junctura
from junctura.remap import LonLat, Weights

netcdf = pytest.importorskip("netCDF4")
FILL = -9e33
SEA = np.ones((18, 36), np.bool_)
SEA[5:9, 10:20] = False


def computed(mask: Any, method: Any) -> Weights:
    try:
        return Weights.compute(LonLat.regular(36, 18, mask=mask), LonLat.regular(24, 12), method)
    except (ImportError, junctura.Unsupported) as error:
        pytest.skip(str(error))


def field(path: Path, mask: Any) -> npt.NDArray[np.float64]:
    """A file that cdo reads; what is in it."""
    grid = LonLat.regular(36, 18)
    values = np.random.default_rng(1).normal(280, 10, grid.shape)
    with netcdf.Dataset(path, "w", format="NETCDF3_CLASSIC") as data:
        for name, axis, units in (("lat", grid.lat, "degrees_north"), ("lon", grid.lon, "degrees_east")):
            data.createDimension(name, len(axis))
            variable = data.createVariable(name, "f8", (name,))
            variable.units = units
            variable[:] = axis
        data.createVariable("t", "f8", ("lat", "lon"), fill_value=FILL)[:] = np.where(mask, values, FILL)
    return np.where(mask, values, np.nan)


@pytest.mark.parametrize("method", ["conservative", "bilinear", "nearest"])
@pytest.mark.parametrize("mask", [None, SEA], ids=["all", "sea"])
def test_cdo_makes_of_a_field_what_we_make(tmp_path: Path, method: str, mask: Any) -> None:
    if shutil.which("cdo") is None:
        pytest.skip("cdo is not installed")
    weights = computed(mask, method)
    weights.write(tmp_path / "weights.nc", "scrip")
    values = field(tmp_path / "in.nc", SEA if mask is not None else True)
    command = ["cdo", "-s", f"remap,r24x12,{tmp_path}/weights.nc", f"{tmp_path}/in.nc", f"{tmp_path}/out.nc"]
    subprocess.run(command, check=True, capture_output=True)
    with netcdf.Dataset(tmp_path / "out.nc") as data:
        found = np.ma.filled(data["t"][:].astype(float), np.nan)
    np.testing.assert_array_equal(found, weights(values))


@pytest.mark.parametrize("form", ["esmf", "scrip"])
@pytest.mark.parametrize("method", ["conservative", "bilinear", "nearest"])
@pytest.mark.parametrize("mask", [None, SEA], ids=["all", "sea"])
def test_what_is_written_is_read(tmp_path: Path, form: Any, method: str, mask: Any) -> None:
    weights = computed(mask, method)
    weights.write(tmp_path / "weights.nc", form)
    found = Weights.read(tmp_path / "weights.nc")
    assert found == weights and (found.source_shape, found.target_shape) == ((18, 36), (12, 24))


def test_links_by_hand_are_added_up_and_grids_say_where_points_lie(tmp_path: Path) -> None:
    weights = Weights([0, 0, 1, 1], [0, 1, 2, 3], [0.5] * 4, (1, 4), (1, 2))
    source = LonLat([0, 90, 180, 270], [0], lat_bounds=[-90, 90])
    weights.write(tmp_path / "weights.nc", "scrip", source=source)
    with netcdf.Dataset(tmp_path / "weights.nc") as data:
        assert (data.conventions, data.normalization, data.map_method) == ("SCRIP", "none", "Bilinear remapping")
        assert data["src_grid_center_lon"][:].tolist() == [0, 90, 180, 270]
        assert data["dst_grid_center_lon"][:].tolist() == [0, 0]
    assert Weights.read(tmp_path / "weights.nc") == weights
    with pytest.raises(junctura.InvalidArgument, match="shape"):
        weights.write(tmp_path / "weights.nc", "scrip", target=source)
    with pytest.raises(junctura.InvalidArgument, match="'grib' is not one of esmf, scrip"):
        weights.write(tmp_path / "weights.nc", "grib")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_missing_is_compared_in_the_fields_own_precision(kind: str) -> None:
    weights = Weights([0, 0, 1, 1], [0, 1, 2, 3], [0.5] * 4, (4,), (2,))
    values = np.array([1, 2, 3, -999.9], kind)
    assert weights(values, missing=-999.9, norm="fracarea").tolist() == [1.5, 3.0]


def test_a_folder_of_many_long_names_costs_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def none_is_close(_: str, names: list[str], **__: object) -> list[str]:
        compared.extend(names)
        return []

    monkeypatch.setattr("junctura._near_file.difflib.get_close_matches", none_is_close)
    for number in range(300):
        (tmp_path / f"{number:0200}").touch()
    with pytest.raises(junctura.NotFound):
        Weights.read(tmp_path / f"{300:0200}")
    assert 0 < sum(200 * len(name) for name in compared) <= 1 << 20
    compared.clear()
    with pytest.raises(junctura.NotFound):
        Weights.read(tmp_path / "short.nc")
    assert len(compared) == 300
