"""A `MeshStep` as the tree of docs/formats/mesh.md (Conduit's Mesh Blueprint), and back.

The writer builds the parts that do not change once for a series, so that their arrays keep their identity, and steps
can refer to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from junctura.errors import InvalidArgument, TooLarge
from junctura.mesh._model import Array, CellFaces, MeshBlock, MeshField, MeshPoints, MeshSet, MeshStep
from junctura.mesh._payload import Tree, leaves
from junctura.mesh._shapes import BY_VTK, RAGGED, SHAPES

Node: TypeAlias = dict[str, Any]

_AXES = ("x", "y", "z")
_INDICES = ("i", "j", "k")
# Points of a grid that has positions along axes only.
_GRID_MAX = 1 << 31
# Bytes of the name of a field's node, which may get a number.
_KEY_MAX = 240
# Numbers that a tree may refer to, or that are made for it: so many, and so many times those that it has.
_WORK_MIN = 1 << 26
_WORK_TIMES = 16
# Parts of a mesh that this model does not have.
_UNKNOWN = ("adjsets", "matsets", "nestsets", "specsets")


def static_tree(mesh: MeshStep) -> Node:
    """Returns the tree of what steps share: points, blocks and sets."""
    tree: Node = {
        "coordsets": {name: _coordset(points) for name, points in mesh.points.items()},
        "topologies": {name: _topology(block, mesh.points[block.points]) for name, block in mesh.blocks.items()},
    }
    own = {
        "title": mesh.title or None,
        "coordsets": _only({name: _only({"ids": points.ids}) for name, points in mesh.points.items()}),
        "topologies": _only({name: _block_own(block) for name, block in mesh.blocks.items()}),
        "sets": {name: _set_node(one) for name, one in mesh.sets.items()},
    }
    return {**tree, "junctura": _only(own)} if _only(own) else tree


def step_tree(static: Node, mesh: MeshStep) -> Node:
    """Returns the tree of one step; its points, blocks and sets are those of `static`."""
    on_mesh = [one for one in mesh.fields if one.association != "set"]
    on_sets = [one for one in mesh.fields if one.association == "set"]
    own = {**static.get("junctura", {})}
    if on_sets:
        own["fields"] = dict(_named(on_sets, lambda one: {"set": one.on, "values": _values(one)}))
    if mesh.globals:
        own["globals"] = dict(mesh.globals)
    state: Node = {"cycle": _scalar(mesh.step)}
    if mesh.time is not None:
        state["time"] = np.array([mesh.time])
    tree = {**static, "state": state}
    if on_mesh:
        tree["fields"] = dict(_named(on_mesh, lambda one: _field_node(one, mesh)))
    if own:
        tree["junctura"] = own
    return tree


def _coordset(points: MeshPoints) -> Node:
    return {"type": points.kind, "values": dict(zip(_AXES, points.axes, strict=False))}


def _topology(block: MeshBlock, points: MeshPoints) -> Node:
    node: Node = {"coordset": block.points, "type": "unstructured"}
    if block.shape == "structured":
        if points.kind != "explicit" and points.dims == tuple(extent + 1 for extent in block.dims):
            return {**node, "type": points.kind}
        dims = {name: _scalar(extent) for name, extent in zip(_INDICES, block.dims, strict=False)}
        return {**node, "type": "structured", "elements": {"dims": dims}}
    elements: Node = {"shape": block.shape, "connectivity": block.connectivity}
    if block.sizes is not None:
        elements |= {"sizes": block.sizes, "offsets": block.offsets[:-1]}
    if block.kinds is not None:
        present = [BY_VTK[int(kind)] for kind in np.unique(block.kinds)]
        elements |= {"shapes": block.kinds, "shape_map": {shape.name: _scalar(shape.vtk) for shape in present}}
    node["elements"] = elements
    if block.faces is not None:
        faces = block.faces
        node["subelements"] = {"shape": "polygonal", "connectivity": faces.connectivity, "sizes": faces.sizes}
    return node


def _block_own(block: MeshBlock) -> Node:
    return _only(
        {
            "id": None if block.number is None else _scalar(block.number),
            "ids": block.ids,
            "attributes": dict(block.attributes),
            "label": block.label or None,
        }
    )


def _set_node(one: MeshSet) -> Node:
    node = {
        "association": one.association,
        "coordset": one.points,
        "id": None if one.number is None else _scalar(one.number),
        "kind": one.kind or None,
        "indices": one.indices,
        "sides": one.sides,
        "factors": one.factors,
    }
    return _only(node)


def _field_node(one: MeshField, mesh: MeshStep) -> Node:
    topology = one.on
    if one.association == "vertex":
        topology = next(iter(mesh.blocks_on(one.on)), "")
        if not topology:
            raise InvalidArgument(f"field {one.name}", f"no block is on the points {one.on}")
    return {"association": one.association, "topology": topology, "values": _values(one)}


def _values(one: MeshField) -> Any:
    return one.values[""] if "" in one.values else dict(one.values)


def _named(fields: Sequence[MeshField], node: Any) -> Iterator[tuple[str, Node]]:
    """Gives each field a key of its own; a key that differs from the field's name is accompanied by the name."""
    taken: set[str] = set()
    for one in fields:
        key = one.name
        if key in taken:
            key = f"{one.name}@{one.on}"
        # A node has a name of limited length.
        base = key if len(key.encode()) <= _KEY_MAX else "field"
        key = base
        at = 2
        while key in taken:
            key = f"{base}#{at}"
            at += 1
        taken.add(key)
        yield key, ({} if key == one.name else {"name": one.name}) | node(one)


