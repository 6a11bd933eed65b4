"""Summary, list of failures, record and timeline count the same tasks, also of a run that goes on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from run_real import LIMIT_S

from junctura.workflow._record.history import read

ENDS = ("done", "failed", "skipped", "cancelled")
HEAD = "workflow: w\npool: {schema: free}\ntasks:\n"
PUT = 'run: [junctura, put, "{here}/w.yaml", --pool, "{pool}", --set, kind=g, --set, name={m}, --quiet]'
MEMBERS = f"  member: {{{PUT.replace('name={m}', chr(34) + 'name={m}' + chr(34))}, matrix: {{m: 1/to/3}}}}\n"
READERS = "  reader: {run: [sh, -c, '[ {name} != 2 -o -e {here}/good ]'], start: {each: kind=g}}\n"


def ran(folder: Path, text: str, *options: str) -> Mapping[str, Any]:
    (folder / "w.yaml").write_text(text)
    command = [sys.executable, "-m", "junctura.workflow", "w.yaml", "--json", *(options or ("--run-dir", "r"))]
    done = subprocess.run(command, cwd=folder, timeout=LIMIT_S, check=False, capture_output=True, text=True)
    said: Mapping[str, Any] = json.loads(done.stdout)
    return said


def in_timeline(folder: Path) -> dict[str, int]:
    """The figures at the head of the page, and the rows of its table."""
    page = (folder / "r/timeline.html").read_text()
    figures = dict(re.findall(r'<div><dt>([a-z]+)</dt><dd class="[a-z-]*">([0-9,]+)</dd></div>', page))
    (rows,) = re.findall(r"([0-9,]+) tasks?, each with", page)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("<table>")[1]))
    assert rows == figures["tasks"] and "done it never could" not in text
    return {name: int(value) for name, value in figures.items()}


@pytest.mark.parametrize(
    ("tasks", "counts", "failed"),
    [
        (MEMBERS + READERS.replace("!= 2", "!= 9"), {"done": 6}, set()),
        (MEMBERS + READERS, {"done": 5, "failed": 1}, {"reader-.*"}),
        # It ends badly by itself.
        (
            MEMBERS + READERS.replace("!= 2", "!= 9").replace("kind=g}", "kind=g, count: 4}"),
            {"done": 6, "failed": 1},
            {"reader"},
        ),
    ],
    ids=["all done", "one failed", "objects missing"],
)
def test_all_count_the_same(tmp_path: Path, tasks: str, counts: dict[str, int], failed: set[str]) -> None:
    said = ran(tmp_path, HEAD + tasks)
    assert {end: said[end] for end in ENDS if said[end]} == counts
    assert len(said["failures"]) == len(failed)
    assert all(any(re.fullmatch(name, one) for name in failed) for one in said["failures"])
    history = read(tmp_path / "r")
    assert {end: history.count(end) for end in counts} == counts and len(history.tasks) == sum(counts.values())
    figures = in_timeline(tmp_path)
    assert {end: figures.get(end, 0) for end in ("tasks", *counts)} == {"tasks": sum(counts.values()), **counts}
    last = json.loads((tmp_path / "r/record.jsonl").read_text().splitlines()[-1])
    assert {end: last[end] for end in ENDS if last[end]} == counts


def test_a_run_that_goes_on_counts_what_was_done_before(tmp_path: Path) -> None:
    text = """
workflow: w
tasks:
  watch: {service: [sleep, "1000"]}
  early: {service: [sleep, "1000"], users: first}
  first: {run: ['true'], start: {after: watch}}
  second: {run: [sh, -c, "test -e {here}/good"], start: {after: first}}
"""
    said = ran(tmp_path, text)
    assert {end: said[end] for end in ENDS if said[end]} == {"done": 3, "failed": 1}
    (tmp_path / "good").touch()
    said = ran(tmp_path, text, "--resume", "r")
    assert (said["status"], {end: said[end] for end in ENDS if said[end]}) == ("done", {"done": 4})
    assert in_timeline(tmp_path)["done"] == 4
