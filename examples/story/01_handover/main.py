"""Hand-over: a consumer asks for a field by what it means, a producer offers it, in whichever order."""

import sys

import junctura

FORECAST = {"class": "od", "stream": "oper", "date": "2026-11-20", "time": 12, "type": "fc", "levtype": "pl"}

# Private to this process and its children, or where the address says: unix:NAME.
with junctura.Pool(*sys.argv[1:]) as pool:
    wanted = pool.begin_demand("param=t, levelist=500, step=6")
    print("asked for: param=t, levelist=500, step=6")

    for step in (0, 6):
        pool.offer(f"temperature of step {step}".encode(), FORECAST, step=step, levelist=500, param="t")

    with wanted.get() as field:
        print(f"got: {bytes(field).decode()}")
