"""One rank that gives or takes a large array with little more private memory than the array's part: more would fail."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

import numpy as np

import junctura

LAYOUTS = {
    "from": junctura.Layout("shape=4000x4096 grid=2x2 block=250x256"),
    "to": junctura.Layout("shape=4000x4096 grid=1x3 order=F"),
}
# Stacks of threads, what interpreters keep, plans.
SPARE_BYTES = 24 << 20


def limit(own_bytes: int) -> None:
    """From now on this process gets so much more private memory, and what is spare."""
    found = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    now = int(found[1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (now + own_bytes + SPARE_BYTES,) * 2)


def main() -> None:
    url, side, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
    layout = LAYOUTS[side]
    with junctura.Pool(url, name=f"{side} {rank}") as pool:
        # What loads when it is first used.
        pool.offer(np.ones(1), schema="free", name=f"{side} {rank}", retention=junctura.Released(1))
        pool.demand_array(name=f"{side} {rank}", schema="free")
        if side == "from":
            limit(0)
            mine = pool.allocate(shape=layout.extents(rank)[0], dtype="f8")
            mine.array()[:] = rank
            pool.offer_piece(mine, layout, rank, schema="free", name="large")
            print("offered", flush=True)
        else:
            limit(layout.room(rank) * 8)
            taken = pool.demand_array("name=large", layout, rank, timeout=60.0)
            print(taken.min(), taken.max(), taken.sum(), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
