"""Files, pools and stores of meshes by name.

``a.exo`` and ``b.cgns`` are files. ``unix:NAME?case=a`` and ``tcp://HOST:PORT?case=a`` are pools, and
``file:///FOLDER?case=a`` and ``s3://BUCKET/PREFIX?case=a`` are stores. The words after the question mark select a mesh;
other words remain part of the URL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from junctura._native import Pool, Store
from junctura.errors import InvalidArgument, NotFound
from junctura.mesh._files.cgns_reader import CgnsReader
from junctura.mesh._files.cgns_writer import CgnsWriter
from junctura.mesh._files.exodus_reader import ExodusReader
from junctura.mesh._files.exodus_writer import ExodusWriter
from junctura.mesh._model import MeshStep
from junctura.mesh._objects import PoolMeshReader, PoolMeshWriter, StoreMeshReader, StoreMeshWriter

_EXODUS = (".e", ".ex2", ".ex2v2", ".exo", ".exoii", ".exodus", ".g", ".gen", ".par")
_CGNS = (".cgns",)
_POOLS = ("unix:", "tcp://")
_STORES = ("file://", "s3://")
# Attributes that a question mark may introduce.
_SELECTED = ("case", "channel", "step", "cycle", "rank", "time")


class MeshReader(Protocol):
    """A series of meshes: iterate over it for its steps; `len` is their number.

    Examples
    --------
    >>> def last_time(series: junctura.mesh.MeshReader) -> float | None:
    ...     return [mesh.time for mesh in series][-1]
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> writer = junctura.mesh.create(folder / "rod.cgns")
    >>> for step in range(2):
    ...     writer.write(junctura.mesh.MeshStep(points, blocks, step=step, time=0.5 * step))
    >>> writer.close()
    >>> with junctura.mesh.read(folder / "rod.cgns") as series:
    ...     len(series), last_time(series)
    (2, 0.5)

    """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[MeshStep]: ...
    def __enter__(self) -> MeshReader: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """Closes the file, pool or store."""


class MeshWriter(Protocol):
    """Takes the steps of a series.

    Examples
    --------
    >>> def copy(series: junctura.mesh.MeshReader, writer: junctura.mesh.MeshWriter) -> None:
    ...     for mesh in series:
    ...         writer.write(mesh)
    ...     writer.close()
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> writer = junctura.mesh.create(folder / "rod.cgns")
    >>> for step in range(2):
    ...     writer.write(junctura.mesh.MeshStep(points, blocks, step=step, time=0.5 * step))
    >>> writer.close()
    >>> copy(junctura.mesh.read(folder / "rod.cgns"), junctura.mesh.create(folder / "rod.exo"))
    >>> len(junctura.mesh.read(folder / "rod.exo"))
    2

    """

    def write(self, mesh: MeshStep) -> None:
        """Writes a step."""

    def close(self) -> None:
        """Completes the series."""

    def abort(self) -> None:
        """Discards what can be discarded."""


class MeshPlace(NamedTuple):
    """Where a series of meshes is."""

    url: str
    selected: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> MeshPlace:
        """Splits a URL into its place and what selects a mesh there."""
        if not text.startswith((*_POOLS, *_STORES)):
            return cls(text, ())
        url, mark, query = text.partition("?")
        selected, kept = [], []
        for word in query.split("&") if mark else []:
            name, equals, value = word.partition("=")
            if name in _SELECTED and equals:
                selected.append((name, unquote(value)))
            else:
                kept.append(word)
        return cls(url + ("?" + "&".join(kept) if kept else ""), tuple(selected))

    @property
    def selector(self) -> str:
        """The selector of the mesh."""
        return ", ".join(f"{name}={value}" for name, value in self.selected)


def read(place: str | os.PathLike[str]) -> MeshReader:
    """Opens a series of meshes.

    Parameters
    ----------
    place
        A file, or the URL of a pool or a store, with ``?case=NAME``.

    Raises
    ------
    ImportError
        Without netCDF4 or h5py for files: ``pip install 'junctura[mesh]'``.
    NotFound
        There is no such file, pool or mesh.
    InvalidArgument
        The name has no known ending; several meshes match.

    Examples
    --------
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> writer = junctura.mesh.create(folder / "rod.cgns")
    >>> for step in range(2):
    ...     writer.write(junctura.mesh.MeshStep(points, blocks, step=step, time=0.5 * step))
    >>> writer.close()
    >>> with junctura.mesh.read(folder / "rod.cgns") as series:
    ...     [mesh.time for mesh in series]
    [0.0, 0.5]

    """
    found = MeshPlace.parse(os.fspath(place))
    if found.url.startswith(_POOLS):
        pool = Pool(found.url)
        try:
            return PoolMeshReader(pool, found.selector)
        except BaseException:
            pool.close()
            raise
    if found.url.startswith(_STORES):
        return StoreMeshReader(Store(found.url), found.selector)
    kind = _kind(found.url)
    if not Path(found.url).exists():
        raise NotFound(found.url, "there is no such file")
    return ExodusReader(found.url) if kind == "exodus" else CgnsReader(found.url)


def create(place: str | os.PathLike[str]) -> MeshWriter:
    """Opens a place for writing a series of meshes.

    Parameters
    ----------
    place
        A file, which is replaced; or the URL of a pool or a store, with ``?case=NAME``.

    Raises
    ------
    ImportError
        Without netCDF4 or h5py for files: ``pip install 'junctura[mesh]'``.
    InvalidArgument
        The name has no known ending; no case is named.

    Examples
    --------
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> store = junctura.Store.create(folder / "archive", schema="mesh")
    >>> writer = junctura.mesh.create(f"file://{folder}/archive?case=rod")
    >>> writer.write(junctura.mesh.MeshStep(points, blocks, step=1, time=0.5))
    >>> writer.close()
    >>> [mesh.step for mesh in junctura.mesh.read(f"file://{folder}/archive?case=rod")]
    [1]

    """
    found = MeshPlace.parse(os.fspath(place))
    named = dict(found.selected)
    if not found.url.startswith((*_POOLS, *_STORES)):
        return ExodusWriter(found.url) if _kind(found.url) == "exodus" else CgnsWriter(found.url)
    if "case" not in named or set(named) - {"case", "channel"}:
        raise InvalidArgument(os.fspath(place), "name the case to write, and nothing but a channel: URL?case=NAME")
    channel = named.get("channel", "mesh")
    if found.url.startswith(_STORES):
        return StoreMeshWriter(Store(found.url), named["case"], channel)
    return PoolMeshWriter(Pool(found.url), named["case"], channel)


def _kind(path: str) -> str:
    ending = Path(path).suffix.lower()
    if ending in _EXODUS:
        return "exodus"
    if ending in _CGNS:
        return "cgns"
    raise InvalidArgument(
        path,
        f"the ending {ending or '(none)'} is unknown: {' '.join(_EXODUS)} are Exodus files, {' '.join(_CGNS)} is CGNS; "
        "a pool is unix:NAME?case=NAME, a store file:///FOLDER?case=NAME",
    )
