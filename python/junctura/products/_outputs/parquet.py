"""The table of `_table` as a Parquet file: typed columns, times in UTC, null for missing values."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from junctura._xarray.label_attributes import needed
from junctura.products._input.decoded_field import Field
from junctura.products._outputs._output import Output
from junctura.products._outputs._table import Rows, rows_of


def made(fields: Sequence[Field], to: Output) -> bytes:  # noqa: ARG001 - it has no options
    """Returns a row for each point of each field, with values in double precision."""
    arrow = needed("pyarrow", "arrow")
    tables = rows_of(fields)
    sizes = [one.field.values.size for one in tables]
    columns: dict[str, Any] = {}
    if any(one.names for one in tables):
        names = [name or None for one in tables for name in one.names or [""] * one.field.values.size]
        columns["place"] = arrow.array(names, arrow.string())
    for number, name in enumerate(("latitude", "longitude")):
        columns[name] = arrow.array(np.concatenate([one.field.grid.points()[number] for one in tables]))
    for name in tables[0].before:
        columns[name] = _repeated(arrow, name, tables, sizes)
    values = np.concatenate([one.field.values.ravel() for one in tables])
    columns["value"] = arrow.array(values, mask=np.isnan(values))
    for name in tables[0].behind:
        columns[name] = _repeated(arrow, name, tables, sizes)
    file = io.BytesIO()
    needed("pyarrow.parquet", "arrow").write_table(arrow.table(columns), file, compression="zstd")
    return file.getvalue()


def _repeated(arrow: Any, name: str, tables: Sequence[Rows], sizes: Sequence[int]) -> Any:
    """Returns a constant column of a field."""
    kinds = {
        "base_time": arrow.timestamp("us", tz="UTC"),
        "valid_time": arrow.timestamp("us", tz="UTC"),
        "number": arrow.int32(),
        "levelist": arrow.float64(),
    }
    said = arrow.array([{**one.before, **one.behind}[name] for one in tables], kinds.get(name, arrow.string()))
    return said.take(arrow.array(np.repeat(np.arange(len(tables)), sizes)))
