"""Python environments of their own for suites that need packages which are not installed for development."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".tools"


def install(name: str, title: str) -> Path | None:
    """Makes the environment ``.tools/NAME`` with the packages of ``python/requirements-NAME.txt``, unless it is there.

    Returns
    -------
        The environment; None if the packages cannot be had here, and a line that states it is printed.

    """
    home, log = TOOLS / name, TOOLS / f"{name}.log"
    packages = ROOT / f"python/requirements-{name}.txt"
    stamp, wanted = home / "stamp", hashlib.sha256(packages.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return home
    print(f"{title} ({packages.relative_to(ROOT)})", flush=True)
    TOOLS.mkdir(exist_ok=True)
    venv = [sys.executable, "-m", "venv", "--clear", str(home)]
    pip = [str(home / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir"]
    with log.open("w") as output:
        for command in (venv, [*pip, "--only-binary", ":all:", "-r", str(packages)]):
            if subprocess.run(command, stdout=output, stderr=output, check=False).returncode != 0:
                print(f"left out: {title} cannot be had here (see {log.relative_to(ROOT)})")
                return None
    stamp.write_text(wanted)
    return home
