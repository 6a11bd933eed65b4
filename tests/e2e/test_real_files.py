"""Real GRIB files of several centres, where they are at hand: every message comes back, byte for byte, by meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from e2e_grib import split
from e2e_shell import DATA, Shell

FILES = sorted(DATA.glob("*.grib*")) if DATA.is_dir() else []
ERA5 = DATA / "era5-levels-members.grib"
NAM = DATA / "nam.t00z.awp21100.tm00.grib2"
CORRUPTED = DATA / "era5-levels-corrupted.grib"

pytestmark = pytest.mark.skipif(not FILES, reason="the files are not here")


@pytest.mark.parametrize("path", [path for path in FILES if path != CORRUPTED], ids=lambda path: path.name)
def test_every_message_comes_back(shell: Shell, path: Path, tmp_path: Path) -> None:
    messages = split(path.read_bytes())
    assert shell.documents("put", "--json", "--keep-messages", path)[-1]["objects"] == len(messages)
    assert sorted(split(shell.run("get", "--all", "-o", "-").stdout)) == sorted(messages)
    lines = shell.documents("get", "--all", "--json", "-o", f"{tmp_path}/each/")[:-1]
    assert sorted(Path(line["file"]).read_bytes() for line in lines) == sorted(messages)


def test_era5_by_param_level_number_date_and_time(shell: Shell) -> None:
    eccodes = pytest.importorskip("eccodes")
    shell.run("put", ERA5)
    messages = split(ERA5.read_bytes())
    assert len(messages) == 160
    assert shell.text("ls", "--count") == "160\n"
    for data in messages:
        handle = eccodes.codes_new_from_message(data)
        names = {"shortName": "param", "level": "levelist", "number": "number", "dataDate": "date", "dataTime": "time"}
        selector = [f"{name}={eccodes.codes_get_string(handle, theirs)}" for theirs, name in names.items()]
        assert shell.text("ls", "--count", *selector) == "1\n"
        assert shell.run("get", *selector).stdout == data


def count_fields(path: Path) -> int:
    """Those that ecCodes finds in a file, also where several are in one message."""
    eccodes = pytest.importorskip("eccodes")
    eccodes.codes_grib_multi_support_on()
    try:
        with path.open("rb") as file:
            count = 0
            while (handle := eccodes.codes_grib_new_from_file(file)) is not None:
                count += 1
                eccodes.codes_release(handle)
            return count
    finally:
        eccodes.codes_grib_multi_support_off()


def test_nam_by_param_and_level(shell: Shell) -> None:
    messages = split(NAM.read_bytes())
    assert len(messages) == 154
    shell.run("put", NAM)
    assert shell.text("ls", "--count", "class=kwbc") == f"{count_fields(NAM)}\n"
    gust = shell.run("get", "param=gust", "date=20180917", "time=0", "step=0").stdout
    assert gust in messages
    levels = [line["attributes"]["levelist"] for line in shell.documents("ls", "--json", "param=t", "levtype=pl")]
    assert len(set(levels)) == len(levels) > 10
    assert shell.text("ls", "--count", "levtype=cloudTop/maxWind") != "0\n"


def test_the_corrupted_file_names_message_and_byte(shell: Shell) -> None:
    data = CORRUPTED.read_bytes()
    said = shell.error(1, "put", CORRUPTED)
    assert "Corrupt" in said
    assert CORRUPTED.name in said
    assert "message 1 at byte 0" in said
    assert "byte 1584" in said
    # What stands behind it, with --keep-going.
    shell.error(1, "put", "--keep-going", CORRUPTED)
    assert shell.run("get", "--all", "-o", "-").stdout == b"".join(split(data))


def test_good_messages_before_the_corrupted_ones_are_there(shell: Shell, tmp_path: Path) -> None:
    good = split(ERA5.read_bytes())[:3]
    path = tmp_path / "mixed.grib"
    path.write_bytes(b"".join(good) + CORRUPTED.read_bytes())
    done = shell.run("put", "--json", path, status=1)
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["objects"], summary["failed"]) == (3, 1)
    assert f"message 4 at byte {sum(map(len, good))}" in done.stderr.decode()
    assert sorted(split(shell.run("get", "--all", "-o", "-").stdout)) == sorted(good)
