"""What `--check` and `--dry-run` say: the same, whatever machine they are on."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from junctura import _limits
from junctura._document.located_yaml import documents
from junctura.workflow._spec.check import check_document, check_text, dry_run_text, start_in_words
from junctura.workflow._spec.reading import workflow_of
from junctura.workflow._spec.tasks import Start, Workflow

SEASON = """\
workflow: season
limit: 90min
parallel: 8
pool: {schema: mars, memory: 200MiB}
tasks:
  observations: {run: sh}
  analysis: {run: sh, start: {after: observations}, limit: 5min, attempts: 3, resources: {cores: 2}}
  member:
    run: [sh, -c, "echo {member:02} {pool} {step}", "{{}}"]
    matrix: {member: 0/to/5, step: 24}
    folder: members/{member}
    environment: {A: "x y", TASK: "{task}.{attempt}"}
    start: {after: analysis}
    resources: {memory: 500MiB}
  mean: {run: sh, start: {after: [member-0-24, member-3-24]}, executor: slurm, resources: {ranks: 4}}
  maps: {service: [sh, -c, serve], users: [member, picture]}
  picture: {run: [sh, "{task}", "{step:03}"], start: {each: "param=gh", after: maps}, may_fail: true}
  report: {run: sh, start: {after: [analysis, picture, mean]}}
  tell: {run: sh, start: {after: report}}
"""
DRAWN = """\
season: 13 tasks of 8 kinds, a pool of its own (mars, 200 MiB), 8 cores, ends after 1.5 h at most

        ╭── ● observations       at once
  ╭─────┴─▶ ● analysis           after observations                 2 cores; 3 attempts of 5 min at most
  ├─────┬─▶ ● member        x 6  after analysis                     member 0, 1 … 5; step 24; 500 MiB
  │ ╭───┴─▶ ● mean               after member-0-24 and member-3-24  slurm; 4 ranks
  │ │   ╭── ◆ maps               at once                            until member and picture are done
  │ │ ╭─┴─▶ ○ picture            for each param=gh, once maps runs  may fail
  ╰─┴─┴─┬─▶ ● report             after analysis, picture and mean
        ╰─▶ ● tell               after report

  ● runs once   ◆ service: ends when its users are done   ○ runs once for each object"""


def workflow(text: str) -> Workflow:
    (document,) = documents(text.encode(), "/nowhere/w.yaml")
    return workflow_of(document)


@pytest.fixture(autouse=True)
def _large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "memory_bytes", lambda: 64 << 30)


def test_the_graph_is_drawn() -> None:
    assert check_text(workflow(SEASON)) == DRAWN


def test_what_is_drawn_stands_in_columns() -> None:
    rows = check_text(workflow(SEASON)).splitlines()[2:10]
    assert len({row.index(sign) for row in rows for sign in "●◆○" if sign in row}) == 1
    assert not any(row.endswith(" ") for row in rows)


def test_a_single_task_is_drawn_without_lines() -> None:
    assert (
        check_text(workflow("workflow: w\ntasks: {a: {run: sh}}"))
        == "w: 1 task, no pool\n\n  ● a  at once\n\n  ● runs once"
    )


def test_of_tasks_that_start_differently_the_first_and_the_last_are_shown() -> None:
    text = "workflow: w\npool: unix:x\ntasks: {a: {run: sh, matrix: {n: 1/to/9}, start: {on: 'step={n}'}}}"
    drawn = check_text(workflow(text))
    assert drawn.startswith("w: 9 tasks, pool unix:x\n")
    assert "when step=1 is there … when step=9 is there  n 1, 2 … 9" in drawn


def test_a_long_selector_is_cut() -> None:
    drawn = check_text(
        workflow(f"workflow: w\npool: {{}}\ntasks: {{a: {{run: sh, start: {{on: 'param={'/'.join('abcd' * 50)}'}}}}}}")
    )
    assert max(map(len, drawn.splitlines())) < 100


def test_for_programs_everything_is_there() -> None:
    said = check_document(workflow(SEASON))
    assert json.loads(json.dumps(said)) == said
    assert (said["workflow"], said["limit_s"], said["parallel"]) == ("season", 5400, 8)
    assert said["pool"] == {"url": None, "schema": "mars", "memory_bytes": 200 << 20, "service": None}
    tasks = {one["task"]: one for one in said["tasks"]}
    assert len(tasks) == 13
    member = tasks["member-2-24"]
    assert member["command"] == ["sh", "-c", "echo 02 {pool} 24", "{}"]
    assert member["environment"] == {"A": "x y", "TASK": "member-2-24.1"}
    assert (member["of"], member["folder"], member["values"]) == ("member", "members/2", {"member": 2, "step": 24})
    assert (member["after"], member["start"], member["line"]) == (["analysis"], "after analysis", 8)
    assert tasks["picture"]["command"] == ["sh", "{task}", "{step:03}"]
    assert tasks["maps"]["users"] == ["member", "picture"]


def test_a_dry_run_says_what_will_be_run() -> None:
    lines = dry_run_text(workflow(SEASON)).splitlines()
    begin = lines.index("member-3-24: after analysis")
    assert lines[begin : begin + 5] == [
        "member-3-24: after analysis",
        "  in members/3",
        "  A='x y'",
        "  TASK=member-3-24.1",
        "  $ sh -c 'echo 03 {pool} 24' '{}'",
    ]
    assert "maps: a service, at once" in lines
    assert "mean: after member-0-24 and member-3-24, by slurm" in lines
    assert lines[1] == "  in the folder of the run"


def test_a_dry_run_can_be_read_by_a_shell() -> None:
    text = """workflow: w\npool: unix:x\ntasks: {a: {run: [junctura, "it's", "$HOME", "a b", "{pool}"]}}"""
    line = dry_run_text(workflow(text)).splitlines()[-1]
    ours = [sys.executable, "-m", "junctura"]
    assert shlex.split(line.removeprefix("  $ ")) == [*ours, "it's", "$HOME", "a b", "unix:x"]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (Start(), "at once"),
        (Start(after=("a",)), "after a"),
        (Start(after=("a", "s", "b")), "after a and b, once s runs"),
        (Start(after=tuple("abcdef")), "after a, b and 4 others"),
        (Start(on="step=1"), "when step=1 is there"),
        (Start(bundle="b/1"), "when bundle b/1 is complete"),
        (Start(joined=("m", "n-*")), "when m and n-* joined"),
        (Start(each="a=b", count=3), "for each a=b, 3 of them"),
    ],
)
def test_why_a_task_starts_in_words(start: Start, words: str) -> None:
    assert start_in_words(start, {"s"}) == words


def test_the_folder_of_the_file_may_have_braces(tmp_path: Path) -> None:
    folder = tmp_path / "{odd}"
    folder.mkdir()
    (folder / "x.py").touch()
    (document,) = documents(b"workflow: w\ntasks: {a: {run: [python, x.py, '{here}']}}", str(folder / "w.yaml"))
    found = workflow_of(document)
    assert check_document(found)["tasks"][0]["command"] == [sys.executable, f"{folder}/x.py", str(folder)]
