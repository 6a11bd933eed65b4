"""Runs the suites of ``suites.py``, times each, and prints what passed.

``tests/run.py`` runs all of them, ``tests/run.py NAME...`` some, ``--list`` names them. Output is shown as it comes,
each line with the name of its suite. The table at the end has, for each suite, its time, the processor time of all
its processes, and how many crates of others cargo compiled for it.

A suite is a command: what its runner counted (cargo, pytest, or a last line ``NAME: N passed, N failed``) is summed;
one that counts nothing counts as one. A suite whose files do not exist is left out; one that needs another that
failed is counted as failed without being run. A suite that hangs is killed at its limit of time, and a process that
allocates without end at its limit of memory.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reports import Failures
from suites import PROFILE, PYTHON, ROOT, SEED, SUITES, TARGET, Suite

# Suites that run at the same time: one that builds, and those that wait.
WAITERS = 2
# In continuous integration, which ends a run after 90 minutes: suites that repeat tests of others begin before.
REPEATS_UNTIL_S = 3600
ORDERS_TO_END = (signal.SIGINT, signal.SIGTERM)
# Of the machine's memory that one process may address.
MEMORY_SHARE = 0.6


@dataclass
class Outcome:
    """The result of a suite."""

    suite: Suite
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    # Of all processes that the suite started and waited for.
    processor_s: float = 0.0
    # Crates of others that cargo compiled.
    compiled: int = 0
    remark: str = ""
    # Of the output, what explains failures.
    failures: Failures = field(default_factory=Failures)


COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|ignored)\b")
PYTEST_END = re.compile(r"^=* ?\d+ (passed|failed|errors?|skipped)\b.* in [\d.]+s")
OWN_END = re.compile(r"^[\w-]+: \d+ passed, \d+ failed$")
# A crate that cargo compiles; one of ours has its folder behind it.
COMPILED = re.compile(r"^ *(Compiling|Checking) \S+ v\S+(?P<ours> \(/.*\))?$")
PROGRESS = re.compile(r"^ *(Compiling|Checking|Documenting|Downloaded|Downloading|Fresh|Blocking|Updating|Locking) ")
# The outcome of each suite that runs, by its process group.
RUNNING: dict[int, Outcome] = {}
# Held while a suite begins.
BEGINNING = threading.Lock()
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


def show(text: str) -> None:
    """In one piece: several suites write."""
    sys.stdout.write(text)
    sys.stdout.flush()


def memory_limit() -> int:
    """Bytes of address space of one process."""
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * MEMORY_SHARE)


def limited(suite: Suite) -> list[str]:
    """The command, under the limit of memory."""
    if not suite.memory_is_limited:
        return suite.command
    return ["bash", "-c", f'ulimit -v {memory_limit() >> 10} && exec "$@"', "-", *suite.command]


def begin(suite: Suite) -> subprocess.Popen[str]:
    """Starts a suite, in a process group of its own; its output can be read."""
    return subprocess.Popen(
        limited(suite),
        cwd=ROOT,
        env={**environment(), **suite.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def run(suite: Suite) -> Outcome:
    """Runs one suite, showing its output as it comes, with the suite's name before each line."""
    outcome = Outcome(suite)
    show(f"\n━━━ {suite.name}: {' '.join(suite.command)}\n")
    start = time.monotonic()
    with BEGINNING:
        process = begin(suite)
        RUNNING[process.pid] = outcome

    def end(remark: str) -> None:
        outcome.remark = remark
        os.killpg(process.pid, signal.SIGKILL)

    guard = threading.Timer(suite.limit_s, end, [f"killed after {suite.limit_s} s"])
    guard.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            take(line, outcome)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
    finally:
        guard.cancel()
        del RUNNING[process.pid]
    outcome.seconds = time.monotonic() - start
    outcome.processor_s = used.ru_utime + used.ru_stime
    if code != 0 and outcome.failed == 0:
        outcome.failed = 1
        outcome.remark = outcome.remark or f"exit status {code}"
    if outcome.passed + outcome.failed + outcome.skipped == 0:
        outcome.passed = 1
    verdict = "passed" if outcome.failed == 0 else "FAILED"
    took = f"{outcome.seconds:.0f} s ({outcome.processor_s:.0f} s of processor)"
    show(f"━━━ {suite.name} {verdict} after {took}, {time.monotonic() - BEGUN:.0f} s from the start\n")
    return outcome


