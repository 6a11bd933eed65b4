"""The labels that all arrays of a variable share.

The coordinates of a dataset are those of the first array of each variable. An array with other dimensions, coordinates
or units would get labels that are not its own, so it is refused: when the dataset is opened, if the catalogue or one of
the arrays that are read then shows the difference, and in any case when the array is read.

| | compared | in the dataset |
|---|---|---|
| dimensions, shape, type | always | those of the first array; of texts the widest type that is read when it is opened |
| coordinates along dimensions | name, type, values; NaN equals NaN | those of the first array |
| ``units`` of the array and of its coordinates | always | those of the first array |
| scalar coordinates | if the dataset has them | those that the arrays share that are read when it is opened |
| other attributes | when the dataset is opened | those that the arrays share that are read then |

Texts of coordinates have one type, whatever their width, also as objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from junctura._array.numpy_payload import Foot, dtype_of, foot_of, own
from junctura._xarray import label_attributes, label_container
from junctura.errors import Corrupt, InvalidArgument

Array = npt.NDArray[Any]
# Maximum number of values that an error names.
_NAMED_MAX = 3
# Maximum size of coordinates whose bytes are kept for a comparison without parsing.
_KEPT_BYTES_MAX = 1 << 20


class ReadLabels(NamedTuple):
    """The labels of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    # For each coordinate its dimensions, values and attributes.
    coords: Mapping[str, tuple[tuple[str, ...], Array, Mapping[str, Any]]]
    attrs: Mapping[str, Any]
    # Whether they are labels of xarray, and not only attributes of the object.
    is_labelled: bool


class ReadArray(NamedTuple):
    """An array and its labels."""

    values: Array
    labels: ReadLabels


def read(obj: Any) -> ReadArray:
    """Returns the array of an object, without a copy, with its labels."""
    attributes = obj.attributes
    payload = _payload_of(obj)
    text = attributes.get(label_attributes.LABELS)
    head = label_container.parsed(text) if label_container.is_text(text) else label_container.head_of(payload)
    if head is not None:
        labels = parsed(head, payload)
        return ReadArray(own(payload, head["dtype"], labels.shape), labels)
    values = label_attributes.own_array(payload, attributes, getattr(obj, "schema", None))
    dims = tuple(label_attributes.dims_of(attributes, values.ndim))
    return ReadArray(values, ReadLabels(values.dtype, values.shape, dims, {}, {}, False))


def parsed(head: dict[str, Any], payload: Any = None) -> ReadLabels:
    """Returns labels from their JSON, and the payload if it has their coordinates.

    Raises
    ------
    Corrupt
        They cannot be read.

    """
    try:
        coords = {
            one["name"]: (tuple(one["dims"]), values, attrs)
            for one, values, attrs in label_container.coordinates(head, payload)
        }
        attrs = label_container.attributes(head)
        return ReadLabels(dtype_of(head["dtype"]), tuple(head["shape"]), tuple(head["dims"]), coords, attrs, True)
    except (AttributeError, KeyError, LookupError, TypeError, ValueError, InvalidArgument) as error:
        raise Corrupt("labels", f"they do not fit the array: {error}") from error


def _payload_of(obj: Any) -> Any:
    return obj._payload() if hasattr(obj, "_payload") else obj


class _KnownCoordinate:
    """A coordinate to compare with; pickled as a digest, since it may be as large as the array."""

    def __init__(self, dims: tuple[str, ...], values: Array, attrs: Mapping[str, Any]) -> None:
        self.dims, self.dtype, self.shape = dims, values.dtype, values.shape
        self.values: Array | None = values
        self.attrs = dict(attrs)
        self.named = named(values)
        self._digest = b""

    def is_same(self, values: Array) -> bool:
        if _kind(values.dtype) != _kind(self.dtype) or values.shape != self.shape:
            return False
        return _digest(values) == self._digest if self.values is None else _are_equal(self.values, values)

    def __getstate__(self) -> dict[str, Any]:
        digest = self._digest if self.values is None else _digest(self.values)
        return {**vars(self), "values": None, "_digest": digest}


