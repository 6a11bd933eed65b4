"""What a plan says is enough to know that no field can get through: it is refused with its line, before any comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from junctura import InvalidArgument
from junctura.products import Plan

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
