"""A client that lives longer than the servers it talks to: ``survivor.py producer|consumer NAME URL [GROUP]``.

Orders come as lines: ``begin FOLDER`` (connect, work, and record there what happens), then ``end`` (in good order,
once nothing new comes). It says ``ready`` when it has connected, and when its server dies ``lost`` with the code that
it was told; then it waits for the next order. A consumer that had a cursor tries it with the next server first, and
says what became of it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import junctura

READERS = 3
SIZES = (500, 100_000)
WORK_S = 0.001


class Orders:
    """What the driver says, read while the client works."""

    def __init__(self) -> None:
        self.begun: queue.Queue[str | None] = queue.Queue()
        self.is_over = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in sys.stdin:
            word, _, directory = line.strip().partition(" ")
            if word == "begin":
                self.begun.put(directory)
            else:
                self.is_over.set()
        self.is_over.set()
        self.begun.put(None)

    def lives(self) -> Iterator[Path]:
        while (directory := self.begun.get()) is not None:
            yield Path(directory)


class Record:
    """What happens in one life of the server, a line each, written before the client goes on."""

    def __init__(self, directory: Path, role: str, name: str, group: str | None) -> None:
        self.file = (directory / f"{name}.jsonl").open("wb", buffering=0)
        self.note("start", role=role, name=name, pid=os.getpid(), group=group)

    def note(self, op: str, **rest: Any) -> None:
        self.file.write(json.dumps({"op": op, **rest}).encode() + b"\n")


def say(word: str, **rest: Any) -> None:
    print(json.dumps({"said": word, **rest}), flush=True)


def digest(payload: Any) -> str:
    return f"{zlib.crc32(payload):08x}"


def produce(pool: junctura.Pool, record: Record, name: str, orders: Orders) -> None:
    schema = pool.schema("mars")
    fixed = {"class": "od", "expver": "0001", "stream": "enfo", "date": "20000101", "time": "0000", "type": "pf"}
    retention = junctura.Released(READERS)
    say("ready")
    for n in itertools.count():
        if orders.is_over.is_set():
            break
        attributes = {**fixed, "levtype": "pl", "step": n, "number": int(name[1:]), "levelist": 500, "param": "t"}
        payload = f"{name} {n} ".encode() * (SIZES[n % len(SIZES)] // 10)
        record.note("offering", n=n, id=schema.key(attributes), sum=digest(payload), bundle=None)
        try:
            version = pool.offer(payload, attributes, retention=retention)
        except junctura.Error as error:
            record.note("refused", n=n, error=type(error).__name__)
            raise
        record.note("offered", n=n, version=str(version))
        say("offered")


class Consumer:
    """One that receives everything, alone or as a member of a group."""

    def __init__(self, name: str, group: str | None) -> None:
        self.name, self.group = name, group
        self.cursor: str | None = None

    def follow(self, pool: junctura.Pool, record: Record, **options: Any) -> junctura.Follow:
        if self.group:
            follow = pool.follow("class=od", group=self.group, gaps="yield", live="yield", **options)
        else:
            follow = pool.follow("class=od", gaps="yield", live="yield", **options)
        seq = f"{pool.incarnation}.{follow.snapshot_sequence}"
        versions = "all" if self.group else "newest"
        record.note("following", wants="all", versions=versions, seq=seq, cursor=options.get("cursor"))
        return follow

    def what_became_of_the_cursor(self, pool: junctura.Pool) -> str:
        cursor, self.cursor = self.cursor, None
        if cursor is None:
            return "none"
        try:
            pool.follow("class=od", cursor=cursor).close()
        except junctura.Error as error:
            return type(error).__name__
        return "taken"

    def work(self, pool: junctura.Pool, record: Record, orders: Orders) -> None:
        became = self.what_became_of_the_cursor(pool)
        follow = self.follow(pool, record)
        say("ready", cursor=became)
        while not orders.is_over.is_set():
            with contextlib.suppress(junctura.Timeout):
                self.take(follow.next(timeout=0.1), record)
        # What is still on its way to another member comes back with that member's end.
        follow.close()
        # One alone goes on where it was.
        rest = {} if self.group else {"cursor": self.cursor}
        for item in self.follow(pool, record, until_live=True, **rest):
            self.take(item, record)

    def take(self, item: Any, record: Record) -> None:
        if isinstance(item, junctura.Live):
            record.note("live")
            return
        if isinstance(item, junctura.Gap):
            record.note("gap", items=[[one.key, str(one.version)] for one in item.items], reason=item.reason)
            return
        what = {"id": item.key, "version": str(item.version)}
        again = item.redelivered
        record.note("got", t=time.monotonic_ns(), **what, sum=digest(item), redelivered=again)
        self.cursor = item.cursor or self.cursor
        # The pace of the load: producers get ahead, so that there is something to lose.
        time.sleep(WORK_S)
        record.note("releasing", t=time.monotonic_ns(), **what)
        item.release()
        record.note("released", **what)


def main() -> None:
    role, name, url, *groups = sys.argv[1:]
    group = groups[0] if groups else None
    orders = Orders()
    consumer = Consumer(name, group)
    for directory in orders.lives():
        record = Record(directory, role, name, group)
        try:
            with junctura.Pool(url, name=name) as pool:
                if role == "producer":
                    produce(pool, record, name, orders)
                else:
                    consumer.work(pool, record, orders)
                pool.sync()
        except junctura.Error as error:
            say("lost", code=type(error).__name__)
        else:
            record.note("end", through=None)
            say("ended")


if __name__ == "__main__":
    main()
