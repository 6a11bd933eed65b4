"""The form of a mesh in an Exodus file: one set of points, and elements of one shape in each block.

Two meshes of which one has this form are compared in it: the form of the other is what both can express.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import numpy as np

from junctura.mesh._files.shape_split import ShapeSplit
from junctura.mesh._model import Array, MeshBlock, MeshField, MeshPoints, MeshSet, MeshStep

# The name of all points of an Exodus file.
JOINED_POINTS = "nodes"
_INT32_MAX = (1 << 31) - 1


def is_joined(mesh: MeshStep) -> bool:
    """Whether a mesh could be that of an Exodus file."""
    shapes = {block.shape for block in mesh.blocks.values() if block.count}
    return list(mesh.points) == [JOINED_POINTS] and not shapes & {"structured", "mixed"}


class JoinedForm:
    """Brings the meshes of a series, which share points, blocks and sets, into this form.

    Parameters
    ----------
    mesh
        The first step.

    """

    def __init__(self, mesh: MeshStep) -> None:
        self._split = ShapeSplit(mesh) if ShapeSplit.is_needed(mesh) else None
        whole = mesh if self._split is None else self._split.mesh(mesh)
        counts = [points.count for points in whole.points.values()]
        self._starts = dict(zip(whole.points, accumulate(counts, initial=0), strict=False))
        self._count = sum(counts)
        self._points = {JOINED_POINTS: _joined_points(list(whole.points.values()))}
        keep = are_numbers([block.number for block in whole.blocks.values()])
        self._blocks = {name: self._block(block, keep) for name, block in whole.blocks.items()}
        known: dict[str, list[int | None]] = {}
        for one in whole.sets.values():
            known.setdefault(one.association, []).append(one.number)
        kept = {association: are_numbers(numbers) for association, numbers in known.items()}
        self._sets = {name: self._set(one, whole, kept[one.association]) for name, one in whole.sets.items()}

    def mesh(self, mesh: MeshStep) -> MeshStep:
        """Returns a step; steps share points, blocks and sets."""
        if self._split is not None:
            mesh = self._split.mesh(mesh)
        fields: list[MeshField] = []
        at_points: dict[str, Array] = {}
        for one in mesh.fields:
            if one.association != "vertex":
                fields.append(one)
                continue
            for name, values in one.scalars():
                whole = at_points.setdefault(name, np.full(self._count, np.nan))
                whole[self._starts[one.on] : self._starts[one.on] + values.size] = values
        fields += [MeshField(name, "vertex", JOINED_POINTS, {"": values}) for name, values in at_points.items()]
        # A file has a time for each step that has values.
        time = float(mesh.step) if mesh.time is None and (mesh.fields or mesh.globals) else mesh.time
        shared = {"points": self._points, "blocks": self._blocks, "sets": self._sets}
        return replace(mesh, **shared, fields=tuple(fields), time=time)  # type: ignore[arg-type]

    def _block(self, block: MeshBlock, keep_number: bool) -> MeshBlock:
        block, start = block.unstructured(), self._starts[block.points]
        values = {name: getattr(block, name) for name in block.__dataclass_fields__} | {"points": JOINED_POINTS}
        values["number"] = block.number if keep_number else None
        if block.faces is not None:
            values["faces"] = replace(block.faces, connectivity=block.faces.connectivity + start)
        else:
            values["connectivity"] = block.connectivity + start
        return MeshBlock(**values)

    def _set(self, one: MeshSet, mesh: MeshStep, keep_number: bool) -> MeshSet:
        one = replace(one, number=one.number if keep_number else None)
        if one.association == "vertex":
            return replace(one, points=JOINED_POINTS, indices=one.indices + self._starts[one.points])
        starts = accumulate((block.count for block in mesh.blocks.values()), initial=0)
        places = [
            np.arange(start, start + block.count)
            for start, block in zip(starts, mesh.blocks.values(), strict=False)
            if block.points == one.points
        ]
        numbers = np.concatenate(places) if places else np.empty(0, np.int64)
        return replace(one, points=JOINED_POINTS, indices=numbers[one.indices])


def are_numbers(known: list[int | None]) -> bool:
    """Whether a file can have these numbers of blocks or sets: positive ones of 32 bits, each once."""
    numbers = [number for number in known if number is not None]
    return len(set(numbers)) == len(numbers) and all(0 < number <= _INT32_MAX for number in numbers)


def _joined_points(parts: list[MeshPoints]) -> MeshPoints:
    axes = [one.coordinates() for one in parts]
    rank = max(map(len, axes), default=3)
    joined = [
        np.concatenate([one[axis] if axis < len(one) else np.zeros(one[0].size) for one in axes] or [np.empty(0)])
        for axis in range(rank)
    ]
    ids = None
    if any(one.ids is not None for one in parts):
        ids = np.concatenate([np.arange(1, one.count + 1) if one.ids is None else one.ids for one in parts])
    return MeshPoints(tuple(joined), ids=ids)
