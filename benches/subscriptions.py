"""Measures what many standing subscriptions of other clients cost.

Each offer has to find the few subscriptions that it matches among all there are. The server's CPU time per object is
compared between a pool with hardly any and pools with many, one in a thousand of which matches.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from contenders import Load, ours
from harness import Case, Check, Measure, begin

SERVER_CPU = Measure("server_cpu_us_per_object", "us/object", more_is_better=False)


def main() -> int:
    bench = begin("subscriptions", "What do many standing subscriptions of other clients cost?")
    seconds = (2.0, 0.5) if bench.quick else (3.0, 5.0)
    field = Load(804 << 10, 64, "untouched", warmup_s=seconds[0], seconds=seconds[1])
    small = replace(field, payload_bytes=1 << 10, touch="touched")
    cases = []
    for name, load in (("804KiB", field), ("1KiB", small)):
        few, some, many = (
            ours(load, "--subscriptions", str(count), name=f"junctura, {count:,} subscriptions")
            for count in (10, 1000, 100_000)
        )
        question = f"the server's CPU time for an object of {name}, window 64"
        checks = [Check(many.name, at_most=1.2, times=few.name)]
        cases.append(Case(f"server-cpu-{name}", question, SERVER_CPU, [few, some, many], checks))
    return bench.run(cases)


if __name__ == "__main__":
    sys.exit(main())
