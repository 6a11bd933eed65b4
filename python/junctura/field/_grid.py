"""The grid of a GRIB message: its description, and whether two fields are on the same grid.

Messages whose grid sections have the same octets (WMO section 2 of edition 1, section 3 of edition 2) are on one grid.
Others are compared by the numbers that the header states: equal to 1e-6 within an edition, to the 0.001 degrees that
edition 1 can state between editions. The direction of rows and columns belongs to the grid, since coordinates follow
it; whether rows or columns are consecutive, and whether they alternate, does not.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from junctura._native import _sections
from junctura.field._eccodes import value_of

# Keys of ecCodes' namespace `geography` that describe the order of values in the message, or follow from other keys.
_IGNORED = ("gridType", "jPointsAreConsecutive", "bitmapPresent")
# Between the bounds in the header, increments are redundant, and may be rounded or omitted.
_WITH_ENDS = ("regular_ll", "regular_gg", "rotated_ll", "rotated_gg", "reduced_ll", "reduced_gg", "reduced_rotated_gg")
# Keys that the namespace lacks.
_MORE = ("Nx", "Ny", "N", "Nside", "numberOfGridUsed", "numberOfGridInReference", "uuidOfHGrid")
_WITHIN_EDITION = 1e-6
_BETWEEN_EDITIONS = 1.1e-3
# EcCodes' missing integer: a count that rows do not have in common.
_MISSING = 2147483647
_Number = float | str


@dataclass(frozen=True)
class Grid:
    """The grid of a field.

    Attributes
    ----------
    kind
        ecCodes' name of its template, as ``regular_ll``.
    points
        Number of points.
    numbers
        The numbers in the header, by ecCodes key; degrees and meters.
    edition
        Edition of the message: 1 has degrees with three digits, 2 with six.

    """

    kind: str
    points: int
    numbers: tuple[tuple[str, _Number], ...]
    edition: int = 2

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits, equal for grids with the same numbers, rounded to three decimals."""
        rounded = [(name, _rounded(value)) for name, value in self.numbers if _rounded(value)]
        text = json.dumps([self.kind, self.points, rounded])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def is_same(self, other: Grid) -> bool:
        """Whether fields on the two grids have their points in the same places and in the same directions."""
        return (self.kind, self.points) == (other.kind, other.points) and not self.differing(other)

    def differing(self, other: Grid) -> list[str]:
        """Returns the keys of both that differ; an omitted one counts as 0."""
        within = _WITHIN_EDITION if self.edition == other.edition else _BETWEEN_EDITIONS
        ours, theirs = dict(self.numbers), dict(other.numbers)
        names = sorted({*ours, *theirs})
        return [name for name in names if _differ(name, ours.get(name, 0.0), theirs.get(name, 0.0), within)]

    def compared(self, other: Grid) -> tuple[str, str]:
        """Returns descriptions of both grids that differ."""
        ours, theirs = str(self), str(other)
        if ours != theirs:
            return ours, theirs
        names = self.differing(other)[:3]
        return tuple(f"{text} ({_listed(names, grid)})" for text, grid in ((ours, self), (theirs, other)))  # type: ignore[return-value]

    def __str__(self) -> str:
        numbers = dict(self.numbers)
        rows, columns = (_first(numbers, names) for names in (("Nj", "Ny"), ("Ni", "Nx")))
        size = f"{rows:g} rows of {columns:g} points" if rows and columns else f"{self.points} points"
        return " ".join([self.kind, "of", size, *_extent(numbers)])


def _rounded(value: _Number) -> _Number:
    return round(value, 3) if isinstance(value, float) else value


def _differ(name: str, one: _Number, other: _Number, within: float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one != other
    apart = abs(one - other)
    if name.startswith("longitude"):
        apart = min(apart, abs(360 - apart))
    # Metres of edition 1 are whole.
    return apart > (within if "Metres" not in name or within < _BETWEEN_EDITIONS else 1.0)


def _first(numbers: dict[str, _Number], names: tuple[str, ...]) -> _Number:
    return next((numbers[name] for name in names if name in numbers), 0.0)


def _extent(numbers: dict[str, _Number]) -> list[str]:
    """Returns the bounds, as far as the header has them."""
    words = []
    for coordinate in ("latitude", "longitude"):
        ends = [numbers.get(f"{coordinate}Of{end}GridPointInDegrees") for end in ("First", "Last")]
        stated = [f"{end:g}" for end in ends if isinstance(end, float)]
        if stated:
            words.append(f"{'from' if len(stated) == 1 else 'between'} {coordinate} {' and '.join(stated)}")
    return words


def _listed(names: list[str], grid: Grid) -> str:
    numbers = dict(grid.numbers)
    return ", ".join(f"{name}={_short(numbers.get(name, 0.0))}" for name in names)


def _short(value: _Number) -> str:
    return f"{value:.9g}" if isinstance(value, float) else value


def octets_of(message: bytes) -> bytes:
    """Returns the octets of a message that define its grid: the grid section, or the number of a predefined grid.

    Two messages with the same ones are on the same grid, and have its points in the same order.
    """
    number, width = (3, 4) if message[7] == 2 else (2, 3)
    for found, start in _sections(message):
        if found == number:
            return message[start : start + int.from_bytes(message[start : start + width], "big")]
    # Octet 7 of section 1 of edition 1: a grid of the centre's list.
    return message[12:13] + message[14:15]


def grid_of(eccodes: Any, handle: int) -> Grid:
    """The grid of a message that ecCodes has open."""
    kind = (
        value_of(eccodes, handle, "gridType", str)
        or f"template {value_of(eccodes, handle, 'gridDefinitionTemplateNumber')}"
    )
    numbers: dict[str, _Number] = {}
    for name in (*_names(eccodes, handle), *_MORE):
        if name not in _IGNORED and not (kind in _WITH_ENDS and "Increment" in name) and name not in numbers:
            value = _lengths(eccodes, handle) if name == "pl" else value_of(eccodes, handle, name)
            if value is not None and value != _MISSING:
                numbers[name] = value if isinstance(value, str) else _degrees(name, float(value))
    points = int(eccodes.codes_get_size(handle, "values"))
    return Grid(kind, points, tuple(sorted(numbers.items())), int(eccodes.codes_get(handle, "edition")))


def _degrees(name: str, value: float) -> float:
    return value % 360 if name.startswith("longitude") else value


def _names(eccodes: Any, handle: int) -> list[str]:
    keys = eccodes.codes_keys_iterator_new(handle, "geography")
    names = []
    try:
        while eccodes.codes_keys_iterator_next(keys):
            names.append(eccodes.codes_keys_iterator_get_name(keys))
    finally:
        eccodes.codes_keys_iterator_delete(keys)
    return names


def _lengths(eccodes: Any, handle: int) -> str:
    """The lengths of the rows of a reduced grid, as a checksum."""
    lengths = eccodes.codes_get_array(handle, "pl")
    return hashlib.sha256(",".join(str(int(length)) for length in lengths).encode()).hexdigest()[:16]
