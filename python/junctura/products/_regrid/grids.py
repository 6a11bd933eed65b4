"""Grids and their names, and the truncation of spectral fields.

```text
  name                          kind          what
  0.5/0.5                       regular_ll    rows every half degree from pole to pole, columns from the prime meridian
  0.5/0.5@72/-25/34/45          regular_ll    of these the rows and columns within north/west/south/east
  11x19@73/-27/33/45            regular_ll    11 rows and 19 columns, the outermost at north/west/south/east
  F48, F48@72/-25/34/45         regular_gg    48 Gaussian rows between pole and equator, each with 192 columns
  N48, O48, R48:20,24,...       reduced_gg    rows with fewer columns towards the poles
  lambert:2:eNpj...             listed        all points, as the grid section of a GRIB message states them; the section
  points@50.1/8.7,48.2/16.4     points        places, each by latitude/longitude
  T63                           spectral      spherical harmonics up to this total wavenumber, triangular
```
Rows are ordered from north to south and columns from west to east, and values are stored row by row. A name defines a
grid completely: two grids are equal if and only if their names are.
"""

from __future__ import annotations

import base64
import functools
import math
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from junctura import _forks
from junctura._grib.checked_messages import POINTS_VARIABLE, points_max
from junctura._xarray.label_attributes import needed
from junctura.errors import Corrupt, InvalidArgument, Unsupported
from junctura.field import Layout, decoded, layout_of
from junctura.field._eccodes import value_of
from junctura.products._regrid.floats import Floats

Kind = Literal["regular_ll", "regular_gg", "reduced_gg", "listed", "points"]
# Points at most this many degrees apart are the same place.
_SAME = 1e-9
# Tolerance for the same row or column, of grids whose names have ten digits.
_SAME_ROW = 1e-6
# Edition 1 of GRIB rounds edges to this.
_ROUNDED = 1e-3
_GAUSSIAN_MAX = 8000
_TRUNCATION_MAX = 8000
_PLACES_MAX = 100_000
# Grids for which ecCodes has a sample; it writes to standard error for others.
_CLASSICAL = (32, 48, 64, 80, 96, 128, 160, 200, 256, 320, 400, 512, 640, 1024, 1280, 2000)


