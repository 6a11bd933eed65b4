"""Styles of maps: the default colors, range, units and lines of a parameter.

The table is `styles.yaml` beside this module. An entry applies to a parameter, optionally on some levels; the first
matching entry applies. Entries of a user's file have priority. Ranges are fixed, and do not depend on the field, so
that all maps of a product have one range although each is made separately, when its field arrives.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from junctura._document.located_yaml import Document, Wrong, at, documents, read
from junctura._document.validation import Either, KnownMapping, ListOf, Number, Spec, Text, Word
from junctura.errors import InvalidArgument
from junctura.products._map.styling.colours import NAMES
from junctura.products._outputs._output import SCALES, no_distance, not_upwards
from junctura.products._units import conversion, unit

_FILE = Path(__file__).with_name("styles.yaml")
_LEVELS_OF_PROBABILITY = (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0)


@dataclass(frozen=True)
class Style:
    """How a map of a parameter looks; numbers are in `units`, which are the field's where they are empty.

    Attributes
    ----------
    middle
        The value in the middle of a diverging table.
    isolines
        The distance of lines, or their values.
    spread
        The end of the color bar for an ensemble spread.

    """

    units: str = ""
    colours: str = ""
    middle: float | None = None
    range: tuple[float, float] | None = None
    levels: tuple[float, ...] | None = None
    scale: str = "linear"
    isolines: float | tuple[float, ...] | None = None
    spread: float | None = None

    @property
    def has_range(self) -> bool:
        """Whether all maps of the parameter have one range."""
        return self.ends is not None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the greatest value of the color bar, if they are stated."""
        return self.range or ((self.levels[0], self.levels[-1]) if self.levels else None)


def style_of(
    param: str, levtype: str, level: float | None, statistic: str | None, units: str = "", own: str = ""
) -> Style:
    """Returns the style of a parameter on a level, or of an ensemble statistic.

    `units` are those of a field whose parameter is in no table; `own` is a user's table, as `load` returns it.
    """
    if statistic == "probability":
        return Style("%", "chance", levels=_LEVELS_OF_PROBABILITY)
    found = _found(own, param, levtype, level) or _by_units(units)
    if statistic == "spread":
        ends = None if found.spread is None else (0.0, found.spread)
        return Style(_of_differences(found.units), "wind", range=ends)
    return found


def load(path: str | Path) -> str:
    """A user's table as one text, which a product carries to where it is made.

    Raises
    ------
    NotFound, Io, LimitExceeded
        There is no such file, it cannot be read, or it is larger than 4 MiB.
    InvalidArgument
        Something in it is wrong: the error names file, line and key.

    """
    found = read(path)
    if len(found) != 1:
        raise InvalidArgument(str(path), "expected one list of styles")
    return json.dumps(_checked(found[0]), separators=(",", ":"))


def _checked(document: Document) -> list[dict[str, Any]]:
    try:
        STYLES.check(document.value)
        for index, entry in enumerate(document.value):
            with at(index):
                _check(entry)
    except Wrong as wrong:
        raise document.error(wrong) from None
    entries: list[dict[str, Any]] = document.value
    return entries


def _check(entry: dict[str, Any]) -> None:
    for key in ("range", "levels"):
        if key in entry and not_upwards(entry[key]):
            raise Wrong("each number must be greater than the one before", key)
    if "units" in entry:
        with at("units"):
            unit(entry["units"])
    if no_distance(entry.get("isolines")):
        raise Wrong("a distance is greater than 0", "isolines")
    if entry.get("scale") == "log" and not entry.get("range", [0])[0] > 0:
        raise Wrong('"log" needs a range above 0', "scale")


@functools.lru_cache(maxsize=64)
def _entries(own: str) -> tuple[tuple[dict[str, Any], Style], ...]:
    """Yields the condition of each entry, and its style."""
    default = documents(_FILE.read_bytes(), str(_FILE))[0]
    found = []
    for entry in (json.loads(own) if own else []) + _checked(default):
        options: dict[str, Any] = {
            key: tuple(one) if isinstance(one, list) else one for key, one in entry.items() if key != "for"
        }
        found.append((entry["for"], Style(**options)))
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def _found(own: str, param: str, levtype: str, level: float | None) -> Style | None:
    for only, style in _entries(own):
        fits = param in _listed(only["param"])
        fits &= "levtype" not in only or levtype in _listed(only["levtype"])
        fits &= "levelist" not in only or level in _listed(only["levelist"])
        if fits:
            return style
    return None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _by_units(units: str) -> Style:
    """Of a parameter that is in no table: percents and fractions have ends of their own."""
    if units == "%":
        return Style("%", "rain", range=(0.0, 100.0))
    return Style("1", "rain", range=(0.0, 1.0)) if units == "(0 - 1)" else Style()


def _of_differences(units: str) -> str:
    """A spread of degrees Celsius is one of kelvins."""
    return "K" if units in ("degC", "degF") else units


def can_convert(have: str, wanted: str) -> bool:
    """Whether values can be shown in other units."""
    try:
        conversion(have, wanted)
    except InvalidArgument:
        return False
    return True


def _or_list(spec: Spec, doc: str = "") -> Either:
    return Either((spec, ListOf(spec)), doc)


_ONLY = KnownMapping(
    {
        "param": _or_list(Text(what="a parameter", length_max=60), "Parameters, by their short names"),
        "levtype": _or_list(Text(what="a kind of level", length_max=10), "Kinds of level: pl, sfc, ml"),
        "levelist": _or_list(Number(), "Levels"),
    },
    ("param",),
    "Fields that the style is for",
)
STYLES = ListOf(
    KnownMapping(
        {
            "for": _ONLY,
            "units": Text("Of the map, and of all numbers of the style", what="a unit", length_max=60),
            "colours": Word(NAMES, "", "a table of colours"),
            "middle": Number("The value in the middle of a diverging table"),
            "range": ListOf(Number(), "The values at the ends of the color bar", low=2, high=2),
            "levels": ListOf(Number(), "Where one color ends and the next begins, upwards", low=2),
            "scale": Word(SCALES, "Of the color bar", "a scale"),
            "isolines": Either((Number("", 0), ListOf(Number())), "The distance of lines, or their values"),
            "spread": Number("The end of the color bar for an ensemble spread", 0),
        },
        ("for",),
        "A style",
    ),
    "Styles of maps: the first that fits a field counts, before those that Junctura has",
)
