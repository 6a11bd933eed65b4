"""The texts of a map: a description of its field."""

from __future__ import annotations

import datetime as dt

from junctura.products._input.decoded_field import Field
from junctura.products._map.styling.scale import Scale, printed
from junctura.products._outputs._meaning import Meaning, step_text
from junctura.products._outputs._parameters import parameter

_LEVELS = {
    "pl": "{:g}\u00a0hPa",
    "ml": "model level\u00a0{:g}",
    "pt": "{:g}\u00a0K",
    "pv": "{:g}\u00a0PVU",
    "hl": "{:g}\u00a0m",
    "sol": "soil level\u00a0{:g}",
}
_SIGN_BIT = 1 << 31
_STATISTICS = {"mean": "ensemble mean", "spread": "ensemble spread", "min": "least member", "max": "greatest member"}
_PROCESSES = {"accum": "accumulated", "avg": "mean", "max": "maximum", "min": "minimum"}


def title(field: Field, is_what: Meaning) -> str:
    """The parameter in words, its level, and what was made of the members."""
    known = parameter(field)
    words = [known.name if known and known.name else field.param]
    if is_what.level is not None and is_what.levtype in _LEVELS:
        level = _potential_vorticity(is_what.level) if is_what.levtype == "pv" else is_what.level
        words.append(_LEVELS[is_what.levtype].format(level))
    if is_what.statistic == "percentile":
        words.append(f"percentile {is_what.percentile}")
    elif is_what.statistic == "probability":
        threshold = f"{is_what.threshold:g}\u00a0{printed(is_what.threshold_units)}".rstrip()
        words.append(f"probability {is_what.condition} {threshold}")
    elif is_what.statistic is not None:
        words.append(_STATISTICS[is_what.statistic])
    return ", ".join(words)


def _potential_vorticity(level: float) -> float:
    """Formats a level of potential vorticity in its unit; GRIB has thousandths, with the sign in the highest of 32
    bits.
    """
    return level / 1000 if level < _SIGN_BIT else -(level - _SIGN_BIT) / 1000


def when(is_what: Meaning) -> list[str]:
    """Base time, step, when it is valid, and of which member."""
    unit = "" if step_text(is_what)[-1].isalpha() else " h"
    words = [f"+{step_text(is_what)}{unit}"]
    if is_what.process is not None:
        words[0] += f" {_PROCESSES[is_what.process]}"
    if is_what.base is not None:
        words = [_time(is_what.base), *words, f"valid {_time(is_what.base + is_what.end)}"]
    if is_what.statistic is None and is_what.number is not None:
        words.append(f"member {is_what.number}")
    return words


def legend(is_what: Meaning, bar: Scale) -> str:
    """The words beside the colour bar."""
    words = [bar.units or ("probability" if is_what.statistic == "probability" else "")]
    if bar.is_own:
        words.append("range of this map")
    return ", ".join(word for word in words if word)


def _time(at: dt.datetime) -> str:
    return f"{at.year:04}-{at:%m-%d %H:%M} UTC"
