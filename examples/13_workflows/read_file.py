"""Reads a file of fields from the pool of the run, checks each of them, and says what it found."""

from __future__ import annotations

import argparse
import os
import sys

import junctura


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=int, required=True, help="its number")
    parser.add_argument("--fields", type=int, required=True, help="how many there are in it")
    given = parser.parse_args()
    with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool:
        means = []
        for field in range(1, given.fields + 1):
            # It is there: nothing is waited for.
            with pool.demand(name=f"{given.file}/{field}", timeout=0) as obj:
                means.append(float(obj.array().mean()))
                if means[-1] != float(str(obj["mean"])):
                    print(f"file {given.file}: field {field} is not what was written", file=sys.stderr)
                    return 1
    print(f"file {given.file}: {len(means)} fields, mean {sum(means) / len(means):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
