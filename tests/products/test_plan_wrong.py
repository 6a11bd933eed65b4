"""What is wrong in a plan is said with its line, and what is wrong with a field with that field; it stops no other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker_runs import grid_message
from grib_messages import gaussian
from plan_runs import SHAPE, by_command, fields, give, offers, through

import junctura
from junctura._document.located_yaml import WRONG_MAX
from junctura.products import Plan, run
from junctura.products.__main__ import main
from junctura.products._plan import plan_of
from junctura.products._plan._sinks import Archive


def test_a_formula_between_grids_is_wrong_once(tmp_path: Path) -> None:
    text = """
sources: [{follow: stream=enfo}]
actions: [{compute: {ws: {formula: "hypot(u, v)", units: m s**-1}}}]
sinks: [{file: {format: csv, name: "{param}.csv"}}]
"""

    def work(pool: junctura.Pool) -> None:
        give(pool, grid_message(np.full(SHAPE, 1.0), step=6), step=6, param="u")
        give(pool, gaussian(8, np.ones((16, 32)), step=6), step=6, param="v")
        give(pool, grid_message(np.full(SHAPE, 1.0), step=6), step=6, param="t")

    (ran,) = through(tmp_path, text, work)
    (told,) = ran.told
    assert "compute: field param=v" in told and "is on F8" in told
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == ["t.csv", "u.csv"]


FUNCTIONS = """
import numpy


def picky(field):
    if str(field.attributes["step"]) == "3":
        numpy.linalg.inv(numpy.zeros((2, 2)))
    return field


def late(field):
    yield field
    if str(field.attributes["step"]) == "9":
        raise KeyError("sea")


def odd(field):
    return 12 if str(field.attributes["step"]) == "6" else field
"""


def test_a_function_of_the_user_that_raises_is_named_with_its_line_and_stops_no_other_field(tmp_path: Path) -> None:
    (tmp_path / "often_wrong_in_a_plan.py").write_text(FUNCTIONS)
    text = """
sources: [{follow: stream=enfo}]
actions: [{python: "often_wrong_in_a_plan:picky"}, {python: "often_wrong_in_a_plan:late"}]
sinks:
  - plan: {actions: [{python: "often_wrong_in_a_plan:odd"}], sinks: [{file: {format: csv, name: "{step}.csv"}}]}
"""
    (ran,) = through(tmp_path, text, offers(fields(3, 6, 9, 12)))
    assert (len(ran.told), ran.failed) == (3, 3)
    expected = {
        "step=3": ("picky: LinAlgError: Singular matrix", "often_wrong_in_a_plan.py:7"),
        "step=6": ("odd: TypeError: 'int' object is not iterable", "often_wrong_in_a_plan.py"),
        "step=9": ("late: KeyError: 'sea'", "often_wrong_in_a_plan.py:14"),
    }
    for step, parts in expected.items():
        (told,) = [told for told in ran.told if step in told]
        assert all(part in told for part in parts), told
    assert [path.name for path in (tmp_path / "out").glob("*.csv")] == ["12.csv"]


WRONG = """
sources: [{follow: stream=enfo}]
actions: [{python: "wrong_in_a_command:wrong"}]
sinks: [{file: {format: csv, name: x.csv}}]
"""


@pytest.mark.parametrize("option", ["--quiet", "--json", None])
def test_the_command_says_what_failed_at_once_or_at_the_end(tmp_path: Path, option: str | None) -> None:
    (tmp_path / "wrong_in_a_command.py").write_text("def wrong(field):\n    raise ValueError('as always')\n")
    options = [option] if option else []
    done = by_command(tmp_path, WRONG, offers(fields(3, 6)), *options)
    assert done.returncode == 1
    at_once, at_the_end = (said.count("wrong_in_a_command:wrong: ValueError") for said in (done.stderr, done.stdout))
    if option == "--json":
        said = json.loads(done.stdout)
        assert (said["fields"], said["failed"], len(said["wrong"]), at_once) == (2, 2, 2, 2)
    else:
        assert (at_once, at_the_end) == ((0, 2) if option else (2, 0))
        assert "2 went no further" in done.stdout


def test_one_cause_of_many_fields_is_told_with_a_count(tmp_path: Path) -> None:
    (tmp_path / "wrong_in_a_command.py").write_text("def wrong(field):\n    raise ValueError('as always')\n")
    done = by_command(tmp_path, WRONG, offers(fields(*range(12))), "--json")
    said, told = json.loads(done.stdout), done.stderr.splitlines()
    assert (done.returncode, said["failed"], len(said["wrong"])) == (1, 12, 12)
    assert [line.partition("step=")[2][:1] for line in told[:3]] == ["0", "1", "2"]
    (last,) = told[3:]
    assert last.startswith("  python: InvalidArgument: python wrong_in_a_command:wrong: ValueError: as always")
    assert last.endswith(" (10 times)")


def test_a_field_that_is_wrong_stops_no_other(tmp_path: Path) -> None:
    text = """
