"""Decodes the values of pairs of objects, which ``junctura store compare --values`` reads and sends.

``python -m junctura._store.compare_values RTOL ATOL``, with each pair on standard input: a line of JSON, which has of
both objects their ``nbytes`` and the attributes ``dtype`` and ``shape`` that they have, and then the bytes of both.
Standard output has ``ready``, and for each pair a line of JSON with the difference of its values (``apart``; null where
that is without bound), or with what is missing here to compute it (``missing``).
"""

from __future__ import annotations

import json
import math
import sys
from typing import IO, Any

import numpy.typing as npt

from junctura._array.numpy_payload import view
from junctura._store.compare import apart


class _Sent:
    """A received object, with the interface of a stored one that is needed to find its values."""

    def __init__(self, said: dict[str, Any], payload: bytes) -> None:
        self.attributes: dict[str, Any] = {name: said[name] for name in ("dtype", "shape") if said[name] is not None}
        self.payload = payload

    def _payload(self) -> bytes:
        return self.payload

    def array(self) -> npt.NDArray[Any]:
        shape = self.attributes.get("shape")
        extents = None if shape is None else [int(extent) for extent in shape.split("/") if extent]
        array: npt.NDArray[Any] = view(self.payload, self.attributes["dtype"], extents)
        return array


def answer(line: bytes, stream: IO[bytes], rtol: float, atol: float) -> dict[str, Any]:
    """Returns the answer for one pair."""
    first, second = (_Sent(said, stream.read(said["nbytes"])) for said in json.loads(line))
    try:
        difference = apart(first, second, rtol, atol)
    except ImportError as error:
        return {"missing": str(error)}
    return {"apart": difference if math.isfinite(difference) else None}


def main() -> int:
    """Answers until the input ends."""
    rtol, atol = map(float, sys.argv[1:])
    print("ready", flush=True)
    for line in iter(sys.stdin.buffer.readline, b""):
        print(json.dumps(answer(line, sys.stdin.buffer, rtol, atol)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
