"""A hint for the name of a file that does not exist."""

from __future__ import annotations

import difflib
import itertools
import os
from pathlib import Path

_NAMES_MAX = 4096
# Comparing two names takes the product of their lengths: so many in all are a tenth of a second.
_WORK_MAX = 1 << 20


def near_file(path: str | os.PathLike[str]) -> str:
    """Returns a hint for a file that does not exist: the most similar name in its folder. Empty if there is none."""
    missing = Path(path)
    try:
        names, work = [], 0
        for found in itertools.islice(missing.parent.iterdir(), _NAMES_MAX):
            work += len(found.name) * len(missing.name)
            if work > _WORK_MAX:
                break
            names.append(found.name)
    except OSError:
        return ""
    close = difflib.get_close_matches(missing.name, names, n=1, cutoff=0.75)
    return f"; did you mean {missing.with_name(close[0])}?" if close else ""
