"""Measures what it saves to hand fields over instead of through files: an ensemble, and the products of its fields.

In all ways the same processes of the demo's model compute the same fields (T63, in one case T213; six an hour), and the
demo's twenty recipes, with an hour for every three, become the same files, which each sample checks: byte by byte,
and of netCDF, which writes down when it was made, all that it says. As many processes make them as there are cores.
The clock runs from the start of the first process to the last write of a product; all that is started is in it. What
is written lies in memory (``/dev/shm``), so that no disk is measured, and nobody waits for one.

- **junctura**: as its user starts it. A server, the members (``swell.py --pool``), and ``junctura run``, whose workers
  decode each field once, and have what is decoded and transformed in common.
- **files**: members write a file for each field and rename it; the products' side looks for them every second, as
  schedulers in the field do (many of them less often), or every 50 ms, which is the reader's best case. Each product is
  a task of its own that reads and decodes the files it needs, as programs do that know nothing of each other.
- **files, a task for each step**: the same, looking every 50 ms, but all products that a step completes are one task,
  which decodes and transforms once what they share. So much of sharing can be had without a junction.
- **field store**: members archive in a weather centre's field store (``pyfdb``), with keys given, flush after each step
  and tell of it by a line in a pipe; a task for each product retrieves its fields by one request.

In cases whose names end in ``synced``, files lie on a disk (that of the build), and a member syncs those of a step,
once for each step, before anybody sees them: these fields survive the machine, and those in a pool or in ``/dev/shm``
do not.

No way but the first has anything of Junctura's pool; in all of them the same functions decode, transform and encode.
Beside the time stand how much of it was left when the last member had ended, the bytes of messages that were read to
make products, how many messages ecCodes decoded for it, and the CPU time of all processes. For a system of this kind a
gain of 2.5 over files was published, with 50 members, fields that are larger than ours a hundred times, and files on
disks that all share; ours of T63 are decoded in a third of a millisecond, and lie in memory in every way.

In portions, a way at a time: ``products_files.py --only cost --contender junctura --add``.

A last case separates what a way costs once, as to start processes and to load libraries, from what it costs for each
field: a line through the CPU time of runs of 8, 24 and 96 steps, without that of the members.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
from harness import TARGET, Case, Check, Contender, Figures, LeftOutError, Measure, begin, served
from products_files_ways import PIPE
from products_wall import HOURS_APART, MODEL, POOL, RECIPES, THREADS
from store import FDB, MEMORY, versions

HERE = Path(__file__).resolve().parent
SECONDS = Measure("seconds", "s", more_is_better=False)
FIXED = Measure("fixed_s", "s of CPU time", more_is_better=False)
PER_STEP = Measure("ms_per_step", "ms of CPU time a step of a member", more_is_better=False)
FITTED = (8, 24, 96)
LIMIT_S = 300
# With what its environment has not got, which comes behind its own.
IN_RIVAL = [str(FDB), "-c", "import runpy, site, sys; site.addsitedir(sys.argv[1]); del sys.argv[:2]; "]
IN_RIVAL[-1] += "sys.path[0] = sys.argv[0].rpartition('/')[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
IN_RIVAL.append(sysconfig.get_path("purelib"))
JUNCTURA, EACH_SECOND, OFTEN = "junctura", "files, looked for every second", "files, looked for every 50 ms"
BY_STEP, ARCHIVE = "files, a task for each step, every 50 ms", "field store (pyfdb), told of each step"


@dataclass(frozen=True)
class Size:
    """How many members, and how many steps after the first one, which is the start; how large their fields are."""

    members: int
    steps: int
    truncation: int = 63
    # Whether files are on a disk, and synced.
    synced: bool = False

    @property
    def name(self) -> str:
        size = f"{self.members}-members-{self.steps}-steps" + (f"-T{self.truncation}" if self.truncation != 63 else "")
        return size + ("-synced" if self.synced else "")

    def member(self, number: int) -> list[str]:
        """What a member is told, wherever its fields go."""
        told = ["--member", str(number), "--days", str(self.steps / 24), "--every", "1h", "--json"]
        return [*told, "--truncation", str(self.truncation)]

    def recipes(self, folder: Path) -> list[str]:
        """Those of the demo, for as many members and steps; what is three hours there is an hour here."""
        folder.mkdir()
        for file in RECIPES.glob("*.yaml"):
            text = re.sub(r"0/to/120/by/(\d+)", self._steps, file.read_text())
            text = re.sub(r"over: (\d+)h", lambda found: f"over: {int(found[1]) // HOURS_APART}h", text)
            (folder / file.name).write_text(text.replace("number: 1/to/6", f"number: 1/to/{self.members}"))
        return [str(file) for file in sorted(folder.glob("*.yaml"))]

    def _steps(self, found: re.Match[str]) -> str:
        return f"0/to/{self.steps}/by/{int(found[1]) // HOURS_APART}"


@dataclass(frozen=True)
class Run:
    """One run of a way in a folder of its own."""

    size: Size
    folder: Path
    between: Path
    """Where fields are handed over."""

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def take(self, maker: Sequence[str], member: Sequence[str]) -> Figures:
        """Makers first, members then, until all have ended; what the maker says at its end."""
        recipes = self.size.recipes(self.folder / "recipes")
        with self._started([*maker, *recipes], "maker") as making, contextlib.ExitStack() as stack:
            numbers = range(1, self.size.members + 1)
            commands = [[*member, *self.size.member(number)] for number in numbers]
            names = [f"member-{number}" for number in numbers]
            members = [stack.enter_context(self._started(*one)) for one in zip(commands, names, strict=True)]
            cpu_s = children_cpu_s()
            for process, name in zip(members, names, strict=True):
                self._finish(process, name)
            members_ended, members_cpu_s = time.time(), children_cpu_s() - cpu_s
            self._finish(making, "maker")
        said: Figures = json.loads((self.folder / "maker").read_text())
        return {**said, "members_ended": members_ended, "members_cpu_s": members_cpu_s}

    @contextlib.contextmanager
    def _started(self, command: Sequence[str], name: str) -> Iterator[subprocess.Popen[bytes]]:
        with (self.folder / name).open("wb") as said, (self.folder / f"{name}.err").open("wb") as wrong:
            process = subprocess.Popen(command, env={**os.environ, **THREADS}, stdout=said, stderr=wrong)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _finish(self, process: subprocess.Popen[bytes], name: str) -> None:
        try:
            status = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise LeftOutError(f"{name} did not end within {LIMIT_S} s") from None
        if status:
            lines = (self.folder / f"{name}.err").read_text().strip().splitlines()
            raise LeftOutError(f"{name}: {lines[-1] if lines else f'exit status {status}'}")


Way = Callable[[Run], Figures]
QUICK = (Size(2, 8),)
WHOLE = (*QUICK, Size(12, 8), Size(2, 24), Size(4, 24), Size(8, 24), Size(12, 24), Size(4, 8, truncation=213))
LONG = (Size(2, 96), Size(2, 24, synced=True), Size(8, 24, synced=True), Size(2, 96, synced=True))


def junctura(run: Run) -> Figures:
    with served(*POOL) as server:
        maker = [sys.executable, "-m", "junctura.products", "--pool", server.url, "--out", str(run.out), *workers()]
        said = run.take([*maker, "--quiet", "--json"], [sys.executable, str(MODEL), "--pool", server.url])
    return {**said, "bytes_read": said["input_bytes"]}


def files(run: Run, *, every_s: float, together: bool = False) -> Figures:
    options = ["--every", str(every_s), *(["--together"] if together else [])]
    return by_bridge(run, [sys.executable], "files", *options)


def archive(run: Run) -> Figures:
    if not FDB.exists():
        raise LeftOutError("pyfdb is not installed (benches/setup.sh)")
    if run.size.synced:
        raise LeftOutError("it syncs by itself, and is measured in memory")
    os.mkfifo(run.between / PIPE)
    return by_bridge(run, IN_RIVAL, "archive")


def by_bridge(run: Run, python: list[str], way: str, *options: str) -> Figures:
    place = str(run.between)
    maker = [*python, str(HERE / "products_files_maker.py"), *options, *workers(), way, place, str(run.out)]
    by = "synced" if run.size.synced else way
    return run.take(maker, [*python, str(HERE / "products_files_member.py"), by, place])


def workers() -> list[str]:
    return ["--workers", str(len(os.sched_getaffinity(0)))]


def sample(size: Size, way: Way, expected: dict[str, str]) -> Figures:
    """One run, whose products have to be those that are expected; the first one says which."""
    with (
        tempfile.TemporaryDirectory(prefix="junctura-bench-", dir=MEMORY) as name,
        tempfile.TemporaryDirectory(prefix="junctura-bench-", dir=TARGET if size.synced else MEMORY) as between,
    ):
        run = Run(size, Path(name), Path(between))
        cpu_s, begun = children_cpu_s(), time.time()
        counted = way(run)
        cpu_s = children_cpu_s() - cpu_s
        written = [file for file in run.out.rglob("*") if file.is_file()]
        compare(expected, digests(run.out, written))
        last = max(file.stat().st_mtime for file in written)
        return {
            "seconds": last - begun,
            "after_members_s": last - counted["members_ended"],
            "bytes_read": counted["bytes_read"],
            "decodes": counted["decodes"],
            "cpu_s": cpu_s,
            "making_cpu_s": cpu_s - counted["members_cpu_s"],
            "files": len(expected),
            "products": digest(expected),
        }


def fitted(way: Way, expected: Mapping[int, dict[str, str]]) -> Figures:
    """What a way costs once, and for each step of a member: a line through runs of several lengths."""
    sizes = [Size(2, steps) for steps in expected]
    cpu_s = [sample(size, way, expected[size.steps])["making_cpu_s"] for size in sizes]
    slope, fixed_s = np.polyfit([size.members * size.steps for size in sizes], cpu_s, 1)
    made = {"cpu_s": cpu_s, "products": digest(expected)}
    return {"fixed_s": float(fixed_s), "ms_per_step": 1e3 * float(slope), **made}


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def digests(out: Path, written: Sequence[Path]) -> dict[str, str]:
    """Of all files of products by their names; provenance says when it was made."""
    made = [file for file in written if not file.name.endswith(".provenance.json")]
    return {str(file.relative_to(out)): hashlib.sha256(content(file)).hexdigest() for file in made}


def content(file: Path) -> bytes:
    """All bytes of a file; of netCDF all that it says, for HDF5 writes down the second in which it was made."""
    if file.suffix != ".nc":
        return file.read_bytes()
    with netCDF4.Dataset(file) as data:
        data.set_auto_maskandscale(False)
        said = [repr((data.__dict__, {name: one.size for name, one in data.dimensions.items()}))]
        said += [repr((name, one.dimensions, str(one.dtype), one.__dict__)) for name, one in data.variables.items()]
        return "".join(said).encode() + b"".join(one[...].tobytes() for one in data.variables.values())


def digest(expected: Mapping[Any, Any]) -> str:
    """Of all products: equal for all ways, also if these are measured one by one."""
    return hashlib.sha256(json.dumps(expected, sort_keys=True).encode()).hexdigest()


def compare(expected: dict[str, str], found: Mapping[str, str]) -> None:
    if not expected:
        expected.update(found)
    others = sorted(name for name, _ in expected.items() ^ found.items())
    if others:
        raise LeftOutError(f"{len(set(others))} of {len(expected)} files are others than before: {others[0]}, ...")


WAYS: tuple[tuple[str, str, Way], ...] = (
    (JUNCTURA, "us", junctura),
    (EACH_SECOND, "rival", functools.partial(files, every_s=1)),
    (OFTEN, "rival", functools.partial(files, every_s=0.05)),
    (BY_STEP, "rival", functools.partial(files, every_s=0.05, together=True)),
    (ARCHIVE, "rival", archive),
)


def contenders(run: Callable[[Way], Callable[[], Figures]], awaited: str) -> list[Contender]:
    return [
        Contender(name, kind, awaited, "each value", [sys.executable, *sys.argv], run(way)) for name, kind, way in WAYS
    ]


def case(size: Size) -> Case:
    expected: dict[str, str] = {}
    made = contenders(lambda way: functools.partial(sample, size, way, expected), "the last product's file")
    checks = [Check(JUNCTURA, at_most=1, times=name) for name, kind, _ in WAYS if kind == "rival"]
    what = f"{size.members} members of T{size.truncation} and the products of {size.steps} steps"
    what += ", files on disk, synced once a step" if size.synced else ""
    question = f"{what}: from the start to the last product"
    return Case(size.name, question, SECONDS, made, checks, rounds_max=1, same="products")


def cost(steps: Sequence[int]) -> Case:
    expected: dict[int, dict[str, str]] = {count: {} for count in steps}
    made = contenders(lambda way: functools.partial(fitted, way, expected), "the end of all processes")
    checks = [Check(JUNCTURA, at_most=1.5, measure=FIXED), Check(JUNCTURA, at_most=0.95, times=OFTEN)]
    question = (
        f"CPU time for each step of a member, by runs of {', '.join(map(str, steps))} steps of two members of T63"
    )
    return Case("cost", question, PER_STEP, made, checks, rounds_max=1, same="products")


def warm(sizes: Sequence[Size]) -> None:
    """Weights of interpolation are made once for all, and programs are read from the disk."""
    for truncation in sorted({size.truncation for size in sizes}):
        with contextlib.suppress(LeftOutError):
            sample(Size(2, 8, truncation), junctura, {})


def main() -> int:
    os.environ.setdefault("JUNCTURA_CACHE", str(TARGET / "benches/weights"))
    bench = begin("products_files", "What does it save to hand fields over instead of through files?")
    bench.versions.update(versions())
    sizes = QUICK if bench.quick else (*WHOLE, *LONG)
    warm([size for size in sizes if bench.arguments.only in size.name] or QUICK)
    return bench.run([*map(case, sizes), cost(FITTED[:2] if bench.quick else FITTED)])


if __name__ == "__main__":
    sys.exit(main())