def _scalar(value: int) -> Array:
    return np.array([value], np.int64)


def _only(node: Mapping[str, Any]) -> Node:
    """Leaves out what is absent."""
    return {name: child for name, child in node.items() if isinstance(child, np.ndarray) or child not in (None, {})}


class MeshTrees:
    """Builds meshes from trees of a series; parts that equal those of the tree before are the same objects."""

    def __init__(self) -> None:
        self._static: list[Node] | None = None
        self._mesh: MeshStep | None = None
        self._endings: list[_NameEndings] = []

    def mesh(self, tree: Tree, step: int, time: float | None) -> MeshStep:
        """Returns the mesh of a tree.

        Raises
        ------
        InvalidArgument
            The tree is not a mesh, or has references that do not exist.
        TooLarge
            The mesh is much larger than the tree.

        """
        domains = _domains(tree)
        work = _TreeWork(tree)
        static = [_static_part(domain) for _, domain in domains]
        known = self._mesh
        if known is None or not _same(static, self._static):
            parts = [(name, _static_mesh(domain, work)) for name, domain in domains]
            self._endings = _endings(parts)
            known = _joined(parts, self._endings)
            known.check()
            self._static, self._mesh = static, known
        fields: list[MeshField] = []
        notes: list[str] = []
        values: dict[str, Array] = {}
        for (name, domain), endings in zip(domains, self._endings, strict=True):
            found = _TreeFields(domain, endings, notes)
            fields += found.all()
            values |= found.globals()
            notes += [f"{name}/{part}" if name else part for part in _UNKNOWN if part in domain]
        mesh = MeshStep(
            known.points,
            known.blocks,
            known.sets,
            tuple(fields),
            step,
            time,
            values,
            known.title,
            tuple(dict.fromkeys(notes)),
        )
        for one in mesh.fields:
            mesh.check_field(one)
        return mesh


class _TreeWork:
    """Bounds the numbers that a tree refers to, and those that are made for it: a tree has each array once."""

    def __init__(self, tree: Tree) -> None:
        own: dict[int, int] = {}
        referred = 0
        for array in leaves(tree):
            own[id(array)] = array.size
            referred += array.size
        self._limit = max(_WORK_MIN, _WORK_TIMES * sum(own.values()))
        self._done = 0
        self.take(referred, "mesh")

    def take(self, numbers: int, path: str) -> None:
        """Counts numbers before they are made."""
        self._done += numbers
        if self._done > self._limit:
            raise TooLarge(path, f"the mesh needs more than {self._limit} numbers, {_WORK_TIMES} times those it has")


