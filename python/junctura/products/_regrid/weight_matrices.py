"""Interpolation weights between grids: made once by MIR, kept on disk, and applied as a sparse matrix.

```text
  weights(F48, 0.5/0.5@72/-25/34/45, linear)
    in memory?  ── no ──►  whole matrix F48 → 0.5/0.5 on disk?  ── no ──►  a child process makes it with MIR
        │                        │ cut out the rows of the area               │ looked at, then moved into its place
        ▼                        ▼                                            ▼
```
MIR returns wrong results for some invalid requests: its matrices are validated before use, and so are those from disk,
where a corrupt file is replaced.

Matrices between small global grids are shared by their areas: MIR would shift its points for an area whose bounds are
not points of the grid. Other areas have matrices of their own, for which MIR receives a list of points, so memory and
time depend on the area. The memory to make a matrix is estimated first, and compared with the free memory.

Matrices are in the folder `weights` of the cache (see `junctura.products._workers.cache`). Files are written
atomically; processes may share the folder: a process waits for a matrix that another one is making.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura._forks import missing
from junctura._limits import free_bytes
from junctura._xarray.label_attributes import needed
from junctura.errors import InvalidArgument, Io, TooLarge, Unsupported
from junctura.products._regrid import cell_weights, located_weights
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid, directions, whole_of
from junctura.products._regrid.sparse_matrix import SparseMatrix
from junctura.products._workers.cache import Bounded, folder_of

Method = Literal["linear", "bilinear", "nearest", "conservative"]
Quantity = Literal["scalar", "vector"]
# MIR's names of our methods.
_METHODS = {
    "linear": "linear",
    "bilinear": "bilinear",
    "nearest": "nearest-neighbour",
    "conservative": "grid-box-average",
}
# MIR's treatment of vector components, which have no single value at a pole: a point there uses its meridian.
_VECTORS = {"pole-displacement-in-degree": "1e-6"}
_QUIET = {
    "OMP_NUM_THREADS": "1",
    "ECKIT_EXCEPTION_IS_SILENT": "1",
    "ECKIT_ASSERT_FAILED_IS_SILENT": "1",
    "ECKIT_SERIOUS_BUG_IS_SILENT": "1",
}
# A matrix from F48 to a quarter of a degree has 40 MB.
_KEPT_BYTES_MAX = 512 << 20
# Tolerance in degrees for points at the bounds of an area: GRIB rounds bounds to this.
_RIM = 1e-6
_ROUNDED = 1e-4
# Row sums differ from 1 by about 1e-14.
_SUM_ERROR_MAX = 1e-9
_FORM = 1
# Larger global grids, above about 0.25 degrees, are not used for the matrices of their areas; neither are sources above
# about 0.5 degrees.
_SHARED_MAX, _SHARED_SOURCE_MAX = 1_100_000, 270_000
# Memory of MIR, or YAC: initial, for each source point, and for each target point; measured.
_MEMORY = {
    "linear": (100 << 20, 460, 280),
    "bilinear": (100 << 20, 460, 280),
    "nearest": (100 << 20, 130, 120),
    "conservative": (150 << 20, 1300, 1300),
    "rows": (100 << 20, 120, 150),
    "points": (100 << 20, 1000, 200),
    "cells": (200 << 20, 3000, 1300),
}
_NO_BOXES = "points have no boxes to take means of: take linear, bilinear or nearest"
# From N320 to a tenth of a degree MIR takes half a minute.
_MIR_SECONDS_MAX = 900.0
# Older folders have no active process.
_LEFT_SECONDS = 86_400.0
_DAMAGED = (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
_MADE = ".made-"
_kept: Bounded[SparseMatrix] = Bounded(_KEPT_BYTES_MAX)


def weights(source: Grid, target: Grid, method: Method = "linear", quantity: Quantity = "scalar") -> SparseMatrix:
    """Returns the matrix that interpolates values from one grid to another.

    Parameters
    ----------
    source
        A global grid, or a regular one that is an area; see `origin_of`.
    target
        Any grid. An area has the values of the global grid there; MIR itself, for an area, cuts the boxes of
        ``conservative`` at its bounds.
    method
        ``linear``: within triangles of points around. ``bilinear``: within quadrilaterals. ``nearest``: the nearest
        point. ``conservative``: the mean over the target's grid boxes (MIR's grid-box-average; YAC's of first order
        where one of the grids is an area), which keeps the mean over the globe; not for points.
    quantity
        ``vector`` for components of vectors and for vorticity and divergence, which have no single value at a pole.

    Returns
    -------
    Rows are target points, columns source points. The row of a point outside the source's area is empty; the sum of
    each other row is 1. Read-only.
        empty; each other one sums up to 1. Not to be written to.

    Raises
    ------
    InvalidArgument
        The method is unknown.
    TooLarge
        Making the matrix would exceed the free memory.
    Unsupported
        The source is a list of points, or MIR has no weights of this method between these grids, or failed; the error
        has its message.
    Io
        The cache cannot be written.
    ImportError
        Without MIR or SciPy: ``pip install 'junctura[products]'``; without YAC: ``pip install 'junctura[remap]'``.

    """
    if method not in _METHODS:
        raise InvalidArgument("method", f"{method!r} is not one of {', '.join(_METHODS)}")
    if source.kind == "points":
        raise Unsupported(f"grid {source.name[:80]}", "between single points there is nothing to interpolate")
    if method == "conservative":
        quantity = "scalar"
    key = (source.name, target.name, method, quantity)
    return _kept.get(key, lambda: _made(source, target, method, quantity), lambda made: made.nbytes)


def folder() -> Path:
    """Returns the folder of matrices."""
    return folder_of("weights")


def origin_of(source: Grid, target: Grid) -> Grid:
    """Returns the grid for which weights are made: a small global grid for all its areas; else the source."""
    around, on = _around(source), _around(target)
    is_small = 0 < around.size <= _SHARED_SOURCE_MAX and on.size <= _SHARED_SOURCE_MAX
    return around if is_small and around.is_global and (on.is_global or on.kind == "points") else source


def kept_as(source: Grid, target: Grid) -> tuple[Grid, Grid]:
    """Returns the grids of the cached matrix for two grids: global ones if they are small."""
    origin, on = origin_of(source, target), _around(target)
    return origin, on if origin.is_global and on.size <= _SHARED_MAX else target


def within(source: Grid, target: Grid) -> npt.NDArray[np.bool_]:
    """Returns which points of a grid are within the area of a source, including its bounds."""
    if source.is_global:
        return np.ones(target.size, np.bool_)
    if not source.is_regular:
        raise Unsupported(f"grid {source.name[:80]}", "its area is not known")
    north, west, south, east = source.edges
    is_row = (target.latitudes <= north + _RIM) & (target.latitudes >= south - _RIM)
    is_column = np.mod(target.longitudes - west + _RIM, 360) <= east - west + 2 * _RIM
    return np.logical_and.outer(is_row, is_column).ravel() if target.is_regular else is_row & is_column


def _around(on: Grid) -> Grid:
    """Returns the global grid of an area."""
    return whole_of(on) if on.whole else on


def _made(source: Grid, target: Grid, method: Method, quantity: Quantity) -> SparseMatrix:
    _, on = kept_as(source, target)
    if source.kind == "listed":
        return _of_points(source, target, method, quantity)
    if not source.is_global or not (on.is_global or on.kind == "points"):
        return _of_area(source, target, method, quantity)
    if on is target:
        return _whole(source, target, method, quantity)
    rows, columns = on.rows_and_columns(target)
    wanted = (rows[:, None] * on.shape[1] + columns).ravel()
    return _whole(source, on, method, quantity).rows(wanted)


class _Task(NamedTuple):
    """Returns the request to MIR."""

    subject: str
    source: Mapping[str, Any]
    options: Mapping[str, Any]
    rows_of: npt.NDArray[np.intp] | None
    """Returns the matrix row of each target point, if some points share rows."""


def _whole(source: Grid, target: Grid, method: Method, quantity: Quantity) -> SparseMatrix:
    task = _task(source, target, method, quantity)
    shape = (target.size if task.rows_of is None else int(task.rows_of.max()) + 1, source.size)

    def make(made: Path) -> None:
        _check_memory(task.subject, method, source.size, shape[0])
        _run(task, made)

    matrix = _there(path_of(source.name, target.name, method, quantity), shape, make)
    return matrix if task.rows_of is None else matrix.rows(task.rows_of)


def _of_points(source: Grid, target: Grid, method: Method, quantity: Quantity) -> SparseMatrix:
    """Makes weights from a grid with listed points."""
    if method == "conservative" and target.kind == "points":
        raise Unsupported(_subject(method, source, target), _NO_BOXES)

    def make(made: Path) -> None:
        of = "cells" if method == "conservative" else "rows" if source.lines else "points"
        _check_memory(_subject(method, source, target), of, source.size, target.size)
        _save(made, located_weights.weights(source, target, method))

    path = path_of(source.name, target.name, method, quantity)
    return _there(path, (target.size, source.size), make, may_be_empty=True)


def _of_area(source: Grid, target: Grid, method: Method, quantity: Quantity) -> SparseMatrix:
    """Makes weights between grids of which one is an area: only points within the source's area are interpolated."""
    subject = _subject(method, source, target)
    inside = np.flatnonzero(within(source, target))
    if not len(inside):
        return SparseMatrix.empty((target.size, source.size))
    if min(source.shape) < 2 and method != "nearest":
        raise Unsupported(subject, "one row or column has nothing beside it: take nearest")

    def make(made: Path) -> None:
        _check_memory(subject, method, source.size, len(inside))
        if method == "conservative":
            _save(made, cell_weights.weights(source, target)[inside])
            return
        if min(source.shape) < 2:
            _save(made, _nearest(source, target).rows(inside))
            return
        latitudes, longitudes = (places[inside] for places in target.points())
        if not source.is_global:
            # MIR has no tolerance: a rounded place is outside.
            north, west, south, east = source.edges
            latitudes = np.clip(latitudes, south, north)
            longitudes = np.clip(np.mod(longitudes - west + _RIM, 360) - _RIM, 0, east - west) + west
        options = {"interpolation": _METHODS[method], **(_VECTORS if quantity == "vector" else {})}
        places = {"latitudes": latitudes.tolist(), "longitudes": np.mod(longitudes, 360).tolist()}
        _run(_Task(subject, _specification(source), {**options, **places}, None), made)

    matrix = _there(path_of(source.name, target.name, method, quantity), (len(inside), source.size), make)
    return matrix.spread(inside, target.size)


