"""Meshes from seeds: lattices of hexahedra that are split into elements of all shapes, so that volumes are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from junctura.mesh import CellFaces, MeshBlock, MeshField, MeshPoints, MeshSet, MeshStep
from junctura.mesh._shapes import SHAPES

# Splits of a hexahedron with the corners 0 to 7; 8 is its middle.
SPLITS: dict[str, Any] = {
    "hex": [(0, 1, 2, 3, 4, 5, 6, 7)],
    "wedge": [(0, 1, 2, 4, 5, 6), (0, 2, 3, 4, 6, 7)],
    "tet": [(0, 1, 2, 6), (0, 2, 3, 6), (0, 3, 7, 6), (0, 7, 4, 6), (0, 4, 5, 6), (0, 5, 1, 6)],
    "pyramid": [
        (4, 5, 1, 0, 8),
        (5, 6, 2, 1, 8),
        (6, 7, 3, 2, 8),
        (3, 7, 4, 0, 8),
        (0, 1, 2, 3, 8),
        (7, 6, 5, 4, 8),
    ],
    "quad": [(0, 1, 2, 3)],
    "tri": [(0, 1, 2), (0, 2, 3)],
    "line": [(0, 1)],
    "point": [(0,)],
}
EDGES = {
    "line": [(0, 1)],
    "tri": [(0, 1), (1, 2), (2, 0)],
    "quad": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "tet": [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)],
    "pyramid": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)],
    "wedge": [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)],
    "hex": [*[(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)], *[(0, 4), (1, 5), (2, 6), (3, 7)]],
}
FACES: dict[str, Any] = {
    "quad9": [(0, 1, 2, 3)],
    "wedge18": [(0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)],
    # x-, x+, y-, y+, z-, z+, and the middle.
    "hex27": [(0, 3, 4, 7), (1, 2, 5, 6), (0, 1, 4, 5), (2, 3, 6, 7), (0, 1, 2, 3), (4, 5, 6, 7), tuple(range(8))],
}
SOLIDS = [name for name, shape in SHAPES.items() if shape.rank == 3]
FLAT = [name for name, shape in SHAPES.items() if shape.rank == 2]
HEX_FACES = [(0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (0, 4, 7, 3), (0, 3, 2, 1), (4, 5, 6, 7)]


@dataclass
class Places:
    """Points that are collected while blocks are made."""

    rows: list[tuple[float, ...]]

    def add(self, rows: Any) -> np.ndarray:
        start = len(self.rows)
        self.rows += [tuple(row) for row in rows]
        return np.arange(start, len(self.rows))


def lattice(places: Places, counts: tuple[int, int, int], origin: float, is_flat: bool) -> np.ndarray:
    """Adds the points of a lattice of cubes with sides of length 1; returns the corners and the middle of each."""
    nx, ny, nz = counts
    grid = np.stack(np.meshgrid(np.arange(nz + 1), np.arange(ny + 1), np.arange(nx + 1), indexing="ij")[::-1], axis=-1)
    numbers = places.add(grid.reshape(-1, 3) + [origin, 0, 0]).reshape(nz + 1, ny + 1, nx + 1)
    cubes = []
    for k in range(nz):
        for j in range(ny):
            for i in range(nx):
                lower = [numbers[k, j, i], numbers[k, j, i + 1], numbers[k, j + 1, i + 1], numbers[k, j + 1, i]]
                above = min(k + 1, nz)
                upper = [numbers[above, j, i], numbers[above, j, i + 1], numbers[above, j + 1, i + 1]]
                upper.append(numbers[above, j + 1, i])
                middle = places.add([[origin + i + 0.5, j + 0.5, k + (0 if is_flat else 0.5)]])
                cubes.append([*lower, *upper, *middle])
    return np.array(cubes)


def elements(places: Places, cubes: np.ndarray, name: str) -> np.ndarray:
    """Returns the elements of a shape, one a row, in VTK's order."""
    shape = SHAPES[name]
    rows = np.concatenate([cubes[:, list(split)] for split in SPLITS[shape.linear]])
    if shape.points > rows.shape[1]:
        here = np.array(places.rows)[rows]
        parts = [here[:, list(edge)].mean(axis=1) for edge in EDGES[shape.linear]]
        parts += [here[:, list(face)].mean(axis=1) for face in FACES.get(name, [])]
        extra = np.stack(parts, axis=1)
        rows = np.concatenate([rows, places.add(extra.reshape(-1, 3)).reshape(len(rows), -1)], axis=1)
    assert rows.shape[1] == shape.points
    return rows


