"""A viewer of the tests: receives steps through a requirement, and prints the number of each that is whole.

``steps_reader.py URL RANKS UNTIL``: ends after the step UNTIL. Releases a step's objects when it has printed it.
"""

from __future__ import annotations

import sys

import junctura


def main() -> None:
    url, ranks, until = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with junctura.Pool(url) as pool:
        requirement = pool.require("part=fields", name="viewer")
        print("ready", flush=True)
        parts: dict[int, list[junctura.Object]] = {}
        for part in requirement.follow(window=4 * ranks):
            assert isinstance(part, junctura.Object)
            step = int(str(part["step"]))
            parts.setdefault(step, []).append(part)
            if len(parts[step]) < ranks:
                continue
            for one in parts.pop(step):
                one.release()
            pool.sync()
            print(f"step {step}", flush=True)
            if step == until:
                break


main()
