"""A mesh in memory, independent of files and pools.

A `MeshStep` has sets of points, blocks of elements on them, sets of points, sides and elements, and fields of one step.
Steps of a series share the objects that do not change: a writer compares identities first. Arrays have one dimension,
and may be read-only views of a payload.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from junctura._forks import lazy_property
from junctura.errors import InvalidArgument, TooLarge
from junctura.mesh._shapes import BY_VTK, RAGGED, SHAPES, VTK_POLYGON, VTK_POLYHEDRON

Array: TypeAlias = npt.NDArray[Any]
Association: TypeAlias = Literal["vertex", "element", "set"]
# Sets the limit for a process and those that it starts.
_POINTS_VARIABLE = "JUNCTURA_MESH_POINTS_MAX"
_POINTS_MAX = 1 << 26


@dataclass(frozen=True)
class MeshPoints:
    """Points that blocks share.

    Attributes
    ----------
    kind
        ``explicit``: `axes` has the coordinates of each point. ``rectilinear``: positions along each axis.
    axes
        One array for each of 1 to 3 dimensions, in the order x, y, z.
    ids
        The number of each point in the file, or None.

    Examples
    --------
    >>> grid = junctura.mesh.MeshPoints((numpy.arange(3.0), numpy.arange(2.0)), kind="rectilinear")
    >>> grid.dims, grid.count
    ((3, 2), 6)
    >>> grid.coordinates()[0].tolist()
    [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]

    """

    axes: tuple[Array, ...]
    kind: Literal["explicit", "rectilinear"] = "explicit"
    ids: Array | None = None

    @property
    def dims(self) -> tuple[int, ...]:
        """Points along each axis of a rectilinear grid."""
        return tuple(axis.size for axis in self.axes)

    @property
    def count(self) -> int:
        """Number of points."""
        return math.prod(self.dims) if self.kind == "rectilinear" else self.axes[0].size

    def coordinates(self) -> tuple[Array, ...]:
        """Returns the coordinates of each point, one array for each dimension; x varies fastest in a grid.

        Raises
        ------
        TooLarge
            A grid has more points than ``JUNCTURA_MESH_POINTS_MAX`` (67,108,864).

        """
        if self.kind == "explicit":
            return self.axes
        _limit(self.count)
        grids = np.meshgrid(*self.axes[::-1], indexing="ij")[::-1]
        return tuple(grid.ravel() for grid in grids)


@dataclass(frozen=True)
class CellFaces:
    """The faces of polyhedra, as polygons.

    Examples
    --------
    A tetrahedron on the points 0 to 3, as a polyhedron of four faces:

    >>> triangles = numpy.array([0, 1, 2, 0, 1, 3, 1, 2, 3, 0, 2, 3])
    >>> faces = junctura.mesh.CellFaces(triangles, sizes=numpy.full(4, 3))
    >>> cell = junctura.mesh.MeshBlock("nodes", "polyhedral", numpy.arange(4), sizes=numpy.array([4]), faces=faces)
    >>> cell.count, cell.rank
    (1, 3)

    """

    connectivity: Array
    sizes: Array


@dataclass(frozen=True)
class MeshBlock:
    """Elements of a mesh on one set of points.

    Attributes
    ----------
    points
        The name of its set of points.
    shape
        ``structured``, or a shape of docs/formats/mesh.md. ``mixed``, ``polygonal`` and ``polyhedral`` have `sizes`.
    dims
        Number of elements along each axis, if structured; points are numbered with the first axis fastest.
    connectivity
        The points of each element, from 0; of polyhedra the faces.
    sizes
        Number of entries in `connectivity` for each element.
    kinds
        VTK's number for the shape of each element, if mixed.
    faces
        Faces of polyhedra.
    number
        The number of the block in its file.
    ids
        The number of each element in its file.
    attributes
        Constants of each element.
    label
        The type of its elements in the file, where the shape does not determine it: SHELL4, TRUSS.

    Examples
    --------
    >>> block = junctura.mesh.MeshBlock("nodes", "structured", dims=(2, 1))
    >>> block.count, block.unstructured().connectivity.tolist()
    (2, [0, 1, 4, 3, 1, 2, 5, 4])

    """

    points: str
    shape: str
    connectivity: Array = field(default_factory=lambda: np.empty(0, np.int64))
    dims: tuple[int, ...] = ()
    sizes: Array | None = None
    kinds: Array | None = None
    faces: CellFaces | None = None
    number: int | None = None
    ids: Array | None = None
    attributes: Mapping[str, Array] = field(default_factory=dict)
    label: str = ""

    @property
    def count(self) -> int:
        """Number of elements."""
        if self.shape == "structured":
            return math.prod(self.dims)
        if self.sizes is not None:
            return self.sizes.size
        return self.connectivity.size // SHAPES[self.shape].points

    @property
    def rank(self) -> int:
        """Number of dimensions of its elements."""
        if self.shape == "structured":
            return len(self.dims)
        if self.shape == "mixed":
            return max((BY_VTK[int(kind)].rank for kind in np.unique(self.of_kinds)), default=0)
        return {"polygonal": 2, "polyhedral": 3}.get(self.shape) or SHAPES[self.shape].rank

    @property
    def of_kinds(self) -> Array:
        """VTK's number for the shape of each element."""
        if self.kinds is not None:
            return self.kinds
        many = {"polygonal": VTK_POLYGON, "polyhedral": VTK_POLYHEDRON}
        names = {1: "line", 2: "quad", 3: "hex"}
        name = names[len(self.dims)] if self.shape == "structured" else self.shape
        if self.shape == "structured":
            _limit(self.count)
        return np.full(self.count, many.get(name) or SHAPES[name].vtk, np.uint8)

    @lazy_property
    def offsets(self) -> Array:
        """The first entry in `connectivity` of each element, and the end."""
        if self.sizes is not None:
            return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes, dtype=np.int64)])
        points = SHAPES[self.shape].points
        return np.arange(0, self.connectivity.size + 1, points, dtype=np.int64)

    def unstructured(self) -> MeshBlock:
        """Returns the same elements with connectivity.

        Raises
        ------
        TooLarge
            A structured block has more points than ``JUNCTURA_MESH_POINTS_MAX`` (67,108,864).

        """
        return self if self.shape != "structured" else _connected(self)


