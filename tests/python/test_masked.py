"""A mask of NumPy's is never lost: what it covers is NaN wherever arrays enter, or is refused."""

from __future__ import annotations

import ast
import asyncio
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import junctura
from junctura.products._input.decoded_field import Field
from junctura.products._regrid.grids import grid
from junctura.remap import LonLat, Mesh, Weights, at_times

Array = npt.NDArray[Any]
SHAPE = (2, 3)
WHOLE = "shape=2x3"
# A store in memory stays as long as anybody has an object of it.
STORES = (f"masked-{number}" for number in itertools.count())
PACKAGE = Path(junctura.__file__).parent


class Variable:
    """An array as a file has it, such as a variable of netCDF4's: its values are masked when they are read."""

    def __init__(self, values: Array) -> None:
        self.values = values
        self.dtype, self.shape = values.dtype, values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.values if dtype is None else self.values.astype(dtype)


def masked(dtype: str = "f8", **how: Any) -> Any:
    """0 to 5 with the elements 1 and 5 masked, and a number under the mask."""
    array = np.ma.masked_array(
        np.arange(6).astype(dtype).reshape(SHAPE), mask=[[False, True, False], [False, False, True]], **how
    )
    array.data[array.mask] = np.ones(1, "i1").astype(dtype)
    return array


def large() -> Any:
    """The same many times, so that it does not travel in a message."""
    repeated = np.tile(masked().data, (50_000, 1))
    return np.ma.masked_array(repeated, np.tile(masked().mask, (50_000, 1)))


def _pool(offer: Callable[[junctura.Pool, Any], Any]) -> Callable[[Any], Array]:
    def through(data: Any) -> Array:
        with junctura.Pool(schema="free") as pool:
            offer(pool, data)
            return np.array(pool.demand_array(name="a", timeout=0))

    return through


def _awaited(offer: Callable[[junctura.aio.Pool, Any], Any]) -> Callable[[Any], Array]:
    def run(pool: junctura.Pool, data: Any) -> None:
        async def main() -> None:
            async with junctura.aio.Pool(pool) as awaited:
                await offer(awaited, data)

        asyncio.run(main())

    return _pool(run)


def _pieces(put: Callable[[junctura.Pool, Any, int], Any]) -> Callable[[Any], Array]:
    def offer(pool: junctura.Pool, data: Any) -> None:
        array = np.ma.asanyarray(data)
        for rank in range(2):
            put(pool, array[rank : rank + 1], rank)

    return _pool(offer)


def _stored(archive: Callable[[junctura.Store, Any], Any]) -> Callable[[Any], Array]:
    def through(data: Any) -> Array:
        with junctura.Store.create(f"memory:{next(STORES)}", schema="free") as store:
            archive(store, data)
            store.flush()
            return np.array(store.list("name=a")[0].array())

    return through


def _in_bundle(pool: junctura.Pool, data: Any) -> None:
    with pool.bundle() as bundle:
        bundle.offer(data, name="a")


def _many_in_bundle(pool: junctura.Pool, data: Any) -> None:
    with pool.bundle() as bundle:
        bundle.offer_many([(data, {"name": "a"})])


def _pieces_in_bundle(pool: junctura.Pool, data: Any) -> None:
    array = np.ma.asanyarray(data)
    with pool.bundle("step") as bundle:
        for rank in range(2):
            bundle.offer_piece(array[rank : rank + 1], "shape=2x3 grid=2x1", rank, name="a")


def _in_pipeline(pool: junctura.Pool, data: Any) -> None:
    with pool.pipeline(window=4) as pipeline:
        pipeline.offer(data, name="a")


async def _in_awaited_bundle(pool: junctura.aio.Pool, data: Any) -> None:
    async with pool.bundle() as bundle:
        await bundle.offer(data, name="a")


async def _many_in_awaited_bundle(pool: junctura.aio.Pool, data: Any) -> None:
    async with pool.bundle() as bundle:
        await bundle.offer_many([(data, {"name": "a"})])


async def _piece_in_awaited_bundle(pool: junctura.aio.Pool, data: Any) -> None:
    async with pool.bundle("step") as bundle:
        await bundle.offer_piece(data, WHOLE, 0, {"name": "a"})


async def _in_awaited_pipeline(pool: junctura.aio.Pool, data: Any) -> None:
    async with pool.pipeline() as pipeline:
        await pipeline.offer(data, name="a")


def _chunks(pool: junctura.Pool, data: Any) -> None:
    array = pytest.importorskip("dask.array")
    pool.offer_chunks(array.from_array(data, chunks=(1, 2)), name="a")


