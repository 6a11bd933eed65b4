"""The workflows of the examples: each ends by itself, with what it is to show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import junctura

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/13_workflows"


def run(name: str, folder: Path, code: int = 0) -> dict[str, Any]:
    """What became of a workflow that was run with its files in a folder."""
    command = [sys.executable, "-m", "junctura.workflow", str(EXAMPLES / name), "--run-dir", str(folder), "--json"]
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == code, (done.stdout, done.stderr, logs(folder))
    assert (folder / "timeline.html").exists()
    ran: dict[str, Any] = json.loads(done.stdout)
    return ran


def logs(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text()[-500:] for file in sorted(folder.glob("logs/*.log"))}


def record(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]


def test_each_file_is_read_by_a_program_that_its_arrival_starts(tmp_path: Path) -> None:
    ran = run("files.yaml", tmp_path)
    # Sixteen writers, sixteen readers and what they were made after, and the summary.
    assert ran["failed"] == ran["skipped"] == ran["cancelled"] == 0
    summary = (tmp_path / "logs/summary.1.log").read_text().splitlines()
    assert [line.split(":")[0] for line in summary] == [f"file {number}" for number in range(1, 17)]
    assert all("30 fields" in line for line in summary)
    lines = record(tmp_path)
    readers = [line for line in lines if line["kind"] == "ready" and line["of"] == "reader"]
    assert sorted(int(line["reason"]["attributes"]["file"]) for line in readers) == list(range(1, 17))
    # Each has begun once, and none before its file was there.
    assert len([line for line in lines if line["kind"] == "start" and line["task"].startswith("reader")]) == 16


def test_members_that_fail_leave_nothing_half(tmp_path: Path) -> None:
    ran = run("clean.yaml", tmp_path)
    assert sorted(ran["failures"]) == ["member-3", "member-6"]
    assert (tmp_path / "logs/verify.1.log").read_text() == "members 1, 2, 4, 5, 7, 8: 120 fields are right\n"
    assert (tmp_path / "logs/empty.1.log").read_text() == "members none: 0 fields are right\n"


def test_a_solver_its_statistics_and_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("eccodes")
    run("chain.yaml", tmp_path)
    steps = sorted(int(file.stem) for file in (tmp_path / "statistics").iterdir())
    assert steps == list(range(0, 145, 6))
    assert (tmp_path / "wind.png").read_bytes().startswith(b"\x89PNG")
    # Each was started by the arrival of its step, not by the end of the solver (tests/workflow: while that goes on).
    reasons = [line["reason"] for line in record(tmp_path) if line["kind"] == "ready" and line["of"] == "statistics"]
    assert [reason["kind"] for reason in reasons] == ["object"] * len(steps)


@pytest.mark.parametrize(("name", "members"), [("ensemble", 6), ("slurm", 3)])
def test_the_ensembles_are_right(name: str, members: int) -> None:
    pytest.importorskip("eccodes")
    command = [sys.executable, "-m", "junctura.workflow", str(EXAMPLES / f"{name}.yaml"), "--check"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "member" in said and f"x {members}" in said


# What is made of a smaller ensemble: two members, three steps.
HEIGHT = """
product: height
from: {param: gh, levelist: 500, step: 0/to/12/by/6, number: 1/to/2}
do: [{grid: 5/5}]
to: {format: grib2, name: "height_{number}_{step:03}.grib2"}
"""
SPREAD = """
product: spread
from: {param: gh, levelist: 500, step: 0/to/12/by/6, number: 1/to/2}
do: [{grid: 5/5}, {ensemble: [mean, spread]}]
to: {format: grib2, name: "spread_{step:03}.grib2"}
"""
# What it says in place of the words of the example, each of which stands there once.
SMALLER = {
    "parallel: 7": "parallel: 3",
    "{member: 1/to/6}": "{member: 1/to/2}",
    '--member, "{member}"]': '--member, "{member}", --truncation, 21, --days, 0.5, --every, 6h]',
    # One of them may have left before the other one comes.
    '"swell-*"': "swell-1, --until-gone, swell-2, --workers, 1",
    "{here}/../12_products/recipes/*.yaml": "{here}/wanted/*.yaml",
    "../11_swell/swell.py": str(EXAMPLES.parent / "11_swell/swell.py"),
}


def smaller_ensemble(folder: Path) -> Path:
    text = (EXAMPLES / "ensemble.yaml").read_text()
    for words, others in SMALLER.items():
        assert text.count(words) == 1, words
        text = text.replace(words, others)
    (folder / "wanted").mkdir()
    (folder / "wanted/height.yaml").write_text(HEIGHT)
    (folder / "wanted/spread.yaml").write_text(SPREAD)
    (folder / "smaller.yaml").write_text(text)
    return folder / "smaller.yaml"


def test_an_ensemble_its_products_and_an_archive(tmp_path: Path) -> None:
    pytest.importorskip("eccodes")
    folder = tmp_path / "run"
    ran = run(str(smaller_ensemble(tmp_path)), folder)
    assert ran["failed"] == ran["skipped"] == 0
    both = [(member, step) for member in (1, 2) for step in (0, 6, 12)]
    heights = {f"height_{member}_{step:03}.grib2" for member, step in both}
    made = {file.name for file in (folder / "products").glob("*.grib2")}
    assert made == heights | {f"spread_{step:03}.grib2" for step in (0, 6, 12)}
    # They are waited for before the first field is there, and so made while the members run.
    started = [line["task"] for line in record(folder) if line["kind"] == "start"]
    assert started.index("products") < started.index("member-1")
    with junctura.Store(folder / "store") as store:
        kept = store.list("param=gh,levelist=500")
        assert sorted((int(entry["number"]), int(entry["step"])) for entry in kept) == both
