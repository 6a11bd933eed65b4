"""Real files of meshes, and copies between ends."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from junctura.mesh import MeshStep, MeshWriter, compare

_FOLDERS = [Path(__file__).resolve().parents[depth] / "shared/data/mesh" for depth in (3, 4)]
REAL = sorted(
    path for folder in _FOLDERS if folder.is_dir() for path in folder.iterdir() if path.suffix in (".g", ".cgns")
)
real_files = pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.name) for path in REAL]
    or [pytest.param(Path(), marks=pytest.mark.skip("the mesh files of ../shared/data/mesh are not here"))],
)


def copy(series: Iterable[MeshStep], writer: MeshWriter) -> None:
    for mesh in series:
        writer.write(mesh)
    writer.close()


def differences(first: Iterable[MeshStep], second: Iterable[MeshStep]) -> list[str]:
    return list(map(str, compare(first, second)))
