"""Pictures of the wave: blocks of mesh objects as data sets of PyVista, and a view of them."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

# VTK would look for a display first, and warn.
if not os.environ.get("DISPLAY"):
    os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", "vtkEGLRenderWindow")

import pyvista

Tree = dict[str, Any]


def arrays_of(payload: memoryview) -> tuple[Tree, list[np.ndarray[Any, Any]]]:
    """The tree of a payload as it is in the head, and its arrays: docs/formats/mesh.md."""
    (length,) = struct.unpack_from("<Q", payload, 8)
    head = json.loads(bytes(payload[16 : 16 + length]))
    arrays = [np.frombuffer(payload, "<" + entry["type"], entry["count"], entry["offset"]) for entry in head["arrays"]]
    return head["tree"], arrays


def tree_of(payload: memoryview, shared: list[np.ndarray[Any, Any]] | None = None) -> Tree:
    """The tree with its arrays, views of the payload; ``shared`` are those of the object that it refers to."""
    tree, arrays = arrays_of(payload)

    def filled(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("array"), int):
            return (shared or [])[node["array"]] if node.get("of") == "mesh" else arrays[node["array"]]
        return {name: filled(child) for name, child in node.items()}

    found: Tree = filled(tree)
    return found


def block_of(mesh: Tree) -> Any:
    """A block of the solver as a data set."""
    coordset, topology = mesh["coordsets"]["points"], mesh["topologies"]["cells"]
    if topology["type"] == "uniform":
        numbers = [[float(axis[0]) for axis in coordset[name].values()] for name in ("dims", "spacing", "origin")]
        grid = pyvista.ImageData(dimensions=[int(n) for n in numbers[0]], spacing=numbers[1], origin=numbers[2])
    else:
        points = np.stack([coordset["values"][axis] for axis in "xyz"], axis=1)
        if topology["type"] == "structured":
            grid = pyvista.StructuredGrid()
            grid.points = points
            grid.dimensions = [int(n[0]) + 1 for n in topology["elements"]["dims"].values()]
        else:
            corners = topology["elements"]["connectivity"].reshape(-1, 8)
            cells = np.hstack([np.full((len(corners), 1), 8), corners])
            grid = pyvista.UnstructuredGrid(cells.ravel(), np.full(len(corners), pyvista.CellType.HEXAHEDRON), points)
    for name, field in mesh["fields"].items():
        data = grid.point_data if field["association"] == "vertex" else grid.cell_data
        data[name] = field["values"]
    return grid


class WavePicture:
    """Draws steps into files; the window is made once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._plotter = pyvista.Plotter(off_screen=True, window_size=[800, 600])

    def draw(self, step: int, trees: list[Tree]) -> Path:
        """Draws a step: the trees of all ranks."""
        return self.draw_blocks(step, [block_of(mesh) for tree in trees for mesh in tree.values()])

    def draw_blocks(self, step: int, blocks: list[Any]) -> Path:
        """Draws the pressure on the middle plane, and the outlines of the blocks."""
        plotter = self._plotter
        plotter.clear_actors()
        for block in blocks:
            plotter.add_mesh(block.outline(), color="gray")
            cut = block.slice(normal="x", origin=(0.5, 0.5, 0.5))
            if cut.n_cells:
                plotter.add_mesh(cut, scalars="pressure", clim=(-0.3, 0.3), cmap="RdBu_r", show_scalar_bar=False)
        plotter.add_text(f"step {step}", name="step", font_size=10)
        plotter.camera_position = "yz"
        place = self._folder / f"wave-{step:04}.png"
        plotter.screenshot(place)
        return place
