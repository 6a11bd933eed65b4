"""Payloads as NumPy arrays: the part that NumPy does."""

from __future__ import annotations

import ast
import functools
import math
import re
import struct
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from junctura.errors import InvalidArgument, TooLarge

Array = npt.NDArray[Any]
# After a payload with labels: bytes of the array, bytes of the labels, magic.
_FOOT = struct.Struct("<QQ16s")
_MAGIC = b"junctura-labels1"
ALIGNED = 8
_FLOAT_BYTES = 8
# The replacement of masked elements, by the kind of dtype.
_MISSING = {"f": np.nan, "c": complex(np.nan, np.nan), "M": "NaT", "m": "NaT"}


def view(buffer: Any, dtype: npt.DTypeLike | None, shape: SupportsIndex | Sequence[SupportsIndex] | None) -> Array:
    """Returns all bytes of `buffer` as an array, without a copy; by default one-dimensional, and of bytes."""
    try:
        kind = dtype_of(dtype) if isinstance(dtype, str) else np.dtype(np.uint8 if dtype is None else dtype)
        array: Array = np.frombuffer(buffer, kind) if len(buffer) else _nothing(buffer, kind, shape)
        return array if shape is None else array.reshape(shape)
    except (OverflowError, TypeError, ValueError) as error:
        asked = f"dtype {str(dtype)[:80]}, shape {str(shape)[:80]}"
        raise InvalidArgument("array", f"{len(buffer)} bytes as {asked}: {error}") from error


class Foot(NamedTuple):
    """The end of a payload with labels after its array (docs/formats/labels.md); all numbers are bytes."""

    array: int
    labels: int
    nbytes: int


def foot_of(payload: Any) -> Foot | None:
    """The foot of a payload; None: it has none."""
    with memoryview(payload) as whole:
        if whole.nbytes < _FOOT.size or whole[-len(_MAGIC) :] != _MAGIC:
            return None
        array, labels, _ = _FOOT.unpack_from(whole, whole.nbytes - _FOOT.size)
        return Foot(array, labels, _FOOT.size) if array + labels + _FOOT.size <= whole.nbytes else None


