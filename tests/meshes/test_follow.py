"""Steps as they come, and pictures of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_meshes import one_block, random_mesh, with_fields

import junctura
from junctura.mesh import MeshBlock, MeshField, MeshPoints, MeshStep, PoolMeshWriter, follow
from junctura.mesh._pictures import PictureFiles, PicturePainter, PictureStyle, has_egl

draws = pytest.mark.skipif(not has_egl(), reason="libEGL.so.1 is not here")


def cube(step: int, values: np.ndarray | None = None) -> MeshStep:
    axes = (np.arange(9.0), np.arange(9.0), np.arange(9.0))
    points = {"grid": MeshPoints(axes, "rectilinear")}
    blocks = {"cube": MeshBlock("grid", "structured", dims=(8, 8, 8))}
    heat = np.linspace(0, step, 512) if values is None else values
    return MeshStep(points, blocks, {}, (MeshField("heat", "element", "cube", {"": heat}),), step, step / 10)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[junctura.Pool]:
    """A pool that other processes reach."""
    with junctura.Pool(f"unix:{tmp_path}/pool.sock", start=True, schema="mesh") as pool:
        yield pool
        pool.stop()


def viewer(pool: junctura.Pool, folder: Path, *options: str) -> subprocess.Popen[str]:
    words = ["view", "case=a", "--pool", pool.url, "--field", "heat", "--out", f"{folder}/pic-%04d.png", *options]
    return subprocess.Popen(
        [sys.executable, "-m", "junctura.mesh", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_steps_come_when_all_ranks_have_offered_them(pool: junctura.Pool) -> None:
    parts = [with_fields(seed, random_mesh(seed)) for seed in (0, 5)]
    writers = [PoolMeshWriter(pool, "a", rank=rank, ranks=2) for rank in range(2)]
    with follow(pool, "case=a") as steps:
        for index in range(3):
            writers[1].write(parts[1][index])
            with pytest.raises(junctura.Timeout):
                steps.next(timeout=0.0)
            writers[0].write(parts[0][index])
            mesh = steps.next(timeout=60.0)
            assert mesh is not None
            assert mesh.step == index + 1
            assert {name.rpartition("@")[2] for name in mesh.blocks} == {"0", "1"}


@pytest.mark.parametrize("empty", ["null", "{}", "[]"])
@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_without_blocks(empty: str, rank: int, pool: junctura.Pool) -> None:
    head = f'{{"tree":{empty},"arrays":[]}}'.encode()
    payload = (b"JMESH\0\0\1" + len(head).to_bytes(8, "little") + head).ljust(64, b"\0")
    other = PoolMeshWriter(pool, "a", rank=1 - rank, ranks=2)
    for step in (1, 2):
        other.write(cube(step))
        with pool.bundle(f"a/mesh/{step}", schema="mesh", members=2) as bundle:
            bundle.offer(payload, case="a", channel="mesh", step=step, rank=rank, part="fields", ranks=2)
    with follow(pool, "case=a", until_live=True) as steps:
        for mesh in steps:
            assert list(mesh.blocks) == [f"cube@{1 - rank}"]
            assert [one.on for one in mesh.fields] == [f"cube@{1 - rank}"]
            assert mesh.time == mesh.step / 10


def test_a_follow_has_one_mesh(pool: junctura.Pool) -> None:
    for case in ("a", "b"):
        PoolMeshWriter(pool, case).write(cube(1))
    with pytest.raises(junctura.InvalidArgument, match="several meshes: case=a, channel=mesh; case=b"):
        list(follow(pool, until_live=True))


def test_steps_that_were_removed_are_reported(pool: junctura.Pool) -> None:
    writer = PoolMeshWriter(pool, "a")
    for step in range(1, 301):
        writer.write(cube(step))
    with follow(pool, "case=a") as steps:
        assert next(steps).step == 1
        pool.withdraw_all("part=fields, step=20/to/300", force=True)
        writer.write(cube(301))
        found = [next(steps).step]
        while found[-1] != 301:
            found.append(next(steps).step)
        assert len(steps.missed) + steps.missed_others + len(found) + 1 == 301
        assert not steps.missed & set(found)


def test_what_steps_share_must_be_there(pool: junctura.Pool) -> None:
    PoolMeshWriter(pool, "a").write(cube(1))
    pool.withdraw_all("part=mesh")
    with pytest.raises(junctura.NotFound, match="retain part=mesh as long as steps"):
        list(follow(pool, "case=a", until_live=True))


@draws
def test_pictures(tmp_path: Path) -> None:
    files = PictureFiles(tmp_path / "pic-%04d.png")
    with PicturePainter(PictureStyle("heat", size=(320, 240), limits=(0, 4))) as painter:
        cold, warm = painter.pixels(cube(1, np.zeros(512))), painter.pixels(cube(1, np.full(512, 4.0)))
        again = painter.pixels(cube(1, np.zeros(512)))
        assert cold.shape == (240, 320, 3)
        assert np.array_equal(cold, again)
        # The middle shows the front of the cube: the ends of the color map, dark purple and yellow, shaded.
        assert cold[120, 160].astype(int)[2] > cold[120, 160].astype(int)[1]
        assert warm[120, 160].astype(int)[0] > 2 * warm[120, 160].astype(int)[2]
        with pytest.raises(junctura.InvalidArgument, match="step 1 has heated"):
            painter.pixels(no_such_field())
        path = files.write(7, "version", "a/mesh", cold)
    assert path == tmp_path / "pic-0007.png"
    assert files.has(7, "version")
    assert not files.has(7, "other")
    assert not files.has(8, "version")
    path.write_bytes(path.read_bytes()[:20])
    assert not files.has(7, "version")
    assert list(tmp_path.iterdir()) == [path]


def no_such_field() -> MeshStep:
    mesh = cube(1)
    return replace(mesh, fields=(replace(mesh.fields[0], name="heated"),))


@draws
def test_pictures_of_vectors_and_blocks() -> None:
    mesh = with_fields(1, one_block(4, "tet10"))[0]
    with PicturePainter(PictureStyle("velocity", size=(100, 80), direction="xy", with_edges=True)) as painter:
        first = painter.pixels(mesh)
        assert first.std() > 1
        # Another mesh, with other blocks.
        assert painter.pixels(with_fields(2, random_mesh(2))[0]).std() > 1


@pytest.mark.parametrize("pattern", ["pic.png", "pic-%d-%d.png", "pic-%s.png", "pic-%04d.jpg", "pic-%", "%.3d.png"])
def test_patterns(pattern: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"pic-%04d.png"):
        PictureFiles(pattern)


@draws
def test_a_viewer_that_is_killed_resumes_and_the_simulation_does_not_notice(
    served: junctura.Pool, tmp_path: Path
) -> None:
    simulation = PoolMeshWriter(served, "a")
    simulation.write(cube(1))
    with viewer(served, tmp_path, "--size", "100x80") as process:
        assert process.stdout is not None
        simulation.write(cube(2))
        assert [process.stdout.readline().strip() for _ in range(2)] == [
            str(tmp_path / f"pic-{step:04}.png") for step in (1, 2)
        ]
        os.kill(process.pid, signal.SIGKILL)
    simulation.write(cube(3))
    simulation.write(cube(4))
    before = {path: path.stat().st_ino for path in tmp_path.glob("*.png")}
    assert len(before) == 2
    with viewer(served, tmp_path, "--size", "100x80", "--last", "5") as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == str(tmp_path / "pic-0003.png")
        simulation.write(cube(5))
        rest, errors = process.communicate(timeout=100)
    assert rest.split() == [str(tmp_path / f"pic-{step:04}.png") for step in (4, 5)]
    assert errors == "3 pictures of heat; 2 were there\n"
    assert {path: path.stat().st_ino for path in before} == before
    assert len(list(tmp_path.glob("*.png"))) == 5
    assert not list(tmp_path.glob(".*partial"))


@draws
def test_a_viewer_that_has_nothing_to_draw_names_the_meshes(served: junctura.Pool, tmp_path: Path) -> None:
    waits = viewer(served, tmp_path, "--size", "100x80", "--last", "1")
    assert waits.stderr is not None
    assert waits.stderr.readline() == "no step matches case=a; the pool has no meshes; waiting\n"
    PoolMeshWriter(served, "b").write(cube(1))
    with viewer(served, tmp_path, "--now") as process:
        _, errors = process.communicate(timeout=100)
    assert process.returncode == 3
    assert errors.endswith("no step matches case=a; the pool has case=b, channel=mesh\n")
    with pytest.raises(junctura.NotFound, match="the pool has case=b, channel=mesh"):
        junctura.mesh.read(f"{served.url}?case=a")
    PoolMeshWriter(served, "a").write(cube(1))
    assert waits.wait(timeout=100) == 0
    waits.communicate()


@draws
def test_a_viewer_ends_with_its_pool(tmp_path: Path) -> None:
    with junctura.Pool(f"unix:{tmp_path}/pool.sock", start=True, schema="mesh") as pool:
        PoolMeshWriter(pool, "a").write(cube(1))
        process = viewer(pool, tmp_path, "--size", "100x80")
        assert process.stdout is not None
        assert process.stdout.readline()
        pool.stop()
    _, errors = process.communicate(timeout=100)
    assert errors == "1 picture of heat\n"
    assert process.returncode == 0


@draws
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_viewer_ends_at_a_signal(served: junctura.Pool, tmp_path: Path, number: int, status: int) -> None:
    PoolMeshWriter(served, "a").write(cube(1))
    with viewer(served, tmp_path, "--size", "100x80") as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(number)
        _, errors = process.communicate(timeout=100)
    assert process.returncode == status
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.glob("*.png")] == ["pic-0001.png"]


def test_a_mesh_that_is_offered_again_is_drawn_again(pool: junctura.Pool, tmp_path: Path) -> None:
    files = PictureFiles(tmp_path / "pic-%d.png")
    pixels = np.zeros((2, 2, 3), np.uint8)
    PoolMeshWriter(pool, "a").write(cube(1))
    with follow(pool, "case=a", until_live=True) as steps:
        next(steps)
        files.write(1, steps.version, steps.series, pixels)
    pool.withdraw_all("case=a", forget=True)
    PoolMeshWriter(pool, "a").write(cube(1))
    with follow(pool, "case=a", until_live=True) as steps:
        next(steps)
        assert not files.has(1, steps.version)


def test_without_a_library_that_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr("junctura.mesh._pictures.has_egl", lambda: False)
    with pytest.raises(junctura.Unsupported, match=r"apt-get install libegl1"):
        PicturePainter(PictureStyle("heat"))
