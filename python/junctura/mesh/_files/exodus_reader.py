"""Reads Exodus II files: netCDF files with a convention for names (SAND92-2137, and the header exodusII_int.h of its
library).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from junctura import _forks
from junctura.errors import Corrupt, Unsupported
from junctura.mesh._files.netcdf_header import ClassicFile
from junctura.mesh._files.reading import FileMeshReader, check_count, check_links, check_size, check_storage, reading
from junctura.mesh._joined import JOINED_POINTS
from junctura.mesh._model import Array, CellFaces, MeshBlock, MeshField, MeshPoints, MeshSet, MeshStep
from junctura.mesh._shapes import SHAPES, CellShape, from_file

# The only set of points of a file.
POINTS = JOINED_POINTS
_HDF5 = b"\x89HDF\r\n\x1a\n"
# Beginnings of element types, and the shapes that they mean; the number of points decides between these.
_FAMILIES = {
    "point": ("CIRCLE", "SPHERE"),
    "line": ("BAR", "BEAM", "EDGE", "LINE", "ROD", "TRUSS"),
    "tri": ("TRI", "TRIANGLE", "TRISHELL"),
    "quad": ("QUAD", "SHELL"),
    "tet": ("TET", "TETRA"),
    "pyramid": ("PYRA", "PYRAMID"),
    "wedge": ("WEDGE",),
    "hex": ("HEX",),
}
# Variables that are read with a step, or that others imply.
_KINDS = "nod|elem|nset|sset|elset|glo"
_IMPLIED = re.compile(
    rf"time_whole|coor_names|(eb|ns|ss|els|fa)_status|fa_(prop1|names)|name_({_KINDS})_var|({_KINDS})_var_tab"
    rf"|vals_({_KINDS})_var(\d+((eb|ns|ss|els)\d+)?)?"
)
# Types that a shape means by itself.
_PLAIN = ("SPHERE", "BAR", "TRI", "TRIANGLE", "QUAD", "TET", "TETRA", "PYRA", "PYRAMID", "WEDGE", "HEX")


class ExodusReader(FileMeshReader):
    """An Exodus file: iterate over it for its steps.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    ImportError
        Without netCDF4: ``pip install 'junctura[mesh]'``.
    NotFound, Io
        The file cannot be read.
    Corrupt
        It is not an Exodus file.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._used: set[str] = set()
        super().__init__(path, _opened)

    def __len__(self) -> int:
        return max(1, self._count("time_step") if "time_whole" in self._file.variables else 0)

    def mesh(self, index: int) -> MeshStep:
        """Returns the mesh with the fields of one step, counted from 0."""
        static = self._static
        if not self._count("time_step") or "time_whole" not in self._file.variables:
            return static
        with reading(self.path):
            time = float(self._at("time_whole", index))
            mesh = replace(
                static, fields=tuple(self._fields(index)), step=index + 1, time=time, globals=self._globals(index)
            )
            for one in mesh.fields:
                mesh.check_field(one)
        return mesh

    def _begin(self) -> None:
        self._file.set_auto_maskandscale(False)
        self._classic = ClassicFile(self.path) if ClassicFile.is_one(self.path) else None
        if not {"num_dim", "num_nodes"} & set(self._file.dimensions):
            raise Corrupt(self.path, "a netCDF file without num_dim and num_nodes is not an Exodus file")
        check_size(self.path, "time_whole", 8 * self._count("time_step"))
        self._static = self._read_static()
        self._static.check()

    def _count(self, dimension: str) -> int:
        found = self._file.dimensions.get(dimension)
        return 0 if found is None else len(found)

    def _named(self, dimension: str) -> int:
        """Returns a number of blocks, sets or variables."""
        return check_count(self.path, dimension, self._count(dimension))

    def _read_static(self) -> MeshStep:
        points = {POINTS: MeshPoints(self._axes(), ids=self._numbers("node_num_map"))}
        blocks = self._blocks()
        title = str(getattr(self._file, "title", "")).strip()
        sets = self._sets()
        return MeshStep(points, blocks, sets, title=title, notes=self._unused(blocks))

    def _unused(self, blocks: dict[str, MeshBlock]) -> tuple[str, ...]:
        """Returns the variables that this model cannot express, without the numbers of blocks and maps."""
        has_polyhedra = any(block.faces is not None for block in blocks.values())
        used = {name for name in self._used if has_polyhedra or not name.startswith("fb")}
        names = (name for name in self._file.variables if name not in used and not _IMPLIED.fullmatch(name))
        return tuple(dict.fromkeys(re.sub(r"\d+$", "", name) for name in sorted(names)))

    def _axes(self) -> tuple[Array, ...]:
        rank = self._count("num_dim")
        if rank > 3:
            raise Corrupt(self.path, f"num_dim is {rank}; 1 to 3 are possible")
        if "coord" in self._file.variables:
            coordinates = self._get("coord")
            return tuple(coordinates[axis] for axis in range(rank))
        count = self._count("num_nodes")
        return tuple(self._get(f"coord{axis}") if count else np.empty(0) for axis in "xyz"[:rank])

    def _numbers(self, name: str) -> Array | None:
        """Returns a map of numbers, unless it is that of a file without one."""
        if name not in self._file.variables:
            return None
        found = self._get(name)
        return None if (found == np.arange(1, found.size + 1)).all() else found

    def _blocks(self) -> dict[str, MeshBlock]:
        count = self._named("num_el_blk")
        numbers = self._get("eb_prop1") if "eb_prop1" in self._file.variables else np.arange(1, count + 1)
        names = _unique(self._names("eb_names", count), numbers, "block")
        ids = self._numbers("elem_num_map")
        faces = self._faces()
        blocks: dict[str, MeshBlock] = {}
        start = 0
        for index, name in enumerate(names, 1):
            block = self._block(index, int(numbers[index - 1]), faces)
            if ids is not None:
                block = replace(block, ids=ids[start : start + block.count])
            start += block.count
            blocks[name] = block
        return blocks

    def _block(self, index: int, number: int, faces: CellFaces | None) -> MeshBlock:
        attributes = self._attributes(index)
        polyhedra = f"facconn{index}" in self._file.variables
        name = f"facconn{index}" if polyhedra else f"connect{index}"
        if name not in self._file.variables:
            empty = np.empty(0, np.int64)
            return MeshBlock(POINTS, "mixed", empty, sizes=empty, kinds=empty.astype(np.uint8), number=number)
        variable = self._file.variables[name]
        kind = str(getattr(variable, "elem_type", "")).strip("\0 ").upper()
        connectivity = self._get(name) - 1
        sizes = f"ebepecnt{index}"
        if sizes in self._file.variables:
            shape = "polyhedral" if polyhedra else "polygonal"
            flat, of_each = connectivity.ravel(), self._get(sizes)
            return MeshBlock(
                POINTS,
                shape,
                flat,
                sizes=of_each,
                faces=faces if polyhedra else None,
                number=number,
                attributes=attributes,
            )
        shape_of_block = _shape(self.path, kind, connectivity.shape[1])
        base = re.sub(r"\d+$", "", kind)
        return MeshBlock(
            POINTS,
            shape_of_block.name,
            from_file(connectivity, shape_of_block.exodus_order).ravel(),
            number=number,
            attributes=attributes,
            label="" if base in _PLAIN else kind,
        )

    def _attributes(self, index: int) -> dict[str, Array]:
        if f"attrib{index}" not in self._file.variables:
            return {}
        values = self._get(f"attrib{index}")
        names = self._names(f"attrib_name{index}", values.shape[1])
        return {name or f"attribute_{at}": np.ascontiguousarray(values[:, at - 1]) for at, name in enumerate(names, 1)}

    def _faces(self) -> CellFaces | None:
        parts, sizes = [], []
        for index in range(1, self._named("num_fa_blk") + 1):
            if f"fbconn{index}" in self._file.variables:
                found = self._get(f"fbconn{index}") - 1
                parts.append(found.ravel())
                each = f"fbepecnt{index}"
                sizes.append(
                    self._get(each)
                    if each in self._file.variables
                    else np.full(found.shape[0], found.shape[1], np.int64)
                )
        return CellFaces(np.concatenate(parts), np.concatenate(sizes)) if parts else None

    def _sets(self) -> dict[str, MeshSet]:
        sets: dict[str, MeshSet] = {}
        for prefix, dimension, word, association in (
            ("ns", "num_node_sets", "nodeset", "vertex"),
            ("ss", "num_side_sets", "sideset", "side"),
            ("els", "num_elem_sets", "elemset", "element"),
        ):
            count = self._named(dimension)
            prop = f"{prefix}_prop1"
            numbers = self._get(prop) if prop in self._file.variables else np.arange(1, count + 1)
            for index, name in enumerate(_unique(self._names(f"{prefix}_names", count), numbers, word), 1):
                key = name if name not in sets else f"{word}_{name}"
                sets[key] = self._set(prefix, index, association, int(numbers[index - 1]))
        return sets

    def _set(self, prefix: str, index: int, association: Any, number: int) -> MeshSet:
        entries = f"{'node' if prefix == 'ns' else 'elem'}_{prefix}{index}"
        indices = self._get(entries) - 1 if entries in self._file.variables else np.empty(0, np.int64)
        sides = None
        if association == "side":
            there = f"side_ss{index}" in self._file.variables
            sides = self._get(f"side_ss{index}") - 1 if there else np.empty(0, np.int64)
        factors = f"dist_fact_{prefix}{index}"
        return MeshSet(
            association,
            POINTS,
            indices,
            sides,
            number,
            self._get(factors) if factors in self._file.variables else None,
        )

    def _fields(self, step: int) -> Iterator[MeshField]:
        for at, name in enumerate(self._names("name_nod_var", self._named("num_nod_var")), 1):
            if "vals_nod_var" in self._file.variables:
                values = self._at("vals_nod_var", step, at - 1)
            else:
                values = self._at(f"vals_nod_var{at}", step)
            yield MeshField(name, "vertex", POINTS, {"": values})
        for kind, short, places, association in (
            ("elem", "eb", list(self._static.blocks), "element"),
            ("nset", "ns", self._sets_of("vertex"), "set"),
            ("sset", "ss", self._sets_of("side"), "set"),
            ("elset", "els", self._sets_of("element"), "set"),
        ):
            for at, name in enumerate(self._names(f"name_{kind}_var", self._named(f"num_{kind}_var")), 1):
                for index, on in enumerate(places, 1):
                    variable = f"vals_{kind}_var{at}{short}{index}"
                    if variable in self._file.variables:
                        yield MeshField(name, association, on, {"": self._at(variable, step)})  # type: ignore[arg-type]

    def _sets_of(self, association: str) -> list[str]:
        return [name for name, one in self._static.sets.items() if one.association == association]

    def _globals(self, step: int) -> dict[str, Array]:
        names = self._names("name_glo_var", self._named("num_glo_var"))
        if not names:
            return {}
        values = self._at("vals_glo_var", step)
        return {name: values[at : at + 1] for at, name in enumerate(names)}

    def _get(self, name: str) -> Array:
        return np.ascontiguousarray(self._at(name))

    def _at(self, name: str, *index: int) -> Array:
        """Returns the part of a variable at these first indices."""
        self._used.add(name)
        variable = self._file.variables.get(name)
        if variable is None:
            raise Corrupt(self.path, f"the variable {name} is missing")
        if self._classic is not None:
            self._classic.check(name, index[0] if index else None)
        elements = math.prod(map(int, variable.shape[len(index) :]))
        check_size(self.path, name, elements * np.dtype(variable.dtype).itemsize)
        found: Array = variable[index or ...]
        return found

    def _names(self, name: str, count: int) -> list[str]:
        """Returns texts, which end with a NUL or spaces; empty ones if there are none."""
        if name not in self._file.variables:
            return [""] * count
        rows = self._get(name)
        return [b"".join(row.tolist()).partition(b"\0")[0].decode("utf-8", "replace").rstrip() for row in rows]


