"""Measures how many commits a second a store takes, in each place where it can lie.

Writers flush one object of 1 KiB again and again: as threads of one process, which commit together where they meet,
and as processes, which do not. In a folder they get their order by the lock of one file, or by names that are given
once; beside them stands the floor of the disk, one write and ``fdatasync`` of as many bytes. In an object store, of
which a server runs on this machine, names are given once. Measured by
``crates/junctura-store/examples/commit_speed.rs``, which counts in the end that nothing is lost.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from itertools import count
from pathlib import Path

from harness import TARGET, Bench, Case, Check, Contender, Figures, LeftOutError, Measure, begin, call

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/store"))
import s3

RATE = Measure("commits_per_s", "commits/s", more_is_better=True)
PROGRAM = str(TARGET / "release/examples/commit_speed")
# Of a commit of one such object: its payload, what is said of it, and the record around both.
COMMIT_BYTES = 1024 + 200
WRITERS = (1, 8, 32)
unique = count()

Place = Callable[[], str]


@cache
def build() -> None:
    options = ["--quiet", "--release", "-p", "junctura-store", "--features", "s3", "--example", "commit_speed"]
    call(["cargo", "build", *options], 1800)


def speed(*words: str) -> Figures:
    build()
    figures: Figures = json.loads(call([PROGRAM, *words], 600))
    return figures


def committing(place: Place, order: str, who: str, writers: int, seconds: str) -> Contender:
    def run() -> Figures:
        return speed(place(), order, who, f"{writers}", seconds)

    name = f"{writers} {who}" if writers > 1 else "1 writer"
    command = [PROGRAM, "PLACE", order, who, f"{writers}", seconds]
    return Contender(name, "us", "each flush", "written and kept", command, run)


def floor(folder: str, seconds: str) -> Contender:
    words = [f"{folder}/floor", "floor", f"{COMMIT_BYTES}", seconds]
    name = "one file: append and fdatasync"
    return Contender(name, "limit", "each fdatasync", "written", [PROGRAM, "FILE", *words[1:]], lambda: speed(*words))


def contenders(place: Place, order: str, ways: tuple[str, ...], seconds: str) -> list[Contender]:
    ours = [(who, writers) for writers in WRITERS for who in ways if writers > 1 or who == ways[0]]
    return [committing(place, order, who, writers, seconds) for who, writers in ours]


def in_folder(folder: str, order: str, seconds: str) -> Case:
    def place() -> str:
        return f"{folder}/{order}-{next(unique)}"

    all_of_them = [*contenders(place, order, ("threads", "processes"), seconds), floor(folder, seconds)]
    checks = []
    if order == "appended":
        checks = [
            Check("1 writer", at_least=0.8, times="one file: append and fdatasync"),
            Check("8 processes", at_least=1.5, times="1 writer"),
        ]
    return Case(f"folder-{order}", f"commits of 1 KiB in a folder on disk, {order}", RATE, all_of_them, checks)


def in_memory(order: str, seconds: str) -> Case:
    def place() -> str:
        return "memory:commits"

    question = f"commits of 1 KiB in memory of one process, {order}"
    return Case(f"memory-{order}", question, RATE, contenders(place, order, ("threads",), seconds))


def in_bucket(servers: ExitStack, seconds: str) -> Case:
    """The server starts when it is first asked for, and ends with the benchmark."""

    @cache
    def pattern() -> str:
        if not s3.SERVER.exists():
            raise LeftOutError(f"{s3.SERVER.name} is not here: tools/setup.sh makes it")
        os.environ.update(servers.enter_context(s3.served()))
        return os.environ["JUNCTURA_TEST_S3"]

    def place() -> str:
        return pattern().replace("{}", f"commits-{next(unique)}")

    all_of_them = contenders(place, "exclusive", ("threads", "processes"), seconds)
    return Case("s3-exclusive", "commits of 1 KiB in a bucket of a server on this machine", RATE, all_of_them)


def main() -> int:
    bench: Bench = begin("store_commits", "How many commits a second does a store take?")
    seconds = "0.5" if bench.quick else "3"
    orders = ("appended", "exclusive")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        cases = [in_folder(folder, order, seconds) for order in orders]
        cases += [in_memory(order, seconds) for order in orders]
        return bench.run([*cases, in_bucket(servers, seconds)])


if __name__ == "__main__":
    sys.exit(main())
