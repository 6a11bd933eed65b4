"""Measures what the C library costs beside Rust, and coupled exchanges beside YAC and OASIS3-MCT.

``simulations/abi_speed.c`` and ``crates/junctura/examples/abi_speed.rs`` are one loop in two languages: allocate, fill,
offer, demand, release, in a private pool. ``simulations/coupled.c`` is one rank of two models that exchange a field
both ways with each step: means of four cells to the coarse grid, and copies back. ``simulations/coupled_yac.py`` and
``simulations/coupled_oasis.f90`` do the same with YAC and OASIS3-MCT, where these are installed. Each has the same
values; YAC computes weights itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Literal

from harness import (
    ROOT,
    TARGET,
    Bench,
    Case,
    Check,
    Contender,
    Figures,
    LeftOutError,
    Measure,
    begin,
    call,
    served,
)

HERE = Path(__file__).resolve().parent / "simulations"
OUT = TARGET / "benches"
BUILT = TARGET / "release"
PER_ROUND = Measure("us.median", "us a round", more_is_better=False)
PER_STEP = Measure("step_ms", "ms a step", more_is_better=False)
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
SMALL, LARGE = (180, 360), (720, 1440)


@cache
def build() -> None:
    """Compiles the library, and the loop in Rust."""
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura-c"], 3600)
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura", "--example", "abi_speed"], 3600)


@cache
def compiled(name: str) -> str:
    """Compiles a program of C, as a user does."""
    build()
    OUT.mkdir(parents=True, exist_ok=True)
    library = OUT / "libjunctura.so.0"
    library.unlink(missing_ok=True)
    library.symlink_to(BUILT / "libjunctura_c.so")
    links = ["-L", str(OUT), "-l:libjunctura.so.0", f"-Wl,-rpath,{OUT}", "-lm"]
    made = str(OUT / name)
    call(["gcc", "-O2", "-Wall", "-I", str(ROOT / "c/include"), str(HERE / f"{name}.c"), "-o", made, *links], 300)
    return made


def loops(bench: Bench) -> list[Case]:
    """The same loop in both languages."""
    cases = []
    for name, size, rounds in (("1kib", 1024, 2000), ("804kib", 804 * 1024, 400)):
        words = [str(size), str(rounds // (4 if bench.quick else 1)), "5" if bench.quick else "15"]

        def in_c(words: list[str] = words) -> Figures:
            return dict(json.loads(call([compiled("abi_speed"), *words], 600)))

        def in_rust(words: list[str] = words) -> Figures:
            build()
            return dict(json.loads(call([str(BUILT / "examples/abi_speed"), *words], 600)))

        contenders = [
            Contender("C", "us", "each object", "all bytes", ["abi_speed", *words], in_c),
            Contender("Rust", "us", "each object", "all bytes", ["examples/abi_speed", *words], in_rust),
        ]
        # 95 % of the rounds of Rust.
        checks = [Check("C", at_most=1 / 0.95, times="Rust", in_turn=True)]
        question = f"allocate, fill, offer, demand, release {size // 1024} KiB in one process"
        cases.append(Case(f"abi-{name}", question, PER_ROUND, contenders, checks))
    return cases


def weights(folder: Path, shape: tuple[int, int], form: Literal["binary", "scrip"]) -> tuple[Path, Path]:
    """Means of four cells, and copies back."""
    import numpy as np

    from junctura.remap import Weights

    coarse = (shape[0] // 2, shape[1] // 2)
    row, column = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    cell = row // 2 * coarse[1] + column // 2
    points = np.arange(len(cell))
    down, up = folder / "down.nc", folder / "up.nc"
    Weights(cell, points, np.full(len(cell), 0.25), shape, coarse).write(down, form)
    Weights(points, cell, np.ones(len(cell)), coarse, shape).write(up, form)
    return down, up


def ours(shape: tuple[int, int], ranks: int, steps: int) -> Figures:
    """A served pool, and each rank of both models in a process of its own."""
    made = compiled("coupled")
    with (
        tempfile.TemporaryDirectory(prefix="b-") as folder,
        served("--schema", "free", "--budget", "1GiB") as server,
    ):
        files = weights(Path(folder), shape, "binary")
        started = []
        for grid in ("fine", "coarse"):
            for rank in range(ranks):
                numbers = map(str, (rank, ranks, *shape, steps))
                words = [made, server.url, grid, *numbers, *map(str, files)]
                started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        said = [process.communicate(timeout=600)[0] for process in started]
        if any(process.returncode for process in started):
            raise RuntimeError(f"coupled: {[process.returncode for process in started]}")
    return dict(json.loads(said[0]))


def by_mpi(words: list[list[str]], ranks: int, folder: str | None = None, missing: str = "mpirun") -> Figures:
    """Several programs in one run of MPI; the one that prints a figure prints JSON."""
    if shutil.which(missing) is None:
        raise LeftOutError(f"{missing} is not installed")
    command = [missing, "--oversubscribe"]
    for each in words:
        command += [*([":"] if len(command) > 2 else []), "-n", str(ranks), *each]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, env={**os.environ, **MPI}, cwd=folder, check=False
    )
    figures = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not figures:
        raise LeftOutError((done.stderr.strip().splitlines() or ["it printed nothing"])[-1])
    return dict(json.loads(figures[0]))


def yac(shape: tuple[int, int], ranks: int, steps: int) -> Figures:
    program = [sys.executable, str(HERE / "coupled_yac.py")]
    numbers = list(map(str, (ranks, *shape, steps)))
    return by_mpi([[*program, "fine", *numbers], [*program, "coarse", *numbers]], ranks)


@cache
def built_oasis() -> str:
    """Compiles the program with Debian's libraries: ``apt install liboasis3-dev``."""
    if shutil.which("mpif90.openmpi") is None or not Path("/usr/include/psmile.MPI1").exists():
        raise LeftOutError("liboasis3-dev is not installed")
    OUT.mkdir(parents=True, exist_ok=True)
    made, netcdf = str(OUT / "coupled_oasis"), ["-l:libnetcdff.so.7", "-l:libnetcdf.so.19"]
    libraries = ["-lpsmile.MPI1", "-lmct", "-lmpeu", "-lscrip", *netcdf]
    source = str(HERE / "coupled_oasis.f90")
    call(["mpif90.openmpi", "-O2", "-I/usr/include/psmile.MPI1", source, "-o", made, *libraries], 300)
    return made