class Labelled:
    """An array that is copied into a payload together with its labels.

    Parameters
    ----------
    values
        The array.
    behind
        Arrays that its labels refer to, each at a multiple of 8 bytes.
    head
        Its labels, as text.

    """

    def __init__(self, values: Array, behind: Sequence[Array], head: bytes) -> None:
        self.values, self.head = values, head
        self.parts: list[tuple[int, Array]] = [(0, values)]
        end = values.nbytes
        for part in behind:
            end += -end % ALIGNED
            self.parts.append((end, part))
            end += part.nbytes
        self.end = end
        self.nbytes = end + len(head) + _FOOT.size

    def fill(self, memory: Any) -> None:
        """Copies the array and its labels into memory of `nbytes` bytes."""
        whole = memoryview(memory).cast("B")
        written = 0
        for start, part in self.parts:
            whole[written:start] = bytes(start - written)
            written = start + part.nbytes
            np.copyto(view(whole[start:written], part.dtype, part.shape), part)
        foot = _FOOT.pack(self.values.nbytes, len(self.head), _MAGIC)
        whole[self.end :] = self.head + foot

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Returns the array alone; this method distinguishes the class from arrays of users."""
        return np.array(self.values, dtype, copy=bool(copy)) if copy else np.asarray(self.values, dtype)


def own(
    payload: Any,
    dtype: str | None,
    shape: str | Sequence[int] | None,
    silent: str | None = None,
    wanted: SupportsIndex | Sequence[SupportsIndex] | None = None,
) -> Array:
    """Returns the array of a payload, without a copy.

    Parameters
    ----------
    payload
        A buffer.
    dtype, shape
        From the object's attributes; extents in a text are separated by slashes.
    silent
        The name of a schema that lacks the attributes.
    wanted
        Another shape.

    Raises
    ------
    InvalidArgument
        The payload does not fit, or its type is unknown.

    """
    if (foot := foot_of(payload)) is not None:
        if dtype is None or shape is None:
            from junctura._xarray import label_container

            head = label_container.head_of(payload) or {}
            dtype, shape = str(head.get("dtype")), head.get("shape")
        payload = memoryview(payload)[: foot.array]
    elif silent is not None:
        cause = (
            f"the schema {silent} declares no attribute dtype, so the object does not state its element type: pass it, "
            'as in array("f8", (181, 360)), or declare `dtype: {type: string}` and `shape: {type: list of integer}` '
            "among the attributes of the schema"
        )
        raise InvalidArgument("dtype", cause)
    return view(payload, dtype, _extents(shape) if wanted is None else wanted)


def seen(payload: Any, dtype: npt.DTypeLike, shape: SupportsIndex | Sequence[SupportsIndex] | None) -> Array:
    """Returns a payload as another array, without its labels."""
    foot = foot_of(payload)
    return view(payload if foot is None else memoryview(payload)[: foot.array], dtype, shape)


def _extents(shape: str | Sequence[int] | None) -> Sequence[int] | None:
    if not isinstance(shape, str):
        return shape
    parts = [part for part in shape.split("/") if part]
    for part in parts:
        if not (part.isascii() and part.isdecimal()):
            cause = f"{shape[:80]} has an extent that is no number of elements: {part[:80]}"
            raise InvalidArgument("shape", cause)
    return tuple(int(part) for part in parts)


def _nothing(buffer: Any, dtype: np.dtype[Any], shape: SupportsIndex | Sequence[SupportsIndex] | None) -> Array:
    """An array without elements, writable if the buffer is."""
    extents = (0,) if shape is None else tuple(map(int, shape)) if isinstance(shape, Sequence) else (int(shape),)
    if math.prod(extents) * dtype.itemsize:
        raise ValueError("there are no bytes")
    array: Array = np.empty(extents, dtype)
    array.flags.writeable = not memoryview(buffer).readonly
    return array


@functools.lru_cache(maxsize=256)
def dtype_of(text: str) -> np.dtype[Any]:
    """Reads the attribute `dtype`, which a producer can set to any text."""
    try:
        if text.startswith("["):
            return np.lib.format.descr_to_dtype(ast.literal_eval(text))
        return np.dtype(text)
    except Exception as error:
        raise ValueError(f"no dtype: {error or type(error).__name__}") from error


@functools.lru_cache(maxsize=256)
def text_of(dtype: np.dtype[Any]) -> str:
    """Returns the attribute `dtype`: native numbers by name, structured types as in `.npy` files."""
    if dtype.hasobject:
        raise InvalidArgument("data", "it holds Python objects, not their bytes; convert it, as in data.astype('f8')")
    if dtype.fields is not None:
        return repr(np.lib.format.dtype_to_descr(dtype))
    if dtype.kind in "biufc" and dtype.isnative:
        return dtype.name
    return dtype.str if dtype.kind != "V" or dtype.type is np.void else dtype.name


def array_of(data: Any, dtype: npt.DTypeLike | None = None) -> Array:
    """Returns an array-like as a NumPy array without a mask: every array of a user enters through this function.

    A masked element becomes NaN (NaT for datetimes and timedeltas). Arrays without masked elements are not copied.

    Parameters
    ----------
    data
        Any argument of `numpy.asarray`; a list may contain masked arrays.
    dtype
        The element type. A mask is applied after the conversion.

    Raises
    ------
    InvalidArgument
        An element is masked that has no NaN: an integer, a bool, a text, a record.

    """
    array = with_mask(data)
    if isinstance(array, np.ma.MaskedArray):
        array = _unmasked(array, dtype)
    return np.asarray(array, dtype)


def with_mask(data: Any) -> Any:
    """Returns an array with its mask, which `numpy.asarray` drops; also for netCDF4 variables, and Dask arrays."""
    if _has_masks(data):
        return np.ma.stack([with_mask(part) for part in data])
    if is_labelled(data):
        data = data.data
    return np.asanyarray(data.compute() if hasattr(data, "__dask_graph__") else data)


def is_labelled(data: Any) -> bool:
    """Whether it is an xarray DataArray, or of a derived class, without importing xarray."""
    return hasattr(data, "dims") and any(
        kind.__name__ == "DataArray" and kind.__module__.partition(".")[0] == "xarray" for kind in type(data).__mro__
    )


def _has_masks(data: Any) -> bool:
    """Whether a list contains a masked array, at any depth."""
    if not isinstance(data, (list, tuple)):
        return False
    return any(isinstance(part, np.ma.MaskedArray) or _has_masks(part) for part in data)


def _unmasked(array: Any, dtype: npt.DTypeLike | None) -> Array:
    if dtype is not None:
        # Masked values may not fit.
        with np.errstate(all="ignore"):
            array = array.astype(dtype)
    values: Array = np.asarray(np.ma.getdata(array))
    mask = np.ma.getmaskarray(array)
    count = np.count_nonzero(mask if mask.dtype == np.bool_ else np.ascontiguousarray(mask).view(np.bool_))
    if not count:
        return values
    missing = _MISSING.get(values.dtype.kind)
    if missing is None:
        cause = f"{count} of {values.size} elements are masked, and {values.dtype} has no NaN"
        remedy = "fill them (data.filled(-1)) and give the value as an attribute, or convert them (data.astype('f8'))"
        raise InvalidArgument("data", f"{cause}: {remedy}")
    values = values.copy()
    values[mask] = np.array(missing, values.dtype)
    return values


def describe(data: Any) -> tuple[Array | Labelled, int, str, list[int]]:
    """Returns any array: itself, its bytes, its dtype and its shape.

    Raises
    ------
    InvalidArgument
        The data are a table, which would lose its columns, or not convertible by NumPy.

    """
    if isinstance(data, Labelled):
        return data, data.nbytes, text_of(data.values.dtype), list(data.values.shape)
    try:
        array = _array(data)
    except InvalidArgument:
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        # For example device arrays of other libraries, or types that NumPy lacks.
        raise InvalidArgument("data", f"NumPy cannot read this {type(data).__name__}: {error}") from error
    return array, array.nbytes, text_of(array.dtype), list(array.shape)


def check_form(
    dtype: str | None, shape: Sequence[int] | None, own: tuple[str, Sequence[int]] | None, data: Any
) -> None:
    """Checks a given element type and shape against the data that they describe.

    Parameters
    ----------
    dtype, shape
        As given; None where not given, or not readable.
    own
        The type and the shape of the data, if they are an array. Bytes have none, and any form of their size fits.
    data
        The data.

    Raises
    ------
    InvalidArgument
        Readers would see other values, or fail.

    """
    kind = _known(dtype)
    if own is None:
        _check_size(kind, shape, data)
        return
    own_dtype, own_shape = own
    if dtype is not None and not _is_alike(dtype, kind, own_dtype):
        remedy = f"convert it, as in data.astype({dtype!r}), or leave dtype out"
        raise InvalidArgument("dtype", f"{dtype} is given for an array of {own_dtype}: {remedy}")
    if shape is not None and math.prod(shape) != math.prod(own_shape):
        cause = f"{_slashed(shape)} is given for an array of shape {_slashed(own_shape)}: leave shape out"
        raise InvalidArgument("shape", cause)


def _check_size(kind: np.dtype[Any] | None, shape: Sequence[int] | None, data: Any) -> None:
    if kind is None or not kind.itemsize:
        return
    payload = memoryview(data).cast("B")
    nbytes = payload.nbytes
    fits = nbytes % kind.itemsize == 0 if shape is None else nbytes == math.prod(shape) * kind.itemsize
    # A payload with labels is longer, also if its labels are damaged, which its readers report.
    if fits or payload[-len(_MAGIC) :] == _MAGIC:
        return
    if shape is None:
        cause = f"{kind} is given for {nbytes} bytes, which are no whole number of elements of {kind.itemsize} bytes"
        raise InvalidArgument("dtype", cause)
    needed = math.prod(shape) * kind.itemsize
    raise InvalidArgument("shape", f"{_slashed(shape)} of {kind} are {needed} bytes, and the data are {nbytes} bytes")


def _is_alike(dtype: str, kind: np.dtype[Any] | None, own: str) -> bool:
    """Whether an array of the type `own` may be given as `dtype`: the same type, or, for integers, one of the same size
    that NumPy lacks, such as bf16.
    """
    own_kind = _known(own)
    if kind is not None or own_kind is None:
        return kind == own_kind and (kind is not None or dtype == own)
    bits = re.search(r"[0-9]+", dtype)
    return own_kind.kind in "iuV" and (bits is None or int(bits[0]) == own_kind.itemsize * 8)


def _known(dtype: str | None) -> np.dtype[Any] | None:
    try:
        return None if dtype is None else dtype_of(dtype)
    except ValueError:
        return None


def plain(value: Any) -> Any:
    """Returns a scalar or an array of NumPy, or of a compatible library, as attributes hold it.

    A moment is in UTC, as NumPy and xarray have it. A number of less than eight bytes is the shortest that reads back
    with its own precision: 0.1, and not 0.10000000149011612.
    """
    kind = getattr(value.dtype, "kind", "")
    if kind == "M" and np.datetime_data(value.dtype)[0] not in "YMWD":
        unit = "s" if np.datetime_data(value.dtype)[0] in "hm" else "ns" if _is_below_nanoseconds(value.dtype) else None
        texts = np.char.add(np.datetime_as_string(value if unit is None else value.astype(f"M8[{unit}]")), "Z")
        return texts.tolist()
    if kind == "m":
        return np.char.add(value.astype("m8[ns]").astype(np.int64).astype("U"), "ns").tolist()
    if kind == "f" and value.dtype.itemsize < _FLOAT_BYTES:
        return np.asarray(value).astype("U").astype(np.float64).tolist()
    return value.tolist()


def _is_below_nanoseconds(dtype: np.dtype[Any]) -> bool:
    return np.datetime_data(dtype)[0] in ("ps", "fs", "as")


def _slashed(extents: Sequence[int]) -> str:
    return "/".join(map(str, extents)) or "()"


def _array(data: Any) -> Array:
    if isinstance(data, bytes):
        return np.frombuffer(data, np.uint8)
    if not isinstance(data, np.ndarray):
        _refuse_labels(data)
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__") and not hasattr(data, "__array_interface__"):
        return np.from_dlpack(data)
    return array_of(data)


def _refuse_labels(data: Any) -> None:
    """Rejects data with labels that would be lost: tables, series, and xarray objects except DataArray."""
    kind = type(data)
    package = kind.__module__.partition(".")[0]
    if hasattr(data, "columns"):
        remedy = "offer data.to_numpy(), a column, or data.to_xarray() array by array"
    elif package == "pandas" and hasattr(data, "index"):
        remedy = "offer data.to_numpy(), or data.to_xarray()"
    elif package == "xarray":
        remedy = "offer its data" if is_labelled(data) else "offer its data, or a DataArray"
    else:
        return
    raise InvalidArgument("data", f"the labels of a {package}.{kind.__name__} would be lost: {remedy}")


def dlpack(array: Array, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """Returns the DLPack capsule of an array; NumPy before 2.1 does not support read-only arrays."""
    if stream is not None:
        raise BufferError("there is no stream in main memory")
    given = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    try:
        return array.__dlpack__(**{name: value for name, value in given.items() if value is not None})
    except TypeError:
        # NumPy before 2.1 has none of these arguments.
        return (array.copy() if copy else array).__dlpack__()


def fill(memory: Any, array: Array | Labelled) -> None:
    """Copies an array of any strides into memory."""
    if isinstance(array, Labelled):
        array.fill(memory)
        return
    np.copyto(view(memory, array.dtype, array.shape), array)


def measure(shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike | None) -> tuple[int, str, list[int]]:
    """Returns the bytes of such an array, its dtype and its shape."""
    try:
        kind = dtype_of(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        extents = [int(extent) for extent in shape] if isinstance(shape, Sequence) else [int(shape)]
    except (TypeError, ValueError) as error:
        raise InvalidArgument("allocate", str(error)) from error
    if any(extent < 0 for extent in extents):
        raise InvalidArgument("shape", f"{shape} has a negative extent")
    return math.prod(extents) * kind.itemsize, text_of(kind), extents


def dtype_text(dtype: npt.DTypeLike) -> str:
    """Returns an element type with its byte order, in the notation of the array interface."""
    return np.dtype(dtype).str


def numbers(given: Sequence[int]) -> Array:
    """Returns indices as an index array."""
    return np.array(given, np.intp)


def flat(
    data: Any, boxes: Sequence[tuple[int, ...]], order: Literal["C", "F"], room: int, dtype: npt.DTypeLike | None
) -> tuple[Array, str]:
    """Returns a rank's memory in one dimension, from an array of its shape, one per slab, or the memory itself."""
    if len(boxes) > 1 and isinstance(data, (list, tuple)) and len(data) == len(boxes):
        for one in data:
            _refuse_labels(one)
        arrays = [array_of(one, dtype) for one in data]
        parts = [_ravel(one, box, order) for one, box in zip(arrays, boxes, strict=True)]
        array = np.concatenate(parts)
    else:
        _refuse_labels(data)
        array = _array(data) if dtype is None else array_of(data, dtype)
        array = _ravel(array, boxes[0], order) if len(boxes) == 1 and array.shape == boxes[0] else array
    if array.ndim != 1 or array.size != room:
        shapes = " and ".join(str(box) for box in boxes) or "nothing"
        raise InvalidArgument("piece", f"the rank has {shapes}, {room} elements in memory, and not {array.shape}")
    # NumPy has no buffers of datetimes; the layout rejects them as elements of such an array.
    text, array = array.dtype.str, array.view(np.int64) if array.dtype.kind in "mM" else array
    return np.ascontiguousarray(array), text


