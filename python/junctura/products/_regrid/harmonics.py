"""Spherical harmonics to grids: values, and winds from vorticity and divergence.

A spectral field is a function on the sphere, known exactly everywhere; its values at the points of a grid are sums, not
interpolations. They are done here rather than by a library because a product with Legendre matrices that are kept and
one Fourier transform for all rows take a millisecond where the library takes six.

All areas of one grid share its rows. Regular grids are fast; reduced grids are processed row by row, and points one by
one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._regrid import legendre
from junctura.products._regrid.floats import Floats
from junctura.products._regrid.grids import Grid, Spectral, whole_of

Complexes = npt.NDArray[np.complex128]
Indices = npt.NDArray[np.intp]
# Radius of the sphere for winds from vorticity and divergence: that of GRIB's shape of the earth 6.
EARTH_RADIUS_M = 6371229.0
# Memory limit for the functions of several single points.
_AT_ONCE_BYTES_MAX = 64 << 20
_POINTS_AT_ONCE_MAX = 4096
_OF_ANOTHER = ("shortName", "name", "cfName", "units")


class _LatitudeRows(NamedTuple):
    """Latitudes in one hemisphere, and where the rows of a grid are among them."""

    name: str
    """Of the latitudes."""
    sines: Floats
    used: slice
    """Which of the latitudes are needed."""
    at: Indices
    """For each row the index of its latitude, counted from the first one used."""
    signs: Floats
    """For each row 1 in the north, -1 in the south."""


def synthesis(field: Field, on: Grid) -> Field:
    """Returns a spectral field's values at the points of a grid.

    Raises
    ------
    InvalidArgument
        The field is not spectral.
    Unsupported
        Its truncation is too large.

    """
    values = _summed([_coefficients(field)], _truncation(field), on, over_cosine=False)
    return field.having(values[0], on)


def wind(vo: Field, d: Field, on: Grid) -> tuple[Field, Field]:
    """Returns eastward and northward wind from vorticity and divergence.

    With the stream function and the velocity potential, which are those of the sphere with the radius
    `EARTH_RADIUS_M`; see e.g. Temperton, "On scalar and vector transform methods for global spectral models", Monthly
    Weather Review 119 (1991). Vorticity and divergence have no part that is the same everywhere: coefficients of n = 0
    are not looked at. At a pole there are limits along the meridian of each point.

    Parameters
    ----------
    vo, d
        Spectral, of the same truncation, in 1/s.
    on
        The grid for the winds.

    Returns
    -------
    tuple of Field
        ``u`` and ``v``, in ``m s**-1``, with the attributes of `vo` otherwise.

    Raises
    ------
    InvalidArgument
        They are not spectral, or of two truncations.
    Unsupported
        Their truncation is too large.

    """
    truncation = _truncation(vo)
    if _truncation(d) != truncation:
        raise InvalidArgument("wind", f"vorticity has T{truncation}, but divergence {d.on.name}")
    winds = _wind_coefficients(_coefficients(vo), _coefficients(d), truncation)
    u, v = _summed(list(winds), truncation + 1, on, over_cosine=True)
    return _component(vo, u, on, "u", 131), _component(vo, v, on, "v", 132)


def warm(truncation: int, on: Grid, *, is_wind: bool = False) -> None:
    """Computes the matrices that `synthesis` or `wind` needs in this process, so that the first field does not wait."""
    if on.kind != "points":
        rows = _rows(on)
        legendre.batches(rows.name, truncation + is_wind, rows.sines, over_cosine=is_wind)


def _component(vo: Field, values: Floats, on: Grid, param: str, number: int) -> Field:
    """Returns the attributes of the wind component, without those of vorticity."""
    changed: dict[str, object] = {name: None for name in _OF_ANOTHER if name in vo.attributes}
    if "paramId" in vo.attributes:
        changed["paramId"] = number
    return vo.having(values, on, "m s**-1", **{**changed, "param": param})


def _truncation(field: Field) -> int:
    if not isinstance(field.on, Spectral):
        raise InvalidArgument(f"field {field.param}", f"it is on the grid {field.on.label}, expected a spectral field")
    return field.on.truncation


def _coefficients(field: Field) -> Complexes:
    return np.ascontiguousarray(field.values, np.float64).view(np.complex128)


class _Degrees(NamedTuple):
    """Returns for each coefficient its wavenumbers, and the coefficients above and below it."""

    n: Floats
    m: Floats
    epsilon: Floats


@functools.lru_cache(maxsize=16)
def _degrees(truncation: int) -> _Degrees:
    m = np.repeat(np.arange(truncation + 1), np.arange(truncation + 1, 0, -1)).astype(np.float64)
    n = np.concatenate([np.arange(first, truncation + 1) for first in range(truncation + 1)]).astype(np.float64)
    return _Degrees(n, m, np.sqrt((n * n - m * m) / (4 * n * n - 1)))


def _wind_coefficients(vo: Complexes, d: Complexes, truncation: int) -> tuple[Complexes, Complexes]:
    """Of u and v times the cosine of latitude, which need one total wavenumber more."""
    inner, outer = _degrees(truncation), _degrees(truncation + 1)
    laplace = np.divide(-EARTH_RADIUS_M, inner.n * (inner.n + 1), out=np.zeros_like(inner.n), where=inner.n > 0)
    inside = outer.n <= truncation
    inside[-1] = False
    psi, chi = (np.zeros(len(outer.n), np.complex128) for _ in range(2))
    psi[inside], chi[inside] = vo * laplace, d * laplace
    return (
        1j * outer.m * chi - _meridional(psi, outer),
        1j * outer.m * psi + _meridional(chi, outer),
    )


def _meridional(potential: Complexes, at: _Degrees) -> Complexes:
    """The cosine of latitude times the derivative by latitude."""
    # With (1 - s^2) dP(n)/ds = (n + 1) e(n) P(n-1) - n e(n+1) P(n+1), where s is the sine of latitude.
    down = (at.n + 1) * at.epsilon * potential
    derivative = np.zeros_like(potential)
    derivative[:-1] = np.where(at.m[1:] == at.m[:-1], down[1:], 0)
    up = np.where(at.m[1:] == at.m[:-1], (at.n[1:] - 1) * at.epsilon[1:] * potential[:-1], 0)
    derivative[1:] -= up
    return derivative


def _summed(fields: list[Complexes], truncation: int, on: Grid, *, over_cosine: bool) -> list[Floats]:
    """Values of several fields, each of the shape of the grid."""
    if not on.whole:
        parts = list(_at_points(fields, truncation, on, over_cosine))
        return [values.reshape(on.shape) for values in np.concatenate(parts, axis=1)]
    rows = _rows(on)
    sums = _along_latitudes(fields, truncation, rows, over_cosine)
    if on.kind == "reduced_gg":
        return list(_on_reduced(sums, on))
    whole = whole_of(on)
    values = _fourier(sums, whole.shape[1])
    if whole == on:
        return list(values)
    _, wanted = whole.rows_and_columns(on)
    return list(values[:, :, wanted])


def _along_latitudes(fields: list[Complexes], truncation: int, rows: _LatitudeRows, over_cosine: bool) -> Complexes:
    """Coefficients of the Fourier series along each row: field, row, zonal wavenumber."""
    count, latitudes = len(fields), rows.used.stop - rows.used.start
    parts = np.zeros((2 * count, len(fields[0]) + 1))
    parts[:count, :-1], parts[count:, :-1] = [f.real for f in fields], [f.imag for f in fields]
    even, odd = (np.empty((truncation + 1, 2 * count, latitudes)) for _ in range(2))
    for batch in legendre.batches(rows.name, truncation, rows.sines, over_cosine=over_cosine):
        for functions, at, sums in ((batch.even, batch.even_at, even), (batch.odd, batch.odd_at, odd)):
            np.matmul(parts[:, at].transpose(1, 0, 2), functions[:, :, rows.used], out=sums[batch.zonal])
    both = np.empty((count, len(rows.at), truncation + 1), np.complex128)
    north, south = (even + odd).T, (even - odd).T
    for hemisphere, sums in ((rows.signs > 0, north), (rows.signs < 0, south)):
        picked = sums[rows.at[hemisphere]]
        both.real[:, hemisphere] = picked[:, :count].transpose(1, 0, 2)
        both.imag[:, hemisphere] = picked[:, count:].transpose(1, 0, 2)
    return both


def _fourier(sums: Complexes, columns: int) -> Floats:
    """Values at so many longitudes from the prime meridian on."""
    values: Floats
    waves = sums.shape[-1]
    if 2 * waves <= columns + 1:
        values = np.fft.irfft(sums, columns, axis=-1, norm="forward")
        return values
    # Waves that are too short for so few columns have the values of longer ones there.
    around = -(-waves // columns)
    padded = np.zeros((*sums.shape[:-1], around * columns), np.complex128)
    padded[..., :waves] = sums
    padded[..., 0] /= 2
    folded = padded.reshape(*sums.shape[:-1], around, columns).sum(axis=-2)
    values = 2 * np.fft.ifft(folded, axis=-1, norm="forward").real
    return values


def _on_reduced(sums: Complexes, on: Grid) -> Floats:
    starts = np.flatnonzero(np.diff(on.latitudes, prepend=np.inf))
    rows = np.diff(starts, append=on.size)
    return np.concatenate([_fourier(sums[:, row], count) for row, count in enumerate(rows)], axis=-1)


def _at_points(fields: list[Complexes], truncation: int, on: Grid, over_cosine: bool) -> Iterator[Floats]:
    count = _points_at_once(truncation)
    north, east = on.points()
    for first in range(0, on.size, count):
        some = slice(first, min(first + count, on.size))
        latitudes, longitudes = north[some], np.radians(east[some])
        rows = _both(f"{on.name}[{first}]", latitudes)
        sums = _along_latitudes(fields, truncation, rows, over_cosine)
        waves = np.exp(1j * np.outer(longitudes, np.arange(truncation + 1)))
        sums[:, :, 1:] *= 2
        yield (sums * waves).real.sum(axis=2)


def _points_at_once(truncation: int) -> int:
    """Returns the number of points whose functions fit in the memory limit."""
    of_a_point = 8 * (truncation + 1) * (truncation + 2) // 2
    return max(1, min(_POINTS_AT_ONCE_MAX, _AT_ONCE_BYTES_MAX // of_a_point))


def _both(name: str, latitudes: Floats) -> _LatitudeRows:
    """Rows that need not be those of the other hemisphere."""
    rows = np.arange(len(latitudes))
    return _LatitudeRows(name, np.sin(np.radians(np.abs(latitudes))), slice(0, len(rows)), rows, _signs(latitudes))


def _rows(on: Grid) -> _LatitudeRows:
    """The rows of a grid, or of an area of a grid, which has its latitudes from the whole."""
    whole = whole_of(on)
    latitudes = _row_latitudes(whole)
    count = len(latitudes)
    wanted = np.arange(count) if whole == on else whole.rows_and_columns(on)[0]
    at = np.minimum(wanted, count - 1 - wanted)
    used = slice(int(at.min()), int(at.max()) + 1)
    sines = np.sin(np.radians(latitudes[: (count + 1) // 2]))
    # A pole is at 1 and an equator at 0, whatever the sine of a rounded angle is.
    sines[np.abs(latitudes[: len(sines)]) < 1e-12] = 0
    return _LatitudeRows(whole.name, sines, used, at - used.start, _signs(latitudes[wanted]))


def _row_latitudes(on: Grid) -> Floats:
    return on.latitudes if on.is_regular else on.latitudes[np.flatnonzero(np.diff(on.latitudes, prepend=np.inf))]


def _signs(latitudes: Floats) -> Floats:
    return np.where(latitudes < 0, -1.0, 1.0)
