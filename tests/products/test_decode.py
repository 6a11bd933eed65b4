"""Messages as fields: every kind of grid, every order of points, and what is no message."""

from __future__ import annotations

import collections
import contextlib
import threading
from pathlib import Path
from typing import Any

import eccodes
import grib_messages
import numpy as np
import pytest

from junctura.errors import Corrupt, Error, Unsupported
from junctura.products._input.decoding import decode, decodes
from junctura.products._regrid.grids import Grid, grid

_RNG = np.random.default_rng(7)
# Of 24 bits over a range of some 10.
_PACKED = 1e-6


_FILES = {
    "era5-levels-corrupted.grib": {"Corrupt": 1, "3/3": 1},
    "era5-levels-members.grib": {"3/3": 160},
    "fields_with_missing_values.grib": {"2/2": 2},
    "lambert_grid.grib": {"lambert": 1},
    "nam.t00z.awp21100.tm00.grib2": {"lambert": 126, "a field without a name": 1, "Unsupported": 27},
    "reduced_gg.grib": {"N48": 1},
    "regular_gg_ml_g2.grib": {"F80": 3},
    "regular_gg_sfc.grib": {"F48": 1},
    "regular_ll_msl.grib": {"1/1": 1},
    "spherical_harmonics.grib": {"T63": 1},
    "t_analysis_and_fc_0.grib": {"5/5": 1},
    "t_on_different_level_types.grib": {"5/5": 2},
    "odd/alternate-scanning.grib": {"0.1/0.1@51/-10/34/19": 1},
    "odd/cams-egg4-monthly.grib": {"27x27@9.5/-10/-10/9.5": 4},
    "odd/cfrzr_and_cprat.grib": {"45x90@88/0/-88/356": 4},
    "odd/ds.waveh.5.grib": {"mercator": 1},
    "odd/hdate.grib": {"5/5": 1},
    "odd/mercator.grib": {"mercator": 1},
    "odd/rgg_small_subarea_cellarea_ref.grib": {"reduced_gg": 1},
    "odd/rotated_wind_20x20.grib": {"rotated_ll": 2},
    "odd/shifted_ll_subarea.grib": {"11x19@73/-27/33/45": 2},
    "odd/single_gridpoint.grib": {"1x1@51.07/7.27/51.07/7.27": 6},
    "odd/soil-surface-level-mix.grib": {"2/2@50/0/40/10": 10},
    "odd/t_year_missing.grib": {"30/30": 1},
}


@pytest.mark.parametrize("name", _FILES)
def test_every_field_of_a_file_is_decoded_or_refused_by_name(shared: Path, name: str) -> None:
    found: collections.Counter[str] = collections.Counter()
    for message in grib_messages.messages(shared / name):
        found[_outcome(message)] += 1
    assert found == _FILES[name]


def _outcome(message: bytes) -> str:
    """The grid of a message, or what kind of error it gives."""
    try:
        field = decode(message)
    except Error as error:
        return error.code if error.subject and error.cause else "an error that does not say what it is about"
    # Of a grid whose points are listed only the kind.
    return field.on.name.partition(":")[0] if field.units and field.param != "?" else "a field without a name"


def test_no_file_is_forgotten(shared: Path) -> None:
    assert {str(path.relative_to(shared)) for path in shared.rglob("*.grib*")} == set(_FILES)


def test_missing_values_of_a_file_are_not_numbers(shared: Path) -> None:
    field = decode(next(grib_messages.messages(shared / "fields_with_missing_values.grib")))
    assert np.isnan(field.values).sum() == 10808
    assert 150 < np.nanmin(field.values) < np.nanmax(field.values) < 350


def test_attributes_are_those_of_the_message_or_those_given() -> None:
    message = grib_messages.gaussian(8, _RNG.normal(size=(16, 32)), shortName="u", level=500, step=6)
    told = decode(message)
    expected = {"param": "u", "paramId": 131, "levelist": 500, "step": 6, "levtype": "pl"}
    assert expected.items() <= told.attributes.items() and told.units == "m s**-1"
    assert decode(message, {"param": "x"}).attributes == {"param": "x"}


@pytest.mark.parametrize("given", [None, {"param": "mx2t6", "step": 12}])
def test_what_happens_over_a_range_of_steps_comes_with_the_field(given: dict[str, Any] | None) -> None:
    keys = {"shortName": "mx2t6", "stepRange": "6-12"}
    message = grib_messages.latlon(7, 12, _ENDS, _RNG.normal(size=(7, 12)), **keys)
    assert {"param": "mx2t6", "step": 12, "stepType": "max", "stepStart": "6"}.items() <= decode(
        message, given
    ).attributes.items()
    assert decode(message, {"stepType": "avg"}).attributes["stepType"] == "avg"


