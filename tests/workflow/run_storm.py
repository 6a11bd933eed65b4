"""Runs in which one task, drawn by a seed, fails, is killed or hangs: each ends by itself, and nothing is left of it.

``tests/workflow/run_storm.py`` does 200 of them; ``--seeds 7 8`` some again, ``--first N`` begins elsewhere. The first
that ends otherwise than it should, or not at all, ends it all, with the folder of its run.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from run_real import Real

COUNT = 200
HARM = (
    "none",
    "fails",
    "dies",
    "hangs",
    "fails once",
    "dies once",
    "is stopped once",
    "dies after offers",
    "dies joined",
    "kills the pool",
)
# What harm is done to: how a run without it ends, all other tasks are there for.
VICTIMS = ("produce-0", "produce-1", "service", "picture", "last", "watch")
# What hangs is ended soon. What is begun again after it was stopped needs its time on a busy machine.
LIMITS = {"hangs": "limit: 1s", "is stopped once": "limit: 10s"}
# Of some harm only these can be the victims.
ONLY = {
    "dies after offers": ("produce-0", "produce-1"),
    "kills the pool": ("produce-0", "produce-1"),
    "dies joined": ("service",),
}
# So much has no room in the memory of the pool when all members have offered two.
MEMORY, PAYLOAD = "1MiB", 300_000
_HARMFUL = """
import os, signal, sys
harm, once, command = sys.argv[1], sys.argv[2], sys.argv[3:]
if harm.endswith(" once"):
    # Others may be begun at the same time.
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        harm = "none"
if harm.startswith("fails"):
    sys.exit(3)
if harm.startswith("dies"):
    os.kill(os.getpid(), signal.SIGKILL)
if harm.startswith("is stopped"):
    os.kill(os.getpid(), signal.SIGSTOP)
if harm == "hangs":
    if os.fork() == 0:
        os.setsid()
    signal.pause()
if harm == "kills the pool":
    import junctura
    pool = junctura.Pool(os.environ["JUNCTURA_POOL"])
    os.kill(pool.stat()["server"]["pid"], signal.SIGKILL)
    os._exit(0)
if harm == "dies after offers":
    os.environ["DIES_AFTER"] = once
if harm == "dies joined":
    os.environ["DIES_JOINED"] = "yes"
os.execv(sys.executable, [sys.executable, *command])
"""


@dataclass(frozen=True)
class Case:
    """What is done to whom, and whether a second attempt is made."""

    harm: str
    victim: str
    attempts: int
    members: int
    objects: int
    # After how many offers it dies, where it does so.
    offers: int

    @classmethod
    def drawn(cls, seed: int) -> Case:
        chance = random.Random(seed)
        harm, victim = chance.choice(HARM), chance.choice(VICTIMS)
        if victim == "service" and harm == "is stopped once":
            # The limit that ends it would end the next one, too.
            harm = "dies once"
        if victim not in ONLY.get(harm, VICTIMS):
            victim = chance.choice(ONLY[harm])
        attempts, members, objects = chance.randint(1, 2), chance.randint(2, 3), chance.randint(0, 3)
        # A second one might be told to end before it dies: nobody needs it then.
        attempts = 1 if harm == "dies joined" else attempts
        return cls(harm, victim, attempts, members, objects, chance.randint(0, objects))

    @property
    def is_harmed(self) -> bool:
        """Whether somebody comes to harm: of a picture without an object nobody does."""
        return self.harm != "none" and (self.victim != "picture" or self.objects > 0)

    @property
    def code(self) -> int:
        return int(self.is_harmed and not (self.harm.endswith("once") and self.attempts == 2))

    def workflow(self, spill: Path) -> str:
        pool = f"pool: {{schema: free, memory: {MEMORY}, spill: '{spill}'}}"
        parts = ["workflow: storm", pool, "limit: 80s", "tasks:"]
        for member in range(self.members):
            parts += self._task(f"produce-{member}", "run", f"produce.py, m{member}, '{self.objects}', '{PAYLOAD}'")
        parts += self._task("service", "service", "serve.py")
        parts += self._task("picture", "run", "consume.py, '{object}'", "each: kind=field")
        last = [f"produce-{member}" for member in range(self.members)]
        parts += self._task("last", "run", "-c, pass", f"after: [picture, {', '.join(last)}]")
        watches = "'{here}/gone.py'" if self.harm == "dies joined" else "-c, pass"
        parts += self._task("watch", "run", watches, "joined: [service]")
        return "\n".join(parts) + "\n"

    def _task(self, name: str, key: str, command: str, start: str = "") -> list[str]:
        once = str(self.offers) if self.harm == "dies after offers" else "{here}/once"
        harmed = f"harmful.py, '{self.harm}', '{once}', " if name == self.victim else ""
        program, _, rest = command.partition(", ")
        placed = f"'{{here}}/{program}'" if harmed and program.endswith(".py") else program
        lines = [f"  {name}:", f"    {key}: [python, {harmed}{', '.join(filter(None, [placed, rest]))}]"]
        lines += [f"    start: {{{start}}}"] if start else []
        if name == self.victim:
            lines += [f"    attempts: {self.attempts}"]
            lines += [f"    {LIMITS[self.harm]}"] if self.harm in LIMITS else []
        return lines


def check(seed: int, folder: Path) -> str:
    """One run; what it was."""
    case = Case.drawn(seed)
    spill = folder / "spill"
    spill.mkdir()
    real = Real(folder, case.workflow(spill))
    (folder / "harmful.py").write_text(_HARMFUL)
    said = real.run(case.code)
    assert list(spill.iterdir()) == []
    outcomes = real.outcomes()
    made = case.members * case.objects
    if case.code == 0:
        assert set(outcomes.values()) == {"done"}, outcomes
        assert len(outcomes) == case.members + 4 + made, outcomes
    elif case.harm == "kills the pool":
        assert "the pool has ended" in said, said
    else:
        assert "failed" in outcomes.values(), said
    return f"{case.harm:<17} {case.victim:<10} {case.attempts} attempts, {made} objects: {case.code}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs in which a task comes to harm.")
    parser.add_argument("--seeds", type=int, nargs="+", help="these alone")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many (default: {COUNT})")
    given = parser.parse_args()
    seeds = given.seeds or range(given.first, given.first + given.count)
    for seed in seeds:
        folder = Path(tempfile.mkdtemp(prefix="junctura-run-storm-"))
        try:
            print(f"{seed}: {check(seed, folder)}", flush=True)
        except AssertionError as error:
            print(f"{seed}: {error}\nits run: {folder}\nagain: tests/workflow/run_storm.py --seeds {seed}")
            return 1
        shutil.rmtree(folder)
    print(f"{len(seeds)} runs ended as they should")
    return 0


if __name__ == "__main__":
    sys.exit(main())
