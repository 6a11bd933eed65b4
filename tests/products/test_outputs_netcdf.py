"""netCDF and Zarr: one data set, which the checker of the CF conventions has nothing against."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
import zarr.codecs
import zarr.storage
from outputs_fields import PLACES, field, surface, with_gap, written

import junctura
from junctura.products._input.decoded_field import Field
from junctura.products._operations import Statistics
from junctura.products._outputs import Output, zarr_group
from junctura.products._outputs._cube import Cube, cube

KINDS = ("netcdf", "zarr")
SETS = {
    "one": [field()],
    "cube": [
        field(step=step, number=number, levelist=level) for step in (0, 6) for number in (1, 2) for level in (500, 850)
    ],
    "mixed": [one for step in (0, 6) for one in (field(step=step), surface("2t", "K", step=step))],
    "area": [field("1/1@72/-25/34/45")],
    "gaussian": [field("F16", step=step, stepType="max") for step in ("0-6", "6-12")],
    "sum": [surface("tp", "m", step="0-6", stepType="accum")],
    "ranges": [
        surface(param, units, step=step, stepType=kind, stepStart=start)
        for step in (6, 12)
        for param, units, kind, start in (
            ("tp", "m", "accum", 0),
            ("mx2t6", "K", "max", step - 6),
            ("2t", "K", None, None),
        )
    ],
    "places": [field(PLACES, step=step) for step in (0, 6)],
    "place": [field("points@50/8")],
    "members at places": [field(PLACES, step=step, number=number) for step in (0, 6) for number in (1, 2)],
    "model levels": [field(levtype="ml", levelist=level) for level in (136, 137)],
    "isentropes": [field(levtype="pt", levelist=level) for level in (315, 330)],
    "pv": [field(levtype="pv", param="pt", levelist=2000)],
    "units": [
        field(param=param, units=units)
        for param, units in (("u", "m s**-1"), ("vo", "s**-1"), ("gh", "gpm"), ("z", "m**2 s**-2"), ("q", "kg kg**-1"))
    ],
    "other units": [
        field(param=param, units=units) for param, units in (("gh", "gpdm"), ("t", "degC"), ("pt", "degF"), ("dt", "K"))
    ],
    "analyses": [
        surface("2t", "K", date=date, time=time, step=0, type="an")
        for date in ("20190228", "20190301")
        for time in ("0000", "1200")
    ],
    "minutes": [field(step=step) for step in ("20m", "40m", "60m")],
    "unknown": [field(param="my-thing", units="m s**-1")],
    "chances": [
        field(statistic="percentile", percentile=10),
        field(statistic="probability", threshold=273.15, thresholdUnits="K", units="%"),
    ],
    "missing": [with_gap(field())],
}
CHECK = """
import sys
from compliance_checker.runner import CheckSuite, ComplianceChecker
CheckSuite.load_all_available_checkers()
good = True
for path in sys.argv[1:]:
    passed, broken = ComplianceChecker.run_checker(path, ["cf:1.11"], 0, "strict", output_filename="-")
    good = good and passed and not broken
