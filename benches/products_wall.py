"""Measures what products cost the forecast that they are made of: both alone, and both at once, on the same cores.

The ensemble of the demo, and its twenty recipes, as processes that a user starts: a server, six members,
``junctura run``. In a round the ensemble runs alone, then the products are made of what it left in the pool, then both
run at once on a new pool. The first case leaves all cores to everybody; in the second one the server and the members
have one core and the products another, in all three runs.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import ROOT, TARGET, Bench, Case, Check, Contender, Figures, LeftOutError, Measure, begin, served

MEMBERS, HOURS_APART = 6, 3
SUM = Measure("to_sum", "of T1 + T2", more_is_better=False)
LARGER = Measure("to_larger", "of the larger", more_is_better=False)
RECIPES = ROOT / "examples/12_products/recipes"
MODEL = ROOT / "examples/11_swell/swell.py"
# One thread for each process.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# Which cores.
Cores = set[int]
# Options of the server.
POOL = ("--schema", "mars", "--budget", "2GiB")


def start(command: list[str], cores: Cores, folder: Path) -> subprocess.Popen[bytes]:
    """A process on these cores, and all that it starts; what it tells is in a file of this folder."""
    names = ",".join(map(str, sorted(cores)))
    with (folder / "told").open("ab") as told:
        pinned = ["taskset", "-c", names, *command]
        return subprocess.Popen(pinned, env={**os.environ, **THREADS}, stdout=told, stderr=told)


def finish(process: subprocess.Popen[bytes], folder: Path) -> None:
    if process.wait() != 0:
        raise LeftOutError((folder / "told").read_text().strip().rpartition("\n")[2])


def ensemble(url: str, folder: Path, days: int, cores: Cores) -> list[subprocess.Popen[bytes]]:
    told = ["--days", str(days), "--every", f"{HOURS_APART}h", "--json"]
    numbers = range(1, MEMBERS + 1)
    command = [sys.executable, str(MODEL), "--pool", url, *told, "--member"]
    return [start([*command, str(number)], cores, folder) for number in numbers]


def products(url: str, folder: Path, days: int, cores: Cores) -> subprocess.Popen[bytes]:
    """Those of the demo, for as many days."""
    written = folder / "recipes"
    written.mkdir(exist_ok=True)
    for file in RECIPES.glob("*.yaml"):
        text = file.read_text().replace("step: 0/to/120/", f"step: 0/to/{24 * days}/")
        (written / file.name).write_text(text)
    shutil.rmtree(folder / "out", ignore_errors=True)
    files = [str(file) for file in sorted(written.glob("*.yaml"))]
    command = [sys.executable, "-m", "junctura.products", *files, "--pool", url, "--out", str(folder / "out")]
    return start([*command, "--workers", str(len(cores)), "--quiet"], cores, folder)


def three_runs(days: int, model: Cores, making: Cores) -> Figures:
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=TARGET) as name:
        folder = Path(name)
        with served(*POOL, cores=model) as server:
            begun = time.monotonic()
            for member in ensemble(server.url, folder, days, model):
                finish(member, folder)
            took["ensemble_s"] = time.monotonic() - begun
            begun = time.monotonic()
            finish(products(server.url, folder, days, making), folder)
            took["products_s"] = time.monotonic() - begun
        with served(*POOL, cores=model) as server:
            begun = time.monotonic()
            for process in [products(server.url, folder, days, making), *ensemble(server.url, folder, days, model)]:
                finish(process, folder)
            took["together_s"] = time.monotonic() - begun
    alone = took["ensemble_s"], took["products_s"]
    return {**took, "to_sum": took["together_s"] / sum(alone), "to_larger": took["together_s"] / max(alone)}


def case(name: str, measure: Measure, days: int, at_most: float, model: Cores, making: Cores) -> Case:
    run = functools.partial(three_runs, days, model, making)
    ours = Contender("junctura", "us", "the last product's file", "each value", [sys.executable, *sys.argv], run)
    question = f"Ensemble and products at once, {days} days, {name}: how long, beside each by itself"
    return Case(name, question, measure, [ours], [Check("junctura", at_most=at_most)], rounds_max=3)


def cases(bench: Bench) -> list[Case]:
    days = 1 if bench.quick else 5
    cores = sorted(os.sched_getaffinity(0))
    every = set(cores)
    made = [case("same cores", SUM, days, 1.05, every, every)]
    if len(cores) > 1:
        made.append(case("a core each", LARGER, days, 1.10, {cores[0]}, {cores[1]}))
    return made


def main() -> int:
    os.environ.setdefault("JUNCTURA_CACHE", str(TARGET / "benches/weights"))
    bench = begin("products_wall", "What do products cost the forecast that they are made of?")
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
