"""Followers of a pool with a store behind it, while objects leave the pool as soon as they are archived.

Producers offer what has to last; an archiver keeps it; the pool forgets what is archived. Followers come at any time,
leave, and go on from where they were. Whatever happens, servers and archivers being killed, too, each of them gets
each object that was acknowledged, once in a session, and in order.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from e2e_shell import Process, Shell
from storm_judge import judge, read
from storm_run import independent

import junctura

PRODUCERS = 3
FOLLOWERS = 4
OBJECTS = 400


class Record:
    """What one client has seen, as judges read it."""

    def __init__(self, directory: Path, role: str, name: str) -> None:
        self.file = (directory / f"{name}.jsonl").open("wb", buffering=0)
        self.note("start", role=role, name=name, pid=0, group=None)

    def note(self, op: str, **rest: Any) -> None:
        self.file.write(json.dumps({"op": op, **rest}).encode() + b"\n")


def digest(payload: bytes) -> str:
    return f"{zlib.crc32(payload):08x}"


class Junction:
    """A pool that is served, an archiver, and a store."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell, self.store, self.directory = shell, folder / "store", folder / "history"
        self.directory.mkdir()
        shell.run("store", "create", "--store", self.store, "--schema", "free", "--quiet")
        self.url = f"unix:{shell.folder}/junctura/test.sock"
        self.server: Process | None = None
        self.archiver: Process | None = None
        self.numbers = itertools.count()
        self.from_store = 0
        # What archivers tell has to be read.
        self.tells = "--quiet"
        # Whoever follows is told when all has been offered.
        self.is_over = threading.Event()
        self.is_served = threading.Event()

    def begin(self) -> None:
        self.server = self.shell.serve("--schema", "free")
        # Before there is an archiver, it is said what it will get.
        with self.pool("first") as pool:
            pool.require("", name="archive")
        self.keep()
        self.is_served.set()

    def die(self) -> None:
        """Kills the server, and the archiver with it."""
        assert self.server is not None
        assert self.archiver is not None
        self.is_served.clear()
        self.server.kill()
        self.archiver.kill()

    def keep(self) -> None:
        options = ("--store", self.store, "--window", "16", "--checkpoint-every", "7", self.tells)
        self.archiver = self.shell.start("store", "archiver", "--pool", "unix:test", "*", *options)

    def pool(self, name: str, **more: Any) -> junctura.Pool:
        return junctura.Pool(self.url, name=name, **more)

    def record(self, role: str, name: str) -> Record:
        return Record(self.directory, role, name)

    def followers(self) -> list[Callable[[], None]]:
        names = [f"f{number}" for number in range(FOLLOWERS)]
        return [partial(self.follow, name, self.record("consumer", name), seed) for seed, name in enumerate(names)]

    def produce(self, name: str, record: Record, count: int) -> None:
        """Offers, and waits for each object until it lasts; ends with the server."""
        retention = "released_by:archive"
        # The server may be dead before it has begun.
        with contextlib.suppress(junctura.errors.Unavailable), self.pool(name) as pool:
            for _ in range(count):
                number = next(self.numbers)
                attributes = {"name": f"{number:05}"}
                payload = f"{name} {number} ".encode() * (1, 100, 10_000)[number % 3]
                key = pool.schema().key(attributes)
                record.note("offering", n=number, id=key, sum=digest(payload), bundle=None)
                try:
                    version = pool.offer(payload, attributes, retention=retention, durability="durable")
                except junctura.Error as error:
                    record.note("refused", n=number, error=type(error).__name__)
                    return
                record.note("offered", n=number, version=str(version))

    def follow(self, name: str, record: Record, seed: int) -> None:
        """Follows to the end, and on the way leaves now and then, and comes back."""
        chance, cursor = random.Random(seed), None
        while not self.is_over.is_set():
            self.is_served.wait()
            with (
                contextlib.suppress(junctura.errors.Disconnected, junctura.errors.Unavailable),
                self.pool(name, store=self.store) as pool,
            ):
                cursor = self.session(pool, record, cursor, chance.randrange(20, 200))
        with self.pool(name, store=self.store) as pool:
            self.session(pool, record, cursor, None)
        record.note("end", through=None)

    def session(self, pool: junctura.Pool, record: Record, cursor: str | None, count: int | None) -> str | None:
        """Receives some objects, or all that are there; the cursor behind the last."""
        follow = pool.follow("", cursor=cursor, until_live=count is None, window=8, gaps="yield", live="yield")
        sequence = f"{pool.incarnation}.{follow.snapshot_sequence}"
        record.note("following", wants="all", versions="newest", seq=sequence, cursor=cursor)
        with contextlib.suppress(junctura.errors.Disconnected):
            for item in self.items(follow, count):
                if isinstance(item, junctura.Object):
                    self.from_store += item.transport == "store"
                    self.receive(item, record)
                    cursor = str(follow.cursor)
                elif isinstance(item, junctura.Gap):
                    record.note("gap", items=[[one.key, str(one.version)] for one in item.items], reason=item.reason)
                else:
                    record.note("live")
        return cursor

    def items(self, follow: junctura.Follow, count: int | None) -> Iterator[Any]:
        received = 0
        while count is None or (received < count and not self.is_over.is_set()):
            try:
                item = follow.next(timeout=None if count is None else 0.2)
            except junctura.errors.Timeout:
                continue
            if item is None:
                return
            received += 1
            yield item

    @staticmethod
    def receive(one: junctura.Object, record: Record) -> None:
        with one:
            about = {"id": one.key, "version": str(one.version)}
            record.note("got", t=time.time_ns(), **about, sum=digest(bytes(one)), redelivered=one.redelivered)

    def judge(self, tell: Callable[[str], None], *, servers_died: bool) -> None:
        verdict = judge(self.directory, is_whole=not servers_died, is_shared=False)
        assert verdict.broken == []
        assert verdict.acknowledged > 0
        if servers_died:
            # What was seen and not acknowledged may be gone with its server.
            for number in range(FOLLOWERS):
                assert self.versions("p*", "offered") <= self.versions(f"f{number}", "got")
        else:
            independent(self.directory)
        tell(
            f"{verdict.acknowledged} acknowledged, {verdict.deliveries} deliveries to {FOLLOWERS} followers, "
            f"{self.from_store} of them from the store"
        )

    def versions(self, who: str, what: str) -> set[str]:
        rows = (row for path in self.directory.glob(f"{who}.jsonl") for row in read(path))
        return {row["version"] for row in rows if row["op"] == what}


