"""A type and a shape that the caller gives must fit the data, in every call that takes them as attributes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import junctura
import junctura.aio

STORES = (f"form-{number}" for number in itertools.count())


def _through_pool(offer: Callable[[junctura.Pool, Any, dict[str, Any]], Any]) -> Callable[..., Any]:
    def through(data: Any, **form: Any) -> Any:
        with junctura.Pool(schema="free") as pool:
            offer(pool, data, {"name": "a", **form})
            return pool.demand(name="a").array().copy()

    return through


def _through_store(archive: Callable[[junctura.Store, Any, dict[str, Any]], Any]) -> Callable[..., Any]:
    def through(data: Any, **form: Any) -> Any:
        with junctura.Store.create(f"memory:{next(STORES)}", schema="free") as store:
            archive(store, data, {"name": "a", **form})
            store.flush()
            return store.list("name=a")[0].array().copy()

    return through


def _in_bundle(pool: junctura.Pool, data: Any, attributes: dict[str, Any]) -> None:
    with pool.bundle() as bundle:
        bundle.offer(data, attributes)


def _in_pipeline(pool: junctura.Pool, data: Any, attributes: dict[str, Any]) -> None:
    with pool.pipeline() as pipeline:
        pipeline.offer(data, attributes)


def _awaited(pool: junctura.Pool, data: Any, attributes: dict[str, Any]) -> None:
    async def main() -> None:
        async with junctura.aio.Pool(pool) as awaited:
            await awaited.offer(data, attributes)

    asyncio.run(main())


WAYS: dict[str, Callable[..., Any]] = {
    "Pool.offer": _through_pool(lambda pool, data, attributes: pool.offer(data, attributes)),
    "Pool.offer_many": _through_pool(lambda pool, data, attributes: pool.offer_many([(data, attributes)])),
    "Bundle.offer": _through_pool(_in_bundle),
    "Pipeline.offer": _through_pool(_in_pipeline),
    "aio.Pool.offer": _through_pool(_awaited),
    "Store.archive": _through_store(lambda store, data, attributes: store.archive(data, attributes)),
    "Store.archive_many": _through_store(lambda store, data, attributes: store.archive_many([(data, attributes)])),
}
LARGE = 1 << 18


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [4, LARGE])
def test_another_type_is_refused(way: str, count: int) -> None:
    array = np.ones(count)
    for dtype in ("i8", "f4", ">f8", "M8[s]", "bf16"):
        with pytest.raises(
            junctura.InvalidArgument,
            match=rf"^dtype: {dtype.replace('[', '.').replace(']', '.')} is given for an array of float64",
        ):
            WAYS[way](array, dtype=dtype)
    # The same type, in any notation.
    for dtype in ("f8", "<f8", "float64", "d"):
        assert (WAYS[way](array, dtype=dtype) == array).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", [np.ones((2, 3)), np.ones((3, 2)).T, np.ones((LARGE, 3), "f4")[:, ::2]])
def test_a_shape_of_another_size_is_refused(way: str, data: Any) -> None:
    extents = "/".join(map(str, data.shape))
    for shape in ([7], [2, 4], [0]):
        given = "/".join(map(str, shape))
        with pytest.raises(junctura.InvalidArgument, match=f"^shape: {given} is given for an array of shape {extents}"):
            WAYS[way](data, shape=shape)
    assert WAYS[way](data, shape=[data.size]).shape == (data.size,)


@pytest.mark.parametrize("way", WAYS)
def test_bytes_take_any_form_of_their_size(way: str) -> None:
    for data in (bytes(24), bytearray(24), np.zeros(24, "u1")):
        assert WAYS[way](data, dtype="f8").shape == (3,)
        assert WAYS[way](data, dtype="i4", shape=[2, 3]).shape == (2, 3)
        with pytest.raises(
            junctura.InvalidArgument, match=r"^shape: 2/2 of int32 are 16 bytes, and the data are 24 bytes"
        ):
            WAYS[way](data, dtype="i4", shape=[2, 2])
        with pytest.raises(
            junctura.InvalidArgument, match=r"^dtype: complex128 is given for 24 bytes, which are no whole"
        ):
            WAYS[way](data, dtype="c16")


@pytest.mark.parametrize("shape", [[10**12], [-1], [1, -1], [2**63 - 1]])
def test_a_shape_that_no_bytes_have_is_refused(pool: junctura.Pool, shape: list[int]) -> None:
    with pytest.raises(
        junctura.InvalidArgument, match=r"^shape: .* of float64 are -?\d+ bytes, and the data are 8 bytes"
    ):
        pool.offer(bytes(8), name="a", dtype="<f8", shape=shape)


def test_a_shape_without_that_of_the_elements_is_refused_each_time(pool: junctura.Pool) -> None:
    pool.offer(bytes(24), name="a", dtype="(2,)f4", shape=[3])
    for _ in range(2):  # The second time, an array of this dtype was made before.
        with pytest.raises(junctura.InvalidArgument, match="cannot reshape"):
            pool.demand(name="a").array()
        assert pool.demand(name="a").array(shape=(3, 2)).shape == (3, 2)


@pytest.mark.parametrize("way", WAYS)
def test_types_that_numpy_lacks_describe_integers_of_their_size(way: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match="no dtype"):
        WAYS[way](np.ones(4, "u2"), dtype="bf16")  # accepted; NumPy cannot read it
    for wrong in ("u4", "f2", "u8"):
        with pytest.raises(junctura.InvalidArgument, match=r"^dtype: bf16 is given for an array of"):
            WAYS[way](np.ones(4, wrong), dtype="bf16")


def _in_chunks(pool: junctura.Pool, attributes: dict[str, Any]) -> None:
    array = pytest.importorskip("dask.array")
    pool.offer_chunks(array.ones(4, chunks=2), attributes)


def _piece_in_bundle(pool: junctura.Pool, attributes: dict[str, Any]) -> None:
    with pool.bundle("step") as bundle:
        bundle.offer_piece(np.ones(4), "shape=4", 0, attributes)


PIECES: dict[str, Callable[[junctura.Pool, dict[str, Any]], None]] = {
    "Pool.offer_piece": lambda pool, attributes: pool.offer_piece(np.ones(4), "shape=4", 0, attributes),
    "Pool.offer_chunks": _in_chunks,
    "Bundle.offer_piece": _piece_in_bundle,
    "Exchange.put": lambda pool, attributes: junctura.Exchange(pool, "shape=4", 0).put(np.ones(4), attributes),
}


@pytest.mark.parametrize("way", PIECES)
def test_attributes_of_an_array_in_pieces_fit_it(pool: junctura.Pool, way: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"i8 is given for an array of <f8: leave dtype out"):
        PIECES[way](pool, {"name": "a", "dtype": "i8"})
    with pytest.raises(junctura.InvalidArgument, match=r"2/3 is given for an array of the layout shape=4"):
        PIECES[way](pool, {"name": "a", "shape": [2, 3]})
    PIECES[way](pool, {"name": "a", "dtype": "float64", "shape": [2, 2]})
    assert pool.demand_array(name="a", timeout=60).shape == (4,)


def test_an_array_in_pieces_has_the_form_of_its_pieces(pool: junctura.Pool) -> None:
    with pytest.raises(junctura.Error):
        pool.offer_piece(np.ones(4), "shape=3", 0, name="a")
    pool.offer_piece(np.ones(4), "shape=4", 0, name="b", dtype="i8")  # converted
    assert pool.demand_array(name="b").dtype == np.int64


def test_an_object_is_offered_again_with_its_attributes(pool: junctura.Pool) -> None:
    xarray = pytest.importorskip("xarray")
    field = xarray.DataArray(np.ones((2, 3)), dims=("y", "x"), coords={"y": [1.0, 2.0]}, name="a")
    pool.offer(field)
    obj = pool.demand(name="a")
    pool.offer(bytes(obj), {**obj.attributes, "name": "b"})
    assert pool.demand(name="b").array().shape == (2, 3)


@pytest.mark.parametrize("option", ["timeout", "until_live", "only_new", "order_by", "time_to_live"])
def test_an_option_of_another_call_is_no_attribute(pool: junctura.Pool, option: str) -> None:
    plain: dict[str, Any] = {option: "1"}
    underscored: dict[str, Any] = {f"{option}_": "1"}
    with pytest.raises(junctura.InvalidArgument, match=rf"^{option}: this call has no option {option}, and schema"):
        pool.offer(b"", name="a", **plain)
    pool.offer(b"", {option: "1"}, name="a")
    pool.offer(b"", name="b", **underscored)
    assert [entry[option] for entry in pool.list()] == ["1", "1"]


def test_an_attribute_of_the_schema_may_have_the_name_of_an_option() -> None:
    schema = """
name: runs
key: {dataset: [], collocation: [], element: [name]}
attributes:
  name: {type: string}
  timeout: {type: integer}
"""
    with junctura.Pool(schema=schema) as pool:
        pool.offer(b"", name="a", timeout=5)
        assert pool.demand(name="a")["timeout"] == 5
