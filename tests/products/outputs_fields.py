"""Synthetic fields for the tests of outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from junctura.products._input.decoded_field import Field
from junctura.products._outputs import Output, write
from junctura.products._regrid.grids import Grid, grid

PLACES = "points@50.1/8.7,48.2/16.4,-3/-60"


def field(on: str = "3/3", units: str = "K", **attributes: Any) -> Field:
    """A smooth field with every value different from its neighbours."""
    lies = grid(on)
    assert isinstance(lies, Grid)
    north, east = map(np.radians, lies.points())
    values = 280 + 20 * np.cos(north) + 3 * np.sin(3 * east + north)
    given = {
        "param": "t",
        "levtype": "pl",
        "levelist": 850,
        "date": "2026-08-01",
        "time": "12:00",
        "step": 6,
        **attributes,
    }
    kept = {name: value for name, value in given.items() if value is not None}
    return Field(values.reshape(lies.shape), lies, kept, units)


def surface(param: str, units: str, on: str = "3/3", **attributes: Any) -> Field:
    return field(on, units, param=param, levtype="sfc", levelist=None, **attributes)


def with_gap(whole: Field) -> Field:
    values = whole.values.copy()
    values.reshape(-1)[3 : values.size // 3] = np.nan
    return whole.having(values)


def written(to: Output, path: Path, *fields: Field) -> Path:
    write(fields, to, path, {"fingerprint": "f1", "product": path.name, "inputs": []})
    return path


def provenance(path: Path) -> dict[str, Any]:
    said = json.loads(path.with_name(f"{path.name}.provenance.json").read_text())
    assert isinstance(said, dict)
    return said
