"""How products come to their place: whole or not at all, with what they were made of beside them."""

from __future__ import annotations

import csv
import datetime as dt
import errno
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs_fields import PLACES, field, provenance, with_gap, written

import junctura
from junctura.products._outputs import Output, _place, is_made, meaning, write

FORMATS = ("grib2", "netcdf", "zarr", "png", "csv", "parquet")
SAID = {"fingerprint": "f1", "product": "p", "inputs": [{"key": "k", "version": 3}]}


@pytest.mark.parametrize("name", FORMATS)
def test_a_product_and_its_provenance_are_all_that_is_there(tmp_path: Path, name: Any) -> None:
    path = tmp_path / f"product.{name}"
    made = write([field()], Output(name), path, SAID)
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name, f"{path.name}.provenance.json"]
    said = provenance(path)
    assert {key: said[key] for key in SAID} == SAID
    assert (said["name"], said["format"], said["bytes"]) == (path.name, name, made.bytes)
    assert said["sha256"] == made.sha256
    assert set(said["software"]) > {"junctura", "numpy"} or name == "csv"
    assert made.provenance == tmp_path / f"{path.name}.provenance.json"
    if path.is_file():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == made.sha256
    assert is_made(path, "f1") and not is_made(path, "f2")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("durable", [False, True])
def test_a_newer_one_takes_the_place_of_an_older_one(tmp_path: Path, name: Any, durable: bool) -> None:
    path = tmp_path / "product"
    write([field()], Output(name), path, SAID)
    write([field(step=12)], Output(name), path, {**SAID, "fingerprint": "f2"}, durable=durable)
    assert is_made(path, "f2") and not is_made(path, "f1")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_group_takes_the_place_of_a_file_and_a_file_that_of_a_group(tmp_path: Path) -> None:
    path = tmp_path / "product"
    for name in ("csv", "zarr", "csv"):
        write([field()], Output(name), path, SAID)
        assert is_made(path, "f1") and path.is_dir() == (name == "zarr")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_group_is_replaced_where_names_cannot_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_place, "_exchange", lambda *_: False)
    path = tmp_path / "product"
    for fingerprint in ("f1", "f2"):
        write([field()], Output("zarr"), path, {**SAID, "fingerprint": fingerprint})
    assert is_made(path, "f2") and len(list(tmp_path.iterdir())) == 2


def test_what_killed_writers_left_goes_when_it_is_old(tmp_path: Path) -> None:
    names = [".p.csv.0123456789ab.part", ".q.0123456789cd.part", ".r.csv.0123456789ef.part", ".mine.part"]
    for name, days in zip(names, (2, 2, 0, 2), strict=True):
        one = tmp_path / name
        if name == names[1]:
            (one / "t").mkdir(parents=True)
        else:
            one.touch()
        os.utime(one, (time.time() - days * 86_400,) * 2)
    written(Output("csv"), tmp_path / "p.csv", field(PLACES))
    assert {one.name for one in tmp_path.iterdir()} == {*names[2:], "p.csv", "p.csv.provenance.json"}


def test_damage_is_seen(tmp_path: Path) -> None:
    path = written(Output("csv"), tmp_path / "p.csv", field(PLACES))
    whole, beside = path.read_bytes(), _place.provenance_of(path)
    assert not is_made(tmp_path / "other.csv", "f1")
    path.write_bytes(whole[:-1])
    assert not is_made(path, "f1")
    path.write_bytes(whole)
    assert is_made(path, "f1")
    said = beside.read_text()
    for damaged in ("", said[: len(said) // 2], "[]", "null", "{}", said.replace('"p.csv"', '"q.csv"'), "\udcff"):
        beside.write_bytes(damaged.encode("utf-8", "surrogateescape"))
        assert not is_made(path, "f1")
    beside.unlink()
    assert not is_made(path, "f1")
    path.unlink()
    beside.write_text(said)
    assert not is_made(path, "f1")


def test_a_group_without_a_chunk_is_not_made(tmp_path: Path) -> None:
    path = written(Output("zarr"), tmp_path / "p.zarr", field())
    next(one for one in path.rglob("*") if one.is_file() and "t/c" in str(one)).unlink()
    assert not is_made(path, "f1")


@pytest.mark.parametrize(
    "said",
    [{}, {"fingerprint": ""}, {"fingerprint": 3}, {**SAID, "inputs": {1, 2}}, {**SAID, "inputs": float("nan")}],
)
def test_a_provenance_that_is_none_is_refused(tmp_path: Path, said: dict[str, Any]) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match=r"provenance of p\.csv"):
        write([field(PLACES)], Output("csv"), tmp_path / "p.csv", said)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"format": "tiff"}, "output format: 'tiff' is not one of grib2, netcdf, zarr, png, csv, parquet"),
        ({"packing": "jpeg"}, "output packing"),
        ({"projection": "mercator"}, "output projection"),
        ({"compression": "rar"}, "output compression"),
        ({"bits": 0}, "output bits: 0, expected 1 to 32"),
        ({"bits": 33}, "output bits"),
        ({"width": 10}, "output width"),
        ({"digits": 18}, "output digits"),
        ({"range": (1.0, 1.0)}, "output range"),
        ({"range": (1.0, 2.0, 3.0)}, "output range"),
        ({"levels": (1.0,)}, "output levels"),
        ({"levels": (1.0, float("inf"))}, "output levels"),
        ({"centre": (91.0, 0.0)}, "output centre"),
    ],
)
def test_an_output_that_there_is_not_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match=named):
        Output(**{"format": "png", **given})


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({"param": None}, "no attribute param"),
        ({"step": "soon"}, "step is 'soon'"),
        ({"step": "6-0"}, "step is '6-0'"),
        ({"date": "yesterday"}, "date is 'yesterday'"),
        ({"time": "25:00"}, "time is '25:00'"),
        ({"number": 1.5}, "number is 1.5"),
        ({"levelist": "high"}, "levelist is 'high'"),
        ({"statistic": "mode"}, "statistic is 'mode'"),
        ({"statistic": "percentile"}, "percentile is None"),
        ({"statistic": "percentile", "percentile": 101}, "percentile is 101"),
        ({"statistic": "probability"}, "threshold is None"),
        ({"stepType": "sum"}, "stepType is 'sum'"),
        ({"stepStart": "then"}, "stepStart is 'then'"),
        ({"stepStart": 12}, "step is 6, expected a range that goes on"),
    ],
)
def test_an_attribute_that_cannot_be_read_is_named(tmp_path: Path, attributes: dict[str, Any], named: str) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match=named):
        written(Output("csv"), tmp_path / "p.csv", field(PLACES, **attributes))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", FORMATS)
