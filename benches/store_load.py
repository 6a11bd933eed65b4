"""Measures a store under the loads of an archive: by how many at once, into one dataset or many, while others read.

Each row is one ``junctura load store``: processes that share nothing but the store, and before them the same bytes
in plain files, appended and synced as often by as many. What is lost or damaged ends a run with an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from harness import RATE, TARGET, Bench, Case, Contender, Figures, Measure, begin, call, program
from store import DISK, MEMORY, READ, WRITTEN, folder, last

LOADS = {
    "written once, then read; a dataset each": ["--pattern", "a"],
    "written once, then read; one dataset": ["--pattern", "a", "--contended"],
    "re-written while it is read; a dataset each": ["--pattern", "b"],
    "re-written while it is read; one dataset": ["--pattern", "b", "--contended"],
}
INDEXES = {"the commit log alone": "log", "a checkpoint": "checkpoint"}
LIMIT = "limit: plain write and fdatasync"
WRITE = Measure("write_gib_per_s", "GiB/s", more_is_better=True)
READING = Measure("read_gib_per_s", "GiB/s", more_is_better=True)
READ_BACK = Measure("read_back_gib_per_s", "GiB/s", more_is_better=True)
LIST = Measure("list_per_s", "entries/s", more_is_better=True)
FIELD = ["--size", "803KiB"]
PROGRAM = str(TARGET / "release/junctura")


class Load:
    """One load; it measures several things at once, each in the order of the figures."""

    def __init__(self, where: Path, *options: str) -> None:
        self.where, self.options = where, options
        self.before: list[Figures] = []

    @property
    def command(self) -> list[str]:
        return [PROGRAM, "load", "store", "--json", "--store", "FOLDER", *self.options]

    def run(self) -> Figures:
        program("junctura")
        with folder(self.where) as place:
            words = [f"{place}/store" if word == "FOLDER" else word for word in self.command]
            self.before.append(json.loads(call(words, 1200)))
        return self.before[-1]

    def contender(self, name: str, touched: str) -> Contender:
        return Contender(name, "us", "the last object", touched, self.command, self.run)

    def also(self, name: str, kind: str, touched: str, figures: Callable[[Figures], Figures]) -> Contender:
        """What was measured in the same run."""
        return Contender(name, kind, "the last object", touched, self.command, lambda: figures(last(self.before)))

    def limit(self, beside: str = "") -> Contender:
        name = f"{LIMIT}{beside}"
        return self.also(name, "limit", WRITTEN, lambda row: {WRITE.path: row["limit_write_gib_per_s"]})


def loads(bench: Bench) -> list[Case]:
    few = "0.02" if bench.quick else "1"
    space = ["--members", "5", "--steps", "10", "--levels", "10", "--params", "4", "--writers", "2", "--scale", few]
    fields = {name: Load(MEMORY, *FIELD, *space, *options) for name, options in LOADS.items()}
    written = []
    for name, load in fields.items():
        written += [load.contender(name, WRITTEN), load.limit(f" ({name})")]
    read = [load.contender(name, READ) for name, load in fields.items()]
    question = "2,000 fields of 803 KiB by two processes, in memory"
    return [
        Case("load-write", question, WRITE, written),
        Case("load-read", question, READING, read),
        listed(bench),
    ]


def listed(bench: Bench) -> Case:
    few = "0.02" if bench.quick else "1"
    space = ["--size", "1KiB", "--members", "10", "--steps", "10", "--levels", "100", "--params", "10"]
    ways = [
        Load(MEMORY, *space, "--writers", "2", "--scale", few, "--catalogue", index, *LOADS[name]).contender(
            f"{name}; {known_by}", "no payload is read"
        )
        for name in (*LOADS,)[::2]
        for known_by, index in INDEXES.items()
    ]
    return Case("load-list", "100,000 objects found by two processes, the key of each", LIST, ways)


def sweep(bench: Bench) -> list[Case]:
    few = "0.02" if bench.quick else "1"
    space = ["--members", "5", "--steps", "10", "--levels", "10", "--params", "4", "--scale", few]
    written, read = [], []
    for writers in (1, 2, 4, 8):
        for threads in (1, 2):
            load = Load(MEMORY, *FIELD, *space, "--writers", f"{writers}", "--threads", f"{threads}")
            name = f"{writers} x {threads}"
            written += [load.contender(name, WRITTEN), load.limit(f" ({name})")]
            read.append(load.contender(name, READ))
    question = "2,000 fields of 803 KiB by so many processes x threads, in memory"
    return [Case("sweep-write", question, WRITE, written), Case("sweep-read", question, READING, read)]


def ensemble(bench: Bench) -> list[Case]:
    """The preset, on disk, as large as half of it: the whole takes 84 GiB."""
    scale = "0.0005" if bench.quick else "0.5"
    load = Load(DISK, "--preset", "ensemble", "--writers", "2", "--scale", scale)
    written = [load.contender("junctura", WRITTEN), load.limit()]
    read = [load.also("junctura, read back meanwhile", "us", READ, lambda row: row)]
    question = f"{scale} of 110,000 fields of 803 KiB, on disk; 70 % read back while they are written"
    rate = [load.also("junctura", "us", WRITTEN, lambda row: {RATE.path: row["write_per_s"]})]
    return [
        Case("ensemble-write", question, WRITE, written, rounds_max=1),
        Case("ensemble-read", question, READ_BACK, read, rounds_max=1),
        Case("ensemble-fields", question, RATE, rate, rounds_max=1),
    ]


def main() -> int:
    bench = begin("store_load", "How does a store bear the loads of an archive?")
    return bench.run([*loads(bench), *sweep(bench), *ensemble(bench)])


if __name__ == "__main__":
    sys.exit(main())
