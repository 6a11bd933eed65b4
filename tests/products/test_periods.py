"""Statistics over days and months of valid time: xarray's `resample` and sums by hand judge them."""

from __future__ import annotations

import calendar
import itertools
from pathlib import Path
from typing import Any

import eccodes
import numpy as np
import pytest
import xarray
from broker_runs import BASE, broker, recipes
from grib_messages import messages
from hypothesis import example, given, settings
from hypothesis import strategies as st
from outputs_fields import field, written

import junctura
from junctura._document.located_yaml import Wrong
from junctura.products._input.decoded_field import Field
from junctura.products._operations import Periods
from junctura.products._outputs import Output

pytestmark = pytest.mark.timeout(180)
DAYS = "date: 20190301/to/20190302, time: 0/12"
TO = "format: grib2, name: 'x_{date}'"


def asked(folder: Path, words: str, do: str, to: str = TO) -> Any:
    text = f"product: p\nfrom: {{param: t, {words}}}\ndo: [statistics: {{{do}}}]\nto: {{{to}}}\n"
    (found,) = recipes(folder, text)
    return found


def files(recipe: Any) -> dict[str, int]:
    """Names, and how many fields each needs."""
    return {one.name(): len(one.inputs) for one in recipe.wanted()}


@pytest.mark.parametrize(
    ("words", "do", "found"),
    [
        ("date: 20190301/to/20190302, time: 0/to/18/by/6", "over: day, of: mean", {"20190301": 4, "20190302": 4}),
        ("date: 20190301/20190302, time: 0, step: 0/to/18/by/6", "over: day, of: max", {"20190301": 4, "20190302": 4}),
        ("date: 20200201/to/20200331, time: 0/12", "over: month, of: mean", {"202002": 58, "202003": 62}),
        ("date: 19000201/to/19000228, time: 0", "over: month, of: mean", {"190002": 28}),
        # Forecasts of two runs a day, whose amounts end with the day.
        (
            "date: 20190228/to/20190302, time: [6, 18], step: 1/to/12",
            "over: day, of: sum, on: 20190301/to/20190302",
            {"20190301": 24, "20190302": 24},
        ),
        (
            "date: 20181231/to/20190301, time: 12, step: 12/24",
            "over: month, of: sum, on: [2019-01, 201902]",
            {"201901": 62, "201902": 56},
        ),
        (
            "date: 20190101/to/20190401, time: 0",
            "over: month, of: mean, on: 201902/to/201903",
            {"201902": 28, "201903": 31},
        ),
        (DAYS, "over: day, of: [mean, max], include: end, on: 20190301", {"20190301": 2}),
    ],
)  # fmt: skip
def test_a_file_is_of_the_fields_valid_in_its_period(
    tmp_path: Path, words: str, do: str, found: dict[str, int]
) -> None:
    assert files(asked(tmp_path, words, do)) == {f"x_{name}": count for name, count in found.items()}


def test_one_forecast_keeps_its_base_time_and_has_steps(tmp_path: Path) -> None:
    read = asked(
        tmp_path, "date: 20260101, time: 0, step: 0/to/1416/by/24", "over: month, of: mean, on: 202601/202602",
        "format: csv, name: '{date}_{time}_{step}'",
    )  # fmt: skip
    assert files(read) == {"20260101_0000_0-744": 31, "20260101_0000_744-1416": 28}
    assert read.key({"param": "t", "date": "2026-01-01", "time": "0000", "step": "24"}) is not None


def test_the_steps_of_one_forecast_may_grow_further_apart(tmp_path: Path) -> None:
    """Hourly to 90 h, then each three hours."""
    read = asked(
        tmp_path, "date: 20190301, time: 0, step: [0/to/90, 93/to/141/by/3]", "over: day, of: [mean, max]",
        "format: netcdf, name: '{step}'",
    )  # fmt: skip
    assert files(read) == {"0-24": 24, "24-48": 24, "48-72": 24, "72-96": 20, "96-120": 8, "120-144": 8}


def test_all_periods_may_be_in_one_file(tmp_path: Path) -> None:
    read = asked(
        tmp_path,
        "date: 20190301/to/20190331, time: 0/12",
        "over: day, of: mean",
        "format: netcdf, gather: date, name: x",
    )
    assert files(read) == {"x": 62}
    with pytest.raises(junctura.InvalidArgument, match="a map has one field, and a file would have 31"):
        asked(
            tmp_path,
            "date: 20190301/to/20190331, time: 0/12",
            "over: day, of: mean",
            "format: png, gather: time, name: x",
        )


