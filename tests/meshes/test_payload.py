"""The payload of a mesh (docs/formats/mesh.md): no bytes crash the reader, or take memory for what they claim."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import junctura
from junctura.mesh._model import MeshPoints
from junctura.mesh._payload import MAGIC, PackedTree, SharedArrays, unpack
from junctura.mesh._tree import MeshTrees

TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
ARRAYS = st.builds(
    lambda kind, count: (np.arange(count) * 3).astype(kind), st.sampled_from([*TYPES, ">f8", ">i4"]), st.integers(0, 40)
)
TREES: Any = st.recursive(
    st.none() | NAMES | ARRAYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


def same(first: Any, second: Any) -> Any:
    if isinstance(first, np.ndarray):
        return (
            isinstance(second, np.ndarray) and first.dtype.str[1:] == second.dtype.str[1:] and (first == second).all()
        )
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[name], second[name]) for name in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


def head_of(payload: bytes) -> Any:
    return json.loads(payload[16 : 16 + int.from_bytes(payload[8:16], "little")])


def payload_of(head: Any, arrays: bytes = b"", size: int | None = None) -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    start = MAGIC + (len(text) if size is None else size).to_bytes(8, "little") + text
    return start + bytes(-len(start) % 64) + arrays


@given(TREES)
def test_a_tree_comes_back(tree: Any) -> None:
    packed = PackedTree(tree)
    payload = packed.to_bytes()
    assert len(payload) == packed.nbytes
    assert same(tree, unpack(payload))
    assert PackedTree(tree).identifier() == packed.identifier()
    for array in head_of(payload)["arrays"]:
        assert array["offset"] % (64 if array["count"] * int(array["type"][1]) >= 64 else 8) == 0


@given(ARRAYS, ARRAYS)
def test_shared_arrays(shared: Any, own: Any) -> None:
    common = PackedTree({"x": shared})
    step = PackedTree({"x": shared, "p": own}, common.indices())
    found: Any = unpack(step.to_bytes(), SharedArrays(common.to_bytes()))
    assert same({"x": shared, "p": own}, found)
    with pytest.raises(junctura.Corrupt, match="no attribute mesh"):
        unpack(step.to_bytes())


def tried(payload: bytes) -> None:
    """Reads whatever it is, as a tree and as a mesh; only errors of the package are allowed."""
    shared = None
    try:
        shared = SharedArrays(payload)
        tree = unpack(payload, shared)
        MeshTrees().mesh(tree, 0, None)
    except (junctura.Corrupt, junctura.InvalidArgument, junctura.TooLarge):
        pass


@given(st.binary(max_size=300))
def test_any_bytes(payload: bytes) -> None:
    tried(payload)
    tried(MAGIC + payload)
    tried(payload_of(payload))


MESH: Any = {
    "coordsets": {"c": {"type": "explicit", "values": {"x": np.arange(4.0), "y": np.arange(4.0)}}},
    "topologies": {
        "t": {
            "type": "unstructured",
            "coordset": "c",
            "elements": {
                "shape": "mixed",
                "connectivity": np.array([0, 1, 2, 0, 1, 2, 3]),
                "sizes": np.array([3, 4]),
                "offsets": np.array([0, 3]),
                "shapes": np.array([5, 9]),
                "shape_map": {"tri": np.array([5]), "quad": np.array([9])},
            },
        }
    },
    "fields": {"p": {"association": "element", "topology": "t", "values": np.arange(2.0)}},
    "junctura": {
        "sets": {"s": {"association": "side", "coordset": "c", "indices": np.array([0]), "sides": np.array([1])}}
    },
}
PAYLOAD = PackedTree(MESH).to_bytes()


@settings(max_examples=1000)
@given(st.lists(st.tuples(st.integers(0, len(PAYLOAD) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    payload = bytearray(PAYLOAD)
    for at, value in changes:
        payload[at] = value
    tried(bytes(payload))


@given(st.integers(0, len(PAYLOAD) - 1))
def test_truncated(size: int) -> None:
    with pytest.raises(junctura.Corrupt):
        unpack(PAYLOAD[:size])


def array(kind: str = "f8", count: int = 1, offset: int = 128) -> dict[str, Any]:
    return {"type": kind, "count": count, "offset": offset}


@pytest.mark.parametrize(
    ("payload", "cause"),
    [
        (b"", "magic"),
        (b"JMESH\0\0\2" + bytes(8), "magic"),
        (payload_of(b"{}", size=1 << 62), "a head of"),
        (payload_of(b"{}"), "other names"),
        (payload_of(b"nothing"), "not JSON"),
        (payload_of(b"[" * 2000), "not JSON"),
        (payload_of({"tree": 1.5, "arrays": []}), "number 1.5"),
        (payload_of({"tree": 1, "arrays": []}), "outside of an array"),
        (payload_of({"tree": True, "arrays": []}), "outside of an array"),
        (payload_of(b'{"tree": {"a": null, "a": null}, "arrays": []}'), "occurs twice"),
        (payload_of({"tree": {"": None}, "arrays": []}), "empty"),
        (payload_of({"tree": {"a" * 256: None}, "arrays": []}), "too long"),
        (payload_of(b'{"tree": "\\ud800", "arrays": []}'), "Unicode"),
        (payload_of({"tree": {"array": 0}, "arrays": []}), "array 0 of 0"),
        (payload_of({"tree": {"array": -1}, "arrays": [array(count=0)]}), "array -1 of 1"),
        (payload_of({"tree": {"array": 0, "of": "other"}, "arrays": [array(count=0)]}), "the names"),
        (payload_of({"tree": None, "arrays": [array(count=1 << 60)]}), "begins at byte"),
        (payload_of({"tree": None, "arrays": [array(count=-1)]}), "no valid count"),
        (payload_of({"tree": None, "arrays": [array(count=True)]}), "no valid count"),
        (payload_of({"tree": None, "arrays": [array(offset=8)]}, bytes(64)), "begins at byte"),
        (payload_of({"tree": None, "arrays": [array(offset=129)]}, bytes(64)), "begins at byte"),
        (payload_of({"tree": None, "arrays": [array(offset=136, count=8)]}, bytes(128)), "begins at byte"),
        (payload_of({"tree": None, "arrays": [array(kind="O")]}), "the type O"),
        (payload_of({"tree": None, "arrays": [{}]}), "other names than type"),
    ],
)
def test_refused(payload: bytes, cause: str) -> None:
    with pytest.raises(junctura.Corrupt, match=cause):
        unpack(payload)


def test_depth() -> None:
    tree: Any = None
    for _ in range(33):
        tree = [tree]
    with pytest.raises(junctura.TooLarge, match="32 levels"):
        PackedTree(tree)
    with pytest.raises(junctura.Corrupt, match="32 levels"):
        unpack(payload_of({"tree": tree, "arrays": []}))
    assert unpack(PackedTree(tree[0]).to_bytes()) == tree[0]


def test_claims_cost_nothing() -> None:
    nodes = payload_of(b'{"tree": [' + b"null," * 3_000_000 + b'null], "arrays": []}')
    head = payload_of(b'"' + b"a" * (17 << 20) + b'"')
    count = payload_of({"tree": {"array": 0}, "arrays": [array(count=1 << 40)]})
    for payload in (nodes, head, count):
        tracemalloc.start()
        with pytest.raises(junctura.Corrupt):
            unpack(payload)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * len(payload) + (1 << 20)


def test_what_a_payload_cannot_have() -> None:
    for value in (np.array(["text"]), np.zeros((2, 2)), np.zeros(1, complex), np.zeros(1, bool)):
        with pytest.raises(junctura.InvalidArgument, match="a leaf is a list of numbers"):
            PackedTree({"a": value})
    with pytest.raises(junctura.InvalidArgument, match="1 to 255 bytes"):
        PackedTree({"": None})


def test_golden_bytes() -> None:
    """The example of the page, byte for byte: a change of the format is a new version."""
    tree: Any = {"x": np.array([1.0, 2.0]), "n": np.array([7], np.int32), "name": "a"}
    payload = PackedTree(tree).to_bytes()
    head = b'{"tree":{"x":{"array":0},"n":{"array":1},"name":"a"},"arrays":[{"type":"f8","count":2,"offset":192},'
    head += b'{"type":"i4","count":1,"offset":208}]}'
    start = b"JMESH\0\0\1" + len(head).to_bytes(8, "little") + head
    assert payload == start.ljust(192, b"\0") + np.array([1.0, 2.0]).tobytes() + np.array([7], "<i4").tobytes()


def domain(value: float) -> dict[str, Any]:
    return {
        "coordsets": {"coords": {"type": "uniform", "dims": {"i": np.array([3])}, "origin": {"x": np.array([value])}}},
        "topologies": {f"mesh{value:.0f}": {"type": "uniform", "coordset": "coords"}},
        "fields": {"p": {"association": "vertex", "topology": f"mesh{value:.0f}", "values": np.full(3, value)}},
        "adjsets": {"adjset": {"association": "vertex"}},
    }


def test_domains_are_one_mesh() -> None:
    mesh = MeshTrees().mesh({"a": domain(0), "b": domain(1)}, 3, 0.5)
    # Names that only one domain has stay.
    assert list(mesh.points) == ["coords@a", "coords@b"]
    assert [(name, block.points) for name, block in mesh.blocks.items()] == [
        ("mesh0", "coords@a"),
        ("mesh1", "coords@b"),
    ]
    assert [(one.name, one.on) for one in mesh.fields] == [("p", "coords@a"), ("p", "coords@b")]
    assert mesh.points["coords@b"].axes[0].tolist() == [1.0, 2.0, 3.0]
    assert mesh.notes == ("a/adjsets", "b/adjsets")
    assert MeshTrees().mesh([domain(0), domain(1)], 0, None).points.keys() == {"coords@0", "coords@1"}


def test_grids_have_a_limit() -> None:
    dims = {"i": np.array([1 << 20]), "j": np.array([1 << 20])}
    for coordset in ({"type": "uniform", "dims": dims}, {"type": "uniform", "dims": {"i": np.array([1 << 40])}}):
        tree: Any = {"coordsets": {"c": coordset}, "topologies": {"t": {"type": "uniform", "coordset": "c"}}}
        with pytest.raises(junctura.InvalidArgument, match="coordsets/c"):
            MeshTrees().mesh(tree, 0, None)


def test_numbers_of_a_grid_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    dims = {"i": np.array([1 << 15]), "j": np.array([1 << 16])}
    tree: Any = {
        "coordsets": {"c": {"type": "uniform", "dims": dims}},
        "topologies": {"t": {"type": "uniform", "coordset": "c"}},
    }
    mesh = MeshTrees().mesh(tree, 0, None)
    points, block = mesh.points["c"], mesh.blocks["t"]
    assert (points.count, block.count) == (1 << 31, ((1 << 15) - 1) * ((1 << 16) - 1))
    makers: list[Callable[[], object]] = [points.coordinates, block.unstructured, lambda: block.of_kinds]
    tracemalloc.start()
    try:
        for make in makers:
            with pytest.raises(junctura.TooLarge, match=r"at most 67108864 .*JUNCTURA_MESH_POINTS_MAX"):
                make()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    monkeypatch.setenv("JUNCTURA_MESH_POINTS_MAX", "6")
    small = MeshPoints((np.arange(2.0), np.arange(3.0)), "rectilinear")
    assert [axis.size for axis in small.coordinates()] == [6, 6]
    monkeypatch.setenv("JUNCTURA_MESH_POINTS_MAX", "5")
    with pytest.raises(junctura.TooLarge, match="grid of 6 points"):
        small.coordinates()
    monkeypatch.setenv("JUNCTURA_MESH_POINTS_MAX", "many")
    with pytest.raises(junctura.InvalidArgument, match="a number of points"):
        small.coordinates()


def test_offsets_and_numbers_of_shapes_of_others() -> None:
    elements = {
        "shape": "mixed",
        "connectivity": np.array([9, 0, 1, 2, 9, 9, 0, 1, 2, 3]),
        "sizes": np.array([4, 3]),
        "offsets": np.array([6, 1]),
        "shapes": np.array([40, 30]),
        "shape_map": {"tri": np.array([30]), "quad": np.array([40])},
    }
    tree = {**MESH, "topologies": {"t": {**MESH["topologies"]["t"], "elements": elements}}}
    block = MeshTrees().mesh(tree, 0, None).blocks["t"]
    assert block.connectivity.tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert block.of_kinds.tolist() == [9, 5]


def topology(elements: dict[str, Any], **more: Any) -> Any:
    points = {"type": "explicit", "values": {"x": np.arange(8.0), "y": np.arange(8.0)}}
    node = {"type": "unstructured", "coordset": "c", "elements": elements, **more}
    return {"coordsets": {"c": points}, "topologies": {"t": node}}


MOST = np.iinfo(np.int64).max


@pytest.mark.parametrize(
    "wrong", [[1.5], [np.nan], [np.inf], [MOST], [MOST, MOST, 5], [-1, 4], np.array([1 << 63] * 2, "u8")]
)
@pytest.mark.parametrize("place", ["sizes", "offsets", "shapes", "shape_map", "subelements", "id", "dims"])
def test_numbers_that_no_mesh_has(place: str, wrong: Any) -> None:
    """Neither a sum beyond 64 bits, nor a float where an integer belongs, comes past the checks."""
    values = np.array(wrong)
    elements: Any = {"shape": "polygonal", "connectivity": np.arange(3), "sizes": np.array([3])}
    more: Any = {}
    if place in ("shapes", "shape_map"):
        elements |= {"shape": "mixed", "shapes": np.array([5]), "shape_map": {"tri": np.array([5])}}
    if place == "shape_map":
        elements["shape_map"] = {"tri": values}
    elif place == "subelements":
        elements |= {"shape": "polyhedral", "connectivity": np.array([0]), "sizes": np.array([1])}
        more = {"subelements": {"connectivity": np.arange(3), "sizes": values}}
    elif place in ("sizes", "offsets", "shapes"):
        elements[place] = values
    tree = topology(elements, **more)
    if place == "id":
        tree["junctura"] = {"topologies": {"t": {"id": values}}}
    if place == "dims":
        tree["coordsets"]["c"] = {"type": "uniform", "dims": {"i": values}}
    if place == "id" and values.dtype.kind in "iu":
        assert MeshTrees().mesh(tree, 0, None).blocks["t"].number == values[0]
    else:
        with pytest.raises(junctura.InvalidArgument):
            MeshTrees().mesh(tree, 0, None)


def many_grids() -> Any:
    dims = {"i": np.array([1 << 24])}
    return {"coordsets": {f"c{n}": {"type": "uniform", "dims": dims} for n in range(1000)}, "topologies": {}}


def many_topologies_of_a_grid() -> Any:
    dims = {"i": np.array([1 << 12]), "j": np.array([1 << 12])}
    blocks = {f"t{n}": {"type": "points", "coordset": "c"} for n in range(1000)}
    return {"coordsets": {"c": {"type": "uniform", "dims": dims}}, "topologies": blocks}


def overlapping_elements() -> Any:
    count = 1 << 20
    sizes, offsets = np.full(100, count), np.zeros(100, np.int64)
    return topology({"shape": "polygonal", "connectivity": np.zeros(count, "i1"), "sizes": sizes, "offsets": offsets})


def one_array_a_thousand_times() -> Any:
    elements = {"shape": "tri", "connectivity": np.zeros(3 << 18, "i1")}
    node = topology(elements)["topologies"]["t"]
    return {**topology(elements), "topologies": {f"t{n}": node for n in range(1000)}}


@pytest.mark.parametrize(
    "make", [many_grids, many_topologies_of_a_grid, overlapping_elements, one_array_a_thousand_times]
)
def test_a_mesh_is_not_much_larger_than_its_payload(make: Any) -> None:
    payload = PackedTree(make()).to_bytes()
    assert len(payload) < 2 << 20
    tracemalloc.start()
    with pytest.raises(junctura.TooLarge, match="16 times those it has"):
        MeshTrees().mesh(unpack(payload), 0, None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 9 * (1 << 26)
