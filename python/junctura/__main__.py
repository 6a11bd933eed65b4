"""The command `junctura`: ``python -m junctura``, and the script that pip installs."""

from __future__ import annotations

import signal
import sys

from junctura import _native


def main() -> int:
    """Runs the command; returns the exit status."""
    # The command handles Ctrl-C itself, unless it was started with the signal ignored.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native._command(["junctura", *sys.argv[1:]], [sys.executable, "-m", "junctura"])


if __name__ == "__main__":
    sys.exit(main())
