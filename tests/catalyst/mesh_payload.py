"""Reads mesh objects as docs/formats/mesh.md specifies them: written for the tests, apart from the package's reader."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

MAGIC = b"JMESH\0\0\1"


def parse(payload: bytes, shared: bytes | None = None) -> Any:
    """The tree of a payload, with arrays of NumPy as leaves; ``shared`` is the payload that it refers to."""
    tree, arrays = parts(payload)
    others = parts(shared)[1] if shared is not None else None
    return resolved(tree, arrays, others)


def parts(payload: bytes) -> tuple[Any, list[np.ndarray]]:
    """The tree as it is in the head, and the arrays; checks what the page demands of a writer."""
    assert payload[:8] == MAGIC
    (length,) = struct.unpack_from("<Q", payload, 8)
    head = json.loads(payload[16 : 16 + length])
    assert set(head) == {"tree", "arrays"}
    first = -(-(16 + length) // 64) * 64
    covered = np.zeros(len(payload), bool)
    covered[: 16 + length] = True
    arrays = []
    for entry in head["arrays"]:
        dtype = np.dtype("<" + entry["type"])
        begin, end = entry["offset"], entry["offset"] + entry["count"] * dtype.itemsize
        assert first <= begin and end <= len(payload)
        assert begin % (64 if end - begin >= 64 else 8) == 0
        assert not covered[begin:end].any(), "arrays overlap"
        covered[begin:end] = True
        arrays.append(np.frombuffer(payload, dtype, entry["count"], begin))
    assert not any(np.frombuffer(payload, np.uint8)[~covered]), "bytes between arrays are zero"
    return head["tree"], arrays


def resolved(tree: Any, arrays: list[np.ndarray], shared: list[np.ndarray] | None) -> Any:
    if isinstance(tree, list):
        return [resolved(child, arrays, shared) for child in tree]
    if not isinstance(tree, dict):
        assert tree is None or isinstance(tree, str)
        return tree
    if isinstance(tree.get("array"), int):
        if set(tree) == {"of", "array"}:
            assert tree["of"] == "mesh" and shared is not None
            return shared[tree["array"]]
        assert set(tree) == {"array"}
        return arrays[tree["array"]]
    return {name: resolved(child, arrays, shared) for name, child in tree.items()}