def polyhedra(cubes: np.ndarray) -> tuple[np.ndarray, np.ndarray, CellFaces]:
    """Returns cubes as polyhedra that share faces."""
    known: dict[frozenset[int], int] = {}
    faces: list[tuple[int, ...]] = []
    cells = []
    for cube in cubes:
        for face in HEX_FACES:
            points = tuple(int(cube[at]) for at in face)
            number = known.setdefault(frozenset(points), len(faces))
            if number == len(faces):
                faces.append(points)
            cells.append(number)
    sizes = np.full(len(faces), 4)
    return np.array(cells), np.full(len(cubes), 6), CellFaces(np.array(faces).ravel(), sizes)


def block_of(places: Places, rng: np.random.Generator, name: str, at: int, points: str) -> MeshBlock:
    """Returns a random block of a shape."""
    is_flat = name == "polygonal" or (name in SHAPES and SHAPES[name].rank < 3)
    counts = tuple(int(count) for count in rng.integers(1, 4, 3))
    cubes = lattice(places, (counts[0], counts[1], 1 if is_flat else counts[2]), 10.0 * at, is_flat)
    if name == "mixed":
        parts = [elements(places, cubes, one) for one in ("hex", "tet", "wedge15", "hex20")]
        kinds = np.repeat([12, 10, 26, 25], [len(part) for part in parts]).astype(np.uint8)
        order = rng.permutation(len(kinds))
        every = [row for part in parts for row in part]
        sizes = np.array([len(every[one]) for one in order])
        return MeshBlock(points, name, np.concatenate([every[one] for one in order]), sizes=sizes, kinds=kinds[order])
    if name == "polygonal":
        cells = [*elements(places, cubes, "quad"), *elements(places, cubes, "tri")]
        return MeshBlock(points, name, np.concatenate(cells), sizes=np.array([len(cell) for cell in cells]))
    if name == "polyhedral":
        connectivity, sizes, faces = polyhedra(cubes)
        return MeshBlock(points, name, connectivity, sizes=sizes, faces=faces)
    rows = elements(places, cubes, name)
    return MeshBlock(points, name, rows[rng.permutation(len(rows))].ravel())


def one_block(seed: int, name: str) -> MeshStep:
    """Returns a mesh of one block."""
    places = Places([])
    block = block_of(places, np.random.default_rng(seed), name, 0, "nodes")
    axes = tuple(map(np.ascontiguousarray, np.array(places.rows).T))
    return MeshStep({"nodes": MeshPoints(axes)}, {"only": block})


def random_mesh(seed: int, *, with_mixed: bool = False, without: tuple[str, ...] = ()) -> MeshStep:
    """Returns a mesh without fields."""
    rng = np.random.default_rng(seed)
    is_flat = seed % 5 == 4
    kinds = FLAT + ["line", "polygonal"] if is_flat else SOLIDS + ["polyhedral", "quad", "tri6", "line", "point"]
    kinds = [kind for kind in kinds if kind not in without]
    solids = [kind for kind in SOLIDS if kind not in without]
    chosen = [str(one) for one in rng.choice(kinds, int(rng.integers(1, 4)), replace=False)]
    # Cells come first of all: a mesh of lines alone is one, too.
    chosen.insert(0, "quad" if is_flat else str(rng.choice(solids)))
    if with_mixed and not is_flat:
        chosen.append("mixed")
    places = Places([])
    blocks = {}
    for at, name in enumerate(chosen):
        block = block_of(places, rng, name, at, "nodes")
        count = block.count
        extra: dict[str, Any] = {"number": int(rng.integers(1, 100)) * 10 + at}
        if rng.random() < 0.5:
            extra["ids"] = rng.permutation(count) + 1000
        if rng.random() < 0.3:
            extra["attributes"] = {"thickness": rng.random(count)}
        blocks[f"block_{at} of {name}"] = MeshBlock(
            **{**{field: getattr(block, field) for field in block.__dataclass_fields__}, **extra}
        )
    axes = np.array(places.rows).T[: 2 if is_flat else 3]
    points = MeshPoints(
        tuple(map(np.ascontiguousarray, axes)), ids=rng.permutation(axes.shape[1]) + 7 if rng.random() < 0.5 else None
    )
    # All or no block has numbers, as in a file.
    if any(block.ids is not None for block in blocks.values()):
        start = 0
        for name, block in blocks.items():
            values = {field: getattr(block, field) for field in block.__dataclass_fields__}
            if block.ids is None:
                blocks[name] = MeshBlock(**{**values, "ids": np.arange(start + 1, start + block.count + 1)})
            start += block.count
    mesh = MeshStep({"nodes": points}, blocks, title=f"seed {seed}")
    return MeshStep(mesh.points, mesh.blocks, random_sets(rng, mesh), title=mesh.title)


