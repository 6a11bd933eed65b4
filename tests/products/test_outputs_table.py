"""Tables: every row states when and of what it is, in CSV and Parquet alike."""

from __future__ import annotations

import csv
import datetime as dt
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from outputs_fields import PLACES, field, with_gap, written

from junctura.products._input.decoded_field import Field
from junctura.products._outputs import Output

UTC = dt.timezone.utc


def as_csv(folder: Path, *fields: Field) -> list[dict[str, str]]:
    path = written(Output("csv"), folder / "t.csv", *fields)
    return list(csv.DictReader(io.StringIO(path.read_text())))


def as_parquet(folder: Path, *fields: Field) -> list[dict[str, Any]]:
    path = written(Output("parquet"), folder / "t.parquet", *fields)
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def test_days_and_times_are_told_apart(tmp_path: Path) -> None:
    """What a reanalysis has: no steps, several days and times."""
    fields = [
        field(PLACES, date=date, time=time, step=0) for date in ("20190301", "20190302") for time in ("0000", "1800")
    ]
    rows = as_csv(tmp_path, *fields)
    times = [f"2019-03-0{day}T{hour}:00:00Z" for day in (1, 2) for hour in ("00", "18")]
    assert [row["base_time"] for row in rows[::3]] == [row["valid_time"] for row in rows[::3]] == times
    assert len({tuple(row.items()) for row in rows}) == 12
    typed = as_parquet(tmp_path, *fields)
    assert [row["valid_time"].isoformat() for row in typed[::3]] == [time.replace("Z", "+00:00") for time in times]


@pytest.mark.parametrize(
    ("about", "base", "valid"),
    [
        ({"step": "90m"}, "2026-08-01T12:00:00Z", "2026-08-01T13:30:00Z"),
        ({"step": "0-24", "stepType": "avg"}, "2026-08-01T12:00:00Z", "2026-08-02T12:00:00Z"),
        ({"step": 24, "stepType": "max", "stepStart": "18"}, "2026-08-01T12:00:00Z", "2026-08-02T12:00:00Z"),
        ({"hdate": "20210615", "time": "0600"}, "2021-06-15T06:00:00Z", "2021-06-15T12:00:00Z"),
        ({"date": "08500115", "time": "0000"}, "0850-01-15T00:00:00Z", "0850-01-15T06:00:00Z"),
        ({"date": "19950101", "time": "0000", "step": 8760}, "1995-01-01T00:00:00Z", "1996-01-01T00:00:00Z"),
        ({"date": None}, "", ""),
    ],
)
def test_a_row_has_the_base_time_and_the_end_of_its_step(
    tmp_path: Path, about: dict[str, Any], base: str, valid: str
) -> None:
    one = field("points@0/0", **about)
    (row,) = as_csv(tmp_path, one)
    assert (row["base_time"], row["valid_time"]) == (base, valid)
    (typed,) = as_parquet(tmp_path, one)
    for name, text in (("base_time", base), ("valid_time", valid)):
        assert typed[name] == (dt.datetime.fromisoformat(text.rstrip("Z")).replace(tzinfo=UTC) if text else None)


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("type", ["an", "fc"]),
        ("expver", ["0001", "0079"]),
        ("hdate", ["20210615", "20200615"]),
        ("levtype", ["pl", "ml"]),
        ("direction", [1, 2]),
        ("bottomLevel", ["0.07", None]),
    ],
)
def test_each_word_in_which_fields_differ_is_a_column(tmp_path: Path, word: str, values: list[Any]) -> None:
    fields = [field("points@0/0", **{word: value}) for value in values]
    texts = [None if value is None else str(value) for value in values]
    assert [row[word] for row in as_csv(tmp_path, *fields)] == [text or "" for text in texts]
    assert [row[word] for row in as_parquet(tmp_path, *fields)] == texts
    assert word not in as_csv(tmp_path, fields[0])[0]


def test_parquet_has_the_columns_of_csv_with_types(tmp_path: Path) -> None:
    fields = [
        with_gap(field(PLACES, number=1, places=["Bonn", "", "Wien"])),
        field(PLACES, statistic="percentile", percentile=10, levelist=0.001, type="pb"),
    ]
    plain, typed = as_csv(tmp_path, *fields), as_parquet(tmp_path, *fields)
    assert list(plain[0]) == list(typed[0])
    assert [row["place"] for row in typed] == ["Bonn", None, "Wien", None, None, None]
    values = np.concatenate([one.values for one in fields])
    found = np.array([np.nan if row["value"] is None else row["value"] for row in typed])
    np.testing.assert_array_equal(found, values)
    assert [float(row["value"] or "nan") for row in plain[3:]] == values[3:].tolist()
    assert [(row["number"], row["levelist"], row["param"], row["units"]) for row in typed[2:4]] == [
        (1, 850.0, "t", "K"),
        (None, 0.001, "t_p10", "K"),
    ]
    assert plain[3]["levelist"] == "0.001"


def test_the_formula_of_a_spread_is_named(tmp_path: Path) -> None:
    fields = [field("points@0/0", statistic="spread", members=51), field("points@0/0", statistic="mean")]
    comments = [row["comment"] for row in as_csv(tmp_path, *fields)]
    assert comments == ["sqrt(sum((x - mean(x))**2) / N): divided by the number of members N, not by N - 1; N = 51", ""]
    assert [row["comment"] for row in as_parquet(tmp_path, *fields)] == [comments[0], None]
    assert "comment" not in as_csv(tmp_path, fields[1])[0]


def test_a_field_on_a_grid_has_a_row_for_each_point(tmp_path: Path) -> None:
    one = field("90/90")
    typed = as_parquet(tmp_path, one)
    assert [(row["latitude"], row["longitude"]) for row in typed[:5]] == [
        (90, 0),
        (90, 90),
        (90, 180),
        (90, 270),
        (0, 0),
    ]
    assert [row["value"] for row in typed] == one.values.ravel().tolist()
