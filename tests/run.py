"""Runs the suites, times each, and says at the end what passed.

``tests/run.py`` runs all of them, ``tests/run.py NAME...`` some, ``--list`` names them. Output is shown while it comes.
Suites that build, and use all cores for it, run by themselves; the others, which wait for processes most of the time,
run two at a time, and the lines of each have its name.

A suite is a command: what its runner counted (cargo, pytest, or a last line ``NAME: N passed, N failed``) is summed;
one that counts nothing counts as one. A suite whose folder is not there yet is left out; one that needs another that
failed is counted as failed without being run. A suite that hangs is ended after its limit.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PYTHON = str(ROOT / ".venv/bin/python")
# Of all that is random: `PROPTEST_RNG_SEED=… cargo test` and `pytest --hypothesis-seed=…` run it again.
SEED = "20261121"
PYTEST = [PYTHON, "-m", "pytest", "-q", f"--hypothesis-seed={SEED}"]
# The Python extension is tested from Python; it does not link into a test program of Rust's.
TESTED = ["--workspace"] + (["--exclude", "junctura-python"] if (ROOT / "crates/junctura-python").is_dir() else [])


@dataclass(frozen=True)
class Suite:
    """A command, the files without which it makes no sense, and the suites that must have passed before."""

    name: str
    command: list[str]
    there: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    limit_s: int = 900
    # It leaves the cores idle for long, and bears that others use them.
    beside_others: bool = False

    def exists(self) -> bool:
        return all(any(ROOT.glob(pattern)) for pattern in self.there)


# Every pool is reached over TCP, through a gate of the client's own.
OVER_TCP = {"JUNCTURA_TEST_DETOUR": "tcp"}
# As before, and from there by an upstream of the client's own.
BY_UPSTREAM = {"JUNCTURA_TEST_DETOUR": "upstream"}
# Over TCP, with three streams for each connection.
OVER_STREAMS = {**OVER_TCP, "JUNCTURA_STREAMS": "3"}
CARGO_TEST = ["cargo", "test", "--quiet", "--no-fail-fast"]
# The tests of the facade by name, not by package: for the package alone cargo would build everything a second time.
FACADE = [f"--test={path.stem}" for path in sorted(ROOT.glob("crates/junctura/tests/*.rs"))]
# What has to do with no pool, or hardly, is the same by any way to one.
POOLLESS = ("test_store*", "test_hammer_store", "test_stub", "test_user_program")
WITH_POOLS = [f"--ignore-glob=*/{name}.py" for name in POOLLESS]


def over_another_way(name: str, environment: dict[str, str]) -> Suite:
    """The tests of the facade again, as they were built."""
    command = [*CARGO_TEST, *TESTED, *FACADE]
    return Suite(name, command, environment=environment, beside_others=True)


def of_processes(name: str, command: list[str], there: list[str], environment: dict[str, str] | None = None) -> Suite:
    """One that tries what was built."""
    return Suite(name, command, there, needs=["build"], environment=environment or {}, beside_others=True)


SUITES = [
    Suite("lint", ["make", "lint"]),
    Suite("unit", [*CARGO_TEST, *TESTED, "--lib", "--bins"]),
    Suite("integration", [*CARGO_TEST, *TESTED, "--test", "*"], there=["crates/*/tests/*.rs"]),
    over_another_way("integration-tcp", OVER_TCP),
    over_another_way("integration-upstream", BY_UPSTREAM),
    over_another_way("integration-streams", OVER_STREAMS),
    Suite("doc", [*CARGO_TEST, *TESTED, "--doc"]),
    Suite("asan", ["tools/asan.sh"]),
    Suite("loom", ["tools/loom.sh"]),
    # Many seeds each. Beside the extension, which has no tests here: so this and `build` share dependencies.
    Suite(
        "seeds",
        [*CARGO_TEST, "--release", "-p", "junctura-sim", "-p", "junctura-store", "-p", "junctura-python", "--tests"],
        there=["crates/junctura-sim/Cargo.toml"],
        limit_s=1500,
    ),
    # Ten seconds do not pay for more optimisation.
    Suite("fuzz", ["fuzz/run.sh", "10"], environment={"CARGO_PROFILE_RELEASE_OPT_LEVEL": "1"}),
    Suite("build", ["make", "build"], there=["crates/junctura-cli/Cargo.toml"], limit_s=1500),
    of_processes("python", [*PYTEST, "--doctest-modules", "python/junctura", "tests/python"], ["python/junctura"]),
    of_processes("store-s3", [PYTHON, "tests/store/s3.py"], ["tests/store"]),
    of_processes("fdb", [PYTHON, "tests/fdb/run.py"], ["tests/fdb"]),
    of_processes("model", [*PYTEST, "tests/model"], ["tests/model"]),
    of_processes("e2e", [*PYTEST, "tests/e2e"], ["tests/e2e"]),
    of_processes("e2e-tcp", [*PYTEST, *WITH_POOLS, "tests/e2e", "tests/python"], ["tests/e2e"], OVER_TCP),
    of_processes("link", [*PYTEST, "tests/link"], ["tests/link"]),
    of_processes("storm", [*PYTEST, "tests/storm"], ["tests/storm"]),
    of_processes("products", [*PYTEST, "tests/products"], ["tests/products"]),
    of_processes("workflow", [*PYTEST, "tests/workflow"], ["tests/workflow"]),
    of_processes("grib", [*PYTEST, "tests/grib"], ["tests/grib"]),
    of_processes("regressions", [*PYTEST, "tests/regressions"], ["tests/regressions"]),
    of_processes("examples", [*PYTEST, "tests/examples"], ["tests/examples"]),
    of_processes("install", [PYTHON, "tests/install/run.py"], ["tests/install"]),
    of_processes("readme", [PYTHON, "tests/readme/run.py"], ["tests/readme/run.py"]),
    of_processes(
        "guide", [PYTHON, "tests/readme/run.py", *sorted(map(str, ROOT.glob("docs/guide/*.md")))], ["docs/guide"]
    ),
    of_processes("site", [*PYTEST, "tests/site"], ["tests/site"]),
    of_processes("cli-page", [PYTHON, "tests/readme/run.py", "docs/cli.md"], ["docs/cli.md"]),
]


@dataclass
class Outcome:
    """What became of a suite."""

    suite: Suite
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    # Of all that it started and waited for.
    processor_s: float = 0.0
    # What has been built by its end.
    built_gib: float = 0.0
    remark: str = ""
    # What its runner said of the tests that failed.
    told: list[str] = field(default_factory=list)


COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|ignored)\b")
PYTEST_END = re.compile(r"^=* ?\d+ (passed|failed|errors?|skipped)\b.* in [\d.]+s")
OWN_END = re.compile(r"^[\w-]+: \d+ passed, \d+ failed$")
# Where cargo begins what a failed test printed, pytest's line for one, and that of a suite that counts on its own.
FAILED_TEST = re.compile(r"^(---- .* stdout ----|(FAILED|ERROR) .*|failed: .*)$")
LINES_TOLD_OF_EACH = 6
LINES_TOLD = 40
# Suites that run at the same time, where they may.
LANES = 2
RUNNING: set[int] = set()
BEGUN = time.monotonic()


def count(line: str, outcome: Outcome) -> None:
    """Adds what a runner's closing line says."""
    line = line.strip()
    if line.startswith("left out: "):
        outcome.skipped += 1
        outcome.remark = line
    if not (line.startswith("test result: ") or PYTEST_END.match(line) or OWN_END.match(line)):
        return
    for number, what in COUNT.findall(line):
        if what == "passed":
            outcome.passed += int(number)
        elif what in ("skipped", "ignored"):
            outcome.skipped += int(number)
        else:
            outcome.failed += int(number)


