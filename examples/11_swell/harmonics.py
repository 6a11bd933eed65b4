"""Spherical harmonics: between values on a Gaussian grid and coefficients, with derivatives and winds.

A model of the spectral kind computes products on a grid and derivatives in coefficients, so it goes back and forth in
every step. Longitude goes by FFT; latitude by a matrix product for each zonal wavenumber m. The functions with even
n - m are symmetric about the equator and the others antisymmetric, so that half the latitudes suffice and half the
work is saved; matrices of neighbouring m are multiplied in one call.

```text
  coefficients[..., m, n - m]     complex; m = 0..T, n = m..T, and one column more (n = T + 1) that only winds need
     m = 0   n = 0  1  2  ...  T  T+1
     m = 1   n = 1  2  ...  T  T+1  -
     m = T   n = T  T+1  -  ...     -       behind the truncation there is nothing but zeros
  values[..., row, column]        rows from north to south, columns east from the prime meridian
```
Of several ranks each has some rows in the north and the same rows in the south, in this order, and all coefficients.

The functions are normalised as in GRIB: their mean square over the sphere is 1, there is no Condon-Shortley sign, and
the coefficients of negative m are the conjugates of those of positive m. So coefficient (0, 0) is the mean.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.fft
from bands import Ranks

from junctura.errors import InvalidArgument

Floats: TypeAlias = npt.NDArray[np.float64]
Coefficients: TypeAlias = npt.NDArray[np.complex128]

_TRUNCATION_MAX = 1000
# So many wavenumbers share a call: more of them cost more zeros, fewer of them more calls.
_CHUNK = 8


class _Chunk(NamedTuple):
    """Legendre functions of some m, for the northern rows: [m, row, every second n - m]."""

    first: int
    behind: int
    columns: int
    even: Floats
    odd: Floats


class Harmonics:
    """The transform at one truncation, on the Gaussian grid that is free of aliasing for products of two fields.

    Attributes
    ----------
    truncation : int
        T, the largest total wavenumber n, of all m (triangular).
    n : int
        Rows between pole and equator; the grid's name is F`n`.
    shape : (int, int)
        Of the grid: 2 `n` rows, 4 `n` columns.
    ranks : Ranks
        Those that share the work; all of them call each method that goes back to coefficients, and `mean`.
    rows : array of int
        Which rows of the grid values have here: all of them if there is one rank.
    sine : array of all rows
        The sine of latitude, from north to south.
    weights : array of all rows
        Of the quadrature; they sum to 1, so that they give means over the sphere.
    longitudes : array of columns
        In radians.
    total : array [m, n - m]
        The total wavenumber n of each coefficient.
    kept : array [m, n - m] of bool
        Which coefficients are within the truncation.
    laplacian : array [m, n - m]
        The eigenvalues -n(n + 1) / radius^2, in m^-2.

    """

    def __init__(self, truncation: int, radius_m: float, ranks: Ranks | None = None) -> None:
        if not 1 <= truncation <= _TRUNCATION_MAX:
            raise InvalidArgument(f"truncation {truncation}", f"expected 1 to {_TRUNCATION_MAX}")
        self.truncation, self.radius_m = truncation, radius_m
        self.n = scipy.fft.next_fast_len(-(-(3 * truncation + 1) // 4), real=True)
        self.shape = (2 * self.n, 4 * self.n)
        nodes, weights = np.polynomial.legendre.leggauss(2 * self.n)
        self.sine: Floats = nodes[::-1].copy()
        self.weights: Floats = weights / 2
        self.ranks = ranks or Ranks()
        north, south = (np.arange(2 * self.n)[some] for some in self.ranks.rows(self.n))
        self.rows = np.concatenate([north, south])
        self.longitudes: Floats = np.arange(4 * self.n) * (np.pi / (2 * self.n))
        m, k = np.mgrid[: truncation + 1, : truncation + 2]
        self._m, self.total = m, m + k
        self.kept = self.total <= truncation
        self.laplacian: Floats = -(self.total * (self.total + 1)) / radius_m**2
        self._chunks = _legendre(self.sine[north], truncation)
        self._prepare_derivatives()

    @property
    def cosine_squared(self) -> Floats:
        """Of latitude, as a column that goes with values on the grid."""
        cosine_squared: Floats = (1 - self.sine[self.rows] ** 2)[:, None]
        return cosine_squared

    def synthesise(self, coefficients: Coefficients) -> Floats:
        """Values on the grid; any number of fields in the leading axes."""
        fields = coefficients.reshape(-1, *self.total.shape)
        count, rows, columns = len(fields), len(self.rows), self.shape[1]
        parts = np.ascontiguousarray(fields.transpose(1, 2, 0)).view(np.float64)
        waves = np.zeros((count, rows, columns // 2 + 1), np.complex128)
        for first, behind, width, even, odd in self._chunks:
            part = parts[first:behind, :width]
            symmetric, antisymmetric = even @ part[:, 0::2], odd @ part[:, 1::2]
            north, south = symmetric + antisymmetric, symmetric - antisymmetric
            waves[:, : rows // 2, first:behind] = north.view(np.complex128).transpose(2, 1, 0)
            waves[:, rows // 2 :, first:behind] = south[:, ::-1].view(np.complex128).transpose(2, 1, 0)
        values: Floats = scipy.fft.irfft(waves, columns, norm="forward", overwrite_x=True)
        return values.reshape(*coefficients.shape[:-2], rows, columns)

    def analyse(self, values: Floats) -> Coefficients:
        """Coefficients up to T + 1 of values on the grid; any number of fields in the leading axes.

        What a scalar field keeps is up to T: multiply by `kept`. The divergence of a flux needs the column more.
        """
        fields = values.reshape(-1, *values.shape[-2:])
        waves = scipy.fft.rfft(fields, norm="forward")[..., : self.truncation + 1]
        waves = waves.transpose(2, 1, 0) * self.weights[self.rows, None]
        half = len(self.rows) // 2
        north, south = waves[:, :half], waves[:, : half - 1 : -1]
        symmetric = np.ascontiguousarray(north + south).view(np.float64)
        antisymmetric = np.ascontiguousarray(north - south).view(np.float64)
        parts = np.zeros((*self.total.shape, 2 * len(fields)))
        for first, behind, width, even, odd in self._chunks:
            parts[first:behind, 0:width:2] = even.swapaxes(1, 2) @ symmetric[first:behind]
            parts[first:behind, 1:width:2] = odd.swapaxes(1, 2) @ antisymmetric[first:behind]
        parts = self.ranks.total(parts)
        coefficients: Coefficients = parts.view(np.complex128).transpose(2, 0, 1) * self._held
        return coefficients.reshape(*values.shape[:-2], *self.total.shape)

    def wind_images(self, vorticity: Coefficients, divergence: Coefficients) -> tuple[Coefficients, Coefficients]:
        """Coefficients up to T + 1 of u cos(latitude) and v cos(latitude), in m/s."""
        stream, potential = vorticity * self._inverse, divergence * self._inverse
        u = self._eastward * potential - self._northward(stream)
        v = self._eastward * stream + self._northward(potential)
        return u, v

    def curl(self, u: Coefficients, v: Coefficients) -> Coefficients:
        """Of a vector field from the coefficients, up to T + 1, of its components divided by cos(latitude).

        The derivative along a meridian is integrated by parts, so that it falls on the Legendre functions.
        """
        curl: Coefficients = self._eastward_kept * v + self._northward_by_parts(u)
        return curl

    def divergence(self, u: Coefficients, v: Coefficients) -> Coefficients:
        """Of a vector field from the coefficients, up to T + 1, of its components divided by cos(latitude)."""
        divergence: Coefficients = self._eastward_kept * u - self._northward_by_parts(v)
        return divergence

    def wind(self, vorticity: Coefficients, divergence: Coefficients) -> tuple[Floats, Floats]:
        """Wind towards east and north on the grid, m/s, from coefficients in 1/s."""
        u, v = self.synthesise(np.stack(self.wind_images(vorticity, divergence))) / np.sqrt(self.cosine_squared)
        return u, v

    def vorticity_and_divergence(self, u: Floats, v: Floats) -> tuple[Coefficients, Coefficients]:
        """Coefficients in 1/s from a wind on the grid in m/s."""
        images = self.analyse(np.stack([u, v]) / np.sqrt(self.cosine_squared))
        return self.curl(images[0], images[1]), self.divergence(images[0], images[1])

    def mean(self, values: Floats) -> float:
        """Over the sphere, of values on the grid."""
        return float(self.ranks.total(np.array([self.weights[self.rows] @ values.mean(axis=-1)]))[0])

    def to_grib(self, coefficients: Coefficients) -> Floats:
        """One field in GRIB's order: m outside, n inside, real and imaginary parts in turns."""
        return np.ascontiguousarray(coefficients[self.kept]).view(np.float64)

    def from_grib(self, values: Floats) -> Coefficients:
        """The inverse of `to_grib`.

        Raises
        ------
        InvalidArgument
            So many values are not those of this truncation.

        """
        if values.size != 2 * np.count_nonzero(self.kept):
            raise InvalidArgument("spectral field", f"{values.size} values are not those of T{self.truncation}")
        coefficients = np.zeros(self.total.shape, np.complex128)
        coefficients[self.kept] = np.ascontiguousarray(values).view(np.complex128)
        return coefficients

    def at_truncation(self, coefficients: Coefficients, other: Harmonics) -> Coefficients:
        """The same field for a transform of another truncation: cut off, or with zeros behind."""
        shared = min(self.truncation, other.truncation)
        out = np.zeros((*coefficients.shape[:-2], *other.total.shape), np.complex128)
        out[..., : shared + 1, : shared + 1] = coefficients[..., : shared + 1, : shared + 1]
        out *= other.total <= shared
        return out

    def _prepare_derivatives(self) -> None:
        n, m = self.total.astype(np.float64), self._m.astype(np.float64)
        below, above = _epsilon(n, m), _epsilon(n + 1, m)
        self._held = self.total <= self.truncation + 1
        inside = self._held / self.radius_m
        kept = self.kept / self.radius_m
        self._eastward, self._eastward_kept = 1j * m * inside, 1j * m * kept
        # (1 - s^2) dP_n/ds = (n + 1) epsilon_n P_(n-1) - n epsilon_(n+1) P_(n+1), s the sine of latitude.
        self._from_above, self._from_below = (n + 2) * above * inside, (n - 1) * below * inside
        self._parts_below, self._parts_above = (n + 1) * below * kept, n * above * kept
        self._inverse = self.kept / np.where(self.total > 0, self.laplacian, 1.0) * (self.total > 0)

    def _northward(self, coefficients: Coefficients) -> Coefficients:
        """(1 - s^2) / radius times the derivative by s, the sine of latitude, of a field up to T."""
        out = np.zeros_like(coefficients)
        out[..., :-1] = self._from_above[:, :-1] * coefficients[..., 1:]
        out[..., 1:] -= self._from_below[:, 1:] * coefficients[..., :-1]
        return out

    def _northward_by_parts(self, coefficients: Coefficients) -> Coefficients:
        """What is left of that derivative when it is moved to the Legendre functions: minus the derivative."""
        out = np.zeros_like(coefficients)
        out[..., 1:] = self._parts_below[:, 1:] * coefficients[..., :-1]
        out[..., :-1] -= self._parts_above[:, :-1] * coefficients[..., 1:]
        return out


