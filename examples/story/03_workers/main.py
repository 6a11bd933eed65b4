"""Workers: the members of a group share what matches; each field goes to one of them."""

import sys
import threading
from collections import Counter

import junctura

FORECAST = {"class": "od", "stream": "oper", "date": "2026-11-20", "time": 12, "type": "fc", "levtype": "pl"}


def work(pool: junctura.Pool, done: list[int]) -> None:
    """Takes fields until the group is owed nothing any more."""
    with pool.follow(group="workers", until_live=True) as fields:
        for field in fields:
            with field:  # Done when this ends; an exception would give it to another worker.
                done.append(int(field["step"]))


with junctura.Pool(*sys.argv[1:]) as pool:
    # From now on what matches is kept for the group, though nobody is there yet.
    pool.require("param=t", name="workers", group=True)
    for step in range(0, 30, 6):
        pool.offer(b"a field", FORECAST, step=step, levelist=500, param="t")

    done: list[int] = []
    workers = [threading.Thread(target=work, args=(pool, done)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    for step, times in sorted(Counter(done).items()):
        print(f"step {step}: done {times} time")
    pool.retract("workers")
