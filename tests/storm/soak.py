"""Storms one after the other, each with a seed of its own, until the time is over.

In one of them it is the server that is killed, several times; in two there is a store behind the pool.

``tests/storm/soak.py`` lasts ten minutes; ``--minutes`` says otherwise. The first that breaks a promise ends it, with
the command that runs it again and the folder of its records. A seed draws who is killed and when; what those were about
then is up to the machine, so one that failed once may have to be run several times (``--times``).
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

import storm_archived
from e2e_shell import Shell
from storm_lives import live_and_die
from storm_run import CASES, Served, Storm, check

KILLED = "killed"
LIVES = 6
ALL = [*CASES, KILLED, *storm_archived.CASES]
# Where there is a store.
KILLS_PER_SECOND = 2


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Storms with fresh seeds.")
    parser.add_argument("--minutes", type=float, default=10.0, help="no storm begins after this time (default: 10)")
    parser.add_argument("--seconds", type=int, default=20, help="how long a storm lasts (default: 20)")
    parser.add_argument("--case", choices=ALL, help="this one alone")
    parser.add_argument("--seed", type=int, help="this seed alone, and no fresh ones")
    parser.add_argument("--times", type=int, default=1, help="with --seed: how often (default: 1)")
    return parser.parse_args()


def storms(asked: argparse.Namespace) -> Iterator[Storm]:
    """What is to be run, as long as there is time."""
    cases = [asked.case] if asked.case else ALL
    if asked.seed is not None:
        yield from (Storm(case, asked.seed, asked.seconds) for _ in range(asked.times) for case in cases)
        return
    end = time.monotonic() + 60 * asked.minutes
    for case in itertools.cycle(cases):
        if time.monotonic() >= end:
            return
        yield Storm(case, random.SystemRandom().randrange(1 << 32), asked.seconds)


def weather(storm: Storm, directory: Path) -> str:
    """One storm and its end; what was seen."""
    shell = Shell()
    try:
        if storm.case == KILLED:
            told: list[str] = []
            live_and_die(shell, directory, storm.seed, LIVES, told.append)
            return "; ".join(told)
        if storm.case in storm_archived.CASES:
            kills = KILLS_PER_SECOND * storm.seconds
            return storm_archived.weather(shell, directory, storm.case, storm.seed, kills)
        served = Served(shell, storm.case)
        with served.watched() as watch:
            before = watch.state()
            verdict = check(served.storm(storm, directory), directory)
            after = watch.state()
            assert after.exact() == before.exact(), f"{before}\n{after}"
    finally:
        shell.close()
    return f"{verdict.acknowledged} acknowledged, {verdict.under_way} under way, {verdict.deliveries} deliveries"


def main() -> int:
    asked = options()
    count = 0
    for storm in storms(asked):
        name = f"--case {storm.case} --seed {storm.seed} --seconds {storm.seconds}"
        directory = Path(tempfile.mkdtemp(prefix="junctura-storm-"))
        try:
            print(f"storm {name}: {weather(storm, directory)}", flush=True)
        except Exception as error:
            print(f"storm {name}: {error}\nrecords: {directory}")
            print(f"again: .venv/bin/python tests/storm/soak.py {name} --times 10")
            return 1
        shutil.rmtree(directory)
        count += 1
    print(f"{count} storms, every promise held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
