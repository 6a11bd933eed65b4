"""Base times, steps, valid times, levels and members of fields, and the cubes that they make."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import junctura
from junctura import field
from junctura._xarray.cube_axes import axis_of, base_times

eccodes = pytest.importorskip("eccodes")
xarray = pytest.importorskip("xarray")

from field_messages import message  # noqa: E402

_HOUR = np.timedelta64(3600, "s")
_FIELD = {
    "class": "od",
    "expver": "0001",
    "stream": "oper",
    "type": "fc",
    "levtype": "pl",
    "levelist": 500,
    "param": "t",
}


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("0", 0, 0),
        ("6", 6 * 3600, 6 * 3600),
        ("-6", -6 * 3600, -6 * 3600),
        ("90m", 5400, 5400),
        ("-15m", -900, -900),
        ("30s", 30, 30),
        ("2d", 172800, 172800),
        ("0-24", 0, 86400),
        ("-6-0", -6 * 3600, 0),
        ("-12--6", -12 * 3600, -6 * 3600),
        ("0m-90m", 0, 5400),
        ("45-90m", 2700, 5400),
        ("5160", 5160 * 3600, 5160 * 3600),
    ],
)
def test_steps_are_read(text: str, start: int, end: int) -> None:
    assert field.step_of(text) == field.Step(start, end)


@pytest.mark.parametrize("text", ["", "6x", "a-b", "1:30", "0-6-12", "6.5"])
def test_other_texts_are_no_steps(text: str) -> None:
    assert field.step_of(text) is None


@given(st.integers(-(10**7), 10**7), st.integers(0, 10**7))
def test_steps_are_written_as_they_are_read(start: int, length: int) -> None:
    step = field.Step(start, start + length)
    assert field.step_of(step.words) == step


@given(st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9998, 12, 31)), st.integers(-24 * 60, 400 * 24 * 60))
def test_valid_times_are_base_times_and_steps_in_all_years(base: datetime.datetime, minutes: int) -> None:
    base = base.replace(second=0, microsecond=0)
    about = {"date": f"{base.year:04}{base:%m%d}", "time": f"{base:%H%M}", "step": f"{minutes}m"}
    try:
        expected = base + datetime.timedelta(minutes=minutes)
    except OverflowError:
        return
    times = field.times_of(about)
    assert times.base == np.datetime64(base) and times.valid == np.datetime64(expected)


@pytest.mark.parametrize(
    ("about", "valid"),
    [
        ({"date": "20230615", "hdate": "20210615", "time": "0000", "step": "6"}, "2021-06-15T06"),
        ({"date": "20050101", "step": "24"}, "2005-01-02T00"),
        ({"date": "20050101"}, None),
        ({"date": 8500115, "time": 1200, "step": -6}, "0850-01-15T06"),
        ({"date": "00010101", "time": "0000", "step": "0"}, "0001-01-01T00"),
        ({"date": "99991231", "time": "1800", "step": "0-5"}, "9999-12-31T23"),
        ({"date": 801, "time": 1200, "step": 0}, None),
        ({"time": 1200, "step": 0}, None),
        ({"date": "20260101", "time": "0000", "step": "0", "fcmonth": 1}, None),
        ({"date": "20260101", "time": "0000", "step": "nonsense"}, None),
    ],
)
def test_valid_times_of_attributes(about: dict[str, Any], valid: str | None) -> None:
    found = field.times_of(about).valid
    assert found == (None if valid is None else np.datetime64(valid))


def _store(path: Path, *objects: dict[str, Any]) -> junctura.Store:
    store = junctura.Store.create(path / "store", schema="mars")
    content = message("regular_ll_pl_grib2", np.zeros(496))
    for about in objects:
        store.archive(content, {**_FIELD, "date": "20260101", "time": "0000", "step": "0", **about})
    store.flush()
    return store


def _opened(store: junctura.Store) -> Any:
    return xarray.open_dataset(store.path, engine="junctura")


def test_hindcasts_are_valid_in_their_own_year(tmp_path: Path) -> None:
    years = ("20210615", "20220615")
    about = {"stream": "enfh", "type": "cf", "date": "20230615"}
    data = _opened(_store(tmp_path, *({**about, "hdate": day, "step": s} for day in years for s in ("0", "6"))))
    assert data.time.values.astype("datetime64[D]").astype(str).tolist() == ["2021-06-15", "2022-06-15"]
    assert data.valid_time.dims == ("time", "step")
    assert str(data.valid_time.values[0, 1])[:13] == "2021-06-15T06"
    assert str(data.date.values)[:10] == "2023-06-15"


def test_one_hindcast_of_several_versions(tmp_path: Path) -> None:
    data = _opened(_store(tmp_path, *({"hdate": "20210615", "date": day} for day in ("20230615", "20240615"))))
    assert data.t.dims[0] == "date" and data.sizes["date"] == 2
    assert str(data.valid_time.values)[:10] == "2021-06-15"


@pytest.mark.parametrize("day", ["00010101", "08500115", "16770101", "22620412", "99991231"])
def test_years_beyond_nanoseconds_are_opened(tmp_path: Path, day: str) -> None:
    store = _store(
        tmp_path, {"date": day}, {"date": day, "step": "12"}, {"date": "20260101"}, {"date": "20260101", "step": "12"}
    )
    expected = np.datetime64(f"{day[:4]}-{day[4:6]}-{day[6:]}T00:00:00", "s")
    for selector in (f"date={day}", ""):
        data = xarray.open_dataset(store.path, engine="junctura", selector=selector)
        assert expected in np.atleast_1d(data.time.values)
        assert data.t.sel(step=np.timedelta64(12, "h")).sizes
        assert expected + 12 * _HOUR in data.valid_time.values
    array = store.list(f"date={day},step=12")[0].to_xarray()
    assert array.valid_time.values == expected + 12 * _HOUR


def test_times_of_this_age_are_in_nanoseconds(tmp_path: Path) -> None:
    data = _opened(_store(tmp_path, {}, {"step": "6"}))
    assert data.time.dtype == data.valid_time.dtype == np.dtype("datetime64[ns]")
    assert data.step.dtype == np.dtype("timedelta64[ns]")


def test_monthly_means_have_no_time_of_day() -> None:
    axis = base_times(("date", (["20050101", "20050201"], np.array([0, 1, 0]))), ([], np.array([-1, -1, -1])))
    assert axis.values.astype("datetime64[h]").astype(str).tolist() == ["2005-01-01T00", "2005-02-01T00"]
    assert axis.places.tolist() == [0, 1, 0]


def test_climatologies_keep_their_words() -> None:
    axis = axis_of("date", (["aug-01", "jan"], np.array([0, 1])), "date", {})
    assert axis.values.tolist() == ["aug-01", "jan"] and axis.words == ["date=aug-01", "date=jan"]


def test_steps_of_minutes_and_ranges_are_axes(tmp_path: Path) -> None:
    data = _opened(_store(tmp_path, {"step": "90m"}, {"step": "1"}, {"step": "0-2"}))
    assert data.step.values.astype("timedelta64[m]").astype(int).tolist() == [60, 90, 120]
    ends = (data.valid_time.values - data.time.values).astype("timedelta64[m]").astype(int)
    assert ends.tolist() == [60, 90, 120]


def test_ranges_that_end_at_one_time_have_a_valid_time(tmp_path: Path) -> None:
    data = _opened(_store(tmp_path, {"step": "0-24"}, {"step": "18-24"}, {"step": "0-6"}))
    assert data.step.values.tolist() == ["0-24", "0-6", "18-24"]
    ends = (data.valid_time.values - data.time.values).astype("timedelta64[h]").astype(int)
    assert ends.tolist() == [24, 6, 24]


def test_negative_steps_are_axes() -> None:
    axis = axis_of("step", (["0", "-6", "-6-0", "-90m"], np.arange(4)), "step", {})
    # Two of them end at one time: their texts tell them apart.
    assert axis.seconds is not None and sorted(axis.seconds.tolist()) == [-21600, -5400, 0, 0]
    axis = axis_of("step", (["0", "-6", "-90m"], np.arange(3)), "step", {})
    assert axis.values.astype("timedelta64[m]").astype(int).tolist() == [-360, -90, 0]
    assert axis.words == ["step=-6", "step=-90m", "step=0"] and axis.places.tolist() == [2, 0, 1]


def test_what_is_missing_is_said_in_the_words_of_selectors(tmp_path: Path) -> None:
    store = _store(tmp_path, {"step": "90m"}, {"step": "6"}, {"date": "20260102", "step": "6"})
    with pytest.raises(junctura.NotFound, match=r"missing: \{date=20260102,time=0000,step=90m\}"):
        _opened(store)
    assert not len(store.list("date=20260102,time=0000,step=90m"))


def _members(path: Path, *members: dict[str, Any]) -> Any:
    return _opened(_store(path, *({"stream": "enfo", **about} for about in members)))


def test_control_and_members_are_one_cube(tmp_path: Path) -> None:
    data = _members(tmp_path, {"type": "cf"}, *({"type": "pf", "number": number} for number in (2, 1, 10)))
    assert data.t.dims[0] == "number" and data.number.values.tolist() == [0, 1, 2, 10]
    assert data.t.isel(number=0).shape == (31, 16)


def test_a_control_forecast_is_member_0(tmp_path: Path) -> None:
    data = _members(tmp_path, {"type": "cf"}, {"type": "cf", "step": "6"})
    assert data.number.values == 0 and data.attrs["type"] == "cf"
    store = junctura.Store(tmp_path / "store")
    assert store.list()[0].to_xarray().number.values == 0


def test_a_perturbed_member_0_stays_apart_from_the_control(tmp_path: Path) -> None:
    data = _members(tmp_path, {"type": "cf"}, {"type": "pf", "number": 0})
    assert data.t.dims[:2] == ("type", "number") or data.t.dims[:1] == ("type",)
    assert data["type"].values.tolist() == ["cf", "pf"]


def test_heights_above_ground_are_coordinates(tmp_path: Path) -> None:
    def made(short: str, height: int) -> bytes:
        return message("regular_ll_sfc_grib2", np.zeros(496), shortName=short, level=height)

    for name, made_of, heights in (
        ("two", [made("2t", 2), made("2d", 2)], {"2t": 2.0, "2d": 2.0}),
        ("both", [made("2t", 2), made("10u", 10)], {"2t": 2.0, "10u": 10.0}),
    ):
        file = tmp_path / f"{name}.grib"
        file.write_bytes(b"".join(made_of))
        store = junctura.Store.from_grib(tmp_path / name, file)
        data = _opened(store)
        is_shared = len(set(heights.values())) == 1
        assert ("heightAboveGround" in data.coords) == is_shared
        for short, height in heights.items():
            held = data[short].coords if is_shared else data[short].attrs
            assert held["heightAboveGround"] == height
            array = store.list(f"param={short}")[0].to_xarray()
            assert array.heightAboveGround == height and array.heightAboveGround.units == "m"


def test_levels_of_the_key_are_no_heights(tmp_path: Path) -> None:
    data = _opened(_store(tmp_path, {}, {"levelist": 850}))
    assert "heightAboveGround" not in data.coords and data.level.values.tolist() == [500, 850]


def test_monthly_means_of_forecasts_have_the_step_of_their_header(tmp_path: Path) -> None:
    keys = {"stream": "mmsf", "fcmonth": 1}
    content = message("regular_ll_pl_grib2", np.zeros(496), dataDate=20260101, dataTime=0, step=744)
    store = junctura.Store.create(tmp_path / "store", schema="mars")
    store.archive(content, {**_FIELD, **keys, "date": "20260101", "time": "0000", "step": "0"})
    store.flush()
    assert str(store.list()[0].to_xarray().valid_time.values)[:10] == "2026-02-01"
    assert "valid_time" not in _opened(store).coords


def test_fields_have_times_members_and_levels() -> None:
    found = field.field_of(message("regular_ll_pl_grib2", dataDate=20260101, dataTime=600, step=12, level=850))
    assert str(found.valid_time)[:13] == "2026-01-01T18" and found.times.step == field.Step(43200, 43200)
    assert found.level == field.Level("isobaricInhPa", 850.0) and found.units == "K"
    assert found.member is None and found.keys["levelist"] == 850
