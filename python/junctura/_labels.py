"""Arrays with labels: what xarray's mean as attributes, and what attributes mean to xarray.

Loaded when it is first needed, and so are the packages that it needs.
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import xarray

    from junctura._native import Listing, Object, Schema, Stored
    from junctura.dask import Fetched

Array = npt.NDArray[Any]
# What these say is in the array itself.
_OF_THE_ARRAY = {"dtype", "shape", "dims", "content_type", "name", "unit", "units"}


def needed(package: str, extra: str) -> Any:
    """A package that not everybody has."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{package} is not installed here: pip install 'junctura[{extra}]'") from error


def is_labelled(data: Any) -> bool:
    """Whether it is an array of xarray's, without importing that."""
    kind = type(data)
    return kind.__name__ == "DataArray" and kind.__module__.partition(".")[0] == "xarray"


def given(data: Any, schema: Schema, names: Collection[str]) -> tuple[Array, dict[str, Any]]:
    """The array, and the attributes that its labels give, as far as the schema takes them and nobody has said them."""
    return np.asarray(data), attributes_of(data, schema, names)


def attributes_of(data: Any, schema: Schema, names: Collection[str]) -> dict[str, Any]:
    """The attributes that the labels of an array give."""
    types = schema.attributes
    found: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        is_known = name in types or schema.is_open
        if is_known and name not in names and name not in found:
            value = _plain(value, types.get(name, "string"))
            if value is not None:
                found[name] = value

    for name, value in _labels(data):
        add(name, value)
    if "unit" in types and "units" in data.attrs:
        add("unit", data.attrs["units"])
    if lost := [str(name) for name, coordinate in data.coords.items() if coordinate.ndim]:
        message = f"coordinates that are arrays are not part of the object: {', '.join(lost)}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    return found


def _labels(data: Any) -> Iterator[tuple[str, Any]]:
    """What is said of an array: its dimensions and name, then what its user noted."""
    if data.dims:
        yield "dims", "/".join(str(dim) for dim in data.dims)
    if data.name is not None:
        yield "name", str(data.name)
    for name, value in data.attrs.items():
        yield str(name), value
    for name, coordinate in data.coords.items():
        if not coordinate.ndim:
            yield str(name), coordinate.values[()]


def _plain(value: Any, kind: str) -> Any:
    """A value as an attribute takes it; None for what none can hold."""
    if isinstance(value, np.datetime64):
        moment = value.astype("datetime64[us]").item()
        return moment.date() if kind == "date" else f"{moment.isoformat()}Z"
    if isinstance(value, np.timedelta64):
        return value.astype("timedelta64[us]").item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float)) and kind == "string":
        return json.dumps(value)
    return value if isinstance(value, (str, bool, int, float)) else None


def dataset(listing: Listing, **options: Any) -> xarray.Dataset:
    """See `Listing.to_xarray`."""
    module = needed("xarray", "xarray")
    opened: xarray.Dataset = module.open_dataset(
        listing, engine=importlib.import_module("junctura._fields").Fields, **options
    )
    return opened


def to_xarray(obj: Object | Stored | Fetched) -> xarray.DataArray:
    """See `Object.to_xarray`."""
    # It imports this module.
    from junctura import field

    attributes = obj.attributes
    message = None if "dtype" in attributes else field.message_of(obj)
    if message is None:
        return labelled(obj.array(), attributes)
    found = field.field_of(message, attributes)
    return _labelled(found.values, attributes, list(found.layout.dims), field.coordinates_of(found))


def labelled(values: Any, attributes: dict[str, Any]) -> xarray.DataArray:
    """An array with the labels that attributes say."""
    return _labelled(values, attributes, dims_of(attributes, values.ndim), {})


def dims_of(attributes: dict[str, Any], count: int) -> list[str]:
    """What the dimensions of an array are called."""
    named = str(attributes.get("dims", "")).split("/")
    return named if len(named) == count and all(named) else [f"dim_{at}" for at in range(count)]


def _labelled(values: Any, attributes: dict[str, Any], dims: list[str], coords: dict[str, Any]) -> xarray.DataArray:
    module = needed("xarray", "xarray")
    for name, value in attributes.items():
        if name not in _OF_THE_ARRAY and not isinstance(value, list):
            # What is along a dimension has the name.
            coords.setdefault(f"{name}_" if name in dims else name, value)
    units = attributes.get("units", attributes.get("unit"))
    more = {name: value for name, value in attributes.items() if isinstance(value, list) and name != "shape"}
    array: xarray.DataArray = module.DataArray(
        values,
        dims=dims,
        coords=coords,
        name=attributes.get("name", attributes.get("shortName", attributes.get("param"))),
        attrs={**({"units": units} if units is not None else {}), **more},
    )
    return array
