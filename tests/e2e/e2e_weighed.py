"""One rank that gives or takes a large array with little more private memory than the array's part: more would fail.

It says how many bytes its part has in private memory, how many it had of that before, and at most.
"""

from __future__ import annotations

import re
import resource
import sys
import threading
from pathlib import Path

import numpy as np

import junctura

LAYOUTS = {
    "from": junctura.Layout("shape=4000x4096 grid=2x2 block=250x256"),
    "to": junctura.Layout("shape=4000x4096 grid=1x3 order=F"),
}
# Stacks of threads, what interpreters keep, plans.
SPARE_BYTES = 24 << 20


def status(name: str) -> int:
    """Bytes that the system counts for this process."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def limit(own_bytes: int) -> None:
    """From now on this process gets so much more private memory, and what is spare."""
    resource.setrlimit(resource.RLIMIT_DATA, (status("VmData") + own_bytes + SPARE_BYTES,) * 2)


class Peak(threading.Thread):
    """Private memory that was touched, looked at every millisecond: the system keeps no peak of it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.most = status("RssAnon")
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.over.wait(0.001):
            self.most = max(self.most, status("RssAnon"))

    def told(self, own_bytes: int) -> str:
        """The part's bytes, those before, and the most; the last look is now."""
        self.over.set()
        self.join()
        return f"{own_bytes} {self.before} {max(self.most, status('RssAnon'))}"


def main() -> None:
    url, side, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
    layout = LAYOUTS[side]
    with junctura.Pool(url, name=f"{side} {rank}") as pool:
        # What loads when it is first used.
        pool.offer(np.ones(1), schema="free", name=f"{side} {rank}", retention=junctura.Released(1))
        pool.demand_array(name=f"{side} {rank}", schema="free")
        peak = Peak()
        if side == "from":
            limit(0)
            mine = pool.allocate(shape=layout.extents(rank)[0], dtype="f8")
            mine.array()[:] = rank
            pool.offer_piece(mine, layout, rank, schema="free", name="large")
            print(peak.told(0), flush=True)
        else:
            own_bytes = layout.room(rank) * 8
            limit(own_bytes)
            taken = pool.demand_array("name=large", layout, rank, timeout=60.0)
            print(peak.told(own_bytes), taken.min(), taken.max(), taken.sum(), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
