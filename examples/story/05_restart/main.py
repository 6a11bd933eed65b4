"""A restart: what comes while a consumer is away is kept for it, under a name."""

import sys

import junctura

FORECAST = {"class": "od", "stream": "oper", "date": "2026-11-20", "time": 12, "type": "fc", "levtype": "pl"}


def offer(pool: junctura.Pool, step: int) -> None:
    pool.offer(f"temperature of step {step}".encode(), FORECAST, step=step, levelist=500, param="t")


def live(url: str, which: str) -> None:
    """A life of the consumer: a connection of its own, as a process of its own would have."""
    with junctura.Pool(url, name="archive") as pool, pool.follow(group="archive", until_live=True) as fields:
        for field in fields:
            with field:
                print(f"{which} life: {bytes(field).decode()}")


with junctura.Pool(*sys.argv[1:]) as pool:
    pool.require("param=t", name="archive", group=True)
    offer(pool, 0)
    live(pool.url, "first")
    offer(pool, 6)
    offer(pool, 12)
    live(pool.url, "second")
    print(f"still owed: {pool.retract('archive')}")
