"""Measures a solver whose steps are drawn: from files, in its own process (in situ), and from the pool (in transit).

The solver is that of ``examples/15_mesh_in_transit``: a wave on 64 x 64 x 128 points in three blocks, whose steps have
6.2 MB. It is instrumented once, and environment variables select the way. ``libcatalyst`` is the test double of
``tests/catalyst``. Pictures have 800 x 600 pixels and are drawn by one program in all ways, without a display.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from harness import ROOT, TARGET, Bench, Case, Check, Contender, Figures, LeftOutError, Measure, begin, call, program

EXAMPLE = ROOT / "examples/15_mesh_in_transit"
OUT = TARGET / "benches/meshes"
POINTS = 64
# Pictures are drawn by one thread of Mesa in all ways.
ONE_THREAD = {"LP_NUM_THREADS": "1"}
HANDOVER = Measure("catalyst_ms", "ms a step", more_is_better=False)
SOLVER = Measure("solver_s", "s, of the solver", more_is_better=False)
OWN_MEMORY = Measure("own_mb", "MB, of the solver alone", more_is_better=False)
RESIDENT = Measure("resident_mb", "MB, resident, with libraries and pages of the pool", more_is_better=False)
LAST_PICTURE = Measure("last_picture_s", "s behind the last step", more_is_better=False)
FIRST_PICTURE = Measure("first_picture_step", "steps before the first picture", more_is_better=False)


@cache
def built() -> Path:
    """Compiles the implementation, the double of libcatalyst and the solver; the folder of all."""
    library = TARGET / "release/libjunctura_c.so"
    if not library.exists():
        call(["cargo", "build", "--quiet", "--release", "-p", "junctura-c"], 3600)
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "lib").mkdir(parents=True)
    (OUT / "lib/libjunctura.so.0").symlink_to(library)
    call([str(ROOT / "tests/catalyst/double/build.sh"), str(OUT)], 300)
    call([str(ROOT / "c/catalyst/build.sh"), str(OUT / "lib"), str(OUT / "lib")], 300)
    call([str(EXAMPLE / "build.sh"), str(OUT), str(OUT)], 300)
    return OUT


def needs_pyvista() -> None:
    if importlib.util.find_spec("pyvista") is None:
        raise LeftOutError("pyvista is not installed (tools/setup.sh dev)")


class WaveRun:
    """One run of the solver, and when each of its steps ended."""

    def __init__(self, folder: Path, size: tuple[int, int], variables: dict[str, str], points: int = POINTS) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "CATALYST_IMPLEMENTATION_PATHS": f"{built()}/catalyst:{built()}/lib/catalyst",
            "WAVE_PYTHON": sys.executable,
            "WAVE_OUT": str(folder / "out"),
            **ONE_THREAD,
            **variables,
        }
        self.command = [str(built() / "wave"), str(points), *map(str, size)]
        self.step_ends: list[float] = []

    def run(self) -> Figures:
        """Runs it to its end."""
        figures: Figures = {}
        with subprocess.Popen(self.command, env=self.environment, stdout=subprocess.PIPE, text=True) as solver:
            assert solver.stdout is not None
            for line in solver.stdout:
                if line.startswith("step"):
                    self.step_ends.append(time.time())
                else:
                    words = line.split()
                    figures = dict(zip(words[::2], map(float, words[1::2]), strict=True))
        if solver.returncode != 0 or "seconds" not in figures:
            raise RuntimeError(f"wave: exit status {solver.returncode}")
        figures["solver_s"] = figures.pop("seconds")
        return figures

    def pictures(self, folder: Path) -> Figures:
        """When pictures were drawn, beside the steps."""
        drawn = sorted(picture.stat().st_mtime for picture in folder.glob("*.png"))
        if len(drawn) != len(self.step_ends):
            raise RuntimeError(f"{len(drawn)} pictures of {len(self.step_ends)} steps")
        return {
            "last_picture_s": max(0.0, drawn[-1] - self.step_ends[-1]),
            "first_picture_step": sum(end < drawn[0] for end in self.step_ends),
        }


def in_folder(way: Callable[[Path, tuple[int, int]], Figures], size: tuple[int, int]) -> Callable[[], Figures]:
    def run() -> Figures:
        with tempfile.TemporaryDirectory(prefix="b-") as folder:
            return way(Path(folder), size)

    return run


def alone(folder: Path, size: tuple[int, int], points: int = POINTS) -> Figures:
    return WaveRun(folder, size, {}, points).run()


def through_files(folder: Path, size: tuple[int, int]) -> Figures:
    needs_pyvista()
    script = {"CATALYST_IMPLEMENTATION_NAME": "python", "WAVE_SCRIPT": str(EXAMPLE / "to_files.py")}
    run = WaveRun(folder, size, script)
    figures = run.run()
    begun = time.monotonic()
    call([sys.executable, str(EXAMPLE / "from_files.py"), str(folder / "out"), "--out", str(folder / "pictures")], 1200)
    return {**figures, "pictures_s": time.monotonic() - begun, **run.pictures(folder / "pictures")}


def in_situ(folder: Path, size: tuple[int, int]) -> Figures:
    needs_pyvista()
    script = {"CATALYST_IMPLEMENTATION_NAME": "python", "WAVE_SCRIPT": str(EXAMPLE / "in_situ.py")}
    run = WaveRun(folder, size, script)
    return {**run.run(), **run.pictures(folder / "out")}


def served(url: str) -> list[str]:
    words = ["pool", "serve", "--pool", url, "--schema", "mesh", "--budget", "1GiB", "--announce"]
    return [str(program("junctura")), *words]


def handed_over(folder: Path, size: tuple[int, int], options: str, points: int = POINTS) -> Figures:
    """Into a pool without readers."""
    url = f"unix:{folder}/pool"
    with subprocess.Popen(served(url), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            variables = {"JUNCTURA_POOL": url, "JUNCTURA_CATALYST": options}
            return WaveRun(folder, size, {"CATALYST_IMPLEMENTATION_NAME": "junctura", **variables}, points).run()
        finally:
            server.terminate()


def in_transit(folder: Path, size: tuple[int, int]) -> Figures:
    needs_pyvista()
    url, out = f"unix:{folder}/pool", folder / "pictures"
    words = [
        sys.executable,
        str(EXAMPLE / "from_pool.py"),
        "--pool",
        url,
        "--out",
        str(out),
        "--last",
        str(size[0] - 1),
    ]
    with subprocess.Popen(served(url), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            with subprocess.Popen(words, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, text=True) as viewer:
                assert viewer.stdout is not None
                if viewer.stdout.readline() != "ready\n":
                    raise RuntimeError("the viewer does not start")
                variables = {"JUNCTURA_POOL": url, "JUNCTURA_CATALYST": "retention=released:1"}
                run = WaveRun(folder, size, {"CATALYST_IMPLEMENTATION_NAME": "junctura", **variables})
                figures = run.run()
                viewer.stdout.read()
            return {**figures, **run.pictures(out)}
        finally:
            server.terminate()


def cases(bench: Bench) -> list[Case]:
    steps = (40, 2)

    def unread(options: str) -> Callable[[], Figures]:
        return in_folder(lambda folder, size: handed_over(folder, size, options), steps)

    awaited = "each step is visible"
    handovers = [
        Contender("junctura", "us", awaited, "all bytes", ["wave", "64", "40", "2"], unread("")),
        Contender("junctura, mesh=fixed", "us", awaited, "fields", ["wave", "64", "40", "2"], unread("mesh=fixed")),
    ]
    size = (6, 300) if bench.quick else (16, 1200)
    command = ["wave", str(POINTS), *map(str, size)]
    ways = [
        Contender("in transit", "us", "each step is visible", "all bytes", command, in_folder(in_transit, size)),
        Contender("alone", "limit", "nothing", "nothing", command, in_folder(alone, size)),
        Contender("in situ", "rival", "each picture", "all bytes", command, in_folder(in_situ, size)),
        Contender("through files", "rival", "each file", "all bytes", command, in_folder(through_files, size)),
    ]
    checks = [
        Check("in transit", at_most=1.05, times="alone", in_turn=True),
        Check("in transit", at_most=1.05, times="alone", measure=OWN_MEMORY),
        Check("in transit", at_most=2.0, measure=LAST_PICTURE),
        Check("in transit", at_most=max(1, size[0] // 10), measure=FIRST_PICTURE),
    ]
    # A simulation of the size of those of the requirement, without viewers.
    large = 2 * POINTS
    memory = [
        Contender(
            "in transit",
            "us",
            awaited,
            "all bytes",
            ["wave", str(large), "4", "2"],
            in_folder(lambda folder, size: handed_over(folder, size, "", large), (4, 2)),
        ),
        Contender(
            "alone",
            "limit",
            "nothing",
            "nothing",
            ["wave", str(large), "4", "2"],
            in_folder(lambda folder, size: alone(folder, size, large), (4, 2)),
        ),
    ]
    return [
        Case(
            "memory",
            "what the solver has in memory, of 128 x 128 x 256 points",
            RESIDENT,
            memory,
            [Check("in transit", at_most=1.05, times="alone")],
            rounds_max=2,
        ),
        Case("handover", "a step of 6.2 MB into the pool", HANDOVER, handovers, [Check("junctura", at_most=6.0)]),
        Case("ways", "each step is drawn", SOLVER, ways, checks, rounds_max=3),
    ]


def main() -> int:
    """Runs the bench."""
    bench = begin("meshes", (__doc__ or "").splitlines()[0])
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