class _SeenHead(NamedTuple):
    """Labels after an array that were compared: their text, and the bytes of coordinates."""

    head: bytes
    array_nbytes: int
    dtype: str
    shape: tuple[int, ...]
    parts: list[tuple[int, bytes]]
    # The attributes of the object that state units.
    units: tuple[Any, Any]


class KnownLabels:
    """The labels of the first array of a variable, with which each other array is compared.

    Parameters
    ----------
    variable
        The name of the variable.
    first
        The key of the first object.
    identity
        Its attributes by which objects are selected.
    labels
        Its labels.
    units
        Its units: of its attributes, else of its labels.
    ignored
        The names of scalar coordinates that the catalogue has; they may differ.
    dropped
        The names of coordinates that the dataset lacks.

    """

    def __init__(
        self,
        variable: str,
        first: str,
        identity: Mapping[str, Any],
        labels: ReadLabels,
        units: str | None,
        ignored: Collection[str],
        dropped: Collection[str],
    ) -> None:
        self.variable, self.first, self.identity = variable, first, dict(identity)
        self.dtype, self.shape, self.dims = labels.dtype, labels.shape, labels.dims
        self.units, self.is_labelled = units, labels.is_labelled
        self.attrs = dict(labels.attrs)
        self._dropped = frozenset(dropped)
        self.coords = {
            name: _KnownCoordinate(*one)
            for name, one in labels.coords.items()
            if name not in dropped and (one[0] or name not in ignored)
        }
        # Attributes of the scalar coordinates whose values the catalogue has.
        self.of_ignored = {
            name: dict(attrs) for name, (dims, _, attrs) in labels.coords.items() if not dims and name in ignored
        }
        self._seen: _SeenHead | None = None

    def along(self) -> dict[str, Any]:
        """Returns the coordinates along dimensions, as xarray takes them."""
        return {name: (one.dims, one.values, one.attrs) for name, one in self.coords.items() if one.dims}

    def scalars(self) -> dict[str, tuple[Any, dict[str, Any]]]:
        """Returns the values and attributes of the scalar coordinates."""
        return {
            name: (one.values[()], one.attrs)
            for name, one in self.coords.items()
            if not one.dims and one.values is not None
        }

    def narrow(self, labels: ReadLabels, key: str, about: Mapping[str, Any]) -> None:
        """Compares with another array, and forgets the scalar coordinates and attributes that are not those of both.

        The type becomes the wider of two types of texts.
        """
        for name, one in list(self.coords.items()):
            other = labels.coords.get(name)
            if not one.dims and (other is None or other[0] or not one.is_same(other[1])):
                del self.coords[name]
            elif other is not None:
                one.attrs = shared(one.attrs, other[2], kept="units")
        for name, attrs in self.of_ignored.items():
            other = labels.coords.get(name)
            self.of_ignored[name] = {} if other is None else shared(attrs, other[2])
        if _kind(labels.dtype) == _kind(self.dtype) and labels.dtype.itemsize > self.dtype.itemsize:
            self.dtype = labels.dtype
        self.check(labels, key, about)
        self.attrs = shared(self.attrs, labels.attrs)

    def check(self, labels: ReadLabels, key: str, about: Mapping[str, Any], what: str = "dataset") -> None:
        """Compares with the labels of another object.

        Parameters
        ----------
        labels
            Its labels.
        key
            Its key.
        about
            Its attributes.
        what
            What the error is about.

        Raises
        ------
        InvalidArgument
            They differ; the error names both keys and the first difference.

        """

        def refuse(of: str, ours: str, theirs: str, remedy: str = "") -> NoReturn:
            cause = f"{self.variable} has arrays with different {of}: {ours} in {self.first}, and {theirs} in {key}"
            raise InvalidArgument(what, f"{cause}: choose by the selector{self._choice(about)}{remedy}")

        if (labels.dims, labels.shape) != (self.dims, self.shape):
            refuse("dimensions", _extents(self.dims, self.shape), _extents(labels.dims, labels.shape))
        # Wider texts would be cut.
        if _kind(labels.dtype) != _kind(self.dtype) or labels.dtype.itemsize > self.dtype.itemsize:
            refuse("types", str(self.dtype), str(labels.dtype))
        self._check_coordinates(labels, refuse)
        units = units_of(about, labels.attrs)
        if "units" not in self.identity and units != self.units:
            refuse("units", _or_none(self.units), _or_none(units))

    def _check_coordinates(self, labels: ReadLabels, refuse: Any) -> None:
        for name, one in self.coords.items():
            remedy = f"; or leave it out, drop_variables={name!r}"
            if name not in labels.coords:
                refuse("coordinates", f"{name} is {one.named}", f"no {name}", remedy)
            dims, values, attrs = labels.coords[name]
            if dims != one.dims:
                refuse(f"dimensions of {name}", _extents(one.dims, one.shape), _extents(dims, values.shape), remedy)
            if not one.is_same(values):
                refuse(name, *_difference(one, values), remedy)
            ours, theirs = one.attrs.get("units"), attrs.get("units")
            if None not in (ours, theirs) and not is_same(ours, theirs):
                refuse(f"units of {name}", str(ours), str(theirs), remedy)
        for name, (dims, values, _) in labels.coords.items():
            if dims and name not in self.coords and name not in self._dropped:
                remedy = f"; or leave it out, drop_variables={name!r}"
                refuse("coordinates", f"no {name}", f"{name} is {named(values)}", remedy)

    def _choice(self, about: Mapping[str, Any]) -> str:
        """Returns the selectors of both objects."""
        known = self.identity
        apart = next((name for name in known if name in about and about[name] != known[name]), None)
        return "" if apart is None else f", as {apart}={known[apart]} or {apart}={about[apart]}"

    def values_of(self, obj: Any) -> Array:
        """Returns the values of another object of the variable, whose labels it checks.

        Raises
        ------
        InvalidArgument
            Its labels differ.

        """
        payload = _payload_of(obj)
        foot = foot_of(payload) if self._seen is not None else None
        if foot is not None and self._seen is not None and self._has_seen(self._seen, foot, payload, obj):
            return own(payload, self._seen.dtype, self._seen.shape)
        array = read(obj)
        self.check(array.labels, obj.key, obj.attributes, obj.key)
        if array.labels.is_labelled and self._seen is None:
            self._see(payload, obj)
        return array.values

    def _has_seen(self, seen: _SeenHead, foot: Foot, payload: Any, obj: Any) -> bool:
        if foot.array != seen.array_nbytes or foot.labels != len(seen.head):
            return False
        with memoryview(payload) as whole:
            start = whole.nbytes - foot.labels - foot.nbytes
            if bytes(whole[start : start + foot.labels]) != seen.head:
                return False
            if any(bytes(whole[at : at + len(part)]) != part for at, part in seen.parts):
                return False
        return obj.get(label_attributes.LABELS) is None and (obj.get("units"), obj.get("unit")) == seen.units

    def _see(self, payload: Any, obj: Any) -> None:
        """Keeps the labels of a payload that were found to be the same."""
        foot, head = foot_of(payload), label_container.head_of(payload)
        if foot is None or head is None:
            return
        parts = []
        with memoryview(payload) as whole:
            for one in head["coords"]:
                if one["name"] in self.coords and "at" in one:
                    nbytes = dtype_of(one["dtype"]).itemsize * int(np.prod(one["shape"], dtype=np.int64))
                    parts.append((one["at"], bytes(whole[one["at"] : one["at"] + nbytes])))
            if sum(len(part) for _, part in parts) <= _KEPT_BYTES_MAX:
                start = whole.nbytes - foot.labels - foot.nbytes
                text = bytes(whole[start : start + foot.labels])
                self._seen = _SeenHead(
                    text, foot.array, head["dtype"], tuple(head["shape"]), parts, (obj.get("units"), obj.get("unit"))
                )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "attrs": {}, "of_ignored": {}, "_seen": None}


