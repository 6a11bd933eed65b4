"""Associated Legendre functions as matrices, computed once for each grid and truncation.

A sum over spherical harmonics is two sums: over total wavenumbers n for each latitude, then over zonal wavenumbers m
along it. The first is a product with a matrix of Legendre functions for each m. As a function of the sine of latitude
each is even or odd, so that functions with even and with odd n - m are kept apart and only latitudes of one
hemisphere are needed. Neighbouring m are padded to the same size and make one batch:

```text
  batch of zonal wavenumbers m0 .. m1
    even  [m, k, latitude]   n = m + 2 k          what is beyond the truncation is 0
    odd   [m, k, latitude]   n = m + 2 k + 1
```
The mean square of P times exp(i m longitude) over the sphere is 1, and there is no Condon-Shortley sign, as GRIB
has it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from junctura.errors import Unsupported
from junctura.products._regrid.floats import Floats
from junctura.products._workers.cache import Bounded

Indices = npt.NDArray[np.intp]
# For larger truncations the smallest functions near the poles underflow in double precision.
TRUNCATION_MAX = 1900
# Larger matrices are recomputed each time; those of T639 on a quarter of a degree have 600 MB.
_KEPT_BYTES_MAX = 256 << 20


class LegendreBatch(NamedTuple):
    """Legendre functions of some zonal wavenumbers."""

    zonal: slice
    even: Floats
    """By zonal wavenumber, degree, latitude."""
    odd: Floats
    even_at: Indices
    """For each zonal wavenumber and degree the index of its coefficient; one past the last if there is none."""
    odd_at: Indices


_kept: Bounded[list[LegendreBatch]] = Bounded(_KEPT_BYTES_MAX)


def batches(name: str, truncation: int, sines: Floats, *, over_cosine: bool = False) -> Iterable[LegendreBatch]:
    """Returns the functions at some latitudes.

    Parameters
    ----------
    name
        Identity of the latitudes: calls with the same name share matrices.
    truncation
        The largest total wavenumber.
    sines
        Of the latitudes, not negative.
    over_cosine
        Divide all by the cosine of latitude. At the pole that of m = 1 has a limit; that of m = 0, which has none, is
        0.

    Raises
    ------
    Unsupported
        The truncation is larger than `TRUNCATION_MAX`.

    """
    if truncation > TRUNCATION_MAX:
        raise Unsupported(f"T{truncation}", f"spherical harmonics are summed up to T{TRUNCATION_MAX}")
    size = 8 * len(sines) * (truncation + 1) * (truncation + 2) // 2
    if size > _KEPT_BYTES_MAX // 2:
        return _made(truncation, sines, over_cosine)
    key = (name, truncation, over_cosine)
    return _kept.get(key, lambda: list(_made(truncation, sines, over_cosine)), _bytes)


def _bytes(made: list[LegendreBatch]) -> int:
    return sum(part.even.nbytes + part.odd.nbytes for part in made)


def _made(truncation: int, sines: Floats, over_cosine: bool) -> Iterator[LegendreBatch]:
    width = max(4, (truncation + 1) // 8)
    for first in range(0, truncation + 1, width):
        yield _batch(truncation, slice(first, min(first + width, truncation + 1)), sines, over_cosine)


def _batch(truncation: int, zonal: slice, sines: Floats, over_cosine: bool) -> LegendreBatch:
    orders = np.arange(zonal.start, zonal.stop)
    degrees = truncation - zonal.start + 1
    even = np.zeros((len(orders), (degrees + 1) // 2, len(sines)))
    odd = np.zeros((len(orders), degrees // 2, len(sines)))
    before, now = np.zeros((len(orders), len(sines))), _sectoral(zonal, sines, over_cosine)
    for above in range(degrees):
        (odd if above % 2 else even)[:, above // 2] = now
        n = (orders + above + 1.0)[:, None]
        m = orders[:, None]
        # P(n) = a(n) (sine P(n-1) - P(n-2) / a(n-1))
        before, now = now, np.sqrt((4 * n * n - 1) / (n * n - m * m)) * (sines * now - _epsilon(n - 1, m) * before)
    for parity, part in enumerate((even, odd)):
        part[orders[:, None] + 2 * np.arange(part.shape[1]) + parity > truncation] = 0
    return LegendreBatch(zonal, even, odd, _places(truncation, orders, even, 0), _places(truncation, orders, odd, 1))


def _sectoral(zonal: slice, sines: Floats, over_cosine: bool) -> Floats:
    """P with n = m."""
    cosines = np.sqrt((1 - sines) * (1 + sines))
    orders = np.arange(zonal.start, zonal.stop)
    # The factor's logarithm grows slowly and never overflows.
    logarithms = np.array([0.5 * _log_factor(order) for order in orders])
    power = orders - 1 if over_cosine else orders
    powers = np.zeros((len(orders), len(sines)))
    for row, exponent in enumerate(power):
        if exponent >= 0:
            powers[row] = cosines**exponent
        else:
            powers[row] = np.divide(1, cosines, out=np.zeros_like(cosines), where=cosines > 0)
    sectoral: Floats = np.exp(logarithms)[:, None] * powers
    return sectoral


@functools.lru_cache(maxsize=4096)
def _log_factor(order: int) -> float:
    """Returns (2m+1)!! / (2m)!!, the mean-square norm of cosine to the m."""
    return math.fsum(math.log1p(1 / (2 * k)) for k in range(1, order + 1))


def _epsilon(n: Floats, m: Indices) -> Floats:
    """Returns the coefficient of P(n-1) in sine times P(n)."""
    # For n = m it is 0, and so is P(n-1).
    epsilon: Floats = np.sqrt((n * n - m * m) / (4 * n * n - 1))
    return epsilon


def _places(truncation: int, orders: Indices, part: Floats, parity: int) -> Indices:
    above = 2 * np.arange(part.shape[1])[None, :] + parity
    first = orders * (truncation + 1) - orders * (orders - 1) // 2
    is_there = orders[:, None] + above <= truncation
    beyond = (truncation + 1) * (truncation + 2) // 2
    places: Indices = np.where(is_there, first[:, None] + above, beyond)
    return places
