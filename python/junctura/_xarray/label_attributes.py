"""Arrays with labels: maps xarray labels to attributes and back, and GRIB messages to arrays.

Imported on first use, with the packages that it needs.
"""

from __future__ import annotations

import datetime
import json
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura import _forks
from junctura._array.numpy_payload import Labelled, own
from junctura._forks import needed as needed
from junctura._xarray import label_container
from junctura.errors import InvalidArgument, UsageWarning

if TYPE_CHECKING:
    import xarray

    from junctura._native import Listing, Object, Schema, Stored
    from junctura.dask import Fetched

Array = npt.NDArray[Any]
# Attributes that the array itself contains.
_OF_THE_ARRAY = {"dtype", "shape", "dims", "content_type", "name", "unit", "units"}
# The attribute with all labels of an array, if they fit.
LABELS = "labels"
# The content type of a payload with labels after its array.
CONTENT_TYPE = "application/vnd.junctura.labelled"
# Attribute names with another meaning for objects.
_OF_THE_PAYLOAD = {"dtype", "shape", "dims", "content_type", LABELS}
# Types of attributes that are times or lengths of time as coordinates, and those that are numbers.
_TIMES = {"timestamp", "duration"}
_NUMBERS = {"integer", "decimal", "float"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
# Words of selectors.
_RESERVED = {"to", "by", "and", "or", "not", "exists"}
# Maximum number of attributes from undeclared labels, of all attributes of an object.
_LABELS_MAX = 40
_LABELS_BYTES_MAX = 16 * 1024


class DeclaredKind(NamedTuple):
    """What a schema declares about an attribute."""

    type: str
    unit: str


def given(data: Any, schema: Schema, stated: Mapping[str, Any]) -> tuple[Array | Labelled, dict[str, Any]]:
    """Returns the payload for an xarray array, and the attributes from its labels.

    All labels are kept: in the attribute ``labels`` if the schema allows it and they fit, else after the array. Scalar
    labels also become attributes of the object, if the schema allows them and the caller has not stated them.
    """
    taken = label_container.taken(data)
    attributes = attributes_of(data, schema, stated)
    if taken.text is not None and _keeps(schema, stated, taken.text):
        return taken.values, {**attributes, LABELS: taken.text}
    if "content_type" not in stated and _takes(schema, "content_type"):
        attributes["content_type"] = CONTENT_TYPE
    return taken.whole, attributes


def kept(data: Any, schema: Schema, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes with all labels of an array whose payload has no space for them.

    Raises
    ------
    InvalidArgument
        The labels do not fit, or the schema does not allow them.

    """
    text = label_container.labels_text(data)
    if not _keeps(schema, stated, text):
        large = [str(name) for name, coordinate in data.coords.items() if coordinate.ndim]
        cause = (
            f"schema {schema.name} has no attribute {LABELS}"
            if not _takes(schema, LABELS) or LABELS in stated
            else f"they take {len(text)} bytes ({', '.join(large)}), of at most {label_container.TEXT_BYTES_MAX}"
        )
        remedy = "drop what is not needed (data.drop_vars), or offer data.data and keep the labels elsewhere"
        raise InvalidArgument("data", f"the labels of an array in chunks are attributes: {cause}: {remedy}")
    return {**attributes_of(data, schema, stated), LABELS: text}


def _keeps(schema: Schema, names: Collection[str], text: str) -> bool:
    return LABELS not in names and _takes(schema, LABELS) and len(text) <= label_container.TEXT_BYTES_MAX


def _takes(schema: Schema, name: str) -> bool:
    return schema.attributes.get(name, "string" if schema.is_open else "") == "string"


def attributes_of(data: Any, schema: Schema, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the scalar labels of an array as attributes, for selectors: up to the limit of an object.

    Attributes that the caller has stated come first.
    """
    types = schema.attributes
    found: dict[str, Any] = {}
    room = _LABELS_BYTES_MAX

    def add(name: str, value: Any) -> None:
        nonlocal room
        if name in stated or name in found:
            return
        value = _plain(value, types.get(name, "string"))
        has_room = schema.is_open and len(found) < _LABELS_MAX and _fits(name, value, room)
        if value is None or (name not in types and not has_room):
            return
        found[name] = value
        room -= len(name) + len(str(value))

    for name, value in _labels(data):
        add(name, value)
    if "unit" in types and "units" in data.attrs:
        add("unit", data.attrs["units"])
    for name, coordinate in data.coords.items():
        if not coordinate.ndim and name in stated:
            _compare(str(name), stated[str(name)], coordinate.values[()])
    return found


def _compare(name: str, stated: Any, label: Any) -> None:
    """Warns if an attribute and a coordinate have different values: the array may be another part than is stated.

    Times are not compared. An attribute that differs from one of the array, such as `units`, is a correction.
    """
    label = label.item() if isinstance(label, np.generic) else label
    try:
        differs = float(stated) != float(label)
    except (TypeError, ValueError):
        differs = isinstance(stated, str) and isinstance(label, str) and stated != label
    if differs:
        message = (
            f"{name}={stated} is given, and the array has the coordinate {name}={label}: the object has "
            f"{name}={stated}. Drop the coordinate, or give {name}={label}"
        )
        warnings.warn(message, UsageWarning, stacklevel=5)


def _labels(data: Any) -> Iterator[tuple[str, Any]]:
    """Yields the labels of an array: its dimensions and name, then its attributes."""
    if data.dims:
        yield "dims", "/".join(str(dim) for dim in data.dims)
    if data.name is not None:
        yield "name", str(data.name)
    for name, value in data.attrs.items():
        if name not in _OF_THE_PAYLOAD:
            yield str(name), value
    for name, coordinate in data.coords.items():
        if not coordinate.ndim and name not in _OF_THE_PAYLOAD:
            yield str(name), coordinate.values[()]


def _fits(name: str, value: Any, room: int) -> bool:
    """Whether an undeclared attribute may have this name and value."""
    text = str(value)
    is_name = _NAME.fullmatch(name) is not None and name.lower() not in _RESERVED
    return is_name and text.isprintable() and len(text.encode()) <= min(label_container.TEXT_BYTES_MAX, room)


def _plain(value: Any, kind: str) -> Any:
    """Returns a value as an attribute; None if no attribute can represent it."""
    if isinstance(value, np.datetime64):
        moment = value.astype("datetime64[us]").item()
        # NaT, and years outside the range of Python.
        if not isinstance(moment, datetime.datetime):
            return None
        nanoseconds = int(value.astype("datetime64[ns]").astype(np.int64)) % 1000 if 1678 < moment.year < 2262 else 0
        text = (
            f"{moment.isoformat(timespec='microseconds')}{nanoseconds:03}Z" if nanoseconds else f"{moment.isoformat()}Z"
        )
        return moment.date() if kind == "date" else text
    if isinstance(value, np.timedelta64):
        length = value.astype("timedelta64[us]").item()
        return length if isinstance(length, datetime.timedelta) else None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float)) and kind == "string":
        return json.dumps(value)
    return value if isinstance(value, (str, bool, int, float)) else None


