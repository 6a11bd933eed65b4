"""One side of the load of ``python_speed.py``: ``python_load.py consumer|producer URL WAY BYTES OBJECTS``.

Says ``ready``; the producer begins when it reads a line. Both print a line of JSON with times of the machine's
monotonic clock at the end.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import junctura

CHUNK = 1024
PARAMS = ("t", "u", "v", "q", "z", "w", "r", "d", "vo", "pv")
Attributes = dict[str, str | int]
Array = npt.NDArray[np.float64]


def attributes(n: int) -> Attributes:
    """The eleven attributes of a field: a new dictionary each time, as a program has it."""
    return {
        "class": "od",
        "expver": "0001",
        "stream": "enfo",
        "date": "20000101",
        "time": "0000",
        "type": "pf",
        "levtype": "pl",
        "step": n // 10_000,
        "number": n // 100 % 100,
        "levelist": 1000 - 10 * (n // 10 % 10),
        "param": PARAMS[n % 10],
    }


def one_by_one(pool: junctura.Pool, payload: Array, objects: int) -> None:
    once = junctura.Released(1)
    for n in range(objects):
        payload[0] = n
        pool.offer(payload, attributes(n), retention=once)


def offer_many(pool: junctura.Pool, payload: Array, objects: int) -> None:
    once = junctura.Released(1)
    payloads = [payload + n for n in range(min(CHUNK, objects))] if payload.nbytes <= 4096 else []
    for first in range(0, objects, CHUNK):
        numbers = range(first, min(first + CHUNK, objects))
        pool.offer_many(
            [(payloads[n - first] if payloads else payload, attributes(n)) for n in numbers], retention=once
        )


def fill_in_place(pool: junctura.Pool, payload: Array, objects: int) -> None:
    once = junctura.Released(1)
    with pool.pipeline(64) as pipeline:
        for n in range(objects):
            memory = pool.allocate(shape=payload.shape)
            memory.array()[0] = n
            pipeline.offer(memory, attributes(n), retention=once)


WAYS: dict[str, Callable[[junctura.Pool, Array, int], None]] = {
    "one-by-one": one_by_one,
    "offer-many": offer_many,
    "fill-in-place": fill_in_place,
}


def consume(pool: junctura.Pool, payload_bytes: int, objects: int) -> dict[str, float]:
    """Follows until all have come; of each payload the first element is read, in place."""
    received, wrong, total = 0, 0, 0.0
    with pool.follow("class=od", window=2048) as follow:
        print("ready", flush=True)
        for found in follow:
            with found:
                array = found.array()
                wrong += array.nbytes != payload_bytes
                total += float(array[0])
            received += 1
            if received == objects:
                break
    return {"end_ns": time.monotonic_ns(), "objects": received, "damaged": wrong, "sum": total}


def main() -> int:
    role, url, way, payload_bytes, objects = sys.argv[1:6]
    with junctura.Pool(url) as pool:
        if role == "consumer":
            print(json.dumps(consume(pool, int(payload_bytes), int(objects))), flush=True)
            return 0
        payload = np.zeros(int(payload_bytes) // 8)
        print("ready", flush=True)
        sys.stdin.readline()
        begin_ns = time.monotonic_ns()
        WAYS[way](pool, payload, int(objects))
        print(json.dumps({"begin_ns": begin_ns, "end_ns": time.monotonic_ns()}), flush=True)
        sys.stdin.readline()
    return 0


if __name__ == "__main__":
    sys.exit(main())