@dataclass(frozen=True)
class MeshSet:
    """A named set of points, sides or elements.

    Attributes
    ----------
    association
        Of what.
    points
        The name of the set of points.
    indices
        Points, or elements; elements are counted from 0 through all blocks of these points.
    sides
        The side of each element, from 0, if the set is one of sides.
    number
        The number of the set in its file.
    factors
        Distribution factors of Exodus.
    kind
        The type of a boundary condition, such as ``BCWall``.

    Examples
    --------
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> ends = junctura.mesh.MeshSet("vertex", "nodes", numpy.array([0, 2]))
    >>> junctura.mesh.MeshStep(points, blocks, sets={"ends": ends}).check()

    """

    association: Literal["vertex", "side", "element"]
    points: str
    indices: Array
    sides: Array | None = None
    number: int | None = None
    factors: Array | None = None
    kind: str = ""


@dataclass(frozen=True)
class MeshField:
    """Values of one step.

    Attributes
    ----------
    name
        Its name.
    association
        ``vertex``, ``element`` or ``set``.
    on
        The name of the points, the block, or the set.
    values
        An array for each component; a scalar has one, with an empty name.

    Examples
    --------
    >>> speed = junctura.mesh.MeshField("velocity", "vertex", "nodes", {"x": numpy.ones(3), "y": numpy.zeros(3)})
    >>> [name for name, _ in speed.scalars()]
    ['velocity_x', 'velocity_y']

    """

    name: str
    association: Association
    on: str
    values: Mapping[str, Array]

    def scalars(self) -> Iterator[tuple[str, Array]]:
        """Yields each component with its full name: ``velocity_x``."""
        for component, array in self.values.items():
            yield (f"{self.name}_{component}" if component else self.name), array


