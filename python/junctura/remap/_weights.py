"""Weights between two grids."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from junctura import _native
from junctura._array.numpy_payload import array_of, with_mask
from junctura.errors import InvalidArgument
from junctura.remap import _binary, _compute, _files
from junctura.remap._grids import Grid, shape_of

Array = npt.NDArray[Any]
Method: TypeAlias = Literal["conservative", "bilinear", "nearest"]
Norm: TypeAlias = Literal["whole", "destarea", "fracarea"]


class Conservation(NamedTuple):
    """Integrals over area of a field before and after regridding.

    Examples
    --------
    >>> kept = junctura.remap.Conservation(source=2.0, target=1.5, relative_error=0.25)
    >>> kept.source - kept.target
    0.5

    """

    source: float
    """Over the part of the source that takes part and is not missing."""
    target: float
    """Over the covered part of the target."""
    relative_error: float
    """Their difference, relative to the integral of the field's magnitude."""


class Weights:
    """Weights from one grid to another.

    Created by `read` or `compute`, or from links: each link is a target point, a source point, both counted from 0 in
    the order of the grid's elements, and a weight. Links between the same points are added, in any order.

    Parameters
    ----------
    targets, sources : array_like of int
        Points.
    weights : array_like of float
        The fraction of the source point that contributes to the target point.
    source_shape, target_shape : sequence of int
        Shapes of the grids.
    method : str
        A description of the method.

    Raises
    ------
    InvalidArgument
        A link has an invalid point, or a weight that is not a number.

    Examples
    --------
    >>> means = junctura.remap.Weights([0, 0, 1, 1], [0, 1, 2, 3], [0.5] * 4, (4,), (2,))
    >>> means(numpy.array([1.0, 2.0, 3.0, numpy.nan]))
    array([1.5, nan])
    >>> means(numpy.array([1.0, 2.0, 3.0, numpy.nan]), norm="fracarea")
    array([1.5, 3. ])

    """

    def __init__(
        self,
        targets: npt.ArrayLike,
        sources: npt.ArrayLike,
        weights: npt.ArrayLike,
        source_shape: Sequence[int],
        target_shape: Sequence[int],
        *,
        method: str = "",
    ) -> None:
        source = _files.Side(shape_of(source_shape), np.empty(0), np.empty(0), np.empty(0, np.bool_))
        links = (array_of(targets), array_of(sources), array_of(weights))
        self._made = _made(
            _files.WeightsFile(*links, source, source._replace(shape=shape_of(target_shape)), False, method)
        )
        self.method = method

    @classmethod
    def _of(cls, made: _native._Weights, method: str) -> Weights:
        weights = cls.__new__(cls)
        weights._made, weights.method = made, method
        return weights

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        source_shape: Sequence[int] | None = None,
        target_shape: Sequence[int] | None = None,
    ) -> Weights:
        """Reads a file of weights: netCDF, classic or version 4, as SCRIP, cdo, ESMF or YAC write it, or the binary
        format of `write`, which needs no netCDF4.

        Parameters
        ----------
        path : path
            Areas, fractions and masks are read if the file has them: masked cells receive no value, and contribute
            none.
        source_shape, target_shape : sequence of int, optional
            Shapes of the grids, if the file does not have them (files of YAC do not), or has less.

        Raises
        ------
        NotFound, Io, Corrupt
            The file does not exist, cannot be read, or has no weights.
        Unsupported
            Its weights need gradients of the field, as bicubic ones do.
        ImportError
            Without netCDF4: ``pip install 'junctura[remap]'``.

        """
        given = [None if shape is None else shape_of(shape) for shape in (source_shape, target_shape)]
        binary = _binary.read(path)
        if binary is not None:
            return cls._of(_binary.checked(binary, given, str(path)), "")
        file = _files.read(path, *given)
        return _restored(file)

    @classmethod
    def compute(
        cls, source: Grid, target: Grid, method: Method = "conservative", *, norm: Norm = "fracarea"
    ) -> Weights:
        """Computes weights between two grids.

        Conservative (first-order) and nearest weights are computed by YAC, in a separate process. Bilinear weights need
        a source grid of meridians and parallels. Blocks until the weights are complete: about ten seconds for grids of
        a million cells.

        Parameters
        ----------
        source, target : LonLat or Mesh
            The grids. Masked cells contribute nothing, and receive nothing.
        method : str
            ``conservative``: fractions of the area of target cells. ``bilinear``: between the four surrounding centers;
            within the outermost cells of the grid values are extended. ``nearest``: the nearest source center.
        norm : str
            Normalization of conservative weights: ``destarea``, the area of the target cell, so that a partly covered
            cell has a smaller value, or ``fracarea``, its covered part.

        Raises
        ------
        InvalidArgument
            The method is unknown, or not available for this grid.
        ImportError
            Without YAC or netCDF4: ``pip install 'junctura[remap]'``.
        Unsupported
            YAC has failed; the error has its message.

        Examples
        --------
        >>> LonLat = junctura.remap.LonLat
        >>> weights = junctura.remap.Weights.compute(LonLat.regular(36, 18), LonLat.regular(24, 12), "bilinear")
        >>> weights
        Weights((18, 36) -> (12, 24), 864 links, bilinear)

        """
        if norm not in ("destarea", "fracarea"):
            raise InvalidArgument("norm", f"{norm!r} is not one of destarea, fracarea")
        if method == "bilinear":
            links, _ = _compute.divided(
                _compute.taking_part(_compute.bilinear(source, target), source, target), target.areas.size
            )
        elif method in ("conservative", "nearest"):
            links = _compute.taking_part(_compute.by_yac(source, target, method), source, target)
        else:
            raise InvalidArgument("method", f"{method!r} is not one of conservative, bilinear, nearest")
        sides = [
            _files.Side(
                grid.shape, grid.areas.ravel(), np.empty(0), np.empty(0) if grid.mask is None else grid.mask.ravel()
            )
            for grid in (source, target)
        ]
        is_by_fraction = method == "conservative" and norm == "fracarea"
        if method == "conservative":
            parts = _compute.fractions(links, source, target)
            sides = [side._replace(fractions=part) for side, part in zip(sides, parts, strict=True)]
            links = _compute.divided(links, target.areas.size)[0] if is_by_fraction else links
        return cls._of(_made(_files.WeightsFile(*links, sides[0], sides[1], is_by_fraction, method)), method)

    def write(
        self,
        path: str | os.PathLike[str],
        form: Literal["esmf", "scrip", "binary"] = "esmf",
        *,
        source: Grid | None = None,
        target: Grid | None = None,
    ) -> None:
        """Writes a weight file; replaces an existing one. Blocks until the file is written.

        Parameters
        ----------
        path : path
            Path of the file.
        form : str
            ``esmf``, as ESMF writes and reads it; ``scrip``, which cdo reads (``cdo remap,GRID,FILE``); ``binary``,
            which programs in C, C++ and Fortran read without netCDF. It has no method.
        source, target : LonLat or Mesh, optional
            The grids, for their coordinates in a SCRIP file; without grids the file has zeros there.

        Raises
        ------
        InvalidArgument
            The format is unknown, or a grid has another shape.
        Io
            The file cannot be written.
        ImportError
            netCDF without netCDF4: ``pip install 'junctura[remap]'``.

        """
        if form == "binary":
            _binary.write(path, self._made)
            return
        if form not in ("esmf", "scrip"):
            raise InvalidArgument("form", f"{form!r} is not one of esmf, scrip, binary")
        file = self._file()
        if form == "esmf":
            _files.write(path, file)
            return
        sides = [_with_centres(*pair) for pair in ((file.source, source), (file.target, target))]
        _files.write_scrip(path, file._replace(source=sides[0], target=sides[1]))

    @property
    def source_shape(self) -> tuple[int, ...]:
        """Shape of the source grid."""
        return tuple(self._made.source_shape)

    @property
    def target_shape(self) -> tuple[int, ...]:
        """Shape of the target grid."""
        return tuple(self._made.target_shape)

    @property
    def links(self) -> tuple[Array, Array, Array]:
        """Copies of target points, source points and weights, ordered by target and then by source."""
        targets, sources, weights = self._made.links()
        return np.frombuffer(targets, np.int64), np.frombuffer(sources, np.int64), np.frombuffer(weights)

    def __call__(
        self, field: npt.ArrayLike, *, norm: Norm = "whole", missing: float | None = None, threads: int | None = None
    ) -> Array:
        """Returns a field on the target grid.

        Each target point is summed in double precision, in the order of source points: the result has the same bits for
        any number of threads. Other Python threads run meanwhile.

        Parameters
        ----------
        field : array_like
            Its last dimensions are the source grid, or its last one has all points of the grid; the dimensions before
            are kept.
        norm : str
            Treatment of target points with missing source points: ``whole``, the target point is missing; ``destarea``,
            missing points add nothing; ``fracarea``, the rest is divided by its weights. Target points without a source
            are always missing.
        missing : float, optional
            The value that marks missing points, besides NaN and NumPy masks; missing target points get this value, else
            NaN.
        threads : int, optional
            Number of threads. Default: the number of cores, if there is enough work.

        Returns
        -------
        numpy.ndarray
            float32 if the field is float32, else float64.

        Raises
        ------
        InvalidArgument
            The field does not fit the source grid, or has no numbers.

        """
        values, lead, given, dtype = self._fields(field)
        stop = int(np.prod(self.target_shape))
        if threads is not None and threads < 1:
            raise InvalidArgument("threads", f"{threads} threads do nothing")
        made = self._made.apply(values, 0, stop, norm, _as_given(missing, given), threads or 0)
        return np.frombuffer(made).reshape(*lead, *self.target_shape).astype(dtype, copy=False)

    def conservation(self, field: npt.ArrayLike, *, norm: Norm = "whole", missing: float | None = None) -> Conservation:
        """Compares the integrals of a field on the source grid and on the target grid.

        Raises
        ------
        InvalidArgument
            The areas of the cells are not known, or the field does not fit.

        Examples
        --------
        >>> one, other = junctura.remap.LonLat.regular(36, 18), junctura.remap.LonLat.regular(24, 12)
        >>> weights = junctura.remap.Weights.compute(one, other, "conservative")
        >>> weights.conservation(numpy.random.default_rng(1).random(one.shape)).relative_error < 1e-12
        True

        """
        values, lead, given, _ = self._fields(field)
        if lead:
            raise InvalidArgument("field", f"one at a time, not of the shape {np.shape(field)}")
        return Conservation(*self._made.conserved(values, norm, _as_given(missing, given)))

    def part(self, start: int, stop: int) -> tuple[Weights, list[tuple[int, int]]]:
        """Returns the weights of target points `start` to `stop`, for one rank, and the intervals of the source they
        need.

        The source of the part consists of these intervals, in order, and its target is these points, both in one
        dimension. Its results have the same bits as those of the whole.

        Examples
        --------
        >>> means = junctura.remap.Weights([0, 0, 1, 1], [0, 1, 2, 3], [0.5] * 4, (4,), (2,))
        >>> part, stretches = means.part(1, 2)
        >>> stretches, part([3.0, 5.0])
        ([(2, 4)], array([4.]))

        """
        try:
            made, stretches = self._made.part(start, stop)
        except OverflowError as error:
            raise InvalidArgument("weights", f"target points {start}..{stop}") from error
        return self._of(made, self.method), stretches

    def layout(self, cuts: Sequence[int]) -> _native.Layout:
        """Returns the layout of the source over ranks that share the target: each rank has what its target points need,
        in order.

        This is the source of its `part`. With it a rank receives no more data from a pool than it needs:
        ``pool.demand_array("name=t", layout, rank).ravel()``.

        Parameters
        ----------
        cuts : sequence of int
            The first target point of each rank, starting with 0, and at the end the number of target points.

        Examples
        --------
        >>> means = junctura.remap.Weights([0, 0, 1, 1], [0, 1, 4, 5], [0.5] * 4, (2, 3), (2,))
        >>> str(means.layout([0, 1, 2]))
        'shape=2x3 slabs=0:1x0:2;1:2x1:3 order=C'

        """
        if len(cuts) < 2 or cuts[0] != 0 or cuts[-1] != np.prod(self.target_shape):
            raise InvalidArgument("cuts", f"they do not go from 0 to {np.prod(self.target_shape)}: {list(cuts)}")
        ranks = []
        for start, stop in itertools.pairwise(int(cut) for cut in cuts):
            if start > stop:
                raise InvalidArgument("cuts", f"{stop} comes behind {start}")
            stretches = self._made.sources_of(start, stop)
            ranks.append(",".join(box for stretch in stretches for box in _boxes(*stretch, self.source_shape)))
        return _native.Layout(shape=self.source_shape, slabs=";".join(ranks))

    def _fields(self, field: npt.ArrayLike) -> tuple[Array, tuple[int, ...], np.dtype[Any], Any]:
        """Returns a field in double precision, the dimensions before the grid, its own type, and the type of the
        result.
        """
        given = with_mask(field)
        if given.dtype.kind not in "fiub":
            raise InvalidArgument("field", f"it is of {given.dtype}, not of real numbers")
        dtype = np.float32 if given.dtype == np.float32 else np.float64
        array = array_of(given, np.float64)
        shape, rank = self.source_shape, len(self.source_shape)
        if array.shape[-rank:] == shape:
            lead = array.shape[: array.ndim - rank]
        elif array.ndim and array.shape[-1] == np.prod(shape):
            lead = array.shape[:-1]
        else:
            raise InvalidArgument(
                "field", f"it has the shape {array.shape}, which does not end with that of the source, {shape}"
            )
        return np.ascontiguousarray(array, np.float64), lead, given.dtype, dtype

    def _file(self) -> _files.WeightsFile:
        sides = []
        for shape, (areas, fractions, mask) in zip(
            (self.source_shape, self.target_shape), self._made.cells(), strict=True
        ):
            known = (np.frombuffer(areas), np.frombuffer(fractions), np.frombuffer(mask, np.bool_))
            sides.append(_files.Side(shape, *known))
        return _files.WeightsFile(*self.links, sides[0], sides[1], self._made.by_fraction, self.method)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._file(),)

    def __len__(self) -> int:
        return len(self._made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and self._made == other._made

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        method = f", {self.method}" if self.method else ""
        return f"Weights({self.source_shape} -> {self.target_shape}, {len(self)} links{method})"


def _with_centres(side: _files.Side, grid: Grid | None) -> _files.Side:
    if grid is None:
        return side
    if int(np.prod(grid.shape)) != int(np.prod(side.shape)):
        raise InvalidArgument("grid", f"it has the shape {grid.shape}, and the weights {side.shape}")
    return side._replace(centres=grid.points())


def _as_given(missing: float | None, dtype: np.dtype[Any]) -> float | None:
    """Returns the missing value in the precision of the field: 1e20 in single precision is not the double 1e20."""
    if missing is None or dtype.kind != "f":
        return missing
    with np.errstate(over="ignore"):
        return float(dtype.type(missing))


def _restored(file: _files.WeightsFile) -> Weights:
    return Weights._of(_made(file), file.method)


def _boxes(start: int, stop: int, shape: tuple[int, ...]) -> Iterator[str]:
    """Yields an interval of points as boxes of the grid, in order."""
    if len(shape) == 1:
        yield f"{start}:{stop}"
        return
    inner = int(np.prod(shape[1:]))
    while start < stop:
        row, within = divmod(start, inner)
        if within or stop - start < inner:
            end = min(stop, (row + 1) * inner)
            parts = _boxes(within, end - row * inner, shape[1:])
            yield from (f"{row}:{row + 1}x{part}" for part in parts)
        else:
            end = stop // inner * inner
            yield "x".join([f"{row}:{stop // inner}", *(f"0:{extent}" for extent in shape[1:])])
        start = end


def _made(file: _files.WeightsFile) -> _native._Weights:
    links = (
        _list("targets", file.targets, np.int64),
        _list("sources", file.sources, np.int64),
        _list("weights", file.weights, np.float64),
    )
    counts = [len(part) for part in links]
    if len(set(counts)) > 1:
        raise InvalidArgument("weights", f"{counts[0]} targets, {counts[1]} sources and {counts[2]} weights")
    for name, side in (("source", file.source), ("target", file.target)):
        if not side.shape or min(side.shape) < 1:
            raise InvalidArgument("weights", f"the {name} has the shape {side.shape}, which has no points")
    return _native._Weights(
        links, file.source.shape, file.target.shape, _known(file.source), _known(file.target), file.by_fraction
    )


def _list(what: str, values: Array, kind: type[np.int64 | np.float64]) -> Array:
    expected = "iu" if kind is np.int64 else "fiu"
    if values.ndim != 1 or (values.size and values.dtype.kind not in expected):
        raise InvalidArgument("weights", f"{what} are no list of numbers: {values.dtype} of the shape {values.shape}")
    return np.ascontiguousarray(values, kind)


def _known(side: _files.Side) -> tuple[Array, Array, Array]:
    # A mask that excludes no cell is no mask.
    mask = side.mask if not side.mask.all() else np.empty(0)
    return (
        np.ascontiguousarray(side.areas, np.float64),
        np.ascontiguousarray(side.fractions, np.float64),
        np.ascontiguousarray(mask, np.uint8),
    )
