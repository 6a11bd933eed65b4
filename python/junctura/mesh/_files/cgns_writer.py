"""Writes CGNS files (HDF5, version 4.2).

Each set of points becomes a zone: structured if its only block is, else unstructured with a section for each block.
Sets of points and sides become boundary conditions, sides with sections of their own that name the parents. Names
beyond 32 bytes, numbers, constants of elements, and values on sets and on blocks of fewer dimensions are kept in a
UserDefinedData_t node. The file appears complete, when it is closed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from junctura import _forks
from junctura.errors import Unsupported
from junctura.mesh._compare import same_static
from junctura.mesh._files.cgns_elements import side_points
from junctura.mesh._files.cgns_nodes import (
    CONDITIONS,
    MIXED,
    NFACE,
    NGON,
    OWN,
    OWN_FIELDS,
    OWN_NAMES,
    USER_DEFINED,
    NodeNames,
    NodeWriter,
    faces_of,
)
from junctura.mesh._files.writing import FileMeshWriter
from junctura.mesh._model import Array, MeshBlock, MeshPoints, MeshSet, MeshStep
from junctura.mesh._shapes import BY_VTK, SHAPES, to_file

_BASE = "Base"
# Shapes of sides, by their dimensions and number of points.
_SIDES = {(shape.rank, shape.points): shape for shape in SHAPES.values() if shape.rank <= 2}


class CgnsWriter(FileMeshWriter):
    """Writes the steps of a series into a CGNS file.

    Parameters
    ----------
    path
        The file; an existing one is replaced by `close`.

    Attributes
    ----------
    left_out
        Parts of the mesh that CGNS cannot express; the file lacks them.

    Raises
    ------
    ImportError
        Without h5py: ``pip install 'junctura[mesh]'``.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._h5py = _forks.needed("h5py", "mesh")
        self._zones: dict[str, _ZoneWriter] = {}
        self._steps: list[tuple[int, float | None]] = []
        self._globals: dict[str, list[Any]] = {}
        self.left_out: dict[str, None] = {}

    def write(self, mesh: MeshStep) -> None:
        """Writes one step; the first one with points, blocks and sets.

        Raises
        ------
        Unsupported
            The elements or sets are not those of the first step.

        """
        if self._first is None:
            self._begin(mesh)
        elif not mesh.shares(self._first) and not _is_moved(mesh, self._first):
            cause = f"the mesh changes at step {mesh.step}; only fields and coordinates can change"
            raise Unsupported(str(self._path), cause)
        index = len(self._steps)
        for name, zone in self._zones.items():
            zone.write_coordinates(mesh.points[name], index)
            zone.write_fields(mesh, name, index)
        for name, values in mesh.globals.items():
            self._globals.setdefault(name, []).append(values.ravel()[0])
        if mesh.time is not None or mesh.fields or mesh.globals:
            self._steps.append((mesh.step, mesh.time))

    def _complete(self) -> None:
        if self._steps:
            self._write_steps()

    def _begin(self, mesh: MeshStep) -> None:
        mesh.check()
        self._file = self._h5py.File(self._partial, "w", track_order=True, libver=("earliest", "v110"))
        self._first = mesh
        self._nodes = NodeWriter(self._file)
        rank = max((block.rank for block in mesh.blocks.values()), default=0)
        dimensions = max((len(points.axes) for points in mesh.points.values()), default=3)
        rank = max(1, min(rank, dimensions))
        self._base = self._nodes.node(self._file, _BASE, "CGNSBase_t", np.array([rank, dimensions], np.int32))
        if mesh.title:
            self._nodes.node(self._base, "Title", "Descriptor_t", mesh.title)
        names = NodeNames()
        names.short("Title")
        names.short("BaseIterativeData")
        for name in mesh.points:
            self._zones[name] = _ZoneWriter(self._nodes, self._base, names.short(name), name, mesh, rank, self.left_out)

    def _write_steps(self) -> None:
        count = len(self._steps)
        data = self._nodes.node(self._base, "BaseIterativeData", "BaseIterativeData_t", np.array([count], np.int32))
        if all(time is not None for _, time in self._steps):
            self._nodes.node(data, "TimeValues", "DataArray_t", np.array([time for _, time in self._steps], float))
        numbers = np.array([step for step, _ in self._steps], np.int64)
        if numbers.max() < 1 << 31:
            numbers = numbers.astype(np.int32)
        self._nodes.node(data, "IterationValues", "DataArray_t", numbers)
        self._nodes.node(self._base, "SimulationType", "SimulationType_t", "TimeAccurate")
        short_names, own = NodeNames(), {}
        for taken in ("TimeValues", "IterationValues", OWN):
            short_names.short(taken)
        for name, values in self._globals.items():
            if len(values) != count:
                self.left_out[f"global {name}"] = None
                continue
            short = short_names.short(name)
            self._nodes.node(data, short, "DataArray_t", np.array(values))
            if short != name:
                own[short] = name
        if own:
            self._nodes.node(data, OWN, "Descriptor_t", json.dumps(own))
        for zone in self._zones.values():
            zone.write_pointers()


