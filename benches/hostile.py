"""Measures what hostile clients cost an honest pair, and whether the server's memory stays within what it states.

One producer and one consumer hand over on a server of their own for each sample: alone, beside as many processes that
only compute, beside hostile clients of another server, and beside hostile clients of its own
(``hostile_client.py``), in turns. The first two show what the operating system takes from the pair by sharing the
cores: a server that is busy with hostile clients needs one, whichever server it is. The processes that compute and the
hostile ones run when nothing else wants a core (SCHED_IDLE), the servers and the pair as usual.
With ``--pin``, on six cores or more, the server and the pair have cores that no hostile process runs on.

The pair connects while the hostile clients are stopped (SIGSTOP), and is measured when they go on; how newcomers fare
is measured beside. Latency is from the offer to the delivery of small objects at a fixed pace, one outstanding: a stall
delays the offers behind it, which is not counted, so the pace that was reached belongs to the figure. Throughput is
that of a second run with 64 outstanding. A pair that fails counts as one that hands nothing over.

Memory: private pages and shared memory of the server, every half second, beside what ``stat`` accounts for, and beside
the sum of the limits in ``stat`` (docs/guide/security.md, "Memory and time of a server"). The server's longest turn
(``longest_turn_us``) stands beside the longest that a client waits for the answer to ``Sync`` (``probe``).

``--each`` measures each kind alone, with a few clients of it, those included against which nothing is promised.
It runs with whatever ``junctura`` is in ``PATH``, and needs Python alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from harness import (
    ROOT,
    TICKS_PER_S,
    Bench,
    Case,
    Check,
    Contender,
    Figures,
    LeftOutError,
    Measure,
    begin,
    first_line,
    portable,
)
from hostile_client import CONTROL, KINDS, UNPROTECTED
from hostile_wire import STAT, SYNC, Door

CLIENT = ROOT / "benches/hostile_client.py"
LATENCY_MAX, RATE_MIN = 3.0, 0.5
SAMPLES_MIN, ROUNDS_MAX = 20_000, 3
CORES_TO_PIN = 6
# What an object that a requirement is owed takes of the server (limit `owed`).
OWED_BYTES = 64
# Of a run, before what is measured; and after it, until it counts as failed.
WARMUP_S, GRACE_S = 0.5, 6.0
# With fewer, a run counts as failed.
OBJECTS_MIN = 10
# Rings of a client, each with a mebibyte at most, and what the server has read and not decided yet.
CLIENT_BYTES = 3 << 20
MIB = 1 << 20

P999 = Measure("latency.delivery_us.p999", "us, p99.9", more_is_better=False)
RATE = Measure("rate.objects_per_s", "objects/s", more_is_better=True)
MEMORY = Measure("memory.share_of_stated", "of the stated limits", more_is_better=False)


@dataclass(frozen=True)
class Load:
    """What the pair hands over: ``window`` objects are outstanding at most, at a pace if there is one."""

    payload: str
    window: int
    seconds: float
    pace: float | None = None
    # Keys of one load are not those of another one of the same server.
    levels: int = 10

    def command(self, url: str) -> list[str]:
        words = [
            command(),
            "load",
            "pool",
            "--json",
            "--mode",
            "touch",
            "--size",
            self.payload,
            "--window",
            str(self.window),
        ]
        words += ["--levels", str(self.levels), "--warmup", f"{WARMUP_S}s", "--duration", f"{self.seconds}s"]
        return [*words, *(["--rate", str(self.pace)] if self.pace else []), "--pool", url]


@dataclass(frozen=True)
class Place:
    """Where everything runs: ``way`` is ``unix`` or ``tcp``; cores, where they are set apart."""

    way: str
    budget: str
    servers_cores: set[int] = field(default_factory=set)
    pairs_cores: set[int] = field(default_factory=set)
    hostile_cores: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Served:
    """A server: its process, the address of the pair and the hostile clients, and that of its gate."""

    process: subprocess.Popen[str]
    url: str
    gate: str


def command() -> str:
    """The command that is measured: the first in ``PATH``."""
    found = shutil.which("junctura")
    if found is None:
        raise SystemExit("hostile: there is no junctura in PATH")
    return found


def on_cores(cores: set[int], *, yields: bool = False) -> Any:
    """What a process does before it becomes its program."""

    def settle() -> None:
        if cores:
            os.sched_setaffinity(0, cores)
        if yields:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

    return settle


@contextlib.contextmanager
def served(place: Place) -> Iterator[Served]:
    """A server of its own for a sample."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        words = [
            command(),
            "pool",
            "serve",
            "--pool",
            f"unix:{folder}/pool.sock",
            "--listen",
            "tcp://127.0.0.1:0",
            "--announce",
        ]
        words += ["--schema", "free", "--budget", place.budget]
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=on_cores(place.servers_cores),
        )
        try:
            assert process.stdout is not None
            url, gate = process.stdout.readline().strip(), process.stdout.readline().strip()
            if not gate:
                raise LeftOutError("junctura pool serve did not begin")
            yield Served(process, gate if place.way == "tcp" else url, gate)
        finally:
            process.kill()
            process.communicate()


