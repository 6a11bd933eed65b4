"""Writes a file of fields into the pool of the run: a bundle, so that its fields can be seen when all are there."""

from __future__ import annotations

import argparse
import os

import numpy as np

import junctura

SHAPE = (181, 360)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=int, required=True, help="its number")
    parser.add_argument("--fields", type=int, required=True, help="how many there are in it")
    given = parser.parse_args()
    random = np.random.default_rng(given.file)
    with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool, pool.bundle(f"file/{given.file}") as bundle:
        for field in range(1, given.fields + 1):
            values = random.normal(given.file, size=SHAPE)
            about = {"file": given.file, "field": field, "mean": float(values.mean())}
            texts = {word: str(value) for word, value in about.items()}
            bundle.offer(values, texts, name=f"{given.file}/{field}", kind="field")


if __name__ == "__main__":
    main()
