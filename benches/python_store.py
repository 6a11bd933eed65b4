"""Measures how fast a store is from Python.

Objects of 1 KiB with the attributes of an ensemble's fields, checked against the schema `mars`, archived by
`archive_many` and flushed 10,000 at a time, into memory (`/dev/shm`) and on the disk of the system's temporary folder;
and the listing of a million such objects as a table of pyarrow's, in a process that opens the store (pyarrow itself is
loaded already), and in one that has listed before.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from harness import RATE, ROOT, Bench, Case, Check, Contender, Figures, Measure, begin, call

LOAD = str(ROOT / "benches/python_store_load.py")
FIRST = Measure("first_ms", "ms", more_is_better=False)
TABLE = Measure("list_and_table_ms", "ms", more_is_better=False)
PLACES = {"memory": Path("/dev/shm"), "disk": Path(tempfile.gettempdir())}


def load(*words: str) -> Figures:
    figures: Figures = json.loads(call([sys.executable, LOAD, *words], 600))
    return figures


def archive(bench: Bench, place: str) -> Case:
    objects = 20_000 if bench.quick else 500_000

    def run() -> Figures:
        with tempfile.TemporaryDirectory(dir=PLACES[place]) as folder:
            return load("archive", f"{folder}/store", f"{objects}", "10000")

    command = [sys.executable, LOAD, "archive", "FOLDER", f"{objects}", "10000"]
    contender = Contender("junctura", "us", "the last flush", "payloads are there already", command, run)
    question = f"{objects:,} objects of 1 KiB by archive_many, 10,000 a flush, {place}"
    return Case(f"archive-{place}", question, RATE, [contender], [Check("junctura", at_least=100_000)])


def tables(bench: Bench, folder: str) -> list[Case]:
    objects = 20_000 if bench.quick else 1_000_000

    @cache
    def filled() -> str:
        load("fill", f"{folder}/store", f"{objects}")
        return f"{folder}/store"

    def run() -> Figures:
        return load("list", filled())

    command = [sys.executable, LOAD, "list", "FOLDER"]
    contender = Contender("junctura", "us", "the pyarrow table", "no payload is read", command, run)
    question, check = f"{objects:,} objects listed as a table", Check("junctura", at_most=300)
    return [
        Case("table", f"{question}, by who has listed before", TABLE, [contender], [check]),
        Case("table-fresh", f"{question}, in a fresh process", FIRST, [contender], [check]),
    ]


def main() -> int:
    bench = begin("python_store", "How fast is a store from Python?")
    folder = tempfile.mkdtemp()
    try:
        return bench.run([*(archive(bench, place) for place in PLACES), *tables(bench, folder)])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
