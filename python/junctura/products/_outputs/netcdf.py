"""netCDF 4 according to the CF conventions; see `_cube` for the structure.

The file is created in memory: the caller, not the library, handles a full disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from junctura._xarray.label_attributes import needed
from junctura.products._input.decoded_field import Field
from junctura.products._outputs._cube import Cube, Variable, cube
from junctura.products._outputs._output import Output

# Level 1 compresses nearly as well as higher levels, and is several times as fast.
_LEVEL = 1
_START_BYTES = 1 << 16


def made(fields: Sequence[Field], to: Output) -> bytes:
    """Returns one data set of the fields, in single precision."""
    data = cube(fields)
    file = needed("netCDF4", "products").Dataset("product", "w", format="NETCDF4", memory=_START_BYTES)
    file.setncatts(data.attributes)
    for name, extent in data.dims.items():
        file.createDimension(name, extent)
    for name, variable in data.variables.items():
        made = file.createVariable(name, *_kind(variable), **_storage(data, variable, to))
        made.setncatts(variable.attributes)
        made[...] = variable.values
    return bytes(file.close())


def _kind(variable: Variable) -> tuple[Any, tuple[str, ...]]:
    return (str if variable.values.dtype.kind == "U" else variable.values.dtype), variable.dims


def _storage(data: Cube, variable: Variable, to: Output) -> dict[str, Any]:
    if not variable.is_data:
        return {}
    return {
        "compression": to.compression,
        "complevel": _LEVEL,
        "shuffle": True,
        "fill_value": float("nan"),
        "chunksizes": data.chunks(variable),
    }
