"""Draws the temperature of each history step: from the pool while the model runs, or from its file afterwards.

``pictures.py pool FOLDER`` follows the pool that JUNCTURA_POOL names until the model has closed its history.
``pictures.py wrfout_d01.nc FOLDER`` reads the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import netCDF4
import numpy as np
import numpy.typing as npt
from PIL import Image

import junctura

Field = npt.NDArray[np.float32]
COLDEST, WARMEST, SCALE = 280.0, 295.0, 4


def fields_of_pool() -> Iterator[tuple[float, Field]]:
    """Yields the minutes and the temperature of each step as soon as the step is complete."""
    with (
        junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool,
        # A reader that starts late gets what is there in this order. The state is no record, and comes last.
        pool.follow("file=wrfout_d01.nc, name=T2/.state", order_by="record") as items,
    ):
        for found in items:
            if found["name"] == "T2":
                yield float(found["time"]), found.array()
            elif found["status"] == "closed":
                return


def fields_of_file(path: str) -> Iterator[tuple[float, Field]]:
    """Yields the same from a file."""
    with netCDF4.Dataset(path) as file:
        for record, minutes in enumerate(file["Time"][:]):
            yield float(minutes), file["T2"][record]


def draw(field: Field, path: Path) -> None:
    """Draws a field from blue to red, north at the top."""
    warmth = np.clip((field - COLDEST) / (WARMEST - COLDEST), 0, 1)[::-1]
    colors = np.stack([255 * warmth, 80 + 60 * warmth, 255 * (1 - warmth)], axis=-1).astype("u1")
    height, width = field.shape
    Image.fromarray(colors).resize((SCALE * width, SCALE * height), Image.Resampling.NEAREST).save(path)


def main() -> None:
    source, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    for minutes, field in fields_of_pool() if source == "pool" else fields_of_file(source):
        path = folder / f"t2-{minutes:05.0f}.png"
        draw(field, path)
        print(f"{path.name}: warmest {field.max():.1f} K", flush=True)


if __name__ == "__main__":
    main()
