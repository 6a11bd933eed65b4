"""``junctura mesh``: copy, compare, replay, info."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from mesh_files import copy
from random_meshes import one_block, random_mesh, with_fields

import junctura
from junctura.mesh import MeshField, MeshSet, create, read
from junctura.mesh._ends import MeshPlace

ROOT = Path(__file__).parents[2]


def mesh(*words: object) -> subprocess.CompletedProcess[str]:
    # What `junctura mesh` becomes.
    command = [sys.executable, "-m", "junctura.mesh", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.fixture
def exodus(tmp_path: Path) -> Path:
    path = tmp_path / "a.exo"
    copy(with_fields(3, random_mesh(3)), create(path))
    return path


def test_copy_and_compare(tmp_path: Path, exodus: Path) -> None:
    done = mesh("copy", exodus, tmp_path / "b.cgns")
    assert done.stderr == f"3 steps from {exodus} to {tmp_path}/b.cgns\n"
    done = mesh("compare", exodus, tmp_path / "b.cgns")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "equal: 3 steps\n")
    series = list(read(exodus))
    fields = [replace(one, values={"": one.values[""].copy()}) for one in series[2].fields]
    fields[0].values[""][5] *= 1 + 1e-5
    copy([*series[:2], replace(series[2], fields=tuple(fields))], create(tmp_path / "c.exo"))
    done = mesh("compare", exodus, tmp_path / "c.exo")
    assert done.returncode == 1
    assert done.stdout.startswith(f"step 3: field {fields[0].name} on points nodes: point 5 is ")
    assert done.stdout.count("\n") == 1
    assert mesh("compare", exodus, tmp_path / "c.exo", "--rel", "2e-5").returncode == 0
    assert mesh("compare", exodus, tmp_path / "c.exo", "--abs", "1e-3").returncode == 0
    assert mesh("compare", exodus, tmp_path / "c.exo", "--float-eps").returncode == 1


def test_a_limit_of_differences(tmp_path: Path, exodus: Path) -> None:
    copy(with_fields(4, random_mesh(3)), create(tmp_path / "c.exo"))
    done = mesh("compare", exodus, tmp_path / "c.exo", "--limit", "2")
    assert done.returncode == 1
    assert done.stdout.splitlines()[2:] == ["more differences than 2 are not shown (--limit)"]


def test_pools_and_stores(tmp_path: Path, exodus: Path) -> None:
    junctura.Store.create(tmp_path / "store", schema="mesh")
    with junctura.Pool(f"unix:{tmp_path}/pool.sock", start=True, schema="mesh") as pool:
        place, stored = f"{pool.url}?case=a&channel=fluid", f"file://{tmp_path}/store?case=a"
        assert mesh("replay", exodus, place, "--interval", "1ms").returncode == 0
        assert len(pool.list("case=a, channel=fluid, part=fields")) == 3
        assert mesh("compare", exodus, place).returncode == 0
        assert mesh("copy", place, stored, "--quiet").stderr == ""
        assert mesh("compare", stored, place).returncode == 0
        assert mesh("copy", stored, tmp_path / "b.exo").returncode == 0
        assert mesh("compare", exodus, tmp_path / "b.exo").returncode == 0
        done = mesh("copy", exodus, place)
        assert done.returncode == 1
        assert "AlreadyExists" in done.stderr
        mesh("copy", exodus, f"{pool.url}?case=b")
        done = mesh("info", pool.url)
        assert done.returncode == 2
        assert "several meshes match; name one of case=a&channel=fluid, case=b&channel=mesh" in done.stderr
        done = mesh("info", f"{pool.url}?case=c")
        assert done.returncode == 3
        assert "no step matches" in done.stderr
        pool.stop()


def test_info(tmp_path: Path) -> None:
    series = with_fields(1, one_block(7, "hex"))
    ends = {"ends": MeshSet("vertex", "nodes", np.array([0, 5])), "one": MeshSet("element", "nodes", np.array([0]))}
    copy([replace(one, title="a cube", sets=ends) for one in series], create(tmp_path / "a.exo"))
    done = mesh("info", tmp_path / "a.exo")
    count, points = series[0].blocks["only"].count, series[0].points["nodes"].count
    assert done.stdout.splitlines() == [
        "title   a cube",
        f"points  nodes: {points} in 3-D",
        f"block   only: {count} hex elements",
        "set     ends: 2 points",
        "set     one: 1 element",
        "field   temperature on nodes",
        *(f"field   velocity_{axis} on nodes" for axis in "xyz"),
        "field   p on only",
        "field   k on only",
        "steps   3, time 0.25 to 0.75",
    ]
    described = json.loads(mesh("info", tmp_path / "a.exo", "--json").stdout)
    schema = json.loads((ROOT / "docs/formats/json/mesh-info.schema.json").read_text())
    jsonschema.validate(described, schema)
    assert described["times"] == [0.25, 0.5, 0.75]
    assert described["blocks"][0]["elements"] == count


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["copy", "a.txt", "b.exo"], 2, "the ending .txt is unknown"),
        (["copy", "a", "b.exo"], 2, "the ending (none) is unknown"),
        (["copy", "nothing.exo", "b.exo"], 3, "there is no such file"),
        (["copy", "nothing.cgns", "b.exo"], 3, "there is no such file"),
        (["info", "{empty}.exo"], 1, "empty.exo"),
        (["info", "{empty}.cgns"], 1, "empty.cgns"),
        (["copy", "{good}", "unix:/nowhere.sock"], 2, "name the case to write"),
        (["copy", "{good}", "unix:/nowhere.sock?case=a&step=1"], 2, "name the case to write"),
        (["copy", "{good}", "unix:/nowhere.sock?case=a"], 5, "nowhere.sock"),
        (["compare", "{good}", "{good}", "--abs", "-1"], 2, "not negative"),
        (["replay", "{good}", "{good}", "--interval", "soon"], 2, "expected a time"),
    ],
)
def test_mistakes(tmp_path: Path, words: list[str], status: int, message: str) -> None:
    good, empty = tmp_path / "good.exo", tmp_path / "empty"
    copy(with_fields(1, one_block(7, "hex")), create(good))
    for ending in (".exo", ".cgns"):
        empty.with_suffix(ending).write_bytes(b"")
    done = mesh(*(word.format(good=good, empty=empty) for word in words))
    assert message in done.stderr
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_what_a_file_cannot_have_is_reported(tmp_path: Path) -> None:
    first = with_fields(1, one_block(1, "polygonal"), 1)[0]
    edges = MeshSet("side", "nodes", np.arange(2), np.zeros(2, np.int64), number=3)
    flux = MeshField("flux", "set", "edges", {"": np.arange(2.0)})
    copy([replace(first, sets={"edges": edges}, fields=(*first.fields, flux))], create(tmp_path / "a.exo"))
    done = mesh("copy", tmp_path / "a.exo", tmp_path / "b.cgns")
    assert done.stderr.splitlines()[0] == "left out: set edges, field flux on set edges"
    # Exodus has it.
    assert mesh("copy", tmp_path / "a.exo", tmp_path / "b.exo").returncode == 0
    assert mesh("compare", tmp_path / "a.exo", tmp_path / "b.exo").returncode == 0
    done = mesh("compare", tmp_path / "a.exo", tmp_path / "b.cgns")
    assert done.stdout.splitlines() == [
        "set edges: missing in the second",
        "step 1: field flux on set edges: missing in the second",
    ]


def test_what_a_reader_leaves_out_is_reported(tmp_path: Path) -> None:
    """By variables and labels that the model has no place for."""
    netcdf, h5py = pytest.importorskip("netCDF4"), pytest.importorskip("h5py")
    copy(with_fields(1, random_mesh(1)), create(tmp_path / "a.exo"))
    with netcdf.Dataset(tmp_path / "a.exo", "a") as file:
        file.createDimension("num_el_maps", 2)
        for name in ("elem_map1", "elem_map2", "ebconn1", "eb_prop2"):
            file.createVariable(name, "i4", ("num_el_maps",))[...] = 1
    done = mesh("copy", tmp_path / "a.exo", tmp_path / "a.cgns")
    assert done.stderr.splitlines()[0] == "left out: eb_prop, ebconn, elem_map"
    # A file of the project itself is complete for its reader.
    assert mesh("copy", tmp_path / "a.cgns", tmp_path / "b.exo").stderr.count("\n") == 1
    with h5py.File(tmp_path / "a.cgns", "a") as file:
        for parent, name in (("Base", "Reference"), ("Base/nodes", "ZoneGridConnectivity")):
            node = file[parent].create_group(name)
            node.attrs.create("label", f"{name}_t".encode(), dtype="S33")
    done = mesh("copy", tmp_path / "a.cgns", tmp_path / "b.exo")
    assert done.stderr.splitlines()[0] == "left out: Reference_t, ZoneGridConnectivity_t"


def test_a_copy_that_fails_leaves_the_file(tmp_path: Path) -> None:
    (tmp_path / "old.exo").write_bytes(b"old")
    first, second = with_fields(1, one_block(7, "hex"), 1)[0], with_fields(1, one_block(7, "tet"), 1)[0]
    junctura.Store.create(tmp_path / "store", schema="mesh")
    copy([first, replace(second, step=2)], create(f"file://{tmp_path}/store?case=a"))
    done = mesh("copy", f"file://{tmp_path}/store?case=a", tmp_path / "old.exo")
    assert done.returncode == 1
    assert "the mesh changes at step 2" in done.stderr
    assert (tmp_path / "old.exo").read_bytes() == b"old"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("text", "url", "selector"),
    [
        ("a.exo", "a.exo", ""),
        ("odd?case=1.exo", "odd?case=1.exo", ""),
        ("unix:model", "unix:model", ""),
        ("unix:model?case=a", "unix:model", "case=a"),
        ("unix:/run/p.sock?case=a&channel=b", "unix:/run/p.sock", "case=a, channel=b"),
        ("tcp://h:1?case=a%2Bb&step=1/to/3", "tcp://h:1", "case=a+b, step=1/to/3"),
        ("s3://b/p?endpoint=https://h&case=a&region=x", "s3://b/p?endpoint=https://h&region=x", "case=a"),
    ],
)
def test_places(text: str, url: str, selector: str) -> None:
    place = MeshPlace.parse(text)
    assert (place.url, place.selector) == (url, selector)
