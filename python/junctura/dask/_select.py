"""Creates Dask collections from a selector."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from junctura._native import Listing, Pool, Store
from junctura._xarray.label_attributes import needed
from junctura.dask._found import InPoolFound, in_pool
from junctura.dask._places import Fetch, InPool, InStore, Objects, Place, Reference
from junctura.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    import dask.array
    import dask.bag
    import xarray
    from dask.delayed import Delayed

_Path = str | os.PathLike[str]
_OPTIONS: dict[str, tuple[str, ...]] = {
    "bag": ("npartitions", "partition_size"),
    "delayed": (),
    "array": ("dtype", "variable"),
    "xarray": ("dtype", "variable"),
}


@overload
def from_selector(
    selector: str = "",
    *,
    pool: Pool | str | None = None,
    store: Store | _Path | None = None,
    schema: str | None = None,
    as_: Literal["bag"] = "bag",
    partial: bool = False,
    npartitions: int | None = None,
    partition_size: int | None = None,
) -> dask.bag.Bag: ...
@overload
def from_selector(
    selector: str = "",
    *,
    pool: Pool | str | None = None,
    store: Store | _Path | None = None,
    schema: str | None = None,
    as_: Literal["delayed"],
    partial: bool = False,
) -> list[Delayed]: ...
@overload
def from_selector(
    selector: str = "",
    *,
    pool: Pool | str | None = None,
    store: Store | _Path | None = None,
    schema: str | None = None,
    as_: Literal["array"],
    partial: bool = False,
    dtype: npt.DTypeLike | None = None,
    variable: str | None = None,
) -> dask.array.Array: ...
@overload
def from_selector(
    selector: str = "",
    *,
    pool: Pool | str | None = None,
    store: Store | _Path | None = None,
    schema: str | None = None,
    as_: Literal["xarray"],
    partial: bool = False,
    dtype: npt.DTypeLike | None = None,
    variable: str | None = None,
) -> xarray.Dataset: ...


def from_selector(
    selector: str = "",
    *,
    pool: Pool | str | None = None,
    store: Store | _Path | None = None,
    schema: str | None = None,
    as_: Literal["bag", "delayed", "array", "xarray"] = "bag",
    partial: bool = False,
    npartitions: int | None = None,
    partition_size: int | None = None,
    dtype: npt.DTypeLike | None = None,
    variable: str | None = None,
) -> Any:
    """Returns the objects that match now, lazily: the task that needs an object fetches it where the task runs.

    It does not wait for objects. Objects of a pool may be removed before the computation, unless a requirement retains
    them; then the task fails with `NotFound` or `Gone`, which name the object. If an object has a new version by then,
    a pool returns the newer version, and a store the listed one.

    Parameters
    ----------
    selector : str
        Selector of the objects.
    pool : Pool or str, optional
        A pool, or its URL. Tasks on other machines connect through ``tcp:``.
    store : Store, path or str, optional
        A store; together with a pool, the store behind the pool.
    schema : str, optional
        Only objects of this schema, if there are several.
    as_ : "bag", "delayed", "array" or "xarray"
        A bag, or a list of delayed `Fetched`; an xarray dataset with a variable for each parameter (or name), along the
        attributes in which its objects differ; or the array of its only variable, or of several stacked along the first
        axis, in the dataset's order. In arrays each object is a chunk, and GRIB messages are decoded.
    partial : bool
        Whether missing objects of those that the selector lists are allowed; in arrays their values are NaN.
    npartitions, partition_size : int, optional
        For a bag, as in `dask.bag.from_sequence`.
    dtype : optional
        For arrays: the type of decoded GRIB values. Default: float32.
    variable : str, optional
        For arrays: the attribute of the key whose values are the names of the variables. Default: `param`, else `name`;
        in a schema without these, all objects are one variable, `data`.

    Raises
    ------
    NotFound
        Nothing matches, or listed objects are missing; the error names them.
    InvalidArgument
        Neither pool nor store is given; or the objects do not make one array.
    ImportError
        Without Dask, and for arrays xarray (and ecCodes for GRIB): ``pip install 'junctura[dask,grib]'``.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     for step in range(3):
    ...         version = pool.offer(numpy.full(4, step), name=f"t{step}")
    ...     fields = junctura.dask.from_selector('name~"^t"', pool=pool)
    ...     sums = fields.map(lambda field: int(field.array().sum()))
    ...     print(sums.compute(scheduler="threads"))
    [0, 4, 8]

    """
    needed("dask", "dask")
    _check(as_, npartitions=npartitions, partition_size=partition_size, dtype=dtype, variable=variable)
    place, found = _found(selector, pool, store, schema, partial)
    if as_ == "bag":
        return _bag(place, _references(found), npartitions=npartitions, partition_size=partition_size)
    if as_ == "delayed":
        return _delayed(place, _references(found))
    dataset = _dataset(place, found, partial, dtype, variable)
    return dataset if as_ == "xarray" else _array(dataset)


def _check(as_: str, **given: Any) -> None:
    """Rejects options that have no meaning together."""
    if as_ not in _OPTIONS:
        raise InvalidArgument("as_", f"{as_!r} is not one of {', '.join(_OPTIONS)}")
    for name, value in given.items():
        if value is not None and name not in _OPTIONS[as_]:
            raise InvalidArgument(name, f"as_={as_!r} has no such thing")


def _found(
    selector: str, pool: Pool | str | None, store: Store | _Path | None, schema: str | None, partial: bool
) -> tuple[Place, InPoolFound | Listing]:
    if pool is not None:
        return _in_pool(selector, pool, store, schema, partial)
    if store is None:
        raise InvalidArgument("pool", "expected a pool or a store: where are the objects?")
    opened = store if isinstance(store, Store) else Store(store)
    listing = opened.retrieve(selector, partial=partial) if selector else opened.list()
    if not len(listing):
        raise NotFound(selector, f"nothing that is in {opened.url} matches")
    names = [one.name for one in listing._schemas]
    if schema is not None and names != [schema]:
        raise InvalidArgument("schema", f"the objects are of {', '.join(names)}: say more in the selector")
    return InStore.of(opened), listing


def _in_pool(
    selector: str, pool: Pool | str, store: Store | _Path | None, schema: str | None, partial: bool
) -> tuple[Place, InPoolFound]:
    if isinstance(pool, Pool) and store is None:
        opened = pool
    else:
        url = pool.url if isinstance(pool, Pool) else pool
        opened = Pool(url, store=store.path if isinstance(store, Store) else store)
    entries = in_pool(opened, selector, schema, partial)
    place = InPool.of(opened)
    if opened is not pool:
        place.keep(opened)
    return place, InPoolFound(place, entries)


def _references(found: InPoolFound | Listing) -> list[Reference]:
    if isinstance(found, InPoolFound):
        return found.references
    return [Reference(obj.key, obj.schema.name, str(obj.commit)) for obj in found]


def _bag(place: Place, references: Sequence[Reference], **options: Any) -> dask.bag.Bag:
    bag: dask.bag.Bag = needed("dask.bag", "dask").from_sequence(references, **options).map(Fetch(place))
    return bag


def _delayed(place: Place, references: Sequence[Reference]) -> list[Delayed]:
    fetch: Callable[[Reference], Delayed] = needed("dask", "dask").delayed(Fetch(place), pure=True)
    return [fetch(reference) for reference in references]


def _dataset(
    place: Place, found: InPoolFound | Listing, partial: bool, dtype: npt.DTypeLike | None, variable: str | None
) -> xarray.Dataset:
    needed("xarray", "grib")
    from junctura._xarray.backend import CubeBuilder

    objects = Objects(place, _references(found))
    builder = CubeBuilder(found, objects, variable)
    dataset = builder.dataset(set(), partial, np.dtype("float32" if dtype is None else dtype))
    chunks = {
        dim: extent
        for variable in dataset.data_vars.values()
        for dim, extent in variable.encoding["preferred_chunks"].items()
    }
    # Coordinates are in memory: a chunk for each of their values would be a task for each.
    chunked = dataset.reset_coords(drop=True).chunk(chunks)
    return chunked.assign_coords({name: one for name, one in dataset.coords.items() if name not in chunked.coords})


def _array(dataset: xarray.Dataset) -> dask.array.Array:
    arrays = [variable.data for variable in dataset.data_vars.values()]
    if len(arrays) == 1:
        array: dask.array.Array = arrays[0]
    elif len({variable.dims for variable in dataset.data_vars.values()}) == 1:
        array = needed("dask.array", "dask").stack(arrays)
    else:
        names = ", ".join(map(str, dataset.data_vars))
        cause = f"{names} have different dimensions: name one of them in the selector, or take as_='xarray'"
        raise InvalidArgument("selector", cause)
    return array
