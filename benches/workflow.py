"""Measures how soon a task starts once its object is there, and what a thousand short tasks cost.

Each task is a program that says what time it is when it runs, so that the way of telling is the same for all. Objects
come twenty milliseconds apart: what is measured is a start, and not a queue. The rivals are told of an event by a line
in a pipe, without any pool, and keep no record. The machine's limit is the program started by nobody's leave.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import TARGET, Bench, Case, Check, Contender, Figures, LeftOutError, Measure, begin, call

APART_S = 0.02
CLOCK = ["date", "+%s%N"]
START = Measure("start_ms.p50", "ms, p50", more_is_better=False)
SECONDS = Measure("seconds", "s", more_is_better=False)
PRODUCER = f"""
import os, sys, time, junctura
with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool:
    for number in range(int(sys.argv[1])):
        pool.offer(b"", name=str(number), kind="event", offered=str(time.time_ns()))
        time.sleep({APART_S})
"""
ON_EVENTS = """
workflow: events
pool: {{schema: free}}
tasks:
  producer:
    run: [python, "{{here}}/producer.py", "{count}"]
  task:
    run: [date, "+%s%N"]
    start: {{each: kind=event, count: {count}}}
"""
THOUSAND = """
workflow: thousand
parallel: 2
tasks:
  one:
    run: ["true"]
    matrix: {{number: 1/to/{count}}}
"""


def in_a_folder(work: Callable[[Path], Figures]) -> Figures:
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        return work(Path(folder))


def run_workflow(text: str, folder: Path) -> Path:
    (folder / "flow.yaml").write_text(text)
    command = [sys.executable, "-m", "junctura.workflow", str(folder / "flow.yaml"), "--run-dir", str(folder / "run")]
    call([*command, "--quiet"], 600)
    return folder / "run"


def milliseconds(taken: list[int]) -> Figures:
    values = np.array(taken) / 1e6
    return {"start_ms": {f"p{part}": float(np.percentile(values, part)) for part in (50, 99)}, "starts": len(taken)}


def tasks_on_objects(count: int, folder: Path) -> Figures:
    (folder / "producer.py").write_text(PRODUCER)
    run = run_workflow(ON_EVENTS.format(count=count), folder)
    lines = [json.loads(line) for line in (run / "record.jsonl").read_text().splitlines()]
    ready = {line["task"]: line["reason"] for line in lines if line["kind"] == "ready" and line["of"] == "task"}
    told = {name: int((run / f"logs/{name}.1.log").read_text()) for name in ready}
    return milliseconds([told[name] - int(reason["attributes"]["offered"]) for name, reason in ready.items()])


def parallel() -> str:
    """GNU parallel; other programs have its name, too."""
    found = shutil.which("parallel")
    if found is None or "GNU" not in subprocess.run([found, "--version"], capture_output=True, text=True).stdout:
        raise LeftOutError("GNU parallel is not here")
    return found


def lines_to_parallel(count: int) -> Figures:
    # It reads a line ahead unless told otherwise.
    command = [parallel(), "--will-cite", "-j2", "-u", "-N1", f"echo {{}} $({' '.join(CLOCK)})"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        for _ in range(count):
            process.stdin.write(f"{time.time_ns()}\n")
            process.stdin.flush()
            time.sleep(APART_S)
        said, _ = process.communicate()
    pairs = [line.split() for line in said.splitlines()]
    return milliseconds([int(told) - int(offered) for offered, told in pairs])


def spawned(count: int) -> Figures:
    taken = []
    for _ in range(count):
        offered = time.time_ns()
        taken.append(int(subprocess.run(CLOCK, capture_output=True, check=True).stdout) - offered)
        time.sleep(APART_S)
    return milliseconds(taken)


def timed(work: Callable[[], object]) -> Figures:
    begun = time.monotonic()
    work()
    return {"seconds": time.monotonic() - begun}


def with_make(count: int, folder: Path) -> Figures:
    names = [f"t{number}" for number in range(count)]
    rules = "".join(f"{name}:\n\t@true\n" for name in names)
    (folder / "Makefile").write_text(f".PHONY: all {' '.join(names)}\nall: {' '.join(names)}\n{rules}")
    return timed(lambda: call(["make", "-s", "-j2", "SHELL=/bin/sh -e", "-C", str(folder), "all"], 600))


def with_parallel(count: int) -> Figures:
    given = "\n".join(map(str, range(count)))
    command = [parallel(), "--will-cite", "-j2", "true", "{}"]
    return timed(lambda: subprocess.run(command, input=given, text=True, check=True, capture_output=True))


def two_at_a_time(count: int) -> None:
    """As fast as this can be: the next one when one of two has ended."""
    running: list[subprocess.Popen[bytes]] = []
    for _ in range(count):
        if len(running) == 2:
            running.pop(0).wait()
        running.append(subprocess.Popen(["true"]))
    for process in running:
        process.wait()


def contender(name: str, kind: str, awaited: str, run: Callable[[], Figures]) -> Contender:
    return Contender(name, kind, awaited, "none", [sys.executable, *sys.argv], run)


def cases(bench: Bench) -> list[Case]:
    events, tasks = (20, 100) if bench.quick else (200, 1000)
    said = "the time that the program says"
    starts = [
        contender("junctura", "us", said, lambda: in_a_folder(lambda folder: tasks_on_objects(events, folder))),
        contender("posix_spawn", "limit", said, lambda: spawned(events)),
        contender("GNU parallel", "rival", said, lambda: lines_to_parallel(events)),
    ]
    thousand = THOUSAND.format(count=tasks)
    ends = [
        contender(
            "junctura",
            "us",
            "the end of the run",
            lambda: timed(lambda: in_a_folder(lambda folder: {"run": str(run_workflow(thousand, folder))})),
        ),
        contender("posix_spawn", "limit", "the last end", lambda: timed(lambda: two_at_a_time(tasks))),
        contender("make -j2", "rival", "its end", lambda: in_a_folder(lambda folder: with_make(tasks, folder))),
        contender("GNU parallel", "rival", "its end", lambda: with_parallel(tasks)),
    ]
    return [
        Case(
            "start",
            "From an object's offer to the first word of the program that it starts",
            START,
            starts,
            [Check("junctura", at_most=1, times="GNU parallel")],
        ),
        Case(
            "thousand",
            f"{tasks:,} tasks of `true`, two at a time, with a log of each and a record",
            SECONDS,
            ends,
            [Check("junctura", at_most=1, times="GNU parallel")],
        ),
    ]


def main() -> int:
    bench = begin("workflow", "How soon does a task start, and what do many cost?")
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
