"""The mapping file: variables as objects of another schema, and the lines that cannot be used."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from netcdf_programs import BUILT, ROOT, need

import junctura

# A file of the CF conventions: a variable on pressure levels, one at the surface, and one in the schema netcdf.
CDL = """netcdf cf {
dimensions: time = unlimited; plev = 3; lat = 2; lon = 2; band = 2;
variables:
  double time(time); time:units = "hours since 2026-11-28 18:00:00"; time:calendar = "proleptic_gregorian";
  double plev(plev); plev:units = "Pa";
  float ta(time, plev, lat, lon); ta:units = "K"; ta:standard_name = "air_temperature"; ta:cell = "point";
  float tas(time, lat, lon); tas:units = "K";
  float spectrum(band, lat); spectrum:units = "1";
  float other(time, lat); other:units = "m";
// global attributes:
  :member = 7;
data:
  plev = 100000, 92500, 50000;
  time = 0, 6.5;
  ta = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23;
  tas = 30, 31, 32, 33, 34, 35, 36, 37;
  spectrum = 50, 51, 52, 53;
  other = 60, 61, 62, 63;
}
"""
COMMON = "schema = mars\nclass = od\nstream = enfo\ntype = pf\nnumber = {global:member}\n"
TIMES = "date = {base:%Y-%m-%d}\ntime = {base:%H%M}\n"
MAP = f"""retention = withdrawn
[ta]
{COMMON}{TIMES}levtype = pl
param = t
levelist = {{dim:plev/100}}
step = {{lead:minutes}}m
cfName = {{standard_name}}
validity = {{valid:%Y-%m-%dT%H:%M:%SZ}}
[tas]
{COMMON}{TIMES}levtype = sfc
param = 2t
step = {{lead:minutes}}m
[spec*]
schema = bands
band = {{dim:band}}
of = {{file}}
[other]
run = r{{global:member}}
"""
OWN = """{name: bands, key: {dataset: [of], collocation: [], element: [band]},
  attributes: {of: {type: string}, band: {type: integer}}}"""


@pytest.fixture(autouse=True)
def libraries() -> None:
    """As `make build-ci` does."""
    need("ncgen")
    if not (BUILT / "libjunctura-netcdf.so").exists():
        subprocess.run([str(ROOT / "tools/build_intercept.sh"), str(BUILT), "strict"], check=True)


@pytest.fixture
def pool(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """A pool with a schema of the user."""
    (tmp_path / "bands.yaml").write_text(OWN)
    command = [str(BUILT / "junctura"), "pool", "serve", "--pool", "unix:test", "--announce"]
    command += ["--schema", "netcdf", "--schema", str(tmp_path / "bands.yaml")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()
        assert server.wait(timeout=60) == 0


@pytest.fixture
def client(environment: dict[str, str], pool: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[junctura.Pool]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    with junctura.Pool(pool) as opened:
        yield opened


def with_map(
    text: str, environment: dict[str, str], pool: str, folder: Path, *command: str, rules: str = "pool*.nc=pool"
) -> subprocess.CompletedProcess[str]:
    (folder / "map").write_text(text)
    (folder / "cf.cdl").write_text(CDL)
    words = [str(BUILT / "junctura"), "with", "--netcdf", rules, "--map", "map", "--pool", pool, "--"]
    words += command or ("ncgen", "-4", "-o", "pool.nc", "cf.cdl")
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("mode", ["pool", "tee"])
def test_variables_have_keys_of_another_schema(
    mode: str, environment: dict[str, str], pool: str, client: junctura.Pool, tmp_path: Path
) -> None:
    done = with_map(MAP, environment, pool, tmp_path, rules=f"pool*.nc={mode}")
    assert done.returncode == 0, done.stderr
    key = {"class": "od", "stream": "enfo", "type": "pf", "number": 7, "date": "2026-11-28", "time": "1800"}
    for record, step in enumerate(["0", "390m"]):
        for at, level in enumerate([1000, 925, 500]):
            about = {**key, "levtype": "pl", "param": "t", "levelist": level, "step": step}
            with client.demand(about, schema="mars", timeout=0) as found:
                np.testing.assert_array_equal(found.array(), np.arange(4.0).reshape(2, 2) + 12 * record + 4 * at)
                assert found["cfName"] == "air_temperature"
                assert str(found["validity"]).startswith(["2026-11-28T18:00", "2026-11-29T00:30"][record])
        about = {**key, "levtype": "sfc", "param": "2t", "step": step}
        taken = client.demand_array(about, schema="mars", timeout=0)
        np.testing.assert_array_equal(taken, np.arange(4.0).reshape(2, 2) + 30 + 4 * record)
    # A schema of one's own, without type and extents of arrays; the dimension has no coordinate variable.
    for band in range(2):
        with client.demand({"of": "pool.nc", "band": band}, schema="bands", timeout=0) as found:
            assert np.frombuffer(bytes(found), "f4").tolist() == [50 + 2 * band, 51 + 2 * band]
    assert [entry["run"] for entry in client.list("name=other")] == ["r7", "r7"]
    assert client.list("file=pool.nc, name=ta/tas/spectrum") == []


def test_netcdf_names_the_schema_of_what_it_does_not_read(
    environment: dict[str, str], pool: str, tmp_path: Path
) -> None:
    assert with_map(MAP, environment, pool, tmp_path).returncode == 0
    read = with_map(MAP, environment, pool, tmp_path, "ncdump", "-v", "other", "pool.nc")
    assert read.returncode == 0 and "other =\n  60, 61,\n  62, 63 ;" in read.stdout
    read = with_map("[none]\nrun = 1\n", environment, pool, tmp_path, "ncdump", "-v", "ta", "pool.nc")
    assert read.returncode != 0
    assert "ta is in the pool as objects of the schema mars, which netCDF does not read" in read.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ta]\nschema = marz\n", "map: line 2: the pool has no schema marz; it has "),
        ("[ta]\nschema = mars\nnone = 1\n", "map: line 3: the schema mars has no attribute none"),
        ("[ta]\nlevel 3\n", "map: line 2: expected NAME = VALUE or [VARIABLE ...]"),
        ("lead = 3\n", "map: line 1: lead is unknown: before the first section only retention is allowed"),
        ("[ta]\nschema = mars\nstep = {lead:months}\n", "map: line 3: {lead:months}: the unit is seconds, minutes"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_before_the_start(
    text: str, told: str, environment: dict[str, str], pool: str, tmp_path: Path
) -> None:
    done = with_map(text, environment, pool, tmp_path, "touch", "made")
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"[ta]\n{COMMON}units = {{color}}\n", "map: line 7: {color}: there is no such attribute of the variable ta"),
        (
            f"[ta]\n{COMMON}levelist = {{dim:height}}\n",
            "map: line 7: {dim:height}: this is no dimension of the variable ta",
        ),
        (
            f"[spectrum]\n{COMMON}step = {{lead:hours}}\n",
            "map: line 7: {lead:hours}: no coordinate variable with units",
        ),
        ("[ta]\nstep = {lead:hours}\n", "map: line 2: {lead:hours}: add the line `schema = NAME` to the section of ta"),
        (f"[ta]\n{COMMON}{TIMES}levtype = pl\n", "ta as an object of the schema mars: "),
    ],
)
def test_a_line_that_does_not_fit_the_file_is_named(
    text: str, told: str, environment: dict[str, str], pool: str, tmp_path: Path
) -> None:
    done = with_map(text, environment, pool, tmp_path)
    assert done.returncode != 0
    assert told in done.stderr


def test_the_library_names_lines_without_the_command(intercepted: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "map").write_text("[ta]\nlevel 3\nstep = {lead:month\n")
    (tmp_path / "cf.cdl").write_text(CDL)
    alone = {**intercepted, "JUNCTURA_NETCDF_MAP": str(tmp_path / "map")}
    words = ["ncgen", "-4", "-o", "pool.nc", "cf.cdl"]
    done = subprocess.run(words, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "map: line 2: expected NAME = VALUE or [VARIABLE ...]" in done.stderr
    assert "map: line 3: expected {WORD} at {lead:month" in done.stderr
