"""Runs the tests of the engine plugin of ADIOS2: programs that know nothing of Junctura write and read streams.

ADIOS2 comes from PyPI into an environment of its own in ``.tools/adios2``; where it cannot be had, or CMake is missing,
these tests are left out. ``run.py ARGUMENT...`` hands the arguments to pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tool_environment import ROOT, install


def main(arguments: list[str]) -> int:
    if shutil.which("cmake") is None:
        print("left out: cmake is not installed: tools/setup.sh dev")
        return 0
    home = install("adios2", "ADIOS2")
    if home is None:
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "tests/adios2", *arguments]
    environment = {**os.environ, "JUNCTURA_TEST_ADIOS2": str(home)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