def units_of(about: Mapping[str, Any], attrs: Mapping[str, Any]) -> str | None:
    """Returns the units of an object: of its attributes, of its labels, or the attribute `unit`."""
    found = about.get("units", attrs.get("units", about.get("unit")))
    return None if found is None else str(found)


def named(values: Array) -> str:
    """Returns the first values, and the last one."""
    flat = values.reshape(-1)
    if flat.size <= _NAMED_MAX:
        return "/".join(map(str, flat)) or "empty"
    return f"{'/'.join(map(str, flat[: _NAMED_MAX - 1]))}/…/{flat[-1]}"


def _difference(one: _KnownCoordinate, values: Array) -> tuple[str, str]:
    theirs = named(values)
    if one.shape != values.shape:
        return f"{one.named} (shape {list(one.shape)})", f"{theirs} (shape {list(values.shape)})"
    if _kind(one.dtype) != _kind(values.dtype):
        return f"{one.named} ({one.dtype})", f"{theirs} ({values.dtype})"
    if theirs != one.named:
        return one.named, theirs
    if one.values is None:
        return one.named, f"the same ends with other values between ({theirs})"
    flat, other = one.values.reshape(-1), values.reshape(-1)
    at = next(at for at in range(flat.size) if not is_same(flat[at], other[at]))
    return f"{flat[at]} at position {at}", f"{other[at]}"


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=")


