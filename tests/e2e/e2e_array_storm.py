"""One process of a storm of arrays: ``e2e_array_storm.py URL ROLE SEED [COUNT]``.

A producer offers arrays whose elements all have one value, in pieces, until it is killed; some stay incomplete, also
where memory stays full. It prints a line for each. A remover withdraws them, whether they are held or not. A consumer
takes COUNT parts in layouts of its own, keeps some, and checks them then: memory that was used again would show another
value.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

import junctura

SHAPES = ((3, 4), (37, 53), (200, 300), (900, 700))
LAYOUTS = ("grid=1x1", "grid=2x2", "grid=3x1 order=F", "grid=2x3 block=7x5", "grid=2x2 block=5x3 storage=packed")
HELD = 6


def layouts(shape: tuple[int, int], draw: random.Random) -> junctura.Layout:
    return junctura.Layout(f"shape={shape[0]}x{shape[1]} {draw.choice(LAYOUTS)}")


def produce(pool: junctura.Pool, seed: int, draw: random.Random) -> Iterator[str]:
    for number in itertools.count():
        shape = draw.choice(SHAPES)
        layout = layouts(shape, draw)
        ranks = [rank for rank in range(layout.ranks) if draw.random() > 0.02]
        draw.shuffle(ranks)
        about: dict[str, Any] = {"name": f"{seed}-{number}", "retention": junctura.Released(draw.randint(1, 3))}
        for rank in ranks:
            extents, room = layout.extents(rank), layout.room(rank)
            is_dense = len(extents) == 1 and math.prod(extents[0]) == room
            mine = np.full(extents[0] if is_dense else room, seed * 1e6 + number)
            try:
                pool.offer_piece(mine, layout, rank, **about)
            except junctura.PoolFull:
                break
        yield f"offered {number}"


def consume(pool: junctura.Pool, count: int, draw: random.Random) -> int:
    taken, held = 0, deque[tuple[Any, float]]()
    while taken < count:
        try:
            shape = draw.choice(SHAPES)
            how: dict[str, Any] = {"threads": draw.choice((1, 1, 3)), "dtype": draw.choice((None, ">f8"))}
            if draw.random() < 0.5:
                mine = pool.demand_array("", slab=(slice(0, 3), slice(1, 4)), timeout=0.05, **how)
            else:
                layout = layouts(shape, draw)
                mine = pool.demand_array("", layout, draw.randrange(layout.ranks), timeout=0.05, **how)
        except (junctura.NotFound, junctura.Timeout, junctura.Expired, junctura.InvalidArgument):
            continue
        taken += 1
        values = np.unique(mine[mine != 0] if mine.ndim == 1 else mine)
        assert values.size <= 1, f"{values}: of several arrays"
        held.append((mine, float(values[0]) if values.size else 0.0))
        if len(held) > HELD:
            kept, value = held.popleft()
            assert ((kept == value) | (kept == 0)).all()
    return taken


def main() -> None:
    url, role, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    draw = random.Random(seed)
    # Some arrays stay until the remover withdraws them: who waits for a producer must not wait for memory.
    with junctura.Pool(url, offer_timeout=0.2) as pool:
        print("ready", flush=True)
        if role == "consumer":
            print("took", consume(pool, int(sys.argv[4]), draw), flush=True)
        elif role == "producer":
            for line in produce(pool, seed, draw):
                print(line, flush=True)
        else:
            for _ in sys.stdin:
                gone = pool.withdraw_all("", force=True) if draw.random() < 0.5 else 0
                gone += pool.withdraw_all(f"exists(piece_of), rank={draw.randrange(4)}", force=True)
                print("removed", gone, flush=True)


if __name__ == "__main__":
    main()