sys.stdout.flush()
sys.exit(not good)
"""


def opened(to: Output, path: Path, *fields: Field) -> xarray.Dataset:
    written(to, path, *fields)
    with xarray.open_dataset(path, engine="netcdf4" if to.format == "netcdf" else "zarr") as data:
        return data.load()


def test_the_checker_of_the_conventions_has_nothing_to_say(tmp_path: Path) -> None:
    paths = [written(Output("netcdf"), tmp_path / f"{name}.nc", *fields) for name, fields in SETS.items()]
    # In a process of its own: together with ecCodes the checker's libraries break the heap when a process ends.
    done = subprocess.run([sys.executable, "-c", CHECK, *map(str, paths)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SETS)
def test_zarr_has_what_netcdf_has(tmp_path: Path, name: str) -> None:
    one, other = (opened(Output(kind), tmp_path / kind, *SETS[name]) for kind in KINDS)  # type: ignore[arg-type]
    xarray.testing.assert_identical(one.drop_encoding(), other.drop_encoding())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compression", ["zstd", "zlib"])
def test_a_cube_has_each_field_where_it_belongs(tmp_path: Path, kind: Any, compression: Any) -> None:
    fields = [one.having(one.values + number) for number, one in enumerate(SETS["cube"])]
    data = opened(Output(kind, compression=compression), tmp_path / "p", *fields[::-1])
    assert data.t.dims == ("realization", "time", "level", "latitude", "longitude")
    for one in fields:
        said = one.attributes
        time = np.datetime64("2026-08-01T12:00") + np.timedelta64(said["step"], "h")
        found = data.t.sel(time=time, realization=said["number"], level=said["levelist"])
        np.testing.assert_array_equal(found.values, one.values.astype(np.float32))
        assert found.forecast_period == said["step"]
    assert data.forecast_reference_time == np.datetime64("2026-08-01T12:00")
    np.testing.assert_array_equal(data.latitude, fields[0].grid.latitudes)
    np.testing.assert_array_equal(data.longitude, fields[0].grid.longitudes)


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_those_of_the_conventions(tmp_path: Path, kind: Any) -> None:
    data = opened(Output(kind), tmp_path / "p", *SETS["units"], field(statistic="spread"))
    names = {name: (one.attrs.get("standard_name"), one.attrs["units"]) for name, one in data.data_vars.items()}
    assert names == {
        "u": ("eastward_wind", "m s-1"),
        "vo": ("atmosphere_relative_vorticity", "s-1"),
        "gh": ("geopotential_height", "m"),
        "z": ("geopotential", "m2 s-2"),
        "q": ("specific_humidity", "kg kg-1"),
        "t_spread": ("air_temperature", "K"),
    }
    assert data.t_spread.attrs["cell_methods"] == "realization: standard_deviation"
    assert data.attrs["Conventions"] == "CF-1.11"
    summed = opened(Output(kind), tmp_path / "q", *SETS["sum"])
    assert summed.tp.attrs["cell_methods"] == "time: sum"
    times = summed.time_bnds.values.ravel()
    np.testing.assert_array_equal(times, np.array(["2026-08-01T12:00", "2026-08-01T18:00"], "M8[ns]"))
    with xarray.open_dataset(
        tmp_path / "p", engine="netcdf4" if kind == "netcdf" else "zarr", decode_times=False
    ) as raw:
        assert raw.time.attrs["units_metadata"] == "leap_seconds: none"
        assert raw.time.attrs["units"] == "hours since 2026-08-01 12:00:00"
    unknown = opened(Output(kind), tmp_path / "r", *SETS["unknown"])
    assert unknown.my_thing.attrs["long_name"] == "my-thing"


@pytest.mark.parametrize("kind", KINDS)
def test_units_are_those_of_the_conventions(tmp_path: Path, kind: Any) -> None:
    data = opened(Output(kind), tmp_path / "p", *SETS["other units"], field(units="degC", statistic="spread"))
    names = ("t", "pt", "t_spread", "dt")
    assert [(data[one].attrs["units"], data[one].attrs["units_metadata"]) for one in names] == [
        ("degC", "temperature: on_scale"),
        ("degF", "temperature: on_scale"),
        ("degC", "temperature: difference"),
        ("K", "temperature: unknown"),
    ]
    assert data.gh.attrs["units"] == "dam" and "units_metadata" not in data.gh.attrs


@pytest.mark.parametrize("kind", KINDS)
def test_a_probability_says_what_of(tmp_path: Path, kind: Any) -> None:
    said = opened(Output(kind), tmp_path / "p", *SETS["chances"]).t_above_273_15.attrs
    assert (said["threshold"], said["threshold_units"], said["condition"]) == (273.15, "K", "above")
    assert said["units"] == "%" and said["long_name"] == "probability of Temperature above 273.15 K"


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_over_base_times_says_so(tmp_path: Path, kind: Any) -> None:
    months = [field(date=date, stepType="avgua") for date in ("2026-08-01", "2026-09-01")]
    said = opened(Output(kind), tmp_path / "p", *months).t
    assert said.sizes["time"] == 2 and "cell_methods" not in said.attrs
    assert said.attrs["comment"] == "mean over the base times of the period that begins at the base time (avgua)"


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_that_end_together_have_axes_of_their_own(tmp_path: Path, kind: Any) -> None:
    data = opened(Output(kind), tmp_path / "p", *SETS["ranges"])
    said = {one: (data[one].dims[0], data[one].attrs["cell_methods"]) for one in ("tp", "mx2t6", "param_2t")}
    assert said == {
        "tp": ("time", "time: sum"),
        "mx2t6": ("time_2", "time_2: maximum"),
        "param_2t": ("time", "time: point"),
    }
    hours = [
        (data[one] - data.forecast_reference_time) / np.timedelta64(1, "h") for one in ("time_bnds", "time_bnds_2")
    ]
    assert [one.values.tolist() for one in hours] == [[[0, 6], [0, 12]], [[0, 6], [6, 12]]]
    assert set(data.mx2t6.coords) >= {"forecast_period_2"} and "forecast_period" not in data.mx2t6.coords


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_added_up_from_step_0_on_may_begin_with_a_field_of_nothing(tmp_path: Path, kind: Any) -> None:
    steps = [surface("tp", "m", step=0), surface("tp", "m", step=6, stepType="accum", stepStart=0)]
    data = opened(Output(kind), tmp_path / "p", *steps)
    assert data.tp.attrs["cell_methods"] == "time: sum" and data.tp.sizes["time"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_several_statistics_over_steps_are_variables_of_their_own(tmp_path: Path, kind: Any) -> None:
    steps = [field(step=step) for step in (6, 12, 18, 24)]
    fields = Statistics.read({"over": 12, "of": ["mean", "max", "min", "instant"]}, 0)(steps, None)  # type: ignore[arg-type]
    data = opened(Output(kind), tmp_path / "p", *fields)
    methods = {name: one.attrs["cell_methods"] for name, one in data.items() if "cell_methods" in one.attrs}
    assert methods == {"t_avg": "time: mean", "t_max": "time: maximum", "t_min": "time: minimum", "t": "time: point"}


@pytest.mark.parametrize("kind", KINDS)
def test_analyses_are_one_series_with_a_base_time_for_each(tmp_path: Path, kind: Any) -> None:
    fields = [one.having(one.values + number) for number, one in enumerate(SETS["analyses"])]
    data = opened(Output(kind), tmp_path / "p", *fields[::-1])
    times = np.array(["2019-02-28T00", "2019-02-28T12", "2019-03-01T00", "2019-03-01T12"], "M8[ns]")
    np.testing.assert_array_equal(data.time, times)
    np.testing.assert_array_equal(data.param_2t.forecast_reference_time, times)
    assert not data.param_2t.forecast_period.any()
    np.testing.assert_array_equal(data.param_2t, np.stack([one.values for one in fields]).astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_that_follow_one_another_are_one_series(tmp_path: Path, kind: Any) -> None:
    """Two runs a day, whose steps 6 and 12 are amounts since their own beginning."""
    fields = [
        surface("tp", "m", time=time, step=step, stepType="accum", stepStart=0)
        for time in ("0000", "1200")
        for step in (6, 12)
    ]
    data = opened(Output(kind), tmp_path / "p", *fields)
    day = np.datetime64("2026-08-01T00", "ns")
    hours = {name: ((data[name] - day) / np.timedelta64(1, "h")).values.tolist() for name in ("time", "time_bnds")}
    assert hours == {"time": [6, 12, 18, 24], "time_bnds": [[0, 6], [0, 12], [12, 18], [12, 24]]}
    assert data.tp.forecast_period.values.tolist() == [6, 12, 6, 12]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [("20m", "40m"), ("1s", "59s"), (1, "90m"), ("0m-20m", "20m-40m")])
def test_times_are_exact(tmp_path: Path, kind: Any, steps: tuple[Any, ...]) -> None:
    ends = {"20m": 1200, "40m": 2400, "1s": 1, "59s": 59, 1: 3600, "90m": 5400, "0m-20m": 1200, "20m-40m": 2400}
    process = "avg" if "-" in str(steps[0]) else None
    data = opened(Output(kind), tmp_path / "p", *(field(step=step, stepType=process) for step in steps))
    passed = (data.time.values - np.datetime64("2026-08-01T12:00", "ns")).astype(np.int64)
    assert passed.tolist() == [10**9 * ends[step] for step in steps]


@pytest.mark.parametrize("kind", KINDS)
def test_places_are_time_series(tmp_path: Path, kind: Any) -> None:
    data = opened(Output(kind), tmp_path / "p", *SETS["places"])
    assert data.attrs["featureType"] == "timeSeries" and data.t.dims == ("station", "time")
    assert data.station_name.attrs["cf_role"] == "timeseries_id"
    assert data.station_name.values.tolist() == ["50.1/8.7", "48.2/16.4", "-3/-60"]
    np.testing.assert_array_equal(data.latitude, [50.1, 48.2, -3])
    np.testing.assert_array_equal(data.t.isel(time=1), SETS["places"][1].values.astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_places_have_their_names(tmp_path: Path, kind: Any) -> None:
    data = opened(Output(kind), tmp_path / "p", field(PLACES, places=["Frankfurt", "Wien", ""]))
    assert data.station_name.values.tolist() == ["Frankfurt", "Wien", "-3/-60"]


@pytest.mark.parametrize("kind", KINDS)
def test_reduced_grids_are_a_list_of_cells(tmp_path: Path, kind: Any) -> None:
    one = field("N32")
    data = opened(Output(kind), tmp_path / "p", one)
    assert data.t.dims == ("time", "cell")
    np.testing.assert_array_equal(data.longitude, one.grid.longitudes)
    np.testing.assert_array_equal(data.t[0], one.values.astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_and_constant_values_stay_so(tmp_path: Path, kind: Any) -> None:
    one = field()
    for values in (with_gap(one).values, np.full(one.grid.shape, np.nan), np.zeros(one.grid.shape)):
        data = opened(Output(kind), tmp_path / "p", one.having(values))
        np.testing.assert_array_equal(data.t[0], values.astype(np.float32))
        if kind == "netcdf":
            assert np.isnan(data.t.encoding["_FillValue"])
        else:
            assert np.isnan(zarr.open_array(tmp_path / "p/t", mode="r").fill_value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ([field(), field()], "field t: step 6, levelist 850.0: there is another"),
        ([*SETS["cube"][1:]], "field t: none for realization 1, step 0 h .*, level 500; 1 lack"),
        ([field(), field("F16")], "field t: it is on F16, but t on 3/3"),
        ([field(step=24), field(date="2026-08-02", step=0)], "steps 24 and 0 of 2026-08-01.* have one valid time"),
        ([field(), field(date=None)], "field t: its base time is None"),
        ([field(), field(levelist=500, levtype="ml")], "field t: levels of ml and pl"),
        ([field(), field(step=12, units="C")], "other units"),
        ([field(step=0), field(step=6), field(param="u", step=0)], "field u: none for step 6 h"),
        ([field(param="time")], "field time: a coordinate has this name"),
        ([field(step="0-12", stepType="max"), field(step="6-12", stepType="max")], "two ranges of steps end together"),
        ([field(), field(number=1)], "field t: step 6, number 1"),
    ],
)
def test_what_is_no_cube_is_refused_by_name(tmp_path: Path, kind: Any, fields: list[Field], named: str) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match=named):
        written(Output(kind), tmp_path / "p", *fields)
    assert not list(tmp_path.iterdir())


def _by_zarr(data: Cube, to: Output) -> dict[str, bytes]:
    """The files that zarr-python writes of a data set."""
    files: dict[str, Any] = {}
    codec = zarr.codecs.ZstdCodec(level=1) if to.compression == "zstd" else zarr.codecs.GzipCodec(level=1)
    with warnings.catch_warnings():
        # Consolidated metadata and texts of a fixed length are not in the specification yet.
        warnings.simplefilter("ignore")
        store = zarr.storage.MemoryStore(files)
        group = zarr.create_group(store, zarr_format=3, attributes=dict(data.attributes))
        for name, variable in data.variables.items():
            values = np.asarray(variable.values)
            made = group.create_array(
                name,
                shape=values.shape,
                dtype=values.dtype,
                chunks=data.chunks(variable) if variable.is_data else values.shape or "auto",
                compressors=[codec] if variable.is_data else None,
                fill_value=np.nan if values.dtype.kind == "f" else None,
                dimension_names=variable.dims,
                attributes=dict(variable.attributes),
            )
            made[...] = values
        zarr.consolidate_metadata(store, zarr_format=3)
    return {name: buffer.to_bytes() for name, buffer in files.items()}


@pytest.mark.parametrize("compression", ["zstd", "zlib"])
@pytest.mark.parametrize(
    "fields",
    [
        [field("O16")],
        [field(number=number, step=step) for number in (0, 1) for step in (0, 6)],
        [field(number=0, step=0)],
        [with_gap(field())],
        [field().having(np.full((61, 120), np.nan))],
        [field(step="0-6", stepType="max")],
        [field(PLACES, places=["Köln", "", "B"])],
        [field(levelist=level) for level in (850, 500)],
    ],
)
def test_a_zarr_group_has_the_bytes_that_zarr_python_writes(fields: list[Field], compression: Any) -> None:
    to = Output("zarr", compression=compression)
    assert _timeless(zarr_group.made(fields, to)) == _timeless(_by_zarr(cube(fields), to))


def _timeless(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files, without the time in the header of gzip (RFC 1952, 2.3: MTIME)."""
    return {name: data[:4] + bytes(4) + data[8:] if data[:2] == b"\x1f\x8b" else data for name, data in files.items()}
