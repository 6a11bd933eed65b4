"""The fields of a store as an xarray dataset.

```text
  listing ──► a variable for each param ──► a cube: number x time x step x level ──► fields, decoded when they are read
```
The axes of a cube are the values of its fields in the attributes of their key: they are read from the catalogue,
without reading any field except the first of each variable, for its grid.
"""

from __future__ import annotations

import difflib
import json
import os
import re
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
from junctura._xarray import alike_labels, label_attributes, label_container
from junctura._xarray.alike_labels import KnownLabels
from junctura._xarray.cube_axes import Column, CubeAxis, are_days, axis_of, base_times, members
from junctura._xarray.derived_attributes import Following, following
from junctura._xarray.described_attributes import CubeTable, described
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
# Attributes that state the labels of an array, without access to its payload.
_OF_ARRAYS = ("dims", "dtype", "shape")
# The value where no object is, by the kind of dtype.
_NOTHING = {"f": np.nan, "c": np.nan, "M": np.datetime64("NaT"), "m": np.timedelta64("NaT"), "U": ""}
# Maximum number of objects whose labels in the catalogue are compared when a dataset is opened.
_COMPARED_MAX = 1000


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
            Variables and coordinates to omit. Arrays may differ in omitted coordinates.
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
            The fields do not form one cube per variable, on one grid and in one unit, or arrays have different labels:
            a more specific selector is needed. Or the key has no such attribute.

        """
        listing = _listed(filename_or_obj, selector)
        if not len(listing):
            raise NotFound(selector, "nothing that is there matches")
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        kind = np.dtype(np.float32 if dtype is None else dtype)
        dataset = CubeBuilder(listing, variable=variable).dataset(dropped, partial, kind)
        if isinstance(filename_or_obj, Store):
            # xarray would take the path, which a store outside folders does not have.
            dataset.encoding["source"] = filename_or_obj.url
        return dataset


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
    # For an array: the labels that all arrays share.
    known: KnownLabels | None = None

    @property
    def coords(self) -> dict[str, Any]:
        if self.where is not None:
            return self.where.layout.labelled()
        return {} if self.known is None else self.known.along()


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
        tables: dict[str, CubeTable] = {}
        known: dict[str, KnownLabels] = {}
        for name, numbers in chosen.items():
            dims, table = tables[name] = CubeTable(*self._table(name, numbers, followed, partial))
            self._check_units(name, numbers)
            grid = self._grid(name, int(numbers[0]), dtype, dropped)
            self._check_grids(name, numbers, table, grid)
            if grid.known is not None:
                known[name] = grid.known
                self._check_labels(numbers, table, grid.known)
                grid = grid._replace(attrs={**grid.known.attrs, **grid.attrs}, dtype=grid.known.dtype)
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
        self._add_described(tables, known, variables, coords, attrs)
        _add_scalars(known, variables, coords)
        self._add_valid_time(coords)
        return xarray.Dataset(variables, {name: one for name, one in coords.items() if name not in dropped}, attrs)

    def _add_described(
        self,
        tables: Mapping[str, CubeTable],
        known: Mapping[str, KnownLabels],
        variables: Mapping[str, xarray.Variable],
        coords: dict[str, Any],
        attrs: dict[str, Any],
    ) -> None:
        """Adds the attributes outside the key as coordinates or attributes; labels of arrays take precedence."""
        dims = {str(dim) for variable in variables.values() for dim in variable.dims}
        taken = {*coords, *self.axes, *dims, *variables}
        scalars = {name for one in known.values() for name in one.of_ignored}
        found = described(self.schema, self._column, tables, taken, scalars)
        labelled = {name for one in known.values() for name in one.attrs}
        for name, coordinate in found.coords.items():
            if coordinate.ndim or name not in labelled:
                coords[name] = coordinate
                for variable in variables.values():
                    variable.attrs.pop(name, None)
        attrs.update({name: value for name, value in found.attrs.items() if name not in labelled})
        for name, of_variable in found.of_variables.items():
            mine = variables[name].attrs
            mine.update({key: value for key, value in of_variable.items() if str(mine.get(key)) != str(value)})
        for name in scalars:
            axis = self.axes.get(name)
            if name not in coords and axis is not None and len(axis.values) == 1 and (axis.places == 0).all():
                coords[name] = xarray.Variable((), axis.values[0], axis.attrs)
            if isinstance(coords.get(name), xarray.Variable):
                coords[name].attrs = _described_as(coords[name], known.values(), name)

    def _add_valid_time(self, coords: dict[str, Any]) -> None:
        # Monthly means of forecasts have a month instead of the step.
        is_by_step = {"time", "step"} <= coords.keys() & self.axes.keys() and "fcmonth" not in self.axes
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

    def _grid(self, name: str, number: int, dtype: np.dtype[Any], dropped: set[str]) -> _Grid:
        """Returns the properties of an object, and so of all objects of its variable."""
        obj = self.listing[number]
        about = obj.attributes
        attrs = {"units": str(about["units"])} if "units" in about and "units" not in self._several() else {}
        message = None if "dtype" in about else field.message_of(obj)
        if message is None:
            return self._grid_of_array(name, obj, attrs, dropped)
        if "name" in about:
            attrs["long_name"] = str(about["name"])
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

    def _several(self) -> set[str]:
        """Returns the attributes of the key that have several values."""
        return {name for name in self.schema.key_attributes if len(self._column(name)[0]) > 1}

    def _is_same_everywhere(self, name: str) -> bool:
        values, places = self._column(name)
        return len(values) == 1 and bool((places == 0).all())

    def _grid_of_array(self, name: str, obj: Any, attrs: dict[str, Any], dropped: set[str]) -> _Grid:
        labels, about = alike_labels.read(obj).labels, obj.attributes
        identity = {key: about[key] for key in self.schema.key_attributes if key in about}
        units = alike_labels.units_of(about, labels.attrs)
        ignored = {*self.schema.attributes, *self.axes}
        known = KnownLabels(name, obj.key, identity, labels, units, ignored, dropped)
        if units is not None and "units" not in self._several():
            attrs["units"] = units
        lists = (one for one, kind in self.schema.attributes.items() if kind.startswith("list ") and one != "shape")
        attrs.update({one: about[one] for one in lists if one not in labels.attrs and self._is_same_everywhere(one)})
        if "long_name" not in labels.attrs and self.variable != "name" and self._is_same_everywhere("name"):
            attrs["long_name"] = str(about["name"])
        return _Grid(labels.dims, labels.shape, attrs, labels.dtype, known=known)

    def _check_units(self, name: str, numbers: Array) -> None:
        """Raises InvalidArgument if objects of a variable have different units in the catalogue."""
        for attribute in ("units", "unit"):
            if attribute not in self.schema.attributes or attribute in self.schema.key_attributes:
                continue
            values, places = self._column(attribute)
            along, firsts = np.unique(places[numbers], return_index=True)
            if (along >= 0).sum() > 1:
                one, other = (int(numbers[at]) for at in np.sort(firsts[along >= 0])[:2])
                ours, theirs = values[places[one]], values[places[other]]
                keys = self.listing.keys()
                cause = (
                    f"{name} has objects with different units: {ours} in {keys[one]}, and {theirs} in {keys[other]}"
                    f": choose by the selector, as {attribute}={_word(ours)} or {attribute}={_word(theirs)}"
                )
                raise InvalidArgument("dataset", cause)

    def _check_labels(self, numbers: Array, table: Array, known: KnownLabels) -> None:
        """Raises InvalidArgument if arrays of a variable are known to have different labels.

        It compares the arrays whose attributes in the catalogue differ, and those whose labels are an attribute. If the
        labels follow the arrays, it also compares the arrays at the ends of each axis; `_Values` compares each array
        that is read.
        """
        firsts: set[int] = set()
        for attribute in _OF_ARRAYS:
            if attribute in self.schema.attributes:
                firsts.update(np.unique(self._column(attribute)[1][numbers], return_index=True)[1].tolist())
        chosen = {int(numbers[at]) for at in firsts}
        texts, are_all = self._label_texts(numbers)
        for number, text in texts.items():
            labels = alike_labels.parsed(label_container.parsed(text))
            known.narrow(labels, *self._about(number))
        if known.is_labelled and not are_all:
            there = np.argwhere(table >= 0)
            chosen.update(int(table[tuple(there[there[:, axis].argmax()])]) for axis in range(table.ndim))
        for number in sorted(chosen - texts.keys() - {int(numbers[0])}):
            obj = self.listing[number]
            known.narrow(alike_labels.read(obj).labels, obj.key, obj.attributes)

    def _about(self, number: int) -> tuple[str, Mapping[str, Any]]:
        """Returns the key and the attributes of an object in the catalogue."""
        if not isinstance(self.listing, Listing):
            about: tuple[str, Mapping[str, Any]] = self.listing.about(number)
            return about
        obj = self.listing[number]
        return obj.key, obj.attributes

    def _label_texts(self, numbers: Array) -> tuple[dict[int, str], bool]:
        """Returns the different labels that the catalogue has, by an object with them; and whether it has all."""
        name = label_attributes.LABELS
        found: dict[int, str] = {}
        if name in self.schema.attributes:
            values, places = self._column(name)
            along, firsts = np.unique(places[numbers], return_index=True)
            if len(along) <= _COMPARED_MAX:
                found = {int(numbers[at]): values[place] for place, at in zip(along, firsts, strict=True) if place >= 0}
            are_all = len(found) == len(along)
        elif self.schema.is_open and len(numbers) <= _COMPARED_MAX:
            texts = {int(number): self._about(int(number))[1].get(name) for number in numbers}
            found = {number: text for number, text in texts.items() if text is not None}
            are_all = len(found) == len(numbers)
        else:
            are_all = False
        labels = {number: text for number, text in found.items() if label_container.is_text(text)}
        return labels, are_all and len(labels) == len(found)

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
        names, numbers = ([], None) if self.variable is None else self._column(self.variable)
        if numbers is None or not names:
            return [("data", np.arange(len(self.listing)))]
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


def _word(value: Any) -> str:
    """Returns a text as a selector has it."""
    return value if re.fullmatch(r"[A-Za-z0-9_.]+", value) else json.dumps(value, ensure_ascii=False)


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


def _has(scalars: Mapping[str, tuple[Any, Any]], name: str, value: Any) -> bool:
    return name in scalars and alike_labels.is_same(scalars[name][0], value)


def _described_as(coordinate: xarray.Variable, known: Iterable[KnownLabels], name: str) -> dict[str, Any]:
    """Returns the attributes of a coordinate, among them those that all arrays have."""
    attrs: dict[str, Any] | None = None
    for one in known:
        if name in one.of_ignored:
            of_one = one.of_ignored[name]
            attrs = of_one if attrs is None else alike_labels.shared(attrs, of_one)
    # xarray writes the units of moments and lengths of time.
    coded = ("units", "calendar", "dtype") if coordinate.dtype.kind in "mM" else ()
    return {**{key: value for key, value in (attrs or {}).items() if key not in coded}, **coordinate.attrs}


def _add_scalars(
    known: Mapping[str, KnownLabels], variables: Mapping[str, xarray.Variable], coords: dict[str, Any]
) -> None:
    """Adds scalar coordinates of arrays: as coordinates where all variables have the same, otherwise as attributes."""
    scalars = {name: one.scalars() for name, one in known.items()}
    for variable, of_variable in scalars.items():
        for name, (value, attrs) in of_variable.items():
            if name in coords or name in variables:
                continue
            if len(known) == len(variables) and all(_has(other, name, value) for other in scalars.values()):
                coords[name] = xarray.Variable((), value, attrs)
            elif (scalar := np.asarray(value)).dtype.kind in "biufUmM":
                variables[variable].attrs.setdefault(name, _plain(scalar[()]))


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
        has_nothing = grid.dtype.kind in _NOTHING or (table >= 0).all()
        self.dtype = grid.dtype if has_nothing else np.dtype(np.float64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Array:
        array: Array = indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)
        return array

    def _read(self, key: tuple[Any, ...]) -> Array:
        outer, inner = key[: self._table.ndim], key[self._table.ndim :]
        chosen = np.asarray(_outer(self._table, outer))
        shape = _outer(np.broadcast_to(np.False_, self._grid.shape), inner).shape
        values = np.empty((chosen.size, *shape), self.dtype)
        nothing = _NOTHING.get(self.dtype.kind)
        for at, number in enumerate(chosen.reshape(-1)):
            values[at] = nothing if number < 0 else _outer(self._field(int(number)), inner)
        return values.reshape(chosen.shape + shape)

    def _field(self, number: int) -> Array:
        obj = self._objects[number]
        where = self._grid.where
        if where is None:
            assert self._grid.known is not None
            values: Array = self._grid.known.values_of(obj)
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
