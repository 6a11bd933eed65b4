"""The fields of a store as an xarray dataset.

```text
  listing ──► a variable for each param ──► a cube: number x time x step x level ──► fields, decoded when they are read
```
The axes of a cube are the values of its fields in the attributes of their key: they are read from the catalogue,
without reading any field except the first of each variable, for its grid.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from junctura import _forks, field
from junctura._native import Listing, Schema, Snapshot, Store, Stored
from junctura._xarray import label_attributes
from junctura._xarray.cube_axes import Column, CubeAxis, are_days, axis_of, base_times, members
from junctura._xarray.derived_attributes import Following, following
from junctura.errors import InvalidArgument, NotFound

Array = npt.NDArray[Any]
# Attributes that separate variables; the first one in the key is used.
_VARIABLE = ("param", "name")
# Dimension names of some attributes.
_CALLED = {"levelist": "level"}
# Maximum number of missing objects in an error.
_NAMED_MAX = 5
# Attributes that determine the kind of grid of an object, without access to its payload.
_FINGERPRINT = "md5GridSection"
_OF_GRIDS = ("gridType", "points", _FINGERPRINT)


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
        "variable",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is the folder of a store, or within one."""
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
        variable: str | None = None,
    ) -> xarray.Dataset:
        """Opens all fields that a selector matches.

        Parameters
        ----------
        filename_or_obj : path, str, Store, Snapshot or Listing
            A store, its folder or a URL `file:///...`; or the objects of a snapshot or listing, which are used as they
            are.
        drop_variables : str or iterable of str, optional
            Variables to omit.
        selector : str
            Selector of the fields.
        partial : bool
            Whether values are NaN if a combination of the values of the axes is missing. By default that is an error,
            which names the missing combinations.
        dtype : optional
            The type of decoded GRIB values. Default: float32.
        variable : str, optional
            The attribute of the key whose values are the names of the variables. Default: `param`, else `name`; in a
            schema without these, all fields are one variable, `data`.

        Raises
        ------
        NotFound
            Nothing matches, or combinations are missing.
        InvalidArgument
            The fields do not form one cube per variable, on one grid: a more specific selector is needed. Or the key
            has no such attribute.

        """
        listing = _listed(filename_or_obj, selector)
        if not len(listing):
            raise NotFound(selector, "nothing that is there matches")
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        return CubeBuilder(listing, variable=variable).dataset(
            dropped, partial, np.dtype(np.float32 if dtype is None else dtype)
        )


def _listed(given: Any, selector: str) -> Listing:
    if isinstance(given, Listing):
        if selector:
            raise InvalidArgument("selector", "a listing is taken as it is: give the selector to list()")
        return given
    store = given if isinstance(given, (Store, Snapshot)) else Store(given)
    return store.list(selector)


