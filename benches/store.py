"""Measures how fast a store takes, finds and gives, beside plain files and the field store of a weather centre.

Writing is measured by ``junctura load store``, which writes the same bytes into plain files just before; listing
and reading by ``crates/junctura-store/examples/store_speed.rs``; the other store through its Python package
(``benches/rivals/fdb.py``), with the key of each field given and its bytes ready. Everything is read from the page
cache. Of what was asked for it shows D: field I/O, and efficiency against the limit of the device.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from harness import (
    BANDWIDTH,
    RATE,
    ROOT,
    TARGET,
    Bench,
    Case,
    Check,
    Contender,
    Figures,
    LeftOutError,
    Measure,
    begin,
    call,
    program,
)

MEMORY, DISK = Path("/dev/shm"), Path(tempfile.gettempdir())
FDB = TARGET / "rivals/fdb/bin/python"
FDB_LOAD = str(ROOT / "benches/rivals/fdb.py")
STORE_MESSAGES = str(ROOT / "benches/store_messages.py")
SPEED = str(TARGET / "release/examples/store_speed")
FIRST = Measure("first_ms", "ms", more_is_better=False)
AGAIN = Measure("again_ms", "ms", more_is_better=False)
WRITTEN = "all bytes written"
READ = "every byte read and compared with its checksum"
NONE = "no payload is read"
RIVAL = "field store (pyfdb)"
# Pages are entered into a map when they are first looked at, and the store keeps its maps.
MAPPED = {
    "mapped for the first time": "mapped",
    "mapped for the first time, together": "mapped_together",
    "mapped again": "mapped_again",
    "mapped again, together": "mapped_again_together",
}
PREFIX = "class=od,date=20261120,step=3,number=7"
SCATTERED = "param=q,levelist=500,number=7/8/9/10/11,step=0/to/19"


@contextmanager
def folder(where: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="junctura-bench-", dir=where) as path:
        yield path


def speed(*words: str) -> Figures:
    built()
    figures: Figures = json.loads(call([SPEED, *words], 600))
    return figures


@cache
def built() -> None:
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura-store", "--example", "store_speed"], 1800)


def fdb(*words: str) -> Figures:
    if not FDB.exists():
        raise LeftOutError("pyfdb is not installed (benches/setup.sh)")
    figures: Figures = json.loads(call([str(FDB), FDB_LOAD, *words], 600).splitlines()[-1])
    return figures


def shown(*words: str) -> list[str]:
    return [sys.executable, FDB_LOAD, *words]


def last(figures: list[Figures]) -> Figures:
    """Those of a contender that measures another one, too, in its own run."""
    if not figures:
        raise LeftOutError("what measures it did not run")
    return figures[-1]


# Writing


def store_load(where: Path, size: int, count: int, every: int, *more: str) -> tuple[list[str], Callable[[], Figures]]:
    """A load of a store, and the plain write before it; its rates are called as all contenders' are."""
    space = ["--members", "10", "--levels", "100", "--params", "10", "--steps", f"{max(1, count // 10_000)}"]
    scale = ["--scale", f"{min(1.0, count / 10_000)}"]
    command = [str(TARGET / "release/junctura"), "load", "store", "--json", "--contended", *space, *scale]
    command += ["--size", f"{size}", "--every", f"{every}", *more]

    def run() -> Figures:
        program("junctura")
        with folder(where) as place:
            row: Figures = json.loads(call([*command, "--store", f"{place}/store"], 600))
        return {**row, "objects_per_s": row["write_per_s"], "gib_per_s": row["write_gib_per_s"]}

    return [*command, "--store", "FOLDER"], run


def writes(
    name: str, where: Path, size: int, count: int, every: int, checks: list[Check], rival: int, *more: str
) -> Case:
    command, run = store_load(where, size, count, every, *more)
    before: list[Figures] = []

    def ours() -> Figures:
        before.append(run())
        return before[-1]

    def plain() -> Figures:
        row = last(before)
        return {"objects_per_s": row["limit_write_per_s"], "gib_per_s": row["limit_write_gib_per_s"]}

    awaited = f"a flush after each {every}" if every > 1 else "a flush after each"
    contenders = [
        Contender("junctura", "us", awaited, WRITTEN, command, ours),
        Contender("limit: plain write and fdatasync", "limit", awaited, WRITTEN, command, plain),
    ]
    if rival:
        contenders.append(written_by_rival(where, size, rival, every, awaited))
    where_shown = "in memory" if where == MEMORY else "on disk"
    shown_size = f"{size >> 10} KiB"
    return Case(name, f"{count:,} fields of {shown_size}, {awaited}, {where_shown}", RATE, contenders, checks)


