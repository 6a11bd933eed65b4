"""A bundle: fields that belong together become visible together, or not at all."""

import sys

import junctura

FORECAST = {"class": "od", "stream": "oper", "date": "2026-11-20", "time": 12, "type": "fc", "levtype": "pl"}

with junctura.Pool(*sys.argv[1:]) as pool:
    # Two producers know the bundle by its path; either may come first.
    first = pool.bundle("run/step=6", members=2)
    first.offer(b"temperature", FORECAST, step=6, levelist=500, param="t")
    print(f"one of two is staged, {len(pool.list('step=6'))} to be seen")

    second = pool.bundle("run/step=6", members=2)
    second.offer(b"wind", FORECAST, step=6, levelist=500, param="u")
    first.wait()
    print(f"two of two, {len(pool.list('step=6'))} to be seen")
