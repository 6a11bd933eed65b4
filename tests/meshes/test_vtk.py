"""VTK's readers judge files that are written here, and what is read here of files of others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vtk_readers
from mesh_files import copy, real_files
from random_meshes import SOLIDS, one_block, random_mesh, with_fields

from junctura.mesh import MeshBlock, MeshField, MeshPoints, MeshStep, _vtk, create, read
from junctura.mesh._pictures import PicturePainter, PictureStyle, has_egl
from junctura.mesh._shapes import SHAPES
from junctura.mesh._vtk import MeshViews, to_vtk

QUADRATIC = [name for name, shape in SHAPES.items() if name != shape.linear]
SEEDS = range(30)


def mesh_axes(mesh: MeshStep) -> tuple[np.ndarray, ...]:
    return mesh.points["nodes"].axes


def assert_same_cells(mine: Any, theirs: Any) -> None:
    """Compares the corners of all cells by their places, as readers may leave points out."""
    of_mine, of_theirs = vtk_readers.cells(mine), vtk_readers.cells(theirs)
    assert [kind for kind, _ in of_mine] == [kind for kind, _ in of_theirs]
    here, there = vtk_readers.coordinates(mine), vtk_readers.coordinates(theirs)
    for (_, points), (_, others) in zip(of_mine, of_theirs, strict=True):
        assert np.array_equal(here[list(points)], there[list(others)])


def assert_same_values(mesh: MeshStep, association: str, on: str, theirs: dict[str, np.ndarray]) -> int:
    """Compares each component of each field; readers make vectors of components by their names."""
    flat = {name: array.reshape(len(array), -1).T for name, array in theirs.items()}
    found = 0
    for one in mesh.fields:
        if one.on == on and one.association == association:
            for name, array in one.scalars():
                stem = max((key for key in flat if name.startswith(key)), key=len)
                assert any(np.array_equal(array, column) for column in flat[stem]), name
                found += 1
    return found


@real_files
def test_real_files_as_vtk_reads_them(path: Path) -> None:
    judge = vtk_readers.exodus if path.suffix == ".g" else vtk_readers.cgns
    views = MeshViews()
    for index, mesh in enumerate(read(path)):
        theirs, times = judge(path, index)
        assert times[index] == mesh.time
        mine = views.blocks(mesh)
        assert set(mine) == set(theirs)
        for name, grid in mine.items():
            assert_same_cells(grid, theirs[name])
            # VTK's CGNS reader does not find the solutions of later steps of all of these files; IOSS does.
            if path.suffix == ".g" or index == 0:
                assert_same_values(mesh, "element", name, vtk_readers.values(theirs[name].GetCellData()))
        if index == 2:
            break


@real_files
def test_real_files_as_ioss_reads_them(path: Path) -> None:
    for index, mesh in enumerate(read(path)):
        theirs, times = vtk_readers.ioss(path, index)
        assert times[index] == mesh.time
        for association, data in (
            ("element", [grid.GetCellData() for grid in theirs.values()]),
            ("vertex", [grid.GetPointData() for grid in theirs.values()]),
        ):
            parts = [vtk_readers.values(one) for one in data]
            expected = [
                values for one in mesh.fields if one.association == association for values in one.values.values()
            ]
            if not expected:
                continue
            # Grids of CGNS are its blocks and their sides, those of Exodus lack the points of other blocks.
            names = [one.name.lower() for one in mesh.fields]
            found = [
                array.ravel()
                for part in parts
                for key, array in part.items()
                if any(name.startswith(key.lower()) for name in names)
            ]
            assert set(np.concatenate(expected)) == set(np.concatenate(found))
        if index == 2:
            break


@pytest.mark.parametrize("seed", SEEDS)
def test_exodus_files(tmp_path: Path, seed: int) -> None:
    series = with_fields(seed, random_mesh(seed))
    copy(series, create(tmp_path / "a.exo"))
    theirs, times = vtk_readers.exodus(tmp_path / "a.exo", 1)
    assert times == [mesh.time for mesh in series]
    mine = MeshViews().blocks(series[1])
    assert set(theirs) == set(mine)
    for name, grid in mine.items():
        if series[1].blocks[name].shape != "polyhedral":
            assert_same_cells(grid, theirs[name])
        assert vtk_readers.volume(theirs[name]) == pytest.approx(vtk_readers.volume(grid))
        assert_same_values(series[1], "element", name, vtk_readers.values(theirs[name].GetCellData()))
        assert assert_same_values(
            series[1], "vertex", "nodes", vtk_readers.values(theirs[name].GetPointData())
        ) == 1 + len(mesh_axes(series[1]))


def test_points_that_move_in_cgns_files(tmp_path: Path) -> None:
    series = with_fields(1, one_block(7, "hex"), 3)
    points = series[0].points["nodes"]
    axes = (points.axes[0] * 2, *points.axes[1:])
    series[1] = replace(series[1], points={"nodes": replace(points, axes=axes)})
    copy(series, create(tmp_path / "a.cgns"))
    volumes = []
    for index, mesh in enumerate(series):
        (grid,) = vtk_readers.cgns(tmp_path / "a.cgns", index)[0].values()
        (mine,) = MeshViews().blocks(mesh).values()
        assert_same_cells(mine, grid)
        volumes.append(vtk_readers.volume(grid))
    assert volumes[1] == pytest.approx(2 * volumes[0])
    assert volumes[2] == pytest.approx(volumes[0])


@pytest.mark.parametrize("seed", range(4))
def test_mixed_blocks_are_split_in_exodus_files(tmp_path: Path, seed: int) -> None:
    series = with_fields(seed, random_mesh(seed, with_mixed=True))
    whole = series[1]
    copy(series, create(tmp_path / "a.exo"))
    theirs, _ = vtk_readers.exodus(tmp_path / "a.exo", 1)
    name = next(name for name, block in whole.blocks.items() if block.shape == "mixed")
    parts = [f"{name}_{shape}" for shape in ("tet", "hex20", "wedge15", "hex")]
    assert set(theirs) == {*whole.blocks, *parts} - {name}
    mine = MeshViews().blocks(whole)[name]
    assert sum(vtk_readers.volume(theirs[part]) for part in parts) == pytest.approx(vtk_readers.volume(mine))
    # Each element has its value, wherever it is now: a value belongs to the places of the corners.
    expected = by_place(mine, next(one.values[""] for one in whole.fields if (one.name, one.on) == ("p", name)))
    found = [by_place(theirs[part], vtk_readers.values(theirs[part].GetCellData())["p"]) for part in parts]
    assert set().union(*found) == expected
    with read(tmp_path / "a.exo") as copies:
        again = next(iter(copies))
    old, new = whole.sets["some sides"], again.sets["some sides"]
    assert old.sides is not None
    assert new.sides is not None
    assert np.array_equal(old.sides, new.sides)
    assert elements_at(whole, old.indices) == elements_at(again, new.indices)


def by_place(grid: Any, data: np.ndarray) -> set[Any]:
    here = vtk_readers.coordinates(grid)
    return {
        (here[list(points)].tobytes(), float(value))
        for (_, points), value in zip(vtk_readers.cells(grid), data, strict=True)
    }


def elements_at(mesh: MeshStep, indices: np.ndarray) -> list[bytes]:
    """Returns the points of elements that are counted through all blocks."""
    rows = [
        block.connectivity[first:last].astype(np.int64).tobytes()
        for block in mesh.blocks.values()
        for first, last in zip(block.offsets[:-1], block.offsets[1:], strict=True)
    ]
    return [rows[index] for index in indices]


@pytest.mark.parametrize("seed", SEEDS)
def test_cgns_files(tmp_path: Path, seed: int) -> None:
    # VTK's reader knows no pyramid13, and makes cells of points and lines.
    series = with_fields(seed, random_mesh(seed, with_mixed=True, without=("point", "line", "pyramid13")))
    rank = max(block.rank for block in series[0].blocks.values())
    copy(series, create(tmp_path / "a.cgns"))
    theirs, times = vtk_readers.cgns(tmp_path / "a.cgns", 1)
    assert times == [mesh.time for mesh in series]
    # The reader has one grid for a zone, with all of its cells of most dimensions.
    (grid,) = theirs.values()
    mine = [one for name, one in MeshViews().blocks(series[1]).items() if series[1].blocks[name].rank == rank]
    assert sum(one.GetNumberOfCells() for one in mine) == grid.GetNumberOfCells()
    assert sum(map(vtk_readers.volume, mine)) == pytest.approx(vtk_readers.volume(grid))
    assert assert_same_values(series[1], "vertex", "nodes", vtk_readers.values(grid.GetPointData())) == 1 + len(
        mesh_axes(series[1])
    )
    # The reader appends polygons and polyhedra to all other cells.
    if not any(block.shape in ("polygonal", "polyhedral") for block in series[1].blocks.values()):
        cells = [cell for one in mine for cell in vtk_readers.cells(one)]
        assert cells == vtk_readers.cells(grid)
        pressures = [one.values[""] for one in series[1].fields if one.name == "p"]
        assert np.array_equal(vtk_readers.values(grid.GetCellData())["p"], np.concatenate(pressures))


@pytest.mark.parametrize("name", [*SOLIDS, "polyhedral"])
def test_the_cgns_library_opens_files_with_one_block(tmp_path: Path, name: str) -> None:
    """IOSS takes one section for each zone; its library validates the file, and VTK's reader makes no grids of it."""
    series = with_fields(1, one_block(7, name))
    copy(series, create(tmp_path / "a.cgns"))
    _, times = vtk_readers.ioss(tmp_path / "a.cgns", 1)
    assert times == [mesh.time for mesh in series]


