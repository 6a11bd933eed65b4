"""Writes each step into files of VTK, in the process of the simulation: WAVE_SCRIPT=to_files.py, into WAVE_OUT."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(os.environ["WAVE_SCRIPT"]).resolve().parent))

import pyvista
from vtkmodules.vtkIOXML import vtkXMLMultiBlockDataWriter
from wave_picture import Tree, block_of, tree_of

OUT = Path(os.environ.get("WAVE_OUT", "files"))


def with_fields(block: Any, mesh: Tree) -> Any:
    for name, field in mesh["fields"].items():
        data = block.point_data if field["association"] == "vertex" else block.cell_data
        data[name] = field["values"]
    return block


def execute(payload: memoryview, step: int, rank: int) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    blocks = pyvista.MultiBlock({name: with_fields(block_of(mesh), mesh) for name, mesh in tree_of(payload).items()})
    # Without compression: the fastest that these files can be.
    writer = vtkXMLMultiBlockDataWriter()
    writer.SetFileName(str(OUT / f"wave-{step:04}-{rank:03}.vtm"))
    writer.SetCompressorTypeToNone()
    writer.EncodeAppendedDataOff()
    writer.SetInputData(blocks)
    writer.Write()


def finalize() -> None:
    pass
