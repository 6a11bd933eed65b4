"""What a product is to be written as: the `to` of a requirement, checked when it is made."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from junctura.errors import InvalidArgument

Format: TypeAlias = Literal["grib2", "netcdf", "zarr", "png", "csv", "parquet"]
Packing: TypeAlias = Literal["simple", "ccsds"]
Compression: TypeAlias = Literal["zstd", "zlib"]
Projection: TypeAlias = Literal["cylindrical", "robinson", "globe"]
_BITS_MAX = 32
_DIGITS_MAX = 17
_WIDTHS = range(160, 8001)
_CHOICES = {"format": Format, "packing": Packing, "compression": Compression, "projection": Projection}


@dataclass(frozen=True)
class Output:
    """How a product is written.

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
        Significant ones of values in CSV; by default as many as say the value exactly.
    projection
        Of a map: ``cylindrical`` (true to scale along the middle latitude), ``robinson``, or ``globe``, seen from far.
    width
        Of a map, in pixels; the height follows.
    centre
        Latitude and longitude in the middle of a map; by default the middle of the grid's area. Robinson's projection
        takes the longitude of it, and the cylindrical one of whole globes as well.
    colours
        The name of a table of colours (see `junctura.products._map.colours`); by default the parameter's.
    range
        The values at the ends of the colour bar; by default round numbers around those of the field.
    levels
        Where one colour ends and the next begins, upwards; by default colours go over into one another.
    title
        Of a map; by default what the field is.
    coast
        Whether coastlines are drawn.

    Raises
    ------
    InvalidArgument
        A choice that there is not.

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
    title: str | None = None
    coast: bool = True

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            chosen, possible = getattr(self, name), get_args(choices)
            if chosen not in possible:
                raise InvalidArgument(f"output {name}", f"{chosen!r} is not one of {', '.join(possible)}")
        _check_between("bits", self.bits, 1, _BITS_MAX)
        _check_between("width", self.width, _WIDTHS.start, _WIDTHS.stop - 1)
        if self.digits is not None:
            _check_between("digits", self.digits, 1, _DIGITS_MAX)
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
    if values is None:
        return
    climbs = all(one < other for one, other in itertools.pairwise(values))
    if len(values) < 2 or not climbs or not all(map(math.isfinite, values)):
        raise InvalidArgument(
            f"output {name}", f"expected two numbers or more, each greater than the last, not {values}"
        )
