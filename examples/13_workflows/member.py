"""Writes fields into the pool of the run, all or none: it fails in the middle if it is one of those that do."""

from __future__ import annotations

import argparse
import os

import numpy as np

import junctura

SHAPE = (181, 360)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--member", type=int, required=True, help="its number")
    parser.add_argument("--fields", type=int, required=True, help="how many it writes")
    parser.add_argument("--failing", type=int, nargs="*", default=[], help="the members that fail")
    given = parser.parse_args()
    with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool, pool.bundle(f"member/{given.member}") as bundle:
        for field in range(given.fields):
            if given.member in given.failing and field == given.fields // 2:
                raise SystemExit(f"member {given.member} fails at field {field}")
            name, value = f"{given.member}/{field}", given.member + field / 100
            bundle.offer(np.full(SHAPE, value), name=name, kind="field", member=str(given.member), value=str(value))


if __name__ == "__main__":
    main()
