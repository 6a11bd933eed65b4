"""Measures how fast one pair hands over.

One producer, one consumer, separate processes. Ours is measured by ``junctura load pool``; beside it, in the same run
and taking turns, what this machine allows (a ring in shared memory, memcpy, a unix socket) and others that hand objects
from process to process: Redis streams, Zenoh, iceoryx2. Nobody but us has attributes that are checked, an index, a
query, or a consumer that may come later.
"""

from __future__ import annotations

import sys

from contenders import Load, filled, iceoryx2, limit, memcpy, ours, redis, versions, zenoh
from harness import BANDWIDTH, LATENCY, RATE, Bench, Case, Check, begin

FIELD_BYTES = 804 << 10
SMALL_BYTES = 1 << 10
SLEEP = ("--spin", "0us")
SLEEPING = "junctura, server sleeps at once"


def field_load(bench: Bench, window: int, touch: str) -> Load:
    # The warm-up is long enough to make 512 MiB of slots resident.
    seconds = (2.0, 0.3) if bench.quick else (3.0, 2.0)
    return Load(FIELD_BYTES, window, touch, warmup_s=seconds[0], seconds=seconds[1])


def small_load(bench: Bench, window: int, rate: float | None = None) -> Load:
    seconds = (0.2, 0.3) if bench.quick else (0.5, 2.0)
    return Load(SMALL_BYTES, window, "touched", rate=rate, warmup_s=seconds[0], seconds=seconds[1])


def transfers(bench: Bench) -> list[Case]:
    """Fields that stay where they are."""
    cases = []
    for window, least in ((1, None), (64, 300_000), (1024, 700_000)):
        load = field_load(bench, window, "untouched")
        rival = iceoryx2(load)
        contenders = [ours(load), limit("ring", load), rival] + ([zenoh(load)] if window == 64 else [])
        checks = [Check("junctura", at_least=least)] if least else []
        if window == 1024:
            checks.append(Check("junctura", at_least=1.0, times=rival.name))
        question = f"fields of 804 KiB that stay in place, window {window}"
        cases.append(Case(f"transfer-804KiB-window-{window}", question, RATE, contenders, checks))
    return cases


def touches(bench: Bench) -> list[Case]:
    """Fields of which every byte is written and read."""
    load = field_load(bench, 64, "touched")
    same_work, less_work = iceoryx2(load, rotate=True), iceoryx2(filled(load), rotate=True)
    contenders = [ours(load), limit("ring", load), same_work, less_work]
    contenders += [iceoryx2(filled(load)), zenoh(load), redis(load), memcpy(load)]
    checks = [Check("junctura", at_least=1.0, times=rival.name) for rival in (same_work, less_work)]
    question = "fields of 804 KiB, every byte written and read, window 64"
    return [Case("touch-804KiB-window-64", question, BANDWIDTH, contenders, checks)]


def smalls(bench: Bench) -> list[Case]:
    """Objects of 1 KiB, as many as possible."""
    cases = []
    for window in (1, 64, 1024):
        load = small_load(bench, window)
        of_redis, of_zenoh = redis(load), zenoh(load)
        contenders = [ours(load), limit("ring", load), limit("socket", load), of_redis, of_zenoh, iceoryx2(load)]
        checks = {
            1: [],
            64: [Check("junctura", at_least=300_000), Check("junctura", at_least=2.0, times=of_redis.name)],
            1024: [
                Check("junctura", at_least=1.0, times=of_zenoh.name),
                Check("junctura", at_least=2.0, times=of_redis.name),
            ],
        }[window]
        what = {1024: "window 1024, which is that of offer_many"}.get(window, f"window {window}")
        question = f"objects of 1 KiB, every byte written and read, {what}"
        cases.append(Case(f"small-1KiB-window-{window}", question, RATE, contenders, checks))
    return cases


def bare(bench: Bench) -> list[Case]:
    """Objects that are hardly more than their attributes."""
    cases = []
    for window in (64, 1024):
        seconds = (0.2, 0.3) if bench.quick else (0.5, 2.0)
        load = Load(64, window, "untouched", warmup_s=seconds[0], seconds=seconds[1])
        contenders = [ours(load, "--mode", "metadata"), limit("ring", load), redis(load)]
        cases.append(Case(f"metadata-window-{window}", f"objects of 64 bytes, window {window}", RATE, contenders))
    return cases


def latencies(bench: Bench) -> list[Case]:
    """From offer to delivery."""
    cases = []
    for name, rate, most in (("at-1000-a-second", 1000.0, 20.0), ("back-to-back", None, 30.0)):
        load = small_load(bench, 1, rate)
        contenders = [ours(load), ours(load, *SLEEP, name=SLEEPING), limit("ring", load), limit("socket", load)]
        contenders += [limit("relay", load), redis(load), zenoh(load), iceoryx2(load)]
        pace = "one each millisecond" if rate else "back to back, window 1"
        question = f"from offer to delivery, 1 KiB, {pace}"
        checks = [Check("junctura", at_most=most)]
        cases.append(Case(f"latency-1KiB-{name}", question, LATENCY, contenders, checks))
    return cases


def main() -> int:
    bench = begin("handover", "How fast does one pair hand over, beside this machine's limits and rivals?")
    bench.versions.update(versions())
    return bench.run([*transfers(bench), *touches(bench), *smalls(bench), *bare(bench), *latencies(bench)])


if __name__ == "__main__":
    sys.exit(main())