@pytest.mark.parametrize(
    ("words", "do", "says"),
    [
        ("date: 20190305/to/20190331, time: 0", "over: month, of: mean", "2019-03-01T00:00 of the window month 201903"),
        ("date: [20190301, 20190303], time: 0", "over: month, of: mean", "2019-03-05T00:00 of the window month 201903"),
        ("date: 20190301, time: [0, 6, 18]", "over: day, of: max", "2019-03-01T12:00 of .* fields are 6 hours apart"),
        (
            "date: 20190301/20190302, time: 0/to/23", "over: day, of: mean, include: end",
            "2019-02-28T01:00 of the window day 20190228 is missing.* name the others in on",
        ),
        ("date: 20190301, time: [0, 12], step: 6/18", "over: day, of: sum", "valid at one time, and would count twice"),
        ("date: 20190301, time: 0/12", "over: day, of: mean, on: 20190302", "on: no field is valid in 20190302"),
        ("date: 20190301, time: 0/12", "over: month, of: mean, on: 201913", '"201913" is no month'),
        ("date: [20190201, 20190203], time: 0", "over: month, of: mean", "2019-02-05T00:00 of the window month 201902"),
        ("date: 20190301, time: 0, step: [0/to/20, 23]", "over: day, of: max", "2019-03-01T21:00 of"),
        # The end of a list makes no distance larger, and neither does another forecast.
        ("date: 20190301, time: 0, step: 0/to/60/by/6", "over: day, of: [max, mean]", "2019-03-03T18:00 of the window"),
        ("date: 20190301, time: 0, step: 0/to/36/by/6", "over: day, of: min", "2019-03-02T18:00 of the window"),
        ("date: 20190301, time: 0, step: 0/6/12", "over: day, of: max", "2019-03-01T18:00 of the window"),
        ("date: 20190301/20190302, time: 0, step: 0/6/12", "over: day, of: max", "2019-03-01T18:00 of the window"),
        ("date: 20190301, time: 0, step: 0/to/360/by/24", "over: month, of: max", "2019-03-17T00:00 of the window"),
        ("date: 20190301, time: 9/18", "over: day, of: max, include: end", "2019-03-02T00:00 of the window day"),
        ("date: 20190301, time: 0, step: 0", "over: day, of: max", "is the only instant of the window day 20190301"),
        ("date: 20190301, time: 0", "over: month, of: max", "is the only instant of the window month 201903"),
        ("date: 20190301/to/20190303, time: 0", "over: day, of: max", "is the only instant of the window day 20190301"),
        ("date: 20190301", "over: day, of: mean", '"time" is missing in from'),
        ("step: 0/to/18/by/6", "over: day, of: mean", '"date" and "time" are missing in from'),
        ("time: 0/12", "over: month, of: mean", '"date" is missing in from'),
        ("date: 20190301, time: 0", "over: day, of: accumulation", '"accumulation" is of windows of steps'),
        ("date: 20190301, time: 0", "over: day, of: [sum, mean]", "write include: end, or start"),
        ("date: 20190301, time: 0, step: 0/6", "over: 6h, of: mean, include: end", "it is of days and months"),
        ("date: 20190301, time: 0", "over: week, of: mean", "day or month, not \"week\""),
    ],
)  # fmt: skip
def test_what_fills_no_period_is_refused_before_anything_runs(tmp_path: Path, words: str, do: str, says: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=says):
        asked(tmp_path, words, do)


def analyses(*days: str, every: int = 6) -> list[Field]:
    rng = np.random.default_rng(1)
    return [
        (one := field("90/90", date=day, time=f"{hour:02}00", step=0, type="an")).having(
            rng.normal(size=one.values.shape)
        )
        for day in days
        for hour in range(0, 24, every)
    ]


