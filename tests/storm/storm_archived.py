"""Storms around a store: objects are archived, leave the pool, and are read again, while processes are killed.

Producers offer more than the pool has room for, some of it durably; an archiver keeps it, and what is kept makes room;
followers begin in the store and go on live. Producers, followers and the archiver are killed and replaced, and in one
kind of storm the server. After it: what was acknowledged as durable is in the store byte for byte, and what followers
have seen is judged.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from archived_client import Record, digest
from e2e_shell import Process, Shell
from storm_judge import judge, read
from storm_run import independent

import junctura

CLIENT = Path(__file__).parent / "archived_client.py"
# name: whether servers are killed, too
CASES = {"archived": False, "archived-killed": True}
PRODUCERS = 3
FOLLOWERS = ("follower", "task", "follower", "task")
# What is retained until somebody withdraws it leaves for the store soon.
BUDGET = "8MiB"
# Objects of one producer between two kills.
PAUSE = range(20, 120)


class Client:
    """A process, and what it says."""

    def __init__(self, role: str, name: str, arguments: Iterable[str | Path], environment: dict[str, str]) -> None:
        self.role, self.name = role, name
        command = [sys.executable, str(CLIENT), role, name, *map(str, arguments)]
        pipe = subprocess.PIPE
        self.popen = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)

    def order(self, word: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(word + "\n")
        self.popen.stdin.flush()

    def until(self, *words: str) -> str:
        """What it says next that is one of these words."""
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            if line.strip() in words:
                return line.strip()
        raise AssertionError(f"{self.name} died: {self.popen.wait()}")

    def kill(self) -> None:
        self.popen.kill()
        self.popen.communicate()


class Storm:
    """A pool, its archiver, a store, and clients that come and go."""

    def __init__(self, shell: Shell, folder: Path, seed: int, *, kills_servers: bool) -> None:
        self.shell, self.store, self.directory = shell, folder / "store", folder / "history"
        self.directory.mkdir()
        shell.run("store", "create", "--store", self.store, "--schema", "free", "--quiet")
        self.url = f"unix:{shell.folder}/junctura/test.sock"
        self.chance, self.kills_servers = random.Random(seed), kills_servers
        self.environment = {**os.environ, "ARCHIVED_ALL_DURABLE": str(int(kills_servers))}
        self.told = Record(self.directory, "observer", "driver")
        self.clients: list[Client] = []
        self.count = 0
        self.dropped = 0

    @contextmanager
    def begun(self) -> Iterator[None]:
        try:
            self.serve()
            for number in range(PRODUCERS):
                self.start("producer", number)
            for role in FOLLOWERS:
                self.start(role)
            yield
        finally:
            for client in self.clients:
                client.kill()

    def serve(self) -> None:
        self.server: Process = self.shell.serve("--schema", "free", "--budget", BUDGET)
        # Before there is an archiver, it is said what it will get.
        with junctura.Pool(self.url) as pool:
            pool.require("", name="archive")
        self.keep()

    def keep(self) -> None:
        options = ("--store", self.store, "--window", "16", "--checkpoint-every", "7", "--quiet")
        self.archiver = self.shell.start("store", "archiver", "--pool", "unix:test", "*", *options)

    def start(self, role: str, seed: int | None = None) -> None:
        name, self.count = f"{role[0]}{self.count}", self.count + 1
        number = self.chance.randrange(1, 1 << 32) if seed is None else seed
        arguments = (self.url, self.store, self.directory, str(number))
        self.clients.append(Client(role, name, arguments, self.environment))

    def kill_some(self, kills: int) -> None:
        """The first producer stays: it says when."""
        whom = ["client"] * 4 + ["archiver"] * 2 + ["server"] * self.kills_servers
        for number in range(kills):
            for _ in range(self.chance.choice(PAUSE)):
                self.clients[0].until("offered")
            # Every kind is among them.
            match whom[number] if number < len(whom) else self.chance.choice(whom):
                case "client":
                    self.replace(self.clients[self.chance.randrange(1, len(self.clients))])
                case "archiver":
                    self.archiver.kill()
                    self.keep()
                case _:
                    self.kill_server()

    def replace(self, client: Client) -> None:
        client.kill()
        self.clients.remove(client)
        self.start(client.role)

    def kill_server(self) -> None:
        self.note_dropped()
        self.server.kill()
        self.told.note("server killed")
        self.archiver.kill()
        for client in self.clients:
            client.until("lost")
        self.serve()
        for client in self.clients:
            client.order("go")

    def note_dropped(self) -> None:
        with junctura.Pool(self.url) as pool:
            self.dropped += pool.stat()["totals"]["dropped_archived"]

    def end(self) -> None:
        """Producers end, and then those who have all to receive."""
        for is_producer in (True, False):
            part = [client for client in self.clients if (client.role == "producer") == is_producer]
            for client in part:
                client.order("end")
            for client in part:
                client.until("ended")
                assert client.popen.wait() == 0
        self.note_dropped()

    def rows(self, names: str, op: str) -> list[dict[str, Any]]:
        return [row for path in self.directory.glob(f"{names}.jsonl") for row in read(path) if row["op"] == op]

    def check(self) -> str:
        """Fails where a promise was broken; what was seen."""
        lasting, kept = self.what_was_to_last(), self.what_lasts()
        assert lasting
        assert self.dropped > 0
        assert kept.items() >= lasting.items()
        acknowledged = {row["version"] for row in self.rows("p*", "offered")}
        gots = self.rows("[ft]*", "got")
        if self.kills_servers:
            self.tell_what_died(gots, acknowledged, kept)
        verdict = judge(self.directory, is_whole=False, is_shared=False)
        assert verdict.broken == []
        independent(self.directory)
        for client in self.clients:
            if client.role != "producer":
                got = {row["version"] for row in self.rows(client.name, "got")}
                assert acknowledged <= got, f"{client.name} never had {sorted(acknowledged - got)[:5]}"
        stored = sum(row["place"] == "store" for row in gots)
        return (
            f"{len(acknowledged)} acknowledged, {len(lasting)} of them durable, {self.dropped} left the pool for the "
            f"store, {len(gots)} deliveries, {stored} of them from the store"
        )

    def tell_what_died(
        self, gots: list[dict[str, Any]], acknowledged: set[str], kept: Container[tuple[str, str]]
    ) -> None:
        """What some have seen live, and its server took with it before it was acknowledged or archived."""
        for what in {(row["id"], row["version"]) for row in gots if row["version"] not in acknowledged}:
            if what not in kept:
                self.told.note("gone", id=what[0], version=what[1], why="its server was killed")

    def what_was_to_last(self) -> dict[tuple[str, str], str]:
        """Keys and versions that were acknowledged as durable, and what they are."""
        lasting = {}
        for path in self.directory.glob("p*.jsonl"):
            offering = {row["n"]: row for row in read(path) if row["op"] == "offering"}
            for row in read(path):
                if row["op"] == "offered" and row["durability"] == "durable":
                    lasting[offering[row["n"]]["id"], row["version"]] = offering[row["n"]]["sum"]
        return lasting

    def what_lasts(self) -> dict[tuple[str, str], str]:
        with junctura.Store(self.store) as store:
            listing = store.list(all_versions=True)
            return {(entry.key, str(entry.version)): digest(entry.read()) for entry in listing}


def weather(
    shell: Shell, folder: Path, case: str, seed: int, kills: int, tell: Callable[[str], None] = lambda _: None
) -> str:
    """One storm and its end; what was seen."""
    storm = Storm(shell, folder, seed, kills_servers=CASES[case])
    with storm.begun():
        storm.kill_some(kills)
        storm.end()
    seen = storm.check()
    tell(f"{case}: {seen}")
    return seen