@dataclass(frozen=True)
class Grid:
    """Points on the sphere; degrees. Created by `grid`, or by the functions below; immutable.

    Attributes
    ----------
    name
        The complete definition as text; see the module's page.
    shape
        The shape of an array of its values: rows and columns, or points if the rows differ in length or there are none.
    latitudes, longitudes
        Coordinates of rows and of columns; of all points unless `is_regular`. Longitudes increase eastward from the
        westernmost. NaN if the header of a listed grid does not have them.
    lines
        For a listed grid whose points are in rows: the number of rows, and of points in each; else empty.

    Examples
    --------
    >>> import junctura.products
    >>> europe = junctura.products.grid("1/1@72/-25/34/45")
    >>> europe.shape, europe.edges, europe.is_global
    ((39, 71), (72.0, -25.0, 34.0, 45.0), False)
    >>> europe.crop(60, 0, 50, 10).shape
    (11, 11)

    """

    name: str
    kind: Kind = field(compare=False)
    shape: tuple[int, ...] = field(compare=False)
    latitudes: Floats = field(compare=False, repr=False)
    longitudes: Floats = field(compare=False, repr=False)
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_regular(self) -> bool:
        """Whether all its rows have the same number of columns."""
        return self.kind in ("regular_ll", "regular_gg")

    @property
    def is_global(self) -> bool:
        """Whether it is global in both directions."""
        return self.kind not in ("points", "listed") and "@" not in self.name

    @property
    def whole(self) -> str:
        """The name of the global grid that it is, or is an area of; empty if it is neither."""
        if self.kind in ("points", "listed") or "x" in self.name:
            return ""
        return self.name.partition("@")[0]

    @property
    def goes_around(self) -> bool:
        """Whether the last column of a regular grid is adjacent to the first one."""
        columns = self.shape[-1]
        if not self.is_regular or columns < 2:
            return False
        return bool((self.longitudes[-1] - self.longitudes[0]) * columns / (columns - 1) > 360 - _ROUNDED)

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """North, west, south and east of the area that a regular grid covers.

        The bounds are the outermost rows and columns. A grid that covers all longitudes has no bounds in the west and
        the east, and none in the north and the south if the distance to the pole is less than the distance of two rows.
        """
        north, south = float(self.latitudes[0]), float(self.latitudes[-1])
        west, east = float(self.longitudes[0]), float(self.longitudes[-1])
        if not self.goes_around:
            return north, west, south, east
        between = (north - south) / max(self.shape[0] - 1, 1) + _ROUNDED
        return 90.0 if north + between >= 90 else north, west, -90.0 if south - between <= -90 else south, west + 360

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    @property
    def label(self) -> str:
        """Its name for messages: for a listed grid the kind, since its section is for programs."""
        return self.name.partition(":")[0] if self.kind == "listed" else self.name[:80]

    @property
    def is_located(self) -> bool:
        """Whether the coordinates of its points are known."""
        return self.kind != "listed" or bool(np.isfinite(self.latitudes).all())

    def points(self) -> tuple[Floats, Floats]:
        """Returns latitudes and longitudes of all points in the order of the values."""
        if not self.is_regular:
            return self.latitudes, self.longitudes
        return np.repeat(self.latitudes, self.shape[1]), np.tile(self.longitudes, self.shape[0])

    def crop(self, north: float, west: float, south: float, east: float) -> Grid:
        """Returns the part of a regular grid within an area; `rows_and_columns` returns its indices.

        Raises
        ------
        InvalidArgument
            There are no such points, or the grid is not regular, or the area has two parts of a grid that is not
            cyclic.

        """
        if not self.is_regular:
            raise InvalidArgument(f"grid {self.label}", "it has no rows of equal length: bring it to a grid first")
        rows, columns, longitudes = _within(self, north, west, south, east)
        if self.name == self.whole:
            edges = (north, west, south, east)
            name = f"{self.name}@{'/'.join(_number(edge) for edge in edges)}"
            return Grid(name, self.kind, (len(rows), len(columns)), self.latitudes[rows], longitudes)
        if not self.goes_around and (np.diff(columns) != 1).any():
            raise InvalidArgument(_area(north, west, south, east), f"the grid {self.name} has two parts in it")
        latitudes = self.latitudes[rows]
        if not self.whole:
            return regular_area(len(rows), len(columns), latitudes[0], longitudes[0], latitudes[-1], longitudes[-1])
        return whole_of(self).around(latitudes, longitudes)

    def around(self, latitudes: Floats, longitudes: Floats) -> Grid:
        """Returns the area of a global grid with these rows and columns, with the shortest exact name."""
        north, south = _outward(latitudes[0], 1), _outward(latitudes[-1], -1)
        return self.crop(north, _outward(longitudes[0], -1), south, _outward(longitudes[-1], 1))

    def rows_and_columns(self, area: Grid) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Returns the indices of an area's rows and columns in this grid: ``values[numpy.ix_(rows, columns)]``."""
        if not (self.is_regular and area.is_regular):
            raise InvalidArgument(f"grid {area.label}", f"not an area of {self.label}")
        if area.name == self.name:
            return np.arange(self.shape[0]), np.arange(self.shape[1])
        if self.name == self.whole:
            whole, _, edges = area.name.partition("@")
            if whole != self.name or not edges:
                raise InvalidArgument(f"grid {area.name}", f"not an area of {self.name}")
            north, west, south, east = map(float, edges.split("/"))
            rows, columns, _ = _within(self, north, west, south, east)
            return rows, columns
        rows = np.abs(self.latitudes[:, None] - area.latitudes).argmin(axis=0)
        east_of = np.mod(self.longitudes - area.longitudes[0] + _SAME_ROW, 360) - _SAME_ROW
        columns = np.searchsorted(np.sort(east_of), area.longitudes - area.longitudes[0] - _SAME_ROW)
        columns = np.argsort(east_of, kind="stable")[np.minimum(columns, len(east_of) - 1)]
        apart = np.mod(self.longitudes[columns] - area.longitudes + 180, 360) - 180
        if max(np.abs(self.latitudes[rows] - area.latitudes).max(), np.abs(apart).max()) > _SAME_ROW:
            raise InvalidArgument(f"grid {area.name}", f"not an area of {self.name}")
        return rows, columns

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.name, self.kind, self.shape, self.latitudes, self.longitudes, self.lines)


