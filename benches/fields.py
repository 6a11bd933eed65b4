"""Measures what fields of GRIB cost as a dataset.

10,000 fields of a store are opened as one dataset, beside cfgrib, which opens a file of the same. And all values of
fields on two grids are read, packed simply and by CCSDS, beside ecCodes' own decoding of the same messages in memory.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

from harness import ROOT, Bench, Case, Check, Contender, Figures, Measure, begin, call

LOAD = str(ROOT / "benches/fields_load.py")
OPENING = Measure("open_ms", "ms", more_is_better=False)
READING = Measure("million_values_per_s", "million values/s", more_is_better=True)
PACKINGS = ("grid_simple", "grid_ccsds")
# Fields, and the degrees between their points.
GRIDS = {"65k": (200, 1.0), "1m": (30, 0.25)}


def load(*words: str) -> Figures:
    figures: Figures = json.loads(call([sys.executable, LOAD, *words], 600))
    return figures


@cache
def made(folder: Path, packing: str, count: int, degrees: float) -> Path:
    """A file, and beside it a store that has its fields."""
    file = folder / f"{packing}-{count}.grib"
    load("make", str(file), packing, f"{count}", f"{degrees}")
    load("store", str(file.with_suffix("")), str(file))
    return file


def contender(name: str, kind: str, awaited: str, role: str, file: partial[Path], suffix: str) -> Contender:
    def run() -> Figures:
        return load(role, str(file().with_suffix(suffix)))

    touched = "headers" if role.startswith("open") else "all values, in an array"
    return Contender(name, kind, awaited, touched, [sys.executable, LOAD, role, "FILE"], run)


def opening(bench: Bench, folder: Path) -> Case:
    count = 1000 if bench.quick else 10_000
    file = partial(made, folder, "grid_simple", count, 5.0)
    ours = contender("junctura", "us", "the dataset of a store", "open", file, "")
    cfgrib = contender("cfgrib", "rival", "the dataset of a file, without an index of it", "open-cfgrib", file, ".grib")
    return Case("open", f"{count:,} fields as a dataset", OPENING, [ours, cfgrib], [Check("junctura", at_most=60)])


def reading(bench: Bench, folder: Path, packing: str, grid: str) -> Case:
    count, degrees = GRIDS[grid]
    file = partial(made, folder, packing, 10 if bench.quick else count, degrees)
    ours = contender("junctura", "us", "the arrays of a dataset", "read", file, "")
    eccodes = contender("eccodes", "limit", "an array for each message", "read-eccodes", file, ".grib")
    check = Check("junctura", at_least=1 / 1.15, times="eccodes", in_turn=True)
    question = f"the values of fields of {grid} points, {packing}"
    return Case(f"read-{grid}-{packing.removeprefix('grid_')}", question, READING, [ours, eccodes], [check])


def main() -> int:
    bench = begin("fields", "What do fields of GRIB cost as a dataset?")
    folder = Path(tempfile.mkdtemp())
    try:
        cases = [reading(bench, folder, packing, grid) for grid in GRIDS for packing in PACKINGS]
        return bench.run([opening(bench, folder), *cases])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
