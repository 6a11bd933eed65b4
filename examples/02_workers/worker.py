"""A worker: takes tasks of a group, one at a time, and hands over what comes of each."""

from __future__ import annotations

import argparse
import contextlib
import sys

import junctura


def work(pool: junctura.Pool, task: junctura.Object, name: str) -> None:
    """One task: the sum of its numbers."""
    total = int(task.array().sum())
    result = str(task["name"]).replace("task", "result")
    # Whoever had it before may have come as far as this.
    with contextlib.suppress(junctura.AlreadyExists):
        pool.offer(str(total).encode(), name=result, kind="result", worker=name, again=str(task.redelivered))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", help="where the pool is")
    parser.add_argument("name", help="what this worker is called")
    parser.add_argument("--stuck-at", type=int, default=0, help="the task, counted from 1, at which it is stuck")
    arguments = parser.parse_args()

    count = 0
    with junctura.Pool(arguments.pool, name=arguments.name) as pool, pool.follow(group="workers", window=1) as tasks:
        for task in tasks:
            # Released when it is done; given back, for another worker, when an exception ends it.
            with task:
                count += 1
                if count == arguments.stuck_at:
                    print("stuck", flush=True)
                    sys.stdin.read()
                work(pool, task, arguments.name)


if __name__ == "__main__":
    main()