class RankJoin:
    """Makes one mesh of those of all ranks, whose names get `@RANK`.

    Parts that equal those of the step before are the same objects.
    """

    def __init__(self) -> None:
        self._parts: list[MeshStep] = []
        self._joined: MeshStep | None = None

    def mesh(self, parts: Sequence[tuple[str, MeshStep]]) -> MeshStep:
        """Returns the mesh of all parts."""
        if len(parts) == 1:
            return parts[0][1]
        meshes = [mesh for _, mesh in parts]
        known = self._joined
        if known is None or not all(map(MeshStep.shares, meshes, self._parts)) or len(meshes) != len(self._parts):
            known = self._joined = _joined(parts, [_NameEndings.all(rank) for rank, _ in parts])
            self._parts = meshes
        fields = [
            MeshField(one.name, one.association, f"{one.on}@{rank}", one.values)
            for rank, mesh in parts
            for one in mesh.fields
        ]
        notes = dict.fromkeys(note for mesh in meshes for note in mesh.notes)
        return MeshStep(
            known.points,
            known.blocks,
            known.sets,
            tuple(fields),
            meshes[0].step,
            next((mesh.time for mesh in meshes if mesh.time is not None), None),
            next((mesh.globals for mesh in meshes if mesh.globals), {}),
            known.title,
            tuple(notes),
        )


def _domains(tree: Tree) -> list[tuple[str, Node]]:
    if isinstance(tree, dict) and "coordsets" in tree:
        return [("", tree)]
    if tree is None or (isinstance(tree, (dict, list)) and not tree):
        # A rank without a part of the mesh.
        return []
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = [(str(name), child) for name, child in children if isinstance(child, dict) and "coordsets" in child]
    if not found:
        raise InvalidArgument("mesh", "the tree has no coordsets, so it is not a mesh")
    return found


def _static_part(domain: Node) -> Node:
    own = _child(domain, "junctura")
    mine = {name: own.get(name) for name in ("title", "coordsets", "topologies", "sets")}
    return {"coordsets": domain["coordsets"], "topologies": domain.get("topologies"), "own": mine}


def _same(first: Any, second: Any) -> bool:
    """Whether two trees have the same texts, and identical arrays; short ones may be equal."""
    if isinstance(first, np.ndarray):
        if first is second:
            return True
        short = isinstance(second, np.ndarray) and first.size == second.size <= 3
        return short and bool((first == second).all())
    if isinstance(first, dict):
        alike = isinstance(second, dict) and list(first) == list(second)
        return alike and all(_same(child, second[name]) for name, child in first.items())
    if isinstance(first, list):
        alike = isinstance(second, list) and len(first) == len(second)
        return alike and all(map(_same, first, second))
    return type(first) is type(second) and first == second


class _NameEndings(NamedTuple):
    """The suffix of the names of a part of a mesh."""

    points: str = ""
    blocks: str = ""
    sets: str = ""

    @classmethod
    def all(cls, name: str) -> _NameEndings:
        return cls(*[f"@{name}"] * 3)


def _endings(parts: Sequence[tuple[str, MeshStep]]) -> list[_NameEndings]:
    """Returns the endings for domains: `@DOMAIN` where several have the same name."""

    def repeated(kind: str) -> bool:
        names = [name for _, part in parts for name in getattr(part, kind)]
        return len(set(names)) < len(names)

    are_needed = {kind: repeated(kind) for kind in _NameEndings._fields}
    return [_NameEndings(**{kind: f"@{name}" for kind, need in are_needed.items() if need}) for name, _ in parts]


