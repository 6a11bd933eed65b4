"""The load of a store: its figures, what it finds, and what becomes of its files."""

from __future__ import annotations

import json
import os
import signal
import sys
from itertools import chain
from pathlib import Path

import pytest
from e2e_shell import Document, Process, Shell

SMALL = ["--members", "2", "--steps", "3", "--levels", "5", "--params", "4", "--every", "10", "--json"]
OBJECTS = 120
RATES = ("write_per_s", "write_gib_per_s", "read_per_s", "read_gib_per_s", "list_per_s", "limit_write_gib_per_s")


@pytest.fixture
def place(tmp_path: Path) -> list[str]:
    return ["--store", str(tmp_path / "store")]


def run_load(bare: Shell, *arguments: str) -> list[Document]:
    """Rows of a small load, in which everything is found."""
    rows = bare.documents("load", "store", *SMALL, *arguments)
    for row in rows:
        assert (row["lost"], row["damaged"]) == (0, 0)
        assert all(row[rate] > 0 for rate in RATES), row
    return rows


@pytest.mark.parametrize("pattern", ["a", "b"])
@pytest.mark.parametrize("contended", [[], ["--contended"]], ids=["apart", "contended"])
@pytest.mark.parametrize("catalogue", ["log", "checkpoint"])
@pytest.mark.parametrize("size", ["1KiB", "300KiB"])
def test_all_that_was_written_is_found(
    bare: Shell, place: list[str], pattern: str, contended: list[str], catalogue: str, size: str
) -> None:
    """D: field I/O patterns A and B, with and without contention on one index."""
    load = [*place, "--pattern", pattern, *contended, "--catalogue", catalogue, "--size", size, "--writers", "2"]
    (row,) = run_load(bare, *load, "--threads", "2")
    assert (row["writers"], row["threads"], row["run"]["objects"]) == (2, 2, OBJECTS)
    assert (row["checkpoint_s"] is not None) == (catalogue == "checkpoint")
    versions = 1 if pattern == "a" else 2
    assert bare.text("ls", *place, "--count", "--all-versions") == f"{OBJECTS * versions}\n"
    assert bare.text("ls", *place, "--count") == f"{OBJECTS}\n"
    (axes,) = bare.documents("store", "axes", *place, "--json")
    assert len(axes["expver"]) == (1 if contended else 4)
    bare.run("store", "check", *place)


def test_what_is_read_back_is_a_share(bare: Shell, place: list[str]) -> None:
    (row,) = run_load(bare, *place, "--read-back", "0.7", "--size", "10KiB", "--writers", "2")
    assert row["read_back_per_s"] > 0
    assert row["run"]["read_back"] == 0.7


def test_the_ensemble_is_scaled(bare: Shell, place: list[str]) -> None:
    (row,) = bare.documents("load", "store", *place, "--preset", "ensemble", "--scale", "0.0003", "--json")
    assert (row["run"]["objects"], row["run"]["payload_bytes"], row["run"]["read_back"]) == (33, 803 << 10, 0.7)
    assert (row["lost"], row["run"]["preset"]) == (0, "ensemble")


def test_a_sweep_has_a_row_for_each_and_a_picture(bare: Shell, place: list[str], tmp_path: Path) -> None:
    """D: so many I/O servers by so many threads."""
    rows = run_load(bare, *place, "--writers", "1,2,3", "--threads", "1,2", "--size", "1KiB")
    assert [(row["writers"], row["threads"]) for row in rows] == [(w, t) for w in (1, 2, 3) for t in (1, 2)]
    assert bare.text("ls", *place, "--count") == f"{6 * OBJECTS}\n", "each has objects of its own"
    picture = tmp_path / "sweep.png"
    drawn = ["--plot", str(picture), "--python", sys.executable]
    run_load(bare, *place, "--writers", "1,2", "--threads", "1,2", "--size", "1KiB", *drawn)
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")
    assert picture.stat().st_size > 5000


def test_a_picture_that_cannot_be_is_refused_before_the_load(bare: Shell, place: list[str], tmp_path: Path) -> None:
    def refused(status: int, picture: Path, python: str) -> str:
        return bare.error(status, "load", "store", *place, *SMALL, "--plot", picture, "--python", python)

    assert "there is no folder" in refused(2, tmp_path / "none/sweep.png", sys.executable)
    assert ".png" in refused(2, tmp_path / "sweep.xyz", sys.executable)
    assert "--python selects it" in refused(1, tmp_path / "sweep.png", "no-such-python")
    bare.environment["PYTHONPATH"] = str(tmp_path)
    (tmp_path / "matplotlib.py").write_text("raise ImportError('no matplotlib')")
    assert "pip install matplotlib" in refused(1, tmp_path / "sweep.png", sys.executable)
    assert not Path(place[1]).exists()


