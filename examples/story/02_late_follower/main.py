"""A late follower: what was there before it came, and what comes after, are one stream without a gap."""

import sys

import junctura

FORECAST = {"class": "od", "stream": "oper", "date": "2026-11-20", "time": 12, "type": "fc", "levtype": "pl"}


def offer(pool: junctura.Pool, step: int) -> None:
    pool.offer(f"temperature of step {step}".encode(), FORECAST, step=step, levelist=500, param="t")


with junctura.Pool(*sys.argv[1:]) as pool:
    offer(pool, 0)
    offer(pool, 6)

    with pool.follow("param=t, step=0/to/240/by/6") as fields:
        for expected in ("there", "there", "comes"):
            if expected == "comes":
                offer(pool, 12)
            with next(fields) as field:
                print(f"{expected}: {bytes(field).decode()}")
