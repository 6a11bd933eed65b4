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
    """Makes the folder for a new run of a workflow.

    Raises
    ------
    Io
        It cannot be made.

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
    """Has the link lead to a run that has begun; one that cannot be made is missing, and the run goes on."""
    # Put in its place in one step: whoever looks there finds a run.
    link = folder.parent / f".{_LATEST}-{os.getpid()}"
    with contextlib.suppress(OSError):
        link.unlink(missing_ok=True)
        link.symlink_to(folder.name)
        link.replace(folder.parent / _LATEST)


def drop(folder: Path) -> None:
    """Takes away the folder of a run that never began, and those around it, as far as nothing lies in them."""
    with contextlib.suppress(OSError):
        for one in (folder / "logs", folder, folder.parent, folder.parent.parent):
            if one.exists():
                one.rmdir()
