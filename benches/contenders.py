"""Who takes part: our own load, the machine's limits, and the rivals, each built here and started under one load.

The limits and Redis's client are single C files, compiled when they are asked for; Zenoh and iceoryx2 are in
``rivals``, a Cargo workspace of its own. A rival that cannot be had on this machine is left out, and the figures say
so.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from harness import ROOT, TARGET, Contender, Figures, LeftOutError, call, first_line, program

HERE = ROOT / "benches"
BUILT = TARGET / "benches"
# The memory that `junctura load pool` cycles through before it reuses a slot.
ROTATION_BYTES = 512 << 20
SHARED_MEMORY = Path("/dev/shm")

TOUCHED = {
    "untouched": "first and last bytes written and read",
    "filled": "every byte written, first and last read",
    "touched": "every byte written and read",
}
MODES = {"untouched": "transfer", "touched": "touch"}


@dataclass(frozen=True)
class Load:
    """What is handed over, and how: the same for every contender of a case."""

    payload_bytes: int
    window: int
    touch: str
    rate: float | None = None
    warmup_s: float = 0.5
    seconds: float = 2.0

    @property
    def slots(self) -> int:
        """As many payloads as ours goes through."""
        return max(1, ROTATION_BYTES // self.payload_bytes) if self.payload_bytes > 4096 else self.window + 1

    @property
    def limit_s(self) -> float:
        return self.warmup_s + self.seconds * 4 + 90

    def words(self, slots: int) -> list[str]:
        """As the native programs read it."""
        return [str(self.payload_bytes), str(self.window), str(self.rate or 0), self.touch, str(slots)]


def load_command(load: Load, *extra: str) -> list[str]:
    """Our own load as a command; the first word is looked up when it runs."""
    mode = ["--mode", MODES[load.touch], "--size", str(load.payload_bytes)]
    command = [
        str(TARGET / "release/junctura"),
        "load",
        "pool",
        "--json",
        *(extra if "--mode" in extra else [*mode, *extra]),
    ]
    command += ["--window", str(load.window), "--warmup", f"{load.warmup_s}s", "--duration", f"{load.seconds}s"]
    return command + (["--rate", str(load.rate)] if load.rate else [])


def run_load(command: list[str], limit_s: float) -> Figures:
    """Runs our own load."""
    program("junctura")
    figures: Figures = json.loads(call(command, limit_s))
    return checked(figures, "junctura load pool")


def checked(figures: Figures, name: str) -> Figures:
    """Figures of a run that handed everything over."""
    wrong = {what: figures[what] for what in ("lost", "damaged", "duplicates", "gaps") if figures.get(what)}
    if wrong:
        raise LeftOutError(f"{name}: {wrong}")
    if not figures["objects"]:
        raise LeftOutError(f"{name}: nothing was handed over")
    return figures


def ours(load: Load, *extra: str, name: str = "junctura") -> Contender:
    awaited = f"the server's acknowledgement, up to {load.window} outstanding"
    if load.window == 1:
        awaited = "the server's acknowledgement of each"
    command = load_command(load, *extra)
    touched = "a stamp of 64 bytes" if "metadata" in extra else TOUCHED[load.touch]
    return Contender(name, "us", awaited, touched, command, lambda: run_load(command, load.limit_s))


def limit(mode: str, load: Load) -> Contender:
    """One of the machine's limits: ``ring``, ``ring-copy``, ``socket``, ``relay``."""
    names = {
        "ring": "limit: ring in shared memory",
        "ring-copy": "limit: ring in shared memory, one copy",
        "socket": "limit: unix socket, payload copied through",
        "relay": "limit: two wake-ups, through a process between",
    }
    answers = {"socket": "an answer of the consumer", "relay": "an answer of the process between"}
    answer = answers.get(mode, "that the consumer is done")
    command = [str(BUILT / "limits"), mode, *load.words(load.slots), str(load.warmup_s), str(load.seconds)]

    def run() -> Figures:
        compiled("limits/limits.c")
        return checked(json.loads(call(command, load.limit_s)), mode)

    return Contender(names[mode], "limit", f"{answer}, when {load.window} have none", TOUCHED[load.touch], command, run)


def memcpy(load: Load) -> Contender:
    command = [str(BUILT / "limits"), "memcpy", str(load.payload_bytes), str(load.seconds)]

    def run() -> Figures:
        compiled("limits/limits.c")
        figures: Figures = json.loads(call(command, load.limit_s))
        return figures

    return Contender("limit: memcpy, one thread", "limit", "nothing", "every byte read and written", command, run)


