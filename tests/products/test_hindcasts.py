"""Hindcasts: each has the base time of its own day, keeps the date of the model version, and is told from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import eccodes
import numpy as np
import pytest
import xarray
from broker_runs import BASE, broker, recipes
from grib_messages import messages
from outputs_fields import field, written

import junctura
from junctura.products._outputs import Output

pytestmark = pytest.mark.timeout(180)
HINDCAST = {"class": "od", "stream": "enfh", "expver": "0001", "date": "20230615", "time": "0000"}
YEARS = ("20210615", "20220615")


def mars(message: bytes) -> dict[str, str]:
    """The words of MARS, and when the field is valid, as ecCodes has them."""
    handle = eccodes.codes_new_from_message(message)
    keys = eccodes.codes_keys_iterator_new(handle, "mars")
    found = {}
    while eccodes.codes_keys_iterator_next(keys):
        name = eccodes.codes_keys_iterator_get_name(keys)
        found[name] = eccodes.codes_get_string(handle, name)
    found["valid"] = eccodes.codes_get_string(handle, "validityDate")
    eccodes.codes_keys_iterator_delete(keys)
    eccodes.codes_release(handle)
    return found


@pytest.mark.parametrize(
    ("about", "right"),
    [
        ({"type": "pf", "number": 3, "step": 24}, {"type": "pf", "number": "3", "step": "24", "valid": "20210616"}),
        ({"type": "cf", "step": 48}, {"type": "cf", "step": "48", "valid": "20210617"}),
        (
            {"type": "pf", "number": 1, "step": "0-24", "stepType": "max"},
            {"number": "1", "step": "24", "valid": "20210616"},
        ),
        ({"type": "pf", "number": 2, "date": "2023-06-15", "hdate": "2021-06-15"}, {"number": "2"}),
    ],
)
def test_grib_has_both_days(tmp_path: Path, about: dict[str, Any], right: dict[str, str]) -> None:
    (message,) = messages(written(Output("grib2"), tmp_path / "p", field(**{**HINDCAST, "hdate": "20210615", **about})))
    found = mars(message)
    assert found.items() >= {"hdate": "20210615", "date": "20230615", "stream": "enfh", **right}.items()


def test_without_a_date_of_the_version_it_is_still_a_hindcast(tmp_path: Path) -> None:
    said: dict[str, Any] = {**HINDCAST, "date": None}
    one = field(**said, hdate="20210615", type="pf", number=1)
    (message,) = messages(written(Output("grib2"), tmp_path / "p", one))
    assert mars(message)["hdate"] == "20210615"


@pytest.mark.parametrize("over", [{"step": 24}, {"step": "0-24", "stepType": "max"}])
@pytest.mark.parametrize(
    "statistic",
    [
        {"statistic": "mean", "members": 11},
        {"statistic": "spread", "members": 11},
        {"statistic": "max", "members": 11},
        {"statistic": "percentile", "percentile": 90},
        {"statistic": "probability", "threshold": 280, "units": "%"},
    ],
)
def test_what_is_made_of_all_members_has_the_day_of_the_hindcast(
    tmp_path: Path, statistic: dict[str, Any], over: dict[str, Any]
) -> None:
    """WMO's code table 4.0 has hindcasts (60, 61) of single members only; the base time is that of `hdate`."""
    one = field(**HINDCAST, hdate="20210615", **statistic, **over)
    (message,) = messages(written(Output("grib2"), tmp_path / "p", one))
    found = mars(message)
    assert (found["valid"], found["date"], found["step"]) == ("20210616", "20210615", "24")


def test_hindcasts_are_told_apart_by_their_days(tmp_path: Path) -> None:
    (read,) = recipes(
        tmp_path,
        "product: p\nfrom: {param: t, date: 20230615, hdate: 20210615/20220615}\nto: {format: csv, name: '{hdate}'}\n",
    )
    assert [one.name() for one in read.wanted()] == list(YEARS)
    with pytest.raises(junctura.InvalidArgument, match="hindcasts of several days are no series"):
        recipes(
            tmp_path,
            "product: p\nfrom: {param: t, date: 20230615, time: 0, hdate: 20210615}\n"
            "do: [statistics: {over: day, of: mean}]\nto: {format: csv, name: x}\n",
        )


def test_statistics_over_the_members_of_each_hindcast(tmp_path: Path) -> None:
    text = """product: h
from: {param: t, date: 20230615, time: 0, hdate: [20210615, 20220615], step: 24/48, number: 0/to/2}
do: [ensemble: [mean]]
to: {format: netcdf, gather: [hdate, step], name: h.nc}
---
product: each
from: {param: t, date: 20230615, time: 0, hdate: [20210615, 20220615], step: 24, number: 1}
to: {format: grib2, bits: 24, name: "{hdate}.grib2"}
"""
    rng = np.random.default_rng(5)
    values = rng.normal(280, 10, (2, 2, 3, 5, 8))
    about = {**BASE, **HINDCAST, "param": "t", "grid": "45/45", "units": "K"}
    with junctura.Pool(schema="mars") as pool:
        for year, step, number in np.ndindex(2, 2, 3):
            who = {"type": "pf", "number": number} if number else {"type": "cf"}
            said = {word: value for word, value in about.items() if word not in ("type", "number")} | who
            pool.offer(values[year, step, number], {**said, "hdate": YEARS[year], "step": 24 * (step + 1)})
        report = broker(tmp_path, pool, text).run()
    assert not report.failed, report.failed
    with xarray.open_dataset(tmp_path / "out/h.nc") as data:
        np.testing.assert_allclose(data.t_mean, values.mean(axis=2).reshape(4, 5, 8), atol=1e-4)
        times = np.array(["2021-06-16", "2021-06-17", "2022-06-16", "2022-06-17"], "M8[ns]")
        np.testing.assert_array_equal(data.time, times)
    for year in YEARS:
        (message,) = messages(tmp_path / f"out/{year}.grib2")
        assert mars(message).items() >= {"hdate": year, "date": "20230615", "number": "1"}.items()