def test_structured_zones_as_ioss_reads_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    axes = (np.arange(3.0), np.arange(4.0), np.arange(5.0))
    points = MeshPoints(MeshPoints(axes, "rectilinear").coordinates())
    mesh = MeshStep({"box": points}, {"box": MeshBlock("box", "structured", dims=(2, 3, 4))})
    fields = (
        MeshField("p", "element", "box", {"": rng.random(24)}),
        MeshField("t", "vertex", "box", {"": rng.random(60)}),
    )
    written = replace(mesh, fields=fields, step=1, time=0.5)
    copy([written], create(tmp_path / "a.cgns"))
    theirs, times = vtk_readers.ioss(tmp_path / "a.cgns", 0)
    assert times == [0.5]
    grid = next(one for one in theirs.values() if one.GetNumberOfCells() == 24)
    (mine,) = MeshViews().blocks(written).values()
    assert_same_cells(mine, grid)
    assert np.array_equal(vtk_readers.values(grid.GetCellData())["p"], fields[0].values[""])
    assert np.array_equal(vtk_readers.values(grid.GetPointData())["t"], fields[1].values[""])


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize("ending", ["exo", "cgns"])
def test_points_of_quadratic_elements_are_where_vtk_expects_them(tmp_path: Path, name: str, ending: str) -> None:
    """A reference element of VTK itself, through a file, is the reference element for VTK's reader."""
    from vtkmodules.vtkCommonDataModel import vtkGenericCell

    shape = SHAPES[name]
    cell = vtkGenericCell()
    cell.SetCellType(shape.vtk)
    reference = np.array(cell.GetParametricCoords()).reshape(-1, 3) if shape.points > 1 else np.zeros((1, 3))
    assert len(reference) == shape.points
    axes = tuple(np.ascontiguousarray(axis) for axis in reference.T)
    block = MeshBlock("nodes", name, np.arange(shape.points))
    copy([MeshStep({"nodes": MeshPoints(axes)}, {"one": block}, time=0.0)], create(tmp_path / f"a.{ending}"))
    judge = vtk_readers.exodus if ending == "exo" else vtk_readers.cgns
    if ending == "cgns" and name in ("point", "pyramid13"):
        pytest.skip("VTK's reader of CGNS does not know it")
    theirs, _ = judge(tmp_path / f"a.{ending}", 0)
    ((kind, points),) = vtk_readers.cells(next(iter(theirs.values())))
    assert kind == shape.vtk
    assert np.array_equal(vtk_readers.coordinates(next(iter(theirs.values())))[list(points)], reference)


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.rank == 3])
def test_sides_are_faces_of_vtk_and_look_outwards(name: str) -> None:
    from vtkmodules.vtkCommonDataModel import vtkGenericCell

    shape = SHAPES[name]
    cell = vtkGenericCell()
    cell.SetCellType(shape.vtk)
    for at in range(shape.points):
        cell.GetPointIds().SetId(at, at)
    theirs = set()
    for index in range(cell.GetNumberOfFaces()):
        face = cell.GetFace(index).GetPointIds()
        theirs.add(frozenset(face.GetId(at) for at in range(face.GetNumberOfIds())))
    assert {frozenset(side) for side in shape.sides} == theirs
    reference = np.array(cell.GetParametricCoords()).reshape(-1, 3)
    for side in shape.sides:
        first, second, third = reference[list(side[:3])]
        outwards = np.cross(second - first, third - first) @ (
            reference[list(side)].mean(axis=0) - reference.mean(axis=0)
        )
        assert outwards > 0, (name, side)