sources: [{follow: stream=enfo}]
actions: [{grid: 10/10}]
sinks: [{file: {format: csv, name: "{step}.csv"}}]
"""

    def work(pool: junctura.Pool) -> None:
        give(pool, b"GRIB nonsense", step=3, param="t")
        offers({6: np.full(SHAPE, 1.0)})(pool)

    (ran,) = through(tmp_path, text, work)
    assert len(ran.told) == 1 and "grid: field param=t,levelist=850,step=3" in ran.told[0] and "Corrupt" in ran.told[0]
    assert [path.name for path in (tmp_path / "out").glob("*.csv")] == ["6.csv"]


def test_products_that_cannot_be_made_stop_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "wanted.yaml").write_text("product: p\nfrom: {param: t, step: 6}\nto: {format: csv, name: p.csv}\n")
    text = """
sources: [{follow: stream=enfo}]
sinks:
  - product: {recipe: wanted.yaml, out: taken}
  - file: {format: csv, name: "{step}.csv"}
"""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/taken").write_text("a file")
    (ran,) = through(tmp_path, text, offers(fields(3, 6)))
    (told,) = ran.told
    assert "products: no more are made: Io" in told and ran.failed == 1
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == ["3.csv", "6.csv"]


def test_a_sink_that_cannot_do_with_a_field_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
sources: [{follow: stream=enfo}]
sinks:
  - file: {format: csv, name: "taken/{step}.csv"}
  - file: {format: zarr, name: "{step}.zarr"}
  - file: {format: csv, name: "{step}.csv"}
"""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/taken").write_text("a file")
    # As if the library were not installed.
    monkeypatch.setitem(sys.modules, "numcodecs.zstd", None)
    (ran,) = through(tmp_path, text, offers({6: np.full(SHAPE, 1.0)}))
    assert ["Io" in ran.told[0], "numcodecs" in ran.told[1], ran.failed] == [True, True, 2]
    assert (tmp_path / "out/6.csv").exists() and not (tmp_path / "out/6.zarr").exists()


def test_a_file_of_one_sink_is_not_replaced_by_another(tmp_path: Path) -> None:
    text = """
sources: [{follow: stream=enfo}]
sinks:
  - plan:
      actions: [select: {step: [0, 6]}]
      sinks: [file: {format: csv, name: "{step}.csv"}]
  - plan:
      actions: [select: {step: [6, 12]}]
      sinks: [file: {format: csv, name: "{step}.csv"}]
"""
    (ran,) = through(tmp_path, text, offers(fields(0, 6, 12)))
    assert ran.failed == 1 and "the file 6.csv is that of another sink: give them different names" in ran.told[0]
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == ["0.csv", "12.csv", "6.csv"]


def test_what_a_store_could_not_keep_is_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Archive) -> None:
        raise junctura.Io("kept", "no space left on device")

    monkeypatch.setattr(Archive, "settle", full)
    file = tmp_path / "plan.yaml"
    file.write_text("sources: [{follow: stream=enfo, group: keepers}]\nsinks: [{archive: {store: kept}}]\n")
    plan = plan_of([file])
    assert plan is not None
    with junctura.Pool(schema="mars") as pool:
        pool.require("stream=enfo", name="keepers", group=True)
        offers(fields(3, 6))(pool)
        with pytest.raises(junctura.Io, match="no space left"):
            run(plan, pool.url, tmp_path / "out", told=lambda _: None)
        with pool.follow("stream=enfo", group="keepers", gaps="ignore") as another:
            assert sorted(str(another.next(timeout=60)["step"]) for _ in range(2)) == ["3", "6"]


GOOD = "sources: [{follow: a=b}]\nsinks: [{file: {format: csv, name: x.csv}}]\n"
BAD = {
    "sources: [{folow: a}]\nsinks: [{plan: {sinks: []}}]": (1, '"folow" is no key here; did you mean "follow"?'),
    "sources: [{follow: a=b}]\nsinks:\n- fil: {format: csv, name: x}\n": (3, '"fil" is no sink; did you mean "file"?'),
    "sources: [{follow: a=b}]\n": (1, '"sinks" is missing'),
    GOOD + "actions:\n  - selct: {param: t}\n": (4, '"selct" is no action; did you mean "select"?'),
    GOOD + "actions:\n  - grid: nonsense\n": (4, "names of grids are like"),
    GOOD + "actions:\n  - select: {step: x}\n": (4, "is not a step"),
    GOOD + "actions:\n  - aggregate: {grid: T21}\n": (4, "is spectral"),
    GOOD + "actions:\n  - python: no_such_module_here:f\n": (4, "No module named"),
    GOOD + "actions:\n  - python: raises_when_it_is_read:f\n": (4, "ZeroDivisionError: division by zero"),
    GOOD + "actions:\n  - compute: {ws: {formula: 'hypot(u v)', units: m/s}}\n": (4, "is no formula"),
    GOOD + "actions:\n  - compute: {\n     ws: {formula: '1 + 1', units: m/s}}\n": (5, "without parameters"),
    GOOD + "actions:\n  - units: furlong\n": (4, "furlong"),
    GOOD + "actions:\n  - encode: {bits: 99}\n": (4, "a whole number from 1 to 32"),
    "sources: [{follow: a=b}]\nsinks:\n  - product: {recipe: none.yaml}\n": (3, "there is no such file"),
    "sources: [{follow: a=b}]\nsinks:\n  - file: {format: png, name: 'x', projection: flat}\n": (3, "flat"),
    "sources: [{follow: a=b}]\nsinks:\n  - plan: {actions: [{crop: {nord: 1}}], sinks: [{archive: {store: s}}]}\n": (
        3,
        '"nord" is no key here; did you mean "north"?',
    ),
}


