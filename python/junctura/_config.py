"""``junctura config``: where the C library, the headers, the Fortran module and the CMake package of a wheel are.

The words are arguments of a compiler: ``gcc hello.c $(junctura config --cflags --libs)``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from junctura._progress import say, status_of

# The wheel's own files, in the folders of an installed library.
PREFIX = Path(__file__).resolve().parent / "_c"
_LIBRARY = "libjunctura.so.0"


def _words(prefix: Path) -> dict[str, list[str]]:
    """Returns what each option prints."""
    libraries = prefix / "lib"
    return {
        "prefix": [str(prefix)],
        "cflags": [f"-I{prefix / 'include'}"],
        "fortran": [str(prefix / "share/junctura/junctura.f90")],
        "libs": [f"-L{libraries}", f"-Wl,-rpath,{libraries}", f"-l:{_LIBRARY}"],
        "cmake": [str(libraries / "cmake/Junctura")],
        "pkgconfig": [str(libraries / "pkgconfig")],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="junctura config", description=(__doc__ or "").splitlines()[0])
    words = _words(PREFIX)
    for option in words:
        parser.add_argument(f"--{option}", action="append_const", dest="options", const=option)
    options = parser.parse_args(arguments).options
    if not options:
        parser.error(f"one of --{', --'.join(words)} is needed")
    if not (PREFIX / "lib" / _LIBRARY).exists():
        cause = "this package has no C library: a wheel has it, or `make install-c PREFIX=...` installs it"
        say(f"junctura: NotFound: {PREFIX}: {cause}", sys.stderr)
        return 3
    say(" ".join(shlex.quote(word) for option in options for word in words[option]), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(status_of(main))