class Siege:
    """Hostile clients: a process for each kind named, in a process group of its own."""

    READY_S, LAST_WORDS_S = 20.0, 5.0

    def __init__(self, server: Served, place: Place, kinds: list[str]) -> None:
        self.kinds = kinds
        self.said: list[dict[str, Any]] = []
        self.processes = [self._start(server, place, kind) for kind in kinds]

    @staticmethod
    def _start(server: Served, place: Place, kind: str) -> subprocess.Popen[str]:
        words = [sys.executable, str(CLIENT), kind, server.url, server.gate]
        settle = on_cores(place.hostile_cores, yields=True)
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=settle, process_group=0)

    def __enter__(self) -> Siege:
        until = time.monotonic() + self.READY_S
        for process in self.processes:
            assert process.stdout is not None
            if select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                process.stdout.readline()
        return self

    def signal_all(self, number: int) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    def __exit__(self, *_: object) -> None:
        self.signal_all(signal.SIGCONT)
        for process in self.processes:
            process.terminate()
        until = time.monotonic() + self.LAST_WORDS_S
        for kind, process in zip(self.kinds, self.processes, strict=True):
            with contextlib.suppress(subprocess.TimeoutExpired):
                out = process.communicate(timeout=max(0.1, until - time.monotonic()))[0]
                self.said.append(last_words(kind, out))
        # A kind may have a process of its own.
        self.signal_all(signal.SIGKILL)
        for process in self.processes:
            process.communicate()


def last_words(kind: str, out: str) -> dict[str, Any]:
    lines = [line for line in out.splitlines() if line.startswith("{")]
    words: dict[str, Any] = json.loads(lines[-1]) if lines else {"kind": kind}
    return words


