"""Files of all types and shapes through the pool, compared with the files themselves by netCDF4."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from netcdf_files import all_builds, assert_same, generate
from netcdf_programs import need, run

BUILDS = all_builds()


@pytest.mark.parametrize("name", BUILDS)
def test_a_file_through_the_pool_is_the_file(name: str, intercepted: dict[str, str], tmp_path: Path) -> None:
    need("nccopy")
    generate(tmp_path / "file.nc", *BUILDS[name])
    run("nccopy", "file.nc", "pool.nc", folder=tmp_path, environment=intercepted)
    assert not (tmp_path / "pool.nc").exists()
    run("nccopy", "pool.nc", "out.nc", folder=tmp_path, environment=intercepted)
    assert_same(tmp_path / "file.nc", tmp_path / "out.nc")


@pytest.mark.parametrize(
    "name", ["types-4", "types-3_classic", "gaps-4", "levels-4", "groups", "texts", "unlimited", "attributes"]
)
def test_file_and_pool_have_the_same(name: str, intercepted: dict[str, str], tmp_path: Path) -> None:
    need("nccopy")
    generate(tmp_path / "file.nc", *BUILDS[name])
    both = {**intercepted, "JUNCTURA_NETCDF": "pool*.nc=tee"}
    run("nccopy", "file.nc", "pool.nc", folder=tmp_path, environment=both)
    run("nccopy", "pool.nc", "out.nc", folder=tmp_path, environment=intercepted)
    assert_same(tmp_path / "file.nc", tmp_path / "pool.nc")
    assert_same(tmp_path / "file.nc", tmp_path / "out.nc")


@pytest.mark.parametrize("name", ["types-4", "types-3_classic", "gaps-4", "groups", "texts", "unlimited"])
def test_ncks_copies_through_the_pool(name: str, intercepted: dict[str, str], tmp_path: Path) -> None:
    """It looks for files before it opens them: they have stubs."""
    need("ncks")
    generate(tmp_path / "file.nc", *BUILDS[name])
    stubs = {**intercepted, "JUNCTURA_NETCDF": "pool*.nc=stub"}
    run("ncks", "--no_tmp_fl", "file.nc", "pool.nc", folder=tmp_path, environment=stubs)
    run("ncks", "pool.nc", "out.nc", folder=tmp_path, environment=stubs)
    plain = {name: value for name, value in stubs.items() if name != "LD_PRELOAD"}
    run("ncks", "file.nc", "plain.nc", folder=tmp_path, environment=plain)
    assert_same(tmp_path / "plain.nc", tmp_path / "out.nc")


@pytest.mark.parametrize("form", ["-3", "-4", "-5", "-6", "-7"])
def test_ncgen_writes_into_the_pool(form: str, intercepted: dict[str, str], tmp_path: Path) -> None:
    need("ncgen", "ncdump")
    generate(tmp_path / "file.nc", *BUILDS["types-3_classic"])
    plain = {name: value for name, value in intercepted.items() if name != "LD_PRELOAD"}
    text = run("ncdump", "-n", "all", "file.nc", folder=tmp_path, environment=plain)
    (tmp_path / "all.cdl").write_text(text)
    run("ncgen", form, "-o", "pool.nc", "all.cdl", folder=tmp_path, environment=intercepted)
    assert run("ncdump", "-n", "all", "pool.nc", folder=tmp_path, environment=intercepted) == text


USER_TYPES = """netcdf types {
types:
  byte enum cloud {clear = 0, few = 1, overcast = 8};
  opaque(5) seal;
  float(*) profile;
  string(*) words;
  compound point { float x; int y; };
  compound station { point at; float levels(3); cloud sky; seal mark; double time; };
  compound track { string name; profile heights; };
  point(*) path;
dimensions: time = unlimited; obs = unlimited; x = 3;
variables:
  double time(time);
  cloud clouds(time, x); cloud clouds:_FillValue = overcast;
  seal seals(x);
  profile profiles(time, x);
  words lists(x);
  station stations(time);
  track tracks(x);
  path paths(obs);
  point alone;
  float plain(time, x); point plain:origin = {1.5, 2};
  cloud :sky = few; profile :levels = {1, 2.5}, {}, {3};
data:
  time = 0, 6, 12;
  clouds = clear, few, overcast, few, few, clear;
  seals = 0X0102030405, 0Xa0b0c0d0e0, 0X0000000000;
  profiles = {1, 2, 3}, {}, {4.5}, {5}, {6, 7}, {8};
  lists = {"a", "bc"}, {"d"}, {""};
  stations = {{1, 2}, {1, 2, 3}, few, 0X0102030405, 0.5}, {{3, 4}, {4, 5, 6}, clear, 0X1122334455, 1.5},
    {{5, 6}, {7, 8, 9}, few, 0X0000000001, 2.5};
  tracks = {"one", {1, 2}}, {"two", {3}}, {"three", {4, 5, 6}};
  paths = {{1, 2}, {3, 4}}, {{5, 6}}, {}, {{7, 8}};
  alone = {7, 8};
  plain = 1, 2, 3, 4, 5, 6;
group: deep {
  types: int enum level {low = -1, high = 100000};
  dimensions: event = unlimited;
  variables: level levels(event);
  data: levels = low, high, low;
}
}
"""


@pytest.mark.parametrize("mode", ["pool", "tee"])
def test_user_defined_types_are_kept(mode: str, intercepted: dict[str, str], tmp_path: Path) -> None:
    need("ncgen", "nccopy", "ncdump")
    (tmp_path / "types.cdl").write_text(USER_TYPES)
    stated = {**intercepted, "JUNCTURA_NETCDF": f"pool*.nc={mode}"}
    plain = {name: value for name, value in intercepted.items() if name != "LD_PRELOAD"}
    run("ncgen", "-4", "-o", "plain.nc", "types.cdl", folder=tmp_path, environment=plain)
    run("ncgen", "-4", "-o", "pool.nc", "types.cdl", folder=tmp_path, environment=stated)
    assert (tmp_path / "pool.nc").exists() == (mode == "tee")
    run("nccopy", "pool.nc", "out.nc", folder=tmp_path, environment=stated)
    told = [run("ncdump", "-n", "same", name, folder=tmp_path, environment=plain) for name in ("plain.nc", "out.nc")]
    assert told[0] == told[1]


# Records that only another variable has: those of user types are shorter, and have fill values or zeros there.
SHORTER = """
import sys, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1], "w") as file:
    file.createDimension("time", None); file.createDimension("x", 2)
    point = file.createCompoundType(np.dtype([("a", "f4"), ("b", "i4")]), "point")
    cloud = file.createEnumType(np.uint8, "cloud", {"clear": 0, "few": 1, "overcast": 8})
    profile = file.createVLType(np.float32, "profile")
    time = file.createVariable("time", "f8", ("time",))
    points = file.createVariable("points", point, ("time", "x"))
    clouds = file.createVariable("clouds", cloud, ("time", "x"), fill_value=8)
    profiles = file.createVariable("profiles", profile, ("time",))
    for record in range(4):
        time[record] = record
        if record == 1: clouds[record] = [1, 0]
        if record == 2: points[record, 0] = np.array((1, 2), point.dtype)
        if record == 0: profiles[record] = np.array([1, 2], "f4")
    assert len(file.dimensions["time"]) == 4
