"""The same consumer in a thread, in a forked process and in a spawned one."""

from __future__ import annotations

import argparse
import multiprocessing
import threading
from multiprocessing.process import BaseProcess

import numpy as np

import junctura


def consume(pool: junctura.Pool, name: str, fields: int) -> None:
    """Sums up all fields, wherever it runs, and says so."""
    total = 0.0
    with pool.follow("kind=field") as follow:
        for _ in range(fields):
            with next(follow) as field:
                total += float(field.array().sum())
    pool.offer(str(total).encode(), name=name, kind="sum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fields", type=int, default=10)
    fields = parser.parse_args().fields
    with junctura.Pool(schema="free", name="consumers") as pool:
        workers: list[threading.Thread | BaseProcess] = [
            threading.Thread(target=consume, args=(pool, "thread", fields)),
            multiprocessing.get_context("fork").Process(target=consume, args=(pool, "fork", fields)),
            multiprocessing.get_context("spawn").Process(target=consume, args=(pool, "spawn", fields)),
        ]
        # What forks goes first: a process with other threads had better not.
        for worker in reversed(workers):
            worker.start()
        for step in range(fields):
            pool.offer(np.full(1000, float(step)), name=f"{step}", kind="field")
        for name in ("thread", "fork", "spawn"):
            with pool.demand(name=name) as said:
                total = float(bytes(said))
            if total != 1000.0 * sum(range(fields)):
                raise RuntimeError(f"{name} has seen {total}")
            print(f"{name}: {total}")
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main()
