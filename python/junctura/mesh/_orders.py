"""Orders of points and elements: where the entries of one mesh are in another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from junctura.mesh._model import Array, CellFaces, MeshBlock, MeshStep


@dataclass(frozen=True)
class MeshOrders:
    """The orders of a second mesh that differ from those of a first one.

    Attributes
    ----------
    points, blocks
        By name: entry `i` of the first is this entry of the second.
    positions
        For each point of the first mesh a number that points at the same position share. Files have such points where
        blocks touch each other, and only elements distinguish them.

    """

    points: dict[str, Array] = field(default_factory=dict)
    blocks: dict[str, Array] = field(default_factory=dict)
    positions: dict[str, Array] = field(default_factory=dict)
    _of_elements: dict[str, Array] = field(default_factory=dict)

    def of(self, association: str, on: str) -> Array | None:
        """Returns the order of values on points or on a block; None if it is that of the first mesh."""
        known = {"vertex": self.points, "element": self.blocks}.get(association, {})
        return known.get(on)

    def add_points(self, name: str, table: Array, order: Array) -> None:
        """Keeps the order of points, of which the first mesh has these coordinates."""
        self.points[name] = order
        self.positions[name] = np.unique(table, axis=0, return_inverse=True)[1].ravel()
        self._of_elements[name] = np.full(order.size, -1, np.int64)

    def located(self, block: MeshBlock, *, is_second: bool) -> MeshBlock:
        """Returns a block with the positions of its points, if the points have another order."""
        order = self.points.get(block.points)
        if order is None:
            return block
        numbers = self.positions[block.points]
        if is_second:
            numbers = numbers[inverse(order)]
        values = {name: getattr(block, name) for name in block.__dataclass_fields__}
        if block.faces is not None:
            values["faces"] = CellFaces(numbers[block.faces.connectivity], block.faces.sizes)
        else:
            values["connectivity"] = numbers[block.connectivity]
        return MeshBlock(**values)

    def match(self, one: MeshBlock, other: MeshBlock, order: Array | None) -> None:
        """Keeps which points the elements of a block have in both meshes; `order` is that of the elements."""
        known = self._of_elements.get(one.points)
        if known is None or one.faces is not None:
            return
        entries = other.connectivity
        if order is not None:
            sizes = np.diff(other.offsets)[order]
            first = np.repeat(other.offsets[:-1][order] - (np.cumsum(sizes) - sizes), sizes)
            entries = entries[first + np.arange(entries.size)]
        known[one.connectivity] = entries

    def tell_apart(self) -> None:
        """Orders points at the same position as the elements have them."""
        for name, found in self._of_elements.items():
            known = found >= 0
            if np.unique(found[known]).size < np.count_nonzero(known):
                continue
            rest = np.flatnonzero(~known)
            others = np.setdiff1d(np.arange(found.size), found[known])
            positions = self.positions[name]
            of_rest, of_others = positions[rest], positions[inverse(self.points[name])][others]
            if np.array_equal(np.sort(of_rest), np.sort(of_others)):
                found[rest[np.argsort(of_rest, kind="stable")]] = others[np.argsort(of_others, kind="stable")]
                self.points[name] = found

    def elements(self, first: MeshStep, second: MeshStep, points: str) -> Array:
        """Returns the number in the first mesh of each element of the second on these points; -1 if it has none."""
        starts: dict[str, int] = {}
        count = 0
        for name, block in first.blocks_on(points).items():
            starts[name] = count
            count += block.count
        parts = []
        for name, block in second.blocks_on(points).items():
            numbers = np.arange(block.count)
            if name in self.blocks:
                numbers = inverse(self.blocks[name])
            known = name in starts and first.blocks[name].count == block.count
            parts.append(numbers + starts[name] if known else np.full(block.count, -1))
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


def inverse(order: Array) -> Array:
    """Returns the inverse of a permutation."""
    found = np.empty(order.size, np.int64)
    found[order] = np.arange(order.size)
    return found


def order_of(first: Array, second: Array) -> Array | None:
    """Returns the place in the second of each row of the first; None if the tables do not have the same rows."""
    orders = [np.lexsort(table.T[::-1]) for table in (first, second)]
    is_real = first.dtype.kind == "f" and second.dtype.kind == "f"
    if not np.array_equal(first[orders[0]], second[orders[1]], equal_nan=is_real):
        return None
    found = np.empty(len(first), np.int64)
    found[orders[0]] = orders[1]
    return found


def described(order: Array) -> str:
    """Describes a permutation: the first entry that has moved, and how many have."""
    places = np.flatnonzero(order != np.arange(order.size))
    at = int(places[0])
    return f"entry {at} of the first is entry {order[at]} of the second ({places.size} of {order.size} moved)"


class RaggedElements(NamedTuple):
    """Elements of a mixed block, of polygons or polyhedra, each as a row of numbers of its own length.

    Polyhedra are rows of their faces: the number of points of a face, and its points. So two blocks are equal that
    number their faces differently.
    """

    kinds: Array
    sizes: Array
    entries: Array

    @classmethod
    def of(cls, block: MeshBlock) -> RaggedElements:
        """Returns the elements of a block."""
        assert block.sizes is not None
        if block.faces is None:
            return cls(block.of_kinds, block.sizes, block.connectivity)
        faces = block.faces
        of_face = faces.sizes[block.connectivity].astype(np.int64)
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(faces.sizes, dtype=np.int64)])[block.connectivity]
        # Each face takes a place for its size, and one for each point.
        places = np.cumsum(of_face + 1) - (of_face + 1)
        entries = np.empty(int((of_face + 1).sum()), np.int64)
        entries[places] = of_face
        within = np.arange(int(of_face.sum())) - np.repeat(np.cumsum(of_face) - of_face, of_face)
        entries[np.repeat(places + 1, of_face) + within] = faces.connectivity[np.repeat(first, of_face) + within]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(of_face + 1)])[block.offsets]
        return cls(block.of_kinds, np.diff(ends), entries)

    def equals(self, other: RaggedElements) -> bool:
        """Whether both have the same elements in the same order."""
        return all(np.array_equal(*pair) for pair in zip(self, other, strict=True))

    def order_in(self, other: RaggedElements) -> Array | None:
        """Returns the place in the other of each element; None if it does not have the same ones."""
        if self.sizes.size != other.sizes.size or self.entries.size != other.entries.size:
            return None
        width = int(self.sizes.max(initial=0))
        if width != int(other.sizes.max(initial=0)):
            return None
        return order_of(self._table(width), other._table(width))

    def _table(self, width: int) -> Array:
        table = np.full((self.sizes.size, width + 1), -1, np.int64)
        table[:, 0] = self.kinds
        rows = np.repeat(np.arange(self.sizes.size), self.sizes)
        starts = np.cumsum(self.sizes, dtype=np.int64) - self.sizes
        table[rows, 1 + np.arange(self.entries.size) - starts[rows]] = self.entries
        return table


def names_in_order(blocks: Mapping[str, MeshBlock], others: Mapping[str, MeshBlock]) -> tuple[list[str], list[str]]:
    """Returns the names that both have, as each orders them."""
    return [name for name in blocks if name in others], [name for name in others if name in blocks]
