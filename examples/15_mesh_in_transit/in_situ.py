"""Draws each step in the process of the simulation: WAVE_SCRIPT=in_situ.py, pictures into WAVE_OUT."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["WAVE_SCRIPT"]).resolve().parent))

from wave_picture import WavePicture, tree_of

OUT = Path(os.environ.get("WAVE_OUT", "pictures"))
PICTURES: list[WavePicture] = []


def execute(payload: memoryview, step: int, rank: int) -> None:
    if not PICTURES:
        # Each rank draws what it has: to put pictures of several together is not done here.
        PICTURES.append(WavePicture(OUT if rank == 0 else OUT / f"rank-{rank}"))
    # The mesh is that of the first step.
    PICTURES[0].draw(step, [(rank, tree_of(payload))])


def finalize() -> None:
    pass