"""


def test_records_of_user_types_may_be_fewer(intercepted: dict[str, str], tmp_path: Path) -> None:
    need("nccopy", "ncdump")
    (tmp_path / "shorter.py").write_text(SHORTER)
    plain = {name: value for name, value in intercepted.items() if name != "LD_PRELOAD"}
    run(sys.executable, "shorter.py", "plain.nc", folder=tmp_path, environment=plain)
    run(sys.executable, "shorter.py", "pool.nc", folder=tmp_path, environment=intercepted)
    run("nccopy", "pool.nc", "out.nc", folder=tmp_path, environment=intercepted)
    told = [run("ncdump", "-n", "same", name, folder=tmp_path, environment=plain) for name in ("plain.nc", "out.nc")]
    assert told[0] == told[1]


FORECAST = """netcdf forecast {
dimensions: time = unlimited; lat = 3; lon = 4;
variables:
  double time(time); time:units = "hours since 2026-01-01 00:00:00"; time:calendar = "standard";
  double lat(lat); lat:units = "degrees_north"; lat:standard_name = "latitude";
  double lon(lon); lon:units = "degrees_east"; lon:standard_name = "longitude";
  float t(time, lat, lon); t:units = "K"; t:_FillValue = -1.f;
data:
  time = 0, 6; lat = -10, 0, 10; lon = 0, 90, 180, 270;
  t = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24;
}
"""


def test_cdo_writes_into_the_pool_and_reads_from_it(intercepted: dict[str, str], tmp_path: Path) -> None:
    need("cdo", "ncgen")
    (tmp_path / "forecast.cdl").write_text(FORECAST)
    stubs = {**intercepted, "JUNCTURA_NETCDF": "pool*.nc=stub"}
    plain = {name: value for name, value in stubs.items() if name != "LD_PRELOAD"}
    run("ncgen", "-o", "forecast.nc", "forecast.cdl", folder=tmp_path, environment=plain)
    run("cdo", "-s", "addc,1", "forecast.nc", "pool.nc", folder=tmp_path, environment=stubs)
    run("cdo", "-s", "mulc,2", "pool.nc", "out.nc", folder=tmp_path, environment=stubs)
    run("cdo", "-s", "mulc,2", "-addc,1", "forecast.nc", "plain.nc", folder=tmp_path, environment=plain)
    assert_same(tmp_path / "plain.nc", tmp_path / "out.nc")


def test_the_wheel_of_netcdf4_is_intercepted(intercepted: dict[str, str], tmp_path: Path) -> None:
    """Its copy of the library has another file name, and was loaded privately."""
    program = tmp_path / "wheel.py"
    program.write_text(
        "import netCDF4, numpy as np\n"
        "with netCDF4.Dataset('pool.nc', 'w') as file:\n"
        "    file.createDimension('time', None); file.createDimension('x', 3)\n"
        "    v = file.createVariable('v', 'f4', ('time', 'x'), fill_value=-1)\n"
        "    for step in range(3): v[step] = np.arange(3) + step\n"
        "with netCDF4.Dataset('pool.nc') as file:\n"
        "    print(file['v'][:].tolist())\n"
    )
    told = run(sys.executable, program, folder=tmp_path, environment=intercepted)
    assert told == "[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]\n"
    assert not (tmp_path / "pool.nc").exists()