def _nearest(source: Grid, target: Grid) -> SparseMatrix:
    """Makes weights by distance on the sphere; MIR needs rows and columns."""
    given, wanted = (directions(*on.points()) for on in (source, target))
    _, found = needed("scipy.spatial", "products").cKDTree(given).query(wanted)
    return SparseMatrix.of(np.ones(target.size), found, np.arange(target.size + 1), (target.size, source.size))


def _subject(method: Method, source: Grid, target: Grid) -> str:
    return f"{method} weights {source.name[:40]} -> {target.name[:40]}"


def memory_bytes(of: str, source: int, target: int) -> int:
    """Estimates the memory to make weights between grids of these sizes."""
    begin, of_source, of_target = _MEMORY[of]
    return begin + of_source * source + of_target * target


def _check_memory(subject: str, of: str, source: int, target: int) -> None:
    """Raises `TooLarge` if making the weights would exceed the free memory."""
    wanted, free = memory_bytes(of, source, target), free_bytes()
    if wanted > free:
        cause = f"about {wanted / 1e9:.1f} GB of memory are needed to make them, {free / 1e9:.1f} GB are free"
        raise TooLarge(subject, f"{cause}: take an area, a coarser grid, or the method nearest")


def _there(
    path: Path, shape: tuple[int, int], make: Callable[[Path], None], *, may_be_empty: bool = False
) -> SparseMatrix:
    """Returns the matrix of this shape in a file, which is made if missing; rows may be empty only if allowed."""
    read = functools.partial(_read, shape=shape, may_be_empty=may_be_empty)
    try:
        return read(path)
    except _DAMAGED:
        return _make(path, read, make)


