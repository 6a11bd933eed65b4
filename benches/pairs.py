"""Measures how much goes through one server with many producers and consumers.

Each consumer follows its own ensemble members among those of all producers. All processes share the cores of this
machine with the server, so more pairs than cores cannot be faster than one; how little slower they are is the question,
and what an object costs the server itself, which alone would be left on a machine with a core for everybody.
"""

from __future__ import annotations

import sys

from contenders import Load, limit_of_pairs, ours
from harness import RATE, Bench, Case, Check, Contender, Measure, begin

SIZES = {
    "1KiB": (1 << 10, "touched"),
    "804KiB": (804 << 10, "untouched"),
    "4.4MiB": (4506 << 10, "untouched"),
    "15MiB": (15 << 20, "untouched"),
}
GROWTH = Measure("memory.growth_mib", "MiB more of the server's own memory than at half time", more_is_better=False)
SERVER_CPU = Measure("server_cpu_us_per_object", "us/object", more_is_better=False)


def pairs(bench: Bench, size: str, count: int, seconds: float, *extra: str, also: str = "") -> Contender:
    payload_bytes, touch = SIZES[size]
    load = Load(payload_bytes, 16, touch, warmup_s=1.0 if bench.quick else 3.0, seconds=seconds)
    people = ["--producers", str(count), "--consumers", str(count), "--members", "50"]
    return ours(load, *people, *extra, name=f"junctura, {count} producers and {count} consumers{also}")


def machine(size: str, count: int, seconds: float) -> Contender:
    """As many pairs with nobody between them: a number handed over in shared memory, and nothing decided."""
    payload_bytes, touch = SIZES[size]
    return limit_of_pairs("ring", Load(payload_bytes, 16, touch, warmup_s=0.5, seconds=seconds), count)


def main() -> int:
    bench = begin("pairs", "How much goes through one server with many producers and consumers?")
    seconds = 0.5 if bench.quick else 5.0
    cases = []
    for size in SIZES:
        contenders = [pairs(bench, size, count, seconds) for count in (1, 10, 50)]
        # Larger ones of fifty pairs do not fit into memory at once: there it is how well they wait that is measured.
        fits = SIZES[size][0] < 1 << 20
        checks = [Check(contenders[-1].name, at_least=100_000)] if fits else []
        contenders += [machine(size, count, seconds) for count in (1, 10, 50) if fits]
        cases.append(Case(f"pairs-{size}", f"objects of {size}, window 16", RATE, contenders, checks))
    ten, fifty = (pairs(bench, "804KiB", count, seconds) for count in (10, 50))
    question = "the server's CPU time for an object of 804 KiB, window 16"
    checks = [Check(fifty.name, at_most=1.2, times=ten.name)]
    cases.append(Case("pairs-server-cpu", question, SERVER_CPU, [ten, fifty], checks))
    lasts_s = 0.5 if bench.quick else 60.0
    lasting = pairs(bench, "804KiB", 50, lasts_s)
    question = f"fields of 804 KiB, window 16, for {lasts_s:g} seconds"
    by_group = ("--retention", "group")
    grouped = pairs(bench, "804KiB", 50, lasts_s, *by_group, also=", released by a group of each")
    both = [lasting, grouped]
    checks = [Check(one.name, at_least=100_000) for one in both]
    checks += [Check(one.name, at_most=8, measure=GROWTH) for one in both]
    cases.append(Case("pairs-sustained", question, RATE, both, checks, rounds_max=1))
    return bench.run(cases)


if __name__ == "__main__":
    sys.exit(main())
