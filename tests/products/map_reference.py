"""What the pixels of a map are, by NumPy alone: the independent reference of the native functions."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from junctura.products._map.sampling import Samples
from junctura.products._map.styling.scale import Scale

Singles = npt.NDArray[np.float32]


def places(bar: Scale, values: Singles) -> Singles:
    """Where the colors of values are in the table, 0 to 1; NaN where they are missing."""
    if bar.levels:
        edges = np.array(bar.levels, np.float32)
        # The greatest value of the last class belongs to it.
        edges[-1] = np.nextafter(edges[-1], np.float32(np.inf))
        found = np.array(bar.colours, np.float32)[np.searchsorted(edges, values, "right")]
        found[np.isnan(values)] = np.nan
        return found
    low, high = bar.low, bar.high
    if bar.is_log:
        low, high = math.log(low), math.log(high)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(values > 0, np.log(values), np.where(np.isnan(values), values, -np.inf))
    first, last = bar.colours
    made = np.clip((values - np.float32(low)) * np.float32(1 / (high - low)), 0, 1)
    return np.asarray(made * np.float32(last - first) + np.float32(first), np.float32)


def entries(bar: Scale, values: Singles, size: int) -> npt.NDArray[np.intp]:
    """Which entry of a table of so many colors each value has; -1 where it is missing."""
    at = places(bar, values)
    found = np.minimum(np.nan_to_num(at) * np.float32(size), np.float32(size - 1)).astype(np.intp)
    return np.where(np.isnan(at), -1, found)


def sampled(made_of: Samples, values: npt.NDArray[np.float64]) -> Singles:
    """The values of pixels between four values each; the nearest one where one of the four is missing."""
    flat = values.ravel().astype(np.float32)
    a, b, c, d = (flat[corner] for corner in made_of.corners)
    north = (b - a) * made_of.east[0] + a
    south = (d - c) * made_of.east[1] + c
    found = (south - north) * made_of.south + north
    nearest = np.where(
        made_of.south < 0.5,
        np.where(made_of.east[0] < 0.5, a, b),
        np.where(made_of.east[1] < 0.5, c, d),
    )
    return np.asarray(np.where(np.isnan(found), nearest, found), np.float32)
