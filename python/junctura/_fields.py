"""The fields of a store as one dataset of xarray's.

```text
  listing ──► a variable for each param ──► a cube: number x time x step x level ──► fields, decoded when they are read
```
The axes of a cube are the values that its fields have in the attributes of their key: they are read from the catalogue,
and no field is touched but the first of each variable, for its grid.
"""

from __future__ import annotations

import datetime
import os
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from junctura import _labels
from junctura._native import Listing, Schema, Snapshot, Store, Stored
from junctura.errors import InvalidArgument, NotFound

Array = npt.NDArray[Any]
# Attributes that tell variables apart, the first that the key has.
_VARIABLE = ("param", "name")
# What some attributes are called among the dimensions.
_CALLED = {"levelist": "level"}
# Of what is missing, so much is named.
_NAMED_MAX = 5
_STEP = re.compile(r"(?:-?\d+[hms]?-)?(-?\d+)(h|m|s)?")


class Fields(BackendEntrypoint):
    """``xarray.open_dataset(store, engine="junctura", selector=...)``."""

    description: ClassVar[str] = "Fields in a store of Junctura's"
    url: ClassVar[str] = ""
    open_dataset_parameters: ClassVar[tuple[str, ...]] = (
        "filename_or_obj",
        "drop_variables",
        "selector",
        "partial",
        "dtype",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is a store's folder, or of a store."""
        if isinstance(filename_or_obj, (str, os.PathLike)):
            return (Path(filename_or_obj) / "store.json").is_file()
        return isinstance(filename_or_obj, (Store, Snapshot, Listing))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        selector: str = "",
        partial: bool = False,
        dtype: npt.DTypeLike | None = None,
    ) -> xarray.Dataset:
        """All fields that a selector matches.

        Parameters
        ----------
        filename_or_obj : path, str, Store, Snapshot or Listing
            A store, by its folder or a URL `file:///...`; or what was found in one, which is taken as it is.
        drop_variables : str or iterable of str, optional
            What to leave out.
        selector : str
            Which fields.
        partial : bool
            Whether values are NaN where a combination of the values of the axes is not there. By default that is an
            error, which names what is missing.
        dtype : optional
            What values of GRIB become; float32 unless told.

        Raises
        ------
        NotFound
            Nothing matches, or combinations are missing.
        InvalidArgument
            The fields do not make one cube for each variable, on one grid: more has to be said in the selector.

        """
        listing = _listed(filename_or_obj, selector)
        if not len(listing):
            raise NotFound(selector, "nothing that is there matches")
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        return _Cubes(listing).dataset(dropped, partial, np.dtype(np.float32 if dtype is None else dtype))


def _listed(given: Any, selector: str) -> Listing:
    if isinstance(given, Listing):
        if selector:
            raise InvalidArgument("selector", "a listing is taken as it is: give the selector to list()")
        return given
    store = given if isinstance(given, (Store, Snapshot)) else Store(given)
    return store.list(selector)


class _Axis(NamedTuple):
    """The values of one dimension, and the place of each object along it; -1 where it has none."""

    values: Array
    places: Array
    attrs: dict[str, str]