def written_by_rival(where: Path, size: int, count: int, every: int, awaited: str) -> Contender:
    def run() -> Figures:
        with folder(where) as place:
            fdb("template", f"{place}/field.grib", f"{(size - 190) // 2}")
            return fdb("write", f"{place}/store", f"{count}", f"{every}", f"{place}/field.grib")

    command = shown("write", "FOLDER", f"{count}", f"{every}", "FIELD")
    return Contender(RIVAL, "rival", awaited, WRITTEN, command, run)


def writing(bench: Bench) -> list[Case]:
    part = 20 if bench.quick else 1
    limit = "limit: plain write and fdatasync"
    large = [Check("junctura", at_least=0.9, times=limit), Check("junctura", at_least=1.0, times=RIVAL)]
    small = [Check("junctura", at_least=600_000), Check("junctura", at_least=1.0, times=RIVAL)]
    each = [Check("junctura", at_least=0.8, times=limit), Check("junctura", at_least=1.0, times=RIVAL)]
    return [
        writes("write-804KiB-memory", MEMORY, 804 << 10, 2000 // part, 100, large, 500 // part),
        writes("write-1KiB-memory", MEMORY, 1 << 10, 500_000 // part, 100, small, 20_000 // part),
        writes("write-1KiB-each-disk", DISK, 1 << 10, 10_000 // part, 1, each, 4000 // part),
        side_by_side(bench),
        message_only(bench),
    ]


def message_only(bench: Bench) -> Case:
    """Nobody says what the fields are: each store reads their headers."""
    count, every = (40, 20) if bench.quick else (1000, 100)

    @contextmanager
    def files() -> Iterator[tuple[str, str]]:
        with folder(MEMORY) as place:
            fdb("template", f"{place}/field.grib", "411600")
            fdb("messages", f"{place}/messages", f"{count}", f"{every}", f"{place}/field.grib")
            yield f"{place}/store", f"{place}/messages"

    def ours() -> Figures:
        with files() as (store, messages):
            figures: Figures = json.loads(call([sys.executable, STORE_MESSAGES, store, messages], 600))
            return figures

    def rival() -> Figures:
        with files() as (store, messages):
            figures = fdb("files", store, messages)
            return {**figures, "objects_per_s": count / figures["seconds"]}

    awaited = f"a flush after each {every}"
    read = "headers read, all bytes written"
    contenders = [
        Contender("junctura", "us", awaited, read, [sys.executable, STORE_MESSAGES, "FOLDER", "MESSAGES"], ours),
        Contender(RIVAL, "rival", awaited, read, shown("files", "FOLDER", "MESSAGES"), rival),
    ]
    question = f"{count:,} fields of 804 KiB, messages only: no key is given, {awaited}, in memory"
    return Case("write-804KiB-message", question, RATE, contenders, [Check("junctura", at_least=1.0, times=RIVAL)])


def side_by_side(bench: Bench) -> Case:
    """Eight processes beside one, flush by flush."""
    count = 1000 if bench.quick else 20_000
    contenders = []
    for writers, kind in ((8, "us"), (1, "us")):
        command, run = store_load(DISK, 1 << 10, count, 1, "--writers", f"{writers}")
        name = f"junctura, {writers} process{'es' if writers > 1 else ''}"
        contenders.append(Contender(name, kind, "a flush after each", WRITTEN, command, run))
    check = Check("junctura, 8 processes", at_least=1.5, times="junctura, 1 process")
    return Case("write-1KiB-each-disk-8", f"{count:,} fields of 1 KiB, a flush after each", RATE, contenders, [check])


# Listing


def listing(bench: Bench, place: str) -> list[Case]:
    million = 20_000 if bench.quick else 1_000_000

    def filled(count: int, every: int) -> str:
        path = f"{place}/{count}-{every}"
        if not Path(path).exists():
            speed("fill", path, f"{count}", "0", f"{every}")
        return path

    before: list[Figures] = []

    def ours(name: str, count: int, selector: str, every: int = 100_000) -> Contender:
        def run() -> Figures:
            before.append(speed("list", filled(count, every), selector))
            return before[-1]

        command = [SPEED, "list", "FOLDER", selector]
        return Contender(name, "us", "the last key's text", NONE, command, run)

    name, listed_before = "junctura, a fresh process", "junctura, a process that has listed before"

    def again(selector: str) -> Contender:
        def measured_with_it() -> Figures:
            return {FIRST.path: AGAIN.of(last(before))}

        command = [SPEED, "list", "FOLDER", selector]
        return Contender(listed_before, "us", "the last key's text", NONE, command, measured_with_it)

    everything = ours(name, million, "")
    commits = ours("junctura, 10,000 commits, no checkpoint", million, "", 100)
    cases = [
        Case(
            "list-all",
            f"{million:,} fields, the text of each key",
            FIRST,
            [everything, commits],
            [Check(name, at_most=300), Check("junctura, 10,000 commits, no checkpoint", at_most=300)],
        ),
        Case("list-all-rate", "all fields by one request", RATE, [everything, listed_by_rival(bench, place)]),
    ]
    for count, first in ((million, 20), (10 * million, 60)):
        for what, selector in (("prefix", PREFIX), ("scattered", SCATTERED)):
            few = [ours(name, count, selector), again(selector)]
            checks = [Check(name, at_most=first)]
            if count == million:
                checks.append(Check(listed_before, at_most=1))
            question = f"few of {count:,}: {selector}"
            cases.append(Case(f"list-few-{what}-{count:,}", question, FIRST, few, checks, rounds_max=3))
    return cases


def listed_by_rival(bench: Bench, place: str) -> Contender:
    count = 2000 if bench.quick else 50_000

    @cache
    def filled() -> str:
        fdb("template", f"{place}/field.grib", "480")
        fdb("write", f"{place}/fdb", f"{count}", "1000", f"{place}/field.grib")
        return f"{place}/fdb"

    def run() -> Figures:
        return fdb("list", filled(), f"{count}")

    command = shown("list", "FOLDER", f"{count}")
    return Contender(f"{RIVAL}, {count:,} fields", "rival", "the last entry", NONE, command, run)


# Reading


def reading(bench: Bench, place: str) -> list[Case]:
    count = 100 if bench.quick else 1000

    @cache
    def filled() -> str:
        speed("fill", f"{place}/fields", f"{count}", f"{804 << 10}", "100")
        return f"{place}/fields"

    @cache
    def filled_rival() -> str:
        fdb("template", f"{place}/large.grib", "411600")
        fdb("write", f"{place}/fdb-fields", f"{count // 2}", "100", f"{place}/large.grib")
        return f"{place}/fdb-fields"

    before: list[Figures] = []

    def ours() -> Figures:
        before.append(speed("read", filled()))
        return before[-1]

    def measured_with_it(what: str) -> Callable[[], Figures]:
        return lambda: {"gib_per_s": last(before)[f"{what}_gib_per_s"]}

    def rival() -> Figures:
        return fdb("read", filled_rival(), f"{count // 2}", "100")

    command, beside = [SPEED, "read", "FOLDER"], [SPEED, "beside", "FOLDER"]
    alone_measure = Measure("alone_gib_per_s", "GiB/s", more_is_better=True)
    limit = "limit: pread, not verified"
    read = [
        Contender("junctura", "us", "the last byte", READ, command, ours),
        Contender("junctura, together", "us", "the last byte", READ, command, measured_with_it("together")),
        *(
            Contender(f"junctura, {name}", "us", "the last byte", READ, command, measured_with_it(figure))
            for name, figure in MAPPED.items()
        ),
        Contender(limit, "limit", "the last byte", "every byte read", command, measured_with_it("pread")),
        Contender(RIVAL, "rival", "the last byte", "every byte read", shown("read", "FOLDER", "N", "100"), rival),
    ]
    question = f"{count:,} fields of 804 KiB from the page cache"
    checks = [
        Check("junctura", at_least=0.85, times=limit),
        Check("junctura", at_least=1.0, times=RIVAL),
        *(Check(f"junctura, {name}", at_least=2.0, times=limit) for name in MAPPED),
    ]
    both: list[Figures] = []

    def busy() -> Figures:
        both.append(speed("beside", filled()))
        return both[-1]

    def alone() -> Figures:
        return {"gib_per_s": alone_measure.of(last(both))}

    def both_together() -> Figures:
        figures = last(both)
        return {"gib_per_s": figures["gib_per_s"] + figures["written_gib_per_s"]}

    together = "junctura, what is read and written beside each other"
    readers = [
        Contender("junctura, beside a writer", "us", "the last byte", READ, beside, busy),
        Contender("junctura, alone", "us", "the last byte", READ, beside, alone),
        Contender(together, "us", "the last byte", READ, beside, both_together),
    ]
    # What the reader loses is no more than what the writer has of the bandwidth.
    share = Check(together, at_least=1.0, times="junctura, alone", in_turn=True)
    asked = "one reader while a writer flushes ten fields of 804 KiB every 100 ms"
    return [
        Case("read-804KiB", question, BANDWIDTH, read, checks),
        Case("read-beside-writer", asked, BANDWIDTH, readers, [share]),
    ]


def versions() -> dict[str, str]:
    if not FDB.exists():
        return {}
    code = "from importlib.metadata import version as v; print(v('pyfdb'), 'fdb5lib', v('fdb5lib'))"
    return {"pyfdb": call([str(FDB), "-c", code], 60).strip()}


def main() -> int:
    bench = begin("store", "How fast does a store take, find and give?")
    bench.versions.update(versions())
    place = tempfile.mkdtemp(prefix="junctura-bench-", dir=MEMORY)
    try:
        return bench.run([*writing(bench), *listing(bench, place), *reading(bench, place)])
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    sys.exit(main())