@dataclass(frozen=True)
class Spectral:
    """Coefficients of spherical harmonics with triangular truncation, as GRIB has them.

    Real and imaginary parts in turns, for each zonal wavenumber m from 0 all total wavenumbers n from m to the
    truncation; normalised so that the mean square of each function over the sphere is 1, without the
    Condon-Shortley sign.

    Examples
    --------
    >>> import junctura.products
    >>> junctura.products.Spectral(63) == junctura.products.grid("T63"), junctura.products.Spectral(63).size
    (True, 4160)

    """

    truncation: int

    @property
    def name(self) -> str:
        return f"T{self.truncation}"

    @property
    def label(self) -> str:
        """Its name, for messages."""
        return self.name

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def size(self) -> int:
        return (self.truncation + 1) * (self.truncation + 2)


def grid(name: str) -> Grid | Spectral:
    """Returns the grid with a name.

    Raises
    ------
    InvalidArgument
        The grid is unknown; the error describes valid names.

    Examples
    --------
    >>> grid("F48").shape, grid("1/1@72/-25/34/45").shape, grid("T63").size
    ((96, 192), (39, 71), 4160)

    """
    found = _grid(name.strip())
    if isinstance(found, Grid):
        _limit(found.name, found.size)
    return found


def whole_of(on: Grid) -> Grid:
    """Returns the global grid that a grid is, or is an area of, regardless of its size.

    Raises
    ------
    InvalidArgument
        The grid does not have the rows and columns of a global grid.

    """
    found = _grid(on.whole) if on.whole else None
    if not isinstance(found, Grid):
        raise InvalidArgument(f"grid {on.label}", "its rows and columns are none of a whole grid")
    return found


@functools.lru_cache(maxsize=256)
def _grid(name: str) -> Grid | Spectral:
    whole, at, rest = name.partition("@")
    if whole == "points":
        return points(_places(name, rest))
    if match := re.fullmatch(r"(\w+):([12]):([\w-]+)", name):
        return _listed(name, match[1])
    if match := re.fullmatch(r"(\d{1,9})x(\d{1,9})", whole):
        return regular_area(int(match[1]), int(match[2]), *_floats(name, rest.split("/"), 4))
    if at:
        found = _grid(whole)
        edges = _floats(name, rest.split("/"), 4)
        if isinstance(found, Spectral):
            _refuse(name, "a spectral field has no area")
        return found.crop(*edges)
    if match := re.fullmatch(r"T(\d{1,4})", whole):
        return spectral(int(match[1]))
    if match := re.fullmatch(r"([FNO])(\d{1,4})", whole):
        make = {"F": regular_gg, "N": reduced_gg, "O": octahedral}[match[1]]
        return make(int(match[2]))
    if match := re.fullmatch(r"R(\d{1,4}):([\d,]+)", whole):
        return reduced_gg(int(match[1]), [int(count) for count in match[2].split(",") if count])
    if "/" in whole:
        return regular_ll(*_floats(name, whole.split("/"), 2))
    return _refuse(name, "names of grids are like 0.5/0.5, F48, N320, O96, T63, 0.5/0.5@72/-25/34/45, points@50.1/8.7")


def regular_ll(dlon: float, dlat: float) -> Grid:
    """Returns a grid with this spacing in degrees, from pole to pole and around the globe."""
    name = f"{_number(dlon)}/{_number(dlat)}"
    columns, rows = _divides(name, 360, dlon), _divides(name, 180, dlat) + 1
    # Areas may be allowed although the global grid has too many points.
    _limit(name, max(columns, rows))
    # The name has ten digits of a third of a degree, but the rows still end at the pole.
    latitudes: Floats = 90 - np.arange(rows, dtype=np.float64) * (180 / (rows - 1))
    longitudes: Floats = np.arange(columns, dtype=np.float64) * (360 / columns)
    return Grid(name, "regular_ll", (rows, columns), latitudes, longitudes)


def regular_area(rows: int, columns: int, north: float, west: float, south: float, east: float) -> Grid:
    """Returns a grid of equidistant rows and columns with these bounds, whose spacing need not divide a circle.

    Raises
    ------
    InvalidArgument
        The bounds are not degrees in this order, or several rows or columns coincide.

    """
    name = f"{rows}x{columns}@{'/'.join(map(_number, (north, west, south, east)))}"
    _check_edges(f"grid {name}", north, west, south, east)
    if min(rows, columns) < 1 or (rows > 1) != (north > south) or (columns > 1) != (east > west) or east - west >= 360:
        _refuse(name, "expected ROWSxCOLUMNS@north/west/south/east, one row where north is south")
    _limit(name, columns * rows)
    north, west, south, east = (float(_number(edge)) for edge in (north, west, south, east))
    return Grid(name, "regular_ll", (rows, columns), np.linspace(north, south, rows), np.linspace(west, east, columns))