@pytest.mark.parametrize("seed", SEEDS)
def test_volumes_are_positive(seed: int) -> None:
    mesh = random_mesh(seed)
    for name, block in mesh.blocks.items():
        if block.rank < 3 or block.shape == "polyhedral":
            continue
        points = np.stack(mesh.points["nodes"].axes, axis=1)
        rows = points[block.connectivity.reshape(-1, SHAPES[block.shape].points)]
        middle = rows.mean(axis=1)
        volumes = np.zeros(len(rows))
        for side in SHAPES[block.shape].sides:
            corners = [one for one in side if one < len(SHAPES[SHAPES[block.shape].linear].sides) + 3][:4]
            corners = list(side[: len(SHAPES[SHAPES[block.shape].linear].sides[SHAPES[block.shape].sides.index(side)])])
            for at in range(1, len(corners) - 1):
                edges = [rows[:, corners[one]] - middle for one in (0, at, at + 1)]
                volumes += np.einsum("ij,ij->i", np.cross(edges[0], edges[1]), edges[2]) / 6
        assert (volumes > 0).all(), name
        grid = MeshViews().blocks(mesh)[name]
        assert volumes.sum() == pytest.approx(vtk_readers.volume(grid))


def test_views_share_memory_and_geometry() -> None:
    series = with_fields(3, random_mesh(3))
    views = MeshViews()
    first, second = (views.blocks(mesh) for mesh in series[:2])
    name = next(iter(first))
    assert first[name].GetPoints() is second[name].GetPoints()
    there = vtk_readers.values(second[name].GetPointData())["temperature"]
    assert np.shares_memory(there, series[1].fields[0].values[""])


