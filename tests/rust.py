"""Runs test programs of Rust that ``make build-ci`` has built, without cargo: nothing waits for cargo's lock.

``rust.py WHAT [ARGUMENT...]``: ``unit`` runs the tests in the crates' sources, ``integration`` those in their folders
``tests``, ``facade`` those of the crate ``junctura`` (the ones that reach a pool), ``NAME=CRATE/TARGET`` one program.
Arguments go to each program.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROFILE = os.environ.get("JUNCTURA_PROFILE", "ci")
# What `make build-ci` keeps of cargo's messages.
BUILT = TARGET / PROFILE / "built.json"
# A program that runs longer hangs.
LIMIT_S = 1500
# Lines of gdb: the name of a thread, and the function of a frame. Numbers behind names of crates are removed first.
THREAD = re.compile(r'^Thread .* "(.*)"\):$')
FRAME = re.compile(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S.*?)(?:::h[0-9a-f]{16})? \(")
NUMBER = re.compile(r"\[[0-9a-f]+\]")
NOT_OURS = re.compile(r"<*(std|core|alloc|rustix)::")
RUNS_A_TEST = "test::"
FRAMES_SHOWN = 6


@dataclass(frozen=True)
class Program:
    """A test program."""

    crate: str
    folder: Path
    # `lib`, `bin` or `test`.
    kind: str
    name: str
    path: str

    def repeat(self) -> str:
        what = "--lib" if self.kind == "lib" else f"--{self.kind} {self.name}"
        return f"cargo test --profile {PROFILE} -p {self.crate} {what}"


def programs() -> list[Program]:
    """All that were built, by crate and name."""
    found = set()
    for line in BUILT.read_text().splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            target = message["target"]
            folder = Path(message["manifest_path"]).parent
            kind = target["kind"][0] if target["kind"][0] in ("bin", "test") else "lib"
            found.add(Program(crate_of(folder), folder, kind, target["name"], message["executable"]))
    return sorted(found, key=lambda program: (program.crate, program.kind, program.name))


def crate_of(folder: Path) -> str:
    return folder.name


def chosen(what: str) -> list[Program]:
    of_crate = {"unit": "", "integration": "", "facade": "junctura"}
    kinds = ("test",) if what in ("integration", "facade") else ("lib", "bin")
    if what not in of_crate:
        crate, _, name = what.partition("/")
        return [one for one in programs() if one.crate == crate and name in (one.name, one.kind)]
    return [one for one in programs() if one.kind in kinds and of_crate[what] in ("", one.crate)]


def run(program: Program, arguments: list[str]) -> bool:
    print(f"Running {program.crate} {program.kind} {program.name}", flush=True)
    # As cargo runs it.
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(program.folder), "CARGO_PKG_NAME": program.crate}
    with subprocess.Popen([program.path, "--quiet", *arguments], cwd=program.folder, env=environment) as running:
        try:
            reason = f"exit status {running.wait(LIMIT_S)}"
        except subprocess.TimeoutExpired:
            reason = f"killed after {LIMIT_S} s"
            print_threads(running.pid)
            running.kill()
    if running.returncode != 0:
        print(f"failed: {reason}; repeat with: {program.repeat()}", flush=True)
    return running.returncode == 0


def print_threads(process: int) -> None:
    """Prints where each thread of a process is, if there is gdb; a thread of a test bears the test's name."""
    if not (gdb := shutil.which("gdb")):
        return
    asked = [gdb, "-p", str(process), "-batch", "-ex", "thread apply all backtrace 60"]
    stacks = subprocess.run(asked, capture_output=True, text=True, errors="replace", check=False).stdout
    print(stacks)
    name = ""
    functions: list[str] = []
    for line in NUMBER.sub("", stacks).splitlines():
        if thread := THREAD.match(line):
            name, functions = thread[1], []
        elif (frame := FRAME.match(line)) and "::" in frame[1] and not NOT_OURS.match(frame[1]):
            if frame[1].startswith(RUNS_A_TEST) and functions:
                print(f"hangs: {name}: {' < '.join(functions[:FRAMES_SHOWN])}", flush=True)
                functions = []
            elif not frame[1].startswith(RUNS_A_TEST):
                functions.append(frame[1])


def main() -> int:
    what, arguments = sys.argv[1], sys.argv[2:]
    todo = chosen(what)
    if not todo:
        print(f"failed: no test program is built for '{what}': make build-ci")
        return 1
    good = [run(program, arguments) for program in todo]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