class _ZoneWriter:
    """Writes a zone."""

    def __init__(
        self,
        nodes: NodeWriter,
        base: Any,
        node_name: str,
        points_name: str,
        mesh: MeshStep,
        rank: int,
        left_out: dict[str, None],
    ) -> None:
        self._nodes = nodes
        self._mesh = mesh
        self._rank = rank
        self._name = points_name
        self._left_out = left_out
        points = mesh.points[points_name]
        self._points = points
        self._grids: list[str] = []
        self._own: dict[str, Any] = {} if node_name == points_name else {"points": points_name}
        self._solutions: dict[str, list[str]] = {"Vertex": [], "CellCenter": []}
        self._arrays: dict[str, Array] = {}
        self._own_data: Any = None
        self._absent_sets: set[str] = set()
        blocks = mesh.blocks_on(points_name)
        alone = next(iter(blocks.values())) if len(blocks) == 1 else None
        self._is_structured = alone is not None and alone.shape == "structured" and alone.rank == rank
        # Points along each axis of the data, which has the first axis last.
        self._shape: tuple[int, ...] = (points.count,)
        if self._is_structured and alone is not None:
            self._shape = tuple(extent + 1 for extent in alone.dims[::-1])
        self._blocks = {name: block if self._is_structured else block.unstructured() for name, block in blocks.items()}
        self._begin(base, node_name, points)

    def _begin(self, base: Any, node_name: str, points: MeshPoints) -> None:
        cells = sum(block.count for block in self._blocks.values() if block.rank == self._rank)
        sizes = [[points.count], [cells], [0]]
        if self._is_structured:
            extents = self._shape[::-1]
            sizes = [list(extents), [extent - 1 for extent in extents], [0] * len(extents)]
        integer = np.int32 if points.count < 1 << 31 and cells < 1 << 31 else np.int64
        self._zone = self._nodes.node(base, node_name, "Zone_t", np.array(sizes, integer))
        kind = "Structured" if self._is_structured else "Unstructured"
        self._nodes.node(self._zone, "ZoneType", "ZoneType_t", kind)
        self._write_grid("GridCoordinates", points)
        self._elements = 0
        names = NodeNames()
        for taken in ("ZoneType", "GridCoordinates", "ZoneBC", "ZoneIterativeData", OWN):
            names.short(taken)
        if self._is_structured:
            self._keep_block(node_name, next(iter(self._blocks)))
        else:
            for name, block in self._blocks.items():
                self._write_section(names.short(name), name, block)
            self._write_faces(names)
        self._names = names
        self._write_sets()
        self._write_own(points)

    def _keep_block(self, section: str, name: str) -> None:
        block = self._blocks[name]
        if section != name:
            self._own.setdefault("blocks", {})[section] = name
        if block.number is not None:
            self._own.setdefault("numbers", {})[section] = block.number
        if block.label:
            self._own.setdefault("labels", {})[section] = block.label
        for attribute, values in block.attributes.items():
            known = self._own.setdefault("attributes", {}).setdefault(section, {})
            known[attribute] = self._keep(values)

    def _keep(self, values: Array) -> str:
        name = f"Array{len(self._arrays) + 1}"
        self._arrays[name] = values
        return name

    def _section(self, name: str, kind: int, count: int, entries: Array, offsets: Array | None) -> Any:
        """Creates a section with the next numbers of elements."""
        integer = (
            np.int32 if max(entries.size, self._elements + count, int(entries.max(initial=0))) < 1 << 31 else np.int64
        )
        node = self._nodes.node(self._zone, name, "Elements_t", np.array([kind, 0], np.int32))
        numbers = np.array([self._elements + 1, self._elements + count], integer)
        self._nodes.node(node, "ElementRange", "IndexRange_t", numbers)
        if offsets is not None:
            self._nodes.node(node, "ElementStartOffset", "DataArray_t", offsets.astype(integer))
        self._nodes.node(node, "ElementConnectivity", "DataArray_t", entries.astype(integer))
        self._elements += count
        return node

    def _write_section(self, section: str, name: str, block: MeshBlock) -> None:
        self._keep_block(section, name)
        if block.shape in SHAPES:
            shape = SHAPES[block.shape]
            rows = to_file(block.connectivity.reshape(-1, shape.points), shape.cgns_order) + 1
            self._section(section, shape.cgns, block.count, rows.ravel(), None)
        elif block.shape == "mixed":
            self._section(section, MIXED, block.count, *_mixed(block))
        elif block.shape == "polygonal":
            self._section(section, NGON, block.count, block.connectivity + 1, block.offsets)
        else:
            # Faces get their numbers behind all blocks.
            start = sum(one.count for one in self._blocks.values()) + self._first_faces()[id(block.faces)]
            faces = block.connectivity + 1 + start
            again = np.ones(faces.size, np.int64)
            _, first = np.unique(faces, return_index=True)
            again[:] = -1
            again[first] = 1
            self._section(section, NFACE, block.count, faces * again, block.offsets)

    def _first_faces(self) -> dict[int, int]:
        """Returns the place of the first face of each collection of faces."""
        found: dict[int, int] = {}
        count = 0
        for block in self._blocks.values():
            if block.faces is not None and id(block.faces) not in found:
                found[id(block.faces)] = count
                count += block.faces.sizes.size
        return found

    def _write_faces(self, names: NodeNames) -> None:
        written = set()
        for name, block in self._blocks.items():
            if block.faces is not None and id(block.faces) not in written:
                written.add(id(block.faces))
                offsets = np.concatenate([[0], np.cumsum(block.faces.sizes, dtype=np.int64)])
                faces = block.faces
                self._section(names.short(f"Faces {name}"), NGON, faces.sizes.size, faces.connectivity + 1, offsets)

    def _write_sets(self) -> None:
        sets = {name: one for name, one in self._mesh.sets.items() if one.points == self._name}
        conditions = None
        for name, one in sets.items():
            short = self._names.short(name)
            if one.association == "element" or (one.association == "vertex" and not one.kind):
                # IOSS takes no boundary conditions that are lists of points.
                self._write_region(short, one)
            else:
                if conditions is None:
                    conditions = self._nodes.node(self._zone, "ZoneBC", "ZoneBC_t")
                if not self._write_condition(conditions, short, name, one):
                    self._absent_sets.add(name)
                    continue
            self._keep_set(short, name, one)

    def _keep_set(self, short: str, name: str, one: MeshSet) -> None:
        if short != name:
            self._own.setdefault("sets", {})[short] = name
        if one.number is not None:
            self._own.setdefault("set_numbers", {})[short] = one.number
        if one.kind and one.kind not in CONDITIONS:
            self._own.setdefault("kinds", {})[short] = one.kind
        if one.factors is not None:
            self._own.setdefault("factors", {})[short] = self._keep(one.factors)

    def _write_region(self, short: str, one: MeshSet) -> None:
        node = self._nodes.node(self._zone, short, "ZoneSubRegion_t", np.array([self._rank], np.int32))
        if one.association == "vertex":
            self._nodes.node(node, "GridLocation", "GridLocation_t", "Vertex")
            self._write_indices(node, one.indices, self._shape)
        else:
            self._nodes.node(node, "GridLocation", "GridLocation_t", "CellCenter")
            shape = tuple(extent - 1 for extent in self._shape) if self._is_structured else self._shape
            self._write_indices(node, one.indices, shape)

    def _write_condition(self, conditions: Any, short: str, name: str, one: MeshSet) -> bool:
        if one.association == "vertex":
            node = self._nodes.node(conditions, short, "BC_t", one.kind if one.kind in CONDITIONS else USER_DEFINED)
            self._write_indices(node, one.indices, self._shape)
            self._nodes.node(node, "GridLocation", "GridLocation_t", "Vertex")
            return True
        if self._is_structured or not self._can_have_sides(one):
            self._left_out[f"set {name}"] = None
            return False
        node = self._nodes.node(conditions, short, "BC_t", one.kind if one.kind in CONDITIONS else USER_DEFINED)
        first = self._elements + 1
        if one.indices.size:
            self._write_sides(self._names.short(f"Sides {name}"), one)
            self._nodes.node(node, "PointRange", "IndexRange_t", np.array([[first], [self._elements]], np.int32))
        else:
            self._nodes.node(node, "PointList", "IndexArray_t", np.empty((0, 1), np.int32))
        location = "FaceCenter" if self._rank == 3 else "EdgeCenter"
        self._nodes.node(node, "GridLocation", "GridLocation_t", location)
        return True

    def _write_indices(self, node: Any, indices: Array, shape: tuple[int, ...]) -> None:
        if self._is_structured:
            axes = np.stack(np.unravel_index(indices, shape)[::-1], axis=1) + 1
            low, high = (axes.min(axis=0), axes.max(axis=0)) if indices.size else (axes, axes)
            if indices.size and (high - low + 1).prod() == indices.size and _is_box(axes, low, high):
                self._nodes.node(node, "PointRange", "IndexRange_t", np.stack([low, high]).astype(np.int32))
                return
            self._nodes.node(node, "PointList", "IndexArray_t", axes.astype(np.int32))
        else:
            self._nodes.node(node, "PointList", "IndexArray_t", (indices + 1).reshape(-1, 1))

    def _can_have_sides(self, one: MeshSet) -> bool:
        kinds = np.unique(self._kinds()[one.indices])
        return all(int(kind) in BY_VTK for kind in kinds)

    def _kinds(self) -> Array:
        return np.concatenate([block.of_kinds for block in self._blocks.values()])

    def _write_sides(self, section: str, one: MeshSet) -> None:
        """Sides as elements of their own, in the order of the set."""
        assert one.sides is not None
        kinds = self._kinds()[one.indices]
        shapes = np.zeros(one.indices.size, np.int64)
        points: list[tuple[Array, Array]] = []
        positions = np.zeros(one.indices.size, np.int64)
        for kind, side in np.unique(np.stack([kinds, one.sides], axis=1), axis=0).tolist():
            chosen = np.flatnonzero((kinds == kind) & (one.sides == side))
            shape = BY_VTK[kind]
            is_shell = shape.rank == 2 and len(self._mesh.points[self._name].axes) == 3
            if not side < len(shape.sides) + 2 * is_shell:
                raise Unsupported(section, f"an element of the shape {shape.name} has no side {side + 1}")
            local = side_points(shape.name, side, is_shell)
            whole = 2 if is_shell and side < 2 else 1 if is_shell else shape.rank - 1
            of_side = _SIDES[whole, len(local)]
            order = to_file(np.array([local]), of_side.cgns_order)[0]
            shapes[chosen] = of_side.cgns
            positions[chosen] = faces_of(shape.name)[side]
            points.append((chosen, self._points_of(one.indices[chosen])[:, order]))
        self._write_side_section(section, one, shapes, points, positions)

    def _write_side_section(
        self, section: str, one: MeshSet, shapes: Array, points: list[tuple[Array, Array]], positions: Array
    ) -> None:
        rows: list[Array] = [np.empty(0)] * one.indices.size
        for chosen, found in points:
            for at, row in zip(chosen.tolist(), found, strict=True):
                rows[at] = row + 1
        if (shapes == shapes[0]).all():
            node = self._section(section, int(shapes[0]), shapes.size, np.concatenate(rows), None)
        else:
            parts = [np.concatenate([[kind], row]) for kind, row in zip(shapes, rows, strict=True)]
            offsets = np.array([0, *accumulate(part.size for part in parts)])
            node = self._section(section, MIXED, shapes.size, np.concatenate(parts), offsets)
        zeros = np.zeros(shapes.size, np.int64)
        parents = np.stack([one.indices + 1, zeros]).astype(np.int32)
        self._nodes.node(node, "ParentElements", "DataArray_t", parents)
        self._nodes.node(node, "ParentElementsPosition", "DataArray_t", np.stack([positions, zeros]).astype(np.int32))

    def _points_of(self, elements: Array) -> Array:
        """Returns the points of elements of one shape, in VTK's order."""
        found: Array | None = None
        start = 0
        for block in self._blocks.values():
            inside = (elements >= start) & (elements < start + block.count)
            if inside.any():
                first = block.offsets[:-1][elements[inside] - start]
                size = int(block.offsets[elements[inside][0] - start + 1] - first[0])
                if found is None:
                    found = np.zeros((elements.size, size), np.int64)
                found[inside] = block.connectivity[first[:, None] + np.arange(size)]
            start += block.count
        assert found is not None
        return found

    def _write_own(self, points: MeshPoints) -> None:
        if points.ids is not None:
            self._arrays["PointIds"] = points.ids
        if any(block.ids is not None for block in self._blocks.values()):
            first = accumulate((block.count for block in self._blocks.values()), initial=1)
            ids = [
                np.arange(start, start + block.count) if block.ids is None else block.ids
                for start, block in zip(first, self._blocks.values(), strict=False)
            ]
            self._arrays["ElementIds"] = np.concatenate(ids)
        if not self._own and not self._arrays:
            return
        own = self._own_node()
        if self._own:
            self._nodes.node(own, OWN_NAMES, "Descriptor_t", json.dumps(self._own))
        for name, values in self._arrays.items():
            self._nodes.node(own, name, "DataArray_t", values)

    def write_coordinates(self, points: MeshPoints, index: int) -> None:
        """Writes the coordinates of a step, if they have changed."""
        if points is not self._points and not _are_equal(points, self._points):
            name = f"GridCoordinatesAtStep{index + 1:05d}"
            self._write_grid(name, points)
            self._grids.append(name)
        else:
            self._grids.append(self._grids[-1] if self._grids else "GridCoordinates")
        self._points = points

    def _write_grid(self, name: str, points: MeshPoints) -> None:
        grid = self._nodes.node(self._zone, name, "GridCoordinates_t")
        for axis, values in zip("XYZ", points.coordinates(), strict=False):
            self._nodes.node(grid, f"Coordinate{axis}", "DataArray_t", values.reshape(self._shape))

    def write_fields(self, mesh: MeshStep, points: str, index: int) -> None:
        """Writes the solutions of a step."""
        fields = [one for one in mesh.fields if one.association == "vertex" and one.on == points]
        self._write_solution("Vertex", index, [(name, array, []) for one in fields for name, array in one.scalars()])
        cells = {name: block for name, block in self._blocks.items() if block.rank == self._rank}
        values: dict[str, dict[str, Array]] = {}
        for one in mesh.fields:
            if one.association == "element" and one.on in self._blocks and one.on in cells:
                for name, array in one.scalars():
                    values.setdefault(name, {})[one.on] = array
        self._write_solution("CellCenter", index, [_whole(name, arrays, cells) for name, arrays in values.items()])
        self._write_own_fields(mesh, points, index, cells)

    def _write_own_fields(self, mesh: MeshStep, points: str, index: int, cells: Mapping[str, MeshBlock]) -> None:
        """Writes values that a solution cannot have: on sets, and on blocks of fewer dimensions."""
        found: list[dict[str, str]] = []
        arrays: list[Array] = []
        for one in mesh.fields:
            is_on_set = one.association == "set" and mesh.sets[one.on].points == points
            is_on_block = one.association == "element" and one.on in self._blocks and one.on not in cells
            if is_on_set and one.on in self._absent_sets:
                self._left_out[f"field {one.name} on set {one.on}"] = None
            elif is_on_set or is_on_block:
                for name, array in one.scalars():
                    found.append({"name": name, "association": one.association, "on": one.on})
                    arrays.append(array)
        if not found:
            return
        node = self._nodes.node(self._own_node(), f"{OWN_FIELDS}{index + 1:05d}", "UserDefinedData_t")
        self._nodes.node(node, OWN_NAMES, "Descriptor_t", json.dumps(found))
        for at, array in enumerate(arrays):
            self._nodes.node(node, f"Array{at + 1}", "DataArray_t", array)

    def _own_node(self) -> Any:
        if self._own_data is None:
            self._own_data = self._nodes.node(self._zone, OWN, "UserDefinedData_t")
        return self._own_data

    def _write_solution(self, location: str, index: int, fields: list[tuple[str, Array, list[str]]]) -> None:
        if not fields:
            return
        name = f"{location}SolutionAtStep{index + 1:05d}"
        self._solutions[location] += [""] * (index - len(self._solutions[location])) + [name]
        solution = self._nodes.node(self._zone, name, "FlowSolution_t")
        self._nodes.node(solution, "GridLocation", "GridLocation_t", location)
        shape = self._shape
        if location == "CellCenter":
            shape = tuple(extent - 1 for extent in shape) if self._is_structured else (-1,)
        names = NodeNames()
        for taken in ("GridLocation", OWN):
            names.short(taken)
        own: dict[str, dict[str, Any]] = {"names": {}, "absent": {}}
        for full, values, absent in fields:
            short = names.short(full)
            if short != full:
                own["names"][short] = full
            if absent:
                own["absent"][short] = absent
            self._nodes.node(solution, short, "DataArray_t", values.reshape(shape))
        if own["names"] or own["absent"]:
            self._nodes.node(solution, OWN, "Descriptor_t", json.dumps(own))

    def write_pointers(self) -> None:
        """Writes the names of the solutions of all steps."""
        words = ["FlowSolutionPointers", "FlowSolutionCellPointers"]
        found = dict(zip(words, filter(None, self._solutions.values()), strict=False))
        if len(set(self._grids)) > 1:
            found["GridCoordinatesPointers"] = self._grids
        if not found:
            return
        count = max(map(len, found.values()))
        data = self._nodes.node(self._zone, "ZoneIterativeData", "ZoneIterativeData_t")
        for word, names in found.items():
            rows = [(name or "Null").encode().ljust(32) for name in names + [""] * (count - len(names))]
            table = np.frombuffer(b"".join(rows), np.int8).reshape(count, 32)
            self._nodes.node(data, word, "DataArray_t", table)


