"""Product generation: files for people and programs from the fields of a forecast, made while it is running.

```text
  load_all(files)      recipes for products, in YAML, each checked before anything runs
  Broker(…).run()      asks a pool for their inputs, has workers make them, says what could not be made and why
  run(plan, pool, out) lets fields through a plan as they come, into pools, stores, files and products
  grid(name)           a grid by its name: 0.5/0.5, F48, O96, T63, 0.25/0.25@72/-25/34/45
  sheet(pictures)      maps beside each other
  Field                values, where they lie, and what they mean
```
An input is decoded once, and brought to a grid once, however many products need it. A product is in its place whole, or
not at all, and what it was made of is written beside it.

Needs ecCodes and MIR: ``pip install 'junctura[products]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from junctura._xarray.label_attributes import needed
from junctura.products._broker.broker import Broker
from junctura.products._broker.run_report import Failed, Made, Report
from junctura.products._input.decoded_field import Field
from junctura.products._plan import Plan, Ran, run
from junctura.products._recipe.definitions import Recipe, load_all
from junctura.products._regrid.grids import Grid, Spectral, grid

if TYPE_CHECKING:
    from junctura.products._map.sheet import sheet

__all__ = [
    "Broker",
    "Failed",
    "Field",
    "Grid",
    "Made",
    "Plan",
    "Ran",
    "Recipe",
    "Report",
    "Spectral",
    "grid",
    "load_all",
    "run",
    "sheet",
]


def __getattr__(name: str) -> Any:
    """`sheet` needs Pillow, which nothing else here does before the first map."""
    if name != "sheet":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    needed("PIL", "products")
    from junctura.products._map.sheet import sheet

    return sheet