def test_no_fields_are_no_product(tmp_path: Path, name: Any) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match="no fields"):
        write([], Output(name), tmp_path / "p", SAID)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(junctura.errors.Io, match=r"gone/p\.csv: cannot be written: No such file"):
        write([field(PLACES)], Output("csv"), tmp_path / "gone/p.csv", SAID)


def _is_as_before(path: Path, before: bytes | None) -> bool:
    return not list(path.parent.iterdir()) if before is None else path.read_bytes() == before and is_made(path, "f1")


def _at_each_call(monkeypatch: pytest.MonkeyPatch, call: Callable[[int], None]) -> None:
    count = iter(range(100))
    whole = _place._write

    def write_one(*given: Any) -> None:
        call(next(count))
        whole(*given)

    monkeypatch.setattr(_place, "_write", write_one)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("nth", [0, 1])
def test_a_disk_that_is_full_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool, nth: int
) -> None:
    path = tmp_path / "p.csv"
    before = written(Output("csv"), path, field(PLACES)).read_bytes() if is_there else None

    def full(number: int) -> None:
        if number == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    _at_each_call(monkeypatch, full)
    with pytest.raises(junctura.errors.Io, match=r"p\.csv: cannot be written: No space left on device"):
        write([field(PLACES, step=12)], Output("csv"), path, {**SAID, "fingerprint": "f2"})
    assert _is_as_before(path, before)


@pytest.mark.parametrize("name", ["grib2", "netcdf", "zarr", "png", "csv"])
def test_a_file_that_may_not_grow_leaves_nothing(tmp_path: Path, name: Any) -> None:
    """The kernel refuses in the midst of a file, as it does when a disk is full."""
    path = tmp_path / "p"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(junctura.errors.Io, match="p: cannot be written: File too large"):
            write([field("1/1")], Output(name), path, SAID)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.iterdir())


KILLED = """
import sys
import time
from pathlib import Path
from junctura.products._outputs import Output, _place, write
sys.path.insert(0, sys.argv[3])
from outputs_fields import field

calls = 0
def waits(real):
    def call(*given):
        global calls
        calls += 1
        if calls == int(sys.argv[2]):
            print("here", flush=True)
            sys.stdin.read()
        return real(*given)
    return call

_place._rename = waits(_place._rename)
_place.os.fsync = waits(_place.os.fsync)
write([field(step=12)], Output("zarr"), Path(sys.argv[1]), {"fingerprint": "f2"}, durable=bool(sys.argv[4]))
"""


@pytest.mark.parametrize(
    ("when", "is_there"), [("first file", False), ("ninth file", True), ("rename", False), ("rename", True)]
)
def test_a_killed_writer_leaves_no_part_of_a_product(tmp_path: Path, when: str, is_there: bool) -> None:
    path = tmp_path / "p.zarr"
    if is_there:
        written(Output("zarr"), path, field())
    call, durable = {"first file": ("1", "yes"), "ninth file": ("9", "yes"), "rename": ("1", "")}[when]
    given = [sys.executable, "-c", KILLED, str(path), call, str(Path(__file__).parent), durable]
    with subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "here\n"
        writer.kill()
    assert path.exists() == is_there
    # Between the two renames nothing vouches for the old one any more.
    assert is_made(path, "f1") == (is_there and when != "rename")
    assert all(one.name.startswith((".", "p.zarr")) for one in tmp_path.iterdir())
    write([field(step=12)], Output("zarr"), path, {"fingerprint": "f3"})
    assert is_made(path, "f3")


