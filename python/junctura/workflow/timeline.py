"""Draws what happened in a run of a workflow: ``python -m junctura.workflow.timeline RUN``.

The page is one file without external resources. It shows when tasks waited and ran, why they started, how they ended,
which objects entered the pool, and the critical path: the chain of tasks and waits that determined the duration of the
run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from junctura._progress import say, status_of, worded
from junctura.errors import Error, Io
from junctura.workflow._record.history import read
from junctura.workflow._timeline.page import page


def timeline(run: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Draws the timeline of a run, which may still be in progress, and returns the path of the file.

    Parameters
    ----------
    run
        The folder of the run, or its record.
    out
        Path of the file, which is replaced if it exists; default: ``timeline.html`` beside the record.

    Raises
    ------
    junctura.errors.NotFound, junctura.errors.Corrupt, junctura.errors.Unsupported, junctura.errors.LimitExceeded
        The record does not exist or is invalid.
    junctura.errors.Io
        The record cannot be read, or the file cannot be written.

    """
    folder = Path(run)
    text = page(read(run))
    path = Path(out) if out is not None else (folder if folder.is_dir() else folder.parent) / "timeline.html"
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise Io(str(path), getattr(error, "strerror", None) or str(error)) from error
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser("junctura timeline", description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN", help="the folder of a run")
    parser.add_argument("--out", metavar="FILE", help="where the page goes (RUN/timeline.html); - is standard output")
    given = parser.parse_args(arguments)
    try:
        if given.out == "-":
            sys.stdout.buffer.write(page(read(given.run)).encode())
            return 0
        say(str(timeline(given.run, given.out)), sys.stdout)
    except Error as error:
        say(f"junctura: {worded(error)}", sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(status_of(main))
