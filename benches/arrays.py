"""Measures how fast arrays go from one layout into another between processes of one machine, and how long planning is.

``crates/junctura-copy/examples/array_speed.rs`` does ours: producers' pieces lie in shared memory, four processes copy
what they want out of them at once, and each ``memcpy`` of as much between two memories of their own stands beside each
copy; the median of the ratios is the figure. ``benches/rivals/mpi_arrays.cpp`` does the same with ScaLAPACK's
``pdgemr2d`` and with one ``MPI_Alltoallw``, each beside a ``memcpy`` of its own. They have columns only: what lies by
rows they get as the transpose, which lies by columns, with rows and columns of blocks exchanged; byte by byte that is
the same memory.

How long one rank plans, from 4 ranks to 2^20, stands beside a scan over all ranks; ``plan_plot.py`` draws that at the
end (``plans.png`` beside the figures).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import plan_plot
from harness import TARGET, Bench, Case, Check, Contender, Figures, LeftOutError, Measure, begin, call

SPEED = str(TARGET / "release/examples/array_speed")
RIVAL = str(TARGET / "benches/mpi_arrays")
SHARE = Measure("share_of_memcpy", "of memcpy", more_is_better=True)
PLANNING = Measure("planning_share", "of the time", more_is_better=False)
BOXES = Measure("boxes", "boxes", more_is_better=True)
PLAN = Measure("plan_us", "us", more_is_better=False)
A_RUN = Measure("plan_ns_a_run", "ns a run", more_is_better=False)
READ, LAST = "each element, once", "the last rank"
LARGE = "shape=8192x8192 grid=2x2"
SMALL = "shape=4096x4096 grid=2x2"
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "cma",
    "OMP_NUM_THREADS": "1",
}


@cache
def build() -> None:
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura-copy", "--example", "array_speed"], 1800)


@cache
def build_rival() -> None:
    if shutil.which("mpicxx") is None:
        raise LeftOutError("there is no MPI (benches/setup.sh)")
    Path(RIVAL).parent.mkdir(parents=True, exist_ok=True)
    source = str(Path(__file__).resolve().parent / "rivals/mpi_arrays.cpp")
    call(["mpicxx", "-std=c++17", "-O3", "-Wall", source, "-o", RIVAL, "-lscalapack-openmpi"], 300)


def flat(figures: Figures, way: str) -> Figures:
    """What one way took, with what all have in common."""
    common = {name: value for name, value in figures.items() if name != "ways"}
    return {**common, **figures["ways"][way]}


class Asked:
    """A pair of layouts, what its elements are, and what has been measured of it."""

    def __init__(
        self,
        bench: Bench,
        layouts: tuple[str, str],
        types: tuple[str, str] = ("f8", "f8"),
        *more: str,
        rounds: int = 15,
    ) -> None:
        self.rounds = 3 if bench.quick else rounds
        self.command = [SPEED, *layouts, *types, str(self.rounds), *more]
        self.rival: list[str] = []
        self.seen: dict[str, Figures] = {}

    def ours(self) -> Figures:
        build()
        self.seen["ours"] = json.loads(call(self.command, 600))
        return flat(self.seen["ours"], "copy")

    def portable(self) -> Figures:
        return flat(self.seen["ours"], "portable")

    def rivals(self, way: str) -> Figures:
        """Both are measured by one run, when the first is asked for."""
        if way == "pdgemr2d":
            self.seen.pop("rival", None)
        if "rival" not in self.seen:
            build_rival()
            command = ["mpirun", "-np", "4", "--oversubscribe", *self.rival]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **MPI})
            if done.returncode != 0:
                raise LeftOutError(f"mpirun: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
            self.seen["rival"] = json.loads(done.stdout)
        return flat(self.seen["rival"], way)

    def contenders(self) -> list[Contender]:
        all_of = [Contender("junctura", "us", LAST, READ, self.command, self.ours)]
        if "portable" in self.command:
            all_of.append(Contender("junctura, portable", "us", LAST, READ, self.command, self.portable))
        if self.rival:
            command = ["mpirun", "-np", "4", *self.rival]
            all_of += [
                Contender("ScaLAPACK, pdgemr2d", "rival", LAST, READ, command, lambda: self.rivals("pdgemr2d")),
                Contender("MPI_Alltoallw", "rival", LAST, READ, command, lambda: self.rivals("alltoallw")),
            ]
        return all_of


def matrices(bench: Bench) -> list[Case]:
    """Blocks of one size into blocks of another."""
    cases = []
    for name, question, layouts, rival, at_least in [
        (
            "arrays-large-c",
            "8192 x 8192 f64, blocks 256 x 256 -> 100 x 37, row-major",
            (f"{LARGE} block=256x256", f"{LARGE} block=100x37"),
            ["8192", "8192", "256", "256", "37", "100"],
            0.65,
        ),
        (
            "arrays-large-f",
            "the same, column-major, as ScaLAPACK has it",
            (f"{LARGE} block=256x256 order=F", f"{LARGE} block=100x37 order=F"),
            ["8192", "8192", "256", "256", "100", "37"],
            0.55,
        ),
        (
            "arrays-small-c",
            "4096 x 4096 f64, blocks 32 x 32 -> 7 x 5, row-major",
            (f"{SMALL} block=32x32", f"{SMALL} block=7x5"),
            ["4096", "4096", "32", "32", "5", "7"],
            0.5,
        ),
        (
            "arrays-small-f",
            "the same, column-major",
            (f"{SMALL} block=32x32 order=F", f"{SMALL} block=7x5 order=F"),
            ["4096", "4096", "32", "32", "7", "5"],
            0.5,
        ),
    ]:
        asked = Asked(bench, layouts, ("f8", "f8"), "portable")
        asked.rival = [RIVAL, *rival, str(asked.rounds)]
        checks = [
            Check("junctura", at_least=at_least),
            Check("junctura", at_most=0.002, measure=PLANNING),
        ]
        cases.append(Case(name, question, SHARE, asked.contenders(), checks))
    return cases


def changes(bench: Bench) -> list[Case]:
    """What else may happen in the same pass."""
    from_rows, to_columns = f"{LARGE} block=256x256", f"{LARGE} block=100x37 order=F"
    cases = []
    for name, question, asked, at_least in [
        ("arrays-turned", "the first, into column-major", Asked(bench, (from_rows, to_columns)), 0.4),
        (
            "arrays-turned-huge",
            "the same, into huge pages",
            Asked(bench, (from_rows, to_columns), ("f8", "f8"), "huge"),
            0.5,
        ),
        (
            "arrays-narrowed",
            "the first, f64 -> f32, as a share of the f64 bytes",
            Asked(bench, (from_rows, f"{LARGE} block=100x37"), ("f8", "f4")),
            0.5,
        ),
    ]:
        cases.append(Case(name, question, SHARE, asked.contenders(), [Check("junctura", at_least=at_least)]))
    return cases


def overlaps(bench: Bench) -> list[Case]:
    """Many small boxes: cubes of two ranks become the whole of one."""
    cases = []
    for packed in (False, True):
        for size in (4, 8, 16, 32):
            storage = " storage=packed" if packed else ""
            layouts = (f"shape=512x512x384 grid=1x1x2 block={size}x{size}x{size}{storage}", "shape=512x512x384")
            at_least = 0.6 if size == 4 else 0.7 if packed else 0.9
            name = f"arrays-cubes-{size}{'-packed' if packed else ''}"
            how = "block behind block" if packed else "row-major"
            question = f"512 x 512 x 384 f64 of two ranks, cubes of {size}, {how}, into one"
            asked = Asked(bench, layouts)
            checks = [
                Check("junctura", at_least=at_least),
                Check("junctura", at_most=0.002, measure=PLANNING),
            ]
            cases.append(Case(name, question, SHARE, asked.contenders(), checks))
    return [*cases, *millions(bench)]


def millions(bench: Bench) -> list[Case]:
    """The most overlaps: as many as the designers of UDJ had. Single precision, so that five copies are 9 GiB."""
    shape, blocks = "shape=512x512x1792", 3_670_016
    cases = []
    for name, how, storage in (
        ("arrays-millions", "row-major", ""),
        ("arrays-millions-packed", "block behind block", " storage=packed"),
    ):
        asked = Asked(bench, (f"{shape} grid=1x1x2 block=4x4x4{storage}", shape), ("f4", "f4"), rounds=5)
        question = f"512 x 512 x 1792 f32 of two ranks, {blocks:,} cubes of 4 of each, {how}, into one"
        checks = [Check("junctura", at_least=0.6), Check("junctura", at_most=0.01, measure=PLANNING)]
        if storage:
            # By rows, what lies behind each other of a rank's cubes is one run.
            checks.append(Check("junctura", at_least=2 * blocks, measure=BOXES))
        cases.append(Case(name, question, SHARE, asked.contenders(), checks, rounds_max=2))
    return cases


def plans() -> list[Case]:
    """How long one rank plans, whatever the number of ranks is."""

    def case(name: str, question: str, layouts: tuple[str, str], measure: Measure, at_most: float) -> Case:
        command = [SPEED, "plan", *layouts]

        def run() -> Figures:
            build()
            figures: Figures = json.loads(call(command, 60))
            return figures

        contender = Contender("junctura", "us", "the plan", "nothing", command, run)
        return Case(name, question, measure, [contender], [Check("junctura", at_most=at_most)])

    def grids(extent: int, producers: int, consumers: int, blocks: tuple[int, int]) -> tuple[str, str]:
        return (
            f"shape={extent} grid={producers} block={blocks[0]}",
            f"shape={extent} grid={consumers} block={blocks[1]}",
        )

    many, fewer = 2**20, 3 * 2**18
    return [
        case(
            "plan-million",
            "2^20 producers and 3 x 2^18 consumers, blocks of 64 and 48",
            grids(2**36, many, fewer, (64, 48)),
            PLAN,
            2,
        ),
        case(
            "plan-sixteen",
            "16 producers and 12 consumers, the same blocks",
            grids(2**20, 16, 12, (64, 48)),
            PLAN,
            2,
        ),
        case(
            "plan-uneven",
            "2^20 producers and 786,433 consumers, nothing in common",
            grids(2**36, many, fewer + 1, (64, 48)),
            A_RUN,
            30,
        ),
    ]


def scans() -> list[Case]:
    """How long one rank plans over the number of ranks, beside who asks of each rank whether anything is shared."""

    def case(ranks: int) -> Case:
        layouts = [f"shape={2**36} grid={ranks} block=64", f"shape={2**36} grid={ranks * 3 // 4} block=48"]
        command = [SPEED, "plan", *layouts]
        seen: Figures = {}

        def plan() -> Figures:
            build()
            seen.update(json.loads(call(command, 60)))
            return {PLAN.path: seen[PLAN.path], "listed": seen["listed"], "partners": seen["partners"]}

        contenders = [
            Contender("junctura", "us", "the plan", "nothing", command, plan),
            # Of the same run.
            Contender("a scan over all", "rival", "who", "nothing", command, lambda: {PLAN.path: seen["scan_us"]}),
        ]
        question = f"{ranks:,} producers and {ranks * 3 // 4:,} consumers, blocks of 64 and 48"
        return Case(f"{plan_plot.CASE}{ranks}", question, PLAN, contenders, [Check("junctura", at_most=2)])

    return [case(4**power) for power in range(1, 11)]


def main() -> int:
    bench = begin("arrays", "How fast do arrays go from one layout into another?")
    status = bench.run([*matrices(bench), *changes(bench), *overlaps(bench), *plans(), *scans()])
    plan_plot.draw(bench.cases, Path(bench.arguments.out) / "plans.png")
    return status


if __name__ == "__main__":
    sys.exit(main())
