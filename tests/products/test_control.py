"""Control and perturbed forecasts are one ensemble, whose member 0 is the control: recipes, statistics and files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from broker_runs import BASE, broker, grid_message, recipes
from grib_messages import messages
from outputs_fields import field, written

import junctura
from junctura.products._input.decoding import decode
from junctura.products._operations import Ensemble
from junctura.products._outputs import Output
from junctura.products._plan._actions import Select
from junctura.products._plan._item import Item

pytestmark = pytest.mark.timeout(180)
COUNT = 4
SHAPE = (32, 64)
STATISTICS = "[mean, spread, min, max, {percentile: 90}, {probability: {above: 280}}]"


def asked(folder: Path, words: str, do: str = "", to: str = "format: grib2, name: 'x_{type}_{number}'") -> Any:
    (found,) = recipes(folder, f"product: p\nfrom: {{param: t, {words}}}\ndo: [{do}]\nto: {{{to}}}\n")
    return found


def inputs(wanted: Any) -> list[tuple[Any, ...]]:
    return [(key.get("type"), key["number"]) for key in wanted.inputs]


def test_the_control_forecast_is_member_0_and_no_other_member_is(tmp_path: Path) -> None:
    read = asked(tmp_path, "type: [cf, pf], number: 0/to/2")
    assert [inputs(one) for one in read.wanted()] == [[("cf", 0)], [("pf", 1)], [("pf", 2)]]
    assert [one.name() for one in read.wanted()] == ["x_cf_0", "x_pf_1", "x_pf_2"]
    assert [str(one) for one in read.files()] == [str(one.attributes) for one in read.wanted()]


def test_an_ensemble_has_both_in_one_file(tmp_path: Path) -> None:
    read = asked(
        tmp_path, "type: [cf, pf], number: 0/to/2, step: 0/6", "ensemble: [mean]", "format: csv, name: '{step}'"
    )
    assert [inputs(one) for one in read.wanted()] == [[("cf", 0), ("pf", 1), ("pf", 2)]] * 2
    assert [str(one) for one in read.files()] == [f"param=t,product=p,step={step}" for step in (0, 6)]


def test_other_types_have_all_their_members(tmp_path: Path) -> None:
    read = asked(tmp_path, "type: [cf, pf, fc], number: 0/1")
    assert [inputs(one) for one in read.wanted()] == [[("cf", 0)], [("pf", 1)], [("fc", 0)], [("fc", 1)]]
    read = asked(tmp_path, "type: [an, pf], number: 0/1")
    assert len(list(read.wanted())) == 4


def test_a_control_forecast_without_its_member_is_refused(tmp_path: Path) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"from.number: the control forecast \(cf\) is member 0"):
        asked(tmp_path, "type: [cf, pf], number: 1/to/50")


@pytest.mark.parametrize(
    ("about", "number"),
    [
        ({"type": "cf"}, 0),
        ({"type": "cf", "number": 0}, 0),
        ({"type": "pf", "number": "2"}, 2),
        ({"type": "pf", "number": 3}, None),
        ({"type": "fc"}, None),
    ],
)
def test_an_object_is_the_member_that_it_is(tmp_path: Path, about: dict[str, Any], number: int | None) -> None:
    key = asked(tmp_path, "number: 0/to/2", to="format: csv, name: '{number}'").key({"param": "t", **about})
    assert (None if key is None else key["number"]) == number
    passes = Select({"number": (0, 1, 2)}).take(Item({"param": "t", **about}))
    assert bool(passes) == (number is not None)


def test_statistics_are_of_one_more_than_the_perturbed_members() -> None:
    members = [field("90/90", type="cf"), *(field("90/90", type="pf", number=number) for number in (1, 2))]
    members = [one.having(one.values + 3 * at**2) for at, one in enumerate(members)]
    stack = np.stack([one.values for one in members])
    mean, spread = Ensemble.read(["mean", "spread"])(members[::-1], None)  # type: ignore[arg-type]
    np.testing.assert_array_equal(mean.values, stack.mean(axis=0))
    np.testing.assert_array_equal(spread.values, stack.std(axis=0))
    assert (mean.attributes["members"], mean.attributes["type"]) == (3, "em")


def test_both_are_one_cube_whose_member_0_is_the_control(tmp_path: Path) -> None:
    path = written(Output("netcdf"), tmp_path / "p.nc", field(type="cf"), field(type="pf", number=1))
    with xarray.open_dataset(path) as data:
        assert data.realization.values.tolist() == [0, 1]
    rows = written(Output("csv"), tmp_path / "p.csv", field("points@0/0", type="cf")).read_text().splitlines()
    assert dict(zip(rows[0].split(","), rows[1].split(","), strict=True))["number"] == "0"


def test_a_control_forecast_stays_one_in_grib(tmp_path: Path) -> None:
    said = {"class": "od", "stream": "enfo", "expver": "0001", "centre": "ecmf"}
    path = written(
        Output("grib2"), tmp_path / "p", field(type="cf", **said), field(type="em", statistic="mean", **said)
    )
    control, mean = (decode(message).attributes for message in messages(path))
    assert (control["type"], mean["type"]) == ("cf", "em")


def header(number: int) -> dict[str, Any]:
    about = {"productDefinitionTemplateNumber": 1, "setLocalDefinition": 1, "stream": "enfo", "date": 20261120}
    about |= {"type": "pf" if number else "cf", "number": number, "numberOfForecastsInEnsemble": COUNT}
    return {**about, "step": 6, "shortName": "t", "level": 850}


def values(number: int) -> np.ndarray[Any, Any]:
    return 270 + 10 * np.random.default_rng(number).normal(size=SHAPE) + 3 * number


def by_put(folder: Path, pool: junctura.Pool) -> dict[str, Any]:
    """Messages whose headers alone state what they are."""
    command = [sys.executable, "-m", "junctura", "put", str(members(folder)), "--pool", pool.url, "--quiet"]
    subprocess.run(command, check=True)
    return {}


def members(folder: Path) -> Path:
    file = folder / "members.grib"
    file.write_bytes(b"".join(grid_message(values(number), **header(number)) for number in range(COUNT)))
    return file


def by_archive(folder: Path, pool: junctura.Pool) -> dict[str, Any]:  # noqa: ARG001 - the pool has none of them
    junctura.Store.from_grib(folder / "store", members(folder))
    return {"store": str(folder / "store")}


def by_model(folder: Path, pool: junctura.Pool) -> dict[str, Any]:  # noqa: ARG001 - it needs no folder
    """Arrays; the control has no number."""
    about = {**BASE, "step": 6, "param": "t", "grid": "F16", "units": "K"}
    for number in range(COUNT):
        who = {"type": "pf", "number": number} if number else {"type": "cf", "number": None}
        said = {**about, **who}
        pool.offer(values(number), {word: value for word, value in said.items() if value is not None})
    return {}


@pytest.mark.parametrize("come", [by_put, by_archive, by_model])
@pytest.mark.parametrize("types", ["", "type: [cf, pf], "])
def test_members_of_an_ensemble_are_found_however_they_come(tmp_path: Path, come: Any, types: str) -> None:
    text = f"product: e\nfrom: {{param: t, levelist: 850, step: 6, {types}number: 0/to/{COUNT - 1}}}\n"
    text += f"do: [ensemble: {STATISTICS}]\nto: {{format: netcdf, name: e.nc}}\n"
    with junctura.Pool(schema="mars") as pool:
        report = broker(tmp_path, pool, text, **come(tmp_path, pool)).run()
    assert not report.failed, report.failed
    stack = np.stack([values(number) for number in range(COUNT)])
    expected = {
        "t_mean": stack.mean(axis=0),
        "t_spread": stack.std(axis=0),
        "t_min": stack.min(axis=0),
        "t_max": stack.max(axis=0),
        "t_p90": np.percentile(stack, 90, axis=0),
    }
    formula = json.loads((tmp_path / "out/e.nc.provenance.json").read_text())["formulas"]["spread"]
    assert formula.startswith("sqrt(sum((x - mean(x))**2) / N)")
    with xarray.open_dataset(tmp_path / "out/e.nc") as data:
        assert data.t_spread.attrs["comment"] == f"{formula}; N = {COUNT}"
        for name, right in expected.items():
            np.testing.assert_allclose(data[name].values[0], right, atol=2e-4)
        share = 100 * (stack > 280).mean(axis=0)
        near = (np.abs(stack - 280) < 1e-4).any(axis=0)
        np.testing.assert_allclose(data["t_above_280"].values[0][~near], share[~near], atol=1e-4)


def test_days_and_members_are_gathered_together(tmp_path: Path) -> None:
    """The spread over 4 members of daily maxima, of two days of forecasts from two base times each."""
    text = f"""product: d
