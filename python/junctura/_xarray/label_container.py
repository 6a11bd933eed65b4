"""The labels of an xarray array, stored with its object: dimensions, coordinates, attributes, name.

They are one JSON text. If the schema has an attribute ``labels`` and the text fits, it is stored there; else it follows
the bytes of the array, with the coordinates (docs/formats/labels.md):

```text
  array, row-major | 0 to 7 zeros | coordinates, each at a multiple of 8 | JSON | bytes of array, of JSON | magic
                                                                                  8               8          16
```
A reader that needs only the array reads the first bytes. The restored array is identical to the original; labels that
the text cannot represent are rejected by name. The text has no Python objects: reading it executes no code.

Imported on first use, with xarray.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura import _forks
from junctura._array.numpy_payload import ALIGNED, Labelled, array_of, dtype_of, foot_of, own, text_of, view
from junctura.errors import Corrupt, InvalidArgument

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[Any]
_Place = Callable[[Array], dict[str, Any]]
_VERSION = 1
_WORD = "junctura-labels"
# Size limit of an attribute.
TEXT_BYTES_MAX = 1024
# Prefix of the name of a value that JSON lacks.
_MARK = "~"


class TakenArray(NamedTuple):
    """An array, apart from its labels."""

    values: Array
    # Its labels with their arrays, where that may be short.
    text: str | None
    # The same behind the array.
    whole: Labelled


def taken(data: xarray.DataArray) -> TakenArray:
    """An array and its labels.

    Raises
    ------
    InvalidArgument
        A label cannot be stored: a name that is not a string, a multi-level index, Python objects.

    """
    values = values_of(data)
    blobs: list[Array] = []
    end = values.nbytes

    def behind(array: Array) -> dict[str, Any]:
        nonlocal end
        end += -end % ALIGNED
        place = end
        blobs.append(array)
        end += array.nbytes
        return {"at": place}

    head = _json(_described(data, behind)).encode()
    # Small coordinates may be in the text.
    text = head.decode() if not blobs else labels_text(data) if len(head) + end - values.nbytes < TEXT_BYTES_MAX else ""
    return TakenArray(values, text or None, Labelled(values, blobs, head))


def values_of(data: xarray.DataArray) -> Array:
    """Returns the values of an array, computed if they are a Dask array."""
    return _plain("the array", data.variable)


def labels_text(data: xarray.DataArray) -> str:
    """The labels of an array as one text, coordinates within."""
    return _json(_described(data, _within))


def _json(labels: dict[str, Any]) -> str:
    return json.dumps(labels, allow_nan=False, separators=(",", ":"))


def _described(data: xarray.DataArray, place: _Place) -> dict[str, Any]:
    indexed = set(_indexes(data))
    return {
        _WORD: _VERSION,
        "dtype": text_of(data.dtype),
        "shape": list(data.shape),
        "dims": [_name("dimension", dim) for dim in data.dims],
        "name": None if data.name is None else _name("name of the array", data.name),
        "attrs": _attributes("the array", data.attrs),
        "coords": [
            {
                "name": _name("coordinate", name),
                "dims": list(coordinate.dims),
                **_array(f"coordinate {name}", _plain(f"coordinate {name}", coordinate.variable), place),
                "attrs": _attributes(f"coordinate {name}", coordinate.attrs),
                "index": name in indexed,
            }
            for name, coordinate in data.coords.items()
        ],
    }


def _indexes(data: xarray.DataArray) -> Iterator[Any]:
    for name, index in data.xindexes.items():
        kind = type(index).__name__
        if kind != "PandasIndex":
            raise _refused(f"coordinate {name}", f"it has a {kind}", f"data.reset_index({name!r}) first")
        yield name


def _plain(what: str, variable: Any) -> Array:
    if not isinstance(variable.dtype, np.dtype):
        raise _refused(what, f"its type {variable.dtype} is none of NumPy's", "convert it with astype")
    held = variable.data
    if not isinstance(held, np.ndarray) and not hasattr(held, "__dask_graph__"):
        kind = f"{type(held).__module__}.{type(held).__qualname__}"
        raise _refused(what, f"its values are a {kind}, not an array of NumPy's", "convert them")
    values = array_of(held)
    if values.dtype.hasobject and not (what != "the array" and _is_text(values)):
        kinds = sorted({type(value).__name__ for value in values.reshape(-1)[:1000]})
        raise _refused(what, f"it holds Python objects ({', '.join(kinds[:3])})", "convert it with astype")
    return values


def _is_text(values: Array) -> bool:
    """Whether it holds texts, as pandas has them: None and NaN are missing ones."""
    return values.dtype == object and all(
        type(value) is str or value is None or (type(value) is float and value != value) for value in values.reshape(-1)
    )


def _refused(what: str, cause: str, remedy: str) -> InvalidArgument:
    return InvalidArgument(f"data: {what}", f"{cause}, which is not kept: {remedy}")


def _name(what: str, name: Any) -> str:
    if type(name) is str:
        return name
    raise _refused(what, f"{name!r} is a {type(name).__name__}, not a text", "rename it")


def _array(what: str, values: Array, place: _Place) -> dict[str, Any]:
    if values.dtype == object:
        if not _is_text(values):
            raise _refused(what, "it holds Python objects", "convert them")
        texts = [_coded(what, "", text) for text in values.flat]
        return {"dtype": "object", "shape": list(values.shape), "items": texts}
    kind = text_of(values.dtype)
    return {"dtype": kind, "shape": list(values.shape), **place(np.ascontiguousarray(values).reshape(values.shape))}


def _attributes(what: str, attributes: Any) -> list[list[Any]]:
    """Pairs, since a name may be any text, and their order is kept."""
    return [[_name(f"{what}: attribute", name), _coded(what, name, value)] for name, value in attributes.items()]


def _within(array: Array) -> dict[str, Any]:
    return {"base64": base64.b64encode(array.tobytes()).decode()}


def _coded(what: str, name: str, value: Any) -> Any:
    """Returns an attribute value as JSON; a type that JSON lacks is an object with one marked name."""
    if isinstance(value, np.generic):
        return {f"{_MARK}scalar": _array(f"{what}: attribute {name}", np.asarray(value), _within)}
    if isinstance(value, np.ndarray):
        return {f"{_MARK}array": _array(f"{what}: attribute {name}", array_of(value), _within)}
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {f"{_MARK}float": str(value)}
    if type(value) is complex:
        return {f"{_MARK}complex": [str(value.real), str(value.imag)]}
    if type(value) is bytes:
        return {f"{_MARK}bytes": base64.b64encode(value).decode()}
    if type(value) in (list, tuple):
        items = [_coded(what, name, item) for item in value]
        return items if type(value) is list else {f"{_MARK}tuple": items}
    if type(value) is dict and all(type(key) is str for key in value):
        return {f"{_MARK}dict": [[key, _coded(what, name, item)] for key, item in value.items()]}
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    raise _refused(f"{what}: attribute {name}", f"it is a {kind}", "give a text, a number, or a list or array of them")


def head_of(payload: Any) -> dict[str, Any] | None:
    """Returns the labels after an array; None: there are none.

    Raises
    ------
    Corrupt
        The labels cannot be read.

    """
    foot = foot_of(payload)
    if foot is None:
        return None
    with memoryview(payload) as whole:
        start = whole.nbytes - foot.labels - foot.nbytes
        text = bytes(whole[start : start + foot.labels])
    return parsed(text)


def parsed(text: bytes | str) -> dict[str, Any]:
    """Parses labels that were written as one text.

    Raises
    ------
    Corrupt
        The text has no labels.

    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Corrupt("labels", f"they are no JSON: {error}") from error
    if not isinstance(found, dict) or found.get(_WORD) != _VERSION:
        raise Corrupt("labels", f"they do not begin with {_WORD}: {_VERSION}")
    return found