def random_sets(rng: np.random.Generator, mesh: MeshStep) -> dict[str, MeshSet]:
    count = mesh.points["nodes"].count
    chosen = rng.permutation(count)[: int(rng.integers(1, count))]
    sets = {"some nodes": MeshSet("vertex", "nodes", chosen, number=5, factors=rng.random(chosen.size))}
    pairs = []
    start = 0
    for block in mesh.blocks.values():
        if block.shape in SHAPES and SHAPES[block.shape].rank > 1:
            is_shell = SHAPES[block.shape].rank == 2 and len(mesh.points["nodes"].axes) == 3
            sides = len(SHAPES[block.shape].sides) + 2 * is_shell
            pairs += [(start + int(one), int(rng.integers(sides))) for one in rng.integers(block.count, size=3)]
        start += block.count
    pairs = list(dict.fromkeys(pairs))
    elements_, sides_ = np.array(pairs).T
    order = rng.permutation(len(pairs))
    sets["some sides"] = MeshSet("side", "nodes", elements_[order], sides_[order], number=6)
    sets["some elements"] = MeshSet("element", "nodes", np.unique(rng.integers(start, size=4)), number=9)
    return sets


def with_fields(seed: int, mesh: MeshStep, steps: int = 3) -> list[MeshStep]:
    """Returns the mesh with fields in some steps."""
    rng = np.random.default_rng([seed, 1])
    rank = max(block.rank for block in mesh.blocks.values())
    cells = [name for name, block in mesh.blocks.items() if block.rank == rank]
    some = cells[: int(rng.integers(1, len(cells) + 1))]
    found = []
    for step in range(1, steps + 1):
        count = mesh.points["nodes"].count
        fields = [MeshField("temperature", "vertex", "nodes", {"": rng.random(count).astype(np.float32)})]
        components = {axis: rng.standard_normal(count) for axis in "xyz"[: len(mesh.points["nodes"].axes)]}
        fields.append(MeshField("velocity", "vertex", "nodes", components))
        fields += [MeshField("p", "element", on, {"": rng.standard_normal(mesh.blocks[on].count)}) for on in cells]
        fields += [MeshField("k", "element", on, {"": rng.integers(9, size=mesh.blocks[on].count)}) for on in some]
        found.append(
            MeshStep(
                mesh.points,
                mesh.blocks,
                mesh.sets,
                tuple(fields),
                step,
                0.25 * step,
                {"energy": rng.random(1)},
                mesh.title,
            )
        )
    return found


def several_sets_of_points(seed: int) -> list[MeshStep]:
    """Returns steps of two random meshes with points of their own, a rectilinear grid, and a structured block."""
    rng = np.random.default_rng([seed, 2])
    parts = [with_fields(at, random_mesh(at, with_mixed=True), 2) for at in (seed, seed + 100)]
    extents = tuple(int(extent) for extent in rng.integers(1, 4, 3))
    axes = tuple(np.sort(rng.random(extent + 1)) for extent in extents)
    grid = MeshPoints(axes, kind="rectilinear")
    curved = MeshPoints(tuple(axis + rng.random(axis.size) for axis in grid.coordinates()))
    points = {"grid": grid, "curved": curved}
    blocks = {name: MeshBlock(name, "structured", dims=extents) for name in points}
    sets = {
        "corner": MeshSet("vertex", "curved", np.array([0, 1])),
        "some of the grid": MeshSet("element", "grid", np.arange(blocks["grid"].count)),
    }
    for at, part in enumerate(parts):
        points[f"points {at}"] = part[0].points["nodes"]
        blocks |= {f"{at}:{name}": replace(one, points=f"points {at}") for name, one in part[0].blocks.items()}
        sets |= {f"{at}:{name}": replace(one, points=f"points {at}") for name, one in part[0].sets.items()}
    found = []
    for step in range(2):
        fields = [
            replace(one, on=f"points {at}" if one.association == "vertex" else f"{at}:{one.on}")
            for at, part in enumerate(parts)
            for one in part[step].fields
        ]
        cells = rng.standard_normal(blocks["grid"].count)
        fields.append(MeshField("p", "element", "grid", {"": cells}))
        # On one of the sets of points alone.
        fields.append(MeshField("height", "vertex", "curved", {"": rng.standard_normal(curved.count)}))
        found.append(MeshStep(points, blocks, sets, tuple(fields), step + 1, 0.5 * step))
    return found
