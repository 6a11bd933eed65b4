"""Runs the tests that need FDB: what it wrote is listed, imported and compared.

FDB comes from PyPI, as its makers pack it, into an environment of its own in ``.tools/fdb``; where it cannot be had
these tests are left out. ``run.py ARGUMENT...`` hands the arguments to pytest.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".tools/fdb"
WANTED = ROOT / "python/requirements-fdb.txt"
LOG = ROOT / ".tools/fdb.log"


def install() -> bool:
    """Makes the environment, unless it is there; says whether it is there now."""
    stamp, wanted = HOME / "stamp", hashlib.sha256(WANTED.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    print(f"FDB ({WANTED.relative_to(ROOT)})", flush=True)
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
    if not install():
        print(f"left out: FDB cannot be had here (see {LOG.relative_to(ROOT)})")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "tests/fdb", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "JUNCTURA_TEST_FDB": str(HOME)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
