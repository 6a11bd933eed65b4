"""Runs one suite many times beside busy loops: ``flaky.py SUITE [TIMES]`` (default: 20). ``make flaky SUITE=…`` calls
it.

A test that fails once is a bug. The output of each run that failed is kept in ``target/flaky``, with its number.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from run import begin
from suites import ROOT, SUITES, TARGET

# Busy loops for each core: the suite gets a quarter of the machine.
LOOPS_PER_CORE = 3
KEPT = TARGET / "flaky"
FAILED = re.compile(
    r"^(test .* \.\.\. FAILED|---- .* stdout ----|(FAILED|ERROR) .*|failed: .*|.* --- FAILED)$", re.MULTILINE
)


@contextmanager
def load() -> Iterator[None]:
    count = LOOPS_PER_CORE * (os.cpu_count() or 1)
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main() -> int:
    names = [suite.name for suite in SUITES]
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"usage: flaky.py SUITE [TIMES]; suites: {', '.join(names)}")
        return 2
    suite = next(suite for suite in SUITES if suite.name == sys.argv[1])
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    KEPT.mkdir(parents=True, exist_ok=True)
    failures = 0
    with load():
        for number in range(1, times + 1):
            began = time.monotonic()
            process = begin(suite)
            try:
                output, _ = process.communicate()
            except KeyboardInterrupt:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            seconds = time.monotonic() - began
            print(f"{suite.name} {number} of {times}: exit status {process.returncode}, {seconds:.0f} s", flush=True)
            if process.returncode != 0:
                failures += 1
                kept = KEPT / f"{suite.name}-{number}.log"
                kept.write_text(output)
                for line in FAILED.finditer(output):
                    print(f"  {line[0]}")
                print(f"  whole output: {kept.relative_to(ROOT) if kept.is_relative_to(ROOT) else kept}", flush=True)
    print(f"flaky: {times - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
