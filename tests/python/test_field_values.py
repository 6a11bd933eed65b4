"""Missing values of each packing are NaN, wherever values are read; what only looks like one is a value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import junctura
from junctura import field
from junctura._store import compare
from junctura.products._input.decoding import decode

eccodes = pytest.importorskip("eccodes")
xarray = pytest.importorskip("xarray")

from field_messages import asked, complex_packed, message, run_length_packed  # noqa: E402

Array = npt.NDArray[Any]
Made = tuple[bytes, Array]
_NAN = np.nan
# 31 rows of 16 points.
_SAMPLE = "regular_ll_pl_grib2"
_POINTS = 496


def _codes() -> list[int]:
    return [int(code) for code in 40 + 30 * np.sin(np.arange(_POINTS) / 7)]


def _complex(missing: dict[int, int], order: int) -> Callable[[], Made]:
    def make() -> Made:
        expected = np.array(_codes(), np.float64) + 280
        expected[list(missing)] = _NAN
        return complex_packed(message(_SAMPLE), _codes(), missing, order), expected

    return make


def _run_length() -> Made:
    levels = [0] * 300 + [1, 2, 2, 0, 3] + [3] * 191
    expected = np.array([_NAN, 10.5, 99.9, 999.9])[levels]
    return run_length_packed(message(_SAMPLE), levels, [105, 999, 9999]), expected


def _bitmap(packing: str, edition: int = 2) -> Callable[[], Made]:
    def make() -> Made:
        values = np.rint(280 + 40 * np.sin(np.arange(_POINTS) / 7))
        values[5:60] = _NAN
        values[77] = _NAN
        whole = message(f"regular_ll_pl_grib{edition}", values, bitsPerValue=16)
        handle = eccodes.codes_new_from_message(whole)
        eccodes.codes_set(handle, "packingType", packing)
        content = bytes(eccodes.codes_get_message(handle))
        eccodes.codes_release(handle)
        assert asked(content, "packingType").startswith(packing) and asked(content, "bitmapPresent")
        return content, values

    return make


def _constant(value: float) -> Callable[[], Made]:
    def make() -> Made:
        values = np.full(_POINTS, value)
        values[::3] = _NAN
        return message(_SAMPLE, values), values

    return make


def _all_missing() -> Made:
    values = np.full(_POINTS, _NAN)
    return message(_SAMPLE, values), values


_SOME = {2: 1, 3: 1, **dict.fromkeys(range(10, 20), 1), 333: 1}
_BOTH = {**_SOME, 3: 2, **dict.fromkeys(range(40, 45), 2), 100: 2}
_CASES: dict[str, Callable[[], Made]] = {
    "complex without missing values": _complex({}, 0),
    "complex, primary": _complex(_SOME, 0),
    "complex, primary and secondary": _complex(_BOTH, 0),
    "complex, secondary only": _complex({7: 2, 8: 2}, 0),
    "complex, the first ones": _complex({0: 1, 1: 2}, 0),
    "first differences": _complex({}, 1),
    "first differences, primary": _complex(_SOME, 1),
    "first differences, primary and secondary": _complex(_BOTH, 1),
    "second differences": _complex({}, 2),
    "second differences, primary": _complex(_SOME, 2),
    "second differences, primary and secondary": _complex(_BOTH, 2),
    "second differences, the first ones": _complex({0: 1, 1: 1, 2: 2}, 2),
    "run length": _run_length,
    **{f"{packing} with bitmap": _bitmap(f"grid_{packing}") for packing in ("simple", "ccsds", "jpeg", "png", "ieee")},
    "complex with bitmap": _bitmap("grid_complex"),
    "second differences with bitmap": _bitmap("grid_complex_spatial_differencing"),
    "edition 1, simple with bitmap": _bitmap("grid_simple", 1),
    "edition 1, second order with bitmap": _bitmap("grid_second_order", 1),
    "constant with bitmap": _constant(280.0),
    "constant 9999 with bitmap": _constant(9999.0),
    "all missing": _all_missing,
}


def _same(found: Any, expected: Array) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float64).reshape(-1), expected, rtol=1e-6, atol=2e-3)


@pytest.mark.parametrize("case", _CASES)
def test_missing_values_are_nan_wherever_values_are_read(tmp_path: Path, case: str) -> None:
    content, expected = _CASES[case]()
    _same(field.field_of(content).values, expected)
    file = tmp_path / "one.grib"
    file.write_bytes(content)
    store = junctura.Store.from_grib(tmp_path / "store", file)
    data = xarray.open_dataset(store.path, engine="junctura")
    _same(data[next(iter(data.data_vars))].values, expected)
    _same(store.list()[0].to_xarray().values, expected)
    compared = compare._values(store.list()[0])
    assert compared is not None
    _same(compared.values, expected)


@pytest.mark.parametrize("case", _CASES)
def test_products_have_the_same_missing_values(case: str) -> None:
    content, expected = _CASES[case]()
    found = decode(content)
    assert np.isnan(found.values).sum() == np.isnan(expected).sum()
    _same(found.values, expected)


@pytest.mark.parametrize("value", [9999.0, -1e34, 1e34, -9999.0, 1e20, 3.4e38, -1e100])
@pytest.mark.parametrize("has_missing", [False, True])
def test_a_value_that_others_use_for_missing_is_a_value(value: float, has_missing: bool) -> None:
    values = np.arange(_POINTS, dtype=np.float64)
    values[7] = value
    content = message(_SAMPLE, np.zeros(_POINTS), packingType="grid_ieee", precision=2)
    handle = eccodes.codes_new_from_message(content)
    if has_missing:
        values[:5] = _NAN
        eccodes.codes_set(handle, "bitmapPresent", 1)
        eccodes.codes_set(handle, "missingValue", 123456.0)
    eccodes.codes_set_values(handle, np.where(np.isnan(values), 123456.0, values))
    content = bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    found = field.field_of(content).values.reshape(-1)
    assert np.isnan(found).sum() == (5 if has_missing else 0)
    assert found[7] == value and found[8] == 8.0


def test_a_comparison_finds_values_that_are_missing_in_one_of_two(tmp_path: Path) -> None:
    codes = _codes()
    stores = []
    for name, missing in (("one", {3: 1}), ("two", {3: 1, 4: 1}), ("three", {3: 2})):
        file = tmp_path / f"{name}.grib"
        file.write_bytes(complex_packed(message(_SAMPLE), codes, missing))
        stores.append(junctura.Store.from_grib(tmp_path / name, file))
    one, two, three = (store.list() for store in stores)
    assert list((junctura.compare(one, two, atol=0.0).values or {}).values()) == [np.inf]
    assert junctura.compare(one, three, atol=0.0).is_same
