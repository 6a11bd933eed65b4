"""How one field is shown: in which units, by which colors, and where lines are; from its style and the recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from junctura.products._input.decoded_field import Field
from junctura.products._input.header_keys import STATED
from junctura.products._map.styling import colours
from junctura.products._map.styling.scale import Scale, scale
from junctura.products._map.styling.styles import Style, can_convert, style_of
from junctura.products._outputs._meaning import Meaning
from junctura.products._outputs._output import Output
from junctura.products._outputs._parameters import parameter
from junctura.products._regrid.floats import Floats
from junctura.products._units import conversion, unit

# More lines would be a surface, and none is drawn.
_LINES_MAX = 400


@dataclass(frozen=True)
class Look:
    """Values in the units that are shown, their color bar, and the values of lines."""

    values: Floats
    table: str
    bar: Scale
    isolines: tuple[float, ...]


def look_of(field: Field, is_what: Meaning, to: Output) -> Look:
    """How a field is shown.

    Raises
    ------
    InvalidArgument
        `Output.units` are those of another quantity, or there is no such table of colors.

    """
    style = style_of(is_what.param, is_what.levtype, is_what.level, is_what.statistic, field.units, to.styles)
    units = _shown(field, is_what, to, style)
    values = field.values
    if units != field.units:
        values = conversion(field.units, units)(values, is_difference=is_what.statistic == "spread")
    style = _in(style, units)
    table = to.colours or style.colours or colours.NEUTRAL
    is_log = (to.scale or style.scale) == "log"
    if is_log and colours.is_diverging(table):
        table = colours.NEUTRAL
    middle = _middle(table, to, style, units, is_what)
    given, levels = (to.range, to.levels) if to.range or to.levels else (style.range, style.levels)
    bar = scale(values, units, given, levels, middle, is_log=is_log)
    lines = style.isolines if to.isolines is None or to.isolines is True else to.isolines
    if to.isolines is True and lines is None:
        lines = bar.levels or bar.ticks
    return Look(values, table, bar, _isolines(values, lines))


def _shown(field: Field, is_what: Meaning, to: Output, style: Style) -> str:
    """The units of a map: as stated, else of the style where the recipe has neither converted nor set a range."""
    if to.units is not None:
        return to.units
    if field.header.get(STATED) == field.units:
        # Also where there was nothing to convert.
        return field.units
    if to.range or to.levels or not style.units or not can_convert(field.units, style.units):
        return field.units
    if is_what.statistic == "probability":
        return field.units
    known = parameter(field)
    has_own = known is not None and _are_same(known.units, field.units)
    return style.units if has_own or _are_same(style.units, field.units) else field.units


def _are_same(one: str, other: str) -> bool:
    return one == other or (can_convert(one, other) and unit(one) == unit(other))


def _in(style: Style, units: str) -> Style:
    """A style with its numbers in other units; without them, where it is of another quantity."""
    if not style.units or style.units == units:
        return style
    if not can_convert(style.units, units):
        return Style(colours=style.colours)
    to = conversion(style.units, units)

    def converted(numbers: Sequence[float]) -> tuple[float, ...]:
        return tuple(round(value, 12) for value in to(np.array(numbers)).tolist())

    isolines = style.isolines
    if isinstance(isolines, tuple):
        isolines = converted(isolines)
    elif isolines is not None:
        isolines = float(to(np.array([isolines]), is_difference=True)[0])
    return replace(
        style,
        units=units,
        middle=None if style.middle is None else converted([style.middle])[0],
        range=None if style.range is None else (converted(style.range)[0], converted(style.range)[1]),
        levels=None if style.levels is None else converted(style.levels),
        isolines=isolines,
    )


def _middle(table: str, to: Output, style: Style, units: str, is_what: Meaning) -> float | None:
    """The value in the middle of a diverging table: 0, or the freezing point of water."""
    if not colours.is_diverging(table):
        return None
    if to.middle is not None:
        return to.middle
    if style.middle is not None:
        return style.middle
    is_difference = is_what.statistic == "spread"
    if table == "thermal" and not is_difference and can_convert("degC", units):
        return float(conversion("degC", units)(np.array([0.0]))[0])
    return 0.0


def _isolines(values: Floats, given: float | tuple[float, ...] | bool | None) -> tuple[float, ...]:
    """The values of lines within those of a field."""
    known = values[np.isfinite(values)]
    if given is None or given is False or not known.size:
        return ()
    low, high = float(known.min()), float(known.max())
    if isinstance(given, tuple):
        return tuple(value for value in given if low <= value <= high)
    first, last = int(np.ceil(low / given)), int(np.floor(high / given))
    return tuple(number * given for number in range(first, last + 1)) if last - first < _LINES_MAX else ()
