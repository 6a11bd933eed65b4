"""Color bars: the mapping from values to positions in a color table, ticks, and printed units.

```text
  range, linear     values between the ends go over the table evenly; those beyond have the colors of the ends
  range, log        likewise by their logarithms
  levels            each class is a box of one color, all of one width, and so are values below and above all classes
```
A diverging table has its middle at a meaningful value, such as 0. A range on one side of the middle has the colors of
that side only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from junctura.products._regrid.floats import Floats

Singles: TypeAlias = npt.NDArray[np.float32]
Shading: TypeAlias = tuple[float, float, float, float] | tuple[list[float], list[int]]
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_STEPS = (1.0, 2.0, 2.5, 3.0, 4.0, 5.0)
# Tolerance for values beyond the ends, as a fraction of the bar.
_BEYOND = 1e-3
# Values with relative differences below this are considered constant.
_CONSTANT = 1e-6
# Distance from the middle color of a range that does not contain the middle, 0 to 1.
_BESIDE_MIDDLE = 0.06
_PRINTED = {"degC": "°C", "degF": "°F", "1": "", "~": "", "(0 - 1)": ""}


@dataclass(frozen=True)
class Scale:
    """A color bar.

    Attributes
    ----------
    low, high
        Values at its ends.
    levels
        Boundaries between colors; empty for continuous colors.
    colours
        Positions in the table, 0 to 1: of the two ends, or of each class, including those below and above all levels.
    ticks
        Values with a number, which `labels` has.
    units
        With the power of ten of the numbers, which is `power`.
    is_log
        Whether colors follow the logarithms of values.
    is_own
        Whether the ends are those of one field, and other maps of the product have different ends.
    arrows
        Whether there are values below, and above, the ends.

    """

    low: float
    high: float
    levels: tuple[float, ...]
    colours: tuple[float, ...]
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    units: str
    power: int = 0
    is_log: bool = False
    is_own: bool = False
    arrows: tuple[bool, bool] = (False, False)

    def evenly(self, values: Singles) -> Singles:
        """Returns values on which colors of a range are linear: their logarithms, or the values."""
        if not self.is_log:
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(values > 0, np.log(values), np.where(np.isnan(values), values, np.float32(-np.inf)))

    def shading(self, size: int) -> Shading:
        """Returns the argument of `junctura._native._shade` for a table of this size, for values as from `evenly`.

        Of a range, the lower end, the inverse of its length, and the place of its lower end and its length in the
        table; of levels, these, and the entries of the table for the classes below, between and above them.
        """
        if self.levels:
            edges = np.array(self.levels, np.float32)
            # The greatest value of the last class belongs to it.
            edges[-1] = np.nextafter(edges[-1], np.float32(np.inf))
            entries = np.minimum(np.array(self.colours, np.float32) * np.float32(size), np.float32(size - 1))
            return edges.tolist(), entries.astype(np.uint16).tolist()
        low, high = (math.log(end) for end in (self.low, self.high)) if self.is_log else (self.low, self.high)
        first, last = self.colours
        return low, 1 / (high - low), first, last - first

    def along(self, value: float) -> float:
        """Returns the position of a value on the bar, 0 to 1."""
        if self.levels:
            return float(np.interp(value, self.levels, np.linspace(0, 1, len(self.levels))))
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def beyond(self, values: Floats) -> tuple[bool, bool]:
        """Whether there are values below, and above, the ends."""
        known = values[np.isfinite(values)]
        if not known.size:
            return False, False
        widths = np.diff(self.levels) if self.levels else np.array([self.high - self.low])
        first, last = _BEYOND * float(widths[0]), _BEYOND * float(widths[-1])
        if self.is_log:
            first = _BEYOND * self.low
        return bool(known.min() < self.low - first), bool(known.max() > self.high + last)


def scale(
    values: Floats,
    units: str,
    given: tuple[float, float] | None = None,
    levels: tuple[float, ...] | None = None,
    middle: float | None = None,
    *,
    is_log: bool = False,
) -> Scale:
    """Returns the bar for values: as given, or with rounded ends around the values.

    Parameters
    ----------
    values
        Of the field.
    units
        Of all numbers.
    given
        The ends.
    levels
        Where one color ends and the next begins.
    middle
        The value in the middle of the table, if it is a diverging one.
    is_log
        Whether colors follow logarithms; only of values above 0.

    """
    bar = _bar(values, units, given, levels, middle, is_log=is_log)
    return replace(bar, is_own=not (given or levels), arrows=bar.beyond(values))


def _bar(
    values: Floats,
    units: str,
    given: tuple[float, float] | None,
    levels: tuple[float, ...] | None,
    middle: float | None,
    *,
    is_log: bool,
) -> Scale:
    if levels:
        return _of_levels(levels, _stops(levels, middle, units), levels, units)
    if given is None and _is_constant(values):
        return _of_constant(float(np.nanmean(values)), units)
    low, high = given or (_log_ends(values) if is_log else ends(values, middle))
    is_log &= low > 0
    ticks = _log_ticks(low, high) if is_log else _ticks(low, high)
    power = 0 if is_log else _power(max(abs(low), abs(high)))
    return Scale(
        low, high, (), _part(low, high, middle), ticks, _labels(ticks, power), _words(units, power), power, is_log
    )


def _of_levels(levels: tuple[float, ...], places: tuple[float, ...], ticks: tuple[float, ...], units: str) -> Scale:
    power = _power(max(abs(levels[0]), abs(levels[-1])))
    return Scale(levels[0], levels[-1], levels, places, ticks, _labels(ticks, power), _words(units, power), power)


def _of_constant(value: float, units: str) -> Scale:
    """One box with one number."""
    half = abs(value) / 2 or 0.5
    return _of_levels((value - half, value + half), (0.5, 0.5, 0.5), (value,), units)


def _words(units: str, power: int) -> str:
    words = (f"10^{{{power}}}" if power else "", printed(units))
    return " ".join(word for word in words if word)


def _labels(ticks: Sequence[float], power: int) -> tuple[str, ...]:
    return tuple(_label(tick, power) for tick in ticks)


def _label(tick: float, power: int) -> str:
    value = _rounded(tick / 10.0**power)
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:g}"
    digits, exponent = f"{value:.5e}".split("e")
    digits = f"{float(digits):g}"
    return f"{'' if digits == '1' else f'{digits}·'}10^{{{int(exponent)}}}"


def _is_constant(values: Floats) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size) and float(np.ptp(known)) <= _CONSTANT * float(np.abs(known).max())


def _part(low: float, high: float, middle: float | None) -> tuple[float, float]:
    """Which part of a table a range has: of a diverging one, so that equal differences look alike on both sides."""
    if middle is None:
        return 0.0, 1.0
    if low < middle < high:
        reach = 2 * max(middle - low, high - middle)
        return 0.5 + (low - middle) / reach, 0.5 + (high - middle) / reach
    if middle <= low:
        return (0.5 if middle == low else 0.5 + _BESIDE_MIDDLE), 1.0
    return 0.0, (0.5 if middle == high else 0.5 - _BESIDE_MIDDLE)


def _stops(levels: Sequence[float], middle: float | None, units: str) -> tuple[float, ...]:
    """Where the colors of the classes are in the table, from that below all levels to that above."""
    number = np.arange(len(levels) + 1, dtype=np.float64)
    if middle is None:
        # Amounts are never below 0, and no share is above all.
        first = 1 if levels[0] == 0 else 0
        last = number[-1] - (levels[-1] == {"%": 100, "1": 1, "(0 - 1)": 1}.get(units))
        return tuple(np.clip((number - first) / max(last - first, 1), 0, 1).tolist())
    at = float(np.searchsorted(levels, middle))
    if at < len(levels) and levels[int(at)] == middle:
        at += 0.5
    reach = 2 * max(at, number[-1] - at)
    return tuple((0.5 + (number - at) / reach).tolist())


def ends(values: Floats, middle: float | None = None) -> tuple[float, float]:
    """Round numbers around values; of a diverging table about 0 equally far from it."""
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if middle == 0:
        reach = max(abs(low), abs(high)) or 1.0
        low, high = -reach, reach
    step = _step((high - low) / 10)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _log_ends(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values) & (values > 0)]
    if not known.size:
        return 0.1, 1.0
    low, high = math.floor(math.log10(known.min()) + 1e-9), math.ceil(math.log10(known.max()) - 1e-9)
    return 10.0 ** min(low, high - 1), 10.0**high


def _step(about: float) -> float:
    """A round number that is not less."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(nice * power for nice in _NICE if nice * power >= about * (1 - 1e-9))


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Round numbers, among them the ends where they are round enough."""
    step = min(_even_steps(low, high), key=lambda one: abs(math.log(6 * one / (high - low))), default=None)
    step = step or _step((high - low) / 6)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(number * step for number in range(first, last + 1))


def _even_steps(low: float, high: float) -> Iterator[float]:
    """Round numbers of which both ends are multiples, so that there are three to twelve from end to end."""
    power = 10.0 ** math.floor(math.log10((high - low) / 12))
    for step in (nice * power * ten for ten in (1, 10) for nice in _STEPS):
        count = (high - low) / step
        is_even = all(abs(end / step - round(end / step)) < 1e-6 for end in (low, high))
        if is_even and 3 - 1e-6 <= count <= 12 + 1e-6:
            yield step


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    digits = (1.0, 2.0, 5.0) if last - first <= 3 else (1.0,)
    every = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
    return tuple(tick for tick in every if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9))


def _power(greatest: float) -> int:
    if greatest == 0 or 1e-2 <= greatest < 1e5:
        return 0
    power = math.floor(math.log10(greatest))
    return power if power < 0 else power // 3 * 3


def _rounded(value: float) -> float:
    return float(f"{value:.6g}") + 0.0


def printed(units: str) -> str:
    """Units as they are printed, with exponents as `lettering` sets them.

    Examples
    --------
    >>> printed("degC"), printed("m s**-1"), printed("kg m**-2"), printed("s**-1")
    ('°C', 'm/s', 'kg/m^{2}', 's^{-1}')

    """
    if units in _PRINTED:
        return _PRINTED[units]
    words = units.split()
    below = [word for word in words if "**-" in word]
    if len(below) == 1 and len(words) > 1:
        name, power = below[0].split("**-")
        above = " ".join(word for word in words if word != below[0])
        units = f"{above}/{name}" + ("" if power == "1" else f"**{power}")
    return re.sub(r"\*\*(-?\d+)", r"^{\1}", units)
