"""Measures what it costs a pool that others look at it.

Fifty producers and fifty consumers load a server: alone, with a board that nobody reads, and while two scrapers read
its metrics each second, ``junctura top`` runs on a terminal, and a client asks for ``stat`` twenty times a second.
Compared are the processor time of the server's deciding thread for an object, as ``stat`` has it before and after the
load, and the delays of deliveries at a fixed rate.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import tempfile
import termios
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from contenders import Load, checked, load_command
from harness import Bench, Case, Check, Contender, Figures, Measure, begin, call, program

import junctura

CPU = Measure("server_us_per_object", "us/object", more_is_better=False)
TAIL = Measure("delivery_us.p999", "us, p99.9", more_is_better=False)
TOKEN = "a-token-of-this-benchmark"
STATS_PER_S = 20
ALONE, UNREAD, LOOKED_AT = "nobody looks", "a board that nobody reads", "two scrapers, top, 20 stat a second"


class Served:
    """A server of its own, and those that look at it."""

    def __init__(self, folder: Path, way: str) -> None:
        self.way = way
        self.url = f"unix:{folder}/pool.sock"
        command = [str(program("junctura")), "pool", "serve", "--pool", self.url, "--budget", "2GiB"]
        if way == LOOKED_AT:
            (folder / "token").write_text(TOKEN)
            command += ["--metrics", "127.0.0.1:0", "--metrics-token-file", str(folder / "token")]
        self.server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.server.stderr is not None
        self.server.stderr.readline()
        self.metrics = self.server.stderr.readline().split()[-1] if way == LOOKED_AT else ""
        self.over = threading.Event()

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[None]:
        if self.way == UNREAD:
            with junctura.Pool(self.url) as pool:
                pool.board()
        if self.way != LOOKED_AT:
            yield
            return
        near, far = pty.openpty()
        termios.tcsetwinsize(far, (24, 80))
        command = [str(program("junctura")), "top", "--pool", self.url]
        top = subprocess.Popen(command, stdin=far, stdout=far, env={**os.environ, "TERM": "xterm"})
        work = [self.scrape, self.scrape, self.ask, lambda: self.read(near)]
        threads = [threading.Thread(target=one, daemon=True) for one in work]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            top.terminate()
            top.wait()
            os.close(far)
            for thread in threads:
                thread.join()
            os.close(near)

    def scrape(self) -> None:
        request = urllib.request.Request(self.metrics, headers={"Authorization": f"Bearer {TOKEN}"})
        while not self.over.wait(1):
            with urllib.request.urlopen(request, timeout=10) as response:
                response.read()

    def ask(self) -> None:
        with junctura.Pool(self.url) as pool:
            while not self.over.wait(1 / STATS_PER_S):
                pool.stat()

    def read(self, near: int) -> None:
        """What `top` draws; the terminal ends with it."""
        with contextlib.suppress(OSError):
            while os.read(near, 1 << 16):
                pass

    def figures(self) -> tuple[int, int]:
        """Objects that were offered, and the nanoseconds of the deciding thread."""
        with junctura.Pool(self.url) as pool:
            stat = pool.stat()
        return stat["totals"]["offered"], stat["server"]["cpu_ns"]

    def end(self) -> None:
        self.server.kill()
        self.server.wait()


def contender(load: Load, way: str, pairs: int) -> Contender:
    people = ["--producers", str(pairs), "--consumers", str(pairs), "--members", "50"]
    command = load_command(load, *people)

    def run() -> Figures:
        with tempfile.TemporaryDirectory() as folder:
            served = Served(Path(folder), way)
            try:
                with served.looked_at():
                    objects, busy_ns = served.figures()
                    figures: Figures = json.loads(call([*command, "--pool", served.url], load.limit_s))
                    all_objects, all_ns = served.figures()
            finally:
                served.end()
        checked(figures, "junctura load pool")
        figures["server_us_per_object"] = (all_ns - busy_ns) / 1e3 / (all_objects - objects)
        return figures

    return Contender(way, "us", "the server's acknowledgement", "first and last bytes", command, run)


def case(bench: Bench, name: str, question: str, measure: Measure, limits: dict[str, float]) -> Case:
    rate = 1000.0 if measure is TAIL else None
    seconds, pairs = (0.5, 5) if bench.quick else (10.0, 50)
    load = Load(804 << 10, 16, "untouched", rate=rate, warmup_s=0.5, seconds=seconds)
    contenders = [contender(load, way, pairs) for way in (ALONE, UNREAD, LOOKED_AT)]
    checks = [Check(way, at_most=limit, times=ALONE, in_turn=True) for way, limit in limits.items()]
    return Case(name, question, measure, contenders, checks, rounds_max=None)


def main() -> int:
    bench = begin("looking", "What does it cost a pool that others look at it?")
    cpu = "the server's processor time for an object of 804 KiB at full rate"
    tail = "the delays of deliveries at 1,000 objects a second"
    return bench.run(
        [
            # The budget of observers is 1 % of the thread; a look may cost 1 % more.
            case(bench, "looking-cpu", cpu, CPU, {UNREAD: 1.015, LOOKED_AT: 1.02}),
            case(bench, "looking-delay", tail, TAIL, {LOOKED_AT: 1.2}),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
