"""Pictures of the wave: blocks of mesh objects as data sets of PyVista, and a view of them.

The mesh does not change, and neither does the plane that is drawn. So the cells that it cuts are found once, and a step
costs what they cost: a program that draws beside a simulation shares caches and memory with it.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

# VTK would look for a display first, and warn.
if not os.environ.get("DISPLAY"):
    os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", "vtkEGLRenderWindow")

import pyvista
from vtkmodules.vtkCommonDataModel import vtkPlane
from vtkmodules.vtkFiltersExtraction import vtkExtractGeometry

MIDDLE = (0.5, 0.5, 0.5)

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
    """A block of the solver as a data set, without its fields."""
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
    return grid


class CutBlock:
    """The part of a block that is drawn: the outline, and the cells that the middle plane cuts."""

    def __init__(self, block: Any) -> None:
        block.point_data["number"] = np.arange(block.n_points)
        plane = vtkPlane()
        plane.SetOrigin(*MIDDLE)
        plane.SetNormal(1, 0, 0)
        extract = vtkExtractGeometry()
        extract.SetImplicitFunction(plane)
        extract.ExtractBoundaryCellsOn()
        extract.ExtractOnlyBoundaryCellsOn()
        extract.SetInputData(block)
        extract.Update()
        self._cells: Any = pyvista.wrap(extract.GetOutput())
        self._numbers = np.asarray(self._cells.point_data["number"])
        self.outline = block.outline()

    def at(self, pressure: np.ndarray[Any, Any]) -> Any:
        """The pressure on the plane; ``pressure`` is that of all points of the block."""
        self._cells.point_data["pressure"] = pressure[self._numbers]
        return self._cells.slice(normal="x", origin=MIDDLE)


class WavePicture:
    """Draws steps into files; the window and what is in it are made once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._plotter = pyvista.Plotter(off_screen=True, window_size=[800, 600])
        self._known: dict[Hashable, CutBlock] = {}
        self._mappers: list[Any] = []

    def draw(self, step: int, parts: Iterable[tuple[Hashable, Tree]]) -> Path:
        """Draws a step: the tree of each rank, with an identifier of its mesh."""
        blocks = []
        for identifier, tree in parts:
            for name, mesh in (tree or {}).items():
                if (identifier, name) not in self._known:
                    self._known[identifier, name] = CutBlock(block_of(mesh))
                blocks.append((self._known[identifier, name], mesh["fields"]["pressure"]["values"]))
        return self.draw_blocks(step, blocks)

    def draw_blocks(self, step: int, blocks: list[tuple[CutBlock, np.ndarray[Any, Any]]]) -> Path:
        """Draws the pressure on the middle plane, and the outlines of the blocks."""
        plotter = self._plotter
        cuts = [block.at(pressure) for block, pressure in blocks]
        # PyVista would draw after each call.
        plotter.suppress_rendering = True
        if len(cuts) != len(self._mappers):
            plotter.clear_actors()
            for block, _ in blocks:
                plotter.add_mesh(block.outline, color="gray")
            colors: dict[str, Any] = {"clim": (-0.3, 0.3), "cmap": "RdBu_r", "show_scalar_bar": False}
            self._mappers = [plotter.add_mesh(cut, scalars="pressure", **colors).mapper for cut in cuts]
            plotter.camera_position = "yz"
        for mapper, cut in zip(self._mappers, cuts, strict=True):
            mapper.dataset = cut
        plotter.add_text(f"step {step}", name="step", font_size=10)
        plotter.suppress_rendering = False
        plotter.render()
        place = self._folder / f"wave-{step:04}.png"
        plotter.screenshot(place)
        return place