async def _awaited_chunks(pool: junctura.aio.Pool, data: Any) -> None:
    array = pytest.importorskip("dask.array")
    await pool.offer_chunks(array.from_array(data, chunks=(1, 2)), name="a")


# Every way in: by the class and method whose stub has an argument of the type `_Data`.
WAYS: dict[str, Callable[[Any], Array]] = {
    "Pool.offer": _pool(lambda pool, data: pool.offer(data, name="a")),
    "Pool.offer_many": _pool(lambda pool, data: pool.offer_many([(data, {"name": "a"})])),
    "Pool.offer_piece": _pieces(lambda pool, data, rank: pool.offer_piece(data, "shape=2x3 grid=2x1", rank, name="a")),
    "Pool.offer_chunks": _pool(_chunks),
    "Bundle.offer": _pool(_in_bundle),
    "Bundle.offer_many": _pool(_many_in_bundle),
    "Bundle.offer_piece": _pool(_pieces_in_bundle),
    "Pipeline.offer": _pool(_in_pipeline),
    "Exchange.put": _pieces(
        lambda pool, data, rank: junctura.Exchange(pool, "shape=2x3 grid=2x1", rank).put(data, name="a")
    ),
    "Store.archive": _stored(lambda store, data: store.archive(data, name="a")),
    "Store.archive_many": _stored(lambda store, data: store.archive_many([(data, {"name": "a"})])),
    "aio.Pool.offer": _awaited(lambda pool, data: pool.offer(data, name="a")),
    "aio.Pool.offer_many": _awaited(lambda pool, data: pool.offer_many([(data, {"name": "a"})])),
    "aio.Pool.offer_piece": _awaited(lambda pool, data: pool.offer_piece(data, WHOLE, 0, {"name": "a"})),
    "aio.Pool.offer_chunks": _awaited(_awaited_chunks),
    "aio.Bundle.offer": _awaited(_in_awaited_bundle),
    "aio.Bundle.offer_many": _awaited(_many_in_awaited_bundle),
    "aio.Bundle.offer_piece": _awaited(_piece_in_awaited_bundle),
    "aio.Pipeline.offer": _awaited(_in_awaited_pipeline),
    "AsyncExchange.put": _awaited(lambda pool, data: junctura.aio.Exchange(pool, WHOLE, 0).put(data, name="a")),
}
# A store in Python is awaited nowhere; the other ways in are computations.
COMPUTED: dict[str, Callable[[Any], Array]] = {
    "at_times, nearest": lambda data: _at(data, "nearest"),
    "at_times, linear": lambda data: _at(data, "linear"),
    "Weights": lambda data: Weights(range(6), range(6), [1.0] * 6, SHAPE, SHAPE)(data),
    "products.Field": lambda data: _field(data),
}
EVERY = {**WAYS, **COMPUTED}


def _at(data: Any, method: Any) -> Array:
    ((_, values),) = at_times([0, 2], [0 if method == "nearest" else 1], method=method, time=int, field=lambda _: data)
    return values


def _field(data: Any) -> Array:
    on = grid("90/90")
    whole: Any = np.ma.masked_array(np.ones(on.shape), True)
    whole.reshape(-1)[:6] = np.ma.asanyarray(data).reshape(-1)
    return Field(whole, on).values.reshape(-1)[:6].reshape(SHAPE)


def _entries() -> Iterator[str]:
    """What the stubs, and the modules of `aio`, take data by."""
    for path in [*PACKAGE.glob("*.pyi"), *PACKAGE.glob("aio/*.py"), PACKAGE / "_array" / "exchange.py"]:
        for kind in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)):
            for call in kind.body:
                if not isinstance(call, (ast.FunctionDef, ast.AsyncFunctionDef)) or call.name.startswith("_"):
                    continue
                words = " ".join(
                    ast.unparse(one.annotation) for one in call.args.args + call.args.posonlyargs if one.annotation
                )
                if "_Data" in words or "_Archived" in words or call.name == "offer_chunks":
                    owner = "Pool" if kind.name == "ArrayVerbs" else kind.name
                    yield f"{'aio.' if path.parent.name == 'aio' else ''}{owner}.{call.name}"


def test_every_way_in_is_tested() -> None:
    assert set(_entries()) == set(WAYS)