class _Grid(NamedTuple):
    """What all fields of a variable are like."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, Any]
    attrs: dict[str, Any]
    is_grib: bool
    dtype: np.dtype[Any]


class _Cubes:
    """Objects by variable and along axes: those of a listing, or of what has columns as a listing has.

    Parameters
    ----------
    listing
        Which there are, and what they mean.
    objects
        By their numbers, when their values are asked for; they are pickled with the dataset.

    """

    def __init__(self, listing: Any, objects: Any = None) -> None:
        self.listing = listing
        self.objects = _Objects(listing) if objects is None else objects
        schemas = listing._schemas
        if len(schemas) > 1:
            names = ", ".join(schema.name for schema in schemas)
            raise InvalidArgument("dataset", f"the objects are of several schemas: {names}")
        self.schema: Schema = schemas[0]
        keys = self.schema.key_attributes
        self.variable = next((name for name in _VARIABLE if name in keys), None)
        self.axes = self._axes([name for name in keys if name != self.variable])

    def _axes(self, names: list[str]) -> dict[str, _Axis]:
        types = self.schema.attributes
        axes = {}
        moments = {name: self._column(name) for name in ("date", "time") if name in names and types[name] == name}
        if len(moments) == 2 and all((places >= 0).all() for _, places in moments.values()):
            names = [name for name in names if name not in moments]
            axes["time"] = _times(moments["date"], moments["time"])
        for name in names:
            values, places = self._column(name)
            if len(values):
                units = {"units": "hPa"} if name == "levelist" and self._is_all("levtype", "pl") else {}
                axes[_CALLED.get(name, name)] = _axis(values, places, types[name], units)
        # As people expect them: members, times, steps, levels.
        order = {name: at for at, name in enumerate(["number", "time", "step", "level"])}
        return dict(sorted(axes.items(), key=lambda item: order.get(item[0], -1)))

    def _column(self, name: str) -> tuple[list[Any], Array]:
        values, numbers = self.listing._column(name)
        return values, np.frombuffer(numbers, np.int32)

    def _is_all(self, name: str, value: str) -> bool:
        return bool(name in self.schema.attributes and self.listing._column(name)[0] == [value])

    def dataset(self, dropped: set[str], partial: bool, dtype: np.dtype[Any]) -> xarray.Dataset:
        variables, coords, attrs = {}, self._coordinates(), self._constants()
        grids: dict[str, tuple[str, Any]] = {}
        for name, members in self._variables():
            if name in dropped:
                continue
            dims, table = self._table(name, members, partial)
            grid = _grid(self.listing[int(members[0])], dtype)
            extents = {f"extent of {dim}": extent for dim, extent in zip(grid.dims, grid.shape, strict=True)}
            for what, found in {**extents, **grid.coords}.items():
                known = grids.setdefault(what, (name, found))
                if not _same(known[1], found):
                    cause = f"{known[0]} and {name} have different grids, by their {what}: choose by the selector"
                    raise InvalidArgument("dataset", cause)
            coords.update(grid.coords)
            values = _Values(self.objects, table, grid)
            chunks = dict.fromkeys(dims, 1) | dict(zip(grid.dims, grid.shape, strict=True))
            alone = {
                axis_name: _plain(axis.values[0])
                for axis_name, axis in self.axes.items()
                if len(axis.values) == 1 and axis_name not in coords and axis_name not in attrs
                if axis.places[members[0]] == 0
            }
            variables[name] = xarray.Variable(
                (*dims, *grid.dims),
                indexing.LazilyIndexedArray(values),
                {**grid.attrs, **alone},
                {"preferred_chunks": chunks, "dtype": values.dtype},
            )
        data = xarray.Dataset(variables, coords, attrs)
        if _is_kind(data, "time", "M") and _is_kind(data, "step", "m"):
            data = data.assign_coords(valid_time=data["time"] + data["step"])
        return data

    def _variables(self) -> list[tuple[str, Array]]:
        if self.variable is None:
            return [("data", np.arange(len(self.listing)))]
        names, numbers = self._column(self.variable)
        return [(str(name), np.flatnonzero(numbers == at)) for at, name in enumerate(names)]

    def _coordinates(self) -> dict[str, Any]:
        """The axes with several values, and those with one that all objects have, but for words."""
        coords: dict[str, Any] = {}
        for name, axis in self.axes.items():
            if len(axis.values) > 1:
                coords[name] = xarray.Variable(name, axis.values, axis.attrs)
            elif axis.values.dtype.kind not in "OU" and (axis.places == 0).all():
                coords[name] = xarray.Variable((), axis.values[0], axis.attrs)
        return coords

    def _constants(self) -> dict[str, Any]:
        """What all objects have in common, in words."""
        alike = {
            name: _plain(axis.values[0])
            for name, axis in self.axes.items()
            if len(axis.values) == 1 and axis.values.dtype.kind in "OU" and (axis.places == 0).all()
        }
        return {**alike, "Conventions": "CF-1.7"}

    def _table(self, name: str, members: Array, partial: bool) -> tuple[list[str], Array]:
        """The dimensions of a variable, and for each place in its cube the object that is there; -1: none."""
        dims, places = [], []
        for dim, axis in self.axes.items():
            along = axis.places[members]
            if len(axis.values) > 1 and (along >= 0).any():
                if (along < 0).any():
                    cause = f"some objects of {name} have no {dim}, and others have: choose by the selector"
                    raise InvalidArgument("dataset", cause)
                dims.append(dim)
                places.append(along)
        shape = tuple(len(self.axes[dim].values) for dim in dims)
        table = np.full(shape, -1, np.int64)
        flat = np.ravel_multi_index(places, shape) if dims else np.zeros(len(members), np.int64)
        if len(np.unique(flat)) < len(flat):
            raise InvalidArgument("dataset", f"several objects of {name} are at one place: choose by the selector")
        table.reshape(-1)[flat] = members
        missing = np.argwhere(table < 0)
        if len(missing) and not partial:
            raise NotFound(name, self._missing(dims, missing))
        return dims, table

    def _missing(self, dims: list[str], missing: Array) -> str:
        def named(place: Array) -> str:
            values = (f"{dim}={_asked(self.axes[dim].values[at])}" for dim, at in zip(dims, place, strict=True))
            return f"{{{','.join(values)}}}"

        first = ", ".join(named(place) for place in missing[:_NAMED_MAX])
        more = f" and {len(missing) - _NAMED_MAX} more" if len(missing) > _NAMED_MAX else ""
        return f"missing: {first}{more}; partial=True has NaN there"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else str(value)


def _asked(value: Any) -> str:
    """A value in words that a selector takes: steps in hours, minutes or seconds."""
    if not isinstance(value, np.timedelta64):
        return str(value)
    seconds = int(value.astype("timedelta64[s]").astype(np.int64))
    size, unit = next((size, unit) for size, unit in ((3600, ""), (60, "m"), (1, "s")) if seconds % size == 0)
    return f"{seconds // size}{unit}"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return bool(one[0] == other[0] and np.array_equal(one[1], other[1]))
    return bool(np.array_equal(one, other))


def _is_kind(data: xarray.Dataset, name: str, kind: str) -> bool:
    return name in data.coords and data[name].dtype.kind == kind


def _sorted(values: Array, places: Array, attrs: dict[str, str] | None = None) -> _Axis:
    """In the order of the values, each once."""
    unique, numbers = np.unique(values, return_inverse=True)
    numbers = np.append(numbers.reshape(-1), -1)
    return _Axis(unique, numbers[places], attrs or {})


def _axis(values: list[Any], places: Array, kind: str, attrs: dict[str, str]) -> _Axis:
    if kind == "step":
        lengths = [_STEP.fullmatch(value) for value in values]
        seconds = {"h": 3600, "m": 60, "s": 1, None: 3600}
        ends = [int(length[1]) * seconds[length[2]] for length in lengths if length is not None]
        # Of a range of steps, its end, where that tells them apart.
        if len(set(ends)) == len(values):
            return _sorted(np.array(ends, "timedelta64[s]").astype("timedelta64[ns]"), places)
    if kind == "date":
        return _sorted(np.array([_day(value) for value in values], "datetime64[ns]"), places)
    if kind in ("integer", "decimal", "float"):
        is_whole = all(isinstance(value, int) for value in values)
        return _sorted(np.array(values, np.int64 if is_whole else np.float64), places, attrs)
    return _sorted(np.array([str(value) for value in values]), places)


def _day(text: str) -> datetime.datetime:
    return datetime.datetime.strptime(text, "%Y%m%d")


def _times(dates: tuple[list[Any], Array], times: tuple[list[Any], Array]) -> _Axis:
    """Days and times of day as moments."""
    days = np.array([_day(text) for text in dates[0]], "datetime64[ns]")
    hours = [(text.ljust(6, "0")[:2], text.ljust(6, "0")[2:4], text.ljust(6, "0")[4:6]) for text in times[0]]
    seconds = np.array([int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in hours], "timedelta64[s]")
    moments = days[dates[1]] + seconds[times[1]].astype("timedelta64[ns]")
    unique, places = np.unique(moments, return_inverse=True)
    return _Axis(unique, places.reshape(-1), {"standard_name": "forecast_reference_time"})


def _grid(obj: Any, dtype: np.dtype[Any]) -> _Grid:
    """What an object is like, and by that all of its variable."""
    about = obj.attributes
    attrs = {name: str(about[of]) for name, of in (("units", "units"), ("long_name", "name")) if of in about}
    message = None if "dtype" in about else _labels.grib(obj)
    if message is None:
        values = obj.array()
        dims = _labels.dims_of(about, values.ndim)
        return _Grid(tuple(dims), values.shape, {}, attrs, False, values.dtype)
    (dims, shape, coords), described = _labels.decoded(message, _of_grid, has_places=True)
    attrs = {**described, **attrs}
    for name, units in (("latitude", "degrees_north"), ("longitude", "degrees_east")):
        if name in coords:
            given = coords[name]
            of, along = given if isinstance(given, tuple) else (name, given)
            coords[name] = (of, along, {"units": units, "standard_name": name})
    return _Grid(tuple(dims), shape, coords, attrs, True, dtype)


def _of_grid(eccodes: Any, message: Any) -> tuple[_labels.Layout, dict[str, str]]:
    return _labels.layout_of(eccodes, message), _described(eccodes, message)


def _described(eccodes: Any, message: Any) -> dict[str, str]:
    keys = {"long_name": "name", "units": "units", "standard_name": "cfName"}
    found = {name: eccodes.codes_get_string(message, key) for name, key in keys.items()}
    return {name: text for name, text in found.items() if text not in ("unknown", "~", "")}


class _Objects:
    """The objects of a listing, by their numbers; pickled by what they are, and found again in the same store."""

    def __init__(self, listing: Listing) -> None:
        self._listing: Listing | None = listing
        self._saved: tuple[Path | str, list[tuple[str, int]]] | None = None
        self._found: list[Stored] = []
        self._lock = threading.Lock()

    def __getitem__(self, number: int) -> Stored:
        if self._listing is not None:
            return self._listing[number]
        with self._lock:
            if not self._found:
                self._find()
        return self._found[number]

    def _find(self) -> None:
        place, keys = self._saved or ("", [])
        listing = Store(place).list(all_versions=True)
        there = {key: number for number, key in enumerate(_named(listing))}
        try:
            self._found = [listing[there[key]] for key in keys]
        except KeyError as error:
            raise NotFound(str(error.args[0]), f"it is not in {place} any more") from error

    def __getstate__(self) -> dict[str, Any]:
        listing = self._listing
        if listing is not None:
            return {"saved": (listing._place, _named(listing))}
        return {"saved": self._saved}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._listing, self._saved = None, state["saved"]
        self._found, self._lock = [], threading.Lock()


def _named(listing: Listing) -> list[tuple[str, int]]:
    return list(zip(listing.keys(), (obj.commit for obj in listing), strict=True))


class _Values(BackendArray):
    """The values of a variable, read when they are asked for."""

    def __init__(self, objects: Any, table: Array, grid: _Grid) -> None:
        self._objects = objects
        self._table = table
        # Coordinates need not travel with the values.
        self._grid = grid._replace(coords={}, attrs={})
        self.shape = (*table.shape, *grid.shape)
        has_nan = grid.dtype.kind == "f" or (table >= 0).all()
        self.dtype = grid.dtype if has_nan else np.dtype(np.float64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Array:
        array: Array = indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)
        return array

    def _read(self, key: tuple[Any, ...]) -> Array:
        outer, inner = key[: self._table.ndim], key[self._table.ndim :]
        chosen = np.asarray(_outer(self._table, outer))
        shape = _outer(np.broadcast_to(np.False_, self._grid.shape), inner).shape
        values = np.empty((chosen.size, *shape), self.dtype)
        for at, number in enumerate(chosen.reshape(-1)):
            values[at] = np.nan if number < 0 else _outer(self._field(int(number)), inner)
        return values.reshape(chosen.shape + shape)

    def _field(self, number: int) -> Array:
        obj = self._objects[number]
        values: Array
        if not self._grid.is_grib:
            values = obj.array()
        else:
            message = _labels.grib(obj)
            if message is None:
                raise InvalidArgument(obj.key, "it is no GRIB message, and the first of its variable is one")
            values = _labels.decoded(message, _labels.values_of)
        if values.size != np.prod(self._grid.shape, dtype=np.int64):
            cause = f"it has {values.size} values, where the first of its variable has {self._grid.shape}"
            raise InvalidArgument(obj.key, cause)
        return values.reshape(self._grid.shape)


def _outer(array: Array, key: tuple[Any, ...]) -> Array:
    """Indexes one axis after the other."""
    axis = 0
    for part in key:
        array = array[(*[slice(None)] * axis, part)]
        axis += not isinstance(part, (int, np.integer))
    return array
