"""Regrids fields: by synthesis of spherical harmonics, by cropping, or with weights of MIR.

Missing values follow the rule of MIR: a point is missing if the source with its greatest weight is missing, or all
sources are; else the remaining weights are divided by their sum. Results have the same bits as MIR's own interpolation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._regrid import harmonics, weight_matrices
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid, Spectral, whole_of
from junctura.products._regrid.grids import grid as named
from junctura.products._regrid.sparse_matrix import SparseMatrix
from junctura.products._regrid.vector_rotation import ALONG_GRID, PAIRS
from junctura.products._regrid.weight_matrices import Method, Quantity

# Vector components, and other parameters with their kind of values at a pole; by short names and numbers.
_VECTORS = frozenset(
    ("u", "v", "vo", "d", "10u", "10v", "100u", "100v", "200u", "200v", "u10n", "v10n", "ewss", "nsss", "iews", "inss")
    + ("131", "132", "138", "155", "165", "166", "228246", "228247", "228239", "228240", "228131", "228132")
    + ("ust", "vst", "180", "181", "229", "230", "140215", "140216")
)
_COMPONENTS = frozenset((*PAIRS, *PAIRS.values()))
# Directions, in degrees: half way between 350 and 10 is 0, not 180.
_DIRECTIONS = frozenset(
    ("mwd", "mwd1", "mwd2", "mwd3", "wdir", "10wdir", "dwi", "mdts", "mdww")
    + ("140230", "140122", "140125", "140128", "3031", "260260", "140249", "140238", "140235")
)


def to_grid(field: Field, on: Grid, method: Method = "linear") -> Field:
    """Returns a field on another grid.

    Spectral fields are evaluated at its points. If both grids are one global grid, or areas of one global grid, rows
    and columns are copied. All other fields are interpolated; points outside the area of the field are missing.

    Parameters
    ----------
    field
        Any field except one on points.
    on
        The target grid.
    method
        ``linear``, ``bilinear``, ``nearest`` or ``conservative``; see `weight_matrices.weights`.
        Components of vectors, known by their parameter, are treated each for itself, but at the poles as such.
        Directions, known likewise, are interpolated as the sine and the cosine.

    Returns
    -------
    Field
        In double precision, with the same attributes.

    Raises
    ------
    InvalidArgument
        The method is unknown, or the field is a vector component along its grid.
    Unsupported
        There are no weights of this method between these grids.
    TooLarge
        Making the weights would exceed the free memory.
    Io
        The cache of weights cannot be written.
    ImportError
        Without MIR or SciPy: ``pip install 'junctura[products]'``.

    """
    if isinstance(field.on, Spectral):
        return harmonics.synthesis(field, on)
    if field.on == on:
        return field
    if is_part(field.grid, on):
        return _placed(field, on)
    if ALONG_GRID in field.attributes and _is_one_of(_param(field), _COMPONENTS):
        cause = "it is along the rows or columns of its grid: write wind: {} before grid, with both components in from"
        raise InvalidArgument(f"field {field.param}", cause)
    covered = field.grid
    field = _placed(field, weight_matrices.origin_of(covered, on))
    matrix = weight_matrices.weights(field.grid, on, method, quantity_of(_param(field)))
    is_direction = _is_one_of(_param(field), _DIRECTIONS)
    made = _directions(matrix, field.values) if is_direction else matrix.applied(field.values)
    if field.grid is not covered:
        made[~weight_matrices.within(covered, on)] = np.nan
    return field.having(made.reshape(on.shape), on)


def prepare(source: str, target: str, method: Method = "linear", quantity: Quantity = "scalar") -> None:
    """Prepares weights between two grids, by name, for `to_grid`, so that the first field does not wait.

    Parameters
    ----------
    source, target
        Names of grids; the source may be a spectral truncation.
    method
        As for `to_grid`.
    quantity
        The kind of parameter: vector components have their own weights; see `quantity_of`.

    Raises
    ------
    InvalidArgument, Unsupported, Io, ImportError
        As `to_grid` would.

    """
    origin, on = named(source), named(target)
    if isinstance(on, Spectral):
        raise InvalidArgument(f"grid {target}", "fields are not brought to spherical harmonics")
    if isinstance(origin, Spectral):
        harmonics.warm(origin.truncation, on)
        return
    if on != origin and not is_part(origin, on):
        weight_matrices.weights(weight_matrices.origin_of(origin, on), on, method, quantity)


def _param(field: Field) -> str:
    return str(field.attributes.get("param", ""))


def quantity_of(param: str) -> Quantity:
    """Whether a parameter is a vector component."""
    return "vector" if _is_one_of(param, _VECTORS) else "scalar"


def _is_one_of(param: str, params: frozenset[str]) -> bool:
    # Edition 1 has the table after the number.
    return param.partition(".")[0] in params


def is_part(origin: Grid, on: Grid) -> bool:
    """Whether both have common rows and columns."""
    return origin.is_regular and bool(origin.whole) and origin.whole == on.whole


def _placed(field: Field, on: Grid) -> Field:
    """Returns values on the global grid of which the field covers an area, or on an area; missing outside the field."""
    if field.on == on:
        return field
    whole = whole_of(on)
    values = np.full(on.shape, np.nan)
    given, wanted = _rows_and_columns(whole, field.grid), _rows_and_columns(whole, on)
    places = []
    for size, have, want in zip(whole.shape, given, wanted, strict=True):
        place = np.full(size, -1)
        place[have] = np.arange(len(have))
        places.append(place[want])
    rows, columns = (np.flatnonzero(place >= 0) for place in places)
    values[np.ix_(rows, columns)] = field.values[np.ix_(places[0][rows], places[1][columns])]
    return field.having(values, on)


def _rows_and_columns(whole: Grid, on: Grid) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return tuple(map(np.arange, whole.shape)) if on == whole else whole.rows_and_columns(on)  # type: ignore[return-value]


def _directions(matrix: SparseMatrix, values: Floats) -> Floats:
    angles = np.radians(values)
    made: Floats = np.degrees(np.arctan2(matrix.applied(np.sin(angles)), matrix.applied(np.cos(angles))))
    return np.mod(made, 360)
