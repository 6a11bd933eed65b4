"""Sections of elements of an unstructured zone of a CGNS file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from junctura._forks import lazy_property
from junctura.errors import Corrupt, Unsupported
from junctura.mesh._files.cgns_nodes import MIXED, NFACE, NGON, children, data, faces_of
from junctura.mesh._model import Array, CellFaces, MeshBlock
from junctura.mesh._shapes import BY_CGNS, BY_VTK, SHAPES, from_file


class _ElementSection:
    """A section: elements with consecutive numbers."""

    def __init__(self, name: str, node: Any, path: str) -> None:
        self.name = name
        self.node = node
        self._path = path
        self.kind = int(data(node, path).ravel()[0])
        if "ElementRange" not in node:
            raise Corrupt(path, f"section {name} has no ElementRange")
        first, last = data(node["ElementRange"], path).ravel()[:2].tolist()
        self.first, self.count = int(first), int(last) - int(first) + 1
        entries = node.get("ElementConnectivity", {})
        if self.first < 1 or not 0 <= self.count <= (entries[" data"].size if " data" in entries else 0):
            raise Corrupt(path, f"section {name} has the elements {first} to {last}")

    @lazy_property
    def connectivity(self) -> Array:
        if "ElementConnectivity" not in self.node:
            raise Corrupt(self._path, f"section {self.name} has no ElementConnectivity")
        return data(self.node["ElementConnectivity"], self._path).ravel()

    @lazy_property
    def offsets(self) -> Array:
        """The first entry of each element, and the end. Before CGNS 4 each element begins with its size or type."""
        if "ElementStartOffset" in self.node:
            return data(self.node["ElementStartOffset"], self._path).ravel().astype(np.int64)
        offsets = [0]
        for _ in range(self.count):
            if offsets[-1] >= self.connectivity.size:
                raise Corrupt(self._path, f"section {self.name} has fewer elements than its range")
            head = int(self.connectivity[offsets[-1]])
            size = head if self.kind != MIXED else self._shape(head).points
            offsets.append(offsets[-1] + 1 + size)
        return np.array(offsets)

    @property
    def has_heads(self) -> bool:
        """Whether each element begins with its size or type."""
        return self.kind == MIXED or "ElementStartOffset" not in self.node

    def entries(self) -> tuple[Array, Array]:
        """Returns sizes, and entries without what each element begins with."""
        offsets, connectivity = self.offsets, self.connectivity
        if offsets.size != self.count + 1 or offsets[0] != 0 or offsets[-1] != connectivity.size:
            raise Corrupt(self._path, f"section {self.name} has invalid offsets")
        sizes = np.diff(offsets)
        if (sizes < 1).any():
            raise Corrupt(self._path, f"section {self.name} has an element without entries")
        if not self.has_heads:
            return sizes, connectivity
        kept = np.ones(connectivity.size, bool)
        kept[offsets[:-1]] = False
        return sizes - 1, connectivity[kept]

    def _shape(self, number: int) -> Any:
        if number not in BY_CGNS:
            raise Unsupported(self._path, f"section {self.name} has elements of the type {number}")
        return BY_CGNS[number]

    def block(self, points: str, faces: CellFaces | None, places: Any) -> MeshBlock:
        """Returns the elements as a block."""
        if self.kind == MIXED:
            return self._mixed(points)
        if self.kind == NGON:
            sizes, entries = self.entries()
            return MeshBlock(points, "polygonal", entries - 1, sizes=sizes)
        if self.kind == NFACE:
            sizes, entries = self.entries()
            return MeshBlock(points, "polyhedral", places(np.abs(entries)), sizes=sizes, faces=faces)
        shape = self._shape(self.kind)
        if self.connectivity.size != shape.points * self.count:
            raise Corrupt(self._path, f"section {self.name} has another number of points than its range")
        rows = self.connectivity.reshape(-1, shape.points) - 1
        return MeshBlock(points, shape.name, from_file(rows, shape.cgns_order).ravel())

    def _mixed(self, points: str) -> MeshBlock:
        sizes, entries = self.entries()
        kinds = np.zeros(self.count, np.uint8)
        heads = self.connectivity[self.offsets[:-1]]
        starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        for number in np.unique(heads):
            shape = self._shape(int(number))
            chosen = heads == number
            kinds[chosen] = shape.vtk
            if (sizes[chosen] != shape.points).any():
                raise Corrupt(self._path, f"section {self.name} has a {shape.name} with another number of points")
            if shape.cgns_order:
                at = starts[chosen][:, None] + np.arange(shape.points)
                entries[at] = from_file(entries[at], shape.cgns_order)
        return MeshBlock(points, "mixed", entries - 1, sizes=sizes, kinds=kinds)


class ZoneElements:
    """The sections of a zone.

    Sections with parents are sides of other elements; sections of polygons are faces if the zone has polyhedra. All
    others are blocks.
    """

    def __init__(self, zone: Any, path: str) -> None:
        self._path = path
        found = [_ElementSection(name, node, path) for name, node in children(zone, "Elements_t")]
        found.sort(key=lambda section: section.first)
        self._all = found
        self._faces = [one for one in found if one.kind == NGON] if any(one.kind == NFACE for one in found) else []
        self._sides = [one for one in found if "ParentElements" in one.node and one not in self._faces]
        self._sections = [one for one in found if one not in self._faces and one not in self._sides]

    @property
    def count(self) -> int:
        """Number of all elements, also of sides and faces."""
        return sum(section.count for section in self._all)

    def blocks(self, points: str) -> Iterator[tuple[str, MeshBlock]]:
        """Yields the blocks, in the order of their elements' numbers."""
        faces = None
        if self._faces:
            parts = [section.entries() for section in self._faces]
            faces = CellFaces(
                np.concatenate([entries for _, entries in parts]) - 1, np.concatenate([sizes for sizes, _ in parts])
            )
        for section in self._sections:
            yield section.name, section.block(points, faces, lambda numbers: _places(self._faces, numbers))

    def places(self, numbers: Array) -> Array:
        """Returns the place of elements among all of the blocks."""
        return _places(self._sections, numbers)

    def are_elements(self, numbers: Array) -> bool:
        """Whether all numbers are of elements of blocks."""
        return bool((self.places(numbers) >= 0).all())

    def sides(self, numbers: Array) -> tuple[Array, Array] | None:
        """Returns elements and their sides, from 0, for elements that are sides; None if one has no parent."""
        at = _places(self._sides, numbers)
        if not self._sides or (at < 0).any():
            return None
        parents = np.concatenate([self._first(section, "ParentElements") for section in self._sides])[at]
        faces = np.concatenate([self._first(section, "ParentElementsPosition") for section in self._sides])[at]
        elements = self.places(parents)
        if (elements < 0).any() or (faces < 1).any():
            return None
        return elements, self._as_sides(elements, faces)

    def _first(self, section: _ElementSection, name: str) -> Array:
        """Returns the first of two parents of each side; zeros if it is unknown."""
        if name not in section.node:
            return np.zeros(section.count, np.int64)
        found = data(section.node[name], self._path).reshape(2, -1)
        if found.shape[1] != section.count:
            raise Corrupt(self._path, f"section {section.name} has another number of parents than of elements")
        first: Array = found[0].astype(np.int64)
        return first

    def _as_sides(self, elements: Array, faces: Array) -> Array:
        kinds = np.concatenate([block.of_kinds for _, block in self.blocks("")])[elements]
        sides = faces - 1
        for kind in np.unique(kinds):
            table = faces_of(BY_VTK[int(kind)].name) if int(kind) in BY_VTK else None
            if table is not None and table.size:
                inverse = np.zeros(table.max() + 1, np.int64)
                inverse[table] = np.arange(table.size)
                chosen = kinds == kind
                if (faces[chosen] > table.max()).any():
                    raise Corrupt(
                        self._path, f"an element of the shape {BY_VTK[int(kind)].name} has no face {faces.max()}"
                    )
                sides[chosen] = inverse[faces[chosen]]
        return sides


def _places(sections: list[_ElementSection], numbers: Array) -> Array:
    """Returns the place of each element among those of the sections; -1 if it is in none."""
    found = np.full(numbers.size, -1, np.int64)
    start = 0
    for section in sections:
        inside = (numbers >= section.first) & (numbers < section.first + section.count)
        found[inside] = numbers[inside] - section.first + start
        start += section.count
    return found


def side_points(shape: str, side: int, is_shell: bool) -> tuple[int, ...]:
    """Returns the points of a side of a shape, in VTK's order. A shell has its front and its back before its edges."""
    own = SHAPES[shape]
    if not is_shell:
        return own.sides[side]
    if side < 2:
        corners = len(own.sides)
        order = list(range(own.points))
        if side == 1:
            # The other way round: corners 0, 3, 2, 1 and the edges between these.
            back = [0, *range(corners - 1, 0, -1)]
            edges = [corners + at for at in range(corners - 1, -1, -1)] if own.points >= 2 * corners else []
            order = back + edges + order[2 * corners :]
        return tuple(order)
    return own.sides[side - 2]