def listed_name(kind: str, edition: int, section: bytes) -> str:
    """Returns the name for the grid section of a message, whose kind is ecCodes' name of its template."""
    return f"{kind}:{edition}:{base64.urlsafe_b64encode(zlib.compress(section, 9)).decode().rstrip('=')}"


def stating(name: str) -> bytes:
    """Returns a message with the grid section of a listed grid, and all values 0."""
    _, edition, text = name.partition("#")[0].split(":")
    # Sections of reduced grids have two bytes for each row.
    section = zlib.decompressobj().decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), 1 << 20)
    return _stating(int(edition), section)


def _listed(name: str, kind: str) -> Grid:
    try:
        layout, pole = decoded(stating(name), _layout_and_pole, has_places=True)
    except (ValueError, zlib.error, Corrupt) as error:
        raise InvalidArgument(f"grid {name[:40]}", f"places of points cannot be computed from it: {error}") from error
    size = math.prod(layout.shape)
    found = {key: np.asarray(places, np.float64).reshape(-1) for key, (_, places) in layout.coords.items()}
    if layout.dims == ("latitude", "longitude"):
        rows, columns = layout.shape
        found = {"latitude": np.repeat(found["latitude"], columns), "longitude": np.tile(found["longitude"], rows)}
    elif not found:
        if kind != "unstructured_grid":
            raise Unsupported(f"grid {kind}", "ecCodes cannot compute where its points are")
        found = dict.fromkeys(("latitude", "longitude"), np.full(size, np.nan))
    lines = layout.shape if len(layout.shape) == 2 else ()
    north, east = found["latitude"], found["longitude"]
    if pole is not None and lines and np.ptp(north.reshape(lines), axis=1).max() < _SAME_ROW:
        north, east = _turned_back(north, east, *pole)
    return Grid(name, "listed", (size,), north, east, lines)


def _layout_and_pole(eccodes: Any, handle: int) -> tuple[Layout, tuple[float, float, float] | None]:
    """Returns the coordinates of the points; and the southern pole and the angle of a rotation that ecCodes omits.

    EcCodes 2.50 returns unrotated points for `rotated_gg`, unlike for other rotated grids.
    """
    layout = layout_of(eccodes, handle)
    if value_of(eccodes, handle, "gridType", str) != "rotated_gg":
        return layout, None
    keys = ("latitudeOfSouthernPoleInDegrees", "longitudeOfSouthernPoleInDegrees", "angleOfRotationInDegrees")
    latitude, longitude, angle = (float(value_of(eccodes, handle, key, float) or 0) for key in keys)
    return layout, (latitude, longitude, angle)


def _turned_back(north: Floats, east: Floats, latitude: float, longitude: float, angle: float) -> tuple[Floats, Floats]:
    """Returns the true coordinates of places on a rotated sphere, given the position of its southern pole."""
    if angle:
        raise Unsupported("grid rotated_gg", f"it is turned about its new pole, too, by {angle:g} degrees")
    x, y, z = np.moveaxis(directions(north, east), -1, 0)
    tilt, turn = np.radians(90 + latitude), np.radians(longitude)
    x, z = np.cos(tilt) * x - np.sin(tilt) * z, np.sin(tilt) * x + np.cos(tilt) * z
    x, y = np.cos(turn) * x - np.sin(turn) * y, np.sin(turn) * x + np.cos(turn) * y
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))


def _stating(edition: int, section: bytes) -> bytes:
    """Returns a message with this grid section, and all values 0 (WMO FM 92 GRIB, editions 1 and 2)."""
    if edition == 1:
        product = bytes(
            [0, 0, 28, 128, 98, 0, 255, 128, 130, 100, 1, 244, 20, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0]
        )
        body = product + section + bytes([0, 0, 12, 8]) + bytes(8) + b"7777"
        return b"GRIB" + (8 + len(body)).to_bytes(3, "big") + b"\1" + body
    sections = [
        (1, bytes([0, 98, 0, 0, 4, 0, 1, 7, 228, 1, 1, 0, 0, 0, 0, 1])),
        (4, bytes(13) + bytes([1]) + bytes(4) + bytes([1]) + bytes(5) + bytes([255]) + bytes(5)),
        (5, section[6:10] + bytes(12)),
        (6, bytes([255])),
        (7, b""),
    ]
    made = [(5 + len(content)).to_bytes(4, "big") + bytes([number]) + content for number, content in sections]
    body = b"".join([made[0], section, *made[1:], b"7777"])
    return b"GRIB\0\0\0\2" + (16 + len(body)).to_bytes(8, "big") + body


