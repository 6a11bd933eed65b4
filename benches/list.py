"""Measures how long a list of few takes among many.

A pool holds a million objects of a forecast archive; selectors that match a hundred of them are answered one after the
other, each with another choice of values. Measured by ``crates/junctura/examples/list_speed.rs`` from the call to the
last entry in hand.
"""

from __future__ import annotations

import json
import sys
from functools import cache

from harness import TARGET, Bench, Case, Check, Contender, Figures, Measure, begin, call

TIME = Measure("list_us.p50", "us, p50", more_is_better=False)
SELECTORS = {
    "one-key-prefix": "one forecast, one member, ten levels, ten parameters",
    "scattered": "one member, level and parameter of a hundred forecasts",
    "pattern": "one member and level of a hundred forecasts, parameter by a regular expression",
}


@cache
def build() -> None:
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura", "--example", "list_speed"], 1800)


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


def main() -> int:
    bench = begin("list", "How long does a list of few take among many?")
    return bench.run([case(bench, name, question) for name, question in SELECTORS.items()])


if __name__ == "__main__":
    sys.exit(main())
