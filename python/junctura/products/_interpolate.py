"""Fields on other grids: by sums of spherical harmonics, by cutting out, or by weights of MIR.

What is missing stays missing as with MIR: a point whose greatest weight is that of a missing value is missing, and so
is one that gets missing values only; else the weights of the others are divided by their sum. Results have the bits of
MIR's own interpolation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from junctura.errors import InvalidArgument
from junctura.products import _spectral, _weights
from junctura.products._field import Field
from junctura.products._floats import Floats
from junctura.products._grid import Grid, Spectral
from junctura.products._grid import grid as named
from junctura.products._weights import Method, Quantity

# Components of vectors, and what has their kind of values at a pole; by short names and numbers.
_VECTORS = frozenset(
    ("u", "v", "vo", "d", "10u", "10v", "100u", "100v", "200u", "200v", "u10n", "v10n", "ewss", "nsss", "iews", "inss")
    + ("131", "132", "138", "155", "165", "166", "228246", "228247", "228239", "228240", "228131", "228132")
    + ("ust", "vst", "180", "181", "229", "230", "140215", "140216")
)
# Directions, in degrees: half way between 350 and 10 is 0, not 180.
_DIRECTIONS = frozenset(
    ("mwd", "mwd1", "mwd2", "mwd3", "wdir", "10wdir", "dwi", "mdts", "mdww")
    + ("140230", "140122", "140125", "140128", "3031", "260260", "140249", "140238", "140235")
)


def to_grid(field: Field, on: Grid, method: Method = "linear") -> Field:
    """A field on another grid.

    Spectral fields are summed at its points. Where the grid is an area of the one the field is on, its rows and columns
    are taken as they are. Everything else is interpolated; outside of the area that a field covers it is missing.

    Parameters
    ----------
    field
        Any but one on points.
    on
        Where its values are wanted.
    method
        ``linear``, ``bilinear``, ``nearest`` or ``conservative``; see `junctura.products._weights.weights`.
        Components of vectors, known by their parameter, are treated each for itself, but at the poles as such.
        Directions, known likewise, are interpolated as the sine and the cosine.

    Returns
    -------
    Field
        In double precision, with the same attributes.

    Raises
    ------
    InvalidArgument
        There is no such method.
    Unsupported
        There are no weights of this method between these grids.
    Io
        The cache of weights cannot be written.
    ImportError
        Without MIR or SciPy: ``pip install 'junctura[products]'``.

    """
    if isinstance(field.on, Spectral):
        return _spectral.synthesis(field, on)
    if field.on == on:
        return field
    field = _on_whole(field)
    if field.grid.name == on.name.partition("@")[0]:
        return _cut_out(field, on)
    matrix = _weights.weights(field.grid, on, method, quantity_of(_param(field)))
    values = np.ascontiguousarray(field.values, np.float64).ravel()
    apply = _directions if _is_one_of(_param(field), _DIRECTIONS) else _applied
    made = apply(matrix, values)
    return field.having(made.reshape(on.shape), on)


def prepare(source: str, target: str, method: Method = "linear", quantity: Quantity = "scalar") -> None:
    """Makes what `to_grid` needs between two grids, by their names, so that the first field does not wait for it.

    Parameters
    ----------
    source, target
        Names of grids; of a spectral truncation, as source.
    method
        As for `to_grid`.
    quantity
        What it is for: components of vectors have weights of their own; see `quantity_of`.

    Raises
    ------
    InvalidArgument, Unsupported, Io, ImportError
        As `to_grid` would.

    """
    origin, on = named(source), named(target)
    if isinstance(on, Spectral):
        raise InvalidArgument(f"grid {target}", "fields are not brought to spherical harmonics")
    if isinstance(origin, Spectral):
        _spectral.warm(origin.truncation, on)
        return
    whole = _around(origin)
    if on != origin and whole.name != on.name.partition("@")[0]:
        _weights.weights(whole, on, method, quantity)


def _param(field: Field) -> str:
    return str(field.attributes.get("param", ""))


def quantity_of(param: str) -> Quantity:
    """Whether a parameter is a component of a vector."""
    return "vector" if _is_one_of(param, _VECTORS) else "scalar"


def _is_one_of(param: str, params: frozenset[str]) -> bool:
    # Edition 1 has the table behind the number.
    return param.partition(".")[0] in params


def _around(origin: Grid) -> Grid:
    if origin.is_global or origin.kind == "points":
        return origin
    whole = named(origin.name.partition("@")[0])
    assert isinstance(whole, Grid)
    return whole


def _on_whole(field: Field) -> Field:
    """On the grid of which it covers an area, missing elsewhere."""
    whole = _around(field.grid)
    if whole is field.grid:
        return field
    values = np.full(whole.shape, np.nan)
    values[np.ix_(*whole.rows_and_columns(field.grid))] = field.values
    return field.having(values, whole)


def _cut_out(field: Field, on: Grid) -> Field:
    if on.is_global:
        return field
    return field.having(field.values[np.ix_(*field.grid.rows_and_columns(on))], on)


def _directions(matrix: Any, values: Floats) -> Floats:
    angles = np.radians(values)
    return np.mod(np.degrees(np.arctan2(_applied(matrix, np.sin(angles)), _applied(matrix, np.cos(angles)))), 360)


def _applied(matrix: Any, values: Floats) -> Floats:
    made: Floats = matrix @ values
    if not np.isnan(values.sum()):
        return made
    # Most that are missing get nothing else; the few others are looked at one by one.
    given = matrix @ (~np.isnan(values)).astype(np.float64)
    mixed = np.flatnonzero(np.isnan(made) & (given > 0))
    if len(mixed):
        made[mixed] = _without_missing(matrix[mixed], values)
    return made


def _without_missing(matrix: Any, values: Floats) -> Floats:
    """For rows that get missing values what the others give, where these matter more."""
    starts, weights = matrix.indptr, matrix.data
    count = matrix.shape[0]
    made = np.full(count, np.nan)
    rows = np.repeat(np.arange(count), np.diff(starts))
    given = values[matrix.indices]
    heaviest = np.flatnonzero(weights == np.maximum.reduceat(weights, starts[:-1])[rows])
    first = heaviest[np.diff(rows[heaviest], prepend=-1) > 0]
    has_value = ~np.isnan(given[first])
    taken = np.flatnonzero(has_value[rows] & ~np.isnan(given))
    of, weights = rows[taken], weights[taken]
    # One after the other, as MIR adds them.
    factors = 1 / np.bincount(of, weights, count)[of]
    sums = np.bincount(of, weights * factors * given[taken], count)
    made[has_value] = sums[has_value]
    return made