def path_of(source: str, target: str, method: Method, quantity: Quantity) -> Path:
    """Returns the path of the weights between two global grids, by name."""
    said = [source, target, method, quantity, version(), _FORM]
    return folder() / f"{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:40]}.npz"


@functools.lru_cache(maxsize=1)
def version() -> str:
    """Returns the version of MIR, which makes the weights.

    Raises
    ------
    ImportError
        MIR is not installed.

    """
    try:
        return f"{importlib.metadata.version('mir-python')} {importlib.metadata.version('mirlib')}"
    except importlib.metadata.PackageNotFoundError as error:
        raise missing("mir", "products") from error


def _task(source: Grid, target: Grid, method: Method, quantity: Quantity) -> _Task:
    subject = _subject(method, source, target)
    options: dict[str, Any] = {"interpolation": _METHODS[method]}
    if quantity == "vector":
        options.update(_VECTORS)
    rows_of = None
    if target.kind == "points" or target.name.startswith("R"):
        if method == "conservative":
            raise Unsupported(subject, _NO_BOXES)
        # MIR does not accept duplicate points.
        places = np.column_stack([target.latitudes, np.mod(target.longitudes, 360)])
        unique, rows_of = np.unique(places, axis=0, return_inverse=True)
        rows_of = rows_of.reshape(-1)
        options.update(latitudes=unique[:, 0].tolist(), longitudes=unique[:, 1].tolist())
    else:
        options.update(_target(target))
    return _Task(subject, _specification(source), options, rows_of)


