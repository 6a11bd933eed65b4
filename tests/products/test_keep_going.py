"""Some of several recipes are wrong: all is told at once, and what is right is made where that is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_runs import grid_message, offer

import junctura
from junctura._run import main
from junctura.products import load_all

RIGHT = """\
product: right
from: {param: t, levelist: 850, step: 0}
to: {format: csv, name: right.csv}
"""
# Two mistakes, and a third one that is not met before these are gone: there is no step of this name.
WRONG = """\
product: wrong
from: {param: t, levellist: 850, step: 0}
do: [ensemble: [meen]]
to: {format: csv, name: "wrong_{stepp}.csv"}
"""
TWICE = RIGHT.replace("right.csv", "other.csv")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with recipes of all kinds, in which commands are run."""
    (tmp_path / "a.yaml").write_text(f"{WRONG}---\n{RIGHT}")
    (tmp_path / "b.yaml").write_text(f"{TWICE}---\n{WRONG.replace('wrong', 'late').replace('levellist', 'levelist')}")
    (tmp_path / "c.yaml").write_text("product: [\n")
    (tmp_path / "plan.yaml").write_text("sources: [{follow: a=b}]\nsinks: [{archive: {store: kept}}]\n")
    (tmp_path / "work.yaml").write_text("workflow: w\ntasks: {a: {run: [true]}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    with junctura.Pool(schema="mars") as pool:
        offer(pool, grid_message(280.0, shortName="t", level=850), param="t", step=0)
        yield pool


GIVEN = ["a.yaml", "b.yaml", "c.yaml", "none.yaml", "none/*.yaml"]
TOLD = [
    'InvalidArgument: a.yaml:2: from.levellist: "levellist" is no key here; did you mean "levelist"?',
    'InvalidArgument: a.yaml:3: do.ensemble: "meen" is no statistic; did you mean "mean"?',
    'InvalidArgument: b.yaml:7: do.ensemble: "meen" is no statistic; did you mean "mean"?',
    "InvalidArgument: c.yaml:2: not YAML: ",
    "NotFound: none.yaml: there is no such file",
    "NotFound: none/*.yaml: no file is found",
    'AlreadyExists: b.yaml:1: product: "right" is the name of a recipe in a.yaml:6, too; rename one',
]


def assert_told(said: list[str], expected: list[str]) -> None:
    assert len(said) == len(expected), said
    for line, begin in zip(said, expected, strict=True):
        assert line.startswith(begin), line


@pytest.mark.usefixtures("files")
def test_all_that_is_wrong_in_all_files_is_told_before_anything_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GIVEN, "--pool", "unix:nowhere"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert_told(said.err.splitlines(), [f"junctura: {line}" for line in TOLD])


@pytest.mark.usefixtures("files")
def test_what_is_right_is_made_and_the_status_says_that_something_is_missing(
    pool: junctura.Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*GIVEN, "--keep-going", "--pool", pool.url, "--workers", "1"]
    assert main([*given, "--json"]) == 1
    said = capsys.readouterr()
    assert_told(said.err.splitlines()[: len(TOLD)], [f"junctura: {line}" for line in TOLD])
    report = json.loads(said.out)
    assert (report["products"], report["failed"]) == (1, [])
    assert_told(report["wrong"], TOLD)
    assert sorted(path.name for path in Path("products").iterdir()) == ["right.csv", "right.csv.provenance.json"]
    assert main(given) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("recipes that are wrong were left out:")
    assert_told([line.strip() for line in lines[at + 1 :]], TOLD)


@pytest.mark.usefixtures("files")
def test_a_check_says_what_would_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["a.yaml", "c.yaml", "--keep-going", "--check"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("right: 1 file of 1 field")
    assert len(said.err.splitlines()) == 3


@pytest.mark.usefixtures("files")
def test_nothing_is_missing_where_nothing_is_wrong(pool: junctura.Pool) -> None:
    Path("right.yaml").write_text(RIGHT)
    assert main(["right.yaml", "--keep-going", "--pool", pool.url, "--workers", "1", "--quiet"]) == 0


@pytest.mark.usefixtures("files")
def test_where_nothing_is_right_nothing_is_begun(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["c.yaml", "none.yaml", "--keep-going", "--pool", "unix:nowhere"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.usefixtures("files")
def test_plans_and_workflows_run_alone_and_are_left_out_among_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    for alone, why in (("plan.yaml", "a plan runs alone"), ("work.yaml", "a workflow runs alone")):
        assert main(["a.yaml", alone]) == 2
        assert why in capsys.readouterr().err
        assert main([alone, "--keep-going"]) == 2
        assert "--keep-going: " in capsys.readouterr().err
        assert main(["a.yaml", alone, "--keep-going", "--check"]) == 1
        assert f"{alone}:1: " in capsys.readouterr().err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("file", ["c.yaml", "none.yaml", "none/*.yaml"])
def test_of_a_file_that_cannot_be_read_nothing_else_is_said(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--dry-run"], ["--keep-going"]):
        assert main([file, *options]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(("junctura: InvalidArgument: c.yaml:2", f"junctura: NotFound: {file}: "))


@pytest.mark.usefixtures("files")
def test_in_python_errors_are_raised_or_told() -> None:
    told: list[junctura.Error] = []
    assert [recipe.product for recipe in load_all(GIVEN, told.append)] == ["right"]
    assert_told([f"{error.code}: {error}" for error in told], TOLD)
    with pytest.raises(junctura.errors.InvalidArgument, match=r"a\.yaml:2: from\.levellist"):
        load_all(GIVEN)
