"""What a plan says is enough to know that no field can get through: it is refused with its line, before any comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from junctura import InvalidArgument
from junctura.products import Plan
from junctura.products.__main__ import main

HEAD = "sources: [{follow: class=rd}]\n"
ARCHIVE = "sinks: [{archive: {store: kept}}]\n"
GRIB = "sinks: [{file: {format: grib2, name: x.grib2}}]\n"


def plan(folder: Path, text: str) -> Plan:
    (folder / "plan.yaml").write_text(HEAD + text)
    return Plan.load(folder / "plan.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"actions: [{{aggregate: {{grid: 2/2}}}}]\n{ARCHIVE}", "sinks.archive: a store keeps messages"),
        (f"actions: [{{grid: 2/2}}]\n{ARCHIVE}", "sinks.archive: a store keeps messages"),
        (f"actions: [{{regrid: 2/2}}]\n{ARCHIVE}", "sinks.archive: a store keeps messages"),
        (f"actions: [{{encode: {{bits: 16}}}}, {{fill: 0}}]\n{ARCHIVE}", "sinks.archive: a store keeps messages"),
        (
            "actions: [{aggregate: {grid: 2/2}}]\nsinks: [{plan: {sinks: [{archive: {store: kept}}]}}]\n",
            "sinks.plan.sinks.archive: a store keeps messages",
        ),
        (
            f"actions: [{{aggregate: {{grid: 2/2, units: furlong}}}}, {{encode: {{bits: 16}}}}]\n{ARCHIVE}",
            "actions.encode: unit 'furlong': \"furlong\" is no unit",
        ),
        (
            f"actions: [{{select: {{param: t}}}}, {{aggregate: {{grid: 2/2, units: m}}}}]\n{GRIB}",
            "sinks.file: unit 'K': 'm' is of another quantity",
        ),
        (
            f"actions: [{{aggregate: {{grid: 2/2, units: K}}}}, {{units: m}}]\n{GRIB}",
            "actions.units: unit 'm': 'K' is of another quantity",
        ),
        (
            f"actions: [{{select: {{param: ucurr}}}}, {{aggregate: {{grid: 2/2}}}}, {{encode: {{}}}}]\n{ARCHIVE}",
            'actions.encode: ecCodes knows no parameter "ucurr"',
        ),
    ],
)
def test_what_can_only_go_wrong_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        plan(tmp_path, text)
    assert said in str(error.value) and f"{tmp_path}/plan.yaml:" in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        # Messages go through as they are.
        f"actions: [{{select: {{param: ucurr}}}}]\n{ARCHIVE}",
        f"actions: [{{select: {{param: ucurr}}}}, {{encode: {{bits: 16}}}}]\n{ARCHIVE}",
        f"actions: [{{units: {{gh: gpdm}}}}]\n{ARCHIVE}",
        f"actions: [{{grid: 2/2}}, {{encode: {{bits: 16}}}}]\n{ARCHIVE}",
        # By its number ecCodes knows it.
        "actions: [{select: {param: ucurr}}, {aggregate: {grid: 2/2}}, {set: {paramId: 131}}, {encode: {bits: 16}}]\n"
        + ARCHIVE,
        f"actions: [{{select: {{param: so}}}}, {{aggregate: {{grid: 2/2, units: g kg**-1}}}}]\n{GRIB}",
        f"actions: [{{aggregate: {{grid: 2/2, units: psu}}}}]\n{GRIB}",
        "actions: [{aggregate: {grid: 2/2, units: furlong}}]\nsinks: [{offer: {pool: unix:x}}]\n",
    ],
)
def test_what_may_go_well_is_let_through(tmp_path: Path, text: str) -> None:
    assert plan(tmp_path, text).sources[0].follow == "class=rd"


OF_2T = "sources: [{follow: 'class=od,param=2t/tp'}]\n"
CSV = "sinks: [{file: {format: csv, name: '{param}.csv'}}]\n"
NEEDS_Z = "product: heights\nfrom: {param: [2t, z]}\nto: {format: csv, name: 'heights.csv'}\n"
IN_HPA = "product: warm\nfrom: {param: 2t}\ndo: [units: hPa]\nto: {format: csv, name: 'warm.csv'}\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            f"{HEAD}actions: [{{select: {{param: 2t}}}}, {{units: mm}}]\n{CSV}",
            2,
            "actions.units: 2t: unit 'mm': 'K' is of",
        ),
        (
            f"{OF_2T}actions: [{{units: {{tp: degC}}}}]\n{CSV}",
            2,
            "actions.units.tp: tp: unit 'degC': 'm' is of another",
        ),
        (
            f"{OF_2T}actions: [{{units: {{gh: gpdm}}}}]\n{CSV}",
            2,
            "actions.units.gh: no field here is gh: those that come",
        ),
        (
            f"{OF_2T}actions:\n- select: {{param: 2t}}\nsinks:\n- plan:\n    actions: [units: '%']\n    {CSV}",
            6,
            "sinks.plan.actions.units: 2t: unit '%': 'K' is of another quantity",
        ),
        (
            f"{HEAD}actions: [{{select: {{param: msl}}}}, {{units: hPa}}, {{units: K}}]\n{CSV}",
            2,
            "actions.units: msl: unit 'K': 'hPa' is of another quantity; possible are Pa, hPa, kPa",
        ),
        (
            f"{OF_2T}sinks: [{{file: {{format: png, name: '{{param}}.png', units: degC}}}}]\n",
            2,
            "sinks.file.units: tp: unit 'degC': 'm' is of another quantity",
        ),
        (
            f"{HEAD}actions:\n- compute: {{2t: {{formula: tp, units: m}}}}\n- select: {{param: 2t}}\n- encode: {{}}\n"
            f"{ARCHIVE}",
            5,
            "actions.encode: 2t: unit 'K': 'm' is of another quantity",
        ),
        (f"{HEAD}actions: [{{aggregate: {{grid: 2/2}}}}, {{units: K}}]\n{CSV}", 2, "these arrays have no units"),
        (
            f"{HEAD}actions: [{{select: {{param: [t, ucurr]}}}}]\n{ARCHIVE}",
            2,
            'select.param: ecCodes knows no parameter "ucurr"',
        ),
        (f"{HEAD}actions: [{{select: {{param: t2m}}}}]\n{CSV}", 2, '"t2m"; did you mean 2t?; write its short name'),
        (
            "sources:\n- follow: class=od\n- follow: param=2t/uburrr,class=rd\n" + CSV,
            3,
            "sources.follow: ecCodes knows no",
        ),
        (
            f"{HEAD}sinks: [{{archive: {{store: kept, select: {{param: nosuch}}}}}}]\n",
            2,
            'sinks.archive.select.param: ecCodes knows no parameter "nosuch"',
        ),
        (
            f"{HEAD}actions: [{{set: {{param: nosuch}}}}, {{encode: {{}}}}]\n{ARCHIVE}",
            2,
            "encode: ecCodes knows no parameter",
        ),
        (
            f"{OF_2T}actions: [{{select: {{param: [u, v]}}}}]\n{CSV}",
            2,
            "no field here is u or v: those that come are 2t and tp",
        ),
        (
            f"{OF_2T}actions: [{{compute: {{ws: {{formula: 'hypot(u, v)', units: m/s}}}}}}]\n{CSV}",
            2,
            '"u" is no field here',
        ),
        (f"{OF_2T}actions: [{{mask: {{where: 'tp > 1'}}}}]\n{CSV}", 2, "a field of 2t has no tp"),
        (f"{OF_2T}actions: [{{wind: {{grid: 1/1}}}}]\n{CSV}", 2, "actions.wind: expected vorticity and divergence"),
        (f"{HEAD}actions: [{{select: {{param: [vo, d]}}}}, {{wind: {{}}}}]\n{CSV}", 2, "actions.wind: on which grid?"),
        (
            f"{HEAD}actions: [{{select: {{param: vo}}}}, {{wind: {{grid: 1/1}}}}]\n{CSV}",
            2,
            'wind: "d" is no field here',
        ),
        (
            f"{OF_2T}sinks: [{{product: {{recipe: heights.yaml}}}}]\n",
            2,
            "heights needs z, and the fields that come are 2t",
        ),
    ],
)
def test_a_check_refuses_what_no_message_can_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: int, said: str
) -> None:
    (tmp_path / "heights.yaml").write_text(NEEDS_Z)
    (tmp_path / "plan.yaml").write_text(text)
    assert main([str(tmp_path / "plan.yaml"), "--check"]) == 2
    (found,) = capsys.readouterr().err.splitlines()
    assert f"plan.yaml:{line}: " in found and said in found


def test_a_check_names_all_that_no_message_can_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "sources: [{follow: param=t}]\nsinks:\n"
    for action in ("units: mm", "select: {param: u}", "units: {q: K}", "grid: 2/2"):
        text += f"- plan:\n    actions: [{action}]\n    {CSV}"
    (tmp_path / "plan.yaml").write_text(text)
    assert main([str(tmp_path / "plan.yaml"), "--check"]) == 2
    lines = [one.partition("plan.yaml:")[2].partition(":")[0] for one in capsys.readouterr().err.splitlines()]
    assert lines == ["4", "7", "10"]


@pytest.mark.parametrize(
    "text",
    [
        f"{OF_2T}actions: [{{units: {{2t: degC, tp: mm}}}}]\n{CSV}",
        f"{OF_2T}actions: [{{select: {{param: 2t}}}}, {{units: degC}}, {{encode: {{bits: 16}}}}]\n{ARCHIVE}",
        f"{HEAD}actions: [{{select: {{param: [vo, d]}}}}, {{wind: {{grid: 1/1}}}}, {{units: kt}}]\n{CSV}",
        f"{HEAD}actions: [{{select: {{param: [10u, 10v]}}}}, {{wind: {{}}}}, {{units: kt}}]\n{CSV}",
        f"{OF_2T}actions: [{{compute: {{x: {{formula: '2t', units: m}}}}}}, {{units: {{x: cm}}}}]\n{CSV}",
        f"{HEAD}actions: [{{set: {{param: mine}}}}, {{select: {{param: mine}}}}]\n{CSV}",
        # Names of arrays are the model's own, and may be made of several sources.
        f"{HEAD}actions: [select: {{param: votemper}}, aggregate: {{grid: 2/2, units: degC}}, units: K]\n{CSV}",
        "sources: [{follow: param=votemper}, {follow: class=od}]\nactions: [{aggregate: {grid: 2/2}}]\n" + CSV,
        # ecCodes finds these parameters by their numbers, for any name.
        f"{HEAD}actions: [{{select: {{param: [130, 131.128]}}}}, {{select: {{param: t}}}}]\n{ARCHIVE}",
        f"{HEAD}actions: [{{select: {{param: so}}}}, {{units: '1'}}]\n{CSV}",
        # Selectors that are no request: which parameters come is not known.
        "sources: [{follow: 'param=t or class=od'}]\nactions: [{select: {param: u}}]\n" + CSV,
        f"{OF_2T}actions: [mask: {{below: 0}}]\nsinks:\n- plan:\n"
        f"    actions: [select: {{param: tp}}, mask: {{where: 'tp > 1'}}]\n    {CSV}",
    ],
)
def test_a_check_lets_through_what_messages_or_arrays_can_pass(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    assert main([str(tmp_path / "plan.yaml"), "--check"]) == 0


def test_a_check_gives_the_hints_of_the_recipes_of_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "warm.yaml").write_text(IN_HPA)
    (tmp_path / "plan.yaml").write_text(f"{OF_2T}sinks: [{{plan: {{sinks: [{{product: {{recipe: warm.yaml}}}}]}}}}]\n")
    assert main([str(tmp_path / "plan.yaml"), "--check"]) == 0
    assert "  warm: 2t cannot be converted to hPa: 'K' is of another quantity" in capsys.readouterr().out
