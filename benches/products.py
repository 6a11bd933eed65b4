"""Measures how long a product takes once its last field is there: from before that field's offer to the event.

A pool, a broker and its workers are processes as users have them; six members offer one field each, step after step,
the next step when all products of the one before are there, and the last field of a step when the other five have been
decoded and interpolated. Beside it stands what the libraries need for the same products by themselves, in one process
(`products_libraries.py`): they, too, have the other five by then. Fields are sums of waves, as the atmosphere's are: a
map of noise would be isolines everywhere.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One thread for each; read when libraries are loaded.
os.environ["OMP_NUM_THREADS"] = "1"

import eccodes
import numpy as np
import numpy.typing as npt
from harness import TARGET, Bench, Case, Check, Contender, Figures, Measure, begin
from products_libraries import PLACES, Row, directly
from scipy.sparse import csr_array

import junctura
from junctura.products import Broker, Failed, Made, Recipe, load_all
from junctura.products._regrid.grids import Grid, grid
from junctura.products._regrid.sparse_matrix import SparseMatrix
from junctura.products._regrid.weight_matrices import weights

MEMBERS, N = 6, 48
WARM = 3
HALF = Measure("ms.p50", "ms, p50", more_is_better=False)
KEY = {"class": "rd", "expver": "0001", "stream": "enfo", "date": 20261120, "time": 0, "type": "pf"}
KEY |= {"levtype": "pl", "levelist": 500, "param": "gh"}
FROM = "from: {param: gh, levelist: 500, step: 0/to/%d, number: 1/to/6}"
AREAS = ("72/-25/34/45", "80/-170/10/-50", "0/100/-50/180", "40/-20/-40/60", "60/60/0/150", "90/-180/50/180")
TABLE = (
    *(("mean, spread", "grib2", area) for area in AREAS),
    *((f"{{probability: {{above: {value}}}}}", "grib2", "") for value in (9000, 9500, 10000, 10500)),
    *((f"{{percentile: {value}}}", "grib2", "") for value in (10, 50, 90)),
    *((what, "png", "") for what in ("mean", "spread", "max")),
    *((what, "netcdf", "") for what in ("mean", "min")),
    *((what, "csv", "points") for what in ("mean", "spread")),
)
POINTS = f"points@{','.join(f'{latitude:g}/{longitude:g}' for latitude, longitude in PLACES)}"
SUFFIX = {"grib2": "grib2", "png": "png", "netcdf": "nc", "csv": "csv"}


def recipe(number: int, last: int, statistic: str, written: str, where: str) -> str:
    on = POINTS if where == "points" else "0.5/0.5"
    crop = ""
    if "/" in where:
        north, west, south, east = where.split("/")
        crop = f"\n  - crop: {{north: {north}, west: {west}, south: {south}, east: {east}}}"
    to = f"{{format: {written}, name: '{number}_{{step}}.{SUFFIX[written]}'}}"
    steps = FROM % last
    return f"product: p{number}\n{steps}\ndo:\n  - grid: '{on}'{crop}\n  - ensemble: [{statistic}]\nto: {to}\n"


def messages(steps: int) -> list[list[bytes]]:
    """For each step what the members offer."""
    handle = eccodes.codes_grib_new_from_samples("regular_gg_pl_grib2")
    latitudes = np.degrees(np.arcsin(np.polynomial.legendre.leggauss(2 * N)[0][-1]))
    keys = {"N": N, "Ni": 4 * N, "Nj": 2 * N, "iDirectionIncrementInDegrees": 90 / N, "shortName": "gh"}
    keys |= {"latitudeOfFirstGridPointInDegrees": latitudes, "latitudeOfLastGridPointInDegrees": -latitudes}
    keys |= {"longitudeOfLastGridPointInDegrees": 360 - 90 / N, "bitsPerValue": 16, "level": 500}
    for name, value in keys.items():
        eccodes.codes_set(handle, name, value)
    random = np.random.default_rng(1)
    made: list[list[bytes]] = []
    for step in range(steps):
        eccodes.codes_set(handle, "step", step)
        made.append([])
        for _ in range(MEMBERS):
            eccodes.codes_set_values(handle, heights(random).ravel())
            made[-1].append(bytes(eccodes.codes_get_message(handle)))
    eccodes.codes_release(handle)
    return made


def heights(random: np.random.Generator) -> npt.NDArray[np.float64]:
    """In rows and columns of F`N`: waves around the earth, the shorter the lower, in bands along the meridians."""
    latitudes = np.arcsin(np.polynomial.legendre.leggauss(2 * N)[0][::-1])[:, np.newaxis]
    longitudes = np.linspace(0, 2 * np.pi, 4 * N, endpoint=False)
    found = np.broadcast_to(1e4 - 500 * np.sin(latitudes) ** 2, (2 * N, 4 * N))
    for wave in range(1, 21):
        height, east, north = random.normal(0, 400 / wave), *random.uniform(0, 2 * np.pi, 2)
        found = found + height * np.cos(latitudes) * np.cos(wave * longitudes + east) * np.cos(wave * latitudes + north)
    return found


class Arrivals:
    """Waits for the products of a step."""

    def __init__(self) -> None:
        self.count = 0
        self.failures: list[str] = []
        self.changed = threading.Condition()

    def take(self, event: Made | Failed) -> None:
        with self.changed:
            self.count += 1
            if isinstance(event, Failed):
                self.failures.append(event.cause)
            self.changed.notify()

    def wait(self, count: int) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: self.count >= count or bool(self.failures), timeout=60):
                raise RuntimeError(f"{self.count} of {count} products are there after a minute")
        if self.failures:
            raise RuntimeError(self.failures[0])


def latencies(recipes: list[Recipe], steps: list[list[bytes]], out: Path) -> Figures:
    arrivals, took = Arrivals(), []
    with junctura.Pool(schema="mars") as pool:
        broker = Broker(recipes, pool.url, out, workers=2, observer=arrivals.take)
        thread = threading.Thread(target=broker.run)
        thread.start()
        for step, members in enumerate(steps):
            for number, message in enumerate(members[:-1], 1):
                pool.offer(message, KEY | {"step": step, "number": number})
            wait_until_decoded(pool)
            begun = time.monotonic()
            pool.offer(members[-1], KEY | {"step": step, "number": MEMBERS})
            arrivals.wait(len(recipes) * (step + 1))
            took.append((time.monotonic() - begun) * 1e3)
        thread.join()
    return percentiles(took[WARM:])


def wait_until_decoded(pool: junctura.Pool) -> None:
    """The broker holds each input until it has been."""
    while any(client["held"] for client in pool.stat()["clients"]):
        time.sleep(1e-3)


def percentiles(took: list[float]) -> Figures:
    return {"ms": {"p50": float(np.median(took)), "p95": float(np.percentile(took, 95))}, "steps": len(took)}


def on_grid(name: str) -> Grid:
    named = grid(name)
    assert isinstance(named, Grid)
    return named


def of_scipy(matrix: SparseMatrix) -> Any:
    return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)


def by_libraries(table: tuple[Row, ...], steps: list[list[bytes]]) -> Contender:
    def run(folder: Path) -> Figures:
        half, places = (of_scipy(weights(on_grid(f"F{N}"), on_grid(name))) for name in ("0.5/0.5", POINTS))
        return percentiles(directly(table, steps, folder, half, places)[WARM:])

    return contender("libraries", "limit", lambda: in_a_folder(run))


def in_a_folder(work: Callable[[Path], Figures]) -> Figures:
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        return work(Path(folder))


def ours(table: tuple[Row, ...], steps: list[list[bytes]]) -> Contender:
    def run(folder: Path) -> Figures:
        last = len(steps) - 1
        text = "---\n".join(recipe(number, last, *row) for number, row in enumerate(table))
        (folder / "recipes.yaml").write_text(text)
        return latencies(load_all([folder / "recipes.yaml"]), steps, folder / "out")

    return contender("junctura", "us", lambda: in_a_folder(run))


def contender(name: str, kind: str, run: Callable[[], Figures]) -> Contender:
    return Contender(name, kind, "the products' files", "each value", [sys.executable, *sys.argv], run)


def cases(bench: Bench) -> list[Case]:
    steps = messages(6 if bench.quick else 30)
    one: tuple[Row, ...] = (("mean, spread", "grib2", ""),)
    return [
        Case(
            "one-product",
            "From the last member's offer to the product, its mean and spread on 0.5/0.5 as GRIB",
            HALF,
            [ours(one, steps), by_libraries(one, steps)],
            [Check("junctura", at_most=9 / 7, times="libraries")],
        ),
        Case(
            "twenty-products",
            "From the last member's offer to all twenty products of the step: 13 GRIB, 3 maps, 2 netCDF, 2 tables",
            HALF,
            [ours(TABLE, steps), by_libraries(TABLE, steps)],
            [Check("junctura", at_most=0.7, times="libraries")],
        ),
    ]


def main() -> int:
    os.environ.setdefault("JUNCTURA_CACHE", str(TARGET / "benches/weights"))
    bench = begin("products", "How long after its last field is a product there?")
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