@pytest.mark.parametrize("way", EVERY)
def test_masked_floats_are_missing(way: str) -> None:
    found = EVERY[way](masked())
    np.testing.assert_array_equal(np.asarray(found), [[0, np.nan, 2], [3, 4, np.nan]])
    assert type(found) is np.ndarray and found.dtype == np.float64


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["i2", "u8", "bool"])
def test_masked_integers_are_refused_by_name(way: str, kind: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"masked, and (int16|uint64|bool) has no NaN.*filled"):
        WAYS[way](masked(kind))
    whole = np.ma.masked_array(np.arange(6).astype(kind).reshape(SHAPE), mask=False)
    found = WAYS[way](whole)
    assert found.dtype == kind and (found == whole.data).all()


@pytest.mark.parametrize("way", ["Pool.offer", "Store.archive", "aio.Pool.offer", "Store.archive_many"])
@pytest.mark.parametrize("kind", ["f2", "f4", ">f8", "c8", "c16", "M8[ns]", "M8[D]", "m8[s]"])
def test_each_type_that_can_be_missing_is(way: str, kind: str) -> None:
    with junctura.Pool(schema="free") as pool, junctura.Store.create(f"memory:{next(STORES)}", schema="free") as store:
        if way == "Pool.offer":
            pool.offer(masked(kind), name="a")
        elif way == "aio.Pool.offer":
            asyncio.run(junctura.aio.Pool(pool).offer(masked(kind), name="a"))
        elif way == "Store.archive":
            store.archive(masked(kind), name="a")
        else:
            store.archive_many([(masked(kind), {"name": "a"})])
        store.flush()
        stored = store.list()
        array = stored[0].array() if len(stored) else pool.demand(name="a").array()
    assert array.dtype == kind
    missing = np.isnat(array) if array.dtype.kind in "Mm" else np.isnan(array)
    assert missing.reshape(-1).tolist() == [False, True, False, False, False, True]
    assert (array[~missing] == masked(kind).data[~missing]).all()


@pytest.mark.parametrize("way", ["Pool.offer", "Store.archive", "Pool.offer_piece"])
@pytest.mark.parametrize(
    "array",
    [
        masked(hard_mask=True),
        masked()[::-1, ::-1],
        np.asfortranarray(masked()),
        np.ma.masked_array(np.ones(SHAPE), True),
        np.ma.masked_invalid(np.array([[1, np.nan, 2], [np.inf, 4, 5]])),
        np.ma.masked_equal(np.array([[1, -999, 2], [3, 4, -999.0]]), -999),
    ],
)
def test_masks_of_every_form(way: str, array: Any) -> None:
    expected = np.where(np.ma.getmaskarray(array), np.nan, np.ma.getdata(array))
    np.testing.assert_array_equal(WAYS[way](array), expected)


def test_an_array_that_has_its_mask_when_it_is_read(pool: junctura.Pool) -> None:
    dask = pytest.importorskip("dask.array")
    xarray = pytest.importorskip("xarray")
    chunked = dask.from_array(masked(), chunks=(1, 3))
    for at, data in enumerate((Variable(masked()), chunked, xarray.DataArray(chunked, dims=("y", "x")))):
        pool.offer(data, name=str(at))
        np.testing.assert_array_equal(pool.demand(name=str(at)).array()[[0, 1], [1, 2]], [np.nan, np.nan])
    with pytest.raises(junctura.InvalidArgument, match="int32 has no NaN"):
        pool.offer(Variable(masked("i4")), name="integers")


def test_scalars_and_lists(pool: junctura.Pool) -> None:
    pool.offer(np.ma.masked, name="masked")
    assert np.isnan(pool.demand(name="masked").array()).all()
    rows = [masked()[0], masked()[1]]
    layout = junctura.Layout("shape=2x3")
    pool.offer_piece(rows, layout, 0, name="rows")
    np.testing.assert_array_equal(pool.demand_array(name="rows"), [[0, np.nan, 2], [3, 4, np.nan]])
    weights = Weights(range(6), range(6), [1.0] * 6, SHAPE, SHAPE)
    np.testing.assert_array_equal(weights(rows), [[0, np.nan, 2], [3, 4, np.nan]])
    np.testing.assert_array_equal(weights([list(rows[0]), list(rows[1])]), [[0, np.nan, 2], [3, 4, np.nan]])


