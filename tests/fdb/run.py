"""Runs the tests that need FDB: what it wrote is listed, imported and compared.

FDB comes from PyPI, as its makers pack it, into an environment of its own in ``.tools/fdb``; where it cannot be had
these tests are left out. ``run.py ARGUMENT...`` hands the arguments to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tool_environment import ROOT, install


def main(arguments: list[str]) -> int:
    home = install("fdb", "FDB")
    if home is None:
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "tests/fdb", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "JUNCTURA_TEST_FDB": str(home)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
