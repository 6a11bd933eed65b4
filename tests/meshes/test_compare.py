"""Comparison names what differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mesh_files import differences
from random_meshes import one_block, random_mesh, with_fields

from junctura.mesh import CellFaces, MeshBlock, MeshField, MeshPoints, MeshSet, MeshStep, ValueTolerance, compare

SEED = 3


def series() -> list[MeshStep]:
    return with_fields(SEED, random_mesh(SEED))


def changed(block: MeshBlock, **values: object) -> MeshBlock:
    return replace(block, **values)  # type: ignore[arg-type]


def test_equal() -> None:
    assert differences(series(), series()) == []


def test_one_changed_value() -> None:
    first, second = series(), series()
    field = second[1].fields[1]
    values = {**field.values, "y": field.values["y"].copy()}
    values["y"][17] += 0.5
    fields = tuple(replace(one, values=values) if one is field else one for one in second[1].fields)
    second[1] = replace(second[1], fields=fields)
    (found,) = differences(first, second)
    count = field.values["y"].size
    assert found.startswith("step 2: field velocity_y on points nodes: point 17 is ")
    assert found.endswith(f"(1 of {count} differs, by at most 0.5)")
    assert not list(compare(first, second, ValueTolerance(absolute=0.51)))
    assert list(compare(first, second, ValueTolerance(absolute=0.49)))


def test_a_missing_block() -> None:
    first, second = series(), series()
    name = list(first[0].blocks)[-1]
    blocks = {key: block for key, block in second[0].blocks.items() if key != name}
    second = [
        replace(mesh, blocks=blocks, sets={}, fields=tuple(one for one in mesh.fields if one.on != name))
        for mesh in second
    ]
    first = [replace(mesh, sets={}) for mesh in first]
    assert f"block {name}: missing in the second" in differences(first, second)
    assert f"block {name}: missing in the first" in differences(second, first)


@pytest.mark.parametrize("name", ["hex", "tet10", "mixed"])
def test_permuted_elements(name: str) -> None:
    first = with_fields(1, one_block(4, name) if name != "mixed" else random_mesh(1, with_mixed=True))[0]
    key = next(key for key, block in first.blocks.items() if block.shape == name)
    block = first.blocks[key]
    count = block.count
    order = np.arange(count)
    order[[0, count - 1]] = count - 1, 0
    starts, ends = block.offsets[:-1], block.offsets[1:]
    rows = np.concatenate([block.connectivity[starts[one] : ends[one]] for one in order])
    extra = {} if block.sizes is None else {"sizes": block.sizes[order], "kinds": block.kinds[order]}  # type: ignore[index]
    second = replace(first, blocks={**first.blocks, key: changed(block, connectivity=rows, **extra)})
    (found,) = differences([first], [second])
    expected = f"the same elements in another order: entry 0 of the first is entry {count - 1} of the second"
    assert found == f"block {key}: {expected} (2 of {count} moved)"


def permuted(mesh: MeshStep, of_points: np.ndarray, of_elements: np.ndarray) -> MeshStep:
    """The same mesh of one block, whose points and elements are in other orders, with all that refers to them."""
    points, block = mesh.points["nodes"], mesh.blocks["only"]
    new = np.argsort(of_points)
    rows = [block.connectivity[block.offsets[one] : block.offsets[one + 1]] for one in of_elements]
    joined = np.concatenate(rows)
    sizes = None if block.sizes is None else block.sizes[of_elements]
    faces = block.faces
    if faces is not None:
        # Faces, too, are in another order.
        turned = np.argsort(faces.connectivity[::4], kind="stable")
        joined = np.argsort(turned)[joined]
        faces = CellFaces(new[faces.connectivity.reshape(-1, 4)[turned].ravel()], faces.sizes[turned])
    else:
        joined = new[joined]
    other = changed(block, connectivity=joined, sizes=sizes, faces=faces, ids=block.ids)
    sets = {
        name: replace(one, indices=(new if one.association == "vertex" else np.argsort(of_elements))[one.indices])
        for name, one in mesh.sets.items()
    }
    fields = tuple(
        replace(one, values={"": one.values[""][of_points if one.association == "vertex" else of_elements]})
        for one in mesh.fields
    )
    axes = tuple(axis[of_points] for axis in points.axes)
    return replace(mesh, points={"nodes": MeshPoints(axes)}, blocks={"only": other}, sets=sets, fields=fields)


@pytest.mark.parametrize("name", ["hex", "tri6", "polygonal", "polyhedral"])
def test_what_follows_another_order_is_equal(name: str) -> None:
    """Also values that many points or elements have."""
    mesh = one_block(6, name)
    count, elements = mesh.points["nodes"].count, mesh.blocks["only"].count
    rng = np.random.default_rng(6)
    values = {"T": rng.integers(3, size=count), "p": np.where(np.arange(elements) % 3, 0.5, np.nan)}
    first = replace(
        mesh,
        sets={"a": MeshSet("vertex", "nodes", np.arange(2)), "b": MeshSet("element", "nodes", np.arange(elements - 1))},
        fields=(
            MeshField("T", "vertex", "nodes", {"": values["T"]}),
            MeshField("p", "element", "only", {"": values["p"]}),
        ),
    )
    second = permuted(first, np.roll(np.arange(count), 3), np.roll(np.arange(elements), 1))
    found = differences([first], [second])
    order = f"of the second ({count} of {count} moved)"
    assert found[0] == f"points nodes: the same points in another order: entry 0 of the first is entry 3 {order}"
    assert found[1].startswith("block only: the same elements in another order: entry 0 of the first is entry ")
    assert len(found) == 2
    # One value that did not follow is found.
    wrong = second.fields[0].values[""].copy()
    wrong[4] += 1
    second = replace(second, fields=(replace(second.fields[0], values={"": wrong}), second.fields[1]))
    (more,) = [line for line in differences([first], [second]) if line not in found]
    values_there = f"point 1 is {wrong[4] - 1} and {wrong[4]} (1 of {count} differs, by at most 1)"
    assert more == f"step 0: field T on points nodes: {values_there}"


def test_permuted_blocks() -> None:
    first = with_fields(SEED, random_mesh(SEED))[0]
    names = list(first.blocks)
    assert len(names) > 1
    blocks = {name: first.blocks[name] for name in reversed(names)}
    counts = [block.count for block in first.blocks.values()]
    starts = {name: sum(counts[:at]) for at, name in enumerate(names)}
    others = np.concatenate([np.arange(starts[name], starts[name] + blocks[name].count) for name in blocks])
    sets = {
        name: one if one.association == "vertex" else replace(one, indices=np.argsort(others)[one.indices])
        for name, one in first.sets.items()
    }
    assert differences([first], [replace(first, blocks=blocks, sets=sets)]) == [
        f"blocks on nodes: the same blocks in another order: {', '.join(names)}; {', '.join(reversed(names))}"
    ]


def test_permuted_points_and_values() -> None:
    first = with_fields(SEED, one_block(SEED, "hex"))[0]
    points = first.points["nodes"]
    order = np.roll(np.arange(points.count), 1)
    moved = replace(points, axes=tuple(axis[order] for axis in points.axes))
    (found, *_) = differences([first], [replace(first, points={"nodes": moved})])
    assert found.startswith("points nodes: the same points in another order: entry 0 of the first is entry 1")
    field = first.fields[0]
    rolled = replace(field, values={"": field.values[""][order]})
    (found,) = differences([first], [replace(first, fields=(rolled, *first.fields[1:]))])
    assert "the same values in another order" in found


def test_other_elements_and_points() -> None:
    first = one_block(SEED, "hex")
    block = first.blocks["only"]
    connectivity = block.connectivity.copy()
    connectivity[[0, 1]] = connectivity[[1, 0]]
    (found,) = differences([first], [replace(first, blocks={"only": changed(block, connectivity=connectivity)})])
    assert found.startswith("block only: element 0 has the points ")
    axes = first.points["nodes"].axes
    moved = replace(first.points["nodes"], axes=(axes[0] + 1e-12, *axes[1:]))
    (found,) = differences([first], [replace(first, points={"nodes": moved})])
    assert found.startswith("points nodes: x of point 0 is")
    assert not list(compare([first], [replace(first, points={"nodes": moved})], ValueTolerance(absolute=1e-9)))


def test_sets_steps_and_globals() -> None:
    first = series()
    sets = {**first[0].sets}
    turned: Any = sets["some sides"].sides
    sets["some sides"] = replace(sets["some sides"], sides=(turned + 1) % 3)
    del sets["some elements"]
    second = [replace(mesh, sets=sets) for mesh in first]
    found = differences(first, second)
    assert found[0].startswith("set some sides: ")
    assert found[1:] == ["set some elements: missing in the second"]
    assert differences(first, first[:2]) == ["steps: the second has only 2"]
    later = replace(first[0], time=9.0, globals={"energy": np.array([-1.0])})
    assert [line.partition(":")[2].partition(" is ")[0] for line in differences(first[:1], [later])] == [
        " time: 0.25 and 9.0",
        " global energy: value 0",
    ]


def test_tolerances() -> None:
    one, other = np.array([1.0, np.nan, np.inf, 100.0, 0.0]), np.array([1.0 + 1e-9, np.nan, np.inf, 100.00001, 1e-30])
    assert ValueTolerance().apart(one, other).tolist() == [0, 3, 4]
    assert ValueTolerance(relative=1e-6).apart(one, other).tolist() == [4]
    assert ValueTolerance(relative=1e-6, absolute=1e-20).apart(one, other).tolist() == []
    assert ValueTolerance(float_eps=True).apart(one, other).tolist() == [4]
    assert ValueTolerance(absolute=1.0).apart(np.array([np.inf, np.nan]), np.array([-np.inf, 0.0])).tolist() == [0, 1]
    # Types of elements in memory are not a difference.
    assert ValueTolerance().apart(np.array([1, 2], np.int32), np.array([1.0, 2.0])).tolist() == []