def _joined(parts: Sequence[tuple[str, MeshStep]], endings: Sequence[_NameEndings]) -> MeshStep:
    """Returns one mesh of all parts."""
    if len(parts) == 1:
        return parts[0][1]
    points: dict[str, MeshPoints] = {}
    blocks: dict[str, MeshBlock] = {}
    sets: dict[str, MeshSet] = {}
    for (_, part), ending in zip(parts, endings, strict=True):
        points |= {name + ending.points: one for name, one in part.points.items()}
        for name, block in part.blocks.items():
            blocks[name + ending.blocks] = replace(block, points=block.points + ending.points)
        for name, one_set in part.sets.items():
            sets[name + ending.sets] = replace(one_set, points=one_set.points + ending.points)
    return MeshStep(points, blocks, sets, title=next((part.title for _, part in parts if part.title), ""))


def _static_mesh(domain: Node, work: _TreeWork) -> MeshStep:
    own = _child(domain, "junctura")
    coordsets, topologies = _child(domain, "coordsets"), _child(domain, "topologies")
    points = {name: _points_of(name, node, _child(own, "coordsets", name), work) for name, node in coordsets.items()}
    blocks = {
        name: _block_of(name, node, points, _child(own, "topologies", name), work) for name, node in topologies.items()
    }
    sets = {name: _set_of(name, node) for name, node in _child(own, "sets").items()}
    return MeshStep(points, blocks, sets, title=str(own.get("title") or ""))


def _points_of(name: str, node: Any, own: Node, work: _TreeWork) -> MeshPoints:
    path = f"coordsets/{name}"
    kind = _text(node, "type", path)
    if kind == "uniform":
        return MeshPoints(_uniform(node, path, work), "rectilinear", _leaf(own, "ids"))
    values = _child(node, "values")
    if set(values) - set(_AXES):
        raise InvalidArgument(path, f"the axes {', '.join(values)}; only x, y and z are supported")
    axes = tuple(_array(values, axis, path) for axis in _AXES if axis in values)
    if kind not in ("explicit", "rectilinear") or not axes:
        raise InvalidArgument(path, f"the type {kind} with {len(axes)} axes")
    if kind == "rectilinear" and math.prod(axis.size for axis in axes) > _GRID_MAX:
        raise InvalidArgument(path, f"a grid of more than {_GRID_MAX} points")
    return MeshPoints(axes, "explicit" if kind == "explicit" else "rectilinear", _leaf(own, "ids"))


def _uniform(node: Node, path: str, work: _TreeWork) -> tuple[Array, ...]:
    dims = _child(node, "dims")
    axes = []
    for index, axis in zip(_INDICES, _AXES, strict=True):
        if index in dims:
            first = _number(_child(node, "origin"), axis, 0.0)
            distance = _number(_child(node, "spacing"), f"d{axis}", 1.0)
            count = _integer(dims, index, 1, f"{path}/dims")
            if not 1 <= count <= 1 << 24:
                raise InvalidArgument(f"{path}/dims/{index}", f"{count} points")
            work.take(count, path)
            axes.append(first + distance * np.arange(count))
    if math.prod(axis.size for axis in axes) > _GRID_MAX:
        raise InvalidArgument(path, f"a grid of more than {_GRID_MAX} points")
    return tuple(axes)


