"""Measures unmodified netCDF programs whose files are in a pool, beside the same programs with files on disk.

``intercept/history.c`` writes a history of two-dimensional fields as a model does. It runs as it is, with its file in a
pool, and with its file on disk and in a pool, whose server has made 64 MiB ready before. It also runs with a reader
that starts first, and with the library loaded but no file that matches a rule, once as instructions and once as time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

from harness import ROOT, TARGET, Bench, Case, Check, Contender, Figures, LeftOutError, Measure, begin, call

HERE = Path(__file__).resolve().parent / "intercept"
OUT = TARGET / "benches"
BUILT = TARGET / os.environ.get("JUNCTURA_PROFILE", "release")
WRITING = Measure("write_ms", "ms to write", more_is_better=False)
FIRST = Measure("first_of_second", "of the time until the second step is complete", more_is_better=False)
INSTRUCTIONS = Measure("instructions", "instructions", more_is_better=False)
# A history of 91 MB: rows, columns, steps, fields of a step.
LARGE, SMALL = ("600", "800", "12", "4"), ("60", "80", "400", "4")
Mode = Literal["real", "unmatched", "pool", "tee"]


@cache
def build() -> tuple[str, Path]:
    """Compiles the program and the library."""
    if shutil.which("nc-config") is None:
        raise LeftOutError("libnetcdf-dev is not installed")
    profile = "ci" if BUILT.name == "ci" else "release"
    call(["cargo", "build", "--quiet", "--profile", profile, "-p", "junctura-c", "-p", "junctura-cli"], 3600)
    folder = OUT / "intercept"
    folder.mkdir(parents=True, exist_ok=True)
    call([str(ROOT / "tools/build_intercept.sh"), str(folder)], 300)
    library = folder / "libjunctura.so.0"
    library.unlink(missing_ok=True)
    library.symlink_to(BUILT / "libjunctura_c.so")
    made = str(folder / "history")
    call(["gcc", "-O2", "-Wall", str(HERE / "history.c"), "-o", made, "-lnetcdf"], 300)
    return made, folder / "libjunctura-netcdf.so"


@contextmanager
def served(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a pool that is served."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "JUNCTURA_POOL": "unix:bench"}
    command = [
        str(BUILT / "junctura"),
        "pool",
        "serve",
        "--pool",
        "unix:bench",
        "--budget",
        "1GiB",
        "--ready",
        "64MiB",
        "--announce",
    ]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            yield environment
        finally:
            server.terminate()


def with_mode(environment: dict[str, str], mode: Mode) -> dict[str, str]:
    if mode == "real":
        return environment
    rules = "other*=pool" if mode == "unmatched" else f"hist*={mode}"
    return {**environment, "LD_PRELOAD": str(build()[1]), "JUNCTURA_NETCDF": rules}


def figures_of(done: subprocess.CompletedProcess[str]) -> Figures:
    if done.returncode:
        raise LeftOutError((done.stdout + done.stderr).strip().splitlines()[-1])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def write(mode: Mode, numbers: tuple[str, ...]) -> Figures:
    """One run of the writer, on the disk of the build folder."""
    program, _ = build()
    with tempfile.TemporaryDirectory(prefix="b-") as sockets, tempfile.TemporaryDirectory(dir=OUT) as folder:
        with served(Path(sockets)) as environment:
            words = [program, "write", f"{folder}/hist.nc", *numbers]
            run = subprocess.run(
                words, env=with_mode(environment, mode), capture_output=True, text=True, timeout=600, check=False
            )
        return figures_of(run)


def read_first(numbers: tuple[str, ...]) -> Figures:
    """A reader that starts first: when it has the first step, as a part of when the second is complete."""
    program, _ = build()
    with (
        tempfile.TemporaryDirectory(prefix="b-") as sockets,
        served(Path(sockets)) as environment,
    ):
        environment = with_mode(environment, "pool")
        with subprocess.Popen(
            [program, "read", "hist.nc", *numbers], cwd=sockets, env=environment, stdout=subprocess.PIPE, text=True
        ) as reader:
            write = subprocess.run(
                [program, "write", "hist.nc", *numbers],
                cwd=sockets,
                env=environment,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            output, _ = reader.communicate(timeout=600)
        written, read = figures_of(write), dict(json.loads(output.splitlines()[-1]))
        begin, second = float(str(written["begin_s"])), float(str(written["second_s"]))
        return {"first_of_second": (float(str(read["first_s"])) - begin) / (second - begin)}


def instructions(mode: Mode) -> Figures:
    """Instructions of a whole run, as valgrind counts them: the same in each run."""
    if shutil.which("valgrind") is None:
        raise LeftOutError("valgrind is not installed")
    program, _ = build()
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        count = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        words = [*count, program, "write", f"{folder}/hist.nc", *SMALL]
        environment = with_mode(dict(os.environ), mode)
        run = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
        counted = re.search(r"Collected : (\d+)", run.stderr)
        if run.returncode or counted is None:
            raise LeftOutError((run.stderr.strip().splitlines() or ["it printed nothing"])[-1])
        return {"instructions": float(counted[1])}


def cases(bench: Bench) -> list[Case]:
    numbers = ("300", "400", "8", "4") if bench.quick else LARGE

    def writer(name: str, kind: str, mode: Mode) -> Contender:
        return Contender(name, kind, "nc_close", "each element", ["history", "write"], lambda: write(mode, numbers))

    def counter(name: str, kind: str, mode: Mode) -> Contender:
        return Contender(name, kind, "nc_close", "each element", ["history", "write"], lambda: instructions(mode))

    history = [
        writer("pool", "us", "pool"),
        writer("file and pool", "us", "tee"),
        writer("library loaded, no file matches", "us", "unmatched"),
        writer("netCDF-4 on disk", "rival", "real"),
    ]
    real = "netCDF-4 on disk"
    checks = [
        Check("pool", at_most=0.4, times=real, in_turn=True),
        Check("file and pool", at_most=1.4, times=real, in_turn=True),
    ]
    first = [
        Contender("pool", "us", "the first field", "each element", ["history", "read"], lambda: read_first(numbers))
    ]
    loaded = [counter("library loaded, no file matches", "us", "unmatched"), counter(real, "rival", "real")]
    return [
        Case("netcdf-history", f"a history of {' x '.join(numbers)} values", WRITING, history, checks),
        Case(
            "netcdf-first-field",
            "the first field in a reader that starts first",
            FIRST,
            first,
            [Check("pool", at_most=1.0)],
        ),
        Case(
            "netcdf-unmatched",
            "instructions of a program whose files match no rule",
            INSTRUCTIONS,
            loaded,
            [Check("library loaded, no file matches", at_most=1.01, times=real)],
            rounds_max=1,
        ),
    ]


def main() -> int:
    """Runs the bench."""
    bench = begin("intercept", (__doc__ or "").splitlines()[0])
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
