"""A client of a pool with a store behind it: ``archived_client.py ROLE NAME URL STORE FOLDER SEED``.

Its role is ``producer``, ``follower`` or ``task``. It works until ``end`` comes on its standard input, and then ends in
good order. When its server dies it says ``lost``, and goes on with the next one at ``go``. A producer says ``offered``
of each object where its seed is 0. A follower waits in a thread, a task in an event loop; both leave now and then, and
go on from their cursor.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import queue
import random
import sys
import threading
import time
import zlib
from collections import deque
from pathlib import Path
from typing import Any, Literal

import junctura
import junctura.aio

SIZES = (100, 4_000, 60_000)
# For so many objects a session lasts.
SESSION = range(20, 200)
WINDOW = 8
GONE = (junctura.errors.Disconnected, junctura.errors.Unavailable)


class Orders:
    """What the driver says, read while the client works."""

    def __init__(self) -> None:
        self.goes: queue.Queue[bool] = queue.Queue()
        self.is_over = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in sys.stdin:
            if line == "end\n":
                break
            self.goes.put(True)
        self.is_over.set()


class Record:
    """What happens, a line each, written before the client goes on."""

    def __init__(self, directory: Path, role: str, name: str) -> None:
        self.file = (directory / f"{name}.jsonl").open("wb", buffering=0)
        self.note("start", role=role, name=name, pid=os.getpid(), group=None)

    def note(self, op: str, **rest: Any) -> None:
        self.file.write(json.dumps({"op": op, **rest}).encode() + b"\n")


def digest(payload: Any) -> str:
    return f"{zlib.crc32(payload):08x}"


def say(word: str) -> None:
    print(word, flush=True)


class Producer:
    """Offers objects of several sizes; some of them have to last."""

    def __init__(self, name: str, record: Record, orders: Orders, seed: int) -> None:
        self.name, self.record, self.orders = name, record, orders
        self.tells = seed == 0
        # Where servers die, what is in memory dies with them.
        self.lasts_always = os.environ.get("ARCHIVED_ALL_DURABLE") == "1"
        self.numbers = itertools.count()

    def work(self, pool: junctura.Pool) -> None:
        schema = pool.schema()
        while not self.orders.is_over.is_set():
            n = next(self.numbers)
            attributes = {"name": f"{self.name}-{n:05}"}
            payload = f"{self.name} {n} ".encode() * (SIZES[n % len(SIZES)] // 10)
            durability: Literal["durable", "memory"] = "durable" if self.lasts_always or n % 4 == 0 else "memory"
            self.record.note("offering", n=n, id=schema.key(attributes), sum=digest(payload), bundle=None)
            try:
                version = pool.offer(payload, attributes, durability=durability)
            except junctura.Error as error:
                self.record.note("refused", n=n, error=type(error).__name__)
                raise
            self.record.note("offered", n=n, version=str(version), durability=durability)
            if self.tells:
                say("offered")


class Follower:
    """Receives everything, from the store and from the pool."""

    def __init__(self, record: Record, orders: Orders, seed: int) -> None:
        self.record, self.orders, self.chance = record, orders, random.Random(seed)
        self.cursor: str | None = None
        # Fewer than the window: who holds all of it gets no more.
        self.held: deque[junctura.Object] = deque(maxlen=self.chance.randrange(WINDOW))
        self.incarnation: int | None = None

    def is_over(self) -> bool:
        return self.orders.is_over.is_set()

    def options(self, *, is_last: bool) -> dict[str, Any]:
        shown = {"gaps": "yield", "live": "yield"}
        return {"cursor": self.cursor, "until_live": is_last, "window": WINDOW, **shown}

    def begins(self, pool: junctura.Pool, sequence: int) -> None:
        if self.incarnation not in (None, pool.incarnation):
            # What an earlier server had, and was not acknowledged as durable, may be gone.
            self.record.note("void", before=f"{pool.incarnation}.0")
        self.incarnation = pool.incarnation
        seq = f"{pool.incarnation}.{sequence}"
        self.record.note("following", wants="all", versions="newest", seq=seq, cursor=self.cursor)

    def work(self, pool: junctura.Pool) -> None:
        while not self.is_over():
            self.session(pool, self.chance.choice(SESSION))
        self.session(pool, None)

    def session(self, pool: junctura.Pool, count: int | None) -> None:
        with pool.follow("", **self.options(is_last=count is None)) as follow:
            self.begins(pool, follow.snapshot_sequence)
            while count is None or (count > 0 and not self.is_over()):
                try:
                    item = follow.next(timeout=None if count is None else 0.1)
                except junctura.Timeout:
                    continue
                if item is None:
                    return
                self.take(item, follow)
                count = None if count is None else count - 1

    def take(self, item: Any, follow: junctura.Follow | junctura.aio.Follow) -> None:
        if isinstance(item, junctura.Live):
            self.record.note("live")
        elif isinstance(item, junctura.Gap):
            items = [[one.key, str(one.version)] for one in item.items]
            self.record.note("gap", items=items, reason=item.reason)
        else:
            what = {"id": item.key, "version": str(item.version), "place": item.transport}
            self.record.note("got", t=time.monotonic_ns(), **what, sum=digest(item), redelivered=item.redelivered)
            self.cursor = follow.cursor
            # What is pushed out is released.
            self.held.append(item)


class Task(Follower):
    """The same in an event loop."""

    def work(self, pool: junctura.Pool) -> None:
        asyncio.run(self.awaited(pool))

    async def awaited(self, pool: junctura.Pool) -> None:
        while not self.is_over():
            await self.await_session(pool, self.chance.choice(SESSION))
        await self.await_session(pool, None)

    async def await_session(self, pool: junctura.Pool, count: int | None) -> None:
        async with junctura.aio.Pool(pool).follow("", **self.options(is_last=count is None)) as follow:
            self.begins(pool, follow.snapshot_sequence)
            while count is None or (count > 0 and not self.is_over()):
                try:
                    item = await follow.next(timeout=None if count is None else 0.1)
                except junctura.Timeout:
                    continue
                if item is None:
                    return
                self.take(item, follow)
                count = None if count is None else count - 1


def main() -> None:
    role, name, url, store, directory, seed = sys.argv[1:]
    orders = Orders()
    record = Record(Path(directory), "producer" if role == "producer" else "consumer", name)
    one: Producer | Follower
    if role == "producer":
        one = Producer(name, record, orders, int(seed))
    else:
        one = (Task if role == "task" else Follower)(record, orders, int(seed))
    while True:
        try:
            with junctura.Pool(url, name=name, store=store, offer_timeout=None) as pool:
                one.work(pool)
                pool.sync()
            break
        except GONE:
            say("lost")
            orders.goes.get()
    record.note("end", through=None)
    say("ended")


if __name__ == "__main__":
    main()
