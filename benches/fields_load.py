"""What `fields.py` measures, in a process of its own; prints its figures as JSON.

``make FILE PACKING FIELDS DEGREES`` writes fields; ``store FOLDER FILE`` archives them; ``open FOLDER`` and
``open-cfgrib FILE`` make a dataset of them; ``read FOLDER`` and ``read-eccodes FILE`` read all their values.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eccodes
import numpy as np

PARAMS = ("t", "u", "v", "q", "z", "w", "r", "d", "vo", "o3")
LEVELS = (1000, 925, 850, 700, 600, 500, 400, 300, 250, 200)
ROUNDS = 5
Figures = dict[str, Any]


def make(file: str, packing: str, count: str, degrees: str) -> Figures:
    """Fields of ten parameters on ten levels, step by step, with values that compress as a forecast's do."""
    step, points = float(degrees), int(360 / float(degrees))
    handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
    rows = points // 2 + 1
    for name, value in {
        "Ni": points,
        "Nj": rows,
        "iDirectionIncrementInDegrees": step,
        "jDirectionIncrementInDegrees": step,
        "latitudeOfFirstGridPointInDegrees": 90,
        "latitudeOfLastGridPointInDegrees": -90,
        "longitudeOfFirstGridPointInDegrees": 0,
        "longitudeOfLastGridPointInDegrees": 360 - step,
        "packingType": packing,
        "bitsPerValue": 16,
    }.items():
        eccodes.codes_set(handle, name, value)
    noise = np.random.default_rng(1)
    smooth = 250 + 50 * np.cos(np.linspace(0, np.pi, rows))[:, None] * np.sin(np.linspace(0, 6, points))[None, :]
    eccodes.codes_set_values(handle, (smooth + noise.normal(0, 0.3, smooth.shape)).ravel())
    with Path(file).open("wb") as out:
        for number in range(int(count)):
            rest, param = divmod(number, len(PARAMS))
            hour, level = divmod(rest, len(LEVELS))
            eccodes.codes_set(handle, "shortName", PARAMS[param])
            eccodes.codes_set(handle, "level", LEVELS[level])
            eccodes.codes_set(handle, "step", hour)
            eccodes.codes_write(handle, out)
    eccodes.codes_release(handle)
    return {}


def store(folder: str, file: str) -> Figures:
    import junctura

    began = time.perf_counter()
    junctura.Store.from_grib(folder, file)
    return {"objects_per_s": len(junctura.Store(folder).list()) / (time.perf_counter() - began)}


def opened(folder: str) -> Figures:
    """Opened again and again in one process: the first time, which loads libraries, does not count."""
    import xarray

    import junctura

    times = []
    with junctura.Store(folder) as kept:
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            data = kept.list().to_xarray()
            times.append(time.perf_counter() - began)
    assert isinstance(data, xarray.Dataset)
    return {"open_ms": 1e3 * min(times[1:]), "variables": len(data.data_vars)}


def opened_by_cfgrib(file: str) -> Figures:
    """Without an index file: each opening reads the headers."""
    import xarray

    times = []
    for _ in range(2):
        began = time.perf_counter()
        data = xarray.open_dataset(file, engine="cfgrib", backend_kwargs={"indexpath": ""})
        times.append(time.perf_counter() - began)
    return {"open_ms": 1e3 * times[-1], "variables": len(data.data_vars)}


def read(folder: str) -> Figures:
    """All values of all variables; the messages are in the memory of the machine."""
    import junctura

    times = []
    with junctura.Store(folder) as kept:
        for _ in range(ROUNDS + 1):
            # A dataset keeps the values that it has read.
            data = kept.list().to_xarray()
            began = time.perf_counter()
            arrays = [data[name].values for name in data.data_vars]
            times.append(time.perf_counter() - began)
    points = sum(array.size for array in arrays)
    total = sum(float(array.sum(dtype=np.float64)) for array in arrays)
    return {"million_values_per_s": points / min(times[1:]) / 1e6, "sum": round(total / points, 6)}


def read_by_eccodes(file: str) -> Figures:
    """Each message into a handle, and its values out of it."""
    messages = []
    with Path(file).open("rb") as source:
        while (handle := eccodes.codes_grib_new_from_file(source)) is not None:
            messages.append(eccodes.codes_get_message(handle))
            eccodes.codes_release(handle)
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        arrays = []
        for message in messages:
            handle = eccodes.codes_new_from_message(message)
            arrays.append(eccodes.codes_get_values(handle))
            eccodes.codes_release(handle)
        times.append(time.perf_counter() - began)
        points = sum(array.size for array in arrays)
        total = sum(float(array.sum()) for array in arrays)
    return {"million_values_per_s": points / min(times[1:]) / 1e6, "sum": round(total / points, 6)}


ROLES: dict[str, Callable[..., Figures]] = {
    "make": make,
    "store": store,
    "open": opened,
    "open-cfgrib": opened_by_cfgrib,
    "read": read,
    "read-eccodes": read_by_eccodes,
}

if __name__ == "__main__":
    print(json.dumps(ROLES[sys.argv[1]](*sys.argv[2:])))