def is_text(text: Any) -> bool:
    """Whether an attribute ``labels`` was written by Junctura."""
    return isinstance(text, str) and text.startswith(f'{{"{_WORD}":')


def read(payload: Any, text: Any = None) -> xarray.DataArray | None:
    """Returns the array of a payload with labels: in an attribute, which is `text`, or after the array.

    Raises
    ------
    Corrupt
        Labels that cannot be read, or do not fit.

    """
    labels = parsed(text) if is_text(text) else head_of(payload)
    if labels is None:
        return None
    try:
        values = own(payload, labels["dtype"], labels["shape"])
    except (KeyError, TypeError, InvalidArgument) as error:
        raise Corrupt("labels", f"they do not fit the array: {error}") from error
    return restored(labels, values, payload)


def restored(labels: dict[str, Any], values: Any, payload: Any = None) -> xarray.DataArray:
    """Returns the array with these labels.

    Parameters
    ----------
    labels
        The result of `head_of` or `parsed`.
    values
        The values, of NumPy or Dask.
    payload
        The payload with the coordinates, if it has them.

    Raises
    ------
    Corrupt
        The labels do not fit the values.

    """
    module: Any = _forks.imported("xarray")
    try:
        coords = {
            one["name"]: module.Variable(one["dims"], found, attrs)
            for one, found, attrs in coordinates(labels, payload)
        }
        array: xarray.DataArray = module.DataArray(values, coords, labels["dims"], labels["name"], attributes(labels))
        for one in labels["coords"]:
            if one["name"] in array.xindexes and not one["index"]:
                array = array.drop_indexes(one["name"])
            elif one["name"] not in array.xindexes and one["index"]:
                array = array.set_xindex(one["name"])
    except (AttributeError, KeyError, LookupError, TypeError, ValueError, InvalidArgument) as error:
        raise Corrupt("labels", f"they do not fit the array: {error}") from error
    return array