@pytest.mark.skipif(not has_egl(), reason="libEGL.so.1 is not here")
@pytest.mark.parametrize("name", ["tet", "pyramid", "wedge", "hex", "hex20", "quad", "line", "rectilinear", "curved"])
def test_a_surface_looks_as_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in ("rectilinear", "curved"):
        axes = (np.arange(5.0), np.arange(4.0) ** 2, np.arange(3.0))
        points = {"grid": MeshPoints(axes, "rectilinear")}
        if name == "curved":
            points = {"grid": MeshPoints(points["grid"].coordinates())}
        values = np.random.default_rng(1).random((2, 60))
        blocks = {"box": MeshBlock("grid", "structured", dims=(4, 3, 2))}
        fields = [MeshField("temperature", "vertex", "grid", {"": one}) for one in values]
        series = [MeshStep(points, blocks, {}, (one,), step) for step, one in enumerate(fields)]
    else:
        series = with_fields(4, one_block(4, name))[:2]
    pictures: list[list[Any]] = []
    for solids in (_vtk._SOLIDS, ()):
        monkeypatch.setattr(_vtk, "_SOLIDS", solids)
        with PicturePainter(PictureStyle("temperature", (160, 120), (0, 1), with_edges=True)) as painter:
            pictures.append([painter.pixels(mesh) for mesh in series])
    for mine, whole in zip(*pictures, strict=True):
        assert np.array_equal(mine, whole)
    assert not np.array_equal(*pictures[0])


@pytest.mark.parametrize("rank", [1, 2])
def test_structured_blocks_of_fewer_dimensions(rank: int) -> None:
    axes = (np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0]))[:rank]
    block = MeshBlock("grid", "structured", dims=(2, 1)[:rank])
    mesh = MeshStep({"grid": MeshPoints(axes, "rectilinear")}, {"plate": block})
    mesh.check()
    (grid,) = vtk_readers.blocks_of(to_vtk(mesh)).values()
    assert grid.GetNumberOfCells() == block.count == 2
    assert grid.GetBounds()[:4] == (0.0, 3.0, 0.0, 2.0 if rank == 2 else 0.0)


def test_structured_blocks() -> None:
    axes = (np.arange(3.0), np.arange(4.0), np.arange(5.0))
    mesh = MeshStep({"grid": MeshPoints(axes, "rectilinear")}, {"box": MeshBlock("grid", "structured", dims=(2, 3, 4))})
    mesh.check()
    (grid,) = vtk_readers.blocks_of(to_vtk(mesh)).values()
    assert grid.GetClassName() == "vtkRectilinearGrid"
    assert vtk_readers.volume(grid) == pytest.approx(24)
    explicit = replace(mesh, points={"grid": MeshPoints(mesh.points["grid"].coordinates())})
    (curved,) = vtk_readers.blocks_of(to_vtk(explicit)).values()
    assert curved.GetClassName() == "vtkStructuredGrid"
    assert np.array_equal(vtk_readers.coordinates(grid), vtk_readers.coordinates(curved))
    whole = MeshStep(mesh.points, {"box": mesh.blocks["box"].unstructured()})
    (other,) = vtk_readers.blocks_of(to_vtk(whole)).values()
    assert vtk_readers.volume(other) == pytest.approx(24)
    assert_same_cells(curved, other)
