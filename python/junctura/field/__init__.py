"""Fields of GRIB messages: the one place where values, coordinates, grids, levels and times are derived from them.

```text
  message ── checked (junctura._grib.checked_messages) ── ecCodes ──► Field
             keys │ values (NaN: missing) │ layout: dims, latitudes, longitudes │ grid │ times │ level │ member │ units
```
The xarray engine, `to_xarray`, Dask, comparisons and products use it. Parts can be had without the others: the engine
reads the layout of a variable once, and of each field only the values.
"""

from __future__ import annotations

from junctura.field._eccodes import decoded, message_of
from junctura.field._field import Field, Placed, arranged, coordinates_of, field_of, mars_of, ordered, placed
from junctura.field._grid import Grid, grid_of, octets_of
from junctura.field._layout import Layout, layout_of
from junctura.field._level import Level, level_of, member_of
from junctura.field._order import FLAGS, Order, order_of
from junctura.field._time import (
    Step,
    Times,
    day_of,
    durations,
    durations_of,
    moments,
    moments_of,
    seconds_of,
    step_of,
    times_of,
    valid_times,
)
from junctura.field._values import values_in, values_of, values_of_simple

__all__ = [
    "FLAGS",
    "Field",
    "Grid",
    "Layout",
    "Level",
    "Order",
    "Placed",
    "Step",
    "Times",
    "arranged",
    "coordinates_of",
    "day_of",
    "decoded",
    "durations",
    "durations_of",
    "field_of",
    "grid_of",
    "layout_of",
    "level_of",
    "mars_of",
    "member_of",
    "message_of",
    "moments",
    "moments_of",
    "octets_of",
    "order_of",
    "ordered",
    "placed",
    "seconds_of",
    "step_of",
    "times_of",
    "valid_times",
    "values_in",
    "values_of",
    "values_of_simple",
]
