"""Measures what an object costs that becomes visible with others.

A producer offers the fields of a forecast step, ten thousand of 64 bytes, into the pool or into a bundle that it seals;
a consumer follows and releases everything. Measured by ``crates/junctura/examples/bundle_speed.rs`` from the first
offer until all are visible. The figures also say how long a seal takes: for so long the server answers nobody else.
"""

from __future__ import annotations

import json
import sys
from functools import cache

from harness import TARGET, Bench, Case, Check, Contender, Figures, Measure, begin, call

COST = Measure("member_us.p50", "us an object, p50", more_is_better=False)
WAYS = {
    "plain": "offered one by one, visible one by one",
    "bundle": "offered into a bundle, visible when it is sealed",
}


@cache
def build() -> None:
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura", "--example", "bundle_speed"], 1800)


def contender(way: str, bundles: int, members: int) -> Contender:
    command = [str(TARGET / "release/examples/bundle_speed"), way, str(members), str(bundles)]

    def run() -> Figures:
        build()
        figures: Figures = json.loads(call(command, 600))
        return figures

    return Contender(way, "us", "all visible", WAYS[way], command, run)


def main() -> int:
    bench: Bench = begin("bundles", "What does an object cost that becomes visible with others?")
    bundles, members = (2, 1000) if bench.quick else (50, 10_000)
    contenders = [contender(way, bundles, members) for way in WAYS]
    # A member is copied, filed twice and sorted; three times a plain offer would be too much for that.
    checks = [Check("bundle", at_most=3, times="plain")]
    question = f"{members:,} fields of a step, again and again"
    return bench.run([Case("bundle-members", question, COST, contenders, checks)])


if __name__ == "__main__":
    sys.exit(main())
