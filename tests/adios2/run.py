"""Runs the tests of the engine plugin of ADIOS2: programs that know nothing of Junctura write and read streams.

ADIOS2 comes from PyPI into an environment of its own in ``.tools/adios2``; where it cannot be had, or CMake is missing,
these tests are left out. ``run.py ARGUMENT...`` hands the arguments to pytest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".tools/adios2"
WANTED = ROOT / "python/requirements-adios2.txt"
LOG = ROOT / ".tools/adios2.log"


def install() -> bool:
    """Makes the environment, unless it is there; says whether it is there now."""
    stamp, wanted = HOME / "stamp", hashlib.sha256(WANTED.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    print(f"ADIOS2 ({WANTED.relative_to(ROOT)})", flush=True)
    HOME.parent.mkdir(exist_ok=True)
    venv = [sys.executable, "-m", "venv", "--clear", str(HOME)]
    pip = [str(HOME / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir"]
    with LOG.open("w") as log:
        for command in (venv, [*pip, "--only-binary", ":all:", "-r", str(WANTED)]):
            if subprocess.run(command, stdout=log, stderr=log, check=False).returncode != 0:
                return False
    stamp.write_text(wanted)
    return True


def main(arguments: list[str]) -> int:
    if shutil.which("cmake") is None:
        print("left out: cmake is not installed: tools/setup.sh dev")
        return 0
    if not install():
        print(f"left out: ADIOS2 cannot be had here (see {LOG.relative_to(ROOT)})")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "tests/adios2", *arguments]
    environment = {**os.environ, "JUNCTURA_TEST_ADIOS2": str(HOME)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