def _ravel(array: Array, box: tuple[int, ...], order: Literal["C", "F"]) -> Array:
    if array.shape != box:
        raise InvalidArgument("piece", f"{array.shape} where the layout has {box}")
    return array.ravel(order)


def local(
    dtype: str, boxes: Sequence[tuple[int, ...]], order: Literal["C", "F"], room: int, out: Any
) -> tuple[Array, Array]:
    """Returns memory for a rank's part, as an array of its shape, and in one dimension."""
    kind = np.dtype(dtype)
    is_dense = len(boxes) == 1 and math.prod(boxes[0]) == room
    shape = boxes[0] if is_dense else (room,)
    if out is None:
        array = _new(shape, kind, order, is_filled=is_dense)
    else:
        array = np.asarray(out)
        contiguous = array.flags.c_contiguous if order == "C" or array.ndim == 1 else array.flags.f_contiguous
        is_of_shape = array is out and array.shape == shape and array.dtype == kind
        if not (is_of_shape and contiguous and array.flags.writeable):
            wanted = f"a writable array of {shape}, {kind}, in {order} order without gaps"
            raise InvalidArgument("out", f"{wanted} is expected, not {array.shape}, {array.dtype}")
    return array, array.ravel("K")


def _new(shape: tuple[int, ...], kind: np.dtype[Any], order: Literal["C", "F"], *, is_filled: bool) -> Array:
    """Allocates memory; zeros if the layout has gaps. The announced size of an array may exceed the memory."""
    try:
        return np.empty(shape, kind, order) if is_filled else np.zeros(shape, kind)
    except MemoryError as error:
        wanted = math.prod(shape) * kind.itemsize
        raise TooLarge("part of an array", f"there is no memory for {wanted} bytes") from error


def slab(given: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Returns the origin and extents of a part of an array: from slices, pairs, or indices; omitted ones are whole."""
    parts = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(parts) > len(shape):
        raise InvalidArgument("slab", f"{len(parts)} parts for {len(shape)} dimensions")
    parts += [slice(None)] * (len(shape) - len(parts))
    origin, extents = [], []
    for part, extent in zip(parts, shape, strict=True):
        start, stop = _bounds(part, extent)
        if not 0 <= start <= stop <= extent:
            raise InvalidArgument("slab", f"{part} is no part of 0 to {extent}")
        origin.append(start)
        extents.append(stop - start)
    return origin, extents


def _bounds(part: Any, extent: int) -> tuple[int, int]:
    if isinstance(part, slice):
        start, stop, step = part.indices(extent)
        if step != 1 or (part.stop is not None and part.stop > extent):
            raise InvalidArgument("slab", f"{part} does not lie within 0 to {extent}, one by one")
        return start, max(start, stop)
    if isinstance(part, (list, tuple)) and len(part) == 2:
        return int(part[0]), int(part[1])
    raise InvalidArgument("slab", f"a slice or a pair of start and stop is expected, not {part!r}")
