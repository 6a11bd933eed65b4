"""A tree with arrays as the payload of an object, and back: docs/formats/mesh.md.

A tree is made of dicts (named children), lists, texts, None, and arrays of one dimension. Arrays that several steps
share are in the payload of another object: `SharedArrays`. A decoded tree has read-only views of the payload; nothing
is copied.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from junctura.errors import Corrupt, InvalidArgument, TooLarge

Array: TypeAlias = npt.NDArray[Any]
Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | Array | None"

MAGIC = b"JMESH\0\0\1"
CONTENT_TYPE = "application/vnd.junctura.mesh"
_TYPES = frozenset(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
_ALIGNED = 64
# Limits of the format.
_HEAD_MAX = 16 << 20
_DEPTH_MAX = 32
_NODES_MAX = 1_000_000
_ARRAYS_MAX = 100_000
_NAME_MAX = 255


class PackedTree:
    """A tree, laid out as a payload.

    Parameters
    ----------
    tree
        The tree. Arrays of other types than those of the format (bool, texts) are refused.
    shared
        Arrays that are not part of this payload, by their identity.

    Raises
    ------
    InvalidArgument
        The tree has a value or a name that the format cannot express.
    TooLarge
        The tree is beyond a limit of the format.

    Attributes
    ----------
    nbytes : int
        Bytes of the payload.

    """

    def __init__(self, tree: Tree, shared: dict[int, int] | None = None) -> None:
        self._shared = shared or {}
        self._arrays: list[Array] = []
        self._own: dict[int, int] = {}
        self._nodes = 0
        text = self._packed(tree, 0, "")
        if len(self._arrays) > _ARRAYS_MAX:
            raise TooLarge("mesh", f"{len(self._arrays)} arrays; a payload has at most {_ARRAYS_MAX}")
        self._head, self._offsets, self.nbytes = self._laid_out(text)
        if len(self._head) > _HEAD_MAX:
            raise TooLarge("mesh", f"the head has {len(self._head)} bytes; at most {_HEAD_MAX} are allowed")

    def fill(self, payload: Any) -> None:
        """Writes the payload into a writable buffer of `nbytes` bytes."""
        target = np.frombuffer(payload, np.uint8)
        start = len(MAGIC) + 8
        end = start + len(self._head)
        target[: len(MAGIC)] = np.frombuffer(MAGIC, np.uint8)
        target[len(MAGIC) : start] = np.frombuffer(len(self._head).to_bytes(8, "little"), np.uint8)
        target[start:end] = np.frombuffer(self._head, np.uint8)
        for array, offset in zip(self._arrays, self._offsets, strict=True):
            target[end:offset] = 0
            end = offset + array.nbytes
            target[offset:end].view(array.dtype.newbyteorder("<"))[:] = array
        target[end:] = 0

    def to_bytes(self) -> bytes:
        """Returns the payload."""
        payload = bytearray(self.nbytes)
        self.fill(payload)
        return bytes(payload)

    def identifier(self) -> str:
        """Returns a hash of the payload with 128 bits, as 32 hexadecimal digits."""
        digest = hashlib.blake2b(self._head, digest_size=16)
        for array in self._arrays:
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return digest.hexdigest()

    def indices(self) -> dict[int, int]:
        """Returns the index of each array in this payload, by its identity."""
        return self._own

    def _packed(self, tree: Tree, depth: int, path: str) -> Any:
        self._nodes += 1
        if depth > _DEPTH_MAX:
            raise TooLarge(path, f"nested more than {_DEPTH_MAX} levels")
        if self._nodes > _NODES_MAX:
            raise TooLarge("mesh", f"more than {_NODES_MAX} nodes")
        if isinstance(tree, dict):
            for name in tree:
                if not 1 <= len(name.encode()) <= _NAME_MAX:
                    raise InvalidArgument(f"{path}/{name[:80]}", f"a name has 1 to {_NAME_MAX} bytes")
            return {name: self._packed(child, depth + 1, f"{path}/{name}") for name, child in tree.items()}
        if isinstance(tree, list):
            return [self._packed(child, depth + 1, f"{path}/{index}") for index, child in enumerate(tree)]
        if isinstance(tree, np.ndarray):
            return self._leaf(tree, path)
        return tree

    def _leaf(self, array: Array, path: str) -> dict[str, Any]:
        at = self._shared.get(id(array))
        if at is not None:
            return {"of": "mesh", "array": at}
        if array.dtype.str[1:] not in _TYPES or array.ndim != 1:
            raise InvalidArgument(
                path, f"an array of {array.dtype} with {array.ndim} dimensions; a leaf is a list of numbers"
            )
        at = self._own.setdefault(id(array), len(self._arrays))
        if at == len(self._arrays):
            self._arrays.append(array)
        return {"array": at}

    def _laid_out(self, tree: Any) -> tuple[bytes, list[int], int]:
        """Returns the head, the offset of each array, and the size. The digits of offsets decide where arrays begin."""
        guess = _ALIGNED
        while True:
            offsets, end = self._placed(guess)
            arrays = [
                {"type": array.dtype.str[1:], "count": array.size, "offset": offset}
                for array, offset in zip(self._arrays, offsets, strict=True)
            ]
            head = json.dumps({"tree": tree, "arrays": arrays}, ensure_ascii=False, separators=(",", ":")).encode()
            start = _up(len(MAGIC) + 8 + len(head), _ALIGNED)
            if start <= guess:
                return head + b" " * (guess - start), offsets, max(end, guess)
            guess = start

    def _placed(self, end: int) -> tuple[list[int], int]:
        offsets = []
        for array in self._arrays:
            offset = _up(end, _ALIGNED if array.nbytes >= _ALIGNED else 8)
            offsets.append(offset)
            end = offset + array.nbytes
        return offsets, end


class SharedArrays:
    """The arrays of an object of ``part=mesh``, and what names them.

    Parameters
    ----------
    payload : buffer
        The payload.

    Raises
    ------
    Corrupt
        The payload is not as docs/formats/mesh.md specifies.

    """

    def __init__(self, payload: Any) -> None:
        _, arrays = _head_of(payload)
        self.arrays = [place.view(payload) for place in arrays]


class _ArrayPlace(NamedTuple):
    dtype: np.dtype[Any]
    size: int
    offset: int

    def view(self, payload: Any) -> Array:
        found = np.frombuffer(payload, self.dtype, self.size, self.offset)
        found.flags.writeable = False
        return found


def unpack(payload: Any, shared: SharedArrays | None = None) -> Tree:
    """Returns the tree of a payload.

    Parameters
    ----------
    payload : buffer
        The payload. The tree's arrays are read-only views that keep the payload in memory.
    shared
        Arrays of the object of ``part=mesh``; without them a tree that refers to them is refused.

    Raises
    ------
    Corrupt
        The payload is not as docs/formats/mesh.md specifies.

    """
    tree, places = _head_of(payload)
    own = [place.view(payload) for place in places]
    return _TreeUnpacking(own, None if shared is None else shared.arrays).tree(tree, 0)


class _TreeUnpacking:
    def __init__(self, own: Sequence[Array], shared: Sequence[Array] | None) -> None:
        self._own = own
        self._shared = shared

    def tree(self, value: Any, depth: int) -> Tree:
        if depth > _DEPTH_MAX:
            raise _corrupt(f"the tree has more than {_DEPTH_MAX} levels")
        if value is None:
            return value
        if isinstance(value, str):
            if not _is_text(value):
                raise _corrupt("a text is not Unicode")
            return value
        if isinstance(value, list):
            return [self.tree(child, depth + 1) for child in value]
        if not isinstance(value, dict):
            raise _corrupt(f"the tree has the value {str(value)[:40]} outside of an array")
        if isinstance(value.get("array"), int) and not isinstance(value["array"], bool):
            return self._leaf(value)
        return {name: self.tree(child, depth + 1) for name, child in value.items()}

    def _leaf(self, value: dict[str, Any]) -> Array:
        of = value.get("of")
        if len(value) > 2 or (len(value) == 2 and of != "mesh"):
            raise _corrupt(f"a leaf has the names {', '.join(value)[:80]}")
        arrays = self._own if of is None else self._shared
        if arrays is None:
            raise _corrupt("it refers to arrays of an object of part=mesh, but has no attribute mesh")
        if not 0 <= value["array"] < len(arrays):
            raise _corrupt(f"a leaf refers to array {value['array']} of {len(arrays)}")
        found: Array = arrays[value["array"]]
        return found


def _head_of(payload: Any) -> tuple[Any, list[_ArrayPlace]]:
    """Validates the head before memory is taken for what it claims."""
    view = memoryview(payload).cast("B")
    start = len(MAGIC) + 8
    if len(view) < start or view[: len(MAGIC)] != MAGIC:
        raise _corrupt("it does not begin with the magic bytes of a mesh")
    size = int.from_bytes(view[len(MAGIC) : start], "little")
    if size > min(_HEAD_MAX, len(view) - start):
        raise _corrupt(f"a head of {size} bytes in a payload of {len(view)}; at most {_HEAD_MAX} are allowed")
    text = bytes(view[start : start + size])
    # Each node begins with one of these, or follows one.
    if text.count(b"{") + text.count(b"[") + text.count(b",") > _NODES_MAX + 5 * _ARRAYS_MAX:
        raise _corrupt(f"the head has more than {_NODES_MAX} nodes or {_ARRAYS_MAX} arrays")
    try:
        head = json.loads(text, object_pairs_hook=_object, parse_float=_refused, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise _corrupt(f"the head is not JSON: {str(error)[:80]}") from None
    if not isinstance(head, dict) or set(head) != {"tree", "arrays"} or not isinstance(head["arrays"], list):
        raise _corrupt("the head has other names than tree and arrays")
    if len(head["arrays"]) > _ARRAYS_MAX:
        raise _corrupt(f"{len(head['arrays'])} arrays; at most {_ARRAYS_MAX} are allowed")
    first = _up(start + size, _ALIGNED)
    return head["tree"], [_place(entry, index, first, len(view)) for index, entry in enumerate(head["arrays"])]


def _place(entry: Any, index: int, first: int, end: int) -> _ArrayPlace:
    if not isinstance(entry, dict) or set(entry) != {"type", "count", "offset"}:
        raise _corrupt(f"array {index} has other names than type, count and offset")
    kind, count, offset = entry["type"], entry["count"], entry["offset"]
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _corrupt(f"array {index} has the type {str(kind)[:20]}; known are {', '.join(sorted(_TYPES))}")
    if type(count) is not int or type(offset) is not int or count < 0 or offset < 0:
        raise _corrupt(f"array {index} has no valid count and offset")
    dtype = np.dtype("<" + kind)
    size = count * dtype.itemsize
    if offset % (_ALIGNED if size >= _ALIGNED else 8) or offset < first or offset + size > end:
        raise _corrupt(f"array {index} of {size} bytes begins at byte {offset} of {end}")
    return _ArrayPlace(dtype, count, offset)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    for name in found:
        if not _is_text(name) or not 1 <= len(name.encode()) <= _NAME_MAX:
            raise ValueError("a name is empty, too long or not Unicode")
    return found


def _is_text(text: str) -> bool:
    """JSON can express half of a surrogate pair."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def _refused(text: str) -> Any:
    raise ValueError(f"the number {text[:40]}")


def _corrupt(cause: str) -> Corrupt:
    return Corrupt("mesh payload", cause)


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def leaves(tree: Tree) -> Iterator[Array]:
    """Yields the arrays of a tree, in order."""
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, dict):
        for child in tree.values():
            yield from leaves(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from leaves(child)
