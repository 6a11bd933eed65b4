"""Measures a set four times larger than the pool's memory: in while nobody reads, then out whole and in order.

One process offers fields of 804 KiB, another follows and reads every byte of each. Beside it the same set goes through
one file (what the machine allows: written and read in order by one process, nothing shared with anybody), and through a
file for each field in a folder, as programs hand data over today. All three lie on the same disk, and what the system
keeps of them in its cache is theirs. The figures also say how much memory the server had, at the most.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import ROOT, Bench, Case, Check, Contender, Figures, Measure, begin, call, program, served

import junctura

FIELD_BYTES = 804 * 1024
THROUGH = Measure("gib_per_s", "GiB/s", more_is_better=True)
EACH = Measure("bytes_each", "bytes an object", more_is_better=False)
STATES = {
    "live": "visible, until withdrawn",
    "owed": "visible, and owed to a requirement",
    "spilled": "visible, its payload of 64 bytes spilled",
    "tombstones": "gone, and remembered",
}


def field(number: int) -> np.ndarray:
    return np.full(FIELD_BYTES // 4, number, dtype="u4")


def offer_all(url: str, count: int) -> None:
    """Offers all fields, and goes."""
    array = field(0)
    with junctura.Pool(url, schema="free") as pool:
        began = time.perf_counter()
        for number in range(count):
            array[:] = number
            pool.offer(array, name=f"{number:06}")
        print(json.dumps({"seconds": time.perf_counter() - began}))


def read_all(url: str, count: int) -> None:
    """Follows, and reads every byte of every field."""
    with junctura.Pool(url, schema="free") as pool:
        began = time.perf_counter()
        for number, obj in zip(range(count), pool.follow(until_live=True), strict=True):
            with obj:
                total = int(obj.array().sum())
                if total != number * (FIELD_BYTES // 4):
                    raise SystemExit(f"field {number} has the sum {total}")
        print(json.dumps({"seconds": time.perf_counter() - began}))


def through_pool(count: int, budget: int, folder: Path) -> Figures:
    """In by one process and out by another, through a pool with a file tier."""
    with served("--budget", str(budget), "--spill", str(folder / "spill")) as server:
        written = json.loads(call([sys.executable, __file__, "--worker", "offer", server.url, str(count)], 600))[
            "seconds"
        ]
        with junctura.Pool(server.url) as pool:
            spill = pool.stat()["spill"]
        read = json.loads(call([sys.executable, __file__, "--worker", "read", server.url, str(count)], 600))["seconds"]
        status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
        memory = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in status.splitlines() if " kB" in line}
    return {
        **rates(count, written, read),
        "spilled_gib": spill["written_bytes"] / 2**30,
        "server_private_mib": memory["RssAnon"],
        "server_peak_mib": memory["VmHWM"],
    }


def through_file(count: int, folder: Path) -> Figures:
    """One process, one file."""
    array = field(0)
    with (folder / "file").open("wb+", buffering=0) as file:
        began = time.perf_counter()
        for number in range(count):
            array[:] = number
            file.write(array.data)
        written = time.perf_counter() - began
        file.seek(0)
        began = time.perf_counter()
        for number in range(count):
            file.readinto(array.data)
            assert int(array.sum()) == number * array.size
        read = time.perf_counter() - began
    return rates(count, written, read)


def through_folder(count: int, folder: Path) -> Figures:
    """A file for each field, written under another name and renamed, as those do who care."""
    array = field(0)
    began = time.perf_counter()
    for number in range(count):
        array[:] = number
        np.save(folder / "new.npy", array)
        (folder / "new.npy").rename(folder / f"{number:06}.npy")
    written = time.perf_counter() - began
    began = time.perf_counter()
    for number in range(count):
        found = np.load(folder / f"{number:06}.npy")
        assert int(found.sum()) == number * array.size
    return rates(count, written, time.perf_counter() - began)


def rates(count: int, written: float, read: float) -> Figures:
    gib = count * FIELD_BYTES / 2**30
    return {
        "gib_per_s": gib / (written + read),
        "in_gib_per_s": gib / written,
        "out_gib_per_s": gib / read,
        "objects": count,
    }


def in_folder(run: Callable[..., Figures], *arguments: int) -> Figures:
    """Runs in a folder of its own on the disk of this checkout, which is empty again afterwards."""
    out = ROOT / "bench-out"
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix="spill-") as folder:
        figures = run(*arguments, Path(folder))
        shutil.rmtree(Path(folder) / "spill", ignore_errors=True)
    os.sync()
    return figures


def set_case(quick: bool) -> Case:
    budget = (64 if quick else 1024) << 20
    count = 4 * budget // FIELD_BYTES
    touched = "written once, every byte read once"
    pool, file, folder = "pool with a file tier", "one file", "a file for each"
    contenders = [
        Contender(
            pool, "us", "all offered, then all read", touched, [], lambda: in_folder(through_pool, count, budget)
        ),
        Contender(file, "limit", "all written, then all read", touched, [], lambda: in_folder(through_file, count)),
        Contender(folder, "rival", "all written, then all read", touched, [], lambda: in_folder(through_folder, count)),
    ]
    question = f"{count} fields of 804 KiB, four times the memory of {budget >> 20} MiB, in and then out"
    return Case("spill-set", question, THROUGH, contenders, [Check(pool, at_least=1, times=folder)])


def each(what: str, count: int) -> Figures:
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura-pool", "--example", "memory_per_object"], 1800)
    figures: Figures = json.loads(call([str(program("examples/memory_per_object")), what, str(count)], 600))
    return figures


def memory_case(quick: bool) -> Case:
    count = 10_000 if quick else 1_000_000

    def contender(what: str, about: str) -> Contender:
        command = ["target/release/examples/memory_per_object", what, str(count)]
        return Contender(about, "us", "all offered", "none", command, lambda: each(what, count))

    contenders = [contender(what, about) for what, about in STATES.items()]
    question = "memory of the server's own for each object with 11 attributes, besides its payload"
    return Case("memory-each", question, EACH, contenders, rounds_max=1)


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        {"offer": offer_all, "read": read_all}[sys.argv[2]](sys.argv[3], int(sys.argv[4]))
        return 0
    bench: Bench = begin("spill", "How fast does a set go through that is larger than memory?")
    return bench.run([set_case(bench.quick), memory_case(bench.quick)])


if __name__ == "__main__":
    sys.exit(main())
