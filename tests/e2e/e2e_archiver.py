"""A program that archives what passes in the pool, by `junctura.Archiver`, as it is told, line by line.

``begin STORE SELECTOR EVERY`` begins, ``counts`` says what was done so far, ``stop`` ends it and says what was done.
"""

from __future__ import annotations

import sys

import junctura


def said(counts: junctura.ArchiverCounts) -> str:
    return f"{counts.archived} {counts.left_out} {counts.missed} {counts.failed}"


def main() -> None:
    archiver: junctura.Archiver | None = None
    with junctura.Pool(sys.argv[1], name="program") as pool:
        print("ready", flush=True)
        for line in sys.stdin:
            verb, *words = line.split()
            if verb == "begin":
                store, selector, every = words
                archiver = junctura.Archiver(pool, junctura.Store(store), selector, every=int(every), window=8)
                print("begun", flush=True)
                continue
            assert archiver is not None
            try:
                print(said(archiver.counts if verb == "counts" else archiver.stop()), flush=True)
            except junctura.Error as error:
                print(type(error).__name__, error.cause, flush=True)


if __name__ == "__main__":
    main()
