"""Any mesh of the Blueprint: random meshes, with values of all types, strided in the memory of the simulation."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from catalyst_programs import HERE, CatalystBuild

sys.path.insert(0, str(HERE.parent / "meshes"))

from mesh_files import differences
from random_meshes import random_mesh, several_sets_of_points, with_fields

import junctura
from junctura.mesh import MeshStep, PoolMeshReader
from junctura.mesh._tree import static_tree, step_tree

Send = Callable[..., str]
# Of a field: no identifier of any language.
NAME = 'débit "Q", m³'


@pytest.fixture
def send(catalyst: CatalystBuild, environment: dict[str, str]) -> Send:
    """Runs the program with trees, which are steps of the channel `any`; its errors."""
    program = catalyst.program(HERE / "programs/trees.c")

    def run(trees: list[Any], seed: int = 0, **options: str) -> str:
        rng = np.random.default_rng(seed)
        words = io.BytesIO()
        for step, tree in enumerate(trees):
            write(words, "catalyst/state/timestep", np.array([step], np.int32), rng)
            write(words, "catalyst/channels/any/type", options.get("type", "mesh"), rng)
            write(words, "catalyst/channels/any/data", tree, rng)
            words.write(b"execute\n")
        variables = {
            **environment,
            "JUNCTURA_POOL": "unix:test",
            "CATALYST_IMPLEMENTATION_NAME": "junctura",
            "JUNCTURA_CATALYST": f"case={options.get('case', 'any')}",
        }
        done = subprocess.run([program], input=words.getvalue(), env=variables, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr.decode()

    return run


def write(words: io.BytesIO, path: str, value: Any, rng: np.random.Generator) -> None:
    """Writes a node as the program reads it; numbers get a stride and an offset."""
    if isinstance(value, dict):
        if not value:
            line(words, path, "node")
        for name, child in value.items():
            write(words, f"{path}/{name}", child, rng)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            line(words, path, "item")
            write(words, f"{path}/#{index}", child, rng)
    elif value is None:
        line(words, path, "node")
    elif isinstance(value, str):
        line(words, path, "text", len(value.encode()))
        words.write(value.encode())
    else:
        memory, offset, stride = strided(value, rng)
        line(words, path, "leaf", value.dtype.str[1:], value.size, offset, stride, len(memory))
        words.write(memory)


def line(words: io.BytesIO, path: str, kind: str, *numbers: object) -> None:
    words.write(" ".join(map(str, (kind, len(path.encode()), *numbers))).encode() + b"\n" + path.encode())


def strided(values: np.ndarray, rng: np.random.Generator) -> tuple[bytes, int, int]:
    """Memory in which values are alone, interleaved with others, or in the reverse order."""
    size = values.dtype.itemsize
    way = int(rng.integers(3)) if values.size else 0
    if way == 0:
        return values.tobytes(), 0, size
    if way == 1:
        between = int(rng.integers(1, 4))
        table = rng.integers(256, size=(values.size, between + 1, size)).astype(np.uint8)
        at = int(rng.integers(between + 1))
        table[:, at] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)
        return table.tobytes(), at * size, (between + 1) * size
    return values[::-1].tobytes(), (values.size - 1) * size, -size


def narrowed(mesh: MeshStep, rng: np.random.Generator) -> MeshStep:
    """The mesh with integers of other types, which can express its numbers."""
    blocks = {}
    for name, block in mesh.blocks.items():
        kind = rng.choice(["<i2", "<i4", "<u2", "<u4", "<u8", "<i8"])
        changes: dict[str, Any] = {"connectivity": block.connectivity.astype(kind)}
        if block.sizes is not None:
            changes["sizes"] = block.sizes.astype(rng.choice(["<i4", "<u1", "<i8"]))
        blocks[name] = replace(block, **changes)
    return replace(mesh, blocks=blocks)


def trees_of(series: list[MeshStep]) -> Iterator[Any]:
    static = static_tree(series[0])
    for mesh in series:
        yield step_tree(static, mesh)


@pytest.mark.parametrize("seed", range(30))
def test_random_meshes(pool: junctura.Pool, send: Send, seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    series = with_fields(seed, random_mesh(seed, with_mixed=True)) if seed % 2 else several_sets_of_points(seed)
    first = narrowed(series[0], rng)
    series = [replace(mesh, blocks=first.blocks) for mesh in series]
    assert send(list(trees_of(series)), seed) == ""
    found = list(PoolMeshReader(pool, "case=any"))
    assert (
        differences([replace(mesh, time=None) for mesh in series], [replace(mesh, time=None) for mesh in found]) == []
    )
    assert len(pool.list("part=mesh")) == 1
    for name, block in series[0].blocks.items():
        if block.connectivity.size:
            assert found[0].blocks[name].connectivity.dtype == block.connectivity.dtype


def point(x: float) -> dict[str, Any]:
    """A domain with one element."""
    return {
        "coordsets": {"c": {"type": "explicit", "values": {"x": np.array([x, x + 1]), "y": np.zeros(2)}}},
        "topologies": {
            "rod of 1 m": {
                "type": "unstructured",
                "coordset": "c",
                "elements": {"shape": "line", "connectivity": np.array([0, 1], np.int32)},
            }
        },
        "fields": {NAME: {"association": "element", "topology": "rod of 1 m", "values": np.array([x])}},
    }


def test_a_list_of_domains(pool: junctura.Pool, send: Send) -> None:
    assert send([[point(0.0), point(5.0)]], type="multimesh") == ""
    (mesh,) = PoolMeshReader(pool, "case=any")
    assert list(mesh.blocks) == ["rod of 1 m@0", "rod of 1 m@1"]
    assert [one.name for one in mesh.fields] == [NAME, NAME]
    assert [one.values[""].tolist() for one in mesh.fields] == [[0.0], [5.0]]


def test_blocks_without_elements_and_empty_nodes(pool: junctura.Pool, send: Send) -> None:
    empty = point(1.0)
    empty["topologies"]["rod of 1 m"]["elements"]["connectivity"] = np.empty(0, np.int64)
    empty["fields"] = {"none": {"association": "element", "topology": "rod of 1 m", "values": np.empty(0)}}
    assert send([empty, {}], case="empty") == ""
    first, second = PoolMeshReader(pool, "case=empty")
    assert first.blocks["rod of 1 m"].count == 0
    assert second.blocks == {}


@pytest.mark.parametrize("kind", ["uniform", "rectilinear", "structured", "points"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_kinds_of_topologies(pool: junctura.Pool, send: Send, kind: str, dimensions: int) -> None:
    extents = (4, 3, 2)[:dimensions]
    axes = [0.5 * np.arange(extent, dtype=np.float32) + 1 for extent in extents]
    coordset: dict[str, Any]
    if kind == "uniform":
        coordset = {
            "dims": {axis: np.array([extent], np.int32) for axis, extent in zip("ijk", extents, strict=False)},
            "origin": {axis: np.array([1.0]) for axis in "xyz"[:dimensions]},
            "spacing": {f"d{axis}": np.array([0.5], np.float32) for axis in "xyz"[:dimensions]},
        }
    elif kind == "rectilinear":
        coordset = {"values": dict(zip("xyz", axes, strict=False))}
    else:
        grids = np.meshgrid(*axes[::-1], indexing="ij")[::-1]
        coordset = {"values": {axis: grid.ravel() for axis, grid in zip("xyz", grids, strict=False)}}
    coordset["type"] = kind if kind in ("uniform", "rectilinear") else "explicit"
    topology: dict[str, Any] = {"type": kind, "coordset": "c"}
    if kind == "structured":
        dims = {axis: np.array([extent - 1], np.int64) for axis, extent in zip("ijk", extents, strict=False)}
        topology["elements"] = {"dims": dims}
    count = int(np.prod(extents))
    field = {"association": "vertex", "topology": "t", "values": np.arange(count, dtype=np.uint16)}
    tree = {"coordsets": {"c": coordset}, "topologies": {"t": topology}, "fields": {"f": field}}
    assert send([tree], seed=dimensions) == ""
    (mesh,) = PoolMeshReader(pool, "case=any")
    block = mesh.blocks["t"]
    assert block.count == (count if kind == "points" else int(np.prod([extent - 1 for extent in extents])))
    found = mesh.points["c"].coordinates()
    at = np.unravel_index(np.arange(count), extents[::-1])[::-1]
    for axis in range(dimensions):
        np.testing.assert_array_equal(found[axis], 0.5 * at[axis] + 1)
    np.testing.assert_array_equal(mesh.fields[0].values[""], np.arange(count))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("topologies/t/elements/connectivity", np.array([0, 7]), "it refers to points 0 to 7; there are 2"),
        ("topologies/t/elements/connectivity", np.array([0.0, 1.0]), "points are numbers of the type float64"),
        ("topologies/t/elements/connectivity", None, "topologies/t/elements/connectivity: an array is missing"),
        ("topologies/t/elements/shape", "heptagon", "the shape heptagon is unknown"),
        ("topologies/t/coordset", "other", "there is no coordset other"),
        ("fields/f/values", np.arange(3.0), "3 values on t, which has 1"),
        ("fields/f/topology", "other", "there is no topology other"),
    ],
)
def test_a_wrong_mesh_is_refused_by_its_reader(
    pool: junctura.Pool, send: Send, path: str, value: Any, said: str
) -> None:
    tree = {
        "coordsets": {"c": {"type": "explicit", "values": {"x": np.arange(2.0)}}},
        "topologies": {
            "t": {
                "type": "unstructured",
                "coordset": "c",
                "elements": {"shape": "line", "connectivity": np.array([0, 1])},
            }
        },
        "fields": {"f": {"association": "element", "topology": "t", "values": np.arange(1.0)}},
    }
    node: Any = tree
    *parents, last = path.split("/")
    for name in parents:
        node = node[name]
    node[last] = value
    assert send([tree]) == ""
    with pytest.raises(junctura.InvalidArgument, match=said):
        list(PoolMeshReader(pool, "case=any"))