@pytest.fixture
def junction(bare: Shell, tmp_path: Path) -> Junction:
    return Junction(bare, tmp_path)


def together(works: Sequence[Callable[[], None]]) -> list[BaseException]:
    """Runs them in threads; what they raised."""
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_followers_miss_nothing_that_leaves_the_pool(junction: Junction, tell: Callable[[str], None]) -> None:
    junction.begin()

    def produce_all() -> None:
        names = [f"p{number}" for number in range(PRODUCERS)]
        offers = [partial(junction.produce, name, junction.record("producer", name), OBJECTS) for name in names]
        raised = together(offers)
        junction.is_over.set()
        assert raised == []

    raised = together([produce_all, *junction.followers()])
    assert raised == []
    junction.judge(tell, servers_died=False)


def test_what_was_durable_outlives_servers_and_archivers(junction: Junction, tell: Callable[[str], None]) -> None:
    """Kills the server, and now and then the archiver alone, while everybody works."""
    lives, chance = 4, random.Random(20261122)
    records = [junction.record("producer", f"p{number}") for number in range(PRODUCERS)]
    junction.tells = "--json"

    def live_and_die() -> None:
        try:
            for life in range(lives):
                junction.begin()
                assert junction.archiver is not None
                offering = [
                    threading.Thread(target=junction.produce, args=(f"p{number}", record, OBJECTS))
                    for number, record in enumerate(records)
                ]
                for thread in offering:
                    thread.start()
                for _ in range(chance.randrange(5, 20)):
                    junction.archiver.line()
                junction.archiver.kill()
                if life % 2 == 0:
                    junction.keep()
                    for _ in range(chance.randrange(5, 20)):
                        junction.archiver.line()
                junction.die()
                for thread in offering:
                    thread.join()
        finally:
            junction.begin()
            junction.is_over.set()

    raised = together([live_and_die, *junction.followers()])
    assert raised == []
    junction.judge(tell, servers_died=True)
