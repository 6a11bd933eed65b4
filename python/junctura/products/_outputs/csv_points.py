"""Values at places, a row for each: for spreadsheets and everything else that reads lines of text."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import repeat

from junctura.products._field import Field
from junctura.products._outputs._meaning import meaning, places, step_text
from junctura.products._outputs._output import Output

HEADER = ("latitude", "longitude", "step", "number", "levelist", "param", "value", "units")


def made(fields: Sequence[Field], to: Output) -> bytes:
    """One row for each point of each field, missing values empty; `param` says the statistic, too: ``t_p10``.

    Where points have names, these are in a first column, ``place``.
    Numbers are the shortest decimal text that reads back as the same number, or have so many digits as `to` says.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    names = [places(field) for field in fields]
    is_named = any(names)
    table.writerow(("place", *HEADER) if is_named else HEADER)
    for field, named in zip(fields, names, strict=True):
        is_what = meaning(field)
        level = "" if is_what.level is None else f"{is_what.level:g}"
        about = (step_text(is_what), "" if is_what.number is None else is_what.number, level, is_what.name)
        latitudes, longitudes = field.grid.points()
        numbers = zip(latitudes.tolist(), longitudes.tolist(), field.values.ravel().tolist(), strict=True)
        rows = (
            (latitude, longitude, *about, _text(value, to.digits), field.units)
            for latitude, longitude, value in numbers
        )
        table.writerows(
            ((name, *row) for name, row in zip(named or repeat(""), rows, strict=False)) if is_named else rows
        )
    return text.getvalue().encode()


def _text(value: float, digits: int | None) -> str:
    if value != value:
        return ""
    return repr(value) if digits is None else f"{value:.{digits}g}"