def _are_equal(points: MeshPoints, others: MeshPoints) -> bool:
    pairs = zip(points.coordinates(), others.coordinates(), strict=True)
    return all(np.array_equal(*pair) for pair in pairs)


def _is_moved(mesh: MeshStep, first: MeshStep) -> bool:
    """Whether a mesh has the elements and sets of another one, and as many points."""
    for name, points in mesh.points.items():
        there = first.points.get(name)
        if there is None or (points.count, len(points.axes)) != (there.count, len(there.axes)):
            return False
    return same_static(replace(mesh, points=first.points), first)


def _mixed(block: MeshBlock) -> tuple[Array, Array]:
    """Returns entries with the type before each element, and where each begins."""
    assert block.sizes is not None
    starts = block.offsets[:-1] + np.arange(block.count)
    entries = np.zeros(block.connectivity.size + block.count, np.int64)
    for kind in np.unique(block.of_kinds):
        shape = BY_VTK[int(kind)]
        chosen = np.flatnonzero(block.of_kinds == kind)
        rows = block.connectivity[block.offsets[:-1][chosen][:, None] + np.arange(shape.points)]
        entries[starts[chosen]] = shape.cgns
        entries[starts[chosen][:, None] + 1 + np.arange(shape.points)] = to_file(rows, shape.cgns_order) + 1
    return entries, np.append(starts, entries.size)


def _whole(name: str, arrays: Mapping[str, Array], cells: Mapping[str, MeshBlock]) -> tuple[str, Array, list[str]]:
    """Returns values of all cells, and the blocks that have none."""
    absent = [block for block in cells if block not in arrays]
    if not absent and len(cells) == 1:
        return name, next(iter(arrays.values())), absent
    parts = [arrays.get(block, np.full(one.count, np.nan)) for block, one in cells.items()]
    return name, np.concatenate(parts), absent


def _is_box(axes: Array, low: Array, high: Array) -> bool:
    """Whether points are all of a box, with the first axis fastest."""
    grid = np.meshgrid(
        *(np.arange(first, last + 1) for first, last in zip(low[::-1], high[::-1], strict=True)), indexing="ij"
    )
    return bool((axes == np.stack([axis.ravel() for axis in grid[::-1]], axis=1)).all())