def regular_gg(n: int) -> Grid:
    """`n` Gaussian rows between pole and equator, with 4 `n` columns."""
    name = f"F{n}"
    _limit(name, 8 * n * n)
    latitudes = gaussian_latitudes(n)
    longitudes: Floats = np.arange(4 * n, dtype=np.float64) * (90 / n)
    return Grid(name, "regular_gg", (2 * n, 4 * n), latitudes, longitudes)


def reduced_gg(n: int, columns: Iterable[int] | None = None) -> Grid:
    """`n` Gaussian rows between pole and equator, with so many columns each; by default those of the classical grid.

    Raises
    ------
    InvalidArgument
        ecCodes does not have the classical grid of this number, or the columns do not match 2 `n` rows.

    """
    latitudes = gaussian_latitudes(n)
    classical = columns is None
    counts = _classical(n) if columns is None else tuple(columns)
    if len(counts) != 2 * n or min(counts, default=0) < 1:
        raise InvalidArgument(f"grid R{n}", f"{len(counts)} rows of columns, expected {2 * n} with one at least each")
    _limit(f"R{n}", sum(counts))
    return _reduced(f"N{n}" if classical or _is_classical(n, counts) else _name_of(n, counts), latitudes, counts)


def octahedral(n: int) -> Grid:
    """`n` Gaussian rows between pole and equator; the first has 20 columns, and each four more than the one before."""
    counts = _octahedral(n)
    _limit(f"O{n}", sum(counts))
    return _reduced(f"O{n}", gaussian_latitudes(n), counts)


def points(places: Iterable[tuple[float, float]]) -> Grid:
    """Places, each with latitude and longitude."""
    listed = [(float(latitude), float(longitude)) for latitude, longitude in places]
    name = f"points@{','.join(f'{_number(latitude)}/{_number(longitude)}' for latitude, longitude in listed)}"
    if not 0 < len(listed) <= _PLACES_MAX:
        raise InvalidArgument("grid points", f"{len(listed)} places, expected 1 to {_PLACES_MAX}")
    for latitude, longitude in listed:
        if not (-90 <= latitude <= 90 and -360 <= longitude <= 360):
            raise InvalidArgument("grid points", f"{latitude}/{longitude} is no latitude/longitude in degrees")
    array = np.array(listed, np.float64)
    return Grid(name, "points", (len(listed),), array[:, 0].copy(), array[:, 1].copy())


def spectral(truncation: int) -> Spectral:
    """Spherical harmonics up to this total wavenumber."""
    if not 0 < truncation <= _TRUNCATION_MAX:
        raise InvalidArgument(f"T{truncation}", f"a truncation is 1 to {_TRUNCATION_MAX}")
    return Spectral(truncation)


def directions(latitudes: Floats, longitudes: Floats) -> Floats:
    """Returns places in degrees as unit vectors, in a last dimension."""
    north, east = np.radians(latitudes), np.radians(longitudes)
    return np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=-1)


@functools.lru_cache(maxsize=16)
def gaussian_latitudes(n: int) -> Floats:
    """Returns the latitudes of 2 `n` Gaussian rows, from north to south."""
    if not 0 < n <= _GAUSSIAN_MAX:
        raise InvalidArgument(f"grid F{n}", f"1 to {_GAUSSIAN_MAX} rows between pole and equator are possible")
    north = np.degrees(np.arcsin(_legendre_zeros(n)))
    latitudes = np.concatenate([north, -north[::-1]])
    latitudes.flags.writeable = False
    return latitudes


def _legendre_zeros(n: int) -> Floats:
    """Returns the positive zeros of the Legendre polynomial of degree 2 `n`, by Newton's method, in decreasing
    order.
    """
    degree = 2 * n
    zeros: Floats = np.cos(np.pi * (np.arange(1, n + 1) - 0.25) / (degree + 0.5))
    # Each iteration doubles the number of correct digits, starting with about six.
    for _ in range(4):
        before, now = np.ones(n), zeros
        for k in range(2, degree + 1):
            before, now = now, ((2 * k - 1) * zeros * now - (k - 1) * before) / k
        zeros = zeros - now * (zeros * zeros - 1) / (degree * (zeros * now - before))
    return zeros


