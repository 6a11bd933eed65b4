"""Arrays of xarray's come back identical from pools and stores, or are refused by name."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import junctura

xarray = pytest.importorskip("xarray")
pandas = pytest.importorskip("pandas")

MARS = {"class": "rd", "expver": "0001", "stream": "oper", "date": "20261120", "time": "0000", "type": "fc"}
MARS |= {"levtype": "sfc", "step": "6", "param": "t"}
RECORD = {"collection": "c", "producer": "p", "sequence": 1}
# A store in memory stays as long as anybody has an object of it.
STORES = (f"labels-{number}" for number in itertools.count())
KEYS: dict[str, dict[str, Any]] = {"free": {"name": "key"}, "mars": MARS, "record": RECORD}


def through_pool(data: Any, schema: str) -> Any:
    with junctura.Pool(schema=schema) as pool:
        pool.offer(data, KEYS[schema])
        return pool.demand(pool.list()[0].key, timeout=0).to_xarray().copy(deep=True)


def through_store(data: Any, schema: str) -> Any:
    with junctura.Store.create(f"memory:{next(STORES)}", schema=schema) as store:
        store.archive(data, KEYS[schema])
        store.flush()
        return store.list()[0].to_xarray()


def awaited(data: Any, schema: str) -> Any:
    async def main() -> Any:
        async with junctura.aio.Pool(schema=schema) as pool:
            await pool.offer(data, KEYS[schema])
            (entry,) = await pool.list()
            return (await pool.demand(entry.key, timeout=0)).to_xarray().copy(deep=True)

    return asyncio.run(main())


WAYS: dict[str, Callable[[Any, str], Any]] = {"pool": through_pool, "store": through_store, "aio": awaited}


def check(data: Any, back: Any) -> None:
    """What `identical` compares, and what it does not: types, and which coordinates have an index."""
    xarray.testing.assert_identical(data, back)
    assert back.dtype == data.dtype and list(back.attrs) == list(data.attrs)
    assert set(back.xindexes) == set(data.xindexes) and list(back.coords) == list(data.coords)
    for name, coordinate in data.coords.items():
        assert back.coords[name].dtype == coordinate.dtype, name
    assert [same(one, two) for one, two in zip(data.attrs.values(), back.attrs.values(), strict=True)].count(False) == 0


def same(one: Any, two: Any) -> bool:
    if type(one) is not type(two):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return list(one) == list(two) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, (np.ndarray, np.generic)):
        return bool(one.dtype == two.dtype) and np.shape(one) == np.shape(two) and one.tobytes() == two.tobytes()
    return bool(one == two or (one != one and two != two))


TYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(sizes=(32, 64)),
    hnp.complex_number_dtypes(),
    hnp.unicode_string_dtypes(max_len=9),
    hnp.byte_string_dtypes(max_len=9),
    st.sampled_from([np.dtype(f"{kind}8[{unit}]") for kind in "Mm" for unit in ("s", "ms", "us", "ns")]),
)
# Names as files have them, and any text.
WORDS = st.one_of(
    st.sampled_from(["x", "lat", "time", "valid time", "a/b", "units", "name", "dtype", "shape", "labels", "to", "~x"]),
    st.text(min_size=1, max_size=12),
)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=40),
    st.complex_numbers(),
    st.binary(max_size=9),
    st.sampled_from([np.float32(0.1), np.int8(3), np.bool_(True), np.datetime64("2026-11-20"), np.str_("text")]),
    hnp.arrays(TYPES, hnp.array_shapes(min_dims=0, max_dims=2, max_side=3)),
)
# xarray compares no arrays, nor NaN, within lists.
WITHIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=9))
VALUES = PLAIN | st.recursive(
    WITHIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(WORDS, inner, max_size=3)
    ),
    max_leaves=5,
)
ATTRIBUTES = st.dictionaries(WORDS, VALUES, max_size=4)


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    dims = draw(st.lists(WORDS, max_size=3, unique=True))
    shape = draw(st.tuples(*[st.integers(0, 4) for _ in dims]))
    coords = {}
    for name in draw(st.lists(st.one_of(WORDS, st.sampled_from(dims) if dims else WORDS), max_size=4, unique=True)):
        along = [name] if name in dims else draw(st.lists(st.sampled_from(dims), unique=True)) if dims else []
        extents = tuple(shape[dims.index(dim)] for dim in along)
        values = draw(hnp.arrays(draw(TYPES), extents))
        coords[name] = xarray.Variable(along, values, draw(ATTRIBUTES))
    values = draw(hnp.arrays(draw(TYPES), shape))
    called = draw(st.one_of(st.none(), WORDS))
    data = xarray.DataArray(values, coords, dims, called, draw(ATTRIBUTES))
    for index in list(data.xindexes):
        if draw(st.integers(0, 3)) == 0:
            data = data.drop_indexes(index)
    return data


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=arrays(), schema=st.sampled_from(sorted(KEYS)), way=st.sampled_from(["pool", "store"]))
def test_any_array_comes_back_identical(data: Any, schema: str, way: str) -> None:
    # What the schema declares is an attribute of the object, too: a value that does not fit is an error of its own.
    declared = junctura.Schema.builtin(schema).attributes.keys() - {"dtype", "shape", "content_type", "name", "units"}
    data.attrs = {name: value for name, value in data.attrs.items() if name not in declared}
    data = data.drop_vars([name for name in data.coords if name in declared])
    check(data, WAYS[way](data, schema))


def field(**more: Any) -> Any:
    """Rows and columns with coordinates of every kind."""
    ny, nx = 30, 40
    rng = np.random.default_rng(3)
    north = {"units": "degrees_north", "valid_range": np.array([-90.0, 90])}
    coords = {
        "y": np.linspace(-1, 1, ny),
        "x": np.arange(nx, dtype="i4"),
        "lat": (("y", "x"), rng.normal(size=(ny, nx)), north),
        "lon": (("y", "x"), rng.normal(size=(ny, nx)).astype("f4"), {"units": "degrees_east"}),
        "region": ("y", [f"r{row}" for row in range(ny)]),
        "station": ("x", np.array([f"s{column}" if column % 3 else None for column in range(nx)], object)),
        "when": ("x", np.datetime64("2026-11-20", "ns") + np.arange(nx).astype("m8[h]")),
        "number": 7,
        "valid": np.datetime64("2026-11-20T12:00"),
        "took": np.timedelta64(90, "m"),
    }
    attrs = {"units": "K", "history": "made " * 1000, "flags": np.arange(3, dtype="i1"), "levels": [1, 2.5, "top"]}
    return xarray.DataArray(rng.normal(size=(ny, nx)), coords, ("y", "x"), "t2", {**attrs, **more})


@pytest.mark.parametrize("schema", KEYS)
@pytest.mark.parametrize("way", WAYS)
def test_coordinates_of_every_kind(schema: str, way: str) -> None:
    data = field()
    check(data, WAYS[way](data, schema))
    small = data.isel(y=slice(0, 2), x=slice(0, 2)).drop_attrs(deep=False)
    check(small, WAYS[way](small, schema))
    check(data.T, WAYS[way](data.T, schema))
    check(data[::-2, ::3], WAYS[way](data[::-2, ::3], schema))


@pytest.mark.parametrize("schema", KEYS)
def test_arrays_without_dimensions_times_and_texts(schema: str) -> None:
    for values in (
        3.5,
        np.datetime64("2026-11-20T12:00", "ns"),
        np.timedelta64(5, "s"),
        "text",
        np.array(["a", "bcd", ""]),
        np.array([b"a", b"bcd"]),
        np.array(["2026-11-20", "NaT"], "M8[ns]"),
        np.array([1, 2], ">i4"),
        np.zeros((0, 3), "f4"),
        np.array([""], "U1"),
        np.zeros(2, [("u", "f4"), ("v", "i8")]),
    ):
        data = xarray.DataArray(values, attrs={"long_name": "one"})
        check(data, through_pool(data, schema))
        check(data, through_store(data, schema))


def test_the_array_lies_first_and_is_taken_alone() -> None:
    data = field()
    with junctura.Pool(schema="record") as pool:
        pool.offer(data, RECORD)
        obj = pool.demand(RECORD)
        assert bytes(obj)[: data.nbytes] == data.values.tobytes() and obj.nbytes % 8 == len(bytes(obj)) % 8
        np.testing.assert_array_equal(obj.array(), data.values)
        assert not obj.array().flags.writeable and np.shares_memory(obj.array(), obj.to_xarray().values)
        np.testing.assert_array_equal(obj.array("f8", (40, 30)), data.values.reshape(40, 30))
        assert obj.array("u1").size == data.nbytes
    with junctura.Pool(schema="free") as pool:
        pool.offer(data, name="a")
        obj = pool.demand(name="a")
        assert (obj["content_type"], obj["dims"], obj["number"]) == ("application/vnd.junctura.labelled", "y/x", "7")
        assert obj.get("labels") is None and obj.get("history") is None
        np.testing.assert_array_equal(pool.demand_array("name=a", slab=(slice(3, 5), slice(2, 9))), data[3:5, 2:9])
        # An object that is handed on keeps them.
        pool.offer(obj, {**obj.attributes, "name": "b"})
        check(data, pool.demand(name="b").to_xarray())


def test_what_else_is_said_of_an_object_is_no_part_of_its_array(pool: junctura.Pool) -> None:
    data = xarray.DataArray(
        np.arange(3.0), {"x": [1, 2, 3]}, ("x",), "t", {"units": "K", "dtype": "any", "shape": "round"}
    )
    pool.offer(data, name="other", units="degC", colour="red")
    obj = pool.demand(name="other")
    assert (obj["units"], obj["colour"], obj["dtype"], obj["shape"]) == ("degC", "red", "float64", [3])
    assert json.loads(obj["labels"])["dims"] == ["x"] and obj.nbytes == 24
    check(data, obj.to_xarray())
    # Arrays that have no labels get the attributes as coordinates, as ever.
    pool.offer(np.zeros(2), name="bare", dims="x", colour="red")
    assert pool.demand(name="bare").to_xarray().colour.item() == "red"


def test_more_attributes_than_an_object_may_have(pool: junctura.Pool) -> None:
    short = xarray.DataArray(np.zeros(2), dims="x", attrs={f"s{at}": at for at in range(300)})
    pool.offer(short, name="short")
    check(short, pool.demand(name="short").to_xarray())
    attrs = {f"attribute {at}": "x" * at for at in range(200)} | {f"a{at}": "y" * 900 for at in range(100)}
    data = xarray.DataArray(np.zeros(2), dims="x", attrs={**attrs, "n\xe4me": 1, "long": "z" * 5000, "not": "a word"})
    pool.offer(data, name="many")
    check(data, pool.demand(name="many").to_xarray())


class Derived(xarray.DataArray):  # type: ignore[misc,name-defined]
    """As a program may have."""

    __slots__ = ()


def test_arrays_of_derived_classes_and_of_dask(pool: junctura.Pool) -> None:
    pytest.importorskip("dask")
    data = field()
    pool.offer(Derived(data), name="derived")
    check(data, pool.demand(name="derived").to_xarray())
    pool.offer(data.chunk(x=7), name="dask")
    check(data, pool.demand(name="dask").to_xarray())


def test_every_way_in_keeps_labels(pool: junctura.Pool) -> None:
    data = field()
    pool.offer_many([(data, {"name": "many"})])
    with pool.pipeline() as pipeline, pool.bundle() as bundle:
        pipeline.offer(data, name="pipeline")
        bundle.offer(data, name="bundle")
        bundle.offer_many([(data, {"name": "bundles"})])
    for name in ("many", "pipeline", "bundle", "bundles"):
        check(data, pool.demand(name=name).to_xarray())
    with junctura.Store.create(f"memory:{next(STORES)}", schema="free") as store:
        store.archive_many([(data, {"name": "many"})])
        store.flush()
        check(data, store.list()[0].to_xarray())


def one(coords: Any = None, values: Any = (0.0, 0.0), dims: Any = "x", **more: Any) -> Any:
    return xarray.DataArray(np.asarray(values), coords, dims, **more)


def indexed(index: Any) -> Any:
    return one({"x": index})


def levels() -> Any:
    index = pandas.MultiIndex.from_product([["a", "b"], [1, 2]], names=("one", "two"))
    return one(xarray.Coordinates.from_pandas_multiindex(index, "x"), np.zeros(4))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "levels": (levels, "reset_index"),
    "objects": (lambda: one(values=np.array([{}, 1], object)), "Python objects"),
    "texts and numbers": (lambda: one({"c": ("x", np.array(["a", 1.5], object))}), "coordinate c"),
    "a category": (lambda: indexed(pandas.CategoricalIndex(["a", "b"])), "coordinate x"),
    "a zone": (lambda: indexed(pandas.date_range("2026", periods=2, tz="UTC")), "coordinate x"),
    "a period": (lambda: indexed(pandas.period_range("2026", periods=2, freq="D")), "coordinate x"),
    "a dimension": (lambda: one(dims=[3]), "3 is a int"),
    "a name": (lambda: one(name=("a", 1)), "name of the array"),
    "an attribute's name": (lambda: one(attrs={1: 2}), "1 is a int"),
    "a set": (lambda: one(attrs={"flags": {1, 2}}), r"attribute flags.*set"),
    "a date": (lambda: one(attrs={"day": dt.date(2026, 11, 20)}), r"attribute day.*date"),
    "within": (lambda: one(attrs={"a": [{"b": object()}]}), r"attribute a.*object"),
    "of a coordinate": (lambda: one({"c": ("x", [1, 2], {"f": len})}), "coordinate c: attribute f"),
    "Dataset": (lambda: xarray.Dataset({"t": ("x", [1, 2])}), r"xarray.Dataset"),
    "Variable": (lambda: xarray.Variable("x", [1, 2]), r"xarray.Variable"),
    "DataFrame": (lambda: pandas.DataFrame({"a": [1, 2]}), r"pandas.DataFrame.*to_numpy"),
    "Series": (lambda: pandas.Series([1, 2], [5, 6]), r"pandas.Series.*to_numpy"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_kept_is_refused_by_name(what: str) -> None:
    make, named = REFUSED[what]
    data = make()
    ways: list[Callable[[Any, str], Any]] = [*WAYS.values()]
    for way in ways:
        for schema in KEYS:
            with pytest.raises(junctura.InvalidArgument, match=named):
                way(data, schema)


def test_pieces_have_no_labels(pool: junctura.Pool) -> None:
    for data in (field(), pandas.DataFrame({"a": [1, 2]}), pandas.Series([1, 2])):
        with pytest.raises(junctura.InvalidArgument, match=r"labels of a .* would be lost"):
            pool.offer_piece(data, f"shape={'x'.join(map(str, data.shape))}", 0, name="a")


def test_labels_of_chunks_are_kept_or_refused() -> None:
    pytest.importorskip("dask")
    data = (
        field().isel(y=slice(0, 3), x=slice(0, 4)).drop_attrs().drop_vars(["lat", "lon", "region", "station", "when"])
    )
    with junctura.Pool(schema="free") as pool:
        pool.offer_chunks(data.chunk(x=2), name="small")
        check(data, pool.demand_chunks(name="small", xarray=True).compute())
        with pytest.raises(junctura.InvalidArgument, match=r"they take \d+ bytes \(y, x, lat.*at most 1024.*drop_vars"):
            pool.offer_chunks(field().chunk(x=20), name="large")
        assert [entry["name"] for entry in pool.list()] == ["small"]
    with (
        junctura.Pool(schema="mars") as pool,
        pytest.raises(junctura.InvalidArgument, match="schema mars has no attribute labels"),
    ):
        pool.offer_chunks(data.chunk(x=2), MARS)


def test_a_dataset_of_labelled_arrays_has_their_coordinates(tmp_path: Path) -> None:
    with junctura.Store.create(tmp_path / "store", schema="mars") as store:
        for step in (0, 6):
            store.archive(field().drop_vars(["number", "valid", "took"]) + step, {**MARS, "step": step})
    data = xarray.open_dataset(tmp_path / "store", engine="junctura")
    assert data.t.dims == ("step", "y", "x")
    np.testing.assert_array_equal(data.t.isel(step=1), field().values + 6)
    for name in ("y", "x", "lat", "lon", "region", "when"):
        xarray.testing.assert_identical(data[name].variable, field()[name].variable)


def test_objects_of_tasks_have_their_labels(pool: junctura.Pool) -> None:
    pytest.importorskip("dask")
    from junctura.dask import from_selector

    data = field()
    pool.offer(data, name="a")
    pool.offer(np.arange(6.0).reshape(2, 3), name="b")
    bag: Any = from_selector("name=*", pool=pool)
    found = {one.attributes["name"]: one for one in bag.compute(scheduler="sync")}
    for one in (found["a"], pickle.loads(pickle.dumps(found["a"]))):
        check(data, one.to_xarray())
        np.testing.assert_array_equal(one.array(), data.values)
    assert pickle.loads(pickle.dumps(found["b"])).array().shape == (2, 3)


def test_damaged_labels_are_corrupt_and_no_other_failure(pool: junctura.Pool) -> None:
    data = field()
    pool.offer(data, name="whole")
    obj = pool.demand(name="whole")
    whole, attributes = bytes(obj), {**obj.attributes}
    rng = np.random.default_rng(5)
    start = data.nbytes + data.lat.nbytes
    for at in range(150):
        damaged = bytearray(whole)
        for place in rng.integers(start, len(whole) - 16, 3):
            damaged[place] = rng.integers(0, 256)
        pool.offer(bytes(damaged), {**attributes, "name": f"damaged-{at}"})
        found = pool.demand(name=f"damaged-{at}")
        try:
            assert found.to_xarray().shape == data.shape
        except (junctura.Corrupt, junctura.InvalidArgument):
            continue
    for text in ('{"junctura-labels":1}', '{"junctura-labels":1,', '{"junctura-labels":2,"dims":[]}'):
        pool.offer(np.zeros(2), name=text, labels=text)
        with pytest.raises(junctura.Corrupt, match="labels"):
            pool.demand({"name": text}).to_xarray()
    # A text of somebody else's, and bytes that end so.
    pool.offer(np.zeros(2), name="mine", labels="a/b")
    assert pool.demand(name="mine").to_xarray().shape == (2,)
    pool.offer(b"any bytes junctura-labels1", name="bytes")
    assert pool.demand(name="bytes").array().size == 26


def test_several_arrays_of_one_key_in_a_flush_are_told(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.archive(np.zeros(2), name="a")
        store.archive(b"1", name="bytes")
        store.archive(b"2", name="bytes")
        store.archive(field(), name="b")
    for data in (np.ones(2), field()):
        with pytest.warns(RuntimeWarning, match=r"several arrays have the key \{space=default\}\{\}\{name=a\}"):
            store.archive(data, name="a")
    with pytest.warns(RuntimeWarning, match="name=b"):
        store.archive_many([(np.zeros(1), {"name": "c"}), (np.zeros(1), {"name": "b"})])
    store.flush()
    assert store.list("name=a")[0].to_xarray().name == "t2"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.archive(np.zeros(2), name="a")
        store.discard()
        store.archive(np.zeros(2), name="a")
        store.flush()
        store.archive(np.zeros(2), name="a")
