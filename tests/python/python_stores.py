"""What tests of stores share: where real data lies, and GRIB messages of our own making."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "grib"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the folder shared is not beside this repository")
FIELD = {
    "class": "od",
    "expver": "0001",
    "stream": "oper",
    "date": "20261120",
    "time": "0000",
    "type": "fc",
    "levtype": "sfc",
    "step": 0,
    "param": "2t",
}


def grib(sample: str = "regular_ll_pl_grib2", **keys: Any) -> bytes:
    """A message made from one of ecCodes' samples."""
    eccodes = pytest.importorskip("eccodes")
    message = eccodes.codes_grib_new_from_samples(sample)
    for key, value in keys.items():
        if key == "values":
            eccodes.codes_set_values(message, value)
        else:
            eccodes.codes_set(message, key, value)
    try:
        return bytes(eccodes.codes_get_message(message))
    finally:
        eccodes.codes_release(message)


def cube() -> Iterator[bytes]:
    """Two parameters, two days, two steps and three levels of small fields: 24 messages."""
    for at, (param, day, step, level) in enumerate(
        (param, day, step, level)
        for param in ("t", "u")
        for day in (20261119, 20261120)
        for step in (0, 6)
        for level in (1000, 850, 500)
    ):
        values = np.arange(16 * 31, dtype="f8") + 1000 * at
        yield grib(shortName=param, dataDate=day, step=step, level=level, bitsPerValue=24, values=values)