def take(line: str, outcome: Outcome) -> None:
    if compiled := COMPILED.match(line):
        outcome.compiled += not compiled["ours"]
    if not PROGRESS.match(line):
        show(f"{outcome.suite.name:<9}│ {line}")
        count(line, outcome)
        outcome.failures.take(line)


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
    """The suites find the built command and the Python of `.venv` first."""
    path = f"{ROOT / '.venv/bin'}:{TARGET / PROFILE}:{os.environ.get('PATH', '')}"
    here = {"PATH": path, "VIRTUAL_ENV": str(ROOT / ".venv"), "CARGO_TARGET_DIR": str(TARGET), "PYO3_PYTHON": PYTHON}
    here |= {"JUNCTURA_CACHE": str(ROOT / ".tools/cache"), "JUNCTURA_PROFILE": PROFILE}
    here |= {"HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".tools/hypothesis")}
    # Without it the extension would be linked against the library of one Python.
    here |= {"PYO3_BUILD_EXTENSION_MODULE": "1"}
    # What is random is the same in every run, unless another seed is asked for.
    seeded = {"PROPTEST_RNG_SEED": SEED, **os.environ}
    # Each of thousands of Python processes would compile all modules that it imports.
    seeded.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**seeded, **here, "PYTHONUNBUFFERED": "1", "CARGO_TERM_COLOR": "never", "RUST_BACKTRACE": "1"}


