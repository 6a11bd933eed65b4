"""Simple packing is unpacked natively: each value has the bits that ecCodes' has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from python_stores import DATA

import junctura
from junctura import field
from junctura._native import _sections, _simple_points, _unpack, _with_values

eccodes = pytest.importorskip("eccodes")

from field_messages import asked, message  # noqa: E402

_FILES = sorted({*DATA.glob("*.grib"), *DATA.glob("*.grib2"), *DATA.glob("odd/*.grib"), *DATA.glob("odd/*.grib2")})


def _by_eccodes(content: bytes) -> Any:
    return field.decoded(content, field.values_of)


def _compared(content: bytes) -> None:
    expected = _by_eccodes(content)
    unpacked = field.values_of_simple(content)
    assert unpacked is not None and unpacked.dtype == np.float64
    np.testing.assert_array_equal(
        unpacked.view(np.uint64)[~np.isnan(expected)], expected.view(np.uint64)[~np.isnan(expected)]
    )
    np.testing.assert_array_equal(np.isnan(unpacked), np.isnan(expected))
    single = field.values_of_simple(content, np.float32)
    assert single is not None and single.dtype == np.float32
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(single, expected.astype(np.float32))


@pytest.mark.parametrize("edition", [1, 2])
@pytest.mark.parametrize("bits", range(1, 33))
@pytest.mark.parametrize("missing", [0, 7])
def test_every_width_of_integers(edition: int, bits: int, missing: int) -> None:
    random = np.random.default_rng(bits)
    values = random.normal(280.0, 30.0, 496)
    values[random.choice(496, missing * 10, replace=False)] = np.nan
    _compared(message(f"regular_ll_pl_grib{edition}", values, bitsPerValue=bits))


@pytest.mark.parametrize("edition", [1, 2])
@pytest.mark.parametrize("decimals", [-3, -1, 0, 1, 2, 5])
@pytest.mark.parametrize("size", [1e-30, 1e-9, 1.0, 1e3])
def test_scales(edition: int, decimals: int, size: float) -> None:
    values = size * np.random.default_rng(1).normal(0.5, 1.0, 496)
    _compared(message(f"regular_ll_pl_grib{edition}", values, bitsPerValue=13, decimalScaleFactor=decimals))


@pytest.mark.parametrize(("binary", "decimal"), [(-40, 3), (-7, -7), (0, 30), (60, -30), (100, 100), (-126, -120)])
@pytest.mark.parametrize("edition", [1, 2])
def test_stated_scales(edition: int, binary: int, decimal: int) -> None:
    content = message(f"regular_ll_pl_grib{edition}", np.linspace(200.0, 300.0, 496), bitsPerValue=16)
    starts = dict(_sections(content))
    binary_at, decimal_at = (starts[4] + 4, starts[1] + 26) if edition == 1 else (starts[5] + 15, starts[5] + 17)
    stated = bytearray(content)
    for at, scale in ((binary_at, binary), (decimal_at, decimal)):
        stated[at : at + 2] = (abs(scale) | (scale < 0) << 15).to_bytes(2, "big")
    _compared(bytes(stated))


@pytest.mark.parametrize("values", [np.full(496, 5.25), np.full(496, np.nan)], ids=["constant", "all missing"])
def test_fields_without_integers_are_for_eccodes(values: Any) -> None:
    content = message("regular_ll_pl_grib2", values, bitsPerValue=16)
    np.testing.assert_array_equal(field.values_in(content), values)


@pytest.mark.parametrize(
    "packing", ["grid_ccsds", "grid_ieee", "grid_complex", "grid_png", "grid_simple_log_preprocessing"]
)
def test_other_packings_are_for_eccodes(packing: str) -> None:
    content = message("regular_ll_pl_grib2", np.linspace(1.0, 2.0, 496), bitsPerValue=16, packingType=packing)
    assert _simple_points(content) is None
    np.testing.assert_array_equal(field.values_in(content), _by_eccodes(content))
    with pytest.raises(junctura.errors.InvalidArgument):
        _unpack(content, np.empty(496))


@pytest.mark.parametrize(
    "array", [np.empty(495), np.empty(497), np.empty(496, np.float16), np.empty(496, np.int64)[::2]]
)
def test_memory_that_does_not_fit_is_refused(array: Any) -> None:
    content = message("regular_ll_pl_grib2", np.linspace(1.0, 2.0, 496), bitsPerValue=16)
    with pytest.raises((junctura.errors.InvalidArgument, BufferError)):
        _unpack(content, array)


def test_damaged_messages_are_not_unpacked() -> None:
    content = message("regular_ll_pl_grib2", np.linspace(1.0, 2.0, 496), bitsPerValue=16)
    with pytest.raises(junctura.errors.Corrupt):
        field.values_in(content[:-10])
    wider = bytearray(content)
    wider[wider.index(b"\x00\x00\x00\x15\x05") + 19] = 32
    with pytest.raises(junctura.errors.Corrupt):
        field.values_in(bytes(wider))


@pytest.mark.skipif(not _FILES, reason=f"no files in {DATA}")
@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.name))
def test_messages_of_real_files(path: Any) -> None:
    with path.open("rb") as file:
        for _ in range(20):
            try:
                handle = eccodes.codes_grib_new_from_file(file)
            except eccodes.CodesInternalError:
                continue
            if handle is None:
                break
            content = bytes(eccodes.codes_get_message(handle))
            eccodes.codes_release(handle)
            if _simple_points(content) is not None:
                _compared(content)


def _encoded(values: Any, bits: int) -> bytes:
    """By ecCodes."""
    return message("regular_ll_pl_grib2", values, bitsPerValue=bits)


_SCALES = [(280.0, 30.0), (0.0, 1e-12), (1e5, 3.0), (-1e12, 1e11), (0.5, 0.25)]


@pytest.mark.parametrize("bits", [1, 2, 7, 8, 10, 12, 16, 17, 24, 25, 31, 32])
@pytest.mark.parametrize("missing", [0, 1, 300])
@pytest.mark.parametrize(("middle", "width"), _SCALES)
def test_values_are_encoded_as_by_eccodes(bits: int, missing: int, middle: float, width: float) -> None:
    random = np.random.default_rng(bits + missing)
    values = middle + width * random.normal(size=496)
    values[random.choice(496, missing, replace=False)] = np.nan
    expected = _encoded(values, bits)
    found = _with_values(_encoded(np.zeros(496), 16), values, bits)
    assert found is not None
    keys = ("referenceValue", "binaryScaleFactor", "decimalScaleFactor", "bitsPerValue", "numberOfValues")
    for key in (*keys, "numberOfDataPoints", "bitmapPresent", "totalLength", "section7Length", "shortName"):
        assert asked(found, key) == asked(expected, key), key
    np.testing.assert_array_equal(_by_eccodes(found), _by_eccodes(expected))
    starts, theirs = dict(_sections(found)), dict(_sections(expected))
    assert found[starts[6] :] == expected[theirs[6] :]


@pytest.mark.parametrize(
    "values", [np.zeros(496), np.full(496, np.nan), np.array([0.0, np.inf]), np.array([0.0, 1e300])], ids=range(4)
)
def test_what_has_no_simple_packing_is_for_eccodes(values: Any) -> None:
    assert _with_values(_encoded(np.arange(496), 16), values, 16) is None


def test_only_messages_of_edition_2_in_simple_packing_get_other_values() -> None:
    values = np.arange(496.0)
    assert _with_values(message("regular_ll_pl_grib1", values), values, 16) is None
    assert _with_values(message("regular_ll_pl_grib2", values, packingType="grid_ccsds"), values, 16) is None
    with pytest.raises(junctura.errors.InvalidArgument):
        _with_values(_encoded(values, 16), np.arange(10.0)[::2], 16)