def test_whoever_looks_sees_a_whole_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each step of a writer: the old product or the new one, never vouched for by what the other was made of."""
    path = tmp_path / "p.zarr"
    written(Output("zarr"), path, field())
    seen = []

    def look() -> None:
        steps = json.loads((path / "zarr.json").read_text())["consolidated_metadata"]["metadata"].keys()
        assert {"t", "time", "latitude"} <= set(steps)
        assert sum(one.is_file() for one in path.rglob("*")) > len(steps)
        seen.append((is_made(path, "f1"), is_made(path, "f2")))

    for name in ("unlink", "rename", "mkdir"):
        real: Any = getattr(Path, name)

        def step(self: Path, *given: Any, _real: Any = real, **named: Any) -> Any:
            look()
            done = _real(self, *given, **named)
            look()
            return done

        monkeypatch.setattr(Path, name, step)
    write([field(step=12)], Output("zarr"), path, {"fingerprint": "f2"})
    monkeypatch.undo()
    assert seen[0] == (True, False) and seen[-1] == (False, True)
    assert (True, True) not in seen
    assert sorted(set(seen), key=seen.index) == [(True, False), (False, False), (False, True)]


def test_rows_say_where_when_and_what(tmp_path: Path) -> None:
    fields = [field(PLACES, number=2), field(PLACES, statistic="percentile", percentile=10, step="0-6", stepType="max")]
    fields[1] = with_gap(fields[1].having(np.array([1.0, 2.0, 0.1])))
    fields[1].values[0] = np.nan
    path = written(Output("csv"), tmp_path / "p.csv", *fields)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("latitude", "longitude", "base_time", "valid_time", "step", "number", "levelist", "param", "value", "units")
    ]
    assert len(rows) == 6
    assert [float(row["value"]) for row in rows[:3]] == fields[0].values.tolist()
    assert rows[0] | {"value": ""} == {
        "latitude": "50.1", "longitude": "8.7", "base_time": "2026-08-01T12:00:00Z",
        "valid_time": "2026-08-01T18:00:00Z", "step": "6", "number": "2", "levelist": "850", "param": "t",
        "value": "", "units": "K",
    }  # fmt: skip
    assert [(row["param"], row["step"], row["number"], row["value"]) for row in rows[3:]] == [
        ("t_max_p10", "0-6", "", ""), ("t_max_p10", "0-6", "", "2.0"), ("t_max_p10", "0-6", "", "0.1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({}, "t"),
        ({"step": "0-24", "stepType": "avg"}, "t_avg"),
        ({"step": "0-24", "stepType": "min", "statistic": "mean"}, "t_min_mean"),
        ({"step": "0-24", "stepType": "max", "statistic": "probability", "threshold": 273.15}, "t_max_above_273.15"),
        ({"step": "0-24", "stepType": "accum"}, "t"),
        ({"step": 24, "stepType": "instant"}, "t"),
        ({"step": 24, "stepType": "max", "stepStart": 18}, "t"),
    ],
)
def test_a_name_says_what_was_made_of_steps_and_members(attributes: dict[str, Any], name: str) -> None:
    assert meaning(field(**attributes)).name == name


def test_a_step_may_say_its_end_only() -> None:
    is_what = meaning(field(step=24, stepType="max", stepStart="90m"))
    assert (is_what.start, is_what.end) == (dt.timedelta(minutes=90), dt.timedelta(hours=24))
    assert meaning(field(step=6, stepType="accum", stepStart=6)).start is None


@pytest.mark.parametrize("names", [("Bonn", "", "Wien, Prater"), ["Bonn", "", "Wien, Prater"]])
def test_rows_begin_with_the_name_of_the_place(tmp_path: Path, names: Any) -> None:
    path = written(Output("csv"), tmp_path / "p.csv", field(PLACES, places=names), field(PLACES, step=12))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:2] == ["place", "latitude"]
    assert [row["place"] for row in rows] == [*names, "", "", ""] and rows[2]["latitude"] == "-3.0"


@pytest.mark.parametrize("name", ["csv", "netcdf"])
def test_more_names_than_places_are_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match="places are not the names of 3 points"):
        written(Output(name), tmp_path / "p.csv", field(PLACES, places=["Bonn"]))


def test_rows_have_as_many_digits_as_are_asked_for(tmp_path: Path) -> None:
    one = field(PLACES).having(np.array([295.6789, 0.000123456, -3.0]))
    path = written(Output("csv", digits=4), tmp_path / "p.csv", one)
    assert [line.split(",")[-2] for line in path.read_text().splitlines()[1:]] == ["295.7", "0.0001235", "-3"]
