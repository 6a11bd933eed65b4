"""What tests of the broker have in common: fields, recipes, and programs that are pools or producers."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from grib_messages import gaussian, harmonics

import junctura
from junctura.products import Broker, Recipe, Report, load_all

BASE = {
    "class": "od",
    "expver": "0001",
    "stream": "enfo",
    "date": "20261120",
    "time": "0000",
    "type": "pf",
    "levtype": "pl",
    "levelist": 850,
    "number": 1,
}
TRUNCATION = 21
GRID = 16

# A pool of its own that ends when its standard input does, or when it is killed.
SERVER = """
import junctura, sys
with junctura.Pool(schema="mars") as pool:
    print(pool.url, flush=True)
    sys.stdin.read()
"""

# A member that offers one field, waits until it has been read, and leaves.
MEMBER = """
import junctura, sys
pool = junctura.Pool(sys.argv[1], name="swell-1")
joined = pool.subscribe(kinds=["joined"])
pool.offer(open(sys.argv[2], "rb").read(), dict(word.split("=") for word in sys.argv[3:]))
print("offered", flush=True)
while joined.next().client.name != "products-worker":
    pass
pool.close()
"""


def spectral_message(seed: int, **keys: Any) -> bytes:
    """Coefficients that fall off with the wave number."""
    rng = np.random.default_rng(seed)
    made: list[float] = []
    for m in range(TRUNCATION + 1):
        for n in range(m, TRUNCATION + 1):
            real, imaginary = rng.normal(size=2) / (1 + n) ** 2
            made += [real, imaginary if m else 0.0]
    return harmonics(TRUNCATION, made, **keys)


def grid_message(values: npt.ArrayLike, **keys: Any) -> bytes:
    """On F16."""
    return gaussian(GRID, np.broadcast_to(np.asarray(values, float), (2 * GRID, 4 * GRID)), **keys)


def offer(pool: junctura.Pool, message: bytes, **words: Any) -> None:
    pool.offer(message, {**BASE, **words})


def recipes(folder: Path, text: str) -> list[Recipe]:
    file = folder / "wanted.yaml"
    file.write_text(text)
    return load_all([file])


def broker(folder: Path, pool: junctura.Pool | str | None, text: str, workers: int | None = 1, **more: Any) -> Broker:
    """One for these recipes; products go below ``out``."""
    url = pool.url if isinstance(pool, junctura.Pool) else pool
    return Broker(recipes(folder, text), url, more.pop("out", folder / "out"), workers=workers, **more)


@contextmanager
def in_background(running: Broker, made: threading.Event) -> Iterator[list[Report]]:
    """Runs it in a thread; its report is there at the end. Nobody waits for what is made when it has ended."""
    reports: list[Report] = []

    def run() -> None:
        try:
            reports.append(running.run())
        finally:
            made.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield reports
    thread.join(50)
    assert not thread.is_alive()


def client(pool: junctura.Pool, name: str) -> dict[str, Any]:
    """What a pool knows of the one client of this name."""
    (found,) = [one for one in pool.stat()["clients"] if one["name"] == name]
    return dict(found)


def wait_until_it_holds(count: int, pool: junctura.Pool, name: str) -> int:
    """Asks a pool until its one client of this name has so many objects; its process."""
    ends = time.monotonic() + 50
    while (found := client(pool, name))["held"] != count:
        assert time.monotonic() < ends, found
    return int(found["pid"])


@contextmanager
def program(text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, which is ended at the end."""
    command = [sys.executable, "-c", text, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def served() -> Iterator[junctura.Pool]:
    """A pool of another process, with an address of ``tcp:``."""
    command = [
        sys.executable,
        "-m",
        "junctura",
        "pool",
        "serve",
        "--pool",
        "tcp://127.0.0.1:0",
        "--announce",
        "--schema",
        "mars",
    ]
    options: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **options, text=True) as process:
        try:
            with junctura.Pool(heard(process), name="model") as pool:
                yield pool
        finally:
            process.kill()
