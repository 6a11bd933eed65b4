"""Measures how fast it is from Python.

A server, a producing and a consuming Python process. Payloads are NumPy arrays; the consumer follows, looks at each as
an array where it lies, and releases it. Counted from the first offer until the last object was in the consumer's hands.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading

from contenders import checked, said, tell
from harness import RATE, ROOT, Bench, Case, Check, Contender, Figures, LeftOutError, begin, served

LIMIT_S = 120
LOAD = str(ROOT / "benches/python_load.py")


def hand_over(way: str, payload_bytes: int, objects: int) -> Figures:
    started: list[subprocess.Popen[str]] = []

    def stop() -> None:
        for process in started:
            process.kill()

    guard = threading.Timer(LIMIT_S, stop)
    guard.start()
    try:
        with served("--schema", "mars", "--budget", "4GiB") as server:
            for role in ("consumer", "producer"):
                words = [sys.executable, LOAD, role, server.url, way, str(payload_bytes), str(objects)]
                started.append(
                    subprocess.Popen(
                        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                    )
                )
                await_ready(started[-1], role)
            consumer, producer = started
            tell(producer, "go\n")
            offered, received = answer(producer, "producer"), answer(consumer, "consumer")
            tell(producer, "end\n")
            for process in started:
                process.communicate()
    finally:
        guard.cancel()
        stop()
        for process in started:
            process.wait()
    seconds = (received["end_ns"] - offered["begin_ns"]) / 1e9
    figures = {"objects_per_s": round(objects / seconds), "gib_per_s": objects * payload_bytes / seconds / 2**30}
    offered_per_s = round(objects * 1e9 / (offered["end_ns"] - offered["begin_ns"]))
    return checked({**figures, "offered_per_s": offered_per_s, **received}, way)


def await_ready(process: subprocess.Popen[str], role: str) -> None:
    if said(process) != "ready\n":
        raise LeftOutError(complaint(process, role))


def answer(process: subprocess.Popen[str], role: str) -> Figures:
    line = said(process)
    if not line:
        raise LeftOutError(complaint(process, role))
    figures: Figures = json.loads(line)
    return figures


def complaint(process: subprocess.Popen[str], role: str) -> str:
    process.kill()
    lines = (process.communicate()[1] or "").strip().splitlines()
    return f"Python {role}: {lines[-1] if lines else 'it ended without a word'}"


def case(bench: Bench, way: str, size: str, objects: int, least: float | None, awaited: str) -> Case:
    payload_bytes = {"1KiB": 1 << 10, "804KiB": 804 << 10}[size]
    objects = max(200, objects // 50) if bench.quick else objects
    command = [sys.executable, LOAD, "ROLE", "URL", way, str(payload_bytes), str(objects)]
    name = f"junctura, {way.replace('-', ' ')}"
    touched = (
        "copied in by the offer; first element read" if way != "fill-in-place" else "first element written and read"
    )
    contender = Contender(name, "us", awaited, touched, command, lambda: hand_over(way, payload_bytes, objects))
    checks = [Check(name, at_least=least)] if least else []
    return Case(f"python-{way}-{size}", f"{objects:,} arrays of {size}", RATE, [contender], checks)


def main() -> int:
    bench = begin("python_speed", "How fast is it from Python?")
    each, all_of_them = "the version of each offer", "the versions of 1,024 offers at a time"
    return bench.run(
        [
            case(bench, "one-by-one", "1KiB", 40_000, 15_000, each),
            case(bench, "offer-many", "1KiB", 200_000, 50_000, all_of_them),
            case(bench, "one-by-one", "804KiB", 4_000, None, each),
            case(bench, "offer-many", "804KiB", 4_000, None, all_of_them),
            case(bench, "fill-in-place", "804KiB", 100_000, None, "acknowledgements, up to 64 outstanding"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
