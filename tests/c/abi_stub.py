"""The types of all functions of the header, as libabigail describes them: this program writes ``c/abi/functions.xml``.

The library has line tables only, so a library of empty functions, compiled from the header, takes its place.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "c/include/junctura.h"
DESCRIPTION = ROOT / "c/abi/functions.xml"


def stub(folder: Path) -> Path:
    """Compiles the library of empty functions."""
    declarations = re.findall(r"^((?:const )?\w+ \**jct_\w+\([^;]*\));", HEADER.read_text(), re.M)
    bodies = "".join(f"{declaration} {{ __builtin_trap(); }}\n" for declaration in declarations)
    (folder / "stub.c").write_text(f"#include <junctura.h>\n{bodies}")
    words: list[str | Path] = ["gcc", "-g", "-shared", "-fPIC", "-I", HEADER.parent, "stub.c", "-o", "stub.so"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "stub.so"


def describe(library: Path, description: Path) -> None:
    """Writes the description of a library."""
    options = ["--no-comp-dir-path", "--no-corpus-path", "--no-show-locs"]
    subprocess.run(["abidw", *options, library, "--out-file", description], check=True)


def differences(library: Path, description: Path) -> str:
    """Compares a library with a description; empty where functions and types are the same."""
    done = subprocess.run(["abidiff", description, library], capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}" if done.returncode else ""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        describe(stub(Path(place)), DESCRIPTION)
        sys.stdout.write(f"{DESCRIPTION}\n")
