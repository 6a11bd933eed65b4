"""Measures how long a list of few takes among many, and what a look at all costs the server.

A pool holds a million objects of a forecast archive; selectors that match a hundred of them are answered one after the
other, each with another choice of values. Measured by ``crates/junctura/examples/list_speed.rs`` from the call to the
last entry in hand. Counts and first pages of viewers are measured by ``crates/junctura/examples/look_speed.rs``, in the
server's own time and its longest turn.
"""

from __future__ import annotations

import json
import sys
from functools import cache

from harness import TARGET, Bench, Case, Check, Contender, Figures, Measure, begin, call

TIME = Measure("list_us.p50", "us, p50", more_is_better=False)
CPU = Measure("server_cpu_us", "us of the server", more_is_better=False)
TURN = Measure("longest_turn_us", "us, longest turn", more_is_better=False)
SELECTORS = {
    "one-key-prefix": "one forecast, one member, ten levels, ten parameters",
    "scattered": "one member, level and parameter of a hundred forecasts",
    "pattern": "one member and level of a hundred forecasts, parameter by a regular expression",
}


@cache
def build() -> None:
    examples = ["--example", "list_speed", "--example", "look_speed"]
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura", *examples], 1800)


def case(bench: Bench, name: str, question: str) -> Case:
    objects, lists = 1_000_000, 100 if bench.quick else 2000
    command = [str(TARGET / "release/examples/list_speed"), name, str(objects), str(lists)]

    def run() -> Figures:
        build()
        figures: Figures = json.loads(call(command, 600))
        return figures

    contender = Contender("junctura", "us", "the last entry", "no payload is read", command, run)
    checks = [Check("junctura", at_most=1000)]
    return Case(f"list-{name}", f"100 of {objects:,}: {question}", TIME, [contender], checks, rounds_max=3)


def look(bench: Bench, kind: str, question: str, objects: int, checks: list[tuple[Measure, float]]) -> Case:
    looks = 3 if bench.quick else 20
    command = [str(TARGET / "release/examples/look_speed"), kind, str(objects), str(looks)]

    def run() -> Figures:
        build()
        figures: Figures = json.loads(call(command, 600))
        return figures

    contender = Contender("junctura", "us", "the answer", "no payload is read", command, run)
    promised = [Check("junctura", at_most=at_most, measure=measure) for measure, at_most in checks]
    return Case(f"look-{kind}-{objects}", f"{objects:,}: {question}", CPU, [contender], promised, rounds_max=3)


def main() -> int:
    bench = begin("list", "How long does a list of few take among many?")
    cases = [case(bench, name, question) for name, question in SELECTORS.items()]
    for objects in (10_000,) if bench.quick else (100_000, 1_000_000):
        few = objects == 100_000
        turn = (TURN, 500.0)
        cases.append(look(bench, "count", "how many there are", objects, [turn, *([(CPU, 10_000.0)] if few else [])]))
        cases.append(look(bench, "count-by", "how many there are of each parameter and level", objects, [turn]))
        cases.append(look(bench, "first", "the first 500", objects, [turn]))
    return bench.run(cases)


if __name__ == "__main__":
    sys.exit(main())
