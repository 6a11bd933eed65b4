"""What GRIB adds to the keys of MARS needs no dimension where it follows from another one, or is one for a variable."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura

pytest.importorskip("eccodes")
xarray = pytest.importorskip("xarray")

from field_messages import message  # noqa: E402

# Of centres without MARS keys of their own.
_KWBC: dict[str, Any] = {"centre": "kwbc"}


def _dataset(path: Path, *messages: bytes, **options: Any) -> Any:
    file = path / "fields.grib"
    file.write_bytes(b"".join(messages))
    store = junctura.Store.from_grib(path / "store", file)
    assert len(store.list()) == len(messages)
    return xarray.open_dataset(store.path, engine="junctura", **options)


def _rain(steps: str, value: float, **more: Any) -> bytes:
    keys: dict[str, Any] = {"productDefinitionTemplateNumber": 8, "typeOfStatisticalProcessing": 1, "shortName": "tp"}
    return message("GRIB2", np.full(496, value), **_KWBC, **keys, stepRange=steps, **more)


def _layer(top: int, bottom: int, value: float, name: str = "st") -> bytes:
    """Of soil, from one depth to another in centimetres."""
    surfaces: dict[str, Any] = {}
    for which, depth in (("First", top), ("Second", bottom)):
        surfaces |= {
            f"typeOf{which}FixedSurface": 106,
            f"scaleFactorOf{which}FixedSurface": 2,
            f"scaledValueOf{which}FixedSurface": depth,
        }
    number = {"st": 2, "soilw": 192}[name]
    where: dict[str, Any] = {"discipline": 2, "parameterCategory": 0, "parameterNumber": number}
    return message("GRIB2", np.full(496, value), **_KWBC, **where, **surfaces)


def test_accumulations_of_each_hour_are_one_variable(tmp_path: Path) -> None:
    # The first one begins with the forecast, as the key says.
    data = _dataset(tmp_path, *(_rain(f"{hour}-{hour + 1}", hour) for hour in range(4)))
    rain = data[next(iter(data.data_vars))]
    assert rain.dims[0] == "step" and data.timespan.dims == ("step",)
    assert data.timespan.values.tolist() == ["fs", "1h", "1h", "1h"]
    np.testing.assert_array_equal(rain.step / np.timedelta64(1, "h"), [1, 2, 3, 4])
    np.testing.assert_array_equal(rain.values.reshape(4, -1)[:, 0], [0, 1, 2, 3])


def test_accumulations_since_the_start_have_no_coordinate_of_it(tmp_path: Path) -> None:
    data = _dataset(tmp_path, *(_rain(f"0-{hour}", hour) for hour in (3, 6, 9)))
    assert data.sizes["step"] == 3 and "timespan" not in data.coords


def test_two_ranges_with_one_end_have_a_dimension(tmp_path: Path) -> None:
    four = [_rain(steps, value) for value, steps in enumerate(["1-3", "2-3", "4-6", "5-6"])]
    data = _dataset(tmp_path, *four)
    rain = data[next(iter(data.data_vars))]
    assert set(rain.dims[:2]) == {"step", "timespan"}
    assert rain.sel(timespan="2h").values.reshape(2, -1)[:, 0].tolist() == [0, 2]


def test_layers_are_one_dimension(tmp_path: Path) -> None:
    edges = [0, 10, 40, 100, 200]
    layers = [_layer(top, bottom, top) for top, bottom in pairwise(edges)]
    data = _dataset(tmp_path, *layers)
    np.testing.assert_array_equal(data.level, [0, 0.1, 0.4, 1])
    assert data.bottomLevel.dims == ("level",)
    np.testing.assert_array_equal(data.bottomLevel, [0.1, 0.4, 1, 2])
    soil = data[next(iter(data.data_vars))]
    np.testing.assert_array_equal(soil.values.reshape(4, -1)[:, 0], [0, 10, 40, 100])


def test_layers_with_one_top_are_one_dimension(tmp_path: Path) -> None:
    data = _dataset(tmp_path, *(_layer(0, bottom, bottom) for bottom in (10, 40, 100)))
    soil = data[next(iter(data.data_vars))]
    assert soil.dims[0] == "bottomLevel"
    np.testing.assert_array_equal(soil.bottomLevel, [0.1, 0.4, 1])


def test_variables_that_differ_have_attributes(tmp_path: Path) -> None:
    heat = [_layer(0, 10, 1), _layer(10, 40, 2)]
    water = [_layer(0, 10, 3, "soilw"), _layer(10, 30, 4, "soilw")]
    data = _dataset(tmp_path, *heat, *water)
    assert "bottomLevel" not in data.coords
    bottoms = sorted(data[name].attrs["bottomLevel"] for name in data.data_vars)
    assert bottoms == [[0.1, 0.3], [0.1, 0.4]]
    data.to_netcdf(tmp_path / "out.nc")


def test_a_word_that_each_variable_has_once_is_an_attribute(tmp_path: Path) -> None:
    wind = message("GRIB2", np.zeros(496), **_KWBC, shortName="gust", stepRange="6")
    data = _dataset(tmp_path, _rain("0-6", 1), wind)
    words = {name: array.attrs.get("timespan") for name, array in data.data_vars.items()}
    assert sorted(map(str, words.values())) == ["fs", "none"]


def test_what_only_a_dropped_variable_has_is_nothing(tmp_path: Path) -> None:
    heat = message("GRIB2", np.zeros(496), shortName="t", typeOfFirstFixedSurface=100, level=500)
    data = _dataset(tmp_path, heat, *(_rain(f"{hour}-{hour + 1}", hour) for hour in range(2)), partial=True)
    rain = next(name for name in data.data_vars if name != "t")
    alone = xarray.open_dataset(tmp_path / "store", engine="junctura", drop_variables=[rain], partial=True)
    assert list(alone.data_vars) == ["t"] and "timespan" not in alone.t.coords


def test_a_selector_is_named_for_what_only_some_fields_have(tmp_path: Path) -> None:
    plain: dict[str, Any] = {"shortName": "t", "typeOfFirstFixedSurface": 100, "level": 500}
    member: dict[str, Any] = {
        "productDefinitionTemplateNumber": 1,
        "numberOfForecastsInEnsemble": 5,
        "perturbationNumber": 1,
    }
    both = [message("GRIB2", np.zeros(496), **_KWBC, **plain, **more) for more in (dict[str, Any](), member)]
    with pytest.raises(junctura.InvalidArgument, match=r"as exists\((\w+)\) or not exists\(\1\)") as raised:
        _dataset(tmp_path, *both)
    attribute = raised.value.cause.rpartition("exists(")[2].rstrip(")")
    for selector in (f"exists({attribute})", f"not exists({attribute})"):
        assert xarray.open_dataset(tmp_path / "store", engine="junctura", selector=selector).data_vars


def _member(number: int, kind: int) -> bytes:
    """Of an ensemble: type of code table 4.6, where 0 is the control and 3 a perturbed member."""
    ensemble: dict[str, Any] = {
        "typeOfEnsembleForecast": kind,
        "perturbationNumber": number,
        "numberOfForecastsInEnsemble": 3,
    }
    return message("GRIB2", np.full(496, number), **_KWBC, productDefinitionTemplateNumber=1, shortName="t", **ensemble)


def test_the_control_of_another_center_is_a_member_of_the_cube(tmp_path: Path) -> None:
    data = _dataset(tmp_path, _member(0, 0), _member(1, 3), _member(2, 3))
    assert data.t.dims[0] == "number" and data.number.values.tolist() == [0, 1, 2]
    assert data.variant.dims == ("number",) and data.variant.values.tolist() == ["ensemble-0", "", ""]
    np.testing.assert_array_equal(data.t.values.reshape(3, -1)[:, 0], [0, 1, 2])


def test_two_controls_of_one_number_are_told_apart_by_the_selector(tmp_path: Path) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match=r"as exists\(variant\) or not exists\(variant\)"):
        _dataset(tmp_path, _member(0, 0), _member(0, 1))