from: {{param: t, date: 20261120/20261121, time: 0/12, step: 6/12, number: 0/to/{COUNT - 1}}}
do: [statistics: {{over: day, of: max, include: end}}, ensemble: [mean, spread]]
to: {{format: netcdf, gather: date, name: d.nc}}
"""
    rng = np.random.default_rng(8)
    values = rng.normal(280, 10, (2, 2, 2, COUNT, 3, 4))
    about = {**BASE, "param": "t", "grid": "90/90", "units": "K"}
    with junctura.Pool(schema="mars") as pool:
        for day, time, step, number in np.ndindex(2, 2, 2, COUNT):
            said = {**about, "date": f"2026112{day}", "time": f"{12 * time:02}00", "step": 6 * (step + 1)}
            who = {"type": "pf", "number": number} if number else {"type": "cf", "number": None}
            given = {word: value for word, value in {**said, **who}.items() if value is not None}
            pool.offer(values[day, time, step, number], given)
        report = broker(tmp_path, pool, text).run()
    assert not report.failed, report.failed
    highest = values.max(axis=(1, 2))
    with xarray.open_dataset(tmp_path / "out/d.nc") as data:
        np.testing.assert_allclose(data.t_max_mean, highest.mean(axis=1), atol=1e-4)
        np.testing.assert_allclose(data.t_max_spread, highest.std(axis=1), atol=1e-4)
        np.testing.assert_array_equal(data.time, np.array(["2026-11-21", "2026-11-22"], "M8[ns]"))
