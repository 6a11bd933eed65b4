"""Executes pages: each block of the shell, Python, C, C++ and Fortran in its order, in a scratch folder for each page.

``run.py`` executes the README, ``run.py PAGE...`` these pages, ``run.py --together PAGE...`` these in one session, in
the given order. The shell blocks of a page are one session of bash, so that
a variable or a background server of one is there for the next; what still runs at the end is ended. A Python block is
a program of its own, as a reader would paste it. A block of a compiled language is a file, which its first line names
(``/* hello.c */``, ``! hello.f90``); a block of the shell compiles it, with what ``make install-c`` installs. A block
behind the comment ``<!-- not run: why -->`` is left out. A page with the comment ``<!-- continues: PAGE -->`` is run
after that page beside it, in the same folder and session. A page with ``<!-- needs: PROGRAM -->`` is left out where
that program is not installed. The first block that fails ends its page and is named with
its line. ``rust`` blocks of the guide are tested by ``cargo test --doc``; ``text`` is what something prints. A block in
any other language would be run by nobody, and is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILED = ("c", "cpp", "fortran")
RUN = ("sh", "python", *COMPILED)
TESTED_ELSEWHERE = ("rust", "text")
NEEDED = re.compile(r"^<!-- needs: (\S+) -->$", re.M)
CONTINUES = re.compile(r"^<!-- continues: (?P<page>\S+) -->$", re.M)
FILE = re.compile(r"(?:/\* (?P<c>\w+\.(?:c|cpp)) \*/|! (?P<fortran>\w+\.f90))$", re.M)
# Open MPI refuses root, and more ranks than cores.
MPI_ON_ANY_MACHINE = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
BLOCK = re.compile(r"(?P<skip><!-- not run: [^>]*-->\s*)?^```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A piece of a page that a reader would run."""

    page: str
    line: int
    language: str
    code: str


def chain(page: Path) -> list[Path]:
    """A page behind all pages that it continues."""
    before = CONTINUES.search(page.read_text())
    return [*(chain(page.parent / before["page"]) if before else []), page]


def sessions(pages: list[Path]) -> list[list[Path]]:
    """Pages to execute together; one that another continues has no session of its own."""
    chains = [chain(page) for page in pages]
    return [one for one in chains if not any(one[-1] in other[:-1] for other in chains)]


def blocks(page: Path) -> list[Block]:
    """The blocks to run, in their order."""
    text = page.read_text()
    found = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        if match["language"] not in RUN + TESTED_ELSEWHERE:
            raise SystemExit(f"{page.name}:{line - 1}: nobody runs a block of {match['language']}")
        if match["language"] in RUN and not match["skip"]:
            found.append(Block(page.name, line, match["language"], match["code"]))
    return found


def script(found: list[Block], scratch: Path) -> str:
    """One bash program of all blocks."""
    # `jobs` lacks the commands of process substitutions.
    end = "kill $(cat /proc/$$/task/$$/children) 2>/dev/null || true; wait 2>/dev/null || true"
    lines = ["set -euo pipefail", f"trap '{end}' EXIT"]
    for number, block in enumerate(found, start=1):
        lines.append(f"echo '--- {block.page}:{block.line}'")
        if block.language == "python":
            program = scratch / f"block_{number}.py"
            program.write_text(block.code)
            lines.append(f"python {program}")
        elif block.language in COMPILED:
            named = FILE.match(block.code)
            if named is None:
                raise SystemExit(f"{block.page}:{block.line}: the first line names no file: /* hello.c */")
            (scratch / "here" / (named["c"] or named["fortran"])).write_text(block.code)
        else:
            lines.append(block.code)
        lines.append(f"echo {number} > {scratch}/done")
    return "\n".join(lines) + "\n"


def environment(scratch: Path) -> dict[str, str]:
    """The built command and the Python of the house first; sockets of this run apart from those of the user."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = target / os.environ.get("JUNCTURA_PROFILE", "ci")
    path = f"{Path(sys.executable).parent}:{built}:{os.environ.get('PATH', '')}"
    runtime = scratch / "run"
    runtime.mkdir(mode=0o700)
    packages = {"PKG_CONFIG_PATH": str(scratch / "prefix/lib/pkgconfig")}
    return {
        **os.environ,
        **MPI_ON_ANY_MACHINE,
        **packages,
        "PATH": path,
        "XDG_RUNTIME_DIR": str(runtime),
        "JUNCTURA_REPO": str(ROOT),
    }


def install_c(scratch: Path) -> None:
    """Installs the C library that was built."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "ci")
    subprocess.run([ROOT / "tools/install_c.sh", scratch / "prefix", built], check=True)


def execute(pages: list[Path]) -> tuple[int, int]:
    """Runs pages in one session: how many blocks passed, and how many failed; those after a failure are not run."""
    found = [block for page in pages for block in blocks(page)]
    if not found:
        return 0, 0
    needed = {"gfortran"} if any(block.language == "fortran" for block in found) else set()
    for page in pages:
        needed |= set(NEEDED.findall(page.read_text()))
    for program in sorted(needed):
        if shutil.which(program) is None:
            print(f"left out: {pages[-1].name}: {program} is not installed: tools/setup.sh dev")
            return 0, 0
    with tempfile.TemporaryDirectory(prefix="tour-") as folder:
        scratch = Path(folder)
        here = scratch / "here"
        here.mkdir()
        tour = scratch / "tour.sh"
        tour.write_text(script(found, scratch))
        if any(block.language in COMPILED for block in found):
            install_c(scratch)
        tour_run = subprocess.run(["bash", str(tour)], cwd=here, env=environment(scratch), stdin=subprocess.DEVNULL)
        done = scratch / "done"
        passed = int(done.read_text()) if done.exists() else 0
    code = tour_run.returncode
    if code != 0 and passed < len(found):
        block = found[passed]
        print(f"{block.page}:{block.line}: this {block.language} block failed (exit status {code}):\n{block.code}")
    return passed, int(code != 0)


def main() -> int:
    names = [name for name in sys.argv[1:] if name != "--together"]
    pages = [Path(name) for name in names] or [ROOT / "README.md"]
    outcomes = [execute(session) for session in ([pages] if "--together" in sys.argv else sessions(pages))]
    passed, failed = (sum(numbers) for numbers in zip(*outcomes, strict=True))
    print(f"readme: {passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
