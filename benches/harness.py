"""What every benchmark needs: rounds that take turns, samples with their spread, the machine, the figures as JSON.

A benchmark is a list of cases. A case asks one question of several contenders under equal conditions: ours, what the
machine allows, rivals. Contenders take turns, round by round, so that whatever disturbs the machine disturbs all of
them; the best of the rounds is compared and the spread is shown beside it. What a case has to show stands in its
checks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Of one core; above it a sample was disturbed by somebody else.
FOREIGN_CORES_MAX = 0.15
NOT_ASKED = "not asked for"

Figures = dict[str, Any]


class LeftOutError(Exception):
    """A contender cannot take part here, and why."""


@dataclass(frozen=True)
class Measure:
    """Which figure a case compares: ``objects_per_s``, ``delivery_us.p50``, ..."""

    path: str
    unit: str
    more_is_better: bool

    def of(self, figures: Figures) -> float:
        value: Any = figures
        for part in self.path.split("."):
            value = value[part]
        return float(value)


RATE = Measure("objects_per_s", "objects/s", more_is_better=True)
BANDWIDTH = Measure("gib_per_s", "GiB/s", more_is_better=True)
LATENCY = Measure("delivery_us.p50", "us, p50", more_is_better=False)


@dataclass(frozen=True)
class Contender:
    """One way of doing what the case asks; ``run`` does it once. Kind: ``us``, ``limit`` or ``rival``."""

    name: str
    kind: str
    awaited: str
    touched: str
    command: list[str]
    run: Callable[[], Figures]


@dataclass(frozen=True)
class Check:
    """What a contender has to reach, by itself or as a multiple of another, in the measure of the case unless said.

    By the best of the rounds of each; ``in_turn``, by the median of what it is in each round, where a difference of a
    few per cent counts and the machine's own moods are larger.
    """

    contender: str
    at_least: float | None = None
    at_most: float | None = None
    times: str | None = None
    measure: Measure | None = None
    in_turn: bool = False


@dataclass(frozen=True)
class Case:
    """A question, who is asked, and what has to come out."""

    name: str
    question: str
    measure: Measure
    contenders: list[Contender]
    checks: list[Check] = field(default_factory=list)
    rounds_max: int | None = None
    # A figure that is equal for all contenders, as of what they make.
    same: str = ""


@dataclass
class Samples:
    """What one contender did, round by round."""

    contender: Contender
    figures: list[Figures] = field(default_factory=list)
    foreign_cores: list[float] = field(default_factory=list)
    left_out: str = ""

    def values(self, measure: Measure) -> list[float]:
        return [measure.of(figures) for figures in self.figures]

    def best(self, measure: Measure) -> float:
        return max(self.values(measure)) if measure.more_is_better else min(self.values(measure))


def run_case(case: Case, rounds: int, contender: str = "", kept: dict[str, Any] | None = None) -> dict[str, Any]:
    """Lets the contenders whose name has this text take turns, and keeps the figures of others; the case as JSON."""
    print(f"\n{case.name}: {case.question}", flush=True)
    earlier = {one["name"]: one for one in (kept or {}).get("contenders", ()) if "samples" in one}
    all_samples = []
    for one in case.contenders:
        figures = earlier.get(one.name, {}) if contender not in one.name else {}
        left_out = "" if contender in one.name else NOT_ASKED
        all_samples.append(Samples(one, figures.get("samples", []), figures.get("foreign_cores", []), left_out))
    for _ in range(min(rounds, case.rounds_max or rounds)):
        for samples in all_samples:
            if not samples.left_out:
                take_sample(samples)
    if case.same:
        leave_out_others(case.same, [samples for samples in all_samples if samples.figures])
    for samples in all_samples:
        print_samples(case, samples, all_samples[0])
    verdicts = [judge(case, check, all_samples) for check in case.checks]
    for verdict in verdicts:
        print(
            f"  {'met      ' if verdict['met'] else 'NOT MET  '} {verdict['promise']}: {verdict['value_text']}",
            flush=True,
        )
    return {
        "name": case.name,
        "question": case.question,
        "measure": case.measure.path,
        "unit": case.measure.unit,
        "more_is_better": case.measure.more_is_better,
        "contenders": [describe(case, samples, all_samples[0]) for samples in all_samples],
        "checks": verdicts,
    }


def leave_out_others(figure: str, measured: list[Samples]) -> None:
    """Leaves out contenders that made something else than the first one."""
    for samples in measured[1:]:
        if any(figures[figure] != measured[0].figures[0][figure] for figures in samples.figures):
            samples.left_out = f"{figure}: others than those of {measured[0].contender.name}"
            samples.figures = []


def take_sample(samples: Samples) -> None:
    """One round of one contender."""
    before = own_cpu_s(), busy_cpu_s(), time.monotonic()
    try:
        figures = samples.contender.run()
    except LeftOutError as reason:
        samples.left_out = str(reason)
        return
    own, busy, elapsed = own_cpu_s() - before[0], busy_cpu_s() - before[1], time.monotonic() - before[2]
    samples.figures.append(figures)
    samples.foreign_cores.append(round(max(0.0, busy - own) / elapsed, 2))


def own_cpu_s() -> float:
    """CPU time of this process and of what it has started and seen end."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def busy_cpu_s() -> float:
    """CPU time of everybody on this machine, and what the hypervisor took."""
    words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(word) for word in words[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


def advantage(measure: Measure, ours: float, theirs: float) -> float:
    """How many times better the first is; above 1 means ahead, whichever way the figure counts."""
    if min(ours, theirs) <= 0:
        return float("nan")
    return ours / theirs if measure.more_is_better else theirs / ours


def describe(case: Case, samples: Samples, first: Samples) -> dict[str, Any]:
    contender = samples.contender
    described: dict[str, Any] = {
        "name": contender.name,
        "kind": contender.kind,
        "awaited": contender.awaited,
        "payload_touched": contender.touched,
        "command": shlex.join(portable(contender.command)),
    }
    if not samples.figures:
        return {**described, "left_out": samples.left_out}
    values = samples.values(case.measure)
    best = samples.best(case.measure)
    described.update(best=best, min=min(values), median=median(values), max=max(values))
    if first.figures and samples is not first:
        ratio = advantage(case.measure, first.best(case.measure), best)
        # JSON has no word for what is no number.
        described["first_is_better_by"] = None if math.isnan(ratio) else round(ratio, 3)
    return {**described, "foreign_cores": samples.foreign_cores, "samples": samples.figures}


def portable(command: list[str]) -> list[str]:
    """The command as it can be repeated from the root of the repository."""
    roots = ((f"{TARGET}/", "target/"), (f"{ROOT}/", ""))
    words = []
    for word in command:
        for root, shown in roots:
            word = word.replace(root, shown)
        words.append(word)
    return words


def print_samples(case: Case, samples: Samples, first: Samples) -> None:
    name = samples.contender.name
    if not samples.figures:
        print(f"  {name:<58} left out: {samples.left_out}", flush=True)
        return
    values = samples.values(case.measure)
    best = samples.best(case.measure)
    line = f"  {name:<58}{number(best):>12} {case.measure.unit:<10}"
    line += f" [{number(min(values))} {number(median(values))} {number(max(values))}]"
    if first.figures and samples is not first:
        line += f"  the first is {advantage(case.measure, first.best(case.measure), best):.2f}x"
    if max(samples.foreign_cores) > FOREIGN_CORES_MAX:
        line += f"  (others took up to {max(samples.foreign_cores)} cores)"
    print(line, flush=True)


def number(value: float) -> str:
    """A figure for people."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def judge(case: Case, check: Check, all_samples: list[Samples]) -> dict[str, Any]:
    """Whether what was measured is what has to come out."""
    by_name = {samples.contender.name: samples for samples in all_samples}
    bound = check.at_least if check.at_least is not None else check.at_most
    assert bound is not None
    promise = f"{check.contender} {'>=' if check.at_least is not None else '<='} {number(bound)}"
    measure = check.measure or case.measure
    promise += f" x {check.times}" if check.times else f" {measure.unit}"
    promise += ", round by round" if check.in_turn else ""
    sides = [by_name[name] for name in (check.contender, check.times) if name]
    if not all(side.figures for side in sides):
        return {"promise": promise, "met": False, "value": None, "value_text": "not measured"}
    value = value_of(check, measure, sides)
    met = value >= bound if check.at_least is not None else value <= bound
    return {"promise": promise, "met": met, "value": value, "value_text": number(value)}


def value_of(check: Check, measure: Measure, sides: list[Samples]) -> float:
    """What the contender reached: its own figure, or how many times that of the other side."""
    if check.in_turn:
        pairs = zip(*(side.values(measure) for side in sides), strict=True)
        return float(median(one / other for one, other in pairs))
    value = sides[0].best(measure)
    return value / sides[1].best(measure) if check.times else value


@dataclass
class Bench:
    """One benchmark's run: its options, its cases, its output."""

    name: str
    arguments: argparse.Namespace
    versions: dict[str, str] = field(default_factory=dict)
    cases: list[dict[str, Any]] = field(default_factory=list)

    @property
    def quick(self) -> bool:
        return bool(self.arguments.quick)

    def run(self, cases: list[Case]) -> int:
        """Runs the cases that were asked for and writes the figures; the exit status is 0 when all of ours ran."""
        load = os.getloadavg()[0]
        if load > 0.5:
            print(f"{self.name}: the machine is not idle (load {load:.1f}): the figures say little", flush=True)
        kept = self.kept()
        asked = [case for case in cases if self.arguments.only in case.name]
        for case in asked:
            kept[case.name] = run_case(case, self.arguments.rounds, self.arguments.contender, kept.get(case.name))
            self.cases = [kept[one.name] for one in cases if one.name in kept]
            self.write(load)
        measured = [one for case in asked for one in kept[case.name]["contenders"]]
        ours = [one for one in measured if one["kind"] == "us" and one.get("left_out") != NOT_ASKED]
        return 0 if measured and all("left_out" not in one for one in ours) else 1

    def kept(self) -> dict[str, dict[str, Any]]:
        """By name, the cases in the folder of the figures, if they are to be added to."""
        path = Path(self.arguments.out) / f"{self.name}.json"
        if not self.arguments.add or not path.exists():
            return {}
        return {case["name"]: case for case in json.loads(path.read_text(encoding="utf-8"))["cases"]}

    def write(self, load: float) -> None:
        out = Path(self.arguments.out)
        out.mkdir(parents=True, exist_ok=True)
        document = {
            "bench": self.name,
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "command": shlex.join(portable(sys.argv)),
            "quick": self.quick,
            "rounds": self.arguments.rounds,
            "machine": {**machine(), "load_before": round(load, 2)},
            "versions": {**own_versions(), **self.versions},
            "cases": self.cases,
        }
        (out / f"{self.name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def begin(name: str, about: str, options: Callable[[argparse.ArgumentParser], None] | None = None) -> Bench:
    """Reads the options that every benchmark has, and those that ``options`` adds."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--out", default=str(ROOT / "bench-out"), help="folder for the figures (default: bench-out)")
    parser.add_argument("--quick", action="store_true", help="one short round: whether it runs, not how fast")
    parser.add_argument("--rounds", type=int, help="rounds that the contenders take turns in (default: 5, quick: 1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name has this in it")
    text = "only contenders whose name has this in it; with --add the figures of others are kept"
    parser.add_argument("--contender", default="", metavar="TEXT", help=text)
    text = "add to the figures in --out, which are kept for cases and contenders that are not measured now"
    parser.add_argument("--add", action="store_true", help=text)
    if options is not None:
        options(parser)
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 5)
    # Modules of a user's are compiled once, whatever the environment here says.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return Bench(name, arguments)


def program(name: str) -> Path:
    """A program that the build left in the target folder."""
    path = TARGET / "release" / name
    if not path.exists():
        raise LeftOutError(f"{name} is not built (JUNCTURA_PROFILE=release make build)")
    return path


@dataclass(frozen=True)
class Served:
    """A server of a sample's own: the process, and the addresses that it announced."""

    process: subprocess.Popen[str]
    addresses: list[str]

    @property
    def url(self) -> str:
        return self.addresses[0]


@contextmanager
def served(
    *options: str,
    cores: Iterable[int] = (),
    environment: dict[str, str] | None = None,
) -> Iterator[Served]:
    """Serves a pool in a folder of its own, on ``cores`` or on all.

    ``LeftOutError`` with what the server said, if it ends before it serves.
    """
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        words = ["pool", "serve", "--pool", f"unix:{folder}/pool", "--announce", *options]
        pinned = ["taskset", "-c", ",".join(map(str, sorted(cores)))] if cores else []
        with (
            Path(folder, "said").open("w+", encoding="utf-8") as said,
            subprocess.Popen(
                [*pinned, str(program("junctura")), *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                # One address for the pool, and one for each way in.
                addresses = [process.stdout.readline().strip() for _ in range(1 + options.count("--listen"))]
                if not all(addresses):
                    raise LeftOutError(f"junctura pool serve: {Path(said.name).read_text(encoding='utf-8').strip()}")
                yield Served(process, addresses)
            finally:
                process.kill()


def call(command: list[str], limit_s: float) -> str:
    """Runs a command to its end; what it printed, or why it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise LeftOutError(f"{Path(command[0]).name} did not end within {limit_s:.0f} s") from None
    except OSError as error:
        raise LeftOutError(str(error)) from error
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise LeftOutError(f"{Path(command[0]).name}: {words[-1]}")
    return done.stdout


def first_line(*command: str) -> str:
    """The first line that a command prints, or nothing when it is not there."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done.stdout.split("\n", 1)[0].strip()


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [line.split(":", 1)[1].strip() for line in cpus.splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": names[0] if names else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "virtual": "hypervisor" in cpus,
    }


def own_versions() -> dict[str, str]:
    """What was measured."""
    own = str(TARGET / "release/junctura")
    return {
        "junctura": first_line(own, "--version"),
        "commit": first_line("git", "rev-parse", "--short=12", "HEAD"),
        "rustc": first_line("rustc", "--version"),
        "python": platform.python_version(),
    }
