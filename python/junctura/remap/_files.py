"""Weight files: netCDF, with the names that SCRIP, ESMF and YAC use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from junctura._near_file import near_file
from junctura._xarray.label_attributes import needed
from junctura.errors import Corrupt, InvalidArgument, Io, NotFound, Unsupported

Array = npt.NDArray[Any]
# Points, areas, fractions and masks of source and target; shapes have the fastest dimension first.
_SCRIP = {
    "links": ("dst_address", "src_address", "remap_matrix"),
    "size": ("src_grid_size", "dst_grid_size"),
    "areas": ("src_grid_area", "dst_grid_area"),
    "fractions": ("src_grid_frac", "dst_grid_frac"),
    "mask": ("src_grid_imask", "dst_grid_imask"),
}
_ESMF = {
    "links": ("row", "col", "S"),
    "size": ("n_a", "n_b"),
    "areas": ("area_a", "area_b"),
    "fractions": ("frac_a", "frac_b"),
    "mask": ("mask_a", "mask_b"),
}
_DIMS = ("src_grid_dims", "dst_grid_dims")
# The maximum number of links in a classic file.
_CLASSIC_LINKS_MAX = 1 << 28


class Side(NamedTuple):
    """The description of a grid in a file; a list is empty if the file does not have it."""

    shape: tuple[int, ...]
    areas: Array
    fractions: Array
    mask: Array
    centres: tuple[Array, Array] | None = None
    """Longitudes and latitudes, in degrees."""


class WeightsFile(NamedTuple):
    """The contents of a file."""

    targets: Array
    sources: Array
    weights: Array
    source: Side
    target: Side
    by_fraction: bool
    method: str


def read(
    path: str | os.PathLike[str], source_shape: tuple[int, ...] | None, target_shape: tuple[int, ...] | None
) -> WeightsFile:
    """Reads the contents of a file."""
    with _opened(path) as data:
        names = next((names for names in (_SCRIP, _ESMF) if set(names["links"]) <= set(data.variables)), None)
        if names is None:
            raise Corrupt(str(path), f"it has neither {_SCRIP['links']} nor {_ESMF['links']}: no file of weights")
        targets, sources, weights = _links(data, names, str(path))
        shapes = [
            _shape(data, names["size"][at], _DIMS[at], given, str(path))
            for at, given in enumerate((source_shape, target_shape))
        ]
        source, target = (_side(data, names, at, shapes[at]) for at in (0, 1))
        method = str(getattr(data, "map_method", ""))
        by_fraction = str(getattr(data, "normalization", "")).lower().startswith("frac")
    return WeightsFile(targets, sources, weights, source, target, by_fraction, method)


def yac_links(path: Path) -> tuple[Array, Array, Array]:
    """Returns the links of a file that YAC has written."""
    with _opened(path) as data:
        if "src_address" not in data.variables:
            nothing = np.empty(0, np.int64)
            return nothing, nothing, np.empty(0)
        return _links(data, _SCRIP, str(path))


def _opened(path: str | os.PathLike[str]) -> Any:
    netcdf = needed("netCDF4", "remap")
    try:
        data = netcdf.Dataset(os.fspath(path))
    except FileNotFoundError as error:
        raise NotFound(str(path), f"there is no such file{near_file(path)}") from error
    except OSError as error:
        raise Io(str(path), str(error)) from error
    # Raw numbers: netCDF's fill value is an ordinary number here.
    data.set_auto_maskandscale(False)
    return data


def _links(data: Any, names: dict[str, tuple[str, ...]], path: str) -> tuple[Array, Array, Array]:
    targets, sources, weights = (np.asarray(data[name][:]) for name in names["links"])
    if weights.ndim == 2:
        method = str(getattr(data, "map_method", ""))
        if weights.shape[1] > 1 and "conserv" not in method.lower():
            cause = (
                f"{weights.shape[1]} weights for each link need gradients of the field, which are not known: {method}"
            )
            raise Unsupported(path, cause)
        # With conservative weights the first is first order, the others belong to gradients.
        weights = weights[:, 0]
    if not len(targets) == len(sources) == len(weights):
        raise Corrupt(path, f"{len(targets)} targets, {len(sources)} sources and {len(weights)} weights")
    return targets.astype(np.int64) - 1, sources.astype(np.int64) - 1, np.ascontiguousarray(weights, np.float64)


def _shape(data: Any, size: str, dims: str, given: tuple[int, ...] | None, path: str) -> tuple[int, ...]:
    points = len(data.dimensions[size]) if size in data.dimensions else None
    said = tuple(int(extent) for extent in data[dims][::-1]) if dims in data.variables else ()
    if given is not None:
        if points is not None and np.prod(given) != points:
            raise InvalidArgument(path, f"a grid of the shape {given} has not {points} points, as the file states")
        return given
    if points is None:
        raise InvalidArgument(path, f"it does not say {size}: give source_shape and target_shape")
    return said if said and np.prod(said) == points else (points,)


def _side(data: Any, names: dict[str, tuple[str, ...]], at: int, shape: tuple[int, ...]) -> Side:
    def found(what: str) -> Array:
        name = names[what][at]
        return np.asarray(data[name][:]).ravel() if name in data.variables else np.empty(0)

    areas = found("areas").astype(np.float64)
    # Programs without areas write zeros, and fractions without areas have no meaning.
    is_known = bool((areas > 0).any())
    fractions = found("fractions").astype(np.float64) if is_known else np.empty(0)
    fractions = fractions if (fractions > 0).any() else np.empty(0)
    return Side(shape, areas if is_known else np.empty(0), fractions, found("mask") != 0)


def _created(path: str | os.PathLike[str], links: int) -> Any:
    """Creates a netCDF file for this number of links."""
    netcdf = needed("netCDF4", "remap")
    form = "NETCDF3_64BIT_OFFSET" if links < _CLASSIC_LINKS_MAX else "NETCDF4"
    try:
        data = netcdf.Dataset(os.fspath(path), "w", format=form)
    except OSError as error:
        raise Io(str(path), str(error)) from error
    data.title = "Weights between two grids"
    return data


def write(path: str | os.PathLike[str], file: WeightsFile) -> None:
    """Writes the format of ESMF; replaces an existing file of that name."""
    with _created(path, len(file.weights)) as data:
        data.map_method = file.method or "unknown"
        data.normalization = "fracarea" if file.by_fraction else "destarea"
        data.createDimension("n_s", len(file.weights))
        for name, values in zip(_ESMF["links"], (file.targets + 1, file.sources + 1, file.weights), strict=True):
            kind = "f8" if name == "S" else "i4"
            data.createVariable(name, kind, ("n_s",))[:] = values
        for at, side in enumerate((file.source, file.target)):
            _write_side(data, at, side)


# From these names cdo derives how to apply the weights; sums of weights are treated like bilinear ones.
_METHODS = {"conservative": "Conservative remapping", "nearest": "Nearest neighbor"}
_ADDED_UP = "Bilinear remapping"


def write_scrip(path: str | os.PathLike[str], file: WeightsFile) -> None:
    """Writes the format of SCRIP, which cdo reads; replaces an existing file of that name."""
    with _created(path, len(file.weights)) as data:
        is_conservative = file.method == "conservative"
        data.normalization = ("fracarea" if file.by_fraction else "destarea") if is_conservative else "none"
        data.map_method = _METHODS.get(file.method, _ADDED_UP)
        data.conventions = "SCRIP"
        data.source_grid, data.dest_grid = "source", "target"
        data.createDimension("num_links", len(file.weights))
        data.createDimension("num_wgts", 1)
        for name, values in zip(_SCRIP["links"][:2], (file.targets + 1, file.sources + 1), strict=True):
            data.createVariable(name, "i4", ("num_links",))[:] = values
        data.createVariable(_SCRIP["links"][2], "f8", ("num_links", "num_wgts"))[:, 0] = file.weights
        for at, side in enumerate((file.source, file.target)):
            _write_side_scrip(data, at, side)


def _write_side_scrip(data: Any, at: int, side: Side) -> None:
    size, rank, points = _SCRIP["size"][at], _DIMS[at].replace("dims", "rank"), int(np.prod(side.shape))
    data.createDimension(size, points)
    data.createDimension(rank, len(side.shape))
    data.createVariable(_DIMS[at], "i4", (rank,))[:] = side.shape[::-1]
    prefix = "src" if at == 0 else "dst"
    lon, lat = side.centres or (np.zeros(points), np.zeros(points))
    for name, values in (("lat", lat), ("lon", lon)):
        variable = data.createVariable(f"{prefix}_grid_center_{name}", "f8", (size,))
        variable.units = "degrees"
        variable[:] = values
    # Readers of such files expect all of these; zero areas mean unknown areas.
    for what, kind, otherwise in (("mask", "i4", 1), ("areas", "f8", 0), ("fractions", "f8", 0)):
        values = getattr(side, what)
        variable = data.createVariable(_SCRIP[what][at], kind, (size,))
        variable.units = "square radians" if what == "areas" else "unitless"
        variable[:] = values if len(values) else np.full(points, otherwise)


def _write_side(data: Any, at: int, side: Side) -> None:
    size = _ESMF["size"][at]
    rank = f"{'src' if at == 0 else 'dst'}_grid_rank"
    data.createDimension(size, int(np.prod(side.shape)))
    data.createDimension(rank, len(side.shape))
    data.createVariable(_DIMS[at], "i4", (rank,))[:] = side.shape[::-1]
    for what, values in (("areas", side.areas), ("fractions", side.fractions), ("mask", side.mask)):
        if len(values):
            kind = "i4" if what == "mask" else "f8"
            data.createVariable(_ESMF[what][at], kind, (size,))[:] = values
