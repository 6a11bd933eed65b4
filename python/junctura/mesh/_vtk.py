"""Meshes as data sets of VTK and PyVista.

Scalars and connectivity are views of the mesh's arrays; coordinates and vectors are copied, because VTK interleaves
components. Steps of a series share points and cells: these are made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from junctura import _forks
from junctura.errors import InvalidArgument
from junctura.mesh._model import Array, MeshBlock, MeshField, MeshPoints, MeshStep

if TYPE_CHECKING:
    import pyvista


# Shapes whose surface has no points of its own.
_SOLIDS = ("tet", "pyramid", "wedge", "hex", "structured")


class _SharedPoints:
    """Points of VTK, which are made when a block needs them."""

    def __init__(self, points: Mapping[str, MeshPoints], make: Callable[[MeshPoints], Any]) -> None:
        self.of = points
        self._make = make
        self._made: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(self.of[name])
        return self._made[name]


class MeshViews:
    """Makes data sets of the meshes of a series.

    Raises
    ------
    ImportError
        Without VTK: ``pip install 'junctura[mesh]'``.

    Examples
    --------
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> views = junctura.mesh.MeshViews()
    >>> first, second = (views.blocks(junctura.mesh.MeshStep(points, blocks, step=step)) for step in range(2))
    >>> first["rod"].GetPoints() is second["rod"].GetPoints()
    True

    """

    def __init__(self) -> None:
        self._core = _forks.needed("vtkmodules.vtkCommonCore", "mesh")
        self._model = _forks.needed("vtkmodules.vtkCommonDataModel", "mesh")
        self._numpy = _forks.needed("vtkmodules.util.numpy_support", "mesh")
        self._mesh: MeshStep | None = None
        self._grids: dict[str, Any] = {}

    def blocks(self, mesh: MeshStep) -> dict[str, Any]:
        """Returns a vtkDataSet for each block, with the fields of the mesh, whose arrays it keeps in memory."""
        if not mesh.shares(self._mesh):
            points = _SharedPoints(mesh.points, self._points)
            self._grids = {name: self._grid(block, points) for name, block in mesh.blocks.items()}
            self._mesh = mesh
        found = {}
        for name, grid in self._grids.items():
            found[name] = grid.NewInstance()
            found[name].CopyStructure(grid)
        for one in mesh.fields:
            for name, block in mesh.blocks.items():
                if one.association == "element" and one.on == name:
                    found[name].GetCellData().AddArray(self._field(one))
                elif one.association == "vertex" and one.on == block.points:
                    found[name].GetPointData().AddArray(self._field(one))
        return found

    def collection(self, mesh: MeshStep) -> Any:
        """Returns a vtkMultiBlockDataSet of all blocks, with their names and the time."""
        found = self._model.vtkMultiBlockDataSet()
        for index, (name, grid) in enumerate(self.blocks(mesh).items()):
            found.SetBlock(index, grid)
            found.GetMetaData(index).Set(self._model.vtkCompositeDataSet.NAME(), name)
        if mesh.time is not None:
            found.GetInformation().Set(self._model.vtkDataObject.DATA_TIME_STEP(), mesh.time)
        return found

    def _points(self, points: MeshPoints) -> Any:
        axes = points.coordinates()
        table = np.zeros((points.count, 3), np.result_type(*axes, np.float32))
        for index, axis in enumerate(axes):
            table[:, index] = axis
        found = self._core.vtkPoints()
        found.SetData(self._numpy.numpy_to_vtk(table))
        return found

    def _grid(self, block: MeshBlock, shared: _SharedPoints) -> Any:
        if block.shape == "structured":
            return self._structured(block, shared)
        grid = self._model.vtkUnstructuredGrid()
        grid.SetPoints(shared.get(block.points))
        kinds = self._numpy.numpy_to_vtk(np.ascontiguousarray(block.of_kinds, np.uint8))
        if block.shape == "polyhedral":
            self._set_polyhedra(grid, block, kinds)
        else:
            grid.SetCells(kinds, self._cells(block.offsets, block.connectivity))
        return grid

    def _structured(self, block: MeshBlock, shared: _SharedPoints) -> Any:
        points = shared.of[block.points]
        extents = [extent + 1 for extent in block.dims] + [1] * (3 - len(block.dims))
        if points.kind == "rectilinear" and list(points.dims) == extents[: len(points.dims)]:
            grid = self._model.vtkRectilinearGrid()
            axes = [*points.axes, *[np.zeros(1)] * (3 - len(points.axes))]
            for name, axis in zip("XYZ", axes, strict=True):
                getattr(grid, f"Set{name}Coordinates")(self._numpy.numpy_to_vtk(np.ascontiguousarray(axis)))
        else:
            grid = self._model.vtkStructuredGrid()
            grid.SetPoints(shared.get(block.points))
        grid.SetDimensions(extents)
        return grid

    def _cells(self, offsets: Array, connectivity: Array) -> Any:
        """Returns cells without a copy of the connectivity, if it has 4 or 8 bytes."""
        kind = np.dtype(np.int32 if connectivity.dtype.itemsize == 4 else np.int64)
        found = self._model.vtkCellArray()
        parts = []
        for array in (offsets, connectivity):
            typed = np.ascontiguousarray(array, kind)
            parts.append(self._numpy.numpy_to_vtk(typed, array_type=self._numpy.get_vtk_array_type(kind)))
        found.SetData(*parts)
        return found

    def _set_polyhedra(self, grid: Any, block: MeshBlock, kinds: Any) -> None:
        assert block.faces is not None
        sizes = block.faces.sizes
        first = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        points_of = [block.faces.connectivity[first[face] : first[face + 1]] for face in range(sizes.size)]
        around = [
            np.unique(np.concatenate([points_of[face] for face in block.connectivity[start:end]]))
            for start, end in zip(block.offsets[:-1], block.offsets[1:], strict=True)
        ]
        offsets = np.cumsum([0, *map(len, around)], dtype=np.int64)
        cells = self._cells(offsets, np.concatenate(around) if around else np.empty(0, np.int64))
        faces = self._cells(first, block.faces.connectivity)
        grid.SetPolyhedralCells(kinds, cells, self._cells(block.offsets, block.connectivity), faces)

    def _field(self, one: MeshField) -> Any:
        parts = list(one.values.values())
        table = parts[0] if len(parts) == 1 else np.stack(parts, axis=1)
        found = self._numpy.numpy_to_vtk(np.ascontiguousarray(table))
        found.SetName(one.name)
        if len(parts) > 1:
            for index, component in enumerate(one.values):
                found.SetComponentName(index, component)
        return found


class MeshSurfaces:
    """Makes what a picture shows of the meshes of a series: the surfaces of solid blocks, and other blocks as they are.

    Steps of a series share surfaces, as `MeshViews` shares cells: a step costs what its surface costs.

    Raises
    ------
    ImportError
        Without VTK: ``pip install 'junctura[mesh]'``.

    """

    def __init__(self) -> None:
        self._views = MeshViews()
        self._numpy = _forks.needed("vtkmodules.util.numpy_support", "mesh")
        self._geometry = _forks.needed("vtkmodules.vtkFiltersGeometry", "mesh")
        self._mesh: MeshStep | None = None
        self._surfaces: dict[str, _Surface] = {}

    def blocks(self, mesh: MeshStep, fields: Iterable[MeshField]) -> dict[str, Any]:
        """Returns a vtkDataSet for each block that has one of the fields, which are scalars."""
        # Of two fields on one block, that of points is shown.
        fields = sorted(fields, key=lambda one: one.association == "vertex")
        if not mesh.shares(self._mesh):
            self._mesh, self._surfaces = mesh, {}
        found = {}
        for name, block in mesh.blocks.items():
            for one in fields:
                if one.on == (name if one.association == "element" else block.points):
                    found[name] = self._block(mesh, name, one)
        return found

    def _block(self, mesh: MeshStep, name: str, field: MeshField) -> Any:
        if mesh.blocks[name].shape not in _SOLIDS or mesh.blocks[name].rank != 3:
            return self._views.blocks(replace(mesh, fields=(field,)))[name]
        if name not in self._surfaces:
            self._surfaces[name] = self._surface(self._views.blocks(replace(mesh, fields=()))[name])
        surface = self._surfaces[name]
        shown = surface.cells.NewInstance()
        shown.CopyStructure(surface.cells)
        is_of_cells = field.association == "element"
        numbers = surface.cell_numbers if is_of_cells else surface.point_numbers
        array = self._numpy.numpy_to_vtk(np.ascontiguousarray(field.values[""])[numbers])
        array.SetName(field.name)
        (shown.GetCellData() if is_of_cells else shown.GetPointData()).AddArray(array)
        return shown

    def _surface(self, grid: Any) -> _Surface:
        extract = self._geometry.vtkGeometryFilter()
        extract.PassThroughPointIdsOn()
        extract.PassThroughCellIdsOn()
        extract.SetInputData(grid)
        extract.Update()
        cells = extract.GetOutput()
        points = cells.GetPointData().GetArray(extract.GetOriginalPointIdsName())
        faces = cells.GetCellData().GetArray(extract.GetOriginalCellIdsName())
        return _Surface(cells, self._numpy.vtk_to_numpy(points), self._numpy.vtk_to_numpy(faces))


class _Surface(NamedTuple):
    cells: Any
    point_numbers: Array
    """Of each point, that of the block."""
    cell_numbers: Array


def to_vtk(mesh: MeshStep) -> Any:
    """Returns a mesh as a vtkMultiBlockDataSet with a data set for each block.

    Raises
    ------
    ImportError
        Without VTK: ``pip install 'junctura[mesh]'``.

    Examples
    --------
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> found = junctura.mesh.to_vtk(junctura.mesh.MeshStep(points, blocks))
    >>> found.GetBlock(0).GetNumberOfCells()
    2

    """
    return MeshViews().collection(mesh)


def to_pyvista(mesh: MeshStep, views: MeshViews | None = None) -> pyvista.MultiBlock:
    """Returns a mesh as a PyVista MultiBlock.

    Parameters
    ----------
    mesh
        The mesh.
    views
        Those of earlier steps of the series, so that points and cells are made once.

    Raises
    ------
    ImportError
        Without PyVista: ``pip install 'junctura[mesh]'``.

    Examples
    --------
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> heat = junctura.mesh.MeshField("heat", "element", "rod", {"": numpy.array([300.0, 310.0])})
    >>> found = junctura.mesh.to_pyvista(junctura.mesh.MeshStep(points, blocks, fields=(heat,)))
    >>> found["rod"].cell_data["heat"].tolist()
    [300.0, 310.0]

    """
    module = _forks.needed("pyvista", "mesh")
    found: pyvista.MultiBlock = module.wrap((views or MeshViews()).collection(mesh))
    return found


def field_names(mesh: MeshStep) -> list[str]:
    """Returns the names of the fields on points and blocks."""
    return list(dict.fromkeys(one.name for one in mesh.fields if one.association != "set"))


def check_field(mesh: MeshStep, name: str) -> None:
    """Raises `InvalidArgument` if the mesh has no such field."""
    known = field_names(mesh)
    if name not in known:
        raise InvalidArgument(f"field {name}", f"step {mesh.step} has {', '.join(known) or 'no fields'}")
