"""What files of GRIB become: fields of messages of several, repeated keys, unusual times, files of other formats."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura

eccodes = pytest.importorskip("eccodes")

POINTS = 496
NCEP = 7


def message(sample: str = "regular_ll_pl_grib2", values: np.ndarray | None = None, **keys: int | str) -> bytes:
    handle = eccodes.codes_grib_new_from_samples(sample)
    for name, value in keys.items():
        eccodes.codes_set(handle, name, value)
    if values is not None:
        eccodes.codes_set_values(handle, values)
    made = bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    return made


def values(made: bytes) -> np.ndarray:
    handle = eccodes.codes_new_from_message(made)
    found = np.array(eccodes.codes_get_values(handle))
    eccodes.codes_release(handle)
    return found


def sections(made: bytes) -> list[bytes]:
    found, at = [], 16
    while at < len(made) - 4:
        length = int.from_bytes(made[at : at + 4], "big")
        found.append(made[at : at + length])
        at += length
    return found


def joined(head: bytes, parts: list[bytes]) -> bytes:
    body = b"".join(parts)
    return head[:8] + (20 + len(body)).to_bytes(8, "big") + body + b"7777"


def several(messages: list[bytes], first: int) -> bytes:
    """One message of all fields; each but the first begins with this section."""
    parts = sections(messages[0])
    for made in messages[1:]:
        parts += [part for part in sections(made) if part[4] >= first]
    return joined(messages[0], parts)


def archive(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["junctura", "store", "archive", "--create", "--store", str(folder / "store"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(path: Path, *messages: bytes) -> Path:
    path.write_bytes(b"".join(messages))
    return path


@pytest.mark.parametrize("first", [2, 3, 4])
def test_each_field_of_a_message_is_an_object_with_equal_values(tmp_path: Path, first: int) -> None:
    rng = np.random.default_rng(first)
    arrays = [np.round(rng.uniform(200, 300, POINTS), 3) for _ in range(4)]
    names = [("u", 500), ("v", 500), ("t", 500), ("t", 850)]
    made = [
        message(values=array, shortName=name, level=level) for array, (name, level) in zip(arrays, names, strict=True)
    ]
    file = write(tmp_path / "several.grib", several(made, first), made[0][:0])
    done = archive(tmp_path, "--json", file)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["objects"] == 4
    for (name, level), one in zip(names, made, strict=True):
        (found,) = junctura.Store(tmp_path / "store").list(f"param={name},levelist={level}")
        payload = bytes(found.read())
        np.testing.assert_array_equal(values(payload), values(one))
        handle = eccodes.codes_new_from_message(payload)
        assert eccodes.codes_get(handle, "shortName") == name
        eccodes.codes_release(handle)


def test_a_bitmap_of_an_earlier_field_goes_with_the_field(tmp_path: Path) -> None:
    array = np.arange(POINTS, dtype=float)
    array[::7] = 9999
    made = [
        message(values=array + add * (array < 9999), bitmapPresent=1, missingValue=9999, shortName=name)
        for name, add in (("u", 0), ("v", 3), ("t", 5))
    ]
    parts = sections(made[0])
    for one in made[1:]:
        parts += [b"\0\0\0\6\6\xfe" if part[4] == 6 else part for part in sections(one) if part[4] >= 4]
    junctura.Store.from_grib(tmp_path / "store", write(tmp_path / "bitmaps.grib", joined(made[0], parts)))
    for name, one in zip("uvt", made, strict=True):
        (found,) = junctura.Store(tmp_path / "store").list(f"param={name}")
        np.testing.assert_array_equal(values(bytes(found.read())), values(one))


def test_a_message_can_be_kept_whole_and_its_hidden_fields_are_counted(tmp_path: Path) -> None:
    made = [message(shortName=name) for name in "uvt"]
    file = write(tmp_path / "kept.grib", several(made, 4))
    done = archive(tmp_path, "--keep-messages", file)
    assert "1 object" in done.stdout and "2 more fields hidden" in done.stdout
    (found,) = junctura.Store(tmp_path / "store").list()
    assert bytes(found.read()) == file.read_bytes()
    with junctura.Store.create(tmp_path / "python", schema="mars") as store, pytest.warns(UserWarning, match="hidden"):
        assert store.archive_grib(file, keep_messages=True) == 1


def test_fields_that_replace_others_of_the_file_are_counted_or_refused(tmp_path: Path) -> None:
    grids = [message(shortName="t", level=500, Ni=ni, values=np.full(31 * ni, 1.0)) for ni in (16, 8)]
    file = write(tmp_path / "twice.grib", *grids, message(shortName="u"))
    done = archive(tmp_path, file)
    assert "3 objects" in done.stdout and "1 of 3 replaced others of this file" in done.stdout
    done = archive(tmp_path / "other", "--strict", file)
    assert done.returncode != 0
    assert "message 2" in done.stderr and "message 1" in done.stderr and "AlreadyExists" in done.stderr
    with junctura.Store.create(tmp_path / "python", schema="mars") as store:
        with pytest.warns(UserWarning, match="1 of 3 fields replaced others of this file"):
            assert store.archive_grib(file) == 3
        with pytest.raises(junctura.errors.AlreadyExists):
            store.archive_grib(file, strict=True)


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        ({"forecastTime": -6}, "step=-6"),
        ({"indicatorOfUnitOfTimeRange": 0, "forecastTime": -90}, "step=-1h30m"),
        ({"indicatorOfUnitOfTimeRange": 0, "forecastTime": 15}, "step=15m"),
        ({"dataDate": 8500115}, "date=08500115"),
        ({"year": 1, "month": 1, "day": 1}, "date=0001-01-01"),
        ({"year": 9999, "month": 12, "day": 31}, "date=99991231"),
    ],
)
def test_unusual_times_are_archived_and_found(tmp_path: Path, keys: dict[str, Any], asked: str) -> None:
    file = write(tmp_path / "times.grib", message(**keys))
    done = archive(tmp_path, file)
    assert done.returncode == 0, done.stderr
    assert len(junctura.Store(tmp_path / "store").list(asked)) == 1


def test_ranges_around_the_base_time_are_told_apart(tmp_path: Path) -> None:
    ranges = [(-6, 6), (-3, 3), (0, 6), (0, 3), (-6, 12)]
    made = []
    for start, length in ranges:
        handle = eccodes.codes_new_from_message(
            message("GRIB2", centre=NCEP, productDefinitionTemplateNumber=8, typeOfStatisticalProcessing=1)
        )
        eccodes.codes_set(handle, "lengthOfTimeRange", length)
        eccodes.codes_set(handle, "forecastTime", start)
        made.append(bytes(eccodes.codes_get_message(handle)))
        eccodes.codes_release(handle)
    store = junctura.Store.from_grib(tmp_path / "store", write(tmp_path / "ranges.grib", *made))
    assert len(store.list()) == len(ranges)


@pytest.mark.parametrize("raw", [b"\xff\xff\xff\xe2", b"\x7f\xff\xff\xff"])
def test_an_overflowed_step_is_named(tmp_path: Path, raw: bytes) -> None:
    parts = [
        part[:18] + raw + part[22:] if part[4] == 4 else part for part in sections(message(shortName="t", level=500))
    ]
    file = write(tmp_path / "overflow.grib", joined(message(), parts))
    done = archive(tmp_path, file)
    assert done.returncode != 0 and "more than 10,000 years" in done.stderr and "--set step=" in done.stderr
    assert archive(tmp_path, "--set", "step=3", file).returncode == 0


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("empty.grib", b"", "is empty"),
        ("page.grib2", b"<!DOCTYPE html>\n<html><body>404</body></html>", "is an HTML page"),
        ("page.dat", b"\r\n<html>", "is an HTML page"),
        ("cdf.grb", b"CDF\x01" + bytes(100), "is a netCDF file"),
        ("gzip.grib2", b"\x1f\x8b\x08" + bytes(100), "is a gzip file"),
        ("noise.grib", bytes(range(128, 256)) * 9, "begins with the bytes 80 81"),
        ("bufr.grib", b"BUFR" + bytes(50), "is a BUFR file"),
    ],
)
def test_a_file_without_a_message_is_named(tmp_path: Path, name: str, content: bytes, found: str) -> None:
    (tmp_path / name).write_bytes(content)
    done = archive(tmp_path, tmp_path / name)
    assert done.returncode != 0
    assert "no GRIB message found" in done.stderr and found in done.stderr and name in done.stderr


@pytest.mark.parametrize("before", [b"\0" * 10_000, b"SPEC\x01\x02" * 3_000, b"GRIBBLE" * 9])
def test_anything_before_the_first_message_is_passed_over(tmp_path: Path, before: bytes) -> None:
    file = write(tmp_path / "after.grib", before, message(shortName="t"))
    done = archive(tmp_path, "--keep-going", file)
    assert len(junctura.Store(tmp_path / "store").list("param=t")) == 1, done.stderr


def test_parameters_by_number_and_by_name(tmp_path: Path) -> None:
    made = [message(shortName=name, level=500) for name in "tu"] + [message("regular_ll_sfc_grib1", paramId=167)]
    store = junctura.Store.from_grib(tmp_path / "store", write(tmp_path / "params.grib", *made))
    for words in (["2t", "167", "167.128"], ["t", "130", "130.128"]):
        assert {len(store.list(f"param={word}")) for word in words} == {1}
        assert len(store.retrieve(f"param={words[1]}")) == 1
    assert len(store.list("param=167/u")) == 2
    assert len(store.list("param!=167")) == 2
    with pytest.raises(junctura.errors.NotFound, match="155"):
        store.retrieve("param=130/155")


def test_a_control_counts_as_member_0(tmp_path: Path) -> None:
    ensemble: dict[str, Any] = {"setLocalDefinition": 1, "stream": "enfo", "productDefinitionTemplateNumber": 1}
    made = [message(**ensemble, type="cf", perturbationNumber=0)] + [
        message(**ensemble, type="pf", perturbationNumber=n) for n in (1, 2)
    ]
    store = junctura.Store.from_grib(tmp_path / "store", write(tmp_path / "members.grib", *made))
    for asked, count in (("0", 1), ("0/1", 2), ("0/to/2", 3), ("1/2", 2)):
        assert len(store.retrieve(f"number={asked}")) == count, asked
    assert len(store.list("number<2")) == 2
    with pytest.raises(junctura.errors.NotFound, match="number=3"):
        store.retrieve("number=0/to/3")


def test_monthly_means_without_a_time(tmp_path: Path) -> None:
    made = message("regular_ll_sfc_grib1", stream="moda", timeRangeIndicator=123, numberIncludedInAverage=31)
    store = junctura.Store.from_grib(tmp_path / "store", write(tmp_path / "monthly.grib", made))
    (found,) = store.list()
    assert found["time"] is not None and found["stepType"] == "avgua"