@dataclass(frozen=True)
class MeshStep:
    """A mesh, and its fields in one step.

    Attributes
    ----------
    points, blocks, sets
        By name. Steps of a series that share them have the same objects.
    fields
        Of this step.
    step, time
        The number of the step, and its time; no time if the mesh has none.
    globals
        Values of the whole mesh in this step.
    title
        A text.
    notes
        Parts of the source that this model cannot express.

    Examples
    --------
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> heat = junctura.mesh.MeshField("heat", "element", "rod", {"": numpy.array([300.0, 310.0, 320.0])})
    >>> junctura.mesh.MeshStep(points, blocks, fields=(heat,)).check()
    Traceback (most recent call last):
        ...
    junctura.errors.InvalidArgument: field heat: 3 values on rod, which has 2

    """

    points: Mapping[str, MeshPoints]
    blocks: Mapping[str, MeshBlock]
    sets: Mapping[str, MeshSet] = field(default_factory=dict)
    fields: tuple[MeshField, ...] = ()
    step: int = 0
    time: float | None = None
    globals: Mapping[str, Array] = field(default_factory=dict)
    title: str = ""
    notes: tuple[str, ...] = ()

    def shares(self, other: MeshStep | None) -> bool:
        """Whether both have the same points, blocks and sets, as objects; two without sets share them."""
        return (
            other is not None
            and self.points is other.points
            and self.blocks is other.blocks
            and (self.sets is other.sets or not (self.sets or other.sets))
        )

    def blocks_on(self, points: str) -> dict[str, MeshBlock]:
        """Returns the blocks on a set of points, in order."""
        return {name: block for name, block in self.blocks.items() if block.points == points}

    def check(self) -> None:
        """Validates all references and lengths.

        Raises
        ------
        InvalidArgument
            Something refers to what does not exist, or an array has another length.

        """
        for name, points in self.points.items():
            _check_points(name, points)
        for name, block in self.blocks.items():
            _check_block(name, block, self.points)
        elements = dict.fromkeys(self.points, 0)
        for block in self.blocks.values():
            elements[block.points] += block.count
        for name, one in self.sets.items():
            _check_set(name, one, self.points, elements)
        for on_mesh in self.fields:
            self.check_field(on_mesh)

    def check_field(self, one: MeshField) -> None:
        """Validates one field, as `check` does."""
        count: int | None = None
        if one.association == "vertex" and one.on in self.points:
            count = self.points[one.on].count
        elif one.association == "element" and one.on in self.blocks:
            count = self.blocks[one.on].count
        elif one.association == "set" and one.on in self.sets:
            count = self.sets[one.on].indices.size
        if count is None:
            raise InvalidArgument(f"field {one.name}", f"it is on {one.on}, which the mesh does not have")
        for name, array in one.scalars():
            if array.size != count:
                raise InvalidArgument(f"field {name}", f"{array.size} values on {one.on}, which has {count}")


def _check_points(name: str, points: MeshPoints) -> None:
    if not 1 <= len(points.axes) <= 3:
        raise InvalidArgument(f"points {name}", f"{len(points.axes)} dimensions; 1 to 3 are possible")
    if points.kind == "explicit" and len({axis.size for axis in points.axes}) > 1:
        raise InvalidArgument(f"points {name}", "the axes have different numbers of points")
    if points.ids is not None and points.ids.size != points.count:
        raise InvalidArgument(f"points {name}", f"{points.ids.size} numbers for {points.count} points")


def _check_block(name: str, block: MeshBlock, points: Mapping[str, MeshPoints]) -> None:
    subject = f"block {name}"
    if block.points not in points:
        raise InvalidArgument(subject, f"it is on the points {block.points}, which the mesh does not have")
    count = points[block.points].count
    if block.shape == "structured":
        extents = [extent + 1 for extent in block.dims]
        if not 1 <= len(extents) <= 3 or min(extents) < 1 or math.prod(extents) != count:
            raise InvalidArgument(subject, f"{block.dims} elements do not have {count} points")
    elif block.shape in RAGGED:
        _check_ragged(subject, block, count)
    elif block.shape not in SHAPES:
        raise InvalidArgument(subject, f"the shape {block.shape}; known are {', '.join((*SHAPES, *RAGGED))}")
    elif block.connectivity.size % SHAPES[block.shape].points:
        raise InvalidArgument(subject, f"{block.connectivity.size} points cannot be elements of shape {block.shape}")
    else:
        _check_range(subject, block.connectivity, count, "points")
    if block.ids is not None and block.ids.size != block.count:
        raise InvalidArgument(subject, f"{block.ids.size} numbers for {block.count} elements")


