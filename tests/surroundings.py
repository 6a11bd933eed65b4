"""Runs suites in the surroundings that users and machines have: ``surroundings.py [SUITE...]`` (default: a short
selection, for CI).

A job may be started with hang-up and quit ignored (nohup, cron), with umask 077, a home that cannot be written, a
temporary folder whose name has a space, and LANG=C. All of these hold at once here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from run import environment, limited
from suites import PYTEST, ROOT, SUITES, Suite

# Tests that start processes, send signals, and make files and sockets.
SHORT = Suite(
    "short",
    [
        *PYTEST,
        "tests/e2e/test_stop.py",
        "tests/e2e/test_put.py",
        "tests/python/test_interrupt.py",
        "tests/workflow/test_run_trouble.py",
    ],
)


def inherit() -> None:
    """What a job inherits, before it is started."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o077)


def run(suite: Suite, folder: Path) -> int:
    home, temporary = folder / "home", folder / "with a space"
    home.mkdir(exist_ok=True)
    temporary.mkdir(exist_ok=True)
    home.chmod(0o555)
    here = {"HOME": str(home), "TMPDIR": str(temporary), "LANG": "C", "LC_ALL": "C"}
    # Rust and cargo of the user stay where they are.
    for name, place in {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"}.items():
        here[name] = os.environ.get(name, str(Path.home() / place))
    print(f"surroundings: {suite.name}", flush=True)
    ended = subprocess.run(
        limited(suite), cwd=ROOT, env={**environment(), **suite.environment, **here}, preexec_fn=inherit, check=False
    )
    return ended.returncode


def main() -> int:
    named = [suite for suite in SUITES if suite.name in sys.argv[1:]]
    with tempfile.TemporaryDirectory(prefix="junctura-") as folder:
        return max(run(suite, Path(folder)) for suite in named or [SHORT])


if __name__ == "__main__":
    sys.exit(main())
