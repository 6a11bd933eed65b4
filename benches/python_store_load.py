"""What `python_store.py` measures, in a process of its own; prints its figures as JSON.

``archive FOLDER OBJECTS BATCH`` archives objects of 1 KiB; ``fill FOLDER OBJECTS`` makes a store that ``list FOLDER``
lists.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import junctura

PARAMS = ("t", "u", "v", "q", "z", "w", "r", "d", "vo", "o3")
LEVELS = (1000, 925, 850, 700, 600, 500, 400, 300, 250, 200)


def fields(count: int) -> Iterator[dict[str, Any]]:
    """Attributes of an ensemble's fields, in the order in which a model writes them."""
    common = {"class": "od", "expver": "0001", "stream": "enfo", "date": "20261120", "time": "0000", "type": "pf"}
    for number in range(count):
        rest, param = divmod(number, len(PARAMS))
        rest, level = divmod(rest, len(LEVELS))
        step, member = divmod(rest, 50)
        yield {
            **common,
            "levtype": "pl",
            "step": step,
            "number": member,
            "levelist": LEVELS[level],
            "param": PARAMS[param],
        }


def archive(folder: str, count: int, batch: int) -> dict[str, float]:
    """Attributes and bytes are there already; counted until the last flush has returned."""
    payload = bytes(1024)
    objects = [(payload, about) for about in fields(count)]
    store = junctura.Store.create(folder, schema="mars")
    began = time.perf_counter()
    for start in range(0, count, batch):
        store.archive_many(objects[start : start + batch])
        store.flush()
    return {"objects_per_s": count / (time.perf_counter() - began)}


def fill(folder: str, count: int) -> dict[str, float]:
    with junctura.Store.create(folder, schema="mars") as store:
        store.archive_many((b"", about) for about in fields(count))
    store.checkpoint()
    return {}


def listed(folder: str) -> dict[str, float]:
    """The first table of a process, which reads the catalogue, and the next ones."""
    import pyarrow  # noqa: F401 - loading it is not what is measured

    began = time.perf_counter()
    store = junctura.Store(folder)
    rows = store.list().to_arrow().num_rows
    first = time.perf_counter() - began
    later = []
    for _ in range(5):
        began = time.perf_counter()
        listing = store.list()
        middle = time.perf_counter()
        assert listing.to_arrow().num_rows == rows
        later.append((time.perf_counter() - began, time.perf_counter() - middle))
    whole, table = min(later)
    return {"rows": rows, "first_ms": 1e3 * first, "list_and_table_ms": 1e3 * whole, "table_ms": 1e3 * table}


def main() -> int:
    role, folder, *numbers = sys.argv[1:]
    role_of: dict[str, Callable[..., dict[str, float]]] = {"archive": archive, "fill": fill, "list": listed}
    print(json.dumps(role_of[role](folder, *map(int, numbers))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
