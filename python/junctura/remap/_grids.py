"""Grids: cell centers, corners and areas. Degrees; areas on a sphere of radius 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from junctura._array.numpy_payload import array_of, with_mask
from junctura.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
# Points at most this many degrees apart are the same place.
_SAME = 1e-9
# The maximum width of a column for YAC, in degrees.
_WIDEST = 180


def _numbers(what: str, given: npt.ArrayLike) -> Floats:
    try:
        array = array_of(given, np.float64).copy()
    except (TypeError, ValueError) as error:
        raise InvalidArgument("grid", f"{what}: {error}") from error
    if not array.size or not np.isfinite(array).all():
        raise InvalidArgument("grid", f"{what}: there are none" if not array.size else f"{what}: not all are numbers")
    return array


def _mask(given: npt.ArrayLike | None, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    if given is None:
        return None
    cells = with_mask(given)
    # A cell with a missing mask takes no part: xarray's `where` makes masks of 1 and NaN.
    values = np.asarray(np.ma.getdata(cells))
    if values.dtype.kind not in "biuf":
        raise InvalidArgument("grid", f"the mask has elements of type {values.dtype}: expected booleans or numbers")
    missing = np.ma.getmaskarray(cells) | (np.isnan(values) if values.dtype.kind == "f" else np.False_)
    mask = values.astype(np.bool_) & ~missing
    if mask.shape != shape:
        raise InvalidArgument("grid", f"the mask has the shape {mask.shape}, the grid {shape}")
    return mask


class LonLat:
    """Cells between meridians and parallels.

    Parameters
    ----------
    lon, lat : array_like
        Centers of columns, from west to east, and of rows, in either direction; degrees.
    lon_bounds, lat_bounds : array_like, optional
        Bounds of columns and rows, one more than columns or rows. By default bounds are half way between centers, and
        the outermost cells are symmetric around their centers, up to the poles.
    mask : array_like of bool, optional
        Which cells take part, as rows of columns; a cell whose mask is NaN, or masked, takes no part.

    Examples
    --------
    >>> grid = junctura.remap.LonLat(lon=[0, 90, 180, 270], lat=[45, -45])
    >>> grid.shape, grid.lat_bounds.tolist(), grid.is_cyclic
    ((2, 4), [90.0, 0.0, -90.0], True)

    """

    def __init__(
        self,
        lon: npt.ArrayLike,
        lat: npt.ArrayLike,
        *,
        lon_bounds: npt.ArrayLike | None = None,
        lat_bounds: npt.ArrayLike | None = None,
        mask: npt.ArrayLike | None = None,
    ) -> None:
        self.lon = _centres("lon", lon)
        self.lat = _centres("lat", lat)
        if not (np.diff(self.lon) > 0).all():
            raise InvalidArgument("grid", "lon: columns do not go east")
        self.shape: tuple[int, int] = (len(self.lat), len(self.lon))
        self.lon_bounds = _lon_bounds(self.lon) if lon_bounds is None else _bounds("lon_bounds", lon_bounds, self.lon)
        self.lat_bounds = _lat_bounds(self.lat) if lat_bounds is None else _bounds("lat_bounds", lat_bounds, self.lat)
        highest = max(np.abs(self.lat_bounds).max(), np.abs(self.lat).max())
        if highest > 90 or self.lon_bounds[-1] - self.lon_bounds[0] > 360 + _SAME:
            raise InvalidArgument("grid", "it goes beyond a pole, or more than once around the globe")
        self.mask = _mask(mask, self.shape)

    @classmethod
    def regular(cls, nx: int, ny: int, *, mask: npt.ArrayLike | None = None) -> LonLat:
        """Cells of one width and height from pole to pole, from south to north, the first column around longitude 0.

        Examples
        --------
        >>> grid = junctura.remap.LonLat.regular(36, 18)
        >>> round(float(grid.areas.sum() / numpy.pi), 12)
        4.0

        """
        if nx < 1 or ny < 1:
            raise InvalidArgument("grid", f"{nx} columns and {ny} rows")
        lat_bounds = -90 + 180 * np.arange(ny + 1) / ny
        lat = (lat_bounds[1:] + lat_bounds[:-1]) / 2
        lon_bounds = (np.arange(nx + 1) - 0.5) * 360 / nx
        return cls(np.arange(nx) * 360 / nx, lat, lon_bounds=lon_bounds, lat_bounds=lat_bounds, mask=mask)

    @classmethod
    def of(cls, array: Any, *, mask: npt.ArrayLike | None = None) -> LonLat:
        """Returns the grid of an xarray array, from its coordinates ``latitude`` and ``longitude`` (or ``lat`` and
        ``lon``).

        `Object.to_xarray` returns such an array for a GRIB message on a regular grid. Bounds are half way between
        centers.

        Raises
        ------
        InvalidArgument
            It has no such coordinates, or they are not those of rows and columns.

        """
        axes = []
        for names in (("longitude", "lon"), ("latitude", "lat")):
            found = next((array.coords[name] for name in names if name in array.coords), None)
            if found is None:
                raise InvalidArgument("grid", f"the array has no coordinate {names[0]}: {', '.join(array.coords)}")
            axes.append(found)
        lon, lat = axes
        if tuple(array.dims[-2:]) != (*lat.dims, *lon.dims):
            cause = f"the array's last dimensions are {array.dims[-2:]}, its coordinates' {(*lat.dims, *lon.dims)}"
            raise InvalidArgument("grid", cause)
        return cls(lon.values, lat.values, mask=mask)

    @property
    def is_cyclic(self) -> bool:
        """Whether the last column is adjacent to the first."""
        return bool(self.lon_bounds[-1] - self.lon_bounds[0] > 360 - _SAME)

    @property
    def areas(self) -> Floats:
        """Areas of the cells, as rows of columns; the whole globe has 4 pi."""
        heights = np.abs(np.diff(np.sin(np.radians(self.lat_bounds))))
        return np.outer(heights, np.radians(np.diff(self.lon_bounds)))

    def points(self) -> tuple[Floats, Floats]:
        """Longitudes and latitudes of all centers, in the order of the cells."""
        lon, lat = np.meshgrid(self.lon, self.lat)
        return lon.ravel(), lat.ravel()

    def __repr__(self) -> str:
        return f"LonLat({self.shape[1]} x {self.shape[0]})"


def _centres(what: str, given: npt.ArrayLike) -> Floats:
    centres = _numbers(what, given)
    if centres.ndim != 1:
        raise InvalidArgument(
            "grid", f"{what}: centres of columns or rows are expected, not of the shape {centres.shape}"
        )
    _check_order(what, centres)
    return centres


def _check_order(what: str, values: Floats) -> None:
    steps = np.diff(values)
    if not ((steps > 0).all() or (steps < 0).all()):
        raise InvalidArgument("grid", f"{what}: they do not go one way")


def _bounds(what: str, given: npt.ArrayLike, centres: Floats) -> Floats:
    bounds = _numbers(what, given)
    if bounds.shape != (len(centres) + 1,):
        raise InvalidArgument("grid", f"{what}: {len(centres) + 1} are expected, not the shape {bounds.shape}")
    _check_order(what, bounds)
    low, high = np.minimum(bounds[1:], bounds[:-1]), np.maximum(bounds[1:], bounds[:-1])
    outside = np.flatnonzero((centres < low - _SAME) | (centres > high + _SAME))
    if len(outside):
        at = int(outside[0])
        raise InvalidArgument("grid", f"{what}: centre {at}, {centres[at]}, is not between {low[at]} and {high[at]}")
    return bounds


def _between(centres: Floats) -> Floats:
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]])


def _lon_bounds(lon: Floats) -> Floats:
    if len(lon) < 2:
        raise InvalidArgument("grid", "lon_bounds: they have to be said for one column")
    closing = lon[0] + 360 - lon[-1]
    if 0 < closing <= 1.5 * np.diff(lon).max():
        # A global grid: the last column is adjacent to the first.
        bounds = _between(np.append(lon, lon[0] + 360))[:-1]
        bounds[0] = bounds[-1] - 360
        return bounds
    return _between(lon)


def _lat_bounds(lat: Floats) -> Floats:
    if len(lat) < 2:
        raise InvalidArgument("grid", "lat_bounds: they have to be said for one row")
    return np.clip(_between(lat), -90, 90)


class Mesh:
    """Cells of any shape, whose edges are great circles between corners: curvilinear grids, triangles, hexagons.

    Parameters
    ----------
    lon, lat : array_like
        Centers, in the shape of the grid; degrees.
    lon_corners, lat_corners : array_like
        Corners of each cell in turn, in a last dimension; a cell with fewer repeats its last one.
    mask : array_like of bool, optional
        Which cells take part; a cell whose mask is NaN, or masked, takes no part.

    Examples
    --------
    >>> eighth = junctura.remap.Mesh([45], [35], [[0, 90, 0]], [[0, 0, 90]])
    >>> eighth.shape, round(float(eighth.areas[0] / numpy.pi), 12)
    ((1,), 0.5)

    """

    def __init__(
        self,
        lon: npt.ArrayLike,
        lat: npt.ArrayLike,
        lon_corners: npt.ArrayLike,
        lat_corners: npt.ArrayLike,
        *,
        mask: npt.ArrayLike | None = None,
    ) -> None:
        self.lon, self.lat = _numbers("lon", lon), _numbers("lat", lat)
        self.lon_corners = _numbers("lon_corners", lon_corners)
        self.lat_corners = _numbers("lat_corners", lat_corners)
        self.shape: tuple[int, ...] = self.lon.shape
        corners = self.lon_corners.shape
        if self.lat.shape != self.shape or self.lat_corners.shape != corners or corners[:-1] != self.shape:
            shapes = [array.shape for array in (self.lon, self.lat, self.lon_corners, self.lat_corners)]
            raise InvalidArgument("grid", f"centres and corners do not have the same shape: {shapes}")
        if corners[-1] < 3 or not self.shape:
            raise InvalidArgument("grid", f"a cell has three corners or more, not {corners[-1]}")
        if max(np.abs(self.lat).max(), np.abs(self.lat_corners).max()) > 90:
            raise InvalidArgument("grid", "lat: it goes beyond a pole")
        self.mask = _mask(mask, self.shape)

    @property
    def areas(self) -> Floats:
        """Areas of the cells, in the shape of the grid."""
        places = _directions(self.lon_corners, self.lat_corners)
        first = places[..., :1, :]
        one, other = places[..., 1:-1, :], places[..., 2:, :]
        volume = np.sum(first * np.cross(one, other), axis=-1)
        flat = 1 + np.sum(first * one + one * other + other * first, axis=-1)
        area: Floats = np.abs(2 * np.sum(np.arctan2(volume, flat), axis=-1))
        return area

    def points(self) -> tuple[Floats, Floats]:
        """Longitudes and latitudes of all centers, in the order of the cells."""
        return self.lon.ravel(), self.lat.ravel()

    def __repr__(self) -> str:
        return f"Mesh({' x '.join(str(extent) for extent in self.shape)})"


Grid = LonLat | Mesh


def _directions(lon: Floats, lat: Floats) -> Floats:
    east, north = np.radians(lon), np.radians(lat)
    return np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=-1)


def described(grid: Grid) -> dict[str, Any]:
    """Returns the grid for the YAC process: in radians, with numbered cells."""
    lon, lat = grid.points()
    mask = np.ones(lon.size, np.int32) if grid.mask is None else grid.mask.ravel().astype(np.int32)
    numbers = np.arange(lon.size)
    if isinstance(grid, LonLat):
        widest = float(np.diff(grid.lon_bounds).max())
        if widest >= _WIDEST:
            # Two meridians do not define a direction around the globe: YAC would take the shorter one.
            raise InvalidArgument("grid", f"a column is {widest:.6g} degrees wide, and has to be less than {_WIDEST}")
        rows = numbers.reshape(grid.shape)
        bounds = grid.lat_bounds
        if bounds[0] > bounds[-1]:
            rows, bounds = rows[::-1], bounds[::-1]
        order = rows.ravel()
        corners = grid.lon_bounds[:-1] if grid.is_cyclic else grid.lon_bounds
        form = {"x": np.radians(corners), "y": np.radians(bounds), "cyclic": np.array(grid.is_cyclic)}
    else:
        order = numbers
        form = _polygons(grid.lon_corners, grid.lat_corners)
    points = {"lon": np.radians(lon[order]), "lat": np.radians(lat[order]), "mask": mask[order], "ids": order}
    return {**points, **form}


def _polygons(lon: Floats, lat: Floats) -> dict[str, Any]:
    corners = lon.shape[-1]
    lon, lat = lon.reshape(-1, corners) % 360, lat.reshape(-1, corners)
    lon = np.where(np.abs(lat) == 90, 0.0, lon)
    vertices, number = np.unique(np.stack([lon.ravel(), lat.ravel()], axis=1), axis=0, return_inverse=True)
    cells = number.reshape(-1, corners)
    is_new = cells != np.roll(cells, 1, axis=1)
    x, y = np.radians(vertices.T)
    return {"x": x, "y": y, "counts": is_new.sum(axis=1), "cells": cells[is_new]}


def shape_of(given: Sequence[int]) -> tuple[int, ...]:
    """Returns a shape from a file or a caller."""
    return tuple(int(extent) for extent in given)