def _block_of(name: str, node: Any, points: Mapping[str, MeshPoints], own: Node, work: _TreeWork) -> MeshBlock:
    path = f"topologies/{name}"
    on = _text(node, "coordset", path)
    if on not in points:
        raise InvalidArgument(f"{path}/coordset", f"there is no coordset {on}")
    attributes = {one: value for one, value in _child(own, "attributes").items() if isinstance(value, np.ndarray)}
    extra: dict[str, Any] = {
        "number": _integer(own, "id", None, f"junctura/{path}"),
        "ids": _leaf(own, "ids"),
        "attributes": attributes,
        "label": str(own.get("label") or ""),
    }
    kind = _text(node, "type", path)
    if kind == "points":
        work.take(points[on].count, path)
        return MeshBlock(on, "point", np.arange(points[on].count), **extra)
    if kind in ("uniform", "rectilinear"):
        if points[on].kind != "rectilinear":
            raise InvalidArgument(path, f"a topology of the type {kind} needs a coordset of that type")
        return MeshBlock(on, "structured", dims=tuple(extent - 1 for extent in points[on].dims), **extra)
    if kind == "structured":
        dims = _child(node, "elements", "dims")
        sizes = tuple(_integer(dims, index, 0, f"{path}/elements/dims") for index in _INDICES if index in dims)
        return MeshBlock(on, "structured", dims=sizes, **extra)
    if kind != "unstructured":
        raise InvalidArgument(f"{path}/type", f"the type {kind} is unknown")
    return _unstructured(path, on, node, extra, work)


def _unstructured(path: str, on: str, node: Node, extra: dict[str, Any], work: _TreeWork) -> MeshBlock:
    elements = _child(node, "elements")
    shape = _text(elements, "shape", f"{path}/elements")
    connectivity = _array(elements, "connectivity", f"{path}/elements")
    if shape not in RAGGED:
        if shape not in SHAPES:
            raise InvalidArgument(f"{path}/elements/shape", f"the shape {shape} is unknown")
        return MeshBlock(on, shape, connectivity, **extra)
    connectivity, sizes = _in_order(elements, f"{path}/elements", work)
    faces = None
    if shape == "polyhedral":
        faces = CellFaces(*_in_order(_child(node, "subelements"), f"{path}/subelements", work))
    kinds = _kinds(elements, path, work) if shape == "mixed" else None
    return MeshBlock(on, shape, connectivity, sizes=sizes, kinds=kinds, faces=faces, **extra)


def _in_order(part: Node, path: str, work: _TreeWork) -> tuple[Array, Array]:
    """Returns the entries of one element after another, and their number for each element."""
    connectivity, sizes = _array(part, "connectivity", path), _integers(part, "sizes", path)
    if sizes.size and not 0 <= int(sizes.min()) <= int(sizes.max()) <= connectivity.size:
        raise InvalidArgument(f"{path}/sizes", f"{sizes.min()} to {sizes.max()} entries of {connectivity.size}")
    if "offsets" not in part:
        return connectivity, sizes
    work.take(sizes.size, path)
    offsets = _integers(part, "offsets", path)
    first = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)[:-1]]) if sizes.size else sizes
    if offsets.size != sizes.size:
        raise InvalidArgument(f"{path}/offsets", f"{offsets.size} offsets of {sizes.size} elements")
    if (offsets == first).all():
        return connectivity, sizes
    if int(offsets.min()) < 0 or int(offsets.max()) > connectivity.size:
        raise InvalidArgument(f"{path}/offsets", "elements are not in the connectivity")
    starts = offsets.astype(np.int64)
    if int((starts + sizes.astype(np.int64)).max()) > connectivity.size:
        raise InvalidArgument(f"{path}/offsets", "elements are not in the connectivity")
    total = int(sizes.sum(dtype=np.int64))
    work.take(total, path)
    return connectivity[np.repeat(starts - first, sizes) + np.arange(total)], sizes


def _kinds(elements: Node, path: str, work: _TreeWork) -> Array:
    numbers = _integers(elements, "shapes", f"{path}/elements")
    shape_map = _child(elements, "shape_map")
    table = {}
    for name in shape_map:
        if name not in SHAPES:
            raise InvalidArgument(f"{path}/elements/shape_map", f"the shape {name} is unknown in a mixed topology")
        table[_integer(shape_map, name, 0, f"{path}/elements/shape_map")] = SHAPES[name].vtk
    if all(number == kind for number, kind in table.items()):
        return numbers
    work.take(numbers.size, path)
    kinds = np.zeros(numbers.size, np.uint8)
    for number, kind in table.items():
        kinds[numbers == number] = kind
    return kinds