def namcouple(shape: tuple[int, int], steps: int) -> str:
    """The configuration of OASIS: two fields, by the same weights as ours."""
    fine, coarse = f"{shape[1]} {shape[0]}", f"{shape[1] // 2} {shape[0] // 2}"
    parts = [" $NFIELDS", " 2", " $END", " $NBMODEL", " 2 finemd coarmd", " $END"]
    parts += [" $RUNTIME", f" {steps}", " $END", " $NLOGPRT", " 0", " $END", " $STRINGS"]
    for names, grids, sides, file in (
        ("SST_F SST_C", f"{fine} {coarse}", "fine coar", "down.nc"),
        ("WND_C WND_F", f"{coarse} {fine}", "coar fine", "up.nc"),
    ):
        parts += [f"{names} 1 1 1 none.nc EXPORTED", f"{grids} {sides} LAG=0", "P 0 P 0", "MAPPING", f"{file} src"]
    return "\n".join([*parts, " $END", ""])


def oasis(shape: tuple[int, int], ranks: int, steps: int) -> Figures:
    made = built_oasis()
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        weights(Path(folder), shape, "scrip")
        (Path(folder) / "namcouple").write_text(namcouple(shape, steps + 100))
        numbers = list(map(str, (*shape, steps)))
        words = [[made, "fine", *numbers], [made, "coarse", *numbers]]
        return by_mpi(words, ranks, folder, "mpirun.openmpi")


def couplings(bench: Bench) -> list[Case]:
    """A field both ways with each step."""
    cases = []
    for name, shape, ranks, steps in (
        ("small-1", SMALL, 1, 400),
        ("small-2", SMALL, 2, 400),
        ("large-1", LARGE, 1, 100),
        ("large-2", LARGE, 2, 100),
    ):
        taken = steps // (4 if bench.quick else 1)

        def run_ours(at: tuple[tuple[int, int], int, int] = (shape, ranks, taken)) -> Figures:
            return ours(*at)

        def run_yac(at: tuple[tuple[int, int], int, int] = (shape, ranks, taken)) -> Figures:
            return yac(*at)

        def run_oasis(at: tuple[tuple[int, int], int, int] = (shape, ranks, taken)) -> Figures:
            return oasis(*at)

        contenders = [
            Contender("junctura", "us", "the other model's field", "each element", ["coupled"], run_ours),
            Contender("YAC", "rival", "the other model's field", "each element", ["coupled_yac.py"], run_yac),
            Contender("OASIS3-MCT", "rival", "the other model's field", "each element", ["coupled_oasis"], run_oasis),
        ]
        checks = [Check("junctura", at_most=1.0, times="YAC"), Check("junctura", at_most=0.25, times="OASIS3-MCT")]
        if shape == SMALL:
            checks.append(Check("junctura", at_most=0.3))
        question = f"{shape[1]} x {shape[0]} and half of it, both ways, {ranks} + {ranks} ranks"
        cases.append(Case(f"coupled-{name}", question, PER_STEP, contenders, checks))
    return cases


def main() -> int:
    """Runs the bench."""
    bench = begin("simulations", (__doc__ or "").splitlines()[0])
    return bench.run([*loops(bench), *couplings(bench)])


if __name__ == "__main__":
    sys.exit(main())
