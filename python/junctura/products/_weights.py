"""Interpolation weights between grids: made once by MIR, kept on disk, and applied as a sparse matrix.

```text
  weights(F48, 0.5/0.5@72/-25/34/45, linear)
    in memory?  ── no ──►  whole matrix F48 → 0.5/0.5 on disk?  ── no ──►  a child process makes it with MIR
        │                        │ cut out the rows of the area               │ looked at, then moved into its place
        ▼                        ▼                                            ▼
```
MIR answers nonsense with something: what it makes is looked at before it is believed, and so is what comes from disk,
where a damaged file is made again. Matrices are for whole grids, since an area whose edges are no points of the grid
would shift MIR's points.

The cache is the folder `weights` in that of the environment variable ``JUNCTURA_CACHE``, else in
``$XDG_CACHE_HOME/junctura``, else in ``~/.cache/junctura``. Files appear there whole; processes may share it: whoever
wants a matrix that another one is making waits for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura._labels import needed
from junctura.errors import InvalidArgument, Io, Unsupported
from junctura.products._cache import Bounded
from junctura.products._floats import Floats
from junctura.products._grid import Grid
from junctura.products._grid import grid as named

Method = Literal["linear", "bilinear", "nearest", "conservative"]
Quantity = Literal["scalar", "vector"]
# By our names those of MIR.
_METHODS = {
    "linear": "linear",
    "bilinear": "bilinear",
    "nearest": "nearest-neighbour",
    "conservative": "grid-box-average",
}
# What MIR does with components of vectors, which have no single value at a pole: a point there takes from its meridian.
_VECTORS = {"pole-displacement-in-degree": "1e-6"}
_QUIET = {
    "OMP_NUM_THREADS": "1",
    "ECKIT_EXCEPTION_IS_SILENT": "1",
    "ECKIT_ASSERT_FAILED_IS_SILENT": "1",
    "ECKIT_SERIOUS_BUG_IS_SILENT": "1",
}
# A matrix from F48 to a quarter of a degree has 40 MB.
_KEPT_BYTES_MAX = 512 << 20
# Sums of a row differ from 1 by some 1e-14.
_SUM_ERROR_MAX = 1e-9
_FORM = 1
# From N320 to a tenth of a degree MIR takes half a minute.
_MIR_SECONDS_MAX = 900.0
# Older than this a folder is nobody's work any more.
_LEFT_SECONDS = 86_400.0
_DAMAGED = (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
_MADE = ".made-"
_kept: Bounded[Any] = Bounded(_KEPT_BYTES_MAX)


def weights(source: Grid, target: Grid, method: Method = "linear", quantity: Quantity = "scalar") -> Any:
    """The matrix that takes values of one grid, point by point, to another.

    Parameters
    ----------
    source
        A whole grid: for an area of one take the whole one, with missing values outside of the area.
    target
        Any grid. An area has the values that the whole grid has there; MIR itself, asked for an area, cuts the boxes of
        ``conservative`` at its edges.
    method
        ``linear``: within triangles of points around. ``bilinear``: within quadrilaterals. ``nearest``: the nearest
        point. ``conservative``: the mean over the target's grid boxes (MIR's grid-box-average), which keeps the mean
        over the globe; not for points.
    quantity
        ``vector`` for components of vectors and for vorticity and divergence, which have no single value at a pole.

    Returns
    -------
    scipy.sparse.csr_array
        Rows are points of the target, columns those of the source; no row is empty, and each sums up to 1. Not to be
        written to.

    Raises
    ------
    InvalidArgument
        There is no such method, or the source is an area.
    Unsupported
        The source is points, or MIR has no weights of this method between these grids, or failed; the error has what
        it said.
    Io
        The cache cannot be written.
    ImportError
        Without MIR or SciPy: ``pip install 'junctura[products]'``.

    """
    if method not in _METHODS:
        raise InvalidArgument("method", f"{method!r} is not one of {', '.join(_METHODS)}")
    if not source.is_global:
        _refuse_source(source)
    if method == "conservative":
        quantity = "scalar"
    key = (source.name, target.name, method, quantity)
    return _kept.get(key, lambda: _made(source, target, method, quantity), _bytes)


def folder() -> Path:
    """Where matrices are kept."""
    given = os.environ.get("JUNCTURA_CACHE")
    if given:
        return Path(given) / "weights"
    of_the_user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(of_the_user) / "junctura" / "weights"


def _refuse_source(source: Grid) -> None:
    if source.kind == "points":
        raise Unsupported(f"grid {source.name[:80]}", "between single points there is nothing to interpolate")
    raise InvalidArgument(f"grid {source.name}", "weights are those of whole grids")


def _bytes(matrix: Any) -> int:
    return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)


def _made(source: Grid, target: Grid, method: Method, quantity: Quantity) -> Any:
    name, _, _ = target.name.partition("@")
    if target.is_global or target.kind == "points":
        return _whole(source, target, method, quantity)
    around = named(name)
    assert isinstance(around, Grid)
    rows, columns = around.rows_and_columns(target)
    wanted = (rows[:, None] * around.shape[1] + columns).ravel()
    return _whole(source, around, method, quantity)[wanted]


class _Task(NamedTuple):
    """What MIR is asked for."""

    subject: str
    source: Mapping[str, Any]
    options: Mapping[str, Any]
    rows_of: npt.NDArray[np.intp] | None
    """Which row of the matrix each point of the target has, where some points have the same."""


def _whole(source: Grid, target: Grid, method: Method, quantity: Quantity) -> Any:
    task = _task(source, target, method, quantity)
    shape = (target.size if task.rows_of is None else int(task.rows_of.max()) + 1, source.size)
    path = path_of(source.name, target.name, method, quantity)
    try:
        matrix = _read(path, shape)
    except _DAMAGED:
        matrix = _make(task, path, shape)
    return matrix if task.rows_of is None else matrix[task.rows_of]


def path_of(source: str, target: str, method: Method, quantity: Quantity) -> Path:
    """Where weights between two whole grids, by their names, are kept once they are made."""
    said = [source, target, method, quantity, _version(), _FORM]
    return folder() / f"{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:40]}.npz"


def _version() -> str:
    try:
        return f"{importlib.metadata.version('mir-python')} {importlib.metadata.version('mirlib')}"
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError("MIR is not installed here: pip install 'junctura[products]'") from error


def _task(source: Grid, target: Grid, method: Method, quantity: Quantity) -> _Task:
    subject = f"{method} weights {source.name[:40]} -> {target.name[:40]}"
    options: dict[str, Any] = {"interpolation": _METHODS[method]}
    if quantity == "vector":
        options.update(_VECTORS)
    rows_of = None
    if target.kind == "points" or target.name.startswith("R"):
        if method == "conservative":
            raise Unsupported(subject, "points have no boxes to take means of: take linear, bilinear or nearest")
        # MIR takes no point twice.
        places = np.column_stack([target.latitudes, np.mod(target.longitudes, 360)])
        unique, rows_of = np.unique(places, axis=0, return_inverse=True)
        rows_of = rows_of.reshape(-1)
        options.update(latitudes=unique[:, 0].tolist(), longitudes=unique[:, 1].tolist())
    else:
        options.update(_target(target))
    return _Task(subject, _specification(source), options, rows_of)


def _target(on: Grid) -> dict[str, str]:
    """Options of MIR for a target grid."""
    if on.kind != "regular_ll":
        return {"grid": on.name}
    options = {"grid": "/".join(map(repr, _increments(on)))}
    if _edges(on):
        options["area"] = "/".join(map(repr, _edges(on)))
    return options


def _specification(source: Grid) -> dict[str, Any]:
    if source.kind == "regular_ll":
        edges = _edges(source)
        return {"grid": _increments(source), **({"area": edges} if edges else {})}
    if not source.name.startswith("R"):
        return {"grid": source.name}
    number, _, counts = source.name[1:].partition(":")
    return {"grid": f"N{number}", "pl": [int(count) for count in counts.split(",")]}


def _increments(on: Grid) -> list[float]:
    """West to east and north to south; of the names of some grids the last digit is not all that they mean."""
    rows, columns = on.shape
    return [360 / columns, 180 / (rows - 1)]


def _edges(on: Grid) -> list[float]:
    """North, west, south, east of a grid without a row on the equator: MIR would put one there, and none on a pole."""
    rows, columns = on.shape
    return [90.0, 0.0, -90.0, 360 - 360 / columns] if rows % 2 == 0 else []


def _read(path: Path, shape: tuple[int, int]) -> Any:
    """A matrix from a file; ValueError and others where it is none."""
    with np.load(path) as parts:
        starts, columns, values = parts["starts"], parts["columns"], parts["weights"]
        is_shape = tuple(parts["shape"].tolist())
    if is_shape != shape:
        raise ValueError(f"it is for {is_shape[0]} and {is_shape[1]} points, expected {shape[0]} and {shape[1]}")
    _look_at(starts, columns, values, shape)
    matrix = needed("scipy.sparse", "products").csr_array((values, columns, starts), shape=shape)
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


def _look_at(starts: npt.NDArray[Any], columns: npt.NDArray[Any], values: Floats, shape: tuple[int, int]) -> None:
    """ValueError, if these are no weights of a matrix of this shape."""
    counts = np.diff(starts)
    if len(starts) != shape[0] + 1 or starts[0] != 0 or starts[-1] != len(values) or len(columns) != len(values):
        raise ValueError("its parts do not fit one another")
    if counts.min(initial=1) < 1:
        raise ValueError(f"{np.count_nonzero(counts < 1)} points get nothing")
    if columns.min(initial=0) < 0 or columns.max(initial=0) >= shape[1]:
        raise ValueError("it takes from points that are not there")
    # Not a number is no less than anything.
    errors = np.abs(np.add.reduceat(values, starts[:-1]) - 1)
    if not errors.max(initial=0) <= _SUM_ERROR_MAX:
        raise ValueError(f"the weights of a point sum up to something {errors.max():.3g} from 1")


def _make(task: _Task, path: Path, shape: tuple[int, int]) -> Any:
    needed("scipy.sparse", "products")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.with_name(f".{path.stem}.lock")):
            with contextlib.suppress(*_DAMAGED):
                # Another one has made it meanwhile.
                return _read(path, shape)
            _sweep(path.parent)
            return _made_by_mir(task, path, shape)
    except OSError as error:
        if isinstance(error, Io):
            raise
        raise Io(str(path.parent), f"weights cannot be kept there ({error}): set JUNCTURA_CACHE") from error


def _made_by_mir(task: _Task, path: Path, shape: tuple[int, int]) -> Any:
    with tempfile.TemporaryDirectory(prefix=_MADE, dir=path.parent) as temporary:
        made = Path(temporary) / "weights.npz"
        _run(task, made)
        try:
            matrix = _read(made, shape)
        except _DAMAGED as error:
            raise Unsupported(task.subject, f"MIR's matrix is none: {error}") from error
        made.replace(path)
    return matrix


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Others who want the same wait, in whatever process; a lock goes with the process that has it."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # Where a file system has no locks, a matrix may be made twice.
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is_named(descriptor, lock):
                # The one before has removed it.
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
    """Removes what processes that were killed have left."""
    for left in folder.glob(f"{_MADE}*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - _LEFT_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _run(task: _Task, made: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("_mir.py")), str(made)]
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
    if done.returncode or not made.exists():
        said = "; ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
        raise Unsupported(task.subject, f"MIR ended with {done.returncode}: {said[-1000:]}")
