"""Measures what it costs to decode and encode a field in simple packing, beside a copy of as many bytes.

Decoding reads the packed integers and writes doubles, encoding does the reverse. The limit is twice the time that a
copy of half as many bytes takes, which reads and writes as much memory, and 0.3 ms for the header. The same field goes
through ecCodes. Messages are whole: headers are read and written, too, but by ecCodes only in its own contender, where
no other message of the kind came before. Memory stays with the process as in a worker, and each figure is the best of
its calls.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from typing import Any

# One thread for each; read when libraries are loaded.
os.environ["OMP_NUM_THREADS"] = "1"

import eccodes
import numpy as np
from harness import Bench, Case, Check, Contender, Figures, Measure, begin

from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._outputs import Output, grib2
from junctura.products._regrid.grids import Grid, grid
from junctura.products._workers.crew import KEEP_MEMORY

MS = Measure("ms", "ms a field", more_is_better=False)
LIMIT = "2 x a copy + 0.3 ms"
TIMES, HEADER_MS = 2.0, 0.3
BITS = 16
KEY: dict[str, Any] = {"class": "rd", "expver": "0001", "stream": "oper", "date": 20261120, "time": 0, "type": "fc"}
KEY |= {"levtype": "pl", "levelist": 500, "param": "t", "step": 6}
# Fields whose values stay in the nearest caches of a processor, in its largest one, and in none.
GRIDS = ("1/1", "0.25/0.25", "0.1/0.1")


def timed(work: Callable[[], object], calls: int) -> float:
    work()
    took = []
    for _ in range(calls):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return min(took) * 1e3


def field_on(name: str) -> Field:
    on = grid(name)
    assert isinstance(on, Grid)
    values = np.random.default_rng(1).normal(280.0, 15.0, on.shape)
    return Field(values, on, KEY, "K")


def message_of(edition: int, field: Field) -> bytes:
    """The field in one of both editions."""
    handle = eccodes.codes_new_from_message(grib2.made([field], Output("grib2", bits=BITS)))
    eccodes.codes_set(handle, "edition", edition)
    message = bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    return message


def by_eccodes(message: bytes) -> Any:
    handle = eccodes.codes_new_from_message(message)
    values = eccodes.codes_get_values(handle)
    eccodes.codes_release(handle)
    return values


def into_message(message: bytes, values: Any) -> bytes:
    handle = eccodes.codes_new_from_message(message)
    eccodes.codes_set_values(handle, values)
    made = bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    return made


def copied(nbytes: int, calls: int) -> float:
    """How long it takes to read and to write so many bytes together."""
    source, target = (np.full(nbytes // 16, filled) for filled in (1.0, 2.0))
    return timed(lambda: np.copyto(target, source), calls)


def contender(name: str, kind: str, work: Callable[[], float]) -> Contender:
    def run() -> Figures:
        return {"ms": work()}

    return Contender(name, kind, "the values or the message", "each value", [sys.executable, *sys.argv], run)


def case(name: str, question: str, nbytes: int, ours: Callable[[], object], theirs: Callable[[], object]) -> Case:
    calls = max(10, 40_000_000 // nbytes)
    contenders = [
        contender("junctura", "us", lambda: timed(ours, calls)),
        contender(LIMIT, "limit", lambda: TIMES * copied(nbytes, calls) + HEADER_MS),
        contender("ecCodes", "rival", lambda: timed(theirs, calls)),
    ]
    checks = [Check("junctura", at_most=1, times=LIMIT)]
    return Case(name, question, MS, contenders, checks)


def cases(_bench: Bench) -> list[Case]:
    made = []
    for name in GRIDS:
        field = field_on(name)
        flat = field.values.ravel()
        for edition in (1, 2):
            message = message_of(edition, field)
            assert np.array_equal(decode(message, KEY).values.ravel(), by_eccodes(message))
            question = f"{flat.size} values of {BITS} bits in edition {edition}, decoded"
            nbytes = len(message) + flat.nbytes
            read = (lambda message=message: decode(message, KEY), lambda message=message: by_eccodes(message))
            made.append(case(f"decode-{edition}-{name}", question, nbytes, *read))
        to = Output("grib2", bits=BITS)
        assert grib2.made([field], to) == into_message(message, flat)
        written = (
            lambda field=field, to=to: grib2.made([field], to),
            lambda message=message, flat=flat: into_message(message, flat),
        )
        made.append(case(f"encode-2-{name}", f"{flat.size} values into {BITS} bits of edition 2", nbytes, *written))
    return made


def main() -> int:
    for number, count in KEEP_MEMORY.values():
        ctypes.CDLL(None).mallopt(number, count)
    bench = begin("products_packing", "What does it cost to decode and encode a field in simple packing?")
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
