"""A weather centre's field store (``pyfdb``), under the loads of ``store.py``; prints its figures as JSON.

``write FOLDER FIELDS EVERY TEMPLATE`` archives encoded fields, made before the clock starts, each with its key given,
and flushes after so many; ``list FOLDER FIELDS`` lists them by one request, ``read FOLDER FIELDS EVERY`` reads them by
a request for each flush. ``template FILE POINTS`` makes the field that all are copies of. ``messages FOLDER FIELDS
EVERY TEMPLATE`` writes them into files, and ``files FOLDER MESSAGES`` archives such files without a word on what they
are, and flushes after each.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = """\
date: Date; expver: Expver; levelist: Double; number: Integer; param: Param; step: Step; time: Time;
[ class, expver, stream=enfo/efov, date, time, domain?
    [ type, levtype
        [ step, number?, levelist?, param ]]]
"""
PARAMS = (129, 130, 131, 132, 133, 135, 138, 155, 157, 203)
LEVELS = (1000, 925, 850, 700, 600, 500, 400, 300, 250, 200)
DATE = 20250101
COMMON = {"class": "rd", "expver": "xxxx", "stream": "enfo", "date": f"{DATE}", "time": "0000", "domain": "g"}
Keys = dict[str, Any]


def opened(folder: str, *, sub_tocs: bool = False) -> Any:
    """A store; with `sub_tocs` each process that writes has a table of contents of its own."""
    import pyfdb

    root = Path(folder)
    (root / "root").mkdir(parents=True, exist_ok=True)
    (root / "schema").write_text(SCHEMA, encoding="ascii")
    space = {"handler": "Default", "roots": [{"path": str(root / "root")}]}
    config = {"type": "local", "engine": "toc", "schema": str(root / "schema"), "spaces": [space]}
    return pyfdb.FDB(config, {"useSubToc": sub_tocs})


def template(file: str, points: int) -> dict[str, int]:
    """A field of two bytes for each of its points."""
    import eccodes
    import numpy as np

    columns = 2 * int((points / 2) ** 0.5)
    rows = points // columns
    field = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
    header = {"setLocalDefinition": 1, "productDefinitionTemplateNumber": 1, "localDefinitionNumber": 1}
    header |= {"class": "rd", "expver": "xxxx", "stream": "enfo", "type": "pf", "dataDate": DATE, "dataTime": 0}
    header |= {"Ni": columns, "Nj": rows, "iDirectionIncrementInDegrees": 360 / columns}
    header |= {
        "longitudeOfLastGridPointInDegrees": 360 - 360 / columns,
        "jDirectionIncrementInDegrees": 180 / (rows - 1),
    }
    header |= {"packingType": "grid_simple", "bitsPerValue": 16}
    for name, value in header.items():
        eccodes.codes_set(field, name, value)
    eccodes.codes_set_values(field, 273.15 + 30 * np.random.default_rng(42).random(columns * rows))
    message = eccodes.codes_get_message(field)
    Path(file).write_bytes(message)
    return {"bytes": len(message)}


def keys(count: int) -> Iterator[Keys]:
    """Of fields in the order in which a model writes them."""
    for number in range(count):
        rest, param = divmod(number, len(PARAMS))
        rest, level = divmod(rest, len(LEVELS))
        step, member = divmod(rest, 50)
        yield {
            **COMMON,
            "type": "pf",
            "levtype": "pl",
            "step": f"{step}",
            "number": f"{member + 1}",
            "levelist": f"{LEVELS[level]}",
            "param": f"{PARAMS[param]}",
        }


def asked(some: list[Keys]) -> Keys:
    """The request for all of them."""
    request: Keys = dict(some[0])
    for name in ("step", "number", "levelist", "param"):
        request[name] = sorted({key[name] for key in some}, key=float)
    return request


def made(count: int, file: str) -> Iterator[tuple[bytes, Keys]]:
    """Fields whose headers say what their keys say."""
    import eccodes

    field = eccodes.codes_new_from_message(Path(file).read_bytes())
    for key in keys(count):
        for name, value in (("step", key["step"]), ("number", key["number"]), ("level", key["levelist"])):
            eccodes.codes_set(field, name, int(value))
        eccodes.codes_set(field, "paramId", int(key["param"]))
        yield eccodes.codes_get_message(field), key


def messages(folder: str, count: int, every: int, file: str) -> dict[str, int]:
    """Files of so many messages each."""
    Path(folder).mkdir()
    for number, (message, _) in enumerate(made(count, file)):
        with Path(folder, f"{number // every:06}.grib").open("ab") as into:
            into.write(message)
    return {"objects": count}


def files(folder: str, archived: str) -> dict[str, float]:
    """What a message is, the store finds out from its header."""
    paths = sorted(Path(archived).iterdir())
    store = opened(folder)
    warm(folder)
    began = time.perf_counter()
    for path in paths:
        store.archive(path.read_bytes())
        store.flush()
    took = time.perf_counter() - began
    return {"gib_per_s": sum(path.stat().st_size for path in paths) / took / 2**30, "seconds": took}


def write(folder: str, count: int, every: int, file: str) -> dict[str, float]:
    """None is encoded while the clock runs."""
    fields = list(made(count, file))
    store = opened(folder)
    warm(folder)
    began = time.perf_counter()
    for number, (message, key) in enumerate(fields, 1):
        store.archive(message, key)
        if number % every == 0:
            store.flush()
    store.flush()
    took = time.perf_counter() - began
    return {"objects_per_s": count / took, "gib_per_s": sum(len(message) for message, _ in fields) / took / 2**30}


def warm(folder: str) -> None:
    """What it reads when it is used for the first time is not measured."""
    list(opened(f"{folder}-warm").list(asked(list(keys(1)))))


def listed(folder: str, count: int) -> dict[str, float]:
    warm(folder)
    request = asked(list(keys(count)))
    began = time.perf_counter()
    found = sum(1 for _ in opened(folder).list(request))
    took = time.perf_counter() - began
    assert found == count, f"{found} of {count} found"
    return {"objects": found, "objects_per_s": count / took}


def read(folder: str, count: int, every: int) -> dict[str, float]:
    warm(folder)
    all_keys = list(keys(count))
    buffer = memoryview(bytearray(64 << 20))
    store, best = opened(folder), 0.0
    for _ in range(3):
        bytes_read, began = 0, time.perf_counter()
        for start in range(0, count, every):
            with store.retrieve(asked(all_keys[start : start + every])) as handle:
                while (got := handle.readinto(buffer)) > 0:
                    bytes_read += got
        best = max(best, bytes_read / (time.perf_counter() - began) / 2**30)
    return {"gib_per_s": best}


def main() -> int:
    match sys.argv[1:]:
        case ["template", file, points]:
            figures: dict[str, Any] = template(file, int(points))
        case ["write", folder, count, every, file]:
            figures = write(folder, int(count), int(every), file)
        case ["messages", folder, count, every, file]:
            figures = messages(folder, int(count), int(every), file)
        case ["files", folder, archived]:
            figures = files(folder, archived)
        case ["list", folder, count]:
            figures = listed(folder, int(count))
        case ["read", folder, count, every]:
            figures = read(folder, int(count), int(every))
        case _:
            return 2
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
