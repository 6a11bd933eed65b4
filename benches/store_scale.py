"""Measures what ten million objects cost who opens their store, or asks for one, for the axes or for all: in a process
that has just begun.

``crates/junctura-store/examples/store_speed.rs`` asks; the store lies in memory, and what is read of it comes from the
page cache. No object has bytes worth mentioning: what is measured is the catalogue.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import cache

from harness import Bench, Case, Check, Contender, Figures, Measure, begin
from store import FIRST, MEMORY, NONE, SPEED, speed

KEY = Measure("key_us", "us", more_is_better=False)
PEAK = Measure("peak_mib", "MiB", more_is_better=False)
LIMIT = "limit: the catalogue's files, read"
QUESTIONS = {"one": "junctura, one object", "axes": "junctura, the axes of all", "open": "junctura, opened"}
ROUNDS = 3


class Stores:
    """Those that are asked, each filled when it is asked first."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.filled = cache(self._filled)

    def _filled(self, count: int, every: int) -> str:
        path = f"{self.place}/{count}-{every}"
        speed("fill", path, f"{count}", "1", f"{every}")
        speed("checkpoint", path)
        return path

    def contender(self, name: str, kind: str, question: str, count: int, every: int = 100_000) -> Contender:
        def run() -> Figures:
            return speed(question, self.filled(count, every))

        return Contender(name, kind, "the answer", NONE, [SPEED, question, "FOLDER"], run)

    def single(self, count: int, every: int = 100_000) -> Contender:
        def run() -> Figures:
            return speed("keys", self.filled(count, every), f"{count}")

        command = [SPEED, "keys", "FOLDER", f"{count}"]
        return Contender(f"junctura, one of {count:,}", "us", "where it lies", NONE, command, run)

    def keys(self, count: int) -> Contender:
        def run() -> Figures:
            return speed("list", self.filled(count, 100_000), "")

        return Contender("junctura, all keys", "us", "the last key's text", NONE, [SPEED, "list", "FOLDER", ""], run)


def cases(bench: Bench, place: str) -> list[Case]:
    stores = Stores(place)
    million = 20_000 if bench.quick else 1_000_000
    asked: list[Case] = []
    for count in (million, 10 * million):
        contenders = [stores.contender(name, "us", question, count) for question, name in QUESTIONS.items()]
        limit = stores.contender(LIMIT, "limit", "catalogue", count)
        one = Check(QUESTIONS["one"], at_most=60)
        question = f"{count:,} objects, a fresh process"
        asked += [
            Case(f"ask-{count:,}", question, FIRST, [*contenders, stores.keys(count), limit], [one], ROUNDS),
            Case(f"memory-{count:,}", question, PEAK, [*contenders, stores.keys(count), limit], rounds_max=ROUNDS),
        ]
    few, many = (
        stores.contender(f"junctura, {million // every:,} commits", "us", "one", million, every)
        for every in (100_000, 100)
    )
    check = Check(many.name, at_most=1.25, times=few.name)
    question = f"one of {million:,} objects, after a checkpoint"
    asked.append(Case("commits", question, FIRST, [few, many], [check], ROUNDS))
    single = [stores.single(count) for count in (million, 10 * million)]
    flat = Check(single[1].name, at_most=100)
    question = "one key after the other, here and there, in a process that has asked before"
    asked.append(Case("keys", question, KEY, single, [flat], ROUNDS))
    return asked


def main() -> int:
    bench = begin("store_scale", "What do ten million objects cost who asks for few?")
    place = tempfile.mkdtemp(prefix="junctura-bench-", dir=MEMORY)
    try:
        return bench.run(cases(bench, place))
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    sys.exit(main())
