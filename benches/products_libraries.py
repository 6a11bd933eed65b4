"""The products of `products.py` by the libraries themselves: ecCodes, a sparse product of SciPy, NumPy, and for files
netCDF4, Pillow and the module csv.

One process, nothing of ours on the way, and all that can be there beforehand is: the matrix, templates of messages,
where each pixel of a map is. Maps have neither coast nor letters, files no provenance, and nobody is told of them.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import eccodes
import netCDF4
import numpy as np
import numpy.typing as npt
import yaml
from PIL import Image

Floats: TypeAlias = npt.NDArray[np.float64]
# A statistic, a format and where, as in `products.py`.
Row: TypeAlias = tuple[str, str, str]
# Makes the file of one product of one step.
Product: TypeAlias = Callable[["Step", Path], None]

# Half a degree.
ROWS, COLUMNS = 361, 720
WIDTH = 1000
PLACES = ((51.4, -1.0), (44.5, 11.3), (50.7, 7.1))


class Step:
    """The members' fields of one step, on half a degree and at places."""

    def __init__(self, number: int, members: int, half: Any, places: Any) -> None:
        self.number, self._matrices = number, (half, places)
        self.half, self.places = np.empty((members, ROWS, COLUMNS)), np.empty((members, len(PLACES)))

    def take(self, member: int, message: bytes) -> None:
        values = values_of(message)
        half, places = self._matrices
        self.half[member] = (half @ values).reshape(ROWS, COLUMNS)
        self.places[member] = places @ values


def values_of(message: bytes) -> Floats:
    handle = eccodes.codes_new_from_message(message)
    try:
        return np.asarray(eccodes.codes_get_values(handle))
    finally:
        eccodes.codes_release(handle)


def statistics(text: str, members: Floats) -> list[Floats]:
    """As a recipe names them: ``mean, spread``, ``{percentile: 10}``, ..."""
    return [statistic(one, members) for one in yaml.safe_load(f"[{text}]")]


def statistic(said: Any, members: Floats) -> Floats:
    if isinstance(said, str):
        found: Floats = getattr(np, {"spread": "std"}.get(said, said))(members, axis=0)
        return found
    if "percentile" in said:
        return np.asarray(np.percentile(members, said["percentile"], axis=0))
    return np.asarray(100 * np.mean(members > said["probability"]["above"], axis=0))


class Area:
    """Rows and columns of half a degree."""

    def __init__(self, text: str) -> None:
        self.north, self.west, self.south, self.east = map(float, text.split("/"))
        self.rows = slice(round(2 * (90 - self.north)), round(2 * (90 - self.south)) + 1)
        # All around, both edges are the same meridian.
        count = min(round(2 * (self.east - self.west)) + 1, COLUMNS)
        self.columns = (round(2 * self.west) + np.arange(count)) % COLUMNS
        self.ends = self.west, self.west + (count - 1) / 2

    def of(self, members: Floats) -> Floats:
        return members[:, self.rows][..., self.columns]


def grib(text: str, where: str) -> Product:
    """By a template that has all but the step and the values."""
    area = Area(where or "90/0/-90/359.5")
    template = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
    keys: dict[str, Any] = {"Ni": len(area.columns), "Nj": area.rows.stop - area.rows.start, "shortName": "gh"}
    keys |= {"latitudeOfFirstGridPointInDegrees": area.north, "latitudeOfLastGridPointInDegrees": area.south}
    keys |= {"longitudeOfFirstGridPointInDegrees": area.ends[0], "longitudeOfLastGridPointInDegrees": area.ends[1]}
    keys |= {"iDirectionIncrementInDegrees": 0.5, "jDirectionIncrementInDegrees": 0.5, "bitsPerValue": 16, "level": 500}
    for name, value in keys.items():
        eccodes.codes_set(template, name, value)

    def make(step: Step, path: Path) -> None:
        members = area.of(step.half) if where else step.half
        path.write_bytes(b"".join(encoded(template, step.number, one) for one in statistics(text, members)))

    return make


def encoded(template: int, step: int, values: Floats) -> bytes:
    message = eccodes.codes_clone(template)
    try:
        eccodes.codes_set(message, "step", step)
        eccodes.codes_set_values(message, values.ravel())
        return bytes(eccodes.codes_get_message(message))
    finally:
        eccodes.codes_release(message)


def netcdf(text: str, step: Step, path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, values in (("latitude", 90 - np.arange(ROWS) / 2), ("longitude", np.arange(COLUMNS) / 2)):
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", (name,))[:] = values
        for number, values in enumerate(statistics(text, step.half)):
            file.createVariable(f"gh_{number}", "f4", ("latitude", "longitude"))[:] = values


def table(text: str, step: Step, path: Path) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("latitude", "longitude", "step", "param", "value"))
        for values in statistics(text, step.places):
            rows.writerows((*place, step.number, text, value) for place, value in zip(PLACES, values, strict=True))


def picture(text: str) -> Product:
    """The nearest value for each pixel, in one of 256 colours."""
    rows = np.rint(np.linspace(0, ROWS - 1, WIDTH // 2)).astype(int)[:, None]
    columns = np.arange(WIDTH) * COLUMNS // WIDTH
    colours = [part for grey in range(256) for part in (grey, grey, 255 - grey)]

    def make(step: Step, path: Path) -> None:
        (values,) = statistics(text, step.half)
        seen = values[rows, columns]
        scaled = (seen - seen.min()) * (255 / np.ptp(seen))
        image = Image.fromarray(scaled.astype(np.uint8))
        image.putpalette(colours)
        image.save(path, "PNG")

    return make


def product(row: Row) -> Product:
    text, written, where = row
    if written == "grib2":
        return grib(text, where)
    if written == "png":
        return picture(text)
    return partial({"netcdf": netcdf, "csv": table}[written], text)


def directly(rows: Sequence[Row], steps: Sequence[Sequence[bytes]], out: Path, half: Any, places: Any) -> list[float]:
    """Makes products; of each step, how many milliseconds it took from the last member's message on.

    Parameters
    ----------
    rows
        Which.
    steps
        For each step the members' messages.
    out
        A folder.
    half, places
        Matrices that bring fields to half a degree, and to places.

    """
    products = [product(row) for row in rows]
    took = []
    for number, members in enumerate(steps):
        step = Step(number, len(members), half, places)
        for member, message in enumerate(members[:-1]):
            step.take(member, message)
        begun = time.monotonic()
        step.take(len(members) - 1, members[-1])
        for index, make in enumerate(products):
            make(step, out / f"{index}_{number}")
        took.append((time.monotonic() - begun) * 1e3)
    return took
