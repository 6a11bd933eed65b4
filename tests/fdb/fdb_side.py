"""FDB's side of the tests, run by the Python that has FDB: writes fields, and says what FDB has.

``fdb_side.py write ROOT`` takes a JSON line for each field: ``{"key": …, "text": …}`` for any bytes, ``{"grib": …}``
for a message that ecCodes makes of those keys, and ``null`` for a flush. ``fdb_side.py list ROOT`` prints a line for
each field: its key in three levels, and its bytes in hexadecimal digits as FDB reads them.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import eccodes
import pyfdb


def opened(root: str) -> pyfdb.FDB:
    spaces = [{"handler": "Default", "roots": [{"path": f"{root}/root"}]}]
    return pyfdb.FDB({"type": "local", "engine": "toc", "schema": f"{root}/schema", "spaces": spaces})


def message(keys: dict[str, Any]) -> bytes:
    handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
    fixed = {"setLocalDefinition": 1, "productDefinitionTemplateNumber": 1, "localDefinitionNumber": 1, "type": "pf"}
    for name, value in {**fixed, "stream": "enfo", "expver": "0001", **keys}.items():
        eccodes.codes_set(handle, name, value)
    return bytes(eccodes.codes_get_message(handle))


def write(root: str) -> None:
    os.makedirs(f"{root}/root", exist_ok=True)  # noqa: PTH103
    fdb = opened(root)
    for line in sys.stdin:
        field = json.loads(line)
        if field is None:
            fdb.flush()
        elif "grib" in field:
            fdb.archive(message(field["grib"]))
        else:
            fdb.archive(field["text"].encode(), field["key"])
    fdb.flush()


def listed(root: str) -> None:
    for element in opened(root).list({}):
        with element.data_handle as handle:
            print(json.dumps({"key": element.keys(), "bytes": bytes(handle.readall()).hex()}))


if __name__ == "__main__":
    {"write": write, "list": listed}[sys.argv[1]](sys.argv[2])
