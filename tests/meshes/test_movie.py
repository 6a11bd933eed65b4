"""Movies of the pictures of a series."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from random_meshes import random_mesh, with_fields

import junctura
from junctura.mesh import PoolMeshWriter, _movie
from junctura.mesh._movie import MovieFile
from junctura.mesh._pictures import PictureFiles, has_egl


def draw(folder: Path, steps: range, series: str = "a/mesh", size: tuple[int, int] = (16, 12)) -> PictureFiles:
    """Pictures of one gray each, darker with each step."""
    files = PictureFiles(str(folder).replace("%", "%%") + "/pic-%03d.png")
    for step in steps:
        pixels = np.full((size[1], size[0], 3), 255 - 10 * step, np.uint8)
        files.write(step, f"version {step}", series, pixels)
    return files


def grays(movie: Path) -> list[int]:
    """The gray of each frame."""
    with PIL.Image.open(movie) as image:
        found = []
        for frame in range(getattr(image, "n_frames", 1)):
            image.seek(frame)
            found.append(int(np.asarray(image.convert("L")).mean().round()))
    return found


def test_pictures_of_a_series(tmp_path: Path) -> None:
    (tmp_path / "100%").mkdir()
    files = draw(tmp_path / "100%", range(8, 12))
    draw(tmp_path / "100%", range(3), series="b/mesh")
    (tmp_path / "100%/pic-004.png").write_bytes((tmp_path / "100%/pic-008.png").read_bytes()[:30])
    (tmp_path / "100%/pic-0008.png").write_bytes((tmp_path / "100%/pic-008.png").read_bytes())
    (tmp_path / "100%/pic-me.png").write_bytes(b"")
    assert [path.name for path in files.of("a/mesh")] == [f"pic-{step:03}.png" for step in range(8, 12)]
    assert files.of("b/mesh") == [tmp_path / f"100%/pic-{step:03}.png" for step in range(3)]
    assert files.of("c/mesh") == []


@pytest.mark.parametrize("ending", ["webp", "gif"])
def test_a_movie_has_all_pictures_in_order(ending: str, tmp_path: Path) -> None:
    files = draw(tmp_path, range(1, 13))
    movie = MovieFile(tmp_path / f"movie.{ending}", rate=4)
    movie.write(files.of("a/mesh"))
    assert grays(movie.path) == pytest.approx([255 - 10 * step for step in range(1, 13)], abs=2)
    with PIL.Image.open(movie.path) as image:
        image.seek(1)
        image.load()
        assert image.info["duration"] == 250
        assert image.size == (16, 12)
    # Again, in its place; one picture is a movie, too.
    movie.write(files.of("a/mesh")[:1])
    assert len(grays(movie.path)) == 1
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed: tools/setup.sh dev")
@pytest.mark.parametrize("ending", ["mp4", "mkv", "webm"])
def test_a_video_has_all_pictures(ending: str, tmp_path: Path) -> None:
    files = draw(tmp_path, range(1, 13), size=(33, 21))
    movie = MovieFile(tmp_path / f"movie.{ending}", rate=5)
    movie.write(files.of("a/mesh"))
    words = ["ffmpeg", "-v", "error", "-i", str(movie.path), "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    decoded = subprocess.run(words, capture_output=True, check=True).stdout
    frames = np.frombuffer(decoded, np.uint8).reshape(12, 22, 34)
    assert frames[:, 4:16, 4:28].mean(axis=(1, 2)) == pytest.approx([255 - 10 * step for step in range(1, 13)], abs=4)


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed: tools/setup.sh dev")
def test_a_video_that_cannot_be_written(tmp_path: Path) -> None:
    movie = MovieFile(tmp_path / "nowhere/movie.mp4")
    with pytest.raises(junctura.Io, match=r"ffmpeg failed with status \d+: .*No such file"):
        movie.write(draw(tmp_path, range(2)).of("a/mesh"))


def test_movies_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"\.mp4 \.mkv \.webm \.webp \.gif"):
        MovieFile("movie.avi")
    files = draw(tmp_path, range(3))
    draw(tmp_path, range(3, 4), size=(20, 12))
    movie = MovieFile(tmp_path / "movie.gif")
    with pytest.raises(junctura.InvalidArgument, match=r"20 x 12 pixels, and .*pic-000.png has 16 x 12.*--redraw"):
        movie.write(files.of("a/mesh"))
    monkeypatch.setattr(_movie, "_IMAGES_MAX", 2)
    with pytest.raises(junctura.LimitExceeded, match="3 pictures, and the format takes at most 2"):
        movie.write(files.of("a/mesh")[:3])
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".png"] * 4
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(junctura.Unsupported, match="ffmpeg is not installed here: apt-get install ffmpeg"):
        MovieFile("movie.mp4")


@pytest.mark.skipif(not has_egl(), reason="libEGL.so.1 is not here")
def test_a_movie_has_pictures_of_earlier_viewers(tmp_path: Path) -> None:
    steps = with_fields(1, random_mesh(1))
    with junctura.Pool(f"unix:{tmp_path}/pool.sock", start=True, schema="mesh") as pool:
        writer = PoolMeshWriter(pool, "a")

        def view(*options: str) -> str:
            words = ["case=a", "--pool", pool.url, "--field", "temperature", "--out", f"{tmp_path}/pic-%02d.png"]
            command = [sys.executable, "-m", "junctura.mesh", "view", *words, "--size", "64x48", "--now", *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return done.stderr

        writer.write(steps[0])
        view()
        # The first step leaves the pool; its picture stays.
        pool.withdraw_all("part=fields")
        writer.write(steps[1])
        writer.write(steps[2])
        said = view("--movie", f"{tmp_path}/movie.webp", "--rate", "2", "--range", "0,1")
        assert said == f"2 pictures of temperature\n{tmp_path}/movie.webp: 3 pictures\n"
        assert "--range LOW,HIGH gives the movie one" in view("--movie", f"{tmp_path}/movie.gif")
        pool.stop()
    assert len(grays(tmp_path / "movie.webp")) == 3