def limit_of_pairs(mode: str, load: Load, count: int) -> Contender:
    """So many pairs at once, each by itself: what is left of the machine's limit when all want it."""
    slots = max(load.window + 1, load.slots // count)
    # Long enough for all of them to have begun.
    warmup_s = load.warmup_s + count / 50
    command = [str(BUILT / "limits"), mode, *load.words(slots), str(warmup_s), str(load.seconds)]

    def one(_: int) -> Figures:
        return checked(json.loads(call(command, load.limit_s)), mode)

    def run() -> Figures:
        compiled("limits/limits.c")
        with ThreadPoolExecutor(count) as pairs:
            parts = list(pairs.map(one, range(count)))
        return {"objects_per_s": sum(part["objects_per_s"] for part in parts), "pairs": parts}

    single = limit(mode, load)
    return replace(single, name=f"{single.name}, {count} pairs", command=command, run=run)


def redis(load: Load) -> Contender:
    command = [str(BUILT / "redis_streams"), "ROLE", *load.words(0), "CONTROL", "SOCKET"]

    def run() -> Figures:
        binary = compiled("rivals/redis_streams.c", "-lhiredis")
        with meeting() as place, redis_server(place) as socket:
            return pair(str(binary), load, 0, place, socket)

    awaited = f"the answer to XADD, up to {load.window} outstanding; XREAD by the consumer"
    return Contender("Redis streams (C, unix socket)", "rival", awaited, TOUCHED[load.touch], command, run)


def rust_rival(name: str, binary: str, load: Load, slots: int) -> Contender:
    command = [str(TARGET / "rivals/release" / binary), "ROLE", *load.words(slots), "CONTROL", "RENDEZVOUS"]

    def run() -> Figures:
        built_rivals()
        with meeting() as place:
            return pair(command[0], load, slots, place, place / "pair")

    awaited = f"nothing; no more than {load.window} are on their way"
    touched = TOUCHED[load.touch] + (f", {slots} payloads in turn" if slots else "")
    return Contender(name, "rival", awaited, touched, command, run)


def zenoh(load: Load) -> Contender:
    return rust_rival(f"Zenoh (Rust, shared memory), {load.touch}", "zenoh_pair", load, 0)


def iceoryx2(load: Load, rotate: bool = False) -> Contender:
    """``rotate``: go through as many payloads as ours does, instead of using those again that the cache still has."""
    name = f"iceoryx2 (Rust, events), {load.touch}" + (", as many slots as ours" if rotate else "")
    return rust_rival(name, "iceoryx2_pair", load, load.slots if rotate else 0)


def filled(load: Load) -> Load:
    return replace(load, touch="filled")


@contextlib.contextmanager
def meeting() -> Iterator[Path]:
    """A folder of a run's own, in memory where that can be had, with the page that the two sides share."""
    memory = str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="junctura-bench-", dir=memory) as folder:
        (Path(folder) / "control").write_bytes(bytes(4096))
        yield Path(folder)


@contextlib.contextmanager
def redis_server(place: Path) -> Iterator[Path]:
    """A Redis server of this run's own: nothing is persisted, nobody else finds it."""
    if shutil.which("redis-server") is None:
        raise LeftOutError("redis-server is not installed (benches/setup.sh)")
    socket = place / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", str(place)]
    server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while not socket.exists():
            if server.poll() is not None or time.monotonic() > end:
                raise LeftOutError("redis-server did not start")
            time.sleep(0.01)
        yield socket
    finally:
        server.terminate()
        server.wait()


def pair(binary: str, load: Load, slots: int, place: Path, rendezvous: Path) -> Figures:
    """Starts a consumer and a producer, lets them run, and gives what the consumer measured."""
    name = Path(binary).name
    arguments = [*load.words(slots), str(place / "control"), str(rendezvous)]
    started: list[subprocess.Popen[str]] = []

    def stop() -> None:
        for process in started:
            process.kill()

    guard = threading.Timer(load.limit_s, stop)
    guard.start()
    try:
        for role in ("consumer", "producer"):
            started.append(start(binary, role, arguments, place))
            if said(started[-1]) != "ready\n":
                raise LeftOutError(f"{name}: {complaint(place, role)}")
        begin_ns = time.monotonic_ns() + int(load.warmup_s * 1e9)
        times = f"{begin_ns} {begin_ns + int(load.seconds * 1e9)}\n"
        for process in started:
            tell(process, times)
        line = said(started[0])
        if not line:
            raise LeftOutError(f"{name}: {complaint(place, 'consumer')} {complaint(place, 'producer')}")
        return checked(json.loads(line), name)
    finally:
        guard.cancel()
        for process in started:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                process.communicate(timeout=10) if process.poll() is None else None
        stop()
        for process in started:
            process.wait()


def start(binary: str, role: str, arguments: list[str], place: Path) -> subprocess.Popen[str]:
    with (place / f"{role}.log").open("w", encoding="utf-8") as log:
        command = [binary, role, *arguments]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def complaint(place: Path, role: str) -> str:
    """The last thing that a side said before it ended."""
    log = place / f"{role}.log"
    lines = log.read_text(encoding="utf-8").strip().splitlines() if log.exists() else []
    return f"{role}: {lines[-1] if lines else 'it ended without a word'}"


@cache
def compiled(source: str, *libraries: str) -> Path:
    """A C file of ours as a program."""
    path = BUILT / Path(source).stem
    BUILT.mkdir(parents=True, exist_ok=True)
    if shutil.which("cc") is None:
        raise LeftOutError("there is no C compiler")
    call(["cc", "-O3", "-march=native", "-Wall", "-o", str(path), str(HERE / source), *libraries], 120)
    return path


@cache
def built_rivals() -> None:
    """Zenoh and iceoryx2; the first time this takes minutes."""
    print("  building benches/rivals", file=sys.stderr, flush=True)
    manifest, target = str(HERE / "rivals/Cargo.toml"), str(TARGET / "rivals")
    call(["cargo", "build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", target], 3600)


def versions() -> dict[str, str]:
    """Of those that take part."""
    lock = (HERE / "rivals/Cargo.lock").read_text(encoding="utf-8")
    found = {name: re.search(rf'name = "{name}"\nversion = "(.*)"', lock) for name in ("iceoryx2", "zenoh")}
    rust = {name: match[1] for name, match in found.items() if match}
    return {**rust, "redis": first_line("redis-server", "--version"), "cc": first_line("cc", "--version")}
