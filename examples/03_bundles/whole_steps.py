"""Whole steps: ranks of a model write their parts of each step, a consumer sees whole steps alone.

Each step is a bundle of as many members as there are ranks. One rank dies in the middle; it is started again, offers
what it had not, and the step is complete. No rank knows of the others, and the consumer knows of none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
from multiprocessing.process import BaseProcess

import numpy as np

import junctura

SHAPE = (64, 64)


def part(rank: int, step: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """What a rank computes."""
    return np.full(SHAPE, 100.0 * step + rank)


def write(url: str, rank: int, ranks: int, first: int, steps: int, dies_at: int | None) -> None:
    """A rank: its part of each step goes into the step's bundle. Runs as a process of its own."""
    pool = junctura.Pool(url, name=f"rank {rank}")
    for step in range(first, steps):
        bundle = pool.bundle(f"run/step={step}", {"space": "model"}, members=ranks)
        if step == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        bundle.offer(part(rank, step), space="model", name=f"{step:03}/{rank:03}")
        bundle.leave()


def read(pool: junctura.Pool, ranks: int, steps: int) -> list[float]:
    """The mean of each step, made as soon as the step is there, whole."""
    means = []
    with pool.follow("space=model", window=ranks) as follow:
        for step in range(steps):
            parts = [next(follow) for _ in range(ranks)]
            numbers = [int(str(one["name"]).split("/")[0]) for one in parts]
            sequences = [one.version.sequence for one in parts]
            if numbers != [step] * ranks or sequences != list(range(sequences[0], sequences[0] + ranks)):
                raise RuntimeError(f"step {step} is not whole: {numbers}, {sequences}")
            means.append(float(np.mean([one.array() for one in parts])))
            print(f"step {step}: mean {means[-1]:.1f} of {ranks} parts")
            for one in parts:
                one.release()
    return means


def start(pool: junctura.Pool, rank: int, ranks: int, first: int, steps: int, dies_at: int | None) -> BaseProcess:
    arguments = (pool.url, rank, ranks, first, steps, dies_at)
    process = multiprocessing.get_context("spawn").Process(target=write, args=arguments)
    process.start()
    return process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    ranks, steps, dies_at = options.ranks, options.steps, options.steps // 2
    with junctura.Pool(schema="free", name="whole steps") as pool:
        others = [start(pool, rank, ranks, 0, steps, None) for rank in range(1, ranks)]
        first = start(pool, 0, ranks, 0, steps, dies_at)
        first.join()
        (waiting,) = pool.bundles(under=f"run/step={dies_at}")
        print(f"rank 0 has died in step {dies_at}: {waiting}")
        again = start(pool, 0, ranks, dies_at, steps, None)
        means = read(pool, ranks, steps)
        for process in [*others, again]:
            process.join()
    expected = [100.0 * step + (ranks - 1) / 2 for step in range(steps)]
    if means != expected:
        raise RuntimeError(f"{means} and not {expected}")
    print(f"{steps} whole steps")


if __name__ == "__main__":
    main()