def _kind(dtype: np.dtype[Any]) -> np.dtype[Any] | str:
    """Returns the type to compare: texts of every width, and texts as objects, have one type."""
    return {"U": "text", "O": "text", "S": "bytes"}.get(dtype.kind) or _native(dtype)


def _are_equal(one: Array, other: Array) -> bool:
    if object in (one.dtype, other.dtype):
        return all(map(is_same, one.reshape(-1), other.reshape(-1)))
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fcmM")


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same; NaN is the same as NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        ours, theirs = np.asarray(one), np.asarray(other)
        return _kind(ours.dtype) == _kind(theirs.dtype) and ours.shape == theirs.shape and _are_equal(ours, theirs)
    try:
        is_alike = type(one) is type(other) or (isinstance(one, str) and isinstance(other, str))
        return is_alike and bool(one == other or (one != one and other != other))
    except ValueError:
        # A list of arrays.
        return False


def _digest(values: Array) -> bytes:
    """Returns a digest that is the same for values that are equal."""
    if values.dtype.kind in "USO":
        content = repr([None if value != value else value for value in values.astype(object).reshape(-1)]).encode()
    else:
        native = np.ascontiguousarray(values, _native(values.dtype))
        if native.dtype.kind in "fc":
            # One NaN, and one zero.
            native = np.where(np.isnan(native), native.dtype.type(np.nan), native) + native.dtype.type(0)
        content = native.tobytes()
    return hashlib.blake2b(content, digest_size=16).digest()


def shared(one: Mapping[str, Any], other: Mapping[str, Any], kept: str = "") -> dict[str, Any]:
    """Returns the attributes that both have with one value, and one that is kept."""
    return {
        name: value for name, value in one.items() if name == kept or (name in other and is_same(value, other[name]))
    }


def _extents(dims: tuple[str, ...], shape: tuple[int, ...]) -> str:
    return ", ".join(f"{dim}: {extent}" for dim, extent in zip(dims, shape, strict=False)) or "no dimensions"


def _or_none(units: str | None) -> str:
    return "none" if units is None else units
