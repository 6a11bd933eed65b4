"""Units of meteorology, and conversion between them by exact factors.

A unit is parsed as a product of powers, in any of the notations ``m s**-1``, ``m s-1``, ``m/s``, ``m s^-1``. Two
conversions connect quantities that meteorology treats as equivalent: 1 kg m-2 of water is a depth of 1 mm, and a
geopotential in m2 s-2 divided by 9.80665 m s-2 (standard gravity, WMO) is a height in geopotential meters.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from junctura._document.located_yaml import nearest
from junctura.errors import InvalidArgument
from junctura.products._regrid.floats import Floats

# Powers of metre, kilogram, second, kelvin and geopotential metre.
_Powers = tuple[int, int, int, int, int]
_NONE: _Powers = (0, 0, 0, 0, 0)
_METRE, _GPM, _GEOPOTENTIAL = (1, 0, 0, 0, 0), (0, 0, 0, 0, 1), (2, 0, -2, 0, 0)
_PASCAL, _WATER = (-1, 1, -2, 0, 0), (-2, 1, 0, 0, 0)
_JOULE, _WATT = (2, 1, -2, 0, 0), (2, 1, -3, 0, 0)
_SECOND, _KELVIN = (0, 0, 1, 0, 0), (0, 0, 0, 1, 0)
_GRAVITY = Fraction("9.80665")
_POWER_MAX = 9


@dataclass(frozen=True)
class Unit:
    """A unit: of these powers, `factor` times that of the SI, with its zero `offset` above that of the SI."""

    powers: _Powers
    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)


def _table() -> dict[str, Unit]:
    one = Fraction(1)
    symbols = {
        "K": (_KELVIN, one),
        "m": (_METRE, one),
        "dam": (_METRE, Fraction(10)),
        "km": (_METRE, Fraction(1000)),
        "cm": (_METRE, Fraction(1, 100)),
        "mm": (_METRE, Fraction(1, 1000)),
        "ft": (_METRE, Fraction("0.3048")),
        "inch": (_METRE, Fraction("0.0254")),
        "kg": ((0, 1, 0, 0, 0), one),
        "g": ((0, 1, 0, 0, 0), Fraction(1, 1000)),
        "mg": ((0, 1, 0, 0, 0), Fraction(1, 10**6)),
        "s": (_SECOND, one),
        "min": (_SECOND, Fraction(60)),
        "h": (_SECOND, Fraction(3600)),
        "day": (_SECOND, Fraction(86400)),
        "Pa": (_PASCAL, one),
        "hPa": (_PASCAL, Fraction(100)),
        "kPa": (_PASCAL, Fraction(1000)),
        "J": (_JOULE, one),
        "kJ": (_JOULE, Fraction(1000)),
        "W": (_WATT, one),
        "N": ((1, 1, -2, 0, 0), one),
        "Hz": ((0, 0, -1, 0, 0), one),
        "kt": ((1, 0, -1, 0, 0), Fraction(1852, 3600)),
        "gpm": (_GPM, one),
        "gpdm": (_GPM, Fraction(10)),
        "1": (_NONE, one),
        "%": (_NONE, Fraction(1, 100)),
    }
    table = {symbol: Unit(powers, factor) for symbol, (powers, factor) in symbols.items()}
    table["degC"] = Unit(_KELVIN, one, Fraction("273.15"))
    table["degF"] = Unit(_KELVIN, Fraction(5, 9), Fraction("459.67") * Fraction(5, 9))
    return table


_TABLE = _table()
_SPELLINGS = {
    "degc": "degC",
    "degf": "degF",
    "celsius": "degC",
    "degrees celsius": "degC",
    "deg c": "degC",
    "°c": "degC",
    "c": "degC",
    "fahrenheit": "degF",
    "°f": "degF",
    "kelvin": "K",
    "mbar": "hPa",
    "mb": "hPa",
    "millibars": "hPa",
    "knot": "kt",
    "knots": "kt",
    "kts": "kt",
    "d": "day",
    "days": "day",
    "hour": "h",
    "hours": "h",
    "hr": "h",
    "sec": "s",
    "second": "s",
    "metre": "m",
    "meter": "m",
    "in": "inch",
    "percent": "%",
    "fraction": "1",
    "(0 - 1)": "1",
    "0-1": "1",
    "proportion": "1",
    "dimensionless": "1",
    "~": "1",
    "numeric": "1",
    "m of water equivalent": "m",
    "m of water": "m",
    "geopotential metres": "gpm",
    "geopotential meters": "gpm",
}
_FACTOR = re.compile(r"([A-Za-z%°]+|1)(?:(?:\*\*|\^)?([-+]?\d+))?")


@functools.lru_cache(maxsize=1024)
def unit(text: str) -> Unit:
    """Parses a unit.

    Raises
    ------
    InvalidArgument
        The unit is unknown; the error names the closest known unit.

    Examples
    --------
    >>> unit("m s**-1") == unit("m/s") == unit("m s-1")
    True

    """
    named = text.strip()
    if whole := _symbol(named):
        return whole
    powers, factor = list(_NONE), Fraction(1)
    for sign, word in _factors(named):
        found = _FACTOR.fullmatch(word)
        base = _symbol(found[1]) if found else None
        if found is None or base is None:
            _refuse(text, word)
        power = sign * int(found[2] or 1)
        if base.offset or abs(power) > _POWER_MAX:
            raise InvalidArgument(f"unit {text!r}", f'"{word}" has no meaning in a product: write K')
        factor *= base.factor**power
        powers = [have + power * more for have, more in zip(powers, base.powers, strict=True)]
    length, mass, time, temperature, geopotential = powers
    return Unit((length, mass, time, temperature, geopotential), factor)


def canonical(text: str) -> str:
    """Returns a unit in GRIB notation.

    Examples
    --------
    >>> canonical("km/h"), canonical("knots"), canonical("m s^-1")
    ('km h**-1', 'kt', 'm s**-1')

    """
    unit(text)
    if (named := _spelt(text.strip())) in _TABLE:
        return named
    words = []
    for sign, word in _factors(text.strip()):
        found = _FACTOR.fullmatch(word)
        power = sign * int(found[2] or 1) if found else 1
        symbol = _spelt(found[1]) if found else word
        words += [] if symbol == "1" else [symbol if power == 1 else f"{symbol}**{power}"]
    return " ".join(words)


def _spelt(word: str) -> str:
    return word if word in _TABLE else _SPELLINGS.get(word.lower(), word)


def _symbol(word: str) -> Unit | None:
    return _TABLE.get(_spelt(word))


def _factors(text: str) -> list[tuple[int, str]]:
    """Returns its factors, each with 1 or, after a slash, -1."""
    tight = re.sub(r"\s*(\*\*|\^)\s*", r"\1", text)
    words = re.sub(r"\s*/\s*", " /", re.sub(r"[.·]", " ", tight)).split()
    if not words or len(words) > 20:
        _refuse(text, text)
    return [(-1, word[1:]) if word.startswith("/") else (1, word) for word in words]


def _refuse(text: str, word: str) -> NoReturn:
    raise InvalidArgument(f"unit {text[:60]!r}", f'"{word[:60]}" is no unit{nearest(word, _TABLE)}')


@dataclass(frozen=True)
class Conversion:
    """A conversion between units: ``values * numerator / denominator + shift``."""

    numerator: float
    denominator: float
    shift: float

    def __call__(self, values: Floats, *, is_difference: bool = False) -> Floats:
        """Returns the values in the other unit; for differences, such as a spread, zero stays zero."""
        made = values
        if self.numerator != 1:
            made = made * self.numerator
        if self.denominator != 1:
            made = made / self.denominator
        return made if is_difference or not self.shift else made + self.shift


@functools.lru_cache(maxsize=1024)
def conversion(source: str, target: str) -> Conversion:
    """Returns the conversion between two units.

    Raises
    ------
    InvalidArgument
        A unit is unknown, or the two are of different quantities; the error lists possible units.

    """
    have, wanted = unit(source), unit(target)
    bridge = _bridge(have.powers, wanted.powers)
    if bridge is None:
        possible = sorted(symbol for symbol, known in _TABLE.items() if _bridge(have.powers, known.powers))
        said = f"; possible are {', '.join(possible)}" if possible else ""
        raise InvalidArgument(f"unit {target!r}", f"{source!r} is of another quantity{said}")
    scale = have.factor * bridge / wanted.factor
    shift = (have.offset * bridge - wanted.offset) / wanted.factor
    return Conversion(float(scale.numerator), float(scale.denominator), float(shift))


def _bridge(have: _Powers, wanted: _Powers) -> Fraction | None:
    """Returns the factor between SI values of two quantities; None if they are not convertible."""
    if have == wanted:
        return Fraction(1)
    if (have, wanted) in ((_GEOPOTENTIAL, _GPM), (_GPM, _GEOPOTENTIAL)):
        return 1 / _GRAVITY if wanted == _GPM else _GRAVITY
    # Water on an area, or a rate of it.
    for powers, other, factor in ((have, wanted, Fraction(1, 1000)), (wanted, have, Fraction(1000))):
        if powers[:2] == _WATER[:2] and other[:2] == _METRE[:2] and powers[2:] == other[2:]:
            return factor
    return None
