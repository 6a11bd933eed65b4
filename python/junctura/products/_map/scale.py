"""The ends of a colour bar, its ticks, and its units."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from junctura.products._floats import Floats

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """A colour bar.

    Attributes
    ----------
    low, high
        Values at its ends.
    levels
        Where one colour ends and the next begins; empty where they go over into one another.
    ticks
        Values with a number, which `labels` has.
    units
        With the power of ten that the numbers are in.

    """

    low: float
    high: float
    levels: tuple[float, ...]
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    units: str


def scale(
    values: Floats,
    units: str,
    given: tuple[float, float] | None = None,
    levels: tuple[float, ...] | None = None,
    is_about_zero: bool = False,
) -> Scale:
    """The bar for values: from round numbers to round numbers, or as it is said."""
    low, high = given or (levels[0], levels[-1]) if levels else given or _ends(values, is_about_zero)
    ticks = levels if levels and len(levels) <= 12 else _ticks(low, high)
    power = _power(max(abs(low), abs(high)))
    labels = tuple(f"{_rounded(tick / 10.0**power):g}" for tick in ticks)
    words = (f"10^{{{power}}}" if power else "", exponents(units))
    return Scale(low, high, levels or (), ticks, labels, " ".join(word for word in words if word))


def _ends(values: Floats, is_about_zero: bool) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if is_about_zero:
        reach = max(abs(low), abs(high)) or 1.0
        low, high = -reach, reach
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    step = _step((high - low) / 10)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _step(about: float) -> float:
    """A round number that is not less."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(nice * power for nice in _NICE if nice * power >= about * (1 - 1e-9))


def _ticks(low: float, high: float) -> tuple[float, ...]:
    step = _step((high - low) / 6)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(number * step for number in range(first, last + 1))


def _power(greatest: float) -> int:
    if greatest == 0 or 1e-2 <= greatest < 1e5:
        return 0
    power = math.floor(math.log10(greatest))
    return power if power < 0 else power // 3 * 3


def _rounded(value: float) -> float:
    return float(f"{value:.6g}") + 0.0


def exponents(units: str) -> str:
    """Units with exponents as `lettering` sets them: ``m s**-1`` becomes ``m s^{-1}``."""
    return re.sub(r"\*\*(-?\d+)", r"^{\1}", "" if units in ("1", "~") else units)
