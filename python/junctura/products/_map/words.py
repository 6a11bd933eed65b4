"""What a map says of its field."""

from __future__ import annotations

import datetime as dt

from junctura.products._field import Field
from junctura.products._map.scale import exponents
from junctura.products._outputs._meaning import Meaning, step_text
from junctura.products._outputs._parameters import parameter

_LEVELS = {
    "pl": "{:g} hPa",
    "ml": "model level {:g}",
    "pt": "{:g} K",
    "pv": "PV {:g}",
    "hl": "{:g} m",
    "sol": "soil level {:g}",
}
_STATISTICS = {"mean": "ensemble mean", "spread": "ensemble spread", "min": "least member", "max": "greatest member"}
_PROCESSES = {"accum": "accumulated", "avg": "mean", "max": "maximum", "min": "minimum"}


def title(field: Field, is_what: Meaning) -> str:
    """The parameter in words, its level, and what was made of the members."""
    known = parameter(field)
    words = [known.name if known else field.param]
    if is_what.level is not None and is_what.levtype in _LEVELS:
        words.append(_LEVELS[is_what.levtype].format(is_what.level))
    if is_what.statistic == "percentile":
        words.append(f"percentile {is_what.percentile}")
    elif is_what.statistic == "probability":
        threshold = f"{is_what.threshold:g} {exponents(is_what.threshold_units)}".rstrip()
        words.append(f"probability {is_what.condition} {threshold}")
    elif is_what.statistic is not None:
        words.append(_STATISTICS[is_what.statistic])
    return ", ".join(words)


def when(is_what: Meaning) -> str:
    """Base time, step, when it is valid, and of which member."""
    unit = "" if step_text(is_what)[-1].isalpha() else " h"
    words = [f"+{step_text(is_what)}{unit}"]
    if is_what.process is not None:
        words[0] += f" {_PROCESSES[is_what.process]}"
    if is_what.base is not None:
        words = [_time(is_what.base), *words, f"valid {_time(is_what.base + is_what.end)}"]
    if is_what.statistic is None and is_what.number is not None:
        words.append(f"member {is_what.number}")
    return "  ·  ".join(words)


def legend(is_what: Meaning, units: str) -> str:
    """The words beside the colour bar."""
    return units or ("probability" if is_what.statistic == "probability" else "")


def _time(at: dt.datetime) -> str:
    return f"{at.year:04}-{at:%m-%d %H:%M} UTC"