@pytest.mark.parametrize(("over", "rule", "length"), [("day", "1D", "0-24"), ("month", "MS", "0-744")])
def test_statistics_are_those_that_xarray_resamples(over: str, rule: str, length: str) -> None:
    fields = analyses(*(f"2019-{month:02}-{day:02}" for month in (3, 5) for day in range(1, 32)))
    made = Periods(over, ("mean", "min", "max"))(fields[::-1], None)  # type: ignore[arg-type]
    times = [np.datetime64(f"{f.attributes['date']}T{f.attributes['time'][:2]}", "ns") for f in fields]
    series = xarray.DataArray(np.stack([f.values for f in fields]), {"time": times}, ("time", "y", "x"))
    resampled = series.resample(time=rule)
    right = [getattr(resampled, kind)().dropna("time") for kind in ("mean", "min", "max")]
    assert len(made) == 3 * right[0].sizes["time"]
    for one, (at, kind) in zip(made, itertools.product(range(len(made) // 3), range(3)), strict=True):
        np.testing.assert_allclose(one.values, right[kind][at], rtol=1e-12)
        said = [one.attributes[word] for word in ("date", "time", "step", "stepType")]
        day = np.datetime_as_string(right[kind].time[at].values, "D").replace("-", "")
        assert said == [day, "0000", length, ("avg", "min", "max")[kind]]


@pytest.mark.parametrize("include", ["start", "end"])
def test_a_mean_weights_instants_that_grow_further_apart_by_their_distance(include: str) -> None:
    """Of a forecast of 6 UTC: what holds to the next instant, or since the one before where the end is included."""
    hours = np.array([0, 1, 2, 3, 6, 12, 18] if include == "start" else [1, 2, 3, 6, 12, 18, 24])
    steps = hours + 18
    fields = [field(date="20190228", time="0600", step=int(step), type="fc") for step in steps]
    fields = [one.having(np.full(one.values.shape, float(hour))) for one, hour in zip(fields, hours, strict=True)]
    (mean, top) = Periods("day", ("mean", "max"), include)(fields, None)  # type: ignore[arg-type]
    weights = np.diff([*hours, 24] if include == "start" else [0, *hours])
    assert mean.values[0, 0] == pytest.approx(np.average(hours, weights=weights), rel=1e-14)
    assert top.values[0, 0] == hours[-1]
    with pytest.raises(junctura.InvalidArgument, match="so a sum of instants has no meaning"):
        Periods("day", ("sum",), include)(fields, None)  # type: ignore[arg-type]


def covers(instants: list[int], start: int, length: int, base: int, include: str) -> bool:
    """Whether instants of one forecast, in hours, cover a window: each of its gaps is one between two of them."""
    end = start + length
    own = [at for at in instants if (start <= at < end if include == "start" else start < at <= end)]
    if len(own) < 2:
        return False
    # What is before the first of a window, or behind its last, is as long as what is next to it, or a gap of the list.
    if include == "start":
        ends = [*own, end if end in instants else 2 * own[-1] - own[-2]]
    else:
        ends = [2 * own[0] - own[1], *own]
    gaps = [after - before for before, after in itertools.pairwise(ends)]
    for before, after, at in zip(gaps, gaps[1:], ends[1:], strict=False):
        if after % before or (after > before and (at - base) % after):
            return False
    return (ends[0], ends[-1]) == (start, end)


@st.composite
def steps_of_a_forecast(draw: st.DrawFn) -> list[int]:
    """Steps whose distances grow now and then, with some of them left out."""
    found, at, apart = [], draw(st.sampled_from([0, 0, 0, 3, 6])), draw(st.sampled_from([1, 3, 6]))
    while at <= 96:
        found.append(at)
        if at % (2 * apart) == 0 and draw(st.integers(0, 9)) == 0:
            apart *= draw(st.sampled_from([2, 2, 3, 4]))
        at += apart
    last = draw(st.integers(1, len(found)))
    out = draw(st.sets(st.sampled_from(found), max_size=2))
    return [step for step in found[:last] if step not in out] or [0]


def is_made(periods: Periods, words: dict[str, Any]) -> bool:
    """Whether a recipe is taken and its fields, which are instants, are."""
    try:
        groups = periods.groups(words)
    except Wrong:
        return False
    for group in groups:
        fields = [field("90/90", **{**key, "type": "fc"}) for key in group.keys]
        try:
            assert len(periods(fields, None)) == len(periods.of)  # type: ignore[arg-type]
        except junctura.InvalidArgument:
            return False
    return True


@pytest.mark.parametrize("include", ["start", "end"])
@settings(max_examples=150, deadline=None)
@given(steps=steps_of_a_forecast(), run=st.sampled_from([0, 6, 12, 18]))
@example(steps=[18, 36], run=12)
@example(steps=[0, 6, 12, 24, 36], run=0)
def test_a_day_of_a_forecast_is_made_where_its_steps_cover_it(include: str, steps: list[int], run: int) -> None:
    words = {"date": (20190301,), "time": (f"{run:02}00",), "step": tuple(steps)}
    instants = [run + step for step in steps]
    for day in range(5):
        own = [at for at in instants if (at - (include == "end")) // 24 == day]
        if own:
            periods = Periods("day", ("max", "min", "mean"), include, (str(20190301 + day),))
            assert is_made(periods, words) == covers(instants, 24 * day, 24, run, include), (day, own)


@pytest.mark.parametrize("include", ["start", "end"])
@settings(max_examples=100, deadline=None)
@given(times=st.sets(st.sampled_from(range(0, 24, 3)), min_size=1), step=st.sampled_from([0, 6]))
def test_a_day_of_several_base_times_has_equal_distances(include: str, times: set[int], step: int) -> None:
    words = {
        "date": (20190228, 20190301, 20190302),
        "time": tuple(f"{hour:02}00" for hour in sorted(times)),
        "step": (step,),
    }
    first = 0 if include == "start" else 1
    there = {(hour + step - first) % 24 + first for hour in times}
    equal = any(there == set(range(first and gap, 24 + first, gap)) for gap in (3, 6, 12))
    assert is_made(Periods("day", ("max", "mean", "sum"), include, ("20190301",)), words) == equal


@settings(max_examples=100, deadline=None)
@given(last=st.integers(1, 62), include=st.sampled_from(["start", "end"]), every=st.sampled_from([6, 12, 24]))
def test_a_month_of_a_forecast_is_made_where_its_steps_cover_it(last: int, include: str, every: int) -> None:
    steps = list(range(0, 24 * last + 1, every))
    words = {"date": (20190201,), "time": ("0000",), "step": tuple(steps)}
    for name, start, days in (("201902", 0, 28), ("201903", 28, 31)):
        periods = Periods("month", ("max", "mean", "sum"), include, (name,))
        assert is_made(periods, words) == covers(steps, 24 * start, 24 * days, 0, include)


def rain(date: str, time: str, start: int, end: int) -> Field:
    """Of a rate that grows with the hours of the month, 2 t: the amount of a range is a difference of squares."""
    base = 24 * (int(date[-2:]) - 1) + int(time[:2])
    amount = float((base + end) ** 2 - (base + start) ** 2)
    about = {"param": "tp", "levtype": "sfc", "date": date, "time": time, "step": end}
    one = field("90/90", "m", **about, stepType="accum", stepStart=str(start))
    return one.having(np.full(one.values.shape, amount))


def test_amounts_of_forecasts_are_summed_over_days_of_valid_time() -> None:
    """Hourly amounts of runs at 6 and 18 UTC, as of ERA5."""
    runs = [("20190301", "0600"), ("20190301", "1800"), ("20190302", "0600"), ("20190302", "1800")]
    fields = [rain(*run, step - 1, step) for run in runs for step in range(1, 13)]
    day = [one for one in fields if 24 < valid(one) <= 48]
    (made,) = Periods("day", ("sum",), "end")(day, None)  # type: ignore[arg-type]
    assert made.values[0, 0] == 48**2 - 24**2
    assert {made.attributes[word] for word in ("date", "time", "step", "stepType")} == {
        "20190302",
        "0000",
        "0-24",
        "accum",
    }
    assert "stepStart" not in made.attributes
    del day[5]
    with pytest.raises(
        junctura.InvalidArgument, match="2019-03-02T05:00 to 2019-03-02T06:00 of the window day 20190302"
    ):
        Periods("day", ("sum",), "end")(day, None)  # type: ignore[arg-type]


def valid(one: Field) -> int:
    said = one.attributes
    return 24 * (int(said["date"][-2:]) - 1) + int(said["time"][:2]) + int(said["step"])


@pytest.mark.parametrize(
    ("ranges", "includes", "says"),
    [
        ([(0, 12), (12, 24)], "start", "2019-03-01T12:00 to 2019-03-02T00:00 of the window day 20190301 are missing"),
        ([(0, 6), (12, 24)], "end", "2019-03-02T00:00 begins at .*, and 2019-03-01T06:00 to 2019-03-01T12:00"),
        ([(0, 12), (0, 24)], "end", "is added up from 2019-03-01T00:00 on, .* those that end at 2019-03-02T00:00"),
    ],
)  # fmt: skip
def test_ranges_that_do_not_cover_a_day_are_refused(ranges: list[tuple[int, int]], includes: str, says: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=says):
        Periods("day", ("sum",), includes)([rain("20190301", "0000", *one) for one in ranges], None)  # type: ignore[arg-type]


def test_two_fields_of_one_valid_time_are_refused() -> None:
    fields = [field(date="20190301", time="0000", step=12), field(date="20190301", time="1200", step=0)]
    with pytest.raises(junctura.InvalidArgument, match="field t: two are valid at 2019-03-01T12:00"):
        Periods("day", ("mean",))(fields, None)  # type: ignore[arg-type]
    with pytest.raises(junctura.InvalidArgument, match="it has no date"):
        Periods("day", ("mean",))([field(date=None)], None)  # type: ignore[arg-type]


def test_a_daily_mean_in_grib_says_that_base_times_follow_one_another(tmp_path: Path) -> None:
    made = Periods("day", ("mean",))(analyses("2019-03-01"), None)  # type: ignore[arg-type]
    of_forecast = Periods("day", ("mean",))([field(date="20190301", time="00", step=s) for s in (24, 36)], None)  # type: ignore[arg-type]
    path = written(Output("grib2"), tmp_path / "p", *made, *of_forecast)
    keys = ("dataDate", "dataTime", "stepRange", "stepType", "typeOfTimeIncrement", "validityDate", "validityTime")
    found = []
    for message in messages(path):
        handle = eccodes.codes_new_from_message(message)
        found.append([eccodes.codes_get(handle, key, str) for key in keys])
        eccodes.codes_release(handle)
    assert found == [
        ["20190301", "0000", "0-24", "avg", "1", "20190302", "0000"],
        ["20190301", "0000", "24-48", "avg", found[1][4], "20190303", "0000"],
    ]
    assert found[1][4] != "1"


@pytest.mark.parametrize("form", ["netcdf", "zarr"])
def test_a_month_of_days_is_a_series_in_one_file(tmp_path: Path, form: str) -> None:
    text = f"""product: days
from: {{param: 2t, type: an, date: 20200201/to/20200229, time: 0/to/18/by/6}}
do: [statistics: {{over: day, of: [mean, max]}}]
to: {{format: {form}, gather: date, name: days}}
"""
    about = {**BASE, "type": "an", "stream": "oper", "levtype": "sfc", "param": "2t", "grid": "45/45", "units": "K"}
    del about["number"], about["levelist"]
    times = np.arange(np.datetime64("2020-02-01T00", "h"), np.datetime64("2020-03-01T00", "h"), np.timedelta64(6, "h"))
    values = np.random.default_rng(3).normal(280, 10, (len(times), 5, 8))
    with junctura.Pool(schema="mars") as pool:
        for at, one in zip(times.astype(object), values, strict=True):
            pool.offer(one, {**about, "date": f"{at:%Y%m%d}", "time": f"{at:%H%M}", "step": 0})
        report = broker(tmp_path, pool, text).run()
    assert not report.failed, report.failed
    series = xarray.DataArray(values, {"time": times.astype("M8[ns]")}, ("time", "y", "x")).resample(time="1D")
    with xarray.open_dataset(tmp_path / "out/days", engine="netcdf4" if form == "netcdf" else "zarr") as data:
        assert data.sizes["time"] == calendar.monthrange(2020, 2)[1]
        np.testing.assert_allclose(data.param_2t_avg, series.mean(), atol=1e-4)
        np.testing.assert_allclose(data.param_2t_max, series.max(), atol=1e-4)
        days = series.mean().time.values
        np.testing.assert_array_equal(data.time_bnds[:, 0], days)
        np.testing.assert_array_equal(data.time_bnds[:, 1], days + np.timedelta64(1, "D"))
        np.testing.assert_array_equal(data.forecast_reference_time, days)