def _set_of(name: str, node: Any) -> MeshSet:
    path = f"junctura/sets/{name}"
    association = _text(node, "association", path)
    if association not in ("vertex", "side", "element"):
        raise InvalidArgument(f"{path}/association", f"the association {association} is unknown")
    return MeshSet(
        association,  # type: ignore[arg-type]
        _text(node, "coordset", path),
        _array(node, "indices", path),
        _leaf(node, "sides"),
        _integer(node, "id", None, path),
        _leaf(node, "factors"),
        str(node.get("kind") or ""),
    )


class _TreeFields:
    def __init__(self, domain: Node, endings: _NameEndings, notes: list[str]) -> None:
        self._domain = domain
        self._endings = endings
        self._notes = notes

    def all(self) -> Iterator[MeshField]:
        for key, node in _child(self._domain, "fields").items():
            found = self._field(key, node)
            if found is not None:
                yield found
        for key, node in _child(self._domain, "junctura", "fields").items():
            path = f"junctura/fields/{key}"
            on = _text(node, "set", path) + self._endings.sets
            yield MeshField(_name(key, node), "set", on, self._values(node, path))

    def globals(self) -> dict[str, Array]:
        found = _child(self._domain, "junctura", "globals")
        return {name + self._endings.blocks: value for name, value in found.items() if isinstance(value, np.ndarray)}

    def _field(self, key: str, node: Any) -> MeshField | None:
        path = f"fields/{key}"
        association = node.get("association") if _is_node(node) else None
        if association not in ("vertex", "element"):
            self._notes.append(f"{path}: its values are not at vertices or elements")
            return None
        topology = _text(node, "topology", path)
        there = _child(self._domain, "topologies").get(topology)
        if there is None:
            raise InvalidArgument(f"{path}/topology", f"there is no topology {topology}")
        if association == "element":
            on = topology + self._endings.blocks
        else:
            on = _text(there, "coordset", f"topologies/{topology}") + self._endings.points
        return MeshField(_name(key, node), association, on, self._values(node, path))

    def _values(self, node: Node, path: str) -> dict[str, Array]:
        values = node.get("values")
        if isinstance(values, np.ndarray):
            return {"": values}
        components = {name: one for name, one in _child(node, "values").items() if isinstance(one, np.ndarray)}
        if not components:
            raise InvalidArgument(f"{path}/values", "the field has no values")
        return components


def _name(key: str, node: Node) -> str:
    name = node.get("name")
    return name if isinstance(name, str) and name else key


def _is_node(value: Any) -> bool:
    return isinstance(value, dict)


def _child(node: Any, *path: str) -> Node:
    """Returns a node; an empty one if it does not exist."""
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _text(node: Any, name: str, path: str) -> str:
    value = node.get(name) if isinstance(node, dict) else None
    if not isinstance(value, str):
        raise InvalidArgument(f"{path}/{name}", "a text is missing")
    return value


def _leaf(node: Any, name: str) -> Array | None:
    value = node.get(name) if isinstance(node, dict) else None
    return value if isinstance(value, np.ndarray) else None


def _array(node: Any, name: str, path: str) -> Array:
    value = _leaf(node, name)
    if value is None:
        raise InvalidArgument(f"{path}/{name}", "an array is missing")
    return value


def _integers(node: Any, name: str, path: str) -> Array:
    value = _array(node, name, path)
    if value.dtype.kind not in "iu":
        raise InvalidArgument(f"{path}/{name}", f"numbers of the type {value.dtype}; integers are required")
    return value


def _integer(node: Any, name: str, absent: Any, path: str) -> Any:
    value = _number(node, name, absent)
    if isinstance(value, float) and not value.is_integer():
        raise InvalidArgument(f"{path}/{name}", f"the number {value} is not an integer")
    return None if value is None else int(value)


def _number(node: Any, name: str, absent: Any) -> Any:
    value = _leaf(node, name)
    return absent if value is None or not value.size else value[0].item()
