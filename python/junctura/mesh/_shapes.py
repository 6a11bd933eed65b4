"""Shapes of elements: points, sides, and their numbers and orders in VTK, Exodus and CGNS.

The points of an element are in VTK's order. Where Exodus or CGNS number them otherwise, the shape has the
permutation: entry ``i`` is the place of VTK's point ``i`` in an element of the file. Sides are those of Exodus, which
are counted from 1 there.

Sources: the figures of node ordering of the Exodus II manual (SAND92-2137), of CGNS's SIDS (conventions for
unstructured grids), and of VTK's cell types. VTK's readers judge the tables in tests/meshes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Order = tuple[int, ...]
Sides = tuple[Order, ...]


@dataclass(frozen=True)
class CellShape:
    """The shape of an element.

    Attributes
    ----------
    name
        Its name in docs/formats/mesh.md.
    linear
        The name of the shape with the same corners.
    points
        Number of points.
    rank
        Number of its own dimensions.
    vtk, cgns
        Its number in VTK and CGNS.
    exodus
        Its name in Exodus.
    exodus_order, cgns_order
        Place of each point in the file's order; empty if it is VTK's.
    sides
        The points of each side, quadratic points included, in VTK's order of the side's shape.

    """

    name: str
    linear: str
    points: int
    rank: int
    vtk: int
    cgns: int
    exodus: str
    sides: Sides = ()
    exodus_order: Order = ()
    cgns_order: Order = ()


_TRI = ((0, 1), (1, 2), (2, 0))
_QUAD = ((0, 1), (1, 2), (2, 3), (3, 0))
_TET = ((0, 1, 3), (1, 2, 3), (0, 3, 2), (0, 2, 1))
_PYRAMID = ((0, 1, 4), (1, 2, 4), (2, 3, 4), (0, 4, 3), (0, 3, 2, 1))
_WEDGE = ((0, 1, 4, 3), (1, 2, 5, 4), (0, 3, 5, 2), (0, 2, 1), (3, 4, 5))
_HEX = ((0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (0, 4, 7, 3), (0, 3, 2, 1), (4, 5, 6, 7))

# Points in the middle of edges, as pairs of corners, in VTK's order. Those in the middle of sides follow.
_TET_EDGES = ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))
_PYRAMID_EDGES = (*_QUAD, (0, 4), (1, 4), (2, 4), (3, 4))
_WEDGE_EDGES = (*_TRI, (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5))
_HEX_EDGES = (*_QUAD, (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7))
# The sides whose middles are VTK's points 20 to 25 of a hex27.
_HEX_MIDDLES = (3, 1, 0, 2, 4, 5)


def _quadratic(corners: int, sides: Sides, edges: Sides, middles: Order = ()) -> Sides:
    """Adds to each side the points in the middle of its edges, and of itself."""
    middle_of = {frozenset(edge): corners + at for at, edge in enumerate(edges)}
    found = []
    for number, side in enumerate(sides):
        around = zip(side, (*side[1:], side[0]), strict=True) if len(side) > 2 else [(side[0], side[1])]
        on_edges = tuple(middle_of[frozenset(edge)] for edge in around)
        inside = (corners + len(edges) + middles.index(number),) if number in middles else ()
        found.append((*side, *on_edges, *inside))
    return tuple(found)


# Both files have the vertical edges before those at the top.
_HEX20 = (*range(12), *range(16, 20), *range(12, 16))
_WEDGE15 = (*range(9), *range(12, 15), *range(9, 12))

SHAPES = {
    shape.name: shape
    for shape in (
        CellShape("point", "point", 1, 0, 1, 2, "SPHERE"),
        CellShape("line", "line", 2, 1, 3, 3, "BAR2", ((0,), (1,))),
        CellShape("line3", "line", 3, 1, 21, 4, "BAR3", ((0,), (1,))),
        CellShape("tri", "tri", 3, 2, 5, 5, "TRI3", _TRI),
        CellShape("tri6", "tri", 6, 2, 22, 6, "TRI6", _quadratic(3, _TRI, _TRI)),
        CellShape("quad", "quad", 4, 2, 9, 7, "QUAD4", _QUAD),
        CellShape("quad8", "quad", 8, 2, 23, 8, "QUAD8", _quadratic(4, _QUAD, _QUAD)),
        CellShape("quad9", "quad", 9, 2, 28, 9, "QUAD9", _quadratic(4, _QUAD, _QUAD)),
        CellShape("tet", "tet", 4, 3, 10, 10, "TETRA4", _TET),
        CellShape("tet10", "tet", 10, 3, 24, 11, "TETRA10", _quadratic(4, _TET, _TET_EDGES)),
        CellShape("pyramid", "pyramid", 5, 3, 14, 12, "PYRAMID5", _PYRAMID),
        CellShape("pyramid13", "pyramid", 13, 3, 27, 21, "PYRAMID13", _quadratic(5, _PYRAMID, _PYRAMID_EDGES)),
        CellShape("wedge", "wedge", 6, 3, 13, 14, "WEDGE6", _WEDGE),
        CellShape(
            "wedge15", "wedge", 15, 3, 26, 15, "WEDGE15", _quadratic(6, _WEDGE, _WEDGE_EDGES), _WEDGE15, _WEDGE15
        ),
        CellShape(
            "wedge18",
            "wedge",
            18,
            3,
            32,
            16,
            "WEDGE18",
            _quadratic(6, _WEDGE, _WEDGE_EDGES, (0, 1, 2)),
            (*_WEDGE15, 15, 16, 17),
            (*_WEDGE15, 15, 16, 17),
        ),
        CellShape("hex", "hex", 8, 3, 12, 17, "HEX8", _HEX),
        CellShape("hex20", "hex", 20, 3, 25, 18, "HEX20", _quadratic(8, _HEX, _HEX_EDGES), _HEX20, _HEX20),
        CellShape(
            "hex27",
            "hex",
            27,
            3,
            29,
            19,
            "HEX27",
            _quadratic(8, _HEX, _HEX_EDGES, _HEX_MIDDLES),
            # Exodus: the middle, then the sides at z-, z+, x-, x+, y-, y+. CGNS: z-, y-, x+, y+, x-, z+, the middle.
            (*_HEX20, 23, 24, 25, 26, 21, 22, 20),
            (*_HEX20, 24, 22, 21, 23, 20, 25, 26),
        ),
    )
}
BY_CGNS = {shape.cgns: shape for shape in SHAPES.values()}
BY_VTK = {shape.vtk: shape for shape in SHAPES.values()}
# Shapes whose elements differ in their number of points.
RAGGED = ("mixed", "polygonal", "polyhedral")
# Numbers of VTK for polygons and polyhedra.
VTK_POLYGON, VTK_POLYHEDRON = 7, 42


def to_file(connectivity: npt.NDArray[np.integer], order: Order) -> npt.NDArray[np.integer]:
    """Returns elements (one a row) in the order of a file."""
    if not order:
        return connectivity
    inverse = np.empty(len(order), int)
    inverse[list(order)] = np.arange(len(order))
    return connectivity[:, inverse]


def from_file(connectivity: npt.NDArray[np.integer], order: Order) -> npt.NDArray[np.integer]:
    """Returns elements (one a row) in VTK's order."""
    return connectivity[:, list(order)] if order else connectivity