_SAID: list[dict[str, Any]] = [
    {"shortName": "t"},
    {"shortName": "t", "step": 6},
    {"shortName": "t", "productDefinitionTemplateNumber": 1, "number": 3},
    {"shortName": "u", "productDefinitionTemplateNumber": 1, "number": 3},
    {"shortName": "gh", "step": 6},
    {"shortName": "tp", "stepRange": "0-6"},
    {"shortName": "tp", "stepRange": "0-12"},
    {"shortName": "mx2t6", "stepRange": "6-12"},
    {"shortName": "mx2t6", "stepRange": "6-12", "productDefinitionTemplateNumber": 11, "number": 3},
]


def test_a_member_of_another_centre_has_its_number() -> None:
    about = {"centre": "kwbc", "productDefinitionTemplateNumber": 1, "perturbationNumber": 5, "shortName": "t"}
    message = grib_messages.latlon(7, 12, (90, 0, -90, 330), np.zeros((7, 12)), **about)
    assert decode(message).attributes["number"] == 5
    assert decode(message, {"param": "t", "number": 2}).attributes["number"] == 2
    assert "number" not in decode(message, {"param": "t", "type": "cf"}).attributes


def test_a_monthly_mean_without_a_step_has_its_valid_time() -> None:
    about = {"edition": 1, "date": 20180101, "time": 0, "step": 744, "shortName": "t"}
    message = grib_messages.latlon(7, 12, (90, 0, -90, 330), np.zeros((7, 12)), **about)
    said = {"param": "t", "date": "2018-01-01", "time": "00:00"}
    assert decode(message, said).attributes["step"] == "744"
    # Where MARS counts from another day.
    for date in (20180201, 801):
        assert "step" not in decode(message, {**said, "date": date}).attributes


def test_what_one_parameter_says_is_not_taken_for_another() -> None:
    for said in _SAID * 2:
        assert_units_are_those_of(grib_messages.latlon(7, 12, _ENDS, range(84), **said))


@pytest.mark.parametrize("name", _FILES)
def test_the_units_of_a_file_are_those_that_eccodes_says(shared: Path, name: str) -> None:
    for message in grib_messages.messages(shared / name):
        with contextlib.suppress(Error):
            assert_units_are_those_of(message)


def assert_units_are_those_of(message: bytes) -> None:
    field = decode(message, {"param": "any"})
    handle = eccodes.codes_new_from_message(message)
    try:
        kind = eccodes.codes_get_string(handle, "stepType") if eccodes.codes_is_defined(handle, "stepType") else ""
        units = eccodes.codes_get_string(handle, "units")
        assert field.units == ("" if units == "unknown" else units)
        assert field.attributes.get("stepType") == (kind if kind in ("accum", "avg", "max", "min") else None)
    finally:
        eccodes.codes_release(handle)


def test_a_view_is_as_good_as_bytes() -> None:
    message = grib_messages.gaussian(8, _RNG.normal(size=(16, 32)))
    assert (decode(memoryview(message)).values == decode(message).values).all()


_ENDS = (90.0, 0.0, -90.0, 330.0)


@pytest.mark.parametrize("scanning", range(16))
@pytest.mark.parametrize("edition", [1, 2])
def test_any_order_of_points_becomes_that_of_the_grid(edition: int, scanning: int) -> None:
    west, south, by_column, in_turns = (bool(scanning & bit) for bit in (1, 2, 4, 8))
    if edition == 1 and in_turns:
        pytest.skip("edition 1 has no rows in turns")
    values = _RNG.normal(size=(7, 12))
    given = values[:, ::-1] if west else values
    given = given[::-1] if south else given
    given = given.T.copy() if by_column else given.copy()
    if in_turns:
        given[1::2] = given[1::2, ::-1].copy()
    first_lat, last_lat = (-90, 90) if south else (90, -90)
    first_lon, last_lon = (330, 0) if west else (0, 330)
    keys = {
        "iScansNegatively": int(west),
        "jScansPositively": int(south),
        "jPointsAreConsecutive": int(by_column),
        "iDirectionIncrementInDegrees": 30,
        "jDirectionIncrementInDegrees": 30,
    }
    if edition == 2:
        keys["alternativeRowScanning"] = int(in_turns)
    ends = (first_lat, first_lon, last_lat, last_lon)
    field = decode(grib_messages.latlon(7, 12, ends, given, edition=edition, **keys))
    assert field.on == grid("30/30")
    assert np.allclose(field.values, values, rtol=0, atol=_PACKED)