class Watch:
    """Watches a server from a thread: memory, processor time, and how long a client of no weight waits."""

    PROBED_EVERY_S, LOOKED_EVERY_S, CONNECTED_EVERY_S = 0.005, 0.5, 0.1

    def __init__(self, server: Served) -> None:
        self.pid = server.process.pid
        counts: Counter[str] = Counter()
        self.prober = Door(server.url, counts, name="probe")
        self.asker = Door(server.url, counts, name="stat")
        self.starter = Door(server.url, counts, name="starter")
        self.url = server.url
        self.waits_us: list[float] = []
        self.connects_us: list[float] = []
        self.refused: Counter[str] = Counter()
        self.memory: list[dict[str, float]] = []
        self.stat: dict[str, Any] = json.loads(self.asker.ask(STAT)[1])
        self.failure = ""
        self.began = self.cpu()
        self.began_at = time.monotonic()
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=one, daemon=True) for one in self._tasks()]

    def _tasks(self) -> list[tuple[Any, float]]:
        return [
            (self._probe, self.PROBED_EVERY_S),
            (self._look, self.LOOKED_EVERY_S),
            (self._connect, self.CONNECTED_EVERY_S),
        ]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
        for door in (self.prober, self.asker, self.starter):
            door.close()

    def begin(self) -> None:
        """What is measured begins now."""
        self.waits_us.clear()
        self.connects_us.clear()
        self.refused.clear()
        self.began, self.began_at = self.cpu(), time.monotonic()

    def _repeat(self, task: Any, seconds: float) -> None:
        try:
            while not self._end.wait(seconds):
                task()
        except (OSError, ValueError) as error:
            self.failure = self.failure or f"{task.__name__}: {error}"

    def _probe(self) -> None:
        began = time.monotonic()
        self.prober.ask(SYNC)
        self.waits_us.append((time.monotonic() - began) * 1e6)

    def _connect(self) -> None:
        began = time.monotonic()
        try:
            Door(self.url, Counter(), name="newcomer").close()
        except OSError as error:
            self.refused[str(error)[:100]] += 1
        else:
            self.connects_us.append((time.monotonic() - began) * 1e6)

    def _look(self) -> None:
        self.stat = json.loads(self.asker.ask(STAT)[1])
        taken = taken_bytes(self.pid)
        accounted = accounted_bytes(self.stat)
        self.memory.append({**taken, "accounted": accounted, "more": taken["private"] + taken["shared"] - accounted})

    def cpu(self) -> dict[str, float]:
        """Seconds that all threads have run, that the one that decides has, and that it waited for a core."""
        all_ns = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                all_ns += schedule(task)[0]
        ran, waited = schedule(Path(f"/proc/{self.pid}/task/{self.pid}"))
        return {"all": all_ns / 1e9, "decider": ran / 1e9, "decider_waited": waited / 1e9}

    def memory_figures(self) -> Figures:
        return memory_figures(self.memory, self.stat, self.pid)

    def figures(self) -> Figures:
        elapsed = time.monotonic() - self.began_at
        cores = {f"{name}_cores": round((now - self.began[name]) / elapsed, 3) for name, now in self.cpu().items()}
        return {
            "server": cores,
            "probe_us": quantiles(self.waits_us),
            "longest_turn_us": round(self.stat["server"]["traffic"]["longest_turn_ns"] / 1000),
            "newcomers_us": {**quantiles(self.connects_us), "refused": dict(self.refused)},
            "totals": self.stat["totals"],
            **({"watch_failed": self.failure} if self.failure else {}),
        }


def quantiles(values: list[float]) -> Figures:
    found = sorted(values) or [0.0]
    parts = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        "count": len(values),
        **{name: round(found[min(len(found) - 1, int(len(found) * part))]) for name, part in parts.items()},
    }