def legendre(sine: Floats, truncation: int) -> Floats:
    """The normalised associated Legendre functions, [row, m, n - m], for n up to the truncation + 1 and zeros behind.

    Notes
    -----
    By recurrence over n from the functions with n = m, which is stable:
    epsilon_(n+1) P_(n+1) = s P_n - epsilon_n P_(n-1), where epsilon_n^2 = (n^2 - m^2) / (4 n^2 - 1).
    Functions that are smaller than double precision can tell are zero.

    """
    m: Floats = np.arange(truncation + 1.0)
    functions = np.zeros((len(sine), truncation + 1, truncation + 2))
    ratios = np.sqrt((2 * m[1:] + 1) / (2 * m[1:])) * np.sqrt(1 - sine**2)[:, None]
    functions[:, 0, 0] = 1
    functions[:, 1:, 0] = np.cumprod(ratios, axis=1)
    functions[:, :, 1] = sine[:, None] * functions[:, :, 0] / _epsilon(m + 1, m)
    for k in range(2, truncation + 2):
        count = truncation + 2 - k
        some, n = m[:count], m[:count] + k
        higher = sine[:, None] * functions[:, :count, k - 1] - _epsilon(n - 1, some) * functions[:, :count, k - 2]
        functions[:, :count, k] = higher / _epsilon(n, some)
    return functions


def _legendre(sine: Floats, truncation: int) -> list[_Chunk]:
    functions = legendre(sine, truncation)
    chunks = []
    for first in range(0, truncation + 1, _CHUNK):
        behind, width = min(first + _CHUNK, truncation + 1), truncation + 2 - first
        some = functions[:, first:behind, :width].transpose(1, 0, 2)
        even, odd = (np.ascontiguousarray(some[..., parity::2]) for parity in (0, 1))
        chunks.append(_Chunk(first, behind, width, even, odd))
    return chunks


def _epsilon(n: Floats, m: Floats) -> Floats:
    epsilon: Floats = np.sqrt((n**2 - m**2) / (4 * n**2 - 1))
    return epsilon