class _Grid(NamedTuple):
    """The common properties of all fields of a variable."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    attrs: dict[str, Any]
    dtype: np.dtype[Any]
    # For GRIB: the layout of the first field, and the octets of its grid section.
    where: field.Placed | None = None
    octets: bytes = b""
    # The key of the first field.
    identity: Mapping[str, Any] | None = None
    # For an array with labels: its array coordinates.
    along: Mapping[str, Any] | None = None

    @property
    def coords(self) -> dict[str, Any]:
        return dict(self.along or {}) if self.where is None else self.where.layout.labelled()


class CubeBuilder:
    """Objects by variable and along axes: from a listing, or from an object with the same columns.

    Parameters
    ----------
    listing
        The objects, and their attributes.
    objects
        The objects by position, when their values are read; pickled with the dataset.
    variable
        The attribute whose values are the names of the variables.

    """

    def __init__(self, listing: Any, objects: Any = None, variable: str | None = None) -> None:
        self.listing = listing
        self.objects = _ListedObjects(listing) if objects is None else objects
        schemas = listing._schemas
        if len(schemas) > 1:
            names = ", ".join(schema.name for schema in schemas)
            raise InvalidArgument("dataset", f"the objects are of several schemas: {names}")
        self.schema: Schema = schemas[0]
        self._columns: dict[str, Column] = {}
        # By the octets of their grid section.
        self._placed: dict[bytes, field.Placed] = {}
        keys = self.schema.key_attributes
        if variable is not None and variable not in keys:
            raise self._no_variable(variable)
        self.variable = variable or next((name for name in _VARIABLE if name in keys), None)
        self.axes = self._axes([name for name in keys if name != self.variable])

    def _no_variable(self, variable: str) -> InvalidArgument:
        keys = self.schema.key_attributes
        of = next((name for name in keys if variable in map(str, self._column(name)[0])), None)
        if of is None:
            near = difflib.get_close_matches(variable, keys, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            cause = f"the key of the schema {self.schema.name} has {', '.join(keys)}, and not {variable}{meant}"
        else:
            cause = (
                f"{variable} is a value of {of}: name the attribute whose values are the variables, variable={of!r}, "
                f"or select the fields by {of}={variable}"
            )
        return InvalidArgument("variable", cause)

    def _axes(self, names: list[str]) -> dict[str, CubeAxis]:
        types, declared = self.schema.attributes, label_attributes.units_of(self.schema)
        columns = {name: self._column(name) for name in names}
        axes = self._base_times(columns)
        if "number" in columns and "type" in columns:
            columns["number"], kinds = members(columns["number"], columns["type"])
            if kinds is None:
                del columns["type"]
        for name, column in columns.items():
            if len(column[0]):
                unit = "hPa" if name == "levelist" and self._is_all("levtype", "pl") else declared.get(name)
                units = {"units": unit} if unit else {}
                axes[_CALLED.get(name, name)] = axis_of(name, column, types[name], units)
        # In the usual order: members, times, steps, levels.
        order = {name: at for at, name in enumerate(["number", "time", "step", "level"])}
        return dict(sorted(axes.items(), key=lambda item: order.get(item[0], -1)))

    def _base_times(self, columns: dict[str, Column]) -> dict[str, CubeAxis]:
        """Returns the axis of base times, whose columns are removed; for hindcasts the day is ``hdate``."""
        types = self.schema.attributes
        if "time" not in columns or types["time"] != "time":
            return {}
        for name in ("hdate", "date"):
            has_all = name in columns and types[name] == "date" and bool((columns[name][1] >= 0).all())
            if has_all and are_days(columns[name][0]):
                return {"time": base_times((name, columns.pop(name)), columns.pop("time"))}
        return {}

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            values, numbers = self.listing._column(name)
            self._columns[name] = values, np.frombuffer(numbers, np.int32)
        return self._columns[name]

    def _is_all(self, name: str, value: str) -> bool:
        return bool(name in self.schema.attributes and self._column(name)[0] == [value])

    def dataset(self, dropped: set[str], partial: bool, dtype: np.dtype[Any]) -> xarray.Dataset:
        chosen = {name: numbers for name, numbers in self._variables() if name not in dropped}
        followed = following(self.axes, chosen)
        variables, coords, attrs = {}, self._coordinates(followed), self._constants()
        grids: dict[str, tuple[str, _Grid]] = {}
        levels: dict[str, field.Level | None] = {}
        for name, numbers in chosen.items():
            dims, table = self._table(name, numbers, followed, partial)
            grid = self._grid(int(numbers[0]), dtype)
            self._check_grids(name, numbers, table, grid)
            self._check_between(name, grid, grids)
            coords.update(grid.coords)
            values = _Values(self.objects, table, grid)
            chunks = dict.fromkeys(dims, 1) | dict(zip(grid.dims, grid.shape, strict=True))
            alone = {
                axis_name: _plain(axis.values[0])
                for axis_name, axis in self.axes.items()
                if len(axis.values) == 1 and axis_name not in coords and axis_name not in attrs
                if (axis.places[numbers] == 0).all()
            }
            levels[name] = self._level(numbers, grid)
            variables[name] = xarray.Variable(
                (*dims, *grid.dims),
                indexing.LazilyIndexedArray(values),
                {**grid.attrs, **alone, **followed.attrs.get(name, {})},
                {"preferred_chunks": chunks, "dtype": values.dtype},
            )
        _add_levels(levels, variables, coords)
        self._add_valid_time(coords)
        return xarray.Dataset(variables, coords, attrs)

    def _add_valid_time(self, coords: dict[str, Any]) -> None:
        # Monthly means of forecasts have a month instead of the step.
        is_by_step = {"time", "step"} <= coords.keys() and "fcmonth" not in self.axes
        if is_by_step and (seconds := self.axes["step"].seconds) is not None:
            base, step = coords["time"], coords["step"]
            if base.dtype.kind == "M":
                ends = seconds.astype("timedelta64[s]").reshape(step.shape)
                valid = field.valid_times(base.values.reshape(base.shape + (1,) * step.ndim), ends)
                coords["valid_time"] = xarray.Variable((*base.dims, *step.dims), valid)

    def _level(self, numbers: Array, grid: _Grid) -> field.Level | None:
        """Returns the height or depth of a variable whose fields have no level in their key."""
        level = None if grid.where is None else grid.where.level
        if level is None or level.attrs is None:
            return None
        has_axis = "level" in self.axes and bool((self.axes["level"].places[numbers] >= 0).any())
        return None if has_axis else level

    def _grid(self, number: int, dtype: np.dtype[Any]) -> _Grid:
        """Returns the properties of an object, and so of all objects of its variable."""
        obj = self.listing[number]
        about = obj.attributes
        attrs = {name: str(about[of]) for name, of in (("units", "units"), ("long_name", "name")) if of in about}
        message = None if "dtype" in about else field.message_of(obj)
        if message is None:
            array = label_attributes.to_xarray(obj)
            dims = tuple(map(str, array.dims))
            return _Grid(dims, array.shape, {**array.attrs, **attrs}, array.dtype, along=_along(array))
        octets = field.octets_of(message)
        if octets in self._placed:
            level, described = field.decoded(message, _of_parameter)
            where = self._placed[octets]._replace(level=level)
        else:
            where, described = field.decoded(message, _of_field, has_places=True)
            self._placed[octets] = where
        identity = {name: about[name] for name in (*self.schema.key_attributes, *_OF_GRIDS) if name in about}
        layout = where.layout
        return _Grid(layout.dims, layout.shape, {**described, **attrs}, dtype, where, octets, identity)

    def _check_grids(self, name: str, numbers: Array, table: Array, grid: _Grid) -> None:
        """Raises InvalidArgument if fields of a variable are known to be on different grids.

        It compares the catalogue entries of all fields. If the catalogue lacks the fingerprints of grids, as for
        objects archived without `junctura store archive`, it also compares the headers at the ends of each axis;
        `_Values` compares each field that is read.
        """
        if grid.where is None:
            return
        for attribute in _OF_GRIDS:
            if attribute in self.schema.attributes:
                along, firsts = np.unique(self._column(attribute)[1][numbers], return_index=True)
                # One grid may be stated in different octets.
                for number in numbers[np.sort(firsts)][1:]:
                    self._check_grid(name, int(number), grid)
                if attribute == _FINGERPRINT and along[0] >= 0:
                    return
        for axis, extent in enumerate(table.shape):
            end = tuple(extent - 1 if at == axis else 0 for at in range(table.ndim))
            if table[end] >= 0 and table[end] != numbers[0]:
                self._check_grid(name, int(table[end]), grid)

    def _check_grid(self, name: str, number: int, grid: _Grid) -> None:
        obj = self.listing[number]
        message = None if "dtype" in obj.attributes else field.message_of(obj)
        if message is not None and field.octets_of(message) != grid.octets:
            found = field.decoded(message, field.grid_of)
            if grid.where is not None and not grid.where.grid.is_same(found):
                _refuse("dataset", name, (grid, found), obj.attributes)

    def _check_between(self, name: str, grid: _Grid, known: dict[str, tuple[str, _Grid]]) -> None:
        """Raises InvalidArgument if a variable has a dimension or coordinate of another one, and is on another grid."""
        extents = dict(zip(grid.dims, grid.shape, strict=True))
        for dim in {*grid.dims, *grid.coords}:
            other_name, other = known.setdefault(dim, (name, grid))
            if other.where is not None and grid.where is not None:
                is_same = other.octets == grid.octets or other.where.grid.is_same(grid.where.grid)
                if not is_same:
                    ours, theirs = other.where.grid.compared(grid.where.grid)
                    cause = f"{other_name} and {name} have different grids, {ours} and {theirs}: choose by the selector"
                    variable = "" if self.variable is None else f", as {self.variable}={other_name}"
                    raise InvalidArgument("dataset", cause + variable)
            elif dict(zip(other.dims, other.shape, strict=True)).get(dim) != extents.get(dim):
                cause = (
                    f"{other_name} and {name} have different grids, by their extent of {dim}: choose by the selector"
                )
                raise InvalidArgument("dataset", cause)
            elif not _same(other.coords.get(dim), grid.coords.get(dim)):
                cause = f"{other_name} and {name} have different grids, by their {dim}: choose by the selector"
                raise InvalidArgument("dataset", cause)

    def _variables(self) -> list[tuple[str, Array]]:
        if self.variable is None:
            return [("data", np.arange(len(self.listing)))]
        names, numbers = self._column(self.variable)
        return [(str(name), np.flatnonzero(numbers == at)) for at, name in enumerate(names)]

    def _coordinates(self, followed: Following) -> dict[str, Any]:
        """Returns the axes with several values, and single-valued ones that all objects have, except words."""
        coords: dict[str, Any] = {}
        for name, axis in self.axes.items():
            if name in followed.coords:
                coords[name] = xarray.Variable(*followed.coords[name], axis.attrs)
            elif len(axis.values) > 1 and not followed.has(name):
                coords[name] = xarray.Variable(name, axis.values, axis.attrs)
            elif axis.values.dtype.kind not in "OU" and (axis.places == 0).all():
                coords[name] = xarray.Variable((), axis.values[0], axis.attrs)
        return coords

    def _constants(self) -> dict[str, Any]:
        """Describes the common attributes of all objects."""
        alike = {
            name: _plain(axis.values[0])
            for name, axis in self.axes.items()
            if len(axis.values) == 1 and axis.values.dtype.kind in "OU" and (axis.places == 0).all()
        }
        return {**alike, "Conventions": "CF-1.7"}

    def _table(self, name: str, members: Array, followed: Following, partial: bool) -> tuple[list[str], Array]:
        """Returns the dimensions of a variable, and for each position in its cube the object there; -1: none."""
        dims, places = [], []
        for dim, axis in self.axes.items():
            along = axis.places[members]
            if len(axis.values) > 1 and not followed.has(dim) and (along >= 0).any():
                if (along < 0).any():
                    cause = f"some objects of {name} have no {dim}, and others have"
                    raise InvalidArgument("dataset", f"{cause}: choose by the selector{_as_having(axis)}")
                dims.append(dim)
                places.append(along)
        shape = tuple(len(self.axes[dim].values) for dim in dims)
        table = np.full(shape, -1, np.int64)
        flat = np.ravel_multi_index(places, shape) if dims else np.zeros(len(members), np.int64)
        if len(np.unique(flat)) < len(flat):
            apart = (axis for axis in self.axes.values() if len(np.unique(axis.places[members] >= 0)) == 2)
            advice = _as_having(next(apart, None))
            raise InvalidArgument(
                "dataset", f"several objects of {name} are at one place: choose by the selector{advice}"
            )
        table.reshape(-1)[flat] = members
        missing = np.argwhere(table < 0)
        if len(missing) and not partial:
            raise NotFound(name, self._missing(dims, missing))
        return dims, table

    def _missing(self, dims: list[str], missing: Array) -> str:
        def named(place: Array) -> str:
            values = (self.axes[dim].words[at] for dim, at in zip(dims, place, strict=True))
            return f"{{{','.join(values)}}}"

        first = ", ".join(named(place) for place in missing[:_NAMED_MAX])
        more = f" and {len(missing) - _NAMED_MAX} more" if len(missing) > _NAMED_MAX else ""
        return f"missing: {first}{more}; partial=True has NaN there"


def _as_having(axis: CubeAxis | None) -> str:
    """Returns the selectors of objects with a position on an axis, and of those without."""
    if axis is None:
        return ""
    attribute = axis.words[0].partition("=")[0]
    return f", as exists({attribute}) or not exists({attribute})"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else str(value)


def _add_levels(
    levels: Mapping[str, field.Level | None], variables: Mapping[str, xarray.Variable], coords: dict[str, Any]
) -> None:
    """Heights and depths: a coordinate where all variables have the same, otherwise attributes of variables."""
    distinct = set(levels.values())
    for name, level in levels.items():
        if level is None:
            continue
        if len(distinct) == 1:
            coords[level.kind] = xarray.Variable((), level.value, level.attrs)
        else:
            variables[name].attrs[level.kind] = level.value


def _refuse(what: str, name: str, grids: tuple[_Grid, field.Grid], attributes: Mapping[str, Any]) -> NoReturn:
    """Describes both grids, and the keys that distinguish the fields on them."""
    first, found = grids
    assert first.where is not None
    ours, theirs = first.where.grid.compared(found)
    known = first.identity or {}
    apart = next((key for key in known if key in attributes and attributes[key] != known[key]), None)
    choice = "" if apart is None else f", as {apart}={known[apart]} or {apart}={attributes[apart]}"
    if apart != _FINGERPRINT and _FINGERPRINT in known:
        choice += f"; {_FINGERPRINT}={known[_FINGERPRINT]} has all on the first grid"
    raise InvalidArgument(
        what, f"{name} has fields on different grids, {ours} and {theirs}: choose by the selector{choice}"
    )


def _same(one: Any, other: Any) -> bool:
    """Whether two coordinates have the same dimensions and values, missing ones among them; one may be absent."""
    if one is None or other is None:
        return True
    ours, theirs = np.asarray(one[1]), np.asarray(other[1])
    if tuple(one[0]) != tuple(other[0]) or ours.shape != theirs.shape:
        return False
    return bool(np.all((ours == theirs) | ((ours != ours) & (theirs != theirs))))


def _along(array: xarray.DataArray) -> dict[str, Any]:
    """Returns the array coordinates of an array."""
    return {
        str(name): (coordinate.dims, coordinate.values, coordinate.attrs)
        for name, coordinate in array.coords.items()
        if coordinate.ndim
    }


def _of_field(eccodes: Any, message: Any) -> tuple[field.Placed, dict[str, str]]:
    return field.placed(eccodes, message), _described(eccodes, message)


def _of_parameter(eccodes: Any, message: Any) -> tuple[field.Level | None, dict[str, str]]:
    return field.level_of(eccodes, message), _described(eccodes, message)


def _described(eccodes: Any, message: Any) -> dict[str, str]:
    keys = {"long_name": "name", "units": "units", "standard_name": "cfName"}
    found = {name: eccodes.codes_get_string(message, key) for name, key in keys.items()}
    return {name: text for name, text in found.items() if text not in ("unknown", "~", "")}


class _ListedObjects:
    """The objects of a listing, by position; pickled by key, and found again in the same store."""

    def __init__(self, listing: Listing) -> None:
        self._listing: Listing | None = listing
        self._saved: tuple[Path | str, list[tuple[str, int]]] | None = None
        self._found: list[Stored] = []
        self._lock = _forks.Lock()

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
        self._found, self._lock = [], _forks.Lock()


def _named(listing: Listing) -> list[tuple[str, int]]:
    return list(zip(listing.keys(), (obj.commit for obj in listing), strict=True))


class _Values(BackendArray):
    """The values of a variable, read on demand."""

    def __init__(self, objects: Any, table: Array, grid: _Grid) -> None:
        self._objects = objects
        self._table = table
        # Coordinates need not travel with the values.
        where = grid.where and grid.where._replace(layout=grid.where.layout._replace(coords={}))
        self._grid = grid._replace(where=where, attrs={})
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
        where = self._grid.where
        if where is None:
            values: Array = obj.array()
        else:
            message = field.message_of(obj)
            if message is None:
                raise InvalidArgument(obj.key, "it is no GRIB message, and the first of its variable is one")
            if field.octets_of(message) == self._grid.octets:
                values = where.layout.arranged(field.values_in(message, self._grid.dtype))
            else:
                values = self._elsewhere(obj, message, where)
        if values.size != np.prod(self._grid.shape, dtype=np.int64):
            cause = f"it has {values.size} values, where the first of its variable has {self._grid.shape}"
            raise InvalidArgument(obj.key, cause)
        return values.reshape(self._grid.shape)

    def _elsewhere(self, obj: Any, message: bytes, where: field.Placed) -> Array:
        """Returns the values of a message whose grid section has other octets than that of the first field."""
        grid = field.decoded(message, field.grid_of)
        if not where.grid.is_same(grid):
            _refuse(obj.key, "its variable", (self._grid, grid), obj.attributes)
        values, order = field.decoded(message, field.ordered)
        return where.layout._replace(order=order).arranged(values)


def _outer(array: Array, key: tuple[Any, ...]) -> Array:
    """Indexes one axis after another."""
    axis = 0
    for part in key:
        array = array[(*[slice(None)] * axis, part)]
        axis += not isinstance(part, (int, np.integer))
    return array