def schedule(task: Path) -> tuple[int, int]:
    """Nanoseconds that a thread has run, and that it could have and had no core, where the kernel counts them."""
    try:
        ran, waited, _ = (task / "schedstat").read_text(encoding="ascii").split()
    except OSError:
        times = (task / "stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()[11:13]
        return sum(int(time) for time in times) * 1_000_000_000 // TICKS_PER_S, 0
    return int(ran), int(waited)


def status(pid: int) -> dict[str, int]:
    """Bytes by the names of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    words = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) << 10 for name, size, _ in words}


def taken_bytes(pid: int) -> dict[str, float]:
    """Private pages, and shared memory that the server has descriptors of (payloads), whoever made it resident.

    Mapped pages are not added: a gate maps payloads once for each link. Rings of clients are left out.
    """
    shared: dict[int, int] = {}
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if "memfd" in str(descriptor.readlink()):
                found = descriptor.stat()
                if stat.S_ISREG(found.st_mode):
                    shared[found.st_ino] = found.st_blocks * 512
    resident = status(pid)
    private = resident.get("RssAnon", resident["VmRSS"])
    return {"private": private, "shared": sum(shared.values())}


def accounted_bytes(figures: dict[str, Any]) -> float:
    """What ``stat`` says that the server keeps."""
    memory, interests = figures["memory"], figures["interests"]
    kept = memory["used_bytes"] + memory["record_bytes"] + interests["selector_bytes"] + interests["gap_bytes"]
    return float(kept + interests["owed"] * OWED_BYTES + figures["server"]["backlog_bytes"])


def stated_bytes(figures: dict[str, Any], clients: int) -> dict[str, int]:
    """The limits that a server states, for so many clients."""
    limits = figures["limits"]
    return {
        "payloads": figures["memory"]["budget_bytes"],
        "attributes": figures["record_budget_bytes"],
        "selectors": limits["selector_bytes"],
        "unread": limits["unread_bytes"],
        "gaps": limits["gap_bytes"],
        "owed": limits["owed"] * OWED_BYTES,
        "waiting_offers": limits["waiting_offer_bytes_per_client"] * clients,
        "connections": CLIENT_BYTES * clients,
    }


def memory_figures(samples: list[dict[str, float]], figures: dict[str, Any], pid: int) -> Figures:
    """In MiB: the most that was taken, and the most beyond what the server accounts for."""
    stated = stated_bytes(figures, figures["clients_connected"])
    peak = max((one["private"] + one["shared"] for one in samples), default=0.0)
    most = {
        name: max((one[name] for one in samples), default=0.0) for name in ("private", "shared", "accounted", "more")
    }
    hwm = status(pid).get("VmHWM", 0)
    return {
        "taken_mib": round(peak / MIB, 1),
        **{f"{name}_mib": round(size / MIB, 1) for name, size in most.items()},
        "hwm_mib": round(hwm / MIB, 1),
        "stated_mib": {name: round(size / MIB, 1) for name, size in stated.items()},
        "share_of_stated": round(peak / sum(stated.values()), 4),
        "clients": figures["clients_connected"],
    }


def start_pair(load: Load, url: str, place: Place) -> subprocess.Popen[str]:
    env = dict(os.environ)
    if place.way == "tcp":
        env["JUNCTURA_TRANSPORTS"] = "tcp"
    return subprocess.Popen(
        load.command(url),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        preexec_fn=on_cores(place.pairs_cores),
        process_group=0,
    )


def await_offers(asker: Door, process: subprocess.Popen[str]) -> None:
    """Waits until the pair hands over; nobody else offers meanwhile."""
    before = json.loads(asker.ask(STAT)[1])["totals"]["offered"]
    until = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < until:
        if json.loads(asker.ask(STAT)[1])["totals"]["offered"] > before + 20:
            return
        time.sleep(0.005)


def end_pair(load: Load, process: subprocess.Popen[str]) -> Figures:
    """What the pair measured; where it fails, why."""
    limit_s = WARMUP_S + load.seconds + GRACE_S
    try:
        out, complaint = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        out, complaint = "", f"the pair did not end within {limit_s:.0f} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    figures: Figures = json.loads(out) if out else {"objects": 0}
    if figures["objects"] < OBJECTS_MIN:
        lines = complaint.strip().splitlines() or [f"{figures['objects']} objects were handed over"]
        never = dict.fromkeys(("p50", "p99", "p999"), limit_s * 1e6)
        return {"failed": lines[-1][:300], "objects": 0, "objects_per_s": 0.0, "delivery_us": never}
    kept = ("objects_per_s", "gib_per_s", "offer_us", "delivery_us", "server_cpu_us_per_object", "objects")
    # "twice": of the run before, if a hostile client kept it.
    wrong = {name: figures[name] for name in ("lost", "damaged", "duplicates", "gaps") if figures[name]}
    return {**{name: figures[name] for name in kept}, **({"wrong": wrong} if wrong else {})}


def sample(loads: dict[str, Load], place: Place, kinds: list[str], *, elsewhere: bool = False) -> Figures:
    """Runs of the pair, one for each load, beside one process of each kind named, of its server or of another one."""
    figures: Figures = {}
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(served(place))
        target = stack.enter_context(served(place)) if elsewhere else server
        watch = stack.enter_context(Watch(server))
        siege = stack.enter_context(Siege(target, place, kinds))
        for name, load in loads.items():
            siege.signal_all(signal.SIGSTOP)
            with contextlib.suppress(OSError):
                # Everything that was sent before is over.
                watch.starter.sync()
            pair = start_pair(load, server.url, place)
            with contextlib.suppress(OSError):
                await_offers(watch.starter, pair)
            siege.signal_all(signal.SIGCONT)
            if name == next(iter(loads)):
                watch.begin()
            figures[name] = end_pair(load, pair)
            if name == next(iter(loads)) and server.process.poll() is None:
                figures |= watch.figures()
        if server.process.poll() is None:
            figures["memory"] = watch.memory_figures()
        else:
            figures |= {"server_ended": server.process.returncode, "memory": {"share_of_stated": 99.0}}
        figures["load"] = round(os.getloadavg()[0], 1)
    if "latency" in loads:
        figures["samples"] = round(figures["latency"]["objects_per_s"] * loads["latency"].seconds)
    return {**figures, "hostile": siege.said}


def contender(
    name: str, loads: dict[str, Load], place: Place, kinds: list[str], *, elsewhere: bool = False
) -> Contender:
    """The pair beside processes of these kinds."""
    load = next(iter(loads.values()))
    awaited = f"the server's acknowledgement, up to {load.window} outstanding"
    touched = "every byte written and read"
    command_line = load.command("URL")
    return Contender(
        name, "us", awaited, touched, command_line, lambda: sample(loads, place, kinds, elsewhere=elsewhere)
    )


def small_loads(bench: Bench) -> dict[str, Load]:
    options = bench.arguments
    return {
        "latency": Load("4KiB", 1, options.seconds, pace=options.pace),
        "rate": Load("4KiB", 64, options.seconds / 2, levels=137),
    }


def together(bench: Bench, place: Place, kinds: list[str]) -> list[Case]:
    """All kinds at once."""
    clients = bench.arguments.clients
    mix = [kinds[n % len(kinds)] for n in range(clients)]
    sizes = {"4KiB": small_loads(bench), "1MiB": {"rate": Load("1MiB", 16, bench.arguments.seconds / 2)}}
    cases = []
    for size, loads in sizes.items():
        alone = contender("alone", loads, place, [])
        computing = contender(f"beside {clients} that compute", loads, place, ["compute"] * clients)
        other = contender(f"beside {clients} hostile clients of another server", loads, place, mix, elsewhere=True)
        hostile = contender(f"beside {clients} hostile clients", loads, place, mix)
        checks = [Check(hostile.name, at_least=RATE_MIN, times=alone.name, measure=RATE, in_turn=True)]
        if "latency" in loads:
            # Also beside clients that take as much of the cores and nothing of the server.
            checks.insert(0, Check(hostile.name, at_most=LATENCY_MAX, times=alone.name, measure=P999, in_turn=True))
            checks.insert(1, Check(hostile.name, at_most=LATENCY_MAX, times=other.name, measure=P999, in_turn=True))
        checks.append(Check(hostile.name, at_most=1.0, measure=MEMORY))
        question = f"objects of {size} over {place.way}: latency at {bench.arguments.pace:g} a second, and the most"
        measure = P999 if "latency" in loads else RATE
        contenders = [alone, computing, other, hostile]
        cases.append(Case(f"hostile-{place.way}-{size}", question, measure, contenders, checks, ROUNDS_MAX))
    return cases


def one_by_one(bench: Bench, place: Place, kinds: list[str]) -> Case:
    """Each kind alone."""
    options, loads = bench.arguments, small_loads(bench)
    contenders = [contender("alone", loads, place, [])]
    contenders += [contender(kind, loads, place, [kind] * options.each_clients) for kind in [*CONTROL, *kinds]]
    question = f"objects of 4KiB over {place.way}, beside {options.each_clients} clients of a kind"
    return Case(f"hostile-each-{place.way}", question, P999, contenders)


COLUMNS = {
    "server, cores": "server.all_cores",
    "its deciding thread": "server.decider_cores",
    "that waits for a core": "server.decider_waited_cores",
    "longest turn, ms": "longest_turn_us",
    "longest probe, ms": "probe_us.max",
    "slowest newcomer, ms": "newcomers_us.max",
    "memory, MiB": "memory.taken_mib",
    "accounted": "memory.accounted_mib",
    "beyond at once": "memory.more_mib",
}


def ratios(case: dict[str, Any]) -> str:
    """How each contender of a case differs from the first one, round by round, as Markdown."""
    heads = ["beside", "p99.9, us", "p50", "p99", "p99.9", "throughput", *COLUMNS, ""]
    rows = [f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 2)}---|"]
    first = case["contenders"][0].get("samples", [])
    for one in case["contenders"]:
        samples = one.get("samples", [])
        if not samples:
            continue
        turns = list(zip(samples, first, strict=False))
        cells = [one["name"], f"{median(at(s, P999.path) for s in samples):,.0f}"]
        paths = [f"latency.delivery_us.{part}" for part in ("p50", "p99", "p999")] + [RATE.path]
        cells += [times(at(s, path) / at(f, path) for s, f in turns if at(f, path)) for path in paths]
        for path in COLUMNS.values():
            worst = max(at(s, path) for s in samples)
            cells.append(f"{worst / 1000:.1f}" if "_us" in path else f"{worst:.2f}"[:5].rstrip("."))
        cells.append("; ".join(sorted({note for s in samples for note in notes(s)})))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def times(values: Iterator[float]) -> str:
    """The median of ratios, and where there are several their range."""
    found = sorted(values)
    if not found:
        return "-"
    shown = f"{median(found):.2f}"
    return shown if len(found) == 1 else f"{shown} ({found[0]:.2f} to {found[-1]:.2f})"


def at(figures: Figures, path: str) -> float:
    value: Any = figures
    for part in path.split("."):
        value = value.get(part, {}) if isinstance(value, dict) else {}
    return float(value) if value != {} else 0.0


def notes(figures: Figures) -> list[str]:
    """What is unusual about a sample."""
    parts = [(part, word) for part in ("latency", "rate") for word in ("failed", "wrong")]
    found = [f"{part} {word}: {figures[part][word]}" for part, word in parts if word in figures.get(part, {})]
    found += [f"{name}: {figures[name]}" for name in ("server_ended", "watch_failed") if name in figures]
    newcomers = figures.get("newcomers_us", {"count": 1, "refused": {}})
    if newcomers["refused"] or not newcomers["count"]:
        found.append(f"newcomers: {newcomers['count']} connected, {sum(newcomers['refused'].values())} refused")
    few = figures.get("samples", SAMPLES_MIN) < SAMPLES_MIN
    return [*found, f"few samples ({figures['samples']})"] if few else found


def places(options: argparse.Namespace) -> list[Place]:
    """One for each way; with ``--pin``, cores apart."""
    cores = sorted(os.sched_getaffinity(0))
    if not options.pin:
        return [Place(way, options.budget) for way in options.way]
    if len(cores) < CORES_TO_PIN:
        raise SystemExit(f"hostile: --pin needs {CORES_TO_PIN} cores, there are {len(cores)}")
    apart = set(cores[:2]), set(cores[2:4]), set(cores[4:])
    return [Place(way, options.budget, *apart) for way in options.way]


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clients", type=int, default=30, help="hostile clients, of all kinds in turn (default: 30)")
    parser.add_argument("--kinds", type=words, metavar="A,B", help=f"only these of {', '.join([*KINDS, *UNPROTECTED])}")
    parser.add_argument("--each", action="store_true", help="each kind alone instead of all together")
    parser.add_argument("--each-clients", type=int, default=4, metavar="N", help="clients of each kind (default: 4)")
    parser.add_argument(
        "--way", type=words, default=["unix", "tcp"], help="of the pair and the hostile (default: unix,tcp)"
    )
    parser.add_argument("--seconds", type=float, help="of latency; half of it for throughput (default: 5, quick: 0.5)")
    parser.add_argument("--pace", type=float, default=5000.0, help="objects a second for latency (default: 5000)")
    parser.add_argument("--budget", default="256MiB", help="the server's memory for payloads (default: 256MiB)")
    parser.add_argument("--pin", action="store_true", help="server and pair on cores of their own")


def main() -> int:
    bench = begin("hostile", "What do hostile clients cost an honest pair?", add_options)
    options = bench.arguments
    options.seconds = options.seconds or (0.5 if bench.quick else 5.0)
    unknown = set(options.kinds or []) - {*KINDS, *UNPROTECTED, *CONTROL}
    if unknown:
        raise SystemExit(f"hostile: no such kind: {', '.join(sorted(unknown))}")
    bench.versions.update(junctura=first_line(command(), "--version"), command=portable([command()])[0])
    cases: list[Case] = []
    for place in places(options):
        if options.each:
            bench.name = "hostile_each"
            cases.append(one_by_one(bench, place, options.kinds or [*KINDS, *UNPROTECTED]))
        else:
            cases += together(bench, place, options.kinds or list(KINDS))
    outcome = bench.run(cases)
    for case in bench.cases:
        print(f"\n{case['name']}\n\n{ratios(case)}")
    return outcome


if __name__ == "__main__":
    sys.exit(main())
