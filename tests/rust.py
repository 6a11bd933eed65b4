"""Runs test programs of Rust that ``make build-ci`` has built, without cargo: nothing waits for cargo's lock.

``rust.py WHAT [ARGUMENT...]``: ``unit`` runs the tests in the crates' sources, ``integration`` those in their folders
``tests``, ``facade`` those of the crate ``junctura`` (the ones that reach a pool), ``NAME=CRATE/TARGET`` one program.
Arguments go to each program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROFILE = os.environ.get("JUNCTURA_PROFILE", "ci")
# What `make build-ci` keeps of cargo's messages.
BUILT = TARGET / PROFILE / "built.json"


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
    ended = subprocess.run([program.path, "--quiet", *arguments], cwd=program.folder, env=environment, check=False)
    if ended.returncode != 0:
        print(f"failed: exit status {ended.returncode}; repeat with: {program.repeat()}", flush=True)
    return ended.returncode == 0


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
