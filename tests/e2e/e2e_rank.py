"""One rank of a program that gives or takes arrays, and does what it is told, line by line.

``offer STEP`` offers its piece of a step, ``take STEP`` waits for its part, ``wait STEP`` not for long, and
``look STEP`` not at all. Each is answered with a line.
"""

from __future__ import annotations

import sys

import numpy as np

import junctura

LAYOUTS = {
    "from": junctura.Layout("shape=60x70 grid=2x2 block=7x5"),
    "to": junctura.Layout("shape=60x70 grid=3x1 order=F"),
}
WAITS_S = {"take": 60.0, "wait": 0.2, "look": 0.0}


def field(step: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The whole array of a step."""
    return np.arange(60 * 70, dtype="f8").reshape(60, 70) * (step + 1)


def main() -> None:
    url, side, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
    layout = LAYOUTS[side]
    part = np.ix_(*layout.indices(rank))
    with junctura.Pool(url, name=f"{side} {rank}") as pool:
        print("ready", flush=True)
        for line in sys.stdin:
            verb, step = line.split()
            try:
                if verb == "offer":
                    pool.offer_piece(field(int(step))[part], layout, rank, schema="free", name=step)
                    print("offered", step, flush=True)
                else:
                    mine = pool.demand_array(f"name={step}", layout, rank, timeout=WAITS_S[verb])
                    assert (mine == field(int(step))[part]).all()
                    print("took", step, flush=True)
            except junctura.Error as error:
                print(type(error).__name__, error.cause, flush=True)


if __name__ == "__main__":
    main()
