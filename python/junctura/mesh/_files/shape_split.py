"""Splits mixed blocks into blocks of one shape. Elements keep their order within a shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from junctura.mesh._model import Array, MeshBlock, MeshField, MeshSet, MeshStep
from junctura.mesh._shapes import BY_VTK


class ShapeSplit:
    """Splits the meshes of a series, which share points, blocks and sets.

    Parameters
    ----------
    mesh
        The first step.

    """

    def __init__(self, mesh: MeshStep) -> None:
        self._whole = mesh
        # The names and elements of the parts of each block that is split.
        self._parts: dict[str, list[tuple[str, Array]]] = {}
        self._blocks: dict[str, MeshBlock] = {}
        for name, block in mesh.blocks.items():
            if block.shape == "mixed" and block.count:
                self._split(name, block)
            else:
                self._blocks[name] = block
        self._sets = {name: self._moved(one) for name, one in mesh.sets.items()}

    @classmethod
    def is_needed(cls, mesh: MeshStep) -> bool:
        """Whether a mesh has mixed blocks."""
        return any(block.shape == "mixed" and block.count for block in mesh.blocks.values())

    def mesh(self, mesh: MeshStep) -> MeshStep:
        """Returns a step with blocks of one shape; all steps share these."""
        fields: list[MeshField] = []
        for one in mesh.fields:
            if one.association == "element" and one.on in self._parts:
                for part, chosen in self._parts[one.on]:
                    values = {component: array[chosen] for component, array in one.values.items()}
                    fields.append(replace(one, on=part, values=values))
            else:
                fields.append(one)
        return replace(mesh, points=self._whole.points, blocks=self._blocks, sets=self._sets, fields=tuple(fields))

    def _split(self, name: str, block: MeshBlock) -> None:
        self._parts[name] = []
        for kind in np.unique(block.of_kinds):
            shape = BY_VTK[int(kind)]
            chosen = np.flatnonzero(block.of_kinds == kind)
            part = f"{name}_{shape.name}"
            while part in self._whole.blocks or part in self._blocks:
                part += "_"
            rows = block.connectivity[block.offsets[:-1][chosen][:, None] + np.arange(shape.points)]
            self._blocks[part] = MeshBlock(
                block.points,
                shape.name,
                rows.ravel(),
                ids=None if block.ids is None else block.ids[chosen],
                attributes={key: values[chosen] for key, values in block.attributes.items()},
            )
            self._parts[name].append((part, chosen))

    def _moved(self, one: MeshSet) -> MeshSet:
        """Returns a set with the new places of its elements."""
        if one.association == "vertex":
            return one
        places: list[Array] = []
        start = 0
        for name, block in self._whole.blocks_on(one.points).items():
            found = np.arange(start, start + block.count)
            if name in self._parts:
                order = np.concatenate([chosen for _, chosen in self._parts[name]])
                found[order] = np.arange(start, start + block.count)
            places.append(found)
            start += block.count
        return replace(one, indices=np.concatenate(places)[one.indices])
