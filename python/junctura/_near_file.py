"""A hint for the name of a file that does not exist."""

from __future__ import annotations

import difflib
import itertools
import os
from pathlib import Path

_NAMES_MAX = 4096


def near_file(path: str | os.PathLike[str]) -> str:
    """Returns a hint for a file that does not exist: the most similar name in its folder. Empty if there is none."""
    missing = Path(path)
    try:
        names = [found.name for found in itertools.islice(missing.parent.iterdir(), _NAMES_MAX)]
    except OSError:
        return ""
    close = difflib.get_close_matches(missing.name, names, n=1, cutoff=0.75)
    return f"; did you mean {missing.with_name(close[0])}?" if close else ""
