"""Base times in products: hindcasts, and years that `strftime` writes without zeros."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from outputs_fields import field

from junctura.products._map.words import _time
from junctura.products._outputs._cf import time_attributes
from junctura.products._outputs._meaning import meaning
from junctura.products._recipe.mars_words import canonical, values


def _base(**about: Any) -> str:
    base = meaning(field(**about)).base
    assert base is not None
    return base.isoformat()[:10]


def test_the_base_time_of_a_hindcast_is_its_own_day() -> None:
    assert _base(date="20230615", hdate="20210615") == "2021-06-15"
    assert _base(date="20230615") == "2023-06-15"


@pytest.mark.parametrize("year", [1, 850, 999, 1000, 1582, 2026, 9999])
def test_years_have_four_digits(year: int) -> None:
    day = dt.date(year, 1, 15)
    text = f"{year:04}0115"
    assert canonical("date", text) == canonical("date", day) == canonical("date", f"{year:04}-01-15") == text
    assert values("date", f"{text}/to/{year:04}0117") == (text, f"{year:04}0116", f"{year:04}0117")
    assert _base(date=text) == _base(date=int(text)) == day.isoformat()
    at = dt.datetime(year, 1, 15, 6, tzinfo=dt.timezone.utc)
    assert time_attributes(at)["units"] == f"hours since {year:04}-01-15 06:00:00"
    # CF's standard calendar is Julian before 15 October 1582.
    assert time_attributes(at)["calendar"] == ("standard" if year > 1582 else "proleptic_gregorian")
    assert _time(at) == f"{year:04}-01-15 06:00 UTC"