def _check_ragged(subject: str, block: MeshBlock, count: int) -> None:
    if block.sizes is None:
        raise InvalidArgument(subject, f"a block of shape {block.shape} has no sizes")
    if not _adds_up(block.sizes, block.connectivity):
        raise InvalidArgument(subject, "its sizes do not add up to its connectivity")
    if block.shape == "mixed":
        kinds = block.kinds
        if kinds is None or kinds.size != block.sizes.size:
            raise InvalidArgument(subject, "a mixed block has a shape for each element")
        _check_range(subject, kinds, 256, "shapes")
        for kind in np.unique(kinds):
            expected = BY_VTK[int(kind)].points if int(kind) in BY_VTK else None
            if expected is None or (block.sizes[kinds == kind] != expected).any():
                raise InvalidArgument(subject, f"elements of VTK's shape {kind} have a wrong number of points")
    if block.shape != "polyhedral":
        return _check_range(subject, block.connectivity, count, "points")
    faces = block.faces
    if faces is None or not _adds_up(faces.sizes, faces.connectivity):
        raise InvalidArgument(subject, "polyhedra have no valid faces")
    _check_range(subject, faces.connectivity, count, "points")
    return _check_range(subject, block.connectivity, faces.sizes.size, "faces")


def _adds_up(sizes: Array, connectivity: Array) -> bool:
    """Whether sizes are integers whose sum, which may have more than 64 bits, is that of the entries."""
    if sizes.dtype.kind not in "iu":
        return False
    if sizes.size and not 0 <= int(sizes.min()) <= int(sizes.max()) <= connectivity.size:
        return False
    return int(sizes.sum(dtype=np.int64)) == connectivity.size


def _check_set(name: str, one: MeshSet, points: Mapping[str, MeshPoints], elements: Mapping[str, int]) -> None:
    if one.points not in points:
        raise InvalidArgument(f"set {name}", f"it is on the points {one.points}, which the mesh does not have")
    if one.association == "vertex":
        return _check_range(f"set {name}", one.indices, points[one.points].count, "points")
    if one.association == "side" and (one.sides is None or one.sides.size != one.indices.size):
        raise InvalidArgument(f"set {name}", "a set of sides has a side for each element")
    return _check_range(f"set {name}", one.indices, elements[one.points], "elements")


def _check_range(subject: str, indices: Array, count: int, noun: str) -> None:
    if indices.dtype.kind not in "iu":
        raise InvalidArgument(subject, f"its {noun} are numbers of the type {indices.dtype}, not integers")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < count:
        raise InvalidArgument(
            subject, f"it refers to {noun} {indices.min()} to {indices.max()}; there are {count}, counted from 0"
        )


def _limit(points: int) -> None:
    """Raises TooLarge for a grid of which numbers are made for more points than are allowed.

    Positions along axes are a few hundred bytes for any number of points.
    """
    text = os.environ.get(_POINTS_VARIABLE)
    try:
        most = _POINTS_MAX if text is None else int(text)
    except ValueError:
        raise InvalidArgument(f"{_POINTS_VARIABLE}={text}", "expected a number of points") from None
    if points > most:
        cause = f"at most {most} get coordinates and connectivity of their own; {_POINTS_VARIABLE} sets the limit"
        raise TooLarge(f"grid of {points} points", cause)


def _connected(block: MeshBlock) -> MeshBlock:
    """Gives the elements of a structured block their points."""
    extents = [extent + 1 for extent in block.dims]
    _limit(math.prod(extents))
    numbers = np.arange(math.prod(extents), dtype=np.int64).reshape(extents[::-1])
    lower, upper = slice(None, -1), slice(1, None)
    corners: Any = {
        1: [(lower,), (upper,)],
        2: [(lower, lower), (lower, upper), (upper, upper), (upper, lower)],
        3: [
            (level, *corner)
            for level in (lower, upper)
            for corner in ((lower, lower), (lower, upper), (upper, upper), (upper, lower))
        ],
    }[len(block.dims)]
    connectivity = np.stack([numbers[corner].ravel() for corner in corners], axis=1).ravel()
    return MeshBlock(
        block.points,
        {1: "line", 2: "quad", 3: "hex"}[len(block.dims)],
        connectivity,
        number=block.number,
        ids=block.ids,
        attributes=block.attributes,
    )
