"""Lives of a server that is killed again and again, and what its clients must hear of that."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from e2e_shell import Process, Shell
from storm_judge import Verdict, judge
from storm_run import independent

import junctura

SURVIVOR = Path(__file__).parent / "survivor.py"


class Survivor:
    """A client process, and what it says."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, str(SURVIVOR), *arguments]
        self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def order(self, text: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(text + "\n")
        self.popen.stdin.flush()

    def until(self, *words: str) -> dict[str, Any]:
        """What it says next that is one of these words."""
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            told: dict[str, Any] = json.loads(line)
            if told["said"] in words:
                return told
        raise AssertionError(f"a client died: {self.popen.wait()}")


@contextmanager
def survivor(*arguments: str) -> Iterator[Survivor]:
    one = Survivor(*arguments)
    try:
        yield one
    finally:
        one.popen.kill()
        one.popen.communicate()


def order(clients: list[Survivor], text: str) -> None:
    for client in clients:
        client.order(text)


def hear(clients: list[Survivor], *words: str) -> list[dict[str, Any]]:
    """What each of them says next that is one of these words."""
    return [client.until(*words) for client in clients]


def new_server(shell: Shell, url: str, incarnation: int) -> tuple[Process, int]:
    """A server that has nothing of the one before it, and its incarnation."""
    server = shell.serve("--schema", "mars", "--budget", "64MiB")
    with junctura.Pool(url) as pool:
        stat = pool.stat()
    assert stat["incarnation"] > incarnation
    assert (stat["objects"]["visible"], stat["interests"]["named"], stat["sequence"]) == (0, 0, 0)
    return server, stat["incarnation"]


def verdict_of(directory: Path, *, is_whole: bool) -> Verdict:
    """Fails where a promise was broken."""
    verdict = judge(directory, is_whole=is_whole, is_shared=False)
    assert not verdict.broken, "\n".join(verdict.broken)
    independent(directory, is_whole=is_whole)
    return verdict


def live_and_die(bare: Shell, tmp_path: Path, seed: int, lives: int, tell: Callable[[str], None]) -> None:
    """So many servers under one name, one after the other, each killed when it has been at work for a while.

    A server's memory dies with it. What has to be true: every client is told ``Disconnected`` and can go on with the
    next server; nothing of an earlier life is there in a later one, and a cursor of an earlier life is refused as
    ``Expired``; while a server lives, and in its last moments, everything is as always, which the records of each life
    are judged by.
    """
    url = f"unix:{bare.folder}/junctura/test.sock"
    drawn = random.Random(seed)
    with ExitStack() as stack:
        consumers = [stack.enter_context(survivor("consumer", f"c{n}", url)) for n in range(2)]
        members = [stack.enter_context(survivor("consumer", f"g{n}", url, "g")) for n in range(2)]
        producers = [stack.enter_context(survivor("producer", f"p{n}", url)) for n in range(3)]
        readers = consumers + members
        incarnation, refused = 0, 0
        for life in range(1, lives + 1):
            server, incarnation = new_server(bare, url, incarnation)
            directory = tmp_path / str(life)
            directory.mkdir()
            order(readers, f"begin {directory}")
            became = [said["cursor"] for said in hear(readers, "ready", "lost")]
            assert set(became) <= {"Expired", "none"}
            refused += became.count("Expired")
            order(producers, f"begin {directory}")
            hear(producers, "ready")
            for _ in range(drawn.randrange(100, 600)):
                producers[0].until("offered")
            is_last = life == lives
            for part in (producers, members[1:], consumers + members[:1]) if is_last else ():
                order(part, "end")
                assert [said["said"] for said in hear(part, "ended", "lost")] == ["ended"] * len(part)
            server.kill()
            for said in hear(producers + readers, "lost", "ended") if not is_last else ():
                assert said == {"said": "lost", "code": "Disconnected"}
            verdict = verdict_of(directory, is_whole=is_last)
            tell(
                f"life {life}: {verdict.acknowledged} acknowledged, {verdict.deliveries} deliveries, "
                f"{verdict.lost} not received, added up over readers and groups, when the server was killed"
            )
        assert refused