def _reduced(name: str, latitudes: Floats, counts: tuple[int, ...]) -> Grid:
    longitudes = np.concatenate([np.arange(count) * (360 / count) for count in counts])
    return Grid(name, "reduced_gg", (len(longitudes),), np.repeat(latitudes, counts), longitudes)


def _name_of(n: int, counts: tuple[int, ...]) -> str:
    return f"O{n}" if counts == _octahedral(n) else f"R{n}:{','.join(map(str, counts))}"


def _octahedral(n: int) -> tuple[int, ...]:
    north = [20 + 4 * row for row in range(n)]
    return tuple(north + north[::-1])


def _is_classical(n: int, counts: tuple[int, ...]) -> bool:
    try:
        return counts == _classical(n)
    except InvalidArgument:
        return False


@functools.lru_cache(maxsize=16)
@_forks.passage()
def _classical(n: int) -> tuple[int, ...]:
    if n not in _CLASSICAL:
        raise InvalidArgument(f"grid N{n}", f"of the classical reduced grids ecCodes knows {_CLASSICAL}")
    eccodes = needed("eccodes", "products")
    message = eccodes.codes_grib_new_from_samples(f"reduced_gg_pl_{n}_grib2")
    try:
        return tuple(int(count) for count in eccodes.codes_get_array(message, "pl"))
    finally:
        eccodes.codes_release(message)


def _within(
    whole: Grid, north: float, west: float, south: float, east: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats]:
    subject = _area(north, west, south, east)
    _check_edges(subject, north, west, south, east)
    rows = np.flatnonzero((whole.latitudes <= north + _SAME) & (whole.latitudes >= south - _SAME))
    # Distance from the western bound, in columns.
    east_of = np.mod(whole.longitudes - west + _SAME, 360) - _SAME
    columns = np.flatnonzero(east_of <= east - west + _SAME)
    columns = columns[np.argsort(east_of[columns], kind="stable")]
    if not len(rows) or not len(columns):
        raise InvalidArgument(subject, f"the grid {whole.name} has no point in it")
    # The same numbers as those of the global grid, modulo full turns.
    turns = np.rint((west + east_of - whole.longitudes)[columns] / 360)
    return rows, columns, whole.longitudes[columns] + 360 * turns


def _area(north: float, west: float, south: float, east: float) -> str:
    return f"area {_number(north)}/{_number(west)}/{_number(south)}/{_number(east)}"


def check_area(north: float, west: float, south: float, east: float) -> None:
    """Raises `InvalidArgument` if the bounds of an area are invalid."""
    _check_edges(_area(north, west, south, east), north, west, south, east)


def _check_edges(subject: str, north: float, west: float, south: float, east: float) -> None:
    if not (-90 <= south <= north <= 90 and west <= east <= west + 360 and -360 <= west <= 360):
        cause = "expected north/west/south/east in degrees, with south <= north and west <= east <= west + 360"
        if -90 <= south <= north <= 90 and -360 <= east < west <= 360:
            cause += f": across the date line east is {east + 360:g}"
        raise InvalidArgument(subject, cause)


def _outward(edge: float, towards: int) -> float:
    """Returns a bound with few digits that includes the row or column."""
    near = round(edge, 6)
    if abs(near - edge) < 1e-10:
        return near
    return math.ceil(edge * 1000) / 1000 if towards > 0 else math.floor(edge * 1000) / 1000


def _limit(name: str, size: int) -> None:
    """Rejects grids with more points than can be decoded, usually by mistake: 0.01 degrees are 648 million points."""
    if size > (most := points_max()):
        _refuse(name, f"{size} points, at most {most} are possible; {POINTS_VARIABLE} sets the limit")


def _divides(name: str, degrees: int, by: float) -> int:
    count = round(degrees / by) if by > 0 and math.isfinite(by) else 0
    if count < 1 or abs(count * by - degrees) > 1e-6:
        _refuse(name, f"{_number(by)} degrees do not divide {degrees}")
    return count


def _places(name: str, text: str) -> list[tuple[float, float]]:
    pairs = [_floats(name, place.split("/"), 2) for place in text.split(",") if place]
    return [(latitude, longitude) for latitude, longitude in pairs]


def _floats(name: str, words: list[str], count: int) -> list[float]:
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        _refuse(name, f"expected {count} numbers with / between them")
    return numbers


def _number(value: float) -> str:
    return f"{value:.10g}"


def _refuse(name: str, cause: str) -> NoReturn:
    raise InvalidArgument(f"grid {name[:80]}", cause)