def test_a_globe_that_begins_elsewhere_is_turned() -> None:
    values = _RNG.normal(size=(7, 12))
    turned = np.roll(values, 6, axis=1)
    field = decode(grib_messages.latlon(7, 12, (90, 180, -90, 150), turned))
    assert field.on == grid("30/30") and np.allclose(field.values, values, rtol=0, atol=_PACKED)


@pytest.mark.parametrize(("west", "east"), [(0, 360), (-180, 180), (180, 540)])
def test_a_globe_with_one_meridian_at_both_ends_has_it_once(west: int, east: int) -> None:
    values = _RNG.normal(size=(7, 12))
    from_west = np.roll(values, -west // 30, axis=1)
    twice = np.hstack([from_west, from_west[:, :1]])
    field = decode(grib_messages.latlon(7, 13, (90, west, -90, east), twice))
    assert field.on == grid("30/30") and np.allclose(field.values, values, rtol=0, atol=_PACKED)
    twice[0, -1] += 1
    with pytest.raises(Unsupported, match="on one meridian and differ"):
        decode(grib_messages.latlon(7, 13, (90, west, -90, east), twice))


@pytest.mark.parametrize(
    ("ends", "shape", "name"),
    [
        ((72, 335, 34, 45), (77, 141), "0.5/0.5@72/-25/34/45"),
        ((30, 0, -30, 359.5), (121, 720), "0.5/0.5@30/0/-30/359.5"),
        ((50, 200, 40, 210), (11, 11), "1/1@50/-160/40/-150"),
    ],
)
def test_an_area_is_named(ends: tuple[float, float, float, float], shape: tuple[int, int], name: str) -> None:
    values = _RNG.normal(size=shape)
    field = decode(grib_messages.latlon(*shape, ends, values))
    assert field.on == grid(name) and np.allclose(field.values, values, rtol=0, atol=_PACKED)


@pytest.mark.parametrize("edition", [1, 2])
def test_an_area_of_a_third_of_a_degree_is_named_whatever_edition_rounds(edition: int) -> None:
    # 11 rows from 10 1/3 to 7 and 7 columns from 1/3 to 2 1/3.
    values = _RNG.normal(size=(11, 7))
    field = decode(grib_messages.latlon(11, 7, (10 + 1 / 3, 1 / 3, 7, 2 + 1 / 3), values, edition=edition))
    assert isinstance(field.on, Grid) and field.on == grid(field.on.name)
    assert np.allclose([field.on.latitudes[0], field.on.longitudes[-1]], [10 + 1 / 3, 2 + 1 / 3], rtol=0, atol=1e-6)
    assert np.allclose(field.values, values, rtol=0, atol=_PACKED)


def test_an_area_of_gaussian_rows_is_named() -> None:
    whole = grid("F48")
    assert isinstance(whole, Grid)
    area = whole.crop(72, -25, 34, 45)
    ends = {
        "latitudeOfFirstGridPointInDegrees": area.latitudes[0],
        "latitudeOfLastGridPointInDegrees": area.latitudes[-1],
        "longitudeOfFirstGridPointInDegrees": 360 + area.longitudes[0],
        "longitudeOfLastGridPointInDegrees": area.longitudes[-1],
    }
    values = _RNG.normal(size=area.shape)
    keys = {"Nj": area.shape[0], "Ni": area.shape[1], **ends}
    field = decode(grib_messages.gaussian(48, values, **keys))
    assert isinstance(field.on, Grid) and field.on.shape == area.shape and field.on.name.startswith("F48@")
    assert np.allclose(field.on.latitudes, area.latitudes) and np.allclose(field.on.longitudes, area.longitudes)
    assert np.allclose(field.values, values, rtol=0, atol=_PACKED)


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("180x360@89.5/0.5/-89.5/359.5", (89.5, 0.5, -89.5, 359.5)),
        ("11x11@50.2/0/40.2/10", (50.2, 0, 40.2, 10)),
        ("1x11@50/0/50/10", (50, 0, 50, 10)),
        ("11x1@50/3/40/3", (50, 3, 40, 3)),
        ("1x1@51.07/7.27/51.07/7.27", (51.07, 7.27, 51.07, 7.27)),
        ("11x19@73/-27/33/45", (73, 333, 33, 45)),
        ("3x5@10/-170/4/-130", (10, 190, 4, 230)),
    ],
)
def test_rows_that_are_none_of_a_whole_grid_are_named_by_their_ends(
    name: str, ends: tuple[float, float, float, float]
) -> None:
    rows, columns = map(int, name.partition("@")[0].split("x"))
    values = _RNG.normal(size=(rows, columns))
    field = decode(grib_messages.latlon(rows, columns, ends, values))
    assert field.on == grid(name) and np.allclose(field.values, values, rtol=0, atol=_PACKED)


