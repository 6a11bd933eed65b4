"""What is opened and closed a thousand times leaves nothing: descriptors, threads, maps, memory."""

from __future__ import annotations

import asyncio
import gc
import itertools
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import junctura

LARGE = 1 << 18
PAGE = resource.getpagesize()


def used() -> dict[str, int]:
    """What this process has of each, as the system counts it."""
    gc.collect()
    proc = Path("/proc/self")
    return {
        "descriptors": len(list((proc / "fd").iterdir())),
        "threads": len(list((proc / "task").iterdir())),
        "shared maps": sum("memfd" in line for line in (proc / "maps").read_text().splitlines()),
        "maps": len((proc / "maps").read_text().splitlines()),
        "resident": int((proc / "statm").read_text().split()[1]) * PAGE,
    }


def with_a_private_pool() -> None:
    with junctura.Pool(schema="free") as pool, pool.follow(only_new=True) as follow:
        pool.offer(np.zeros(LARGE // 8), name="a")
        assert next(follow).array().sum() == 0
        pool.fileno()


def connecting() -> Callable[[], None]:
    pool = junctura.Pool(schema="free", budget="64MiB")
    pool.offer(np.zeros(LARGE // 8), name="large")

    names = (f"{at}" for at in itertools.count())

    def once() -> None:
        name = next(names)
        with junctura.Pool(pool.url) as other, other.require("name=x"), other.subscribe():
            assert other.demand(name="large").array().sum() == 0
            other.offer(bytes(LARGE), name=name, retention=junctura.Released(1))
            other.demand(name=name).release()

    return once


def in_a_loop() -> None:
    async def main() -> None:
        async with junctura.aio.Pool(schema="free") as pool, pool.follow() as follow:
            cancelled = asyncio.create_task(pool.demand(name="never"))
            await pool.offer(bytes(LARGE), name="a")
            assert len(await follow.next()) == LARGE
            cancelled.cancel()

    asyncio.run(main())


CYCLES: dict[str, Callable[[], Callable[[], None]]] = {
    "a private pool": lambda: with_a_private_pool,
    "a connection": connecting,
    "a loop": lambda: in_a_loop,
}


@pytest.mark.parametrize("make", CYCLES.values(), ids=CYCLES.keys())
def test_a_thousand_cycles_leave_nothing(make: Callable[[], Callable[[], None]]) -> None:
    once = make()
    for _ in range(100):
        once()
    before = used()
    for _ in range(1000):
        once()
    after = used()
    for what in ("descriptors", "threads", "shared maps"):
        assert after[what] <= before[what], (what, before, after)
    # Allocators keep some pages and stacks; a leak of a cycle's objects would be a thousand times as much.
    assert after["maps"] <= before["maps"] + 16, (before, after)
    assert after["resident"] <= before["resident"] + (32 << 20), (before, after)