def _opened(path: str, mode: str) -> Any:
    _check_files(path)
    return _forks.needed("netCDF4", "mesh").Dataset(path, mode)


def _check_files(path: str) -> None:
    """Refuses a file of netCDF-4, which is one of HDF5, that has parts in other files."""
    with Path(path).open("rb") as file:
        if file.read(len(_HDF5)) != _HDF5:
            return
    h5py = _forks.needed("h5py", "mesh")
    with h5py.File(path, "r") as file:
        check_links(path, file, h5py.ExternalLink)
        file.visititems(lambda _, node: check_storage(path, node))


def _unique(names: list[str], numbers: Array, word: str) -> list[str]:
    """Gives a name to what has none."""
    found = [name or f"{word}_{number}" for name, number in zip(names, numbers, strict=True)]
    taken: set[str] = set()
    for index, name in enumerate(found):
        if name in taken:
            found[index] = f"{name}_{numbers[index]}"
        taken.add(found[index])
    return found


def _shape(path: str, kind: str, points: int) -> CellShape:
    base = re.sub(r"\d+$", "", kind)
    linear = next((name for name, words in _FAMILIES.items() if base in words), None)
    for shape in SHAPES.values():
        if shape.points == points and shape.linear == linear:
            return shape
    if linear is None and base not in ("", "NULL"):
        raise Unsupported(path, f"elements of the type {kind} are unknown")
    raise Unsupported(path, f"elements of the type {kind} with {points} points are unknown")