def _target(on: Grid) -> dict[str, str]:
    """Returns the options of MIR for a target grid."""
    if on.kind != "regular_ll":
        return {"grid": on.name}
    options = {"grid": "/".join(map(repr, _increments(on)))}
    if _edges(on):
        options["area"] = "/".join(map(repr, _edges(on)))
    return options


def _specification(source: Grid) -> dict[str, Any]:
    if not source.is_global:
        return _specification_of_area(source)
    if source.kind == "regular_ll":
        edges = _edges(source)
        return {"grid": _increments(source), **({"area": edges} if edges else {})}
    if not source.name.startswith("R"):
        return {"grid": source.name}
    number, _, counts = source.name[1:].partition(":")
    return {"grid": f"N{number}", "pl": [int(count) for count in counts.split(",")]}


def _specification_of_area(source: Grid) -> dict[str, Any]:
    north, south = float(source.latitudes[0]), float(source.latitudes[-1])
    west, east = float(source.longitudes[0]), float(source.longitudes[-1])
    area = {"area": [north, west, south, east]}
    if source.kind == "regular_gg":
        # Rows at the bounds are MIR's own, which differ in the last digit.
        wider = [min(north + _ROUNDED, 90.0), west - _ROUNDED, max(south - _ROUNDED, -90.0), east + _ROUNDED]
        return {"grid": source.whole, "area": wider}
    rows, columns = source.shape
    # A single row or column has the distance of the other direction.
    dlat = (north - south) / (rows - 1) if rows > 1 else 0.0
    dlon = (east - west) / (columns - 1) if columns > 1 else dlat
    return {"grid": [dlon or 1.0, dlat or dlon or 1.0], **area}


def _increments(on: Grid) -> list[float]:
    """Returns the spacing; the last digit of some grid names is rounded."""
    rows, columns = on.shape
    return [360 / columns, 180 / (rows - 1)]


def _edges(on: Grid) -> list[float]:
    """Returns the bounds of a grid without a row on the equator: MIR would place one there, and none on a pole."""
    rows, columns = on.shape
    return [90.0, 0.0, -90.0, 360 - 360 / columns] if rows % 2 == 0 else []


