"""What goes through files, pools and stores comes back as it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mesh_files import copy, differences, real_files
from random_meshes import one_block, random_mesh, several_sets_of_points, with_fields

import junctura
from junctura.mesh import (
    MeshBlock,
    MeshField,
    MeshPoints,
    MeshSet,
    MeshStep,
    PoolMeshReader,
    PoolMeshWriter,
    create,
    read,
)

SEEDS = range(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_exodus_pool_cgns_pool_exodus(pool: junctura.Pool, tmp_path: Path, seed: int) -> None:
    series = [with_fields_everywhere(mesh) for mesh in with_fields(seed, random_mesh(seed))]
    copy(series, create(tmp_path / "a.exo"))
    assert differences(series, read(tmp_path / "a.exo")) == []
    copy(read(tmp_path / "a.exo"), PoolMeshWriter(pool, "first"))
    copy(PoolMeshReader(pool, "case=first"), create(tmp_path / "b.cgns"))
    copy(read(tmp_path / "b.cgns"), PoolMeshWriter(pool, "second"))
    copy(PoolMeshReader(pool, "case=second"), create(tmp_path / "c.exo"))
    assert differences(read(tmp_path / "a.exo"), read(tmp_path / "c.exo")) == []


def with_fields_everywhere(mesh: MeshStep) -> MeshStep:
    """Adds values on sets, and on blocks of fewer dimensions than the mesh."""
    rng = np.random.default_rng(mesh.step)
    rank = max(block.rank for block in mesh.blocks.values())
    fields = [
        MeshField("flux", "set", name, {"": rng.standard_normal(one.indices.size)}) for name, one in mesh.sets.items()
    ]
    fields += [
        MeshField("load", "element", name, {"x": rng.random(block.count), "y": rng.random(block.count)})
        for name, block in mesh.blocks.items()
        if block.rank < rank
    ]
    return replace(mesh, fields=(*mesh.fields, *fields))


@pytest.mark.parametrize("seed", SEEDS)
def test_cgns_and_pool_with_mixed_blocks(pool: junctura.Pool, tmp_path: Path, seed: int) -> None:
    series = with_fields(seed, random_mesh(seed, with_mixed=True))
    copy(series, PoolMeshWriter(pool, "case", "fluid"))
    copy(PoolMeshReader(pool, "case=case"), create(tmp_path / "a.cgns"))
    assert differences(series, read(tmp_path / "a.cgns")) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_what_exodus_has_of_grids_and_several_sets_of_points(tmp_path: Path, seed: int) -> None:
    """Random meshes as zones, beside a grid, a structured block and mixed elements."""
    series = several_sets_of_points(seed)
    copy(series, create(tmp_path / "a.exo"))
    assert differences(series, read(tmp_path / "a.exo")) == []
    assert differences(read(tmp_path / "a.exo"), series) == []
    # A value and a missing block are found in this form, too.
    first, field = series[0], series[0].fields[-1]
    values = field.values[""].copy()
    values[-1] += 1
    series[0] = replace(first, fields=(*first.fields[:-1], replace(field, values={"": values})))
    (found,) = differences(series, read(tmp_path / "a.exo"))
    assert found.startswith("step 1: field height on points nodes: point ")
    name = next(iter(first.blocks))
    blocks = {key: block for key, block in first.blocks.items() if key != name}
    fields = tuple(one for one in first.fields if one.on != name)
    series = [replace(first, blocks=blocks, sets={}, fields=fields)]
    assert any(line.endswith("missing in the first") for line in differences(series, read(tmp_path / "a.exo")))


NAMES = (
    "a/b",
    "\u00fcn\u00ef \u00b0C",
    "x" * 200,
    "..",
    "Title",
    " indented",
    "Junctura",
    "q\"'\\n",
    "TimeValues",
    "GridCoordinates",
)


@pytest.mark.parametrize("endings", [("exo", "cgns", "exo"), ("cgns", "exo", "cgns")])
def test_names_of_any_characters(pool: junctura.Pool, tmp_path: Path, endings: tuple[str, ...]) -> None:
    """Of blocks, sets, fields and globals; also those that are names of nodes of a format, and times that go back."""
    mesh = one_block(3, "hex")
    block, count = mesh.blocks["only"], mesh.points["nodes"].count
    rng = np.random.default_rng(1)
    blocks = {name: replace(block, number=at) for at, name in enumerate(NAMES, 1)}
    sets = {f"{name}!": MeshSet("vertex", "nodes", np.arange(at), number=at) for at, name in enumerate(NAMES, 1)}
    series: list[MeshStep] = []
    for time in (0.5, 0.5, -3.0):
        fields = [MeshField(name, "vertex", "nodes", {"": rng.random(count)}) for name in NAMES]
        fields += [MeshField(name, "element", name, {"": rng.random(block.count)}) for name in NAMES]
        values = {name: rng.random(1) for name in NAMES}
        shared = series[0] if series else MeshStep(mesh.points, blocks, sets, title="\u00e9tude")
        series.append(replace(shared, fields=tuple(fields), step=len(series) + 1, time=time, globals=values))
    copy(series, PoolMeshWriter(pool, "a"))
    before: Iterable[MeshStep] = PoolMeshReader(pool, "case=a")
    for at, ending in enumerate(endings):
        copy(before, create(tmp_path / f"{at}.{ending}"))
        before = read(tmp_path / f"{at}.{ending}")
        assert differences(series, before) == []


@pytest.mark.parametrize("ending", ["exo", "cgns"])
def test_meshes_without_elements_or_points(tmp_path: Path, ending: str) -> None:
    points = {"nodes": MeshPoints((np.arange(3.0), np.zeros(3), np.ones(3)))}
    none = {"nodes": MeshPoints((np.empty(0), np.empty(0), np.empty(0)))}
    empty = MeshBlock("nodes", "hex", ids=np.empty(0, np.int64))
    field = MeshField("p", "element", "empty", {"": np.empty(0)})
    for mesh in (
        MeshStep(points, {}),
        MeshStep(points, {"empty": empty}, fields=(field,), step=1, time=0.5),
        MeshStep(none, {"empty": empty}),
        MeshStep(
            none, {"empty": empty}, fields=(MeshField("T", "vertex", "nodes", {"": np.empty(0)}),), step=1, time=0.5
        ),
    ):
        copy([mesh], create(tmp_path / f"a.{ending}"))
        assert differences([mesh], read(tmp_path / f"a.{ending}")) == []


@real_files
def test_real_files(pool: junctura.Pool, tmp_path: Path, path: Path) -> None:
    copy(read(path), PoolMeshWriter(pool, "case"))
    assert differences(read(path), PoolMeshReader(pool, "case=case")) == []
    copy(PoolMeshReader(pool, "case=case"), create(tmp_path / "b.cgns"))
    assert differences(read(path), read(tmp_path / "b.cgns")) == []
    copy(read(tmp_path / "b.cgns"), create(tmp_path / "c.exo"))
    # Zones and grids of CGNS are compared in the form that Exodus has for them.
    assert differences(read(path), read(tmp_path / "c.exo")) == []
    assert differences(read(tmp_path / "c.exo"), PoolMeshReader(pool, "case=case")) == []


def test_store(tmp_path: Path) -> None:
    junctura.Store.create(tmp_path / "store", schema="mesh")
    series = with_fields(1, random_mesh(1))
    place = f"file://{tmp_path}/store?case=a"
    copy(series, create(place))
    assert differences(series, read(place)) == []
    assert len(read(place)) == 3


def test_what_steps_share_is_offered_once(pool: junctura.Pool) -> None:
    series = with_fields(2, random_mesh(2), steps=5)
    copy(series, PoolMeshWriter(pool, "a"))
    assert len(pool.list("part=mesh")) == 1
    steps = pool.list("part=fields", order_by="step")
    assert [entry["step"] for entry in steps] == [1, 2, 3, 4, 5]
    meshes = list(PoolMeshReader(pool, "case=a"))
    assert all(mesh.shares(meshes[0]) for mesh in meshes)
    # Values are where the producer has put them.
    assert not meshes[0].fields[0].values[""].flags.writeable


def test_ranks_are_complete_together(pool: junctura.Pool) -> None:
    parts = [with_fields(seed, random_mesh(seed)) for seed in (0, 5)]
    writers = [PoolMeshWriter(pool, "a", rank=rank, ranks=2) for rank in range(2)]
    writers[0].write(parts[0][0])
    assert pool.list("part=fields") == []
    writers[1].write(parts[1][0])
    (mesh,) = PoolMeshReader(pool, "case=a")
    names = {f"{name}@{rank}" for rank in range(2) for name in parts[rank][0].blocks}
    assert set(mesh.blocks) == names
    assert {one.on for one in mesh.fields if one.name == "velocity"} == {"nodes@0", "nodes@1"}
    mesh.check()


def test_only_the_elements_change(pool: junctura.Pool) -> None:
    """Steps with other elements on the same points, and with other points under the same elements."""
    first = with_fields(1, one_block(7, "hex"), 1)[0]
    block = first.blocks["only"]
    turned = replace(block, connectivity=np.roll(block.connectivity.reshape(-1, 8), 1, axis=0).ravel())
    axes = first.points["nodes"].axes
    moved = replace(first.points["nodes"], axes=(axes[0] + 1, *axes[1:]))
    series = [
        first,
        replace(first, step=2, blocks={"only": turned}),
        replace(first, step=3),
        replace(first, step=4, points={"nodes": moved}),
        replace(first, step=5, title="another title"),
    ]
    copy(series, PoolMeshWriter(pool, "a"))
    assert differences(series, PoolMeshReader(pool, "case=a")) == []
    meshes = list(PoolMeshReader(pool, "case=a"))
    assert [mesh.title for mesh in meshes] == ["", "", "", "", "another title"]
    # The third has the elements of the first, whose object is there.
    assert [entry["step"] for entry in pool.list("part=mesh", order_by="step")] == [1, 2, 4, 5]


def test_points_that_move(pool: junctura.Pool, tmp_path: Path) -> None:
    series = with_fields(3, random_mesh(3), steps=4)
    points = series[0].points["nodes"]
    for index in (1, 3):
        axes = (points.axes[0] + index, *points.axes[1:])
        series[index] = replace(series[index], points={"nodes": replace(points, axes=axes)})
    series[2] = replace(series[2], points=series[1].points)
    copy(series, PoolMeshWriter(pool, "a"))
    copy(PoolMeshReader(pool, "case=a"), create(tmp_path / "a.cgns"))
    assert differences(series, read(tmp_path / "a.cgns")) == []
    meshes = list(read(tmp_path / "a.cgns"))
    assert [mesh.points["nodes"].axes[0][0] - points.axes[0][0] for mesh in meshes] == [0, 1, 1, 3]


def test_a_mesh_that_changes(pool: junctura.Pool, tmp_path: Path) -> None:
    first, second = with_fields(0, random_mesh(0), 1)[0], with_fields(1, random_mesh(1), 1)[0]
    second = MeshStep(**{**{name: getattr(second, name) for name in second.__dataclass_fields__}, "step": 2})
    copy([first, second], PoolMeshWriter(pool, "a"))
    assert len(pool.list("part=mesh")) == 2
    assert differences([first, second], PoolMeshReader(pool, "case=a")) == []
    for name in ("a.exo", "a.cgns"):
        writer = create(tmp_path / name)
        writer.write(first)
        with pytest.raises(junctura.Unsupported, match="the mesh changes at step 2"):
            writer.write(second)
        writer.abort()
    assert list(tmp_path.iterdir()) == []
