"""The folder of a run, ``runs/NAME/STAMP``, and beside it the link ``latest`` to the newest run."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

from junctura.errors import Io

_LATEST = "latest"


def fresh(name: str, under: Path = Path("runs")) -> Path:
    """Creates the folder for a new run of a workflow.

    Raises
    ------
    Io
        The folder cannot be created.

    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    try:
        for count in itertools.count(1):
            folder = under / name / (stamp if count == 1 else f"{stamp}-{count}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir(parents=True)
                return folder
    except OSError as error:
        raise Io(str(under / name), f"a run cannot be kept there: {error.strerror}") from error
    raise AssertionError("counting has no end")


def lead_to(folder: Path) -> None:
    """Points the link at a run that has begun; failure to create the link does not stop the run."""
    # Replaced atomically: the link always points at a run.
    link = folder.parent / f".{_LATEST}-{os.getpid()}"
    with contextlib.suppress(OSError):
        link.unlink(missing_ok=True)
        link.symlink_to(folder.name)
        link.replace(folder.parent / _LATEST)


def drop(folder: Path) -> None:
    """Removes the folder of a run that never began, and its parents, if they are empty."""
    with contextlib.suppress(OSError):
        for one in (folder / "logs", folder, folder.parent, folder.parent.parent):
            if one.exists():
                one.rmdir()