def test_pieces_that_become_another_type(pool: junctura.Pool) -> None:
    pool.offer_piece(masked("i4"), WHOLE, 0, name="floats", dtype="f8")
    np.testing.assert_array_equal(pool.demand_array(name="floats"), [[0, np.nan, 2], [3, 4, np.nan]])
    with pytest.raises(junctura.InvalidArgument, match="int32 has no NaN"):
        pool.offer_piece(masked(), WHOLE, 0, name="integers", dtype="i4")
    slabs = "shape=2x3 slabs=0:1x0:3,1:2x0:3"
    pool.offer_piece([masked()[:1], masked()[1:]], slabs, 0, name="slabs")
    np.testing.assert_array_equal(pool.demand_array(name="slabs"), [[0, np.nan, 2], [3, 4, np.nan]])


def test_a_large_one_that_is_copied_beside_the_loop(pool: junctura.Pool) -> None:
    asyncio.run(junctura.aio.Pool(pool).offer(large(), name="a"))
    found = pool.demand(name="a").array()
    assert np.isnan(found).sum() == 100_000 and np.isnan(found.reshape(-1, 6)[:, [1, 5]]).all()


def test_records_and_attributes(pool: junctura.Pool) -> None:
    records: Any = np.ma.masked_array(np.zeros(2, [("a", "f4"), ("b", "i4")]))
    records["b"][1] = np.ma.masked
    with pytest.raises(junctura.InvalidArgument, match="1 of 2 elements are masked"):
        pool.offer(records, name="a")
    with pytest.raises(junctura.TypeMismatch, match="level"):
        pool.offer(b"", {"name": "a", "level": np.ma.masked})


def test_weights_and_masks_of_grids() -> None:
    with pytest.raises(junctura.InvalidArgument):
        Weights(range(6), range(6), masked().reshape(-1), SHAPE, SHAPE)
    with pytest.raises(junctura.InvalidArgument, match="no NaN"):
        Weights(masked("i8").reshape(-1), range(6), [1.0] * 6, SHAPE, SHAPE)
    with pytest.raises(junctura.InvalidArgument, match="lat"):
        LonLat([0, 90, 180], np.ma.masked_array([10.0, 20], [False, True]))
    sea = np.array([[1, 0, 1], [1, 1, 0]], bool)
    for mask in (
        np.where(sea, 1.0, np.nan),
        np.ma.masked_array(np.ones(SHAPE, bool), ~sea),
        np.ma.masked_array(np.ones(SHAPE), ~sea),
        sea.astype("f4"),
    ):
        grid = LonLat([0, 90, 180], [10, 20], mask=mask)
        assert grid.mask is not None and (grid.mask == sea).all()
        corners = np.array([[0.0, 1, 1]] * 6).reshape(2, 3, 3)
        mesh = Mesh(np.zeros(SHAPE), np.zeros(SHAPE), corners, corners[..., ::-1], mask=mask)
        assert mesh.mask is not None and (mesh.mask == sea).all()


def test_means_over_masked_steps_are_missing() -> None:
    steps = {0: masked(), 1: masked(), 2: np.ma.masked_array(np.zeros(SHAPE), mask=False)}
    ((_, mean),) = at_times(steps, [2], method="mean", window=2, time=int, field=steps.__getitem__)
    np.testing.assert_array_equal(mean, [[0, np.nan, 1], [1.5, 2, np.nan]])


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("is_seen", [False, True])
def test_steps_may_be_read_into_one_buffer(pool: junctura.Pool, method: Any, is_seen: bool) -> None:
    buffer = np.empty(4)
    seen = buffer.view()
    seen.flags.writeable = False

    def read(hour: int) -> Array:
        pool.demand_array(name=str(hour), out=buffer)
        return seen if is_seen else buffer

    for hour in (0, 6, 12):
        pool.offer(np.full(4, 280.0 + hour), name=str(hour))
    steps = at_times([0, 6, 12], [0, 3, 6, 9], method=method, time=int, field=read)
    between = {"linear": (283, 289), "nearest": (280, 286)}[method]
    found = [(hour, float(values[0])) for hour, values in steps]
    assert found == [(0, 280), (3, between[0]), (6, 286), (9, between[1])]


@pytest.mark.parametrize("missing", [1e20, -9.99e8, 0.1])
def test_a_missing_value_is_that_of_the_type_of_the_field(missing: float) -> None:
    weights = Weights([0, 0, 1, 1], [0, 1, 2, 3], [0.5] * 4, (4,), (2,))
    for kind in (np.float32, np.float64):
        field = np.array([1, 2, 3, missing], kind)
        assert weights(field, missing=missing).tolist() == [1.5, float(kind(missing))]
        assert weights(field, missing=missing, norm="fracarea").tolist() == [1.5, 3.0]
        assert weights(field, missing=missing, norm="destarea").tolist() == [1.5, 1.5]
