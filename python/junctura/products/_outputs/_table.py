"""Fields as the rows of a table, a row for each point of each field: the common part of CSV and Parquet.

```text
  place                   name of the place, where places have names
  latitude, longitude     degrees
  base_time, valid_time   UTC; of a range of steps its end
  type, expver, hdate...  words of MARS in which the fields of the table differ
  step                    6, 90m, or a range of steps: 0-24
  number, levelist        member and level
  param                   the parameter and what was made of it: t, t_p10
  value, units
    comment                 the formula of a spread, if any
```
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from junctura.products._input.decoded_field import Field
from junctura.products._outputs._meaning import Meaning, comment, meaning, places, step_text
from junctura.products._recipe.recipe_schema import IDENTITY

# Words with columns of their own, or implied by such columns.
_TOLD = ("date", "time", "step", "number", "levelist", "param")


@dataclass(frozen=True)
class Rows:
    """The rows of one field.

    Attributes
    ----------
    names
        Names of the points, if they are places; None without names.
    before, behind
        The constant columns before and after the value; None if empty.

    """

    field: Field
    names: list[str] | None
    before: dict[str, Any]
    behind: dict[str, Any]


def rows_of(fields: Sequence[Field]) -> list[Rows]:
    """The rows of the fields; all have the same columns."""
    varying = _varying(fields)
    tables = [_rows(field, varying) for field in fields]
    if any(one.behind["comment"] for one in tables):
        return tables
    return [replace(one, behind={"units": one.field.units}) for one in tables]


def _varying(fields: Sequence[Field]) -> list[str]:
    """Returns the words that identify fields and differ among these."""
    words = [word for word in IDENTITY if word not in _TOLD]
    return [word for word in words if len({str(field.attributes.get(word, "")) for field in fields}) > 1]


def _rows(field: Field, varying: Sequence[str]) -> Rows:
    is_what = meaning(field)
    before = {
        "base_time": is_what.base,
        "valid_time": _valid(is_what),
        **{word: None if (value := field.attributes.get(word)) is None else str(value) for word in varying},
        "step": step_text(is_what),
        "number": is_what.number,
        "levelist": is_what.level,
        "param": is_what.name,
    }
    return Rows(field, places(field), before, {"units": field.units, "comment": comment(is_what) or None})


def _valid(is_what: Meaning) -> dt.datetime | None:
    return None if is_what.base is None else is_what.base + is_what.end
