"""Operations that change the grid of fields: regridding, winds from vorticity and divergence, areas."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from junctura._document.located_yaml import Wrong
from junctura._forks import lazy_property
from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._input.grid_coordinates import located
from junctura.products._operations._base import (
    Method,
    Operation,
    Transform,
    check_alike,
    check_known,
    grouped,
    renamed,
)
from junctura.products._recipe.recipe_schema import EDGES
from junctura.products._regrid import grids
from junctura.products._regrid.grids import Grid, Spectral, check_area
from junctura.products._regrid.vector_rotation import ALONG_GRID, PAIRS, turned

# Included in the text of an operation only if given: without it the text is that of earlier versions.
_LATER = ("coordinates", "axes")


@dataclass(frozen=True)
class ToGrid(Operation):
    """Regrids fields; fields on the grid are unchanged.

    Attributes
    ----------
    grid
        Its name.
    method
        ``linear``, ``bilinear``, ``nearest`` or ``conservative``; without effect on spectral fields.
    places
        Names of its points, where these have names; fields get them as the attribute ``places``.
    coordinates
        A file with the places of the points of unstructured grids; see `junctura.products._input.grid_coordinates`.
    axes
        In place of a file, the parameters of fields of latitude and longitude on the same grid.

    """

    name = "grid"
    grid: str
    method: Method = "linear"
    places: tuple[str, ...] = ()
    coordinates: str = ""
    axes: tuple[str, ...] = ()

    @lazy_property
    def text(self) -> str:
        said = {key: value for key, value in dataclasses.asdict(self).items() if value or key not in _LATER}
        return json.dumps({self.name: said}, sort_keys=True, separators=(",", ":"))

    def beside(self, folder: Path) -> ToGrid:
        """Returns the operation with the path of the coordinates file in a folder; raises `Wrong` if there is none."""
        if not self.coordinates:
            return self
        file = (folder / self.coordinates).absolute()
        if not file.is_file():
            raise Wrong(f'there is no file "{file}"', "coordinates")
        return dataclasses.replace(self, coordinates=str(file))

    @property
    def is_alone(self) -> bool:
        return True

    @property
    def on(self) -> Grid:
        """The grid itself."""
        return as_grid(self.grid)

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:
        on, places = self.on, self.places or None
        if self.coordinates:
            fields = [located(field, self.coordinates) for field in fields]
        if self.axes:
            fields = [transform.located(field, *self.axes) for field in fields]
        made = [field if field.on == on else transform.to_grid(field, on, self.method) for field in fields]
        return [field.having(field.values, places=places) for field in made]

    @classmethod
    def read(cls, value: Any) -> ToGrid:
        """Its definition in a recipe."""
        if name := _by_degrees(value):
            return cls(name)
        said = value if isinstance(value, dict) else {}
        method = said.get("method", "linear")
        points = value if isinstance(value, list) else said.get("points")
        made = cls(as_grid(_name_of(value)).name, method) if points is None else cls._of_points(points, method)
        where = said.get("coordinates", "")
        if isinstance(where, dict):
            return dataclasses.replace(made, axes=(where["latitude"], where["longitude"]))
        return dataclasses.replace(made, coordinates=where)

    @classmethod
    def _of_points(cls, points: list[dict[str, Any]], method: Method) -> ToGrid:
        names = tuple(point.get("name", "") for point in points)
        known = [name for name in names if name]
        if len(set(known)) < len(known):
            twice = next(name for index, name in enumerate(known) if name in known[:index])
            raise Wrong(f'two places have the name "{twice}"')
        grid = grids.points((point["latitude"], point["longitude"]) for point in points)
        return cls(grid.name, method, names if known else ())


def _by_degrees(value: Any) -> str:
    """Returns the name of a grid with the spacing of rows and columns in one or two numbers; empty for places."""
    steps = value if isinstance(value, list) else [value]
    numbers = [step for step in steps if isinstance(step, int | float)]
    if not numbers:
        return ""
    if len(numbers) < len(steps) or len(steps) > 2:
        raise Wrong("expected places, or the degrees between columns and between rows as [0.5, 0.25]")
    return grids.regular_ll(numbers[0], numbers[-1]).name


def _name_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if "name" in value:
        return str(value["name"])
    if value["type"] == "regular_ll":
        steps = value["resolution"]
        dlon, dlat = steps if isinstance(steps, list) else (steps, steps)
        return grids.regular_ll(dlon, dlat).name
    return f"{'F' if value['type'] == 'regular_gg' else 'N'}{value['n']}"


def as_grid(name: str) -> Grid:
    """The grid of a name, which is not that of a spectral field."""
    found = grids.grid(name)
    if isinstance(found, Spectral):
        raise InvalidArgument(f"grid {name}", "fields are brought to grids, and this is a truncation")
    return found


@dataclass(frozen=True)
class Winds(Operation):
    """Replaces vorticity (vo) and divergence (d), both spectral, by winds (u, v) on a grid; leaves all else."""

    name = "wind"
    grid: str

    @property
    def is_alone(self) -> bool:
        return True

    @property
    def on(self) -> Grid:
        """The grid itself."""
        return as_grid(self.grid)

    def concerns(self, param: str) -> bool:
        return param in ("vo", "d")

    def params(self, params: tuple[str, ...]) -> tuple[str, ...]:
        check_known(("vo", "d"), params)
        if {"u", "v"} & set(params):
            raise Wrong('"u" and "v" are there already')
        return tuple({"vo": "u", "d": "v"}.get(param, param) for param in params)

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:
        return [made for group in grouped(fields, "param").values() for made in self._winds(group, transform)]

    def _winds(self, group: list[Field], transform: Transform) -> list[Field]:
        by_param = {field.param: field for field in group}
        vo, d = by_param.get("vo"), by_param.get("d")
        if vo is None and d is None:
            return group
        if vo is None or d is None:
            raise InvalidArgument("wind", f"{'vo' if vo is None else 'd'} is missing beside {', '.join(by_param)}")
        made = transform.wind(vo, d, self.on)
        winds = [renamed(field, param, field.values, "m s**-1") for field, param in zip(made, "uv", strict=True)]
        return [*winds, *(field for field in group if field.param not in ("vo", "d"))]


@dataclass(frozen=True)
class Turn(Operation):
    """Rotates vector components along the rows and columns of their grid to east and north; leaves others.

    In recipes it is `wind` of fields that are no vorticity and divergence.
    """

    name = "wind"

    def params(self, params: tuple[str, ...]) -> tuple[str, ...]:
        if not any(east in params and north in params for east, north in PAIRS.items()):
            raise Wrong('expected vorticity and divergence ("vo", "d"), or both components of a wind, as "u" and "v"')
        return params

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [made for group in grouped(fields, "param").values() for made in self._turned(group)]

    def _turned(self, group: list[Field]) -> list[Field]:
        by_param = {field.param.partition(".")[0]: field for field in group}
        made: dict[str, Field] = {}
        for east, north in PAIRS.items():
            pair = [by_param[param] for param in (east, north) if param in by_param]
            if not any(ALONG_GRID in field.attributes for field in pair):
                continue
            if len(pair) < 2:
                missing = north if east in by_param else east
                raise InvalidArgument("wind", f"{missing} is missing beside {pair[0].param}")
            check_alike(pair)
            sign = int(pair[0].attributes.get(ALONG_GRID, 1))
            values = turned(pair[0].values, pair[1].values, pair[0].grid, sign)
            for field, part in zip(pair, values, strict=True):
                made[field.param] = field.having(part, **{ALONG_GRID: None})
        return [made.get(field.param, field) for field in group]


@dataclass(frozen=True)
class Crop(Operation):
    """Keeps the rows and columns of a regular grid within an area; degrees."""

    name = "crop"
    north: float
    west: float
    south: float
    east: float

    @classmethod
    def read(cls, value: dict[str, float] | str) -> Crop:
        """Its definition in a recipe: by names, or in the form of MARS."""
        if isinstance(value, str):
            value = dict(zip(EDGES.keys, map(float, value.split("/")), strict=True))
            EDGES.check(value)
        made = cls(**{edge: float(degrees) for edge, degrees in value.items()})
        check_area(made.north, made.west, made.south, made.east)
        return made

    @property
    def is_alone(self) -> bool:
        return True

    def area(self, grid: Grid) -> Grid:
        """Returns the part of a grid within the area."""
        return grid.crop(self.north, self.west, self.south, self.east)

    def __call__(self, fields: Sequence[Field], transform: Transform) -> list[Field]:  # noqa: ARG002 - none is needed
        return [self._cropped(field) for field in fields]

    def _cropped(self, field: Field) -> Field:
        area = self.area(field.grid)
        rows, columns = field.grid.rows_and_columns(area)
        return field.having(field.values[np.ix_(rows, columns)], area)
