"""Where a run is kept: ``runs/NAME/STAMP``, and the link ``latest`` beside it."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

from junctura.errors import Io

_LATEST = "latest"


def fresh(name: str, under: Path = Path("runs")) -> Path:
    """Makes the folder for a new run of a workflow, and has the link lead there.

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
                _lead_to(folder)
                return folder
    except OSError as error:
        raise Io(str(under / name), f"a run cannot be kept there: {error.strerror}") from error
    raise AssertionError("counting has no end")


def _lead_to(folder: Path) -> None:
    # Put in its place in one step: whoever looks there finds a run.
    link = folder.parent / f".{_LATEST}-{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        link.unlink()
    link.symlink_to(folder.name)
    link.replace(folder.parent / _LATEST)
