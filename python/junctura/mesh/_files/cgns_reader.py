"""Reads CGNS files (HDF5): bases, structured and unstructured zones, boundary conditions, solutions, times. Names are
those of the SIDS.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from junctura import _forks
from junctura.errors import Corrupt, Unsupported
from junctura.mesh._files.cgns_elements import ZoneElements
from junctura.mesh._files.cgns_nodes import (
    OWN,
    OWN_FIELDS,
    OWN_NAMES,
    USER_DEFINED,
    children,
    data,
    label_of,
    text,
    texts,
)
from junctura.mesh._files.reading import FileMeshReader, check_links, reading
from junctura.mesh._model import Array, MeshBlock, MeshField, MeshPoints, MeshSet, MeshStep

_AXES = ("CoordinateX", "CoordinateY", "CoordinateZ")
# Labels of nodes that are read; others are left out.
_OF_BASE = frozenset(["BaseIterativeData_t", "SimulationType_t", "Zone_t"])
_OF_ZONE = frozenset(
    [
        *("Elements_t", "FamilyName_t", "FlowSolution_t", "GridCoordinates_t", "ZoneBC_t"),
        *("ZoneIterativeData_t", "ZoneSubRegion_t", "ZoneType_t"),
    ]
)
_OWN_NAMES = frozenset([OWN, "Title"])
# Beginnings and ends of names of arrays that refer to the solutions of each step.
_POINTERS = ("FlowSolution", "Pointers")


class _ZoneNode(NamedTuple):
    name: str
    node: Any
    rank: int
    dims: tuple[int, ...]
    """Points along each axis, if structured."""
    elements: ZoneElements | None
    own: dict[str, Any]
    """Names and numbers that the writer has kept."""


class CgnsReader(FileMeshReader):
    """A CGNS file: iterate over it for its steps.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    ImportError
        Without h5py: ``pip install 'junctura[mesh]'``.
    Corrupt
        It is not a CGNS file.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._notes: list[str] = []
        self._moved: dict[tuple[str, ...], MeshStep] = {}
        super().__init__(path, _forks.needed("h5py", "mesh").File)

    def __len__(self) -> int:
        return max(1, len(self._steps))

    def mesh(self, index: int) -> MeshStep:
        """Returns the mesh with the fields of one step, counted from 0."""
        step, time, values = self._steps[index] if self._steps else (0, None, {})
        with reading(self.path):
            static = self._at_coordinates(index)
            fields = tuple(one for zone in self._zones for one in self._fields(zone, index))
            for one in fields:
                static.check_field(one)
        return replace(
            static,
            fields=fields,
            step=step,
            time=time,
            globals=values,
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _begin(self) -> None:
        check_links(self.path, self._file, _forks.needed("h5py", "mesh").ExternalLink)
        self._check_version()
        self._bases = list(children(self._file, "CGNSBase_t"))
        if not self._bases:
            raise Corrupt(self.path, "an HDF5 file without a CGNSBase_t is not a CGNS file")
        self._zones = [self._zone(*zone) for zone in self._all_zones()]
        self._steps = self._read_steps()
        self._static = self._read_static()
        self._static.check()
        self._note_unused()

    def _check_version(self) -> None:
        node = self._file.get("CGNSLibraryVersion")
        if node is not None and " data" in node and 3.0 <= data(node, self.path).ravel()[0] < 3.1:
            cause = "CGNS 3.0 numbers the types of elements as no other version does; convert the file with cgnsupdate"
            raise Unsupported(self.path, cause)

    def _note_unused(self) -> None:
        """Notes the labels of nodes that this model cannot express."""
        places = [(node, _OF_BASE) for _, node in self._bases] + [(zone.node, _OF_ZONE) for zone in self._zones]
        found = {
            label_of(child)
            for node, read in places
            for name, child in ((name, node.get(name)) for name in node if name not in _OWN_NAMES)
            if child is not None and hasattr(child, "attrs") and label_of(child) not in read
        }
        self._notes += sorted(found - {""})

    def _all_zones(self) -> list[tuple[str, Any, int]]:
        found = []
        for name, base in self._bases:
            rank = int(data(base, self.path).ravel()[0])
            for zone, node in children(base, "Zone_t"):
                found.append((zone if len(self._bases) == 1 else f"{name}:{zone}", node, rank))
        return found

    def _zone(self, name: str, node: Any, rank: int) -> _ZoneNode:
        sizes = data(node, self.path)
        kind = next((text(child) for _, child in children(node, "ZoneType_t")), "Structured")
        own = {}
        if OWN in node and OWN_NAMES in node[OWN]:
            own = json.loads(text(node[OWN][OWN_NAMES]))
        if kind == "Structured":
            return _ZoneNode(own.get("points", name), node, rank, tuple(map(int, sizes[0])), None, own)
        return _ZoneNode(own.get("points", name), node, rank, (), ZoneElements(node, self.path), own)

    def _read_static(self) -> MeshStep:
        points: dict[str, MeshPoints] = {}
        blocks: dict[str, MeshBlock] = {}
        sets: dict[str, MeshSet] = {}
        for zone in self._zones:
            own = zone.node.get(OWN)
            ids = data(own["PointIds"], self.path) if own is not None and "PointIds" in own else None
            points[zone.name] = MeshPoints(self._coordinates(zone, None), ids=ids)
            for name, block in self._blocks(zone):
                blocks[name if name not in blocks else f"{zone.name}:{name}"] = block
        for zone in self._zones:
            for name, one in self._sets(zone):
                sets[name if name not in sets else f"{zone.name}:{name}"] = one
        title = next((text(node) for name, node in children(self._bases[0][1], "Descriptor_t") if name == "Title"), "")
        return MeshStep(points, blocks, sets, title=title)

    def _at_coordinates(self, index: int) -> MeshStep:
        """Returns the mesh with the coordinates of a step."""
        pointers = tuple(self._pointer(zone, "GridCoordinatesPointers", index) or "" for zone in self._zones)
        if not any(pointers):
            return self._static
        if pointers not in self._moved:
            self._moved.clear()
            moved = {
                zone.name: replace(self._static.points[zone.name], axes=self._coordinates(zone, pointer or None))
                for zone, pointer in zip(self._zones, pointers, strict=True)
            }
            self._moved[pointers] = replace(self._static, points=moved)
        return self._moved[pointers]

    def _pointer(self, zone: _ZoneNode, name: str, index: int) -> str | None:
        for _, node in children(zone.node, "ZoneIterativeData_t"):
            if name in node:
                found = texts(data(node[name], self.path))
                return found[index] if index < len(found) else None
        return None

    def _coordinates(self, zone: _ZoneNode, name: str | None) -> tuple[Array, ...]:
        grids = dict(children(zone.node, "GridCoordinates_t"))
        grid = grids.get(name) if name else grids.get("GridCoordinates") or next(iter(grids.values()), None)
        if grid is None:
            raise Corrupt(self.path, f"zone {zone.name} has no grid coordinates")
        if not any(axis in grid for axis in _AXES):
            raise Corrupt(self.path, f"zone {zone.name} has other coordinates than x, y and z")
        return tuple(self._inner(grid, data(grid[axis], self.path), zone) for axis in _AXES if axis in grid)

    def _inner(self, node: Any, values: Array, zone: _ZoneNode) -> Array:
        """Returns values without rind planes, with the first axis fastest."""
        rind = next((data(child, self.path).ravel() for _, child in children(node, "Rind_t")), None)
        if rind is not None and rind.any():
            # Pairs for i, j, k; the axes of the data are k, j, i.
            pairs = rind.reshape(-1, 2)[::-1]
            values = values[tuple(slice(low, -high or None) for low, high in pairs.tolist())]
        elif zone.dims and values.ndim == len(zone.dims) and not values.size:
            raise Corrupt(self.path, f"zone {zone.name} has no values in {node.name}")
        return np.ascontiguousarray(values).ravel()

    def _blocks(self, zone: _ZoneNode) -> Iterator[tuple[str, MeshBlock]]:
        names, numbers = zone.own.get("blocks", {}), zone.own.get("numbers", {})
        labels = zone.own.get("labels", {})
        if zone.elements is None:
            name = zone.node.name.rpartition("/")[2]
            block = MeshBlock(zone.name, "structured", dims=tuple(extent - 1 for extent in zone.dims))
            found = [(name, block)]
        else:
            found = list(zone.elements.blocks(zone.name))
        start = 0
        for name, block in found:
            extra = {"number": numbers.get(name), "label": labels.get(name, "")}
            ids = self._own_ids(zone, start, block.count)
            start += block.count
            attributes = self._attributes(zone, name)
            whole = names.get(name, name if zone.elements is not None or len(self._zones) == 1 else zone.name)
            yield whole, replace(block, ids=ids, attributes=attributes, **extra)

    def _own_ids(self, zone: _ZoneNode, start: int, count: int) -> Array | None:
        own = zone.node.get(OWN)
        if own is None or "ElementIds" not in own:
            return None
        return data(own["ElementIds"], self.path)[start : start + count]

    def _attributes(self, zone: _ZoneNode, block: str) -> dict[str, Array]:
        own = zone.node.get(OWN)
        known = zone.own.get("attributes", {}).get(block, {})
        return {name: data(own[node], self.path) for name, node in known.items()} if own is not None else {}

    def _sets(self, zone: _ZoneNode) -> Iterator[tuple[str, MeshSet]]:
        names = zone.own.get("sets", {})
        for _, conditions in children(zone.node, "ZoneBC_t"):
            for name, node in children(conditions, "BC_t"):
                found = self._condition(zone, name, node)
                if found is not None:
                    yield names.get(name, name), self._own_set(zone, name, found)
        for name, node in children(zone.node, "ZoneSubRegion_t"):
            found = self._region(zone, node)
            if found is not None:
                yield names.get(name, name), self._own_set(zone, name, found)

    def _own_set(self, zone: _ZoneNode, name: str, found: MeshSet) -> MeshSet:
        factors = zone.own.get("factors", {}).get(name)
        values = None if factors is None else data(zone.node[OWN][factors], self.path)
        return replace(found, number=zone.own.get("set_numbers", {}).get(name), factors=values)

    def _region(self, zone: _ZoneNode, node: Any) -> MeshSet | None:
        location = next((text(child) for _, child in children(node, "GridLocation_t")), "Vertex")
        dims = tuple(extent - 1 for extent in zone.dims) if location == "CellCenter" else zone.dims
        numbers = self._numbers(zone, node, dims)
        if location not in ("Vertex", "CellCenter") or numbers is None:
            self._notes.append(f"{node.name.lstrip('/')}: a region at {location}")
            return None
        return MeshSet("vertex" if location == "Vertex" else "element", zone.name, numbers)

    def _condition(self, zone: _ZoneNode, name: str, node: Any) -> MeshSet | None:
        kind = text(node)
        if kind == "FamilySpecified":
            kind = self._family(zone, node)
        kind = zone.own.get("kinds", {}).get(name, "" if kind in (USER_DEFINED, "Null") else kind)
        location = next((text(child) for _, child in children(node, "GridLocation_t")), "Vertex")
        numbers = None if zone.dims and location != "Vertex" else self._numbers(zone, node, zone.dims)
        if numbers is None:
            self._notes.append(f"{node.name.lstrip('/')}: a boundary condition at {location}")
            return None
        if location == "Vertex":
            return MeshSet("vertex", zone.name, numbers, kind=kind)
        sides = zone.elements.sides(numbers + 1) if zone.elements is not None else None
        if sides is None:
            if zone.elements is None or not zone.elements.are_elements(numbers + 1):
                self._notes.append(f"{node.name.lstrip('/')}: sides without parents")
                return None
            return MeshSet("element", zone.name, zone.elements.places(numbers + 1), kind=kind)
        return MeshSet("side", zone.name, *sides, kind=kind)

    def _numbers(self, zone: _ZoneNode, node: Any, dims: tuple[int, ...]) -> Array | None:
        """Returns the points or elements of a boundary condition or region, from 0."""
        for word in ("PointList", "ElementList"):
            if word in node:
                found = data(node[word], self.path)
                if zone.dims:
                    return _flat(found.reshape(-1, len(dims)).T - 1, dims)
                return found.ravel().astype(np.int64) - 1
        for word in ("PointRange", "ElementRange"):
            if word in node:
                first, last = data(node[word], self.path).reshape(2, -1).tolist()
                elements = zone.elements.count if zone.elements else 0
                extents = dims or (max(int(data(zone.node, self.path)[0, 0]), elements),)
                if any(not 0 <= high - low < extent for low, high, extent in zip(first, last, extents, strict=True)):
                    raise Corrupt(self.path, f"{node.name} has the range {first} to {last}")
                axes = [np.arange(low - 1, high) for low, high in zip(first, last, strict=True)]
                if not zone.dims:
                    return axes[0]
                grid = np.meshgrid(*axes[::-1], indexing="ij")[::-1]
                return _flat(np.stack([axis.ravel() for axis in grid]), dims)
        return None

    def _family(self, zone: _ZoneNode, node: Any) -> str:
        family = next((text(child) for _, child in children(node, "FamilyName_t")), "")
        base = zone.node.parent
        found = base.get(family) if family and "/" not in family else None
        if found is None or label_of(found) != "Family_t":
            return ""
        return next((text(child) for _, child in children(found, "FamilyBC_t")), "")

    def _read_steps(self) -> list[tuple[int, float | None, dict[str, Array]]]:
        for _, base in self._bases:
            for _, node in children(base, "BaseIterativeData_t"):
                arrays = {name: data(child, self.path).ravel() for name, child in children(node, "DataArray_t")}
                times, numbers = arrays.pop("TimeValues", None), arrays.pop("IterationValues", None)
                count = (times if times is not None else numbers if numbers is not None else np.empty(0)).size
                own = json.loads(text(node[OWN])) if OWN in node else {}
                values = {
                    own.get(name, name): one
                    for name, one in arrays.items()
                    if one.size == count and one.dtype.kind in "if"
                }
                return [
                    (
                        index + 1 if numbers is None else int(numbers[index]),
                        None if times is None else float(times[index]),
                        {name: one[index : index + 1] for name, one in values.items()},
                    )
                    for index in range(count)
                ]
        return []

    def _fields(self, zone: _ZoneNode, index: int) -> Iterator[MeshField]:
        taken: set[tuple[str, str, str]] = set()
        for solution, node in self._solutions(zone, index):
            location = next((text(child) for _, child in children(node, "GridLocation_t")), "Vertex")
            if location not in ("Vertex", "CellCenter") or "PointList" in node or "PointRange" in node:
                self._notes.append(f"{zone.name}/{solution}: values at {location}, or of a part")
                continue
            own: dict[str, Any] = json.loads(text(node[OWN])) if OWN in node else {}
            for key, child in children(node, "DataArray_t"):
                name = own.get("names", {}).get(key, key)
                values = self._inner(node, data(child, self.path), zone)
                for one in self._placed(zone, name, location, values, own.get("absent", {}).get(key, [])):
                    place = (one.association, one.on, one.name)
                    if place not in taken:
                        taken.add(place)
                        yield one
        yield from self._own_fields(zone, index)

    def _own_fields(self, zone: _ZoneNode, index: int) -> Iterator[MeshField]:
        """Yields values that the writer has kept."""
        name = f"{OWN_FIELDS}{index + 1:05d}"
        own = zone.node.get(OWN)
        if own is None or name not in own:
            return
        for at, one in enumerate(json.loads(text(own[name][OWN_NAMES]))):
            values = data(own[name][f"Array{at + 1}"], self.path)
            yield MeshField(one["name"], one["association"], one["on"], {"": values})

    def _placed(
        self, zone: _ZoneNode, name: str, location: str, values: Array, absent: list[str]
    ) -> Iterator[MeshField]:
        if location == "Vertex":
            yield MeshField(name, "vertex", zone.name, {"": values})
            return
        blocks = self._static.blocks_on(zone.name)
        # Values are of the cells, not of elements on their boundary.
        cells = {on: block for on, block in blocks.items() if block.rank == zone.rank or zone.elements is None}
        if sum(block.count for block in cells.values()) != values.size:
            raise Corrupt(self.path, f"field {name} has {values.size} values in zone {zone.name}")
        start = 0
        for on, block in cells.items():
            if on not in absent:
                yield MeshField(name, "element", on, {"": values[start : start + block.count]})
            start += block.count

    def _solutions(self, zone: _ZoneNode, index: int) -> Iterator[tuple[str, Any]]:
        """Yields the solutions of a step: those that pointers name, and those whose name ends with the same number."""
        pointers = []
        for _, node in children(zone.node, "ZoneIterativeData_t"):
            for name, child in children(node, "DataArray_t"):
                if name.startswith(_POINTERS[0]) and name.endswith(_POINTERS[1]):
                    found = texts(data(child, self.path))
                    pointers += found[index : index + 1]
        numbers = {_number(name) for name in pointers}
        for name, node in children(zone.node, "FlowSolution_t"):
            if not pointers or name in pointers or (_number(name) is not None and _number(name) in numbers):
                yield name, node


def _number(name: str) -> int | None:
    found = re.search(r"(\d+)$", name)
    return int(found[1]) if found else None


def _flat(indices: Array, dims: tuple[int, ...]) -> Array:
    """Returns the numbers of points with indices i, j, k; i is fastest."""
    strides = np.cumprod([1, *dims[:-1]])
    found: Array = (indices.astype(np.int64) * strides[:, None]).sum(axis=0)
    return found
