"""Writes Exodus II files.

The file appears complete: it is written beside its place, and renamed by `close`. All names are defined by the first
step, as libraries of Exodus expect. Several sets of points become one; structured blocks
get connectivity, and mixed blocks are split by shapes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import accumulate

import numpy as np

from junctura import _forks
from junctura.errors import InvalidArgument, Unsupported
from junctura.mesh._compare import same_static
from junctura.mesh._files.shape_split import ShapeSplit
from junctura.mesh._files.writing import FileMeshWriter
from junctura.mesh._joined import are_numbers
from junctura.mesh._model import Array, CellFaces, MeshBlock, MeshField, MeshSet, MeshStep
from junctura.mesh._shapes import SHAPES, to_file

_NAME_MIN = 32
_INT32_MAX = (1 << 31) - 1
# Prefixes of the variables of sets.
_SETS = {
    "vertex": ("ns", "node_sets", "nset"),
    "side": ("ss", "side_sets", "sset"),
    "element": ("els", "elem_sets", "elset"),
}


class ExodusWriter(FileMeshWriter):
    """Writes the steps of a series into an Exodus file.

    Parameters
    ----------
    path
        The file; an existing one is replaced by `close`.

    Raises
    ------
    ImportError
        Without netCDF4: ``pip install 'junctura[mesh]'``.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._netcdf = _forks.needed("netCDF4", "mesh")
        self._split: ShapeSplit | None = None
        self._variables: dict[tuple[str, str, str], str] = {}
        self._globals: list[str] = []
        self._steps = 0

    def write(self, mesh: MeshStep) -> None:
        """Writes one step; the first one with points, blocks and sets.

        Raises
        ------
        Unsupported
            The mesh has what Exodus cannot express: several values of a global, another mesh than in the first step.
        InvalidArgument
            A field was not in the first step.

        """
        if self._first is None:
            mesh.check()
            self._first = mesh
            self._split = ShapeSplit(mesh) if ShapeSplit.is_needed(mesh) else None
            self._begin(mesh if self._split is None else self._split.mesh(mesh))
        elif not mesh.shares(self._first) and not same_static(mesh, self._first):
            raise Unsupported(str(self._path), f"the mesh changes at step {mesh.step}; an Exodus file has one mesh")
        if self._split is not None:
            mesh = self._split.mesh(mesh)
        if mesh.time is None and not mesh.fields and not mesh.globals:
            return
        self._file.variables["time_whole"][self._steps] = mesh.step if mesh.time is None else mesh.time
        if list(mesh.globals) != self._globals:
            raise InvalidArgument(str(self._path), f"step {mesh.step} has other global values than the first step")
        if self._globals:
            self._file.variables["vals_glo_var"][self._steps] = [mesh.globals[name].item() for name in self._globals]
        self._write_fields(mesh)
        self._steps += 1

    def _write_fields(self, mesh: MeshStep) -> None:
        # Values of one variable may be on several sets of points.
        nodal: dict[str, Array] = {}
        missing = dict(self._variables)
        for where, values in _scalars(mesh.fields):
            name = self._variables.get(where)
            missing.pop(where, None)
            if name is None:
                if values.size:
                    cause = f"field {where[2]} on {where[1]} of step {mesh.step} was not in the first step"
                    raise InvalidArgument(str(self._path), cause)
            elif where[0] == "vertex":
                whole = nodal.setdefault(name, np.full(self._file.dimensions["num_nodes"].size, np.nan))
                whole[self._starts[where[1]] : self._starts[where[1]] + values.size] = values
            else:
                self._file.variables[name][self._steps] = values
        for name, values in nodal.items():
            self._file.variables[name][self._steps] = values
        if missing:
            _, on, name = next(iter(missing))
            raise InvalidArgument(
                str(self._path), f"step {mesh.step} has no field {name} on {on}; the first step has it"
            )

    def _begin(self, mesh: MeshStep) -> None:
        # The number of the first point of each set of points.
        counts = [points.count for points in mesh.points.values()]
        self._starts = dict(zip(mesh.points, accumulate(counts, initial=0), strict=False))
        self._blocks = {name: block.unstructured() for name, block in mesh.blocks.items()}
        self._wide = sum(counts) > _INT32_MAX
        self._file = self._netcdf.Dataset(
            self._partial, "w", format="NETCDF4" if self._wide else "NETCDF3_64BIT_OFFSET"
        )
        self._file.set_fill_off()
        self._word = "f4" if _is_single(mesh) else "f8"
        self._define_all(mesh)

    def _define_all(self, mesh: MeshStep) -> None:
        names = [*mesh.blocks, *mesh.sets, *mesh.globals, *(name for (_, _, name), _ in _scalars(mesh.fields))]
        longest = max((len(name.encode()) for name in names), default=0)
        self._names_size = max(_NAME_MIN, longest) + 1
        word = 4 if self._word == "f4" else 8
        self._file.setncatts(
            {
                "api_version": np.float32(8.03),
                "version": np.float32(8.03),
                "floating_point_word_size": np.int32(word),
                "file_size": np.int32(1),
                "maximum_name_length": np.int32(self._names_size - 1),
                "int64_status": np.int32(0),
                "title": mesh.title,
            }
        )
        self._file.createDimension("len_string", 33)
        self._file.createDimension("len_name", self._names_size)
        self._file.createDimension("time_step", None)
        self._file.createVariable("time_whole", "f8", ("time_step",))
        self._write_points(mesh)
        self._write_blocks()
        for association, (prefix, word_of_dimension, _) in _SETS.items():
            self._write_sets(prefix, word_of_dimension, _of(mesh.sets, association))
        self._define_fields(mesh)

    def _write_points(self, mesh: MeshStep) -> None:
        axes = [points.coordinates() for points in mesh.points.values()]
        rank = max(map(len, axes), default=3)
        count = sum(points.count for points in mesh.points.values())
        self._file.createDimension("num_dim", rank)
        # A dimension of 0 would be one of records.
        for name, size in {"num_nodes": count, "num_elem": sum(block.count for block in self._blocks.values())}.items():
            if size:
                self._file.createDimension(name, size)
        self._put_names("coor_names", "num_dim", list("xyz"[:rank]))
        if not count:
            return
        for index, axis in enumerate("xyz"[:rank]):
            parts = [one[index] if index < len(one) else np.zeros(one[0].size) for one in axes]
            self._put(f"coord{axis}", self._word, ("num_nodes",), np.concatenate(parts))
        if any(points.ids is not None for points in mesh.points.values()):
            ids = [np.arange(1, one.count + 1) if one.ids is None else one.ids for one in mesh.points.values()]
            self._put("node_num_map", self._integer, ("num_nodes",), np.concatenate(ids))

    @property
    def _integer(self) -> str:
        return "i8" if self._wide else "i4"

    def _write_blocks(self) -> None:
        blocks = self._blocks
        if not blocks:
            return
        numbers = _numbers([block.number for block in blocks.values()])
        self._file.createDimension("num_el_blk", len(blocks))
        counts = [block.count for block in blocks.values()]
        self._put("eb_status", "i4", ("num_el_blk",), np.array([int(count > 0) for count in counts]))
        self._put("eb_prop1", "i4", ("num_el_blk",), numbers, name="ID")
        self._put_names("eb_names", "num_el_blk", list(blocks))
        if sum(counts) and any(block.ids is not None for block in blocks.values()):
            first = accumulate(counts, initial=1)
            ids = [
                np.arange(start, start + block.count) if block.ids is None else block.ids
                for start, block in zip(first, blocks.values(), strict=False)
            ]
            self._put("elem_num_map", self._integer, ("num_elem",), np.concatenate(ids))
        self._write_faces()
        for index, block in enumerate(blocks.values(), 1):
            if block.count:
                self._write_block(index, block)

    def _write_faces(self) -> None:
        """Faces of all polyhedra are one block; each block of polyhedra refers to its own ones."""
        self._face_starts: dict[int, int] = {}
        parts: list[tuple[CellFaces, int]] = []
        count = 0
        for block in self._blocks.values():
            if block.faces is not None and not any(block.faces is part for part, _ in parts):
                parts.append((block.faces, self._starts[block.points]))
                self._face_starts[id(block.faces)] = count
                count += block.faces.sizes.size
        if not parts:
            return
        connectivity = np.concatenate([faces.connectivity + 1 + start for faces, start in parts])
        self._file.createDimension("num_face", count)
        self._file.createDimension("num_fa_blk", 1)
        self._put("fa_status", "i4", ("num_fa_blk",), np.array([1]))
        self._put("fa_prop1", "i4", ("num_fa_blk",), np.array([1]), name="ID")
        self._file.createDimension("num_fa_in_blk1", count)
        self._file.createDimension("num_nod_per_fa1", connectivity.size)
        self._put("fbconn1", self._integer, ("num_nod_per_fa1",), connectivity, elem_type="nsided")
        sizes = np.concatenate([faces.sizes for faces, _ in parts])
        self._put("fbepecnt1", "i4", ("num_fa_in_blk1",), sizes, entity_type1="NODE", entity_type2="FACE")

    def _write_block(self, index: int, block: MeshBlock) -> None:
        many = f"num_el_in_blk{index}"
        self._file.createDimension(many, block.count)
        start = 1 + self._starts[block.points]
        if block.shape == "polyhedral":
            self._file.createDimension(f"num_fac_per_el{index}", block.connectivity.size)
            faces = block.connectivity + 1 + self._face_starts[id(block.faces)]
            self._put(f"facconn{index}", self._integer, (f"num_fac_per_el{index}",), faces, elem_type="NFACED")
            assert block.sizes is not None
            kinds = {"entity_type1": "FACE", "entity_type2": "ELEM"}
            self._put(f"ebepecnt{index}", "i4", (many,), block.sizes, **kinds)
        elif block.shape == "polygonal":
            self._file.createDimension(f"num_nod_per_el{index}", block.connectivity.size)
            points = block.connectivity + start
            self._put(f"connect{index}", self._integer, (f"num_nod_per_el{index}",), points, elem_type="nsided")
            assert block.sizes is not None
            kinds = {"entity_type1": "NODE", "entity_type2": "ELEM"}
            self._put(f"ebepecnt{index}", "i4", (many,), block.sizes, **kinds)
        else:
            shape = SHAPES[block.shape]
            self._file.createDimension(f"num_nod_per_el{index}", shape.points)
            rows = to_file(block.connectivity.reshape(-1, shape.points), shape.exodus_order) + start
            dimensions = (many, f"num_nod_per_el{index}")
            self._put(f"connect{index}", self._integer, dimensions, rows, elem_type=block.label or shape.exodus)
        if block.attributes:
            self._file.createDimension(f"num_att_in_blk{index}", len(block.attributes))
            values = np.stack(list(block.attributes.values()), axis=1)
            self._put(f"attrib{index}", self._word, (many, f"num_att_in_blk{index}"), values)
            self._put_names(f"attrib_name{index}", f"num_att_in_blk{index}", list(block.attributes))

    def _write_sets(self, prefix: str, word: str, sets: Mapping[str, MeshSet]) -> None:
        if not sets:
            return
        self._file.createDimension(f"num_{word}", len(sets))
        numbers = _numbers([one.number for one in sets.values()])
        status = np.array([int(one.indices.size > 0) for one in sets.values()])
        self._put(f"{prefix}_status", "i4", (f"num_{word}",), status)
        self._put(f"{prefix}_prop1", "i4", (f"num_{word}",), numbers, name="ID")
        self._put_names(f"{prefix}_names", f"num_{word}", list(sets))
        for index, one in enumerate(sets.values(), 1):
            if one.indices.size:
                self._write_set(prefix, index, one)

    def _write_set(self, prefix: str, index: int, one: MeshSet) -> None:
        stem = {"ns": "num_nod_ns", "ss": "num_side_ss", "els": "num_ele_els"}[prefix]
        self._file.createDimension(f"{stem}{index}", one.indices.size)
        if prefix == "ns":
            points = one.indices + 1 + self._starts[one.points]
            self._put(f"node_ns{index}", self._integer, (f"{stem}{index}",), points)
        else:
            elements = self._elements(one.points)[one.indices] + 1
            self._put(f"elem_{prefix}{index}", self._integer, (f"{stem}{index}",), elements)
        if one.sides is not None:
            self._put(f"side_{prefix}{index}", self._integer, (f"{stem}{index}",), one.sides + 1)
        if one.factors is not None:
            dimension = f"{stem}{index}"
            if one.factors.size != one.indices.size or prefix == "ss":
                dimension = f"num_df_{prefix}{index}"
                self._file.createDimension(dimension, one.factors.size)
            self._put(f"dist_fact_{prefix}{index}", self._word, (dimension,), one.factors)

    def _elements(self, points: str) -> Array:
        """Returns the place among all elements of each element on a set of points."""
        starts = accumulate((block.count for block in self._blocks.values()), initial=0)
        parts = [
            np.arange(start, start + block.count)
            for start, block in zip(starts, self._blocks.values(), strict=False)
            if block.points == points
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _define_fields(self, mesh: MeshStep) -> None:
        found = [where for where, _ in _scalars(mesh.fields)]
        nodal = list(dict.fromkeys(name for kind, _, name in found if kind == "vertex"))
        if "num_nodes" not in self._file.dimensions:
            nodal = []
        self._put_names("name_nod_var", "num_nod_var", nodal)
        for at, name in enumerate(nodal, 1):
            self._file.createVariable(f"vals_nod_var{at}", self._word, ("time_step", "num_nodes"))
            for association, on, there in found:
                if association == "vertex" and there == name:
                    self._variables[association, on, name] = f"vals_nod_var{at}"
        self._define_on("elem", "eb", "num_el_in_blk", list(mesh.blocks), found, "element")
        for association, (prefix, _, kind) in _SETS.items():
            stem = {"ns": "num_nod_ns", "ss": "num_side_ss", "els": "num_ele_els"}[prefix]
            self._define_on(kind, prefix, stem, list(_of(mesh.sets, association)), found, "set")
        self._globals = list(mesh.globals)
        for name, value in mesh.globals.items():
            if value.size != 1:
                raise Unsupported(f"global {name}", f"{value.size} values; an Exodus file has one for each name")
        self._put_names("name_glo_var", "num_glo_var", self._globals)
        if self._globals:
            self._file.createVariable("vals_glo_var", "f8", ("time_step", "num_glo_var"))

    def _define_on(
        self, kind: str, short: str, stem: str, places: list[str], found: Iterable[tuple[str, str, str]], of: str
    ) -> None:
        here = [(on, name) for association, on, name in found if association == of and on in places]
        names = list(dict.fromkeys(name for _, name in here))
        if not names:
            return
        self._put_names(f"name_{kind}_var", f"num_{kind}_var", names)
        table = np.zeros((len(places), len(names)), np.int32)
        for on, name in here:
            index, at = places.index(on), names.index(name)
            if f"{stem}{index + 1}" in self._file.dimensions:
                table[index, at] = 1
                variable = f"vals_{kind}_var{at + 1}{short}{index + 1}"
                self._file.createVariable(variable, self._word, ("time_step", f"{stem}{index + 1}"))
                self._variables[of, on, name] = variable
        many = {"elem": "num_el_blk", "nset": "num_node_sets", "sset": "num_side_sets", "elset": "num_elem_sets"}[kind]
        self._put(f"{kind}_var_tab", "i4", (many, f"num_{kind}_var"), table)

    def _put(
        self, variable_name: str, kind: str, dimensions: tuple[str, ...], values: Array, **attributes: str
    ) -> None:
        if kind == "i4" and values.size and (values.max() > _INT32_MAX or values.min() < -_INT32_MAX - 1):
            raise Unsupported(variable_name, f"the number {values.max()} needs 64 bits")
        variable = self._file.createVariable(variable_name, kind, dimensions)
        for attribute, value in attributes.items():
            variable.setncattr(attribute, value)
        variable[...] = values

    def _put_names(self, name: str, dimension: str, names: list[str]) -> None:
        if not names:
            return
        if dimension not in self._file.dimensions:
            self._file.createDimension(dimension, len(names))
        variable = self._file.createVariable(name, "S1", (dimension, "len_name"))
        rows = np.array([one.encode() for one in names], f"S{self._names_size}")
        variable[...] = rows.view("S1").reshape(len(names), self._names_size)


def _scalars(fields: Iterable[MeshField]) -> list[tuple[tuple[str, str, str], Array]]:
    return [((one.association, one.on, name), values) for one in fields for name, values in one.scalars()]


def _of(sets: Mapping[str, MeshSet], association: str) -> dict[str, MeshSet]:
    return {name: one for name, one in sets.items() if one.association == association}


def _numbers(known: list[int | None]) -> Array:
    """Returns a number for each; those without one get a free one."""
    if not are_numbers(known):
        return np.arange(1, len(known) + 1)
    taken = set(known)
    free = (number for number in range(1, len(known) + len(taken) + 1) if number not in taken)
    return np.array([next(free) if number is None else number for number in known])


def _is_single(mesh: MeshStep) -> bool:
    """Whether no value needs more than 32 bits."""
    arrays = [axis for points in mesh.points.values() for axis in points.axes]
    arrays += [values for _, values in _scalars(mesh.fields)]
    arrays += [values for block in mesh.blocks.values() for values in block.attributes.values()]
    arrays += [one.factors for one in mesh.sets.values() if one.factors is not None]
    return bool(arrays) and all(array.dtype == np.float32 for array in arrays)