def test_several_rows_on_one_parallel_are_refused() -> None:
    with pytest.raises(Corrupt, match="5 rows from 10"):
        decode(grib_messages.latlon(5, 5, (10, 3, 10, 7), np.zeros((5, 5))))


@pytest.mark.parametrize(
    ("template", "cause"),
    [
        (51, "grid rotated_sh: fields of this kind are not read"),
        # Curvilinear; ecCodes has no name for it.
        (204, "grid of template 3.204: fields of this kind are not read"),
    ],
)
def test_other_grids_are_refused_by_name(template: int, cause: str) -> None:
    with pytest.raises(Unsupported, match=f"^{cause}$"):
        decode(grib_messages.on_template(template))


@pytest.mark.parametrize("template", [1, 2, 10, 20, 30, 41, 90, 150])
def test_a_section_that_is_none_of_its_template_is_refused(template: int) -> None:
    with pytest.raises(Error) as raised:
        decode(grib_messages.on_template(template))
    assert raised.value.subject and raised.value.cause


def test_missing_values_stay_missing() -> None:
    values = _RNG.normal(size=(16, 32))
    values[3:5, ::2] = np.nan
    field = decode(grib_messages.gaussian(8, values))
    assert (np.isnan(field.values) == np.isnan(values)).all()
    assert np.isnan(decode(grib_messages.gaussian(8, np.full((16, 32), np.nan))).values).all()


def test_spherical_harmonics_are_as_grib_has_them() -> None:
    named = grid("T21")
    coefficients = _RNG.normal(size=named.size)
    # What does not change along a row has no imaginary part.
    coefficients[1:44:2] = 0
    field = decode(grib_messages.harmonics(21, coefficients))
    assert field.on == named and np.allclose(field.values, coefficients, rtol=0, atol=1e-5)


def test_a_number_of_columns_that_nothing_has_takes_no_memory() -> None:
    message = bytearray(grib_messages.latlon(7, 12, _ENDS, _RNG.normal(size=(7, 12))))
    assert message[67:71] == (12).to_bytes(4, "big")
    message[67] = 8
    with pytest.raises(Corrupt, match="points"):
        decode(bytes(message))


def test_several_fields_in_one_message_are_refused() -> None:
    one = grib_messages.gaussian(8, _RNG.normal(size=(16, 32)))
    again = _sections_from_4(one)
    both = one[:8] + (len(one) + len(again)).to_bytes(8, "big") + one[16:-4] + again + b"7777"
    with pytest.raises(Unsupported, match="2 fields"):
        decode(both)


def _sections_from_4(message: bytes) -> bytes:
    at = 16
    while message[at + 4] != 4:
        at += int.from_bytes(message[at : at + 4], "big")
    return message[at:-4]


@pytest.mark.parametrize("edition", [1, 2])
def test_no_cut_message_is_decoded(edition: int) -> None:
    message = grib_messages.latlon(7, 12, _ENDS, _RNG.normal(size=(7, 12)), edition=edition)
    for length in range(0, len(message), 3):
        for part in (message[:length], message[:length] + b"7777"):
            with pytest.raises(Corrupt):
                decode(part)
    with pytest.raises(Corrupt):
        decode(message + message)


@pytest.mark.parametrize("edition", [1, 2])
def test_a_damaged_message_gives_an_error_with_a_name_or_a_field(edition: int) -> None:
    message = grib_messages.latlon(7, 12, _ENDS, _RNG.normal(size=(7, 12)), edition=edition)
    rng = np.random.default_rng(3)
    for _ in range(60):
        damaged = bytearray(message)
        for at in rng.integers(4, len(message) - 4, 2):
            damaged[at] = rng.integers(256)
        assert not _outcome(bytes(damaged)).startswith("an error")


def test_decodes_are_counted_in_all_threads() -> None:
    message = grib_messages.gaussian(8, _RNG.normal(size=(16, 32)))
    before = decodes()
    threads = [threading.Thread(target=lambda: [decode(message) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(Corrupt):
        decode(message[:-1])
    assert decodes() == before + 40
