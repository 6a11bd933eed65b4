"""Measures what packing costs and saves: fields as a model has them in memory, archived and read.

``crates/junctura-store/examples/store_speed.rs`` archives and reads them, in memory; ten a flush, read together and
verified. Fields are 32-bit numbers of which 16 bits say something, and neighbours differ by little.
"""

from __future__ import annotations

import sys

from harness import BANDWIDTH, Case, Contender, Figures, Measure, begin
from store import MEMORY, READ, SPEED, WRITTEN, folder, speed

CODECS = {"none": "limit: as they are", "lz4": "junctura, lz4", "zstd:1": "junctura, zstd:1", "zstd": "junctura, zstd"}
WRITE = Measure("write_gib_per_s", "GiB/s", more_is_better=True)
SHARE = Measure("stored_share", "of the bytes", more_is_better=False)


def cases() -> list[Case]:
    before: dict[str, list[Figures]] = {}

    def measured(codec: str) -> Figures:
        with folder(MEMORY) as place:
            figures = speed("pack", f"{place}/store", codec)
        before.setdefault(codec, []).append(figures)
        return figures

    def contender(codec: str, name: str, touched: str, awaited: str, *, is_first: bool) -> Contender:
        def run() -> Figures:
            return measured(codec) if is_first else before[codec][-1]

        kind = "limit" if codec == "none" else "us"
        return Contender(name, kind, awaited, touched, [SPEED, "pack", "FOLDER", codec], run)

    def all_of(touched: str, awaited: str, *, is_first: bool) -> list[Contender]:
        return [contender(codec, name, touched, awaited, is_first=is_first) for codec, name in CODECS.items()]

    fields = "500 fields of 804 KiB"
    return [
        Case("pack-write", f"{fields}, archived", WRITE, all_of(WRITTEN, "a flush after each 10", is_first=True)),
        Case("pack-read", f"{fields}, read", BANDWIDTH, all_of(READ, "the last byte", is_first=False)),
        Case("pack-share", f"{fields}: what lies there", SHARE, all_of(READ, "a flush", is_first=False), rounds_max=1),
    ]


def main() -> int:
    bench = begin("store_packing", "What does packing cost, and what does it save?")
    return bench.run(cases())


if __name__ == "__main__":
    sys.exit(main())
