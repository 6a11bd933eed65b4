"""Measures what a reader that is stuck, or slow, costs those who are not.

One producer and one consumer hand over as many fields as they can, on a server of their own for each sample; beside
them a second reader receives everything through a requirement, and releases nothing of it, ever. It holds a window of
eight objects. What it keeps beyond those is bounded by its quota, or by memory until it has been stuck for so long; it
is then broken, told so, and named in ``stat``, or the sample does not count. Where it is broken for being stuck, offers
wait for that time, once: that is in the warm-up, and the figures are those of the time after.

A reader that is merely slow, four times slower than the producer, is waited for, and loses nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contenders import TOUCHED, Load, load_command, run_load
from harness import RATE, ROOT, Bench, Case, Check, Contender, Figures, LeftOutError, begin, served

import junctura

READER = ROOT / "benches/stuck_reader.py"
# Of the time that a stuck one is waited for: no more than a part of the warm-up.
STUCK_AFTER_S = 0.1
SLOW_RATE = 2000.0


@dataclass(frozen=True)
class Reader:
    """One that is in the way: its name, what it does, the terms of its requirement."""

    name: str
    way: str
    terms: dict[str, Any]

    def start(self, url: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(READER), url, self.name, self.way, json.dumps(self.terms)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise LeftOutError(f"{self.name} did not begin")
        return process


def end(process: subprocess.Popen[str]) -> Figures:
    """Lets a reader go on and end; what it says."""
    out, _ = process.communicate(timeout=60)
    if process.returncode != 0:
        raise LeftOutError("a reader failed")
    said: Figures = json.loads(out)
    return said


def stuck_ones_were_told(url: str, readers: Sequence[Reader], started: Sequence[subprocess.Popen[str]]) -> None:
    """The server names those that are broken, and they hear of it themselves."""
    with junctura.Pool(url) as pool:
        named = {broken["client"]["name"]: broken for broken in pool.stat()["broken_requirements"]}
    for reader, process in zip(readers, started, strict=True):
        if reader.name not in named or not named[reader.name]["why"] or not named[reader.name]["lost"]:
            raise LeftOutError(f"{reader.name} is not named as broken: {named}")
        said = end(process)
        if said["told"] != "broken" or not said["missed"]:
            raise LeftOutError(f"{reader.name} was not told: {said}")


def slow_ones_lost_nothing(
    url: str, readers: Sequence[Reader], started: Sequence[subprocess.Popen[str]], objects: int
) -> None:
    """They have received everything."""
    last = {"class": "rd", "expver": "0001", "stream": "enfo", "date": "20000101", "time": "0000"}
    with junctura.Pool(url) as pool:
        pool.offer(b"", {**last, "type": "pf", "levtype": "sfc", "step": 0, "param": "last"})
        for reader, process in zip(readers, started, strict=True):
            said = end(process)
            if said != {"objects": objects, "gaps": 0}:
                raise LeftOutError(f"{reader.name} got {said} of {objects}")


def beside(name: str, load: Load, budget: str, readers: Sequence[Reader], *extra: str) -> Contender:
    """The load, beside readers that are in the way."""
    command = load_command(load, *extra)

    def run() -> Figures:
        with served("--schema", "mars", "--budget", budget) as server:
            started = [reader.start(server.url) for reader in readers]
            try:
                figures = run_load([*command, "--pool", server.url], load.limit_s)
                if readers and readers[0].way == "stuck":
                    stuck_ones_were_told(server.url, readers, started)
                else:
                    slow_ones_lost_nothing(server.url, readers, started, figures["objects"])
            finally:
                for process in started:
                    process.kill()
                    process.wait()
            return figures

    awaited = f"the server's acknowledgement, up to {load.window} outstanding"
    return Contender(name, "us", awaited, TOUCHED[load.touch], command, run)


def stuck_case(bench: Bench, size: str, payload_bytes: int, budget: str, quota: str) -> Case:
    seconds, warmup_s = (0.5, 1.0) if bench.quick else (3.0, 2.0)
    load = Load(payload_bytes, 64, "touched", warmup_s=warmup_s, seconds=seconds)
    viewer = Reader("viewer", "stuck", {"on_full": "break", "quota": quota})
    hanging = Reader("hanging", "stuck", {"stuck_after": STUCK_AFTER_S})
    groups = [
        Reader(name, "stuck", {"name": name, "group": True, "stuck_after": STUCK_AFTER_S}) for name in ("one", "two")
    ]
    contenders = [
        beside("nobody in the way", load, budget, []),
        # What two runs of the same differ by.
        beside("nobody in the way, once more", load, budget, []),
        beside(f"a stuck one, broken at its quota of {quota}", load, budget, [viewer]),
        beside(f"a stuck one, broken after {STUCK_AFTER_S:g} s", load, budget, [hanging]),
        beside(f"two stuck groups, broken after {STUCK_AFTER_S:g} s", load, budget, groups),
    ]
    checks = [Check(one.name, at_least=0.95, times=contenders[0].name, in_turn=True) for one in contenders[1:]]
    return Case(
        f"stuck-{size}", f"objects of {size}, window 64, beside readers that never release", RATE, contenders, checks
    )


def slow_case(bench: Bench) -> Case:
    seconds, warmup_s = (1.0, 1.0) if bench.quick else (5.0, 2.0)
    load = Load(804 << 10, 16, "touched", rate=SLOW_RATE, warmup_s=warmup_s, seconds=seconds)
    # Memory for some eighty fields: the slow one fills it at once, and from then on it sets the pace.
    budget = "64MiB"
    slow = Reader("slow", "slow", {})
    alone = beside(f"nobody in the way, {SLOW_RATE:,.0f} a second", load, budget, [], "--groups", "1")
    slowed = beside("one that takes 2 ms for each, and loses nothing", load, budget, [slow], "--groups", "1")
    checks = [Check(slowed.name, at_least=0.2, times=alone.name), Check(slowed.name, at_most=0.3, times=alone.name)]
    question = "fields of 804 KiB at a fixed rate, beside a reader that is four times slower"
    return Case("slow-804KiB", question, RATE, [alone, slowed], checks)


def main() -> int:
    bench = begin("stuck", "What does a reader that is stuck, or slow, cost those who are not?")
    cases = [
        # As much memory as the load takes before it begins, so that no page is made while it is measured.
        stuck_case(bench, "804KiB", 804 << 10, "920MiB", "64MiB"),
        stuck_case(bench, "1KiB", 1 << 10, "16MiB", "1MiB"),
        slow_case(bench),
    ]
    return bench.run(cases)


if __name__ == "__main__":
    sys.exit(main())
