"""Lists of objects as tables: pandas and Arrow.

Imported on first use, with the packages that it needs.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from junctura import _native
from junctura._xarray.label_attributes import needed
from junctura.errors import LimitExceeded
from junctura.field import durations_of, moments_of

if TYPE_CHECKING:
    import pandas
    import pyarrow

    Listed: TypeAlias = _native.Described | _native.Object | _native.Stored

# Maximum number of missing values of all columns: objects may have individual attribute names.
_MISSING_MAX = 1 << 27
# Names of the columns that are not attributes.
_OURS = ("key", "version", "nbytes", "schema")


def _date(text: str) -> datetime.date:
    return datetime.datetime.strptime(text, "%Y%m%d").date()


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, (int, decimal.Decimal)) else value


_READERS: dict[str, Callable[[Any], Any]] = {"date": _date, "decimal": _number}
# Types that are times of NumPy.
_TIMES = ("timestamp", "duration")
_PANDAS = {
    "integer": "Int64",
    "decimal": "Float64",
    "float": "Float64",
    "bool": "boolean",
    "date": "datetime64[s]",
}


def _times(kind: str, values: list[str | None]) -> npt.NDArray[Any] | None:
    """Returns timestamps or durations; NaT where there is none. None: no unit states each value exactly.

    Timestamps are in microseconds, or in nanoseconds if one has a fraction of a microsecond. Durations are in
    nanoseconds, or in a coarser unit if one is too long.
    """
    present = [value for value in values if value is not None]
    found = moments_of(present) if kind == "timestamp" else durations_of(present)
    if found is None:
        return None
    if kind == "timestamp" and not (found != found.astype("datetime64[us]")).any():
        found = found.astype("datetime64[us]")
    times = np.full(len(values), "NaT", found.dtype)
    times[[value is not None for value in values]] = found
    return times


def _series(module: Any, kind: str, times: npt.NDArray[Any]) -> Any:
    series = module.Series(times)
    return series.dt.tz_localize("UTC") if kind == "timestamp" else series


class _Columns:
    """The columns of a table: those of the key first, in the order of the schema."""

    def __init__(self, objects: Iterable[Listed], attributes: Iterable[str] | None) -> None:
        self.chosen = None if attributes is None else frozenset(attributes)
        self.missing = 0
        self.kinds: dict[str, str] = {}
        self.columns: dict[str, list[Any]] = {}
        self.ours: dict[str, list[Any]] = {name: [] for name in _OURS}
        schemas: dict[int, tuple[Any, dict[str, str]]] = {}
        self.keys: list[str] = []
        for at, one in enumerate(objects):
            schema = one.schema
            number = hash(schema)
            if number not in schemas:
                schemas[number] = (schema, schema.attributes)
                self.keys += [name for name in schema.key_attributes if name not in self.keys]
            kinds = schemas[number][1]
            for name, value in one.attributes.items():
                if self.chosen is not None and name not in self.chosen:
                    continue
                self._add(at, name, value, kinds.get(name, "string"))
            self.ours["key"].append(one.key)
            self.ours["version"].append(None if one.version is None else str(one.version))
            self.ours["nbytes"].append(getattr(one, "nbytes", None))
            self.ours["schema"].append(schema.name)
        count = len(self.ours["key"])
        for column in self.columns.values():
            self._pad(column, count)
        order = [*(name for name in self.keys if name in self.columns)]
        order += [name for name in self.columns if name not in self.keys]
        self.columns = {name: self.columns[name] for name in order}

    def _add(self, at: int, name: str, value: Any, kind: str) -> None:
        column = self.columns.setdefault(name, [])
        if self.kinds.setdefault(name, kind) != kind:
            # Two schemas disagree: stored as text.
            self.kinds[name] = "string"
        self._pad(column, at)
        column.append(value)

    def _pad(self, column: list[Any], count: int) -> None:
        lacking = count - len(column)
        self.missing += lacking
        if self.missing > _MISSING_MAX:
            cause = f"{len(self.columns)} attributes and more than {_MISSING_MAX} missing values: choose attributes="
            raise LimitExceeded("table", cause)
        column.extend([None] * lacking)

    def typed(self) -> Iterable[tuple[str, str, list[Any]]]:
        """Names, types and values of all columns."""
        for name, column in self.columns.items():
            kind = self.kinds[name]
            read = _READERS.get(kind)
            values = column if read is None else [None if value is None else read(value) for value in column]
            # An attribute with the name of one of these columns keeps its name.
            yield name, kind, values
        for name, column in self.ours.items():
            kind = "integer" if name == "nbytes" else "string"
            yield (f"{name}_" if name in self.columns else name), kind, column


def to_pandas(objects: Iterable[Listed], attributes: Iterable[str] | None = None) -> pandas.DataFrame:
    """Returns objects as a pandas table: a row for each object, a column for each attribute.

    Parameters
    ----------
    objects : iterable of Entry, Described, Object or Stored
        For example the result of `Pool.list` or `Store.list`.
    attributes : iterable of str, optional
        The attributes that become columns; by default all.

    Returns
    -------
    pandas.DataFrame
        The attributes of the key come first, in its order, then the others, then ``key``, ``version``, ``nbytes`` and
        ``schema``. Integers, decimals, floats and bools are such columns. Dates are ``datetime64[s]``, timestamps
        ``datetime64[us, UTC]``, or ``ns`` if one has a fraction of a microsecond; durations are ``timedelta64[ns]``, or
        the coarsest of ``s``, ``ms`` and ``us`` that is exact if one exceeds 292 years. A column of timestamps or
        durations that no unit states exactly is text, as is the rest: as `Object.attributes` gives it. Where an
        attribute is not given there is a missing value.

    Raises
    ------
    ImportError
        Without pandas: ``pip install 'junctura[pandas]'``.
    LimitExceeded
        More than 134,217,728 missing values: the objects have many attributes that others lack.

    Examples
    --------
    >>> with junctura.Pool(schema="record") as pool:
    ...     for number in range(3):
    ...         version = pool.offer(bytes(number), collection="c", producer="p", sequence=number)
    ...     frame = junctura.to_pandas(pool.list())
    >>> frame[["producer", "sequence", "nbytes"]].sum(numeric_only=True)
    sequence    3
    nbytes      3
    dtype: Int64

    """
    module = needed("pandas", "pandas")
    columns = {}
    for name, kind, values in _Columns(objects, attributes).typed():
        times = _times(kind, values) if kind in _TIMES else None
        if times is not None:
            columns[name] = _series(module, kind, times)
            continue
        columns[name] = module.Series(values, dtype=_PANDAS.get(kind, "object" if "list" in kind else "str"))
    frame: pandas.DataFrame = module.DataFrame(columns)
    return frame


def to_arrow(objects: Iterable[Listed], attributes: Iterable[str] | None = None) -> pyarrow.Table:
    """Returns objects as an Arrow table: as `to_pandas`.

    Raises
    ------
    ImportError
        Without pyarrow: ``pip install 'junctura[arrow]'``.
    LimitExceeded
        As there.

    Examples
    --------
    >>> with junctura.Pool(schema="record") as pool:
    ...     version = pool.offer(b"12", collection="c", producer="p", sequence=7)
    ...     junctura.to_arrow(pool.list()).select(["sequence", "nbytes"]).to_pylist()
    [{'sequence': 7, 'nbytes': 2}]

    """
    arrow = needed("pyarrow", "arrow")
    types = {
        "integer": arrow.int64(),
        "decimal": arrow.float64(),
        "float": arrow.float64(),
        "bool": arrow.bool_(),
        "date": arrow.date32(),
    }
    names, arrays = [], []
    for name, kind, values in _Columns(objects, attributes).typed():
        found = _times(kind, values) if kind in _TIMES else None
        if found is not None:
            times = arrow.array(found)
            names.append(name)
            arrays.append(times.cast(arrow.timestamp(times.type.unit, "UTC")) if kind == "timestamp" else times)
            continue
        scalar = kind.removeprefix("list of ")
        # Items of lists of times stay texts.
        of = arrow.string() if scalar == "date" and scalar != kind else types.get(scalar, arrow.string())
        if scalar == "decimal" and scalar != kind:
            values = [None if one is None else [_number(item) for item in one] for one in values]
        names.append(name)
        arrays.append(arrow.array(values, of if scalar == kind else arrow.list_(of)))
    table: pyarrow.Table = arrow.table(arrays, names=names)
    return table


def listing_to_arrow(listing: _native.Listing) -> pyarrow.Table:
    """See `Listing.to_arrow`."""
    table: pyarrow.Table = needed("pyarrow", "arrow").table(listing)
    return table


def listing_to_pandas(listing: _native.Listing) -> pandas.DataFrame:
    """See `Listing.to_pandas`."""
    arrow, module = needed("pyarrow", "arrow"), needed("pandas", "pandas")
    table = listing_to_arrow(listing)
    for at, field in enumerate(table.schema):
        if arrow.types.is_decimal(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(arrow.float64()))
    types = {
        arrow.int64(): module.Int64Dtype(),
        arrow.uint64(): module.UInt64Dtype(),
        arrow.uint32(): module.UInt32Dtype(),
        arrow.float64(): module.Float64Dtype(),
        arrow.bool_(): module.BooleanDtype(),
    }
    frame: pandas.DataFrame = table.to_pandas(types_mapper=types.get, date_as_object=False)
    for name, kind in _kinds(listing).items():
        if name in frame.columns and kind == "date" and frame[name].dtype.kind == "M":
            frame[name] = frame[name].astype(_PANDAS["date"])
        elif name in frame.columns and kind in _TIMES:
            column = frame[name].astype("category").cat
            # Each value once, and NaT for rows without one.
            times = _times(kind, [*map(str, column.categories), None])
            if times is not None:
                frame[name] = _series(module, kind, times[column.codes.to_numpy()]).set_axis(frame.index)
    return frame


def _kinds(listing: _native.Listing) -> dict[str, str]:
    """Returns the types of the attributes that are declared, with one type, by the schemas of the objects."""
    kinds: dict[str, str] = {}
    for schema in listing._schemas:
        for name, kind in schema.attributes.items():
            kinds[name] = kind if kinds.get(name, kind) == kind else "string"
    return kinds
