"""MIR called as its own interface is, on whole messages: the judge of what Junctura makes of its matrices."""

from __future__ import annotations

import io
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np


def scalar(message: bytes, options: dict[str, Any]) -> Any:
    import mir

    made = mir.ArrayOutput()
    mir.Job(**options).execute(mir.PyGribInput(io.BytesIO(message)), made)
    return np.array(made.values()).ravel()


def wind(messages: list[bytes], options: dict[str, Any]) -> Any:
    """U and then v of vorticity and divergence."""
    import eccodes
    import mir

    file = os.memfd_create("vod")
    os.write(file, b"".join(messages))
    made = io.BytesIO()
    given = mir.MultiDimensionalGribFileInput(f"/proc/self/fd/{file}", 2)
    mir.Job(vod2uv="true", **options).execute(given, mir.PyGribOutput(made))
    whole, values = made.getvalue(), []
    while whole:
        length = int.from_bytes(whole[8:16], "big")
        handle = eccodes.codes_new_from_message(whole[:length])
        values.append(eccodes.codes_get_values(handle))
        eccodes.codes_release(handle)
        whole = whole[length:]
    return np.array(values)


def main() -> None:
    folder = Path(sys.argv[1])
    jobs = pickle.loads((folder / "jobs.pickle").read_bytes())
    made = {}
    for number, (messages, options) in enumerate(jobs):
        made[f"made{number}"] = scalar(messages[0], options) if len(messages) == 1 else wind(messages, options)
    np.savez(folder / "made.npz", **made)


if __name__ == "__main__":
    main()
