"""Weights, as users have them."""

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
from junctura.remap import _compute, _files
from junctura.remap._grids import Grid, shape_of

Array = npt.NDArray[Any]
Method: TypeAlias = Literal["conservative", "bilinear", "nearest"]
Norm: TypeAlias = Literal["whole", "destarea", "fracarea"]


class Conservation(NamedTuple):
    """What a field holds and what it becomes, as integrals over area."""

    source: float
    """Over the part of the source that takes part and is not missing."""
    target: float
    """Over the covered part of the target."""
    relative_error: float
    """How far they are apart, relative to the integral of the field's magnitude."""


class Weights:
    """Weights from one grid to another.

    Made by `read` or `compute`, or from links: for each one a target point, a source point, both counted from 0 in the
    order of the grid's elements, and a weight. Links of the same points are added up, whatever their order is.

    Parameters
    ----------
    targets, sources : array_like of int
        Points.
    weights : array_like of float
        How much of the source point goes into the target point.
    source_shape, target_shape : sequence of int
        Of the grids.
    method : str
        How they were made, in words.

    Raises
    ------
    InvalidArgument
        A link is of no point, or has no number.

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
        """Reads a file of weights (netCDF, classic or version 4) as SCRIP, cdo, ESMF or YAC write it.

        Parameters
        ----------
        path : path
            Areas, fractions and masks are read where the file has them: what a mask leaves out gets no value, and gives
            none.
        source_shape, target_shape : sequence of int, optional
            Of the grids, where the file does not say them (YAC's do not), or says less.

        Raises
        ------
        NotFound, Io, Corrupt
            There is no such file, it cannot be read, or it is not of weights.
        Unsupported
            Its weights need gradients of the field, as bicubic ones do.
        ImportError
            Without netCDF4: ``pip install 'junctura[remap]'``.

        """
        given = [None if shape is None else shape_of(shape) for shape in (source_shape, target_shape)]
        file = _files.read(path, *given)
        return _restored(file)

    @classmethod
    def compute(
        cls, source: Grid, target: Grid, method: Method = "conservative", *, norm: Norm = "fracarea"
    ) -> Weights:
        """Computes weights between two grids.

        Conservative (of first order) and nearest ones are YAC's, which is run in a process of its own. Bilinear ones
        need a grid of meridians and parallels to come from. Waits for as long as that takes: for grids of a million
        cells some ten seconds.

        Parameters
        ----------
        source, target : LonLat or Mesh
            The grids. Cells that their masks leave out give nothing, and get nothing.
        method : str
            ``conservative``: shares of the area of target cells. ``bilinear``: between the four centres around; within
            the outermost cells of the grid values go on as they are. ``nearest``: the source centre that is nearest.
        norm : str
            What conservative weights are divided by: ``destarea``, the area of the target cell, so that its value is
            less where it is covered in part, or ``fracarea``, its covered part.

        Raises
        ------
        InvalidArgument
            There is no such method, or not for this grid.
        ImportError
            Without YAC or netCDF4: ``pip install 'junctura[remap]'``.
        Unsupported
            YAC has failed; the error has what it said.

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
        form: Literal["esmf", "scrip"] = "esmf",
        *,
        source: Grid | None = None,
        target: Grid | None = None,
    ) -> None:
        """Writes a file of weights (netCDF); one that is there goes. Waits for the disk.

        Parameters
        ----------
        path : path
            Of the file.
        form : str
            ``esmf``, as ESMF writes and reads it, or ``scrip``, which cdo reads (``cdo remap,GRID,FILE``).
        source, target : LonLat or Mesh, optional
            Where the points lie, for a file of SCRIP's; without grids it has zeros there.

        Raises
        ------
        InvalidArgument
            There is no such form, or a grid has another shape.
        Io
            It cannot be written.
        ImportError
            Without netCDF4: ``pip install 'junctura[remap]'``.

        """
        if form not in ("esmf", "scrip"):
            raise InvalidArgument("form", f"{form!r} is not one of esmf, scrip")
        file = self._file()
        if form == "esmf":
            _files.write(path, file)
            return
        sides = [_with_centres(*pair) for pair in ((file.source, source), (file.target, target))]
        _files.write_scrip(path, file._replace(source=sides[0], target=sides[1]))

    @property
    def source_shape(self) -> tuple[int, ...]:
        """Of the grid that fields come from."""
        return tuple(self._made.source_shape)

    @property
    def target_shape(self) -> tuple[int, ...]:
        """Of the grid that fields go to."""
        return tuple(self._made.target_shape)

    @property
    def links(self) -> tuple[Array, Array, Array]:
        """Target points, source points and weights, by target and then by source: copies."""
        targets, sources, weights = self._made.links()
        return np.frombuffer(targets, np.int64), np.frombuffer(sources, np.int64), np.frombuffer(weights)

    def __call__(
        self, field: npt.ArrayLike, *, norm: Norm = "whole", missing: float | None = None, threads: int | None = None
    ) -> Array:
        """A field on the other grid.

        Each target point is summed in doubles, by source point: the bits are the same for any number of threads. Other
        Python threads run meanwhile.

        Parameters
        ----------
        field : array_like
            Its last dimensions are the source grid, or its last one all points of it; those before are kept.
        norm : str
            Where a part of a target point is missing: ``whole``, it is missing; ``destarea``, what is missing adds
            nothing; ``fracarea``, the rest is divided by its weights. Target points without a source are missing
            always.
        missing : float, optional
            The value that says "missing", besides NaN and masks of NumPy's; target points that are missing get it, else
            NaN.
        threads : int, optional
            As many as there are cores, where there is work for them.

        Returns
        -------
        numpy.ndarray
            float32 of float32, else float64.

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
        """Whether the target gets what a field of the source holds.

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
        """For a rank with target points `start` to `stop`: their weights, and the stretches of the source they need.

        The part's source is these stretches, one behind another, and its target these points, both in one dimension.
        What it gives has the bits of the whole.

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
        """How the source lies over ranks that share the target: each has what its target points need, in order.

        That is the source of its `part`. With it a rank takes no more from a pool: ``pool.demand_array("name=t",
        layout, rank).ravel()``.

        Parameters
        ----------
        cuts : sequence of int
            Where the target points of each rank begin, from 0, and at last how many there are.

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
        """A field as doubles, the dimensions before the grid, its own type, and that of what it becomes."""
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
    """The missing value as a field of this type has it: 1e20 in single precision is not the double 1e20."""
    if missing is None or dtype.kind != "f":
        return missing
    with np.errstate(over="ignore"):
        return float(dtype.type(missing))


def _restored(file: _files.WeightsFile) -> Weights:
    return Weights._of(_made(file), file.method)


def _boxes(start: int, stop: int, shape: tuple[int, ...]) -> Iterator[str]:
    """A stretch of points as boxes of the grid, in order."""
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
    # A mask that leaves nothing out is none.
    mask = side.mask if not side.mask.all() else np.empty(0)
    return (
        np.ascontiguousarray(side.areas, np.float64),
        np.ascontiguousarray(side.fractions, np.float64),
        np.ascontiguousarray(mask, np.uint8),
    )