@_forks.passage()
def dataset(listing: Listing, **options: Any) -> xarray.Dataset:
    """See `Listing.to_xarray`."""
    module = needed("xarray", "xarray")
    opened: xarray.Dataset = module.open_dataset(
        listing, engine=_forks.imported("junctura._xarray.backend").Fields, **options
    )
    return opened


@_forks.passage()
def to_xarray(obj: Object | Stored | Fetched) -> xarray.DataArray:
    """See `Object.to_xarray`."""
    # That module imports this one.
    from junctura import field

    attributes = obj.attributes
    payload = obj._payload() if hasattr(obj, "_payload") else obj
    if (array := label_container.read(payload, attributes.get(LABELS))) is not None:
        return array
    message = None if "dtype" in attributes else field.message_of(payload)
    if message is None:
        return labelled(own_array(payload, attributes, getattr(obj, "schema", None)), attributes, _kinds(obj))
    found = field.field_of(message, attributes)
    dims, coords = list(found.layout.dims), field.coordinates_of(found)
    return _labelled(found.values, attributes, dims, coords, _kinds(obj))


def own_array(payload: Any, attributes: dict[str, Any], schema: Schema | None) -> Array:
    """Returns the array of a payload, according to its attributes."""
    is_silent = schema is not None and not schema.is_open and "dtype" not in schema.attributes
    return own(payload, attributes.get("dtype"), attributes.get("shape"), schema.name if schema and is_silent else None)


def labelled(
    values: Any, attributes: dict[str, Any], kinds: Mapping[str, DeclaredKind] | None = None
) -> xarray.DataArray:
    """Returns an array with the labels in attributes."""
    if label_container.is_text(attributes.get(LABELS)):
        return label_container.restored(label_container.parsed(attributes[LABELS]), values)
    return _labelled(values, attributes, dims_of(attributes, values.ndim), {}, kinds or {})


def kinds_of(schema: Schema) -> dict[str, DeclaredKind]:
    """Returns the type and the unit of the attributes that are other values as coordinates than as attributes."""
    units = units_of(schema)
    return {
        name: DeclaredKind(kind, units.get(name, ""))
        for name, kind in schema.attributes.items()
        if kind in _TIMES or kind == "decimal" or name in units
    }


def units_of(schema: Schema) -> dict[str, str]:
    """Returns the units of the attributes that are numbers."""
    # That schema describes units that depend on other attributes.
    if schema.name == "mars":
        return {}
    types = schema.attributes
    return {name: unit for name, unit in schema.units.items() if types[name] in _NUMBERS}


def _kinds(obj: Any) -> Mapping[str, DeclaredKind]:
    schema = getattr(obj, "schema", None)
    kinds: Mapping[str, DeclaredKind] = kinds_of(schema) if schema is not None else getattr(obj, "_kinds", {})
    return kinds


def _coordinate(value: Any, kind: DeclaredKind | None) -> Any:
    """Returns an attribute as a scalar coordinate: of one type in all objects."""
    if kind is None:
        return value
    if kind.type in _TIMES:
        from junctura import field

        read = field.moments_of if kind.type == "timestamp" else field.durations_of
        times = read([value])
        return value if times is None else times[0]
    if kind.type == "decimal":
        value = float(value)
    return ((), value, {"units": kind.unit}) if kind.unit else value


def dims_of(attributes: dict[str, Any], count: int) -> list[str]:
    """Returns the names of the dimensions of an array."""
    named = str(attributes.get("dims", "")).split("/")
    return named if len(named) == count and all(named) else [f"dim_{at}" for at in range(count)]


def _labelled(
    values: Any, attributes: dict[str, Any], dims: list[str], coords: dict[str, Any], kinds: Mapping[str, DeclaredKind]
) -> xarray.DataArray:
    module = needed("xarray", "xarray")
    for name, value in attributes.items():
        if name not in _OF_THE_ARRAY and not isinstance(value, list):
            # A coordinate along a dimension has its name.
            coords.setdefault(f"{name}_" if name in dims else name, _coordinate(value, kinds.get(name)))
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