def machine() -> str:
    """The processor and the instructions that fast paths may use, the memory and the system."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)$", text, re.MULTILINE)
    wanted = ("sse4_2", "avx2", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "vpclmulqdq")
    has = [name for name in wanted if flags and name in flags[1].split()]
    gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    name = model[1] if model else platform.machine()
    computer = f"{name}, {os.cpu_count()} cores, {gib:.0f} GiB, Linux {platform.release()}"
    return f"{computer}\ninstructions: {' '.join(has) or 'unknown'}"


def report(outcomes: list[Outcome]) -> bool:
    """Prints the table, the failures and the sum; true when nothing failed."""
    table(outcomes)
    print(f"disk: target {size_of(TARGET) / 2**30:.1f} GiB, .venv {size_of(ROOT / '.venv') / 2**30:.1f} GiB")
    for outcome in outcomes:
        for line in outcome.failures.lines() if outcome.failed else []:
            print(f"{outcome.suite.name}: {line}")
        if outcome.failed:
            print(f"{outcome.suite.name}: repeat with: tests/run.py {outcome.suite.name}")
    # Last, and short: who sees the end of the output alone sees all that failed.
    for outcome in outcomes:
        if outcome.failed:
            print(f"FAILED {outcome.suite.name}: {', '.join(outcome.failures.tests) or outcome.remark}")
    failed = sum(outcome.failed for outcome in outcomes)
    print(f"{sum(outcome.passed for outcome in outcomes)} passed, {failed} failed", flush=True)
    return failed == 0


def table(outcomes: list[Outcome]) -> None:
    """Prints a line for each suite, and their sums."""
    print(f"\n{machine()}")
    print(f"{'suite':<22}{'seconds':>9}{'processor':>11}{'passed':>9}{'failed':>9}{'skipped':>9}{'compiled':>10}")
    for outcome in outcomes:
        times = f"{outcome.seconds:>9.1f}{outcome.processor_s:>11.1f}"
        numbers = f"{times}{outcome.passed:>9}{outcome.failed:>9}{outcome.skipped:>9}{outcome.compiled:>10}"
        print(f"{outcome.suite.name:<22}{numbers}  {outcome.remark}".rstrip())
    processor = sum(outcome.processor_s for outcome in outcomes)
    compiled = sum(outcome.compiled for outcome in outcomes)
    skipped = sum(outcome.skipped for outcome in outcomes)
    print(f"{'all':<22}{time.monotonic() - BEGUN:>9.1f}{processor:>11.1f}{'':>18}{skipped:>9}{compiled:>10}")


class Schedule:
    """Hands suites to lanes: the first one of a lane's kind whose needs are met."""

    def __init__(self, suites: list[Suite]) -> None:
        self.left = list(suites)
        # A suite that was not asked for counts as done: what it builds is there from an earlier run.
        self.unfinished = {suite.name for suite in suites}
        self.bad: set[str] = set()
        self.outcomes: list[Outcome] = []
        self.changed = threading.Condition()

    def run_all(self) -> list[Outcome]:
        lanes = [threading.Thread(target=self.lane, args=[builds]) for builds in (True, *[False] * WAITERS)]
        try:
            for lane in lanes:
                lane.daemon = True
                lane.start()
            for lane in lanes:
                # A signal that arrives just before a wait without end would not be seen.
                while lane.is_alive():
                    lane.join(timeout=1)
        except KeyboardInterrupt:
            self.end()
            raise
        return self.outcomes

    def end(self) -> None:
        """Ends what runs, and prints how far the run came; no suite can begin any more."""
        passed_s = time.monotonic() - BEGUN
        for number in ORDERS_TO_END:
            signal.signal(number, signal.SIG_IGN)
        BEGINNING.acquire()
        with self.changed:
            running, outcomes = RUNNING.copy(), self.outcomes.copy()
            left = ", ".join(suite.name for suite in self.left)
        for group in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        table(outcomes)
        # Last: who sees the end of the output alone sees where the time went.
        ran = ", ".join(outcome.suite.name for outcome in running.values())
        ended = f"ended by a signal after {passed_s:.0f} s, while these ran: {ran or 'nothing'}"
        show(f"not begun: {left or 'nothing'}\n{ended}\n")

    def lane(self, builds: bool) -> None:
        while suite := self.next(builds):
            outcome = self.without_running(suite) or run(suite)
            with self.changed:
                self.outcomes.append(outcome)
                self.unfinished.discard(suite.name)
                if outcome.failed:
                    self.bad.add(suite.name)
                self.changed.notify_all()

    def without_running(self, suite: Suite) -> Outcome | None:
        """The outcome of a suite that cannot or need not be run."""
        if missing := self.bad.intersection(suite.needs):
            return Outcome(suite, failed=1, remark=f"not run: needs {', '.join(sorted(missing))}")
        passed_s = time.monotonic() - BEGUN
        if suite.repeats and passed_s > REPEATS_UNTIL_S and "CI" in os.environ:
            remark = f"left out: it repeats tests of other suites, and {passed_s:.0f} s have passed"
            show(f"\n━━━ {suite.name} {remark}\n")
            return Outcome(suite, skipped=1, remark=remark)
        return None

    def next(self, builds: bool) -> Suite | None:
        with self.changed:
            while True:
                mine = [suite for suite in self.left if suite.builds == builds]
                if builds and not mine:
                    # With no build left, this lane runs a third suite that waits.
                    mine = self.left
                if not mine:
                    return None
                for suite in mine:
                    if not self.unfinished.intersection(suite.needs):
                        self.left.remove(suite)
                        return suite
                self.changed.wait()


def asked(arguments: list[str]) -> Iterator[Suite]:
    suites = [suite for suite in SUITES if suite.exists()]
    names = [suite.name for suite in suites]
    parser = argparse.ArgumentParser(description="Run the suites.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--list", action="store_true", help="name the suites and their commands")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.suites if name not in names]:
        parser.error(f"no such suite: {', '.join(unknown)} (there are {', '.join(names)})")
    for suite in suites:
        if chosen.list:
            print(f"{suite.name:<22}{' '.join(suite.command)}")
        elif not chosen.suites or suite.name in chosen.suites:
            yield suite


def main() -> int:
    # A shell starts background jobs with signals ignored, and so would be the programs that tests send these to.
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    # An order to end is obeyed as Ctrl-C is: no suite outlives this process.
    for number in ORDERS_TO_END:
        signal.signal(number, signal.default_int_handler)
    # Programs of many tests at a time have more files open than the usual 1,024.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # A core of each process that a test kills would fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    suites = list(asked(sys.argv[1:]))
    if not suites:
        return 0
    try:
        return 0 if report(Schedule(suites).run_all()) else 1
    except KeyboardInterrupt:
        # At once: threads of suites that were ended still write.
        sys.stdout.flush()
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
