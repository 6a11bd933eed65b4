"""The output options of a product: the `to` of a recipe, validated on creation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from junctura.errors import InvalidArgument

Format: TypeAlias = Literal["grib2", "netcdf", "zarr", "png", "csv", "parquet"]
Packing: TypeAlias = Literal["simple", "ccsds"]
Compression: TypeAlias = Literal["zstd", "zlib"]
Projection: TypeAlias = Literal["cylindrical", "robinson", "globe"]
Theme: TypeAlias = Literal["dark", "light"]
Part: TypeAlias = Literal["page", "map", "bar"]
SCALES = {"linear": "Equal differences look alike; the default", "log": "Equal ratios look alike; values above 0"}
THEMES = {"dark": "Light letters on a dark ground; the default", "light": "Dark letters on white, to be printed"}
PARTS = {
    "page": "The map with its title and its color bar; the default",
    "map": "The map alone, for a page that has a title and a color bar of its own",
    "bar": "The color bar alone",
}
_BITS_MAX = 32
_DIGITS_MAX = 17
_WIDTHS = range(160, 8001)
_TEXTS = range(6, 101)
_CHOICES = {
    "format": Format,
    "packing": Packing,
    "compression": Compression,
    "projection": Projection,
    "theme": Theme,
    "part": Part,
}


@dataclass(frozen=True)
class Output:
    """The output format of a product, and its options.

    Attributes
    ----------
    format
        ``grib2``: one message after another. ``netcdf``, ``zarr``: one data set with CF's words. ``png``: a map.
        ``csv``: a row for each point.
    bits, packing
        Of a GRIB message: how many bits a value has, and how they are packed.
    compression
        Of netCDF and Zarr.
    digits
        Significant digits of values in CSV; by default as many as represent the value exactly.
    projection
        Of a map: ``cylindrical`` (true to scale along the middle latitude), ``robinson``, or ``globe``, seen from far.
    width
        Of a map, in pixels; the height follows.
    centre
        Latitude and longitude in the middle of a map; by default the middle of the grid's area. Robinson's projection,
        and the cylindrical one for global grids, use only the longitude.
    colours
        The name of a table of colours (see `junctura.products._map.styling.colours`); by default the parameter's.
    range
        The values at the ends of the color bar, in `units` if these are stated, else in the field's. By default the
        style's (see `junctura.products._map.styling.styles`), and without one round numbers around the values of the
        field.
    levels
        Boundaries between colors, in increasing order, in units as `range`; by default the style's.
    middle
        The value in the middle of a diverging table; by default the style's, else 0 or the freezing point.
    scale
        Of the color bar: ``linear`` or ``log``; by default the style's.
    units
        Of the map; by default the style's, where the field has its parameter's own, else the field's.
    isolines
        The distance of lines, their values, or False for none; by default the style's. True: the style's, or those of
        the color bar's numbers.
    styles
        A user's table of styles, as `junctura.products._map.styling.styles.load` returns it.
    theme
        ``dark`` or ``light``.
    part
        ``page``, or ``map`` or ``bar`` alone.
    text
        The size of the smallest letters in pixels; by default 12.5 of a map 1000 pixels wide, in proportion for wider
        ones, and 11 at least.
    title
        Title of a map; by default a description of the field.
    coast
        Whether coastlines are drawn.
    borders
        Whether borders of countries are drawn.

    Raises
    ------
    InvalidArgument
        A choice is unknown.

    """

    format: Format
    bits: int = 16
    packing: Packing = "simple"
    compression: Compression = "zstd"
    digits: int | None = None
    projection: Projection = "cylindrical"
    width: int = 1000
    centre: tuple[float, float] | None = None
    colours: str | None = None
    range: tuple[float, float] | None = None
    levels: tuple[float, ...] | None = None
    middle: float | None = None
    scale: str | None = None
    units: str | None = None
    isolines: float | tuple[float, ...] | bool | None = None
    styles: str = ""
    theme: Theme = "dark"
    part: Part = "page"
    text: int | None = None
    title: str | None = None
    coast: bool = True
    borders: bool = False

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            chosen, possible = getattr(self, name), get_args(choices)
            if chosen not in possible:
                raise InvalidArgument(f"output {name}", f"{chosen!r} is not one of {', '.join(possible)}")
        _check_between("bits", self.bits, 1, _BITS_MAX)
        _check_between("width", self.width, _WIDTHS.start, _WIDTHS.stop - 1)
        if self.digits is not None:
            _check_between("digits", self.digits, 1, _DIGITS_MAX)
        self._check_map()

    def _check_map(self) -> None:
        if self.text is not None:
            _check_between("text", self.text, _TEXTS.start, _TEXTS.stop - 1)
        if no_distance(self.isolines):
            raise InvalidArgument("output isolines", f"expected a distance greater than 0, not {self.isolines}")
        if self.scale is not None and self.scale not in SCALES:
            raise InvalidArgument("output scale", f"{self.scale!r} is not one of {', '.join(SCALES)}")
        if self.scale == "log" and self.range is not None and not self.range[0] > 0:
            raise InvalidArgument("output range", f"a logarithmic scale needs values above 0, not {self.range}")
        for name in ("range", "levels"):
            _check_upwards(name, getattr(self, name))
        if self.range is not None and len(self.range) != 2:
            raise InvalidArgument("output range", f"expected the least and the greatest value, not {self.range}")
        if self.centre is not None and not (len(self.centre) == 2 and abs(self.centre[0]) <= 90):
            raise InvalidArgument("output centre", f"{self.centre} is no latitude and longitude")


def _check_between(name: str, value: int, least: int, greatest: int) -> None:
    if not least <= value <= greatest:
        raise InvalidArgument(f"output {name}", f"{value}, expected {least} to {greatest}")


def _check_upwards(name: str, values: tuple[float, ...] | None) -> None:
    if values is not None and not_upwards(values):
        raise InvalidArgument(
            f"output {name}", f"expected two numbers or more, each greater than the last, not {values}"
        )


def not_upwards(values: Sequence[float]) -> bool:
    """Whether they are not two finite numbers or more, each greater than the last."""
    climbs = all(one < other for one, other in itertools.pairwise(values))
    return len(values) < 2 or not climbs or not all(map(math.isfinite, values))


def no_distance(isolines: object) -> bool:
    """Whether they are given by a number that cannot be the distance of lines."""
    return isinstance(isolines, int | float) and not isinstance(isolines, bool) and not isolines > 0