class Failures:
    """Keeps, of the lines of a suite, those that say which tests failed, and the first ones of why."""

    def __init__(self, told: list[str]) -> None:
        self.told = told
        self.more = 0

    def take(self, line: str) -> None:
        line = line.rstrip()
        if FAILED_TEST.match(line):
            self.more = LINES_TOLD_OF_EACH if line.startswith("----") else 1
        if self.more > 0 and line and len(self.told) < LINES_TOLD:
            self.told.append(line[:300])
            self.more -= 1


def show(text: str) -> None:
    """In one piece: others write, too."""
    sys.stdout.write(text)
    sys.stdout.flush()


def run(suite: Suite, environment: dict[str, str], before: str) -> Outcome:
    """Runs one suite, showing its output while it comes, with this before each line."""
    outcome = Outcome(suite)
    show(f"\n━━━ {suite.name}: {' '.join(suite.command)}\n")
    start = time.monotonic()
    process = subprocess.Popen(
        suite.command,
        cwd=ROOT,
        env={**environment, **suite.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    RUNNING.add(process.pid)

    def end(remark: str) -> None:
        outcome.remark = remark
        os.killpg(process.pid, signal.SIGKILL)

    failures = Failures(outcome.told)
    guard = threading.Timer(suite.limit_s, end, [f"ended after {suite.limit_s} s"])
    guard.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            show(before + line)
            count(line, outcome)
            failures.take(line)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
    finally:
        guard.cancel()
        RUNNING.discard(process.pid)
    outcome.seconds = time.monotonic() - start
    outcome.processor_s = used.ru_utime + used.ru_stime
    outcome.built_gib = size_of(TARGET) / 2**30
    if code != 0 and outcome.failed == 0:
        outcome.failed = 1
        outcome.remark = outcome.remark or f"exit status {code}"
    if outcome.passed + outcome.failed + outcome.skipped == 0:
        outcome.passed = 1
    return outcome


def size_of(folder: Path) -> int:
    """Bytes on disk; a file of several names counts once."""
    sizes: dict[int, int] = {}
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                status = Path(where, name).lstat()
                sizes[status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def environment() -> dict[str, str]:
    """The suites find the built command and the Python of the house first."""
    path = f"{ROOT / '.venv/bin'}:{TARGET / 'release'}:{os.environ.get('PATH', '')}"
    here = {"PATH": path, "VIRTUAL_ENV": str(ROOT / ".venv"), "CARGO_TARGET_DIR": str(TARGET), "PYO3_PYTHON": PYTHON}
    here["JUNCTURA_CACHE"] = str(ROOT / ".tools/cache")
    # What is random is the same in every run, unless another seed is asked for.
    seeded = {"PROPTEST_RNG_SEED": SEED, **os.environ}
    return {**seeded, **here, "PYTHONUNBUFFERED": "1", "CARGO_TERM_COLOR": "never", "RUST_BACKTRACE": "1"}


def report(outcomes: list[Outcome]) -> bool:
    """Prints the table and the sum; true when nothing failed."""
    print(f"\n{'suite':<21}{'seconds':>9}{'processor':>11}{'passed':>9}{'failed':>9}{'skipped':>9}{'built':>9}")
    for outcome in outcomes:
        times = f"{outcome.seconds:>9.1f}{outcome.processor_s:>11.1f}"
        numbers = f"{times}{outcome.passed:>9}{outcome.failed:>9}{outcome.skipped:>9}"
        print(f"{outcome.suite.name:<21}{numbers}{outcome.built_gib:>5.1f} GiB  {outcome.remark}".rstrip())
    print(f"{'all':<21}{time.monotonic() - BEGUN:>9.1f}{sum(outcome.processor_s for outcome in outcomes):>11.1f}")
    for outcome in outcomes:
        for line in outcome.told if outcome.failed else []:
            print(f"{outcome.suite.name}: {line}")
    failed = sum(outcome.failed for outcome in outcomes)
    print(f"{sum(outcome.passed for outcome in outcomes)} passed, {failed} failed", flush=True)
    return failed == 0


def run_all(suites: list[Suite]) -> Iterator[Outcome]:
    """One after the other, or those that may beside each other."""
    bad: set[str] = set()

    def one(suite: Suite) -> Outcome:
        if missing := bad.intersection(suite.needs):
            return Outcome(suite, failed=1, remark=f"not run: needs {', '.join(missing)}")
        return run(suite, environment(), f"{suite.name:<9}│ " if suite.beside_others else "")

    for together, group in itertools.groupby(suites, lambda suite: suite.beside_others):
        with ThreadPoolExecutor(LANES if together else 1) as lanes:
            try:
                for outcome in lanes.map(one, group):
                    if outcome.failed:
                        bad.add(outcome.suite.name)
                    yield outcome
            except KeyboardInterrupt:
                lanes.shutdown(wait=False, cancel_futures=True)
                for running in RUNNING.copy():
                    os.killpg(running, signal.SIGKILL)
                raise


def main() -> int:
    # What a shell starts in the background ignores Ctrl-C, and so would the programs that tests send it to.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    suites = [suite for suite in SUITES if suite.exists()]
    names = [suite.name for suite in suites]
    parser = argparse.ArgumentParser(description="Run the suites.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(names)}; all without")
    parser.add_argument("--list", action="store_true", help="name the suites and their commands")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.suites if name not in names]:
        parser.error(f"no such suite: {', '.join(unknown)} (there are {', '.join(names)})")
    if arguments.list:
        for suite in suites:
            print(f"{suite.name:<14}{' '.join(suite.command)}")
        return 0
    asked = [suite for suite in suites if not arguments.suites or suite.name in arguments.suites]
    outcomes = list(run_all(asked))
    return 0 if report(outcomes) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
