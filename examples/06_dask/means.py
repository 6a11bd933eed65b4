"""Dask tasks that read their fields from a pool."""

from __future__ import annotations

import argparse

import numpy as np
from distributed import Client

import junctura


def mean(pool: junctura.Pool, key: str) -> float:
    """Runs in a worker: the mean of one field, read where it lies."""
    with pool.demand(key, timeout=60) as field:
        return float(field.array().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fields", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with junctura.Pool(schema="free", name="means") as pool:
        for step in range(options.fields):
            pool.offer(np.full((200, 200), float(step)), name=f"t/{step:03}")
        keys = [entry.key for entry in pool.list('name~"^t/"')]
        workers = {"n_workers": options.workers, "threads_per_worker": 1, "processes": True}
        with Client(**workers, dashboard_address=None) as client:
            means = client.gather(client.map(mean, [pool] * len(keys), keys))
    if means != [float(step) for step in range(options.fields)]:
        raise RuntimeError(f"{means}")
    print(f"{len(means)} means by {options.workers} workers: {means}")


if __name__ == "__main__":
    main()