def _read(path: Path, shape: tuple[int, int], *, may_be_empty: bool = False) -> SparseMatrix:
    """Reads a matrix from a file; raises ValueError and others if it is invalid."""
    with np.load(path) as parts:
        starts, columns, values = parts["starts"], parts["columns"], parts["weights"]
        is_shape = tuple(parts["shape"].tolist())
    if is_shape != shape:
        raise ValueError(f"it is for {is_shape[0]} and {is_shape[1]} points, expected {shape[0]} and {shape[1]}")
    _look_at(starts, columns, values, shape, may_be_empty=may_be_empty)
    return SparseMatrix.of(values, columns, starts, shape)


def _look_at(
    starts: npt.NDArray[Any],
    columns: npt.NDArray[Any],
    values: Floats,
    shape: tuple[int, int],
    *,
    may_be_empty: bool = False,
) -> None:
    """Raises ValueError if these are not weights of a matrix of this shape."""
    counts = np.diff(starts)
    if len(starts) != shape[0] + 1 or starts[0] != 0 or starts[-1] != len(values) or len(columns) != len(values):
        raise ValueError("its parts do not fit one another")
    if counts.min(initial=1) < (0 if may_be_empty else 1):
        raise ValueError(f"{np.count_nonzero(counts < 1)} points get nothing")
    if columns.min(initial=0) < 0 or columns.max(initial=0) >= shape[1]:
        raise ValueError("it takes from points that are not there")
    # The negated comparison also rejects NaN.
    begins = starts[:-1][counts > 0]
    errors = np.abs(np.add.reduceat(values, begins) - 1) if len(begins) else np.empty(0)
    if not errors.max(initial=0) <= _SUM_ERROR_MAX:
        raise ValueError(f"the weights of a point sum up to something {errors.max():.3g} from 1")


def _make(path: Path, read: Callable[[Path], SparseMatrix], make: Callable[[Path], None]) -> SparseMatrix:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.with_name(f".{path.stem}.lock")):
            with contextlib.suppress(*_DAMAGED):
                # Another process has made it meanwhile.
                return read(path)
            _sweep(path.parent)
            return _moved(path, read, make)
    except OSError as error:
        if isinstance(error, Io):
            raise
        raise Io(str(path.parent), f"weights cannot be kept there ({error}): set JUNCTURA_CACHE") from error


def _moved(path: Path, read: Callable[[Path], SparseMatrix], make: Callable[[Path], None]) -> SparseMatrix:
    """Yields a temporary path for a matrix, which is validated, and then renamed."""
    with tempfile.TemporaryDirectory(prefix=_MADE, dir=path.parent) as temporary:
        made = Path(temporary) / "weights.npz"
        make(made)
        try:
            matrix = read(made)
        except _DAMAGED as error:
            raise Unsupported("weights", f"what was made is no matrix of weights: {error}") from error
        made.replace(path)
    return matrix


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Locks a matrix against other processes; the lock is released with the process that holds it."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # On a file system without locks, a matrix may be made twice.
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is_named(descriptor, lock):
                # The previous holder has removed the file.
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return
        finally:
            os.close(descriptor)


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Removes temporary files of killed processes."""
    for left in folder.glob(f"{_MADE}*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - _LEFT_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _save(path: Path, matrix: Any) -> None:
    parts = {"starts": matrix.indptr, "columns": matrix.indices, "weights": matrix.data}
    np.savez(path, **parts, shape=np.array(matrix.shape))


def _run(task: _Task, made: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("mir_program.py")), str(made)]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **_QUIET, "MIR_CACHE_PATH": str(made.parent)},
            input=json.dumps({"source": task.source, "options": task.options}),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_MIR_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise Unsupported(task.subject, f"MIR has not ended after {_MIR_SECONDS_MAX:g} s") from error
    if done.returncode == -signal.SIGKILL:
        raise Unsupported(task.subject, "MIR was killed: the machine was short of memory, or somebody ended it")
    if done.returncode or not made.exists():
        said = "; ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
        raise Unsupported(task.subject, f"MIR ended with {done.returncode}: {said[-1000:]}")