def test_a_picture_that_dies_does_not_end_the_load(bare: Shell, place: list[str], tmp_path: Path) -> None:
    python = tmp_path / "python"
    # It hears of no row; and it hears of all and then dies.
    for behaviour, cause in (("exec <&-; echo ready", "the load continues"), ("echo ready; cat >rows", "has died")):
        python.write_text(f"#!/bin/sh\ncd {tmp_path}; {behaviour}\n")
        python.chmod(0o755)
        drawn = ["--plot", str(tmp_path / "sweep.png"), "--python", str(python)]
        load = bare.run("load", "store", *SMALL, *place, "--writers", "1,2", "--size", "1KiB", *drawn, status=1)
        rows = [json.loads(line) for line in load.stdout.splitlines()]
        assert [(row["writers"], row["lost"]) for row in rows] == [(1, 0), (2, 0)]
        assert load.stderr.decode().count(cause) == 1
    assert len((tmp_path / "rows").read_text().splitlines()) == 2


def test_people_get_a_table(bare: Shell, place: list[str]) -> None:
    load = [word for word in SMALL if word != "--json"]
    heading, *lines = bare.text("load", "store", *place, *load, "--size", "1KiB", "--threads", "1,2").splitlines()
    assert "list/s" in heading
    assert [line.split()[:2] for line in lines] == [["1", "1"], ["1", "2"]]


def test_without_a_place_nothing_is_left(bare: Shell, tmp_path: Path) -> None:
    bare.environment["TMPDIR"] = str(tmp_path)
    (row,) = run_load(bare, "--size", "100KiB")
    assert row["run"]["store"].startswith(f"file://{tmp_path}/")
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_stays(bare: Shell, place: list[str], file: Path) -> None:
    bare.run("store", "archive", *place, "--create", file)
    before = int(bare.text("ls", *place, "--count"))
    run_load(bare, *place, "--size", "1KiB")
    run_load(bare, *place, "--size", "1KiB", "--pattern", "b")
    assert int(bare.text("ls", *place, "--count")) == before + OBJECTS, "later runs mask earlier ones"
    left = {path.name for path in Path(place[1]).iterdir()}
    assert left <= {"store.json", "log", "data", "segments", "checkpoints"}


def test_what_makes_no_load_is_refused(bare: Shell, place: list[str]) -> None:
    for words, cause in (
        (["--pool", "unix:x"], "unexpected argument"),
        (["--scale", "2"], "--scale"),
        (["--writers", "200", "--threads", "10"], "each needs one"),
    ):
        assert cause in bare.error(2, "load", "store", *place, *words)
    assert "they need a folder or a bucket" in bare.error(2, "load", "store", "--store", "memory:x")


def begun(bare: Shell, folder: Path) -> Process:
    """A load that takes a while, in a folder for what is temporary; it has said the heading of its table."""
    bare.environment["TMPDIR"] = str(folder)
    load = bare.start("load", "store", "--scale", "1", "--every", "1", "--size", "1KiB", "--writers", "2")
    assert "writers threads" in load.line()
    return load


def test_ctrl_c_leaves_nothing(bare: Shell, tmp_path: Path) -> None:
    load = begun(bare, tmp_path)
    load.signal(signal.SIGINT)
    assert load.end()[0] == 130
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_dies_ends_the_load(bare: Shell, tmp_path: Path) -> None:
    load = begun(bare, tmp_path)
    children = Path(f"/proc/{load.pid}/task/{load.pid}/children")
    while not (started := children.read_text().split()):
        assert load.popen.poll() is None
    os.kill(int(started[0]), signal.SIGKILL)
    status, _, said = load.end()
    assert (status, "a process of the load died" in said) == (5, True), said
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_folder_is_refused(bare: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert "file" in bare.error(1, "load", "store", "--store", tmp_path / "file", *SMALL)


def test_figures_name_what_is_missing(bare: Shell, place: list[str]) -> None:
    """Every figure that a program may look for."""
    (row,) = run_load(bare, *place, "--size", "1KiB")
    names = set(chain(RATES, ("limit_write_per_s", "lost", "damaged", "writers", "threads", "run")))
    assert names <= set(row)
