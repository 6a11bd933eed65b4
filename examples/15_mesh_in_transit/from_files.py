"""Draws the steps that are in files of ``to_files.py``: ``from_files.py files --out pictures``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pyvista
from wave_picture import CutBlock, WavePicture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path)
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    options = parser.parse_args()
    picture = WavePicture(options.out)
    steps: dict[int, list[Path]] = {}
    for file in sorted(options.files.glob("*.vtm")):
        steps.setdefault(int(file.name.split("-")[1]), []).append(file)
    for step, files in steps.items():
        parts: list[Any] = [pyvista.read(file) for file in files]
        blocks = [block for part in parts for block in part]
        picture.draw_blocks(step, [(CutBlock(block), block.point_data["pressure"]) for block in blocks])
        print(f"step {step}", flush=True)


if __name__ == "__main__":
    main()