def coordinates(labels: dict[str, Any], payload: Any) -> Iterator[tuple[dict[str, Any], Array, dict[str, Any]]]:
    """Yields the description of each coordinate, its values and its attributes."""
    for one in labels["coords"]:
        yield one, _read(one, payload), _values(one["attrs"])


def attributes(labels: dict[str, Any]) -> dict[str, Any]:
    """Returns the attributes of the array."""
    return _values(labels["attrs"])


def _read(array: dict[str, Any], payload: Any) -> Array:
    shape = tuple(array["shape"])
    if "items" in array:
        texts = np.empty(math.prod(shape), object)
        texts[:] = [_value(item) for item in array["items"]]
        return texts.reshape(shape)
    kind = dtype_of(array["dtype"])
    if "base64" in array:
        return view(bytearray(binascii.a2b_base64(array["base64"])), kind, shape)
    start, length = array["at"], kind.itemsize * math.prod(shape)
    with memoryview(payload) as whole:
        # A copy: a small coordinate does not hold a large payload.
        return view(bytearray(whole[start : start + length]), kind, shape)


def _values(pairs: list[list[Any]]) -> dict[str, Any]:
    return {name: _value(coded) for name, coded in pairs}


def _value(coded: Any) -> Any:
    if isinstance(coded, list):
        return [_value(item) for item in coded]
    if not isinstance(coded, dict):
        return coded
    ((kind, content),) = coded.items()
    return _KINDS[kind.removeprefix(_MARK)](content)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "array": lambda content: _read(content, None),
    "scalar": lambda content: _read(content, None)[()],
    "float": float,
    "complex": lambda content: complex(float(content[0]), float(content[1])),
    "bytes": binascii.a2b_base64,
    "tuple": lambda content: tuple(_value(item) for item in content),
    "dict": lambda content: {key: _value(item) for key, item in content},
}
