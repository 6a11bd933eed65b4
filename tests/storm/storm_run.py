"""Storms: loads whose processes are killed at random, and what has to be true of them and after them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e_shell import ROOT, Process, Shell
from storm_judge import Verdict, judge

import junctura

# Knows nothing of this program; not everywhere at hand.
INDEPENDENT = ROOT.parent / "shared/check/history.py"
# Memory that producers have to wait for, so that whoever is killed is in the middle of something.
CASES = {
    # name: options of the server, options of the load
    "inline": (["--budget", "2MiB"], ["--size", "1KiB"]),
    "slots": (["--budget", "96MiB"], ["--size", "200KiB"]),
    "bundles": (["--budget", "16MiB"], ["--size", "1KiB", "--bundle", "25", "--rate", "400"]),
    "spilled": (["--budget", "64MiB", "--spill", "SPILL", "--spill-size", "64MiB"], ["--size", "200KiB"]),
}
PEOPLE = ["--producers", "3", "--followers", "2", "--consumers", "6", "--groups", "2"]
SPACE = ["--members", "6", "--steps", "3", "--levels", "5", "--params", "5"]
LOAD = [*PEOPLE, *SPACE, "--mode", "verify", "--window", "16", "--work", "1ms", "--warmup", "0s"]


@dataclass(frozen=True)
class Storm:
    """One load: what is offered, what is drawn from, how long."""

    case: str
    seed: int
    seconds: int
    kills_per_second: int = 5

    def options(self) -> list[str]:
        kills = self.kills_per_second * self.seconds
        each = {"producers": kills // 4, "consumers": kills // 4, "members": kills // 2}
        drawn = ["--kills", ",".join(f"{kind}={count}" for kind, count in each.items()), "--seed", str(self.seed)]
        return [*LOAD, *CASES[self.case][1], *drawn, "--duration", f"{self.seconds}s"]


@dataclass(frozen=True)
class State:
    """What a server has in its hands when nobody is there: exact, but for the memory that its allocator keeps."""

    clients: int
    objects: dict[str, int]
    memory: dict[str, int]
    interests: dict[str, int]
    bundles: int
    descriptors: int
    spill: dict[str, int]
    # Since the server began.
    spilled: int
    private_kib: int

    def exact(self) -> tuple[Any, ...]:
        return (self.clients, self.objects, self.memory, self.interests, self.bundles, self.descriptors, self.spill)


class Served:
    """A pool whose server is looked at from outside, too."""

    def __init__(self, shell: Shell, case: str) -> None:
        self.shell = shell
        self.spill = shell.folder / "spill"
        options = [str(self.spill) if option == "SPILL" else option for option in CASES[case][0]]
        self.server: Process = shell.serve("--schema", "mars", "--tombstone-age", "1ms", *options)
        self.url = f"unix:{shell.folder}/junctura/test.sock"

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        with junctura.Pool(self.url, name="watch") as pool, pool.subscribe(kinds=["left"]) as left:
            yield Watch(self.server.pid, self.spill, pool, left)

    def storm(self, storm: Storm, directory: Path) -> dict[str, Any]:
        """Runs a load to its end; its figures."""
        command = ["load", "pool", "--pool", self.url, "--json", "--history", str(directory), *storm.options()]
        out = self.shell.result(self.shell.start(*command), 60 + 3 * storm.seconds)
        figures: dict[str, Any] = json.loads(out)
        return figures


@dataclass(frozen=True)
class Watch:
    """A client that hears who leaves."""

    server: int
    spill: Path
    pool: junctura.Pool
    left: junctura.Subscription

    def state(self) -> State:
        """What there is once everyone else has left."""
        while (stat := self.pool.stat())["clients_connected"] > 1:
            next(self.left)
        status = Path(f"/proc/{self.server}/status").read_text(encoding="ascii")
        anonymous = next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))
        # Tombstones go with time; the budget is no figure of what is used.
        objects = {name: count for name, count in stat["objects"].items() if name != "tombstones"}
        spill = {name: (stat["spill"] or {}).get(name, 0) for name in ("used_bytes", "objects", "underway", "refused")}
        descriptors = list(Path(f"/proc/{self.server}/fd").iterdir())
        in_spill = [one for one in descriptors if one.readlink().is_relative_to(self.spill)]
        spill["disk_bytes"] = sum(one.stat().st_blocks * 512 for one in in_spill[:1])
        spill["names"] = len(list(self.spill.iterdir())) if self.spill.exists() else 0
        return State(
            clients=stat["clients_connected"],
            objects=objects,
            memory={name: count for name, count in stat["memory"].items() if name != "budget_bytes"},
            interests=stat["interests"],
            bundles=stat["bundles"]["open"] + stat["bundles"]["staged"],
            descriptors=len(descriptors),
            spill=spill,
            spilled=(stat["spill"] or {}).get("written", 0),
            private_kib=int(anonymous),
        )


def check(figures: dict[str, Any], directory: Path) -> Verdict:
    """Fails where a promise was broken."""
    # Of gaps, the records show which are none: one that replaces another may miss what that one completed.
    for name in ("lost", "duplicates", "damaged"):
        assert figures[name] == 0, f"{name}: {figures[name]}"
    verdict = judge(directory)
    assert not verdict.broken, "\n".join(verdict.broken)
    assert verdict.acknowledged > 0
    assert verdict.groups == figures["run"]["groups"]
    judged = independent(directory)
    assert judged is None or judged["acknowledged"] == verdict.acknowledged
    return verdict


def independent(directory: Path, *, is_whole: bool = True) -> dict[str, Any] | None:
    """What the independent judge says, where it is at hand. Of a run that nobody ended in order it may know little."""
    if not INDEPENDENT.exists():
        return None
    asked = [sys.executable, str(INDEPENDENT), str(directory), "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode in ((0,) if is_whole else (0, 2)), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["broken"] == {}
    assert not is_whole or found["groups_not_judged"] == 0
    return {"acknowledged": found["offers_acknowledged"], **found}