@pytest.mark.parametrize("text", BAD)
def test_a_mistake_is_said_with_its_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    (tmp_path / "raises_when_it_is_read.py").write_text("1 / 0\n")
    line, cause = BAD[text]
    with pytest.raises(junctura.Error) as raised:
        plan_of([file])
    assert cause in str(raised.value)
    assert f"plan.yaml:{line}" in str(raised.value) or isinstance(raised.value, junctura.NotFound)


MANY = """sources: [{follow: stream=enfo, grup: x}]
actions:
  - grid: 7/abc
  - untis: K
  - encode: {bits: 99}
sinks:
  - archive: {}
  - file: {format: png, name: "{param}.png", styles: nowhere.yaml}
  - product: {recipe: none.yaml}
  - archive: {store: somewhere}
  - plan:
      actions: [crop: {north: 9, west: 1, south: 10, east: 2}, aggregate: {grid: 1/1, units: furlongs}]
      sinks: [{print: 3}, {file: {format: csv}}, {archive: {store: behind_values}}]
"""


def test_all_mistakes_are_said_at_once_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(MANY)
    assert main([str(file), "--check"]) == 2
    said = capsys.readouterr().err.splitlines()
    expected = {
        1: "grup",
        3: "grid 7/abc",
        4: "untis",
        5: "from 1 to 32",
        7: '"store" is missing',
        9: "there is no such file",
        12: "crop",
        13: '"print" is no sink',
    }
    for line, words in expected.items():
        assert any(f"plan.yaml:{line}: " in one and words in one for one in said), (line, said)
    assert '"name" is missing' in said[-2] and "nowhere.yaml: there is no such file" in said[-1]
    # Behind actions that are wrong it is not known whether a store gets messages.
    assert len(said) == len(expected) + 2


def test_nothing_more_is_looked_for_behind_very_many_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    actions, sinks = "  - nothing: 1\n" * WRONG_MAX, "  - archive: {}\n" * 9
    file.write_text(f"sources: [{{follow: a=b}}]\nactions:\n{actions}sinks:\n{sinks}")
    told: list[junctura.Error] = []
    assert plan_of([file], told.append) is None
    assert "more mistakes" in str(told) and len(told) <= WRONG_MAX + 1


def test_a_plan_is_checked_without_a_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(GOOD)
    assert main([str(file), "--check"]) == 0
    assert capsys.readouterr().out == f"{file}:1: a plan, of 1 source\n"
    assert main([str(file), "--check", "--json"]) == 0
    source: dict[str, Any] = {"follow": "a=b", "pool": None, "group": None, "until_gone": []}
    assert json.loads(capsys.readouterr().out) == {"plan": f"{file}:1", "sources": [source]}
    file.write_text(GOOD.replace("csv", "cvs"))
    assert main([str(file), "--check"]) == 2
    assert f'{file}:2: sinks.file.format: "cvs"' in capsys.readouterr().err


def test_a_plan_runs_alone(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(GOOD)
    assert plan_of([file]) is not None
    with pytest.raises(junctura.InvalidArgument, match="runs alone"):
        plan_of([file, file])
    file.write_text("product: x\n")
    assert plan_of([file]) is None


def test_a_plan_of_a_file_is_loaded_and_what_is_none_is_said(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("sources: [{follow: '*'}]\nsinks: [file: {format: grib2, name: all.grib2}]\n")
    assert [source.follow for source in Plan.load(file).sources] == ["*"]
    file.write_text("product: t\nfrom: {param: t}\nto: {format: grib2, name: t.grib2}\n")
    with pytest.raises(junctura.InvalidArgument, match="no plan: it has no `sources`"):
        Plan.load(file)
    with pytest.raises(junctura.Error, match=r"none\.yaml"):
        Plan.load(tmp_path / "none.yaml")
