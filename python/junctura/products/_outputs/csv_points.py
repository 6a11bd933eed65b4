"""Values at places, a row for each: for spreadsheets and other programs that read lines of text."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Sequence
from typing import Any

from junctura.products._input.decoded_field import Field
from junctura.products._outputs._output import Output
from junctura.products._outputs._table import rows_of


def made(fields: Sequence[Field], to: Output) -> bytes:
    """Returns a row for each point of each field, with the columns of `_table`; missing values are empty.

    Numbers are the shortest decimal text that parses to the same number, or have the number of digits in `to`. Times
    are in ISO 8601.
    """
    tables = rows_of(fields)
    is_named = any(one.names for one in tables)
    where = [*(["place"] if is_named else []), "latitude", "longitude"]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow((*where, *tables[0].before, "value", *tables[0].behind))
    for one in tables:
        before, behind = (tuple(map(_text, said.values())) for said in (one.before, one.behind))
        latitudes, longitudes = one.field.grid.points()
        names = one.names or [""] * latitudes.size
        numbers = zip(latitudes.tolist(), longitudes.tolist(), one.field.values.ravel().tolist(), strict=True)
        table.writerows(
            (*((name,) if is_named else ()), latitude, longitude, *before, _number(value, to.digits), *behind)
            for name, (latitude, longitude, value) in zip(names, numbers, strict=True)
        )
    return text.getvalue().encode()


def _text(said: Any) -> str:
    if isinstance(said, dt.datetime):
        # Years have four digits, also those before 1000.
        return f"{said.replace(tzinfo=None).isoformat()}Z"
    if isinstance(said, float):
        return f"{said:.12g}"
    return "" if said is None else str(said)


def _number(value: float, digits: int | None) -> str:
    if value != value:
        return ""
    return repr(value) if digits is None else f"{value:.{digits}g}"
