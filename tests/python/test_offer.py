"""Offering: what may be data, what may be attributes, what comes back."""

from __future__ import annotations

import array
import datetime
import decimal
import mmap
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as arrays

import junctura

MARS = {"class": "od", "stream": "oper", "date": "20261120", "time": 0, "type": "fc", "levtype": "pl", "param": "t"}
SHARED = 1 << 18


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"payload",
        bytes(SHARED),
        bytearray(b"payload"),
        memoryview(b"payload"),
        memoryview(bytes(range(100)))[::3],
        array.array("B", b"abc"),
        mmap.mmap(-1, 5000),
    ],
    ids=lambda data: f"{type(data).__name__} of {len(data)}",
)
def test_bytes(pool: junctura.Pool, data: Any) -> None:
    pool.offer(data, name="a")
    obj = pool.demand(name="a")
    assert bytes(obj) == bytes(data)
    assert len(obj) == obj.nbytes == len(bytes(data))
    assert obj.array().dtype == np.uint8
    assert "dtype" not in obj.attributes


ARRAYS = [
    np.arange(12, dtype="f4").reshape(3, 4),
    np.arange(12, dtype=">i2").reshape(3, 4),
    np.arange(24.0).reshape(2, 3, 4).transpose(),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(100)[::-7],
    np.array(3.5),
    np.zeros((0, 5), "u2"),
    np.array([True, False]),
    np.array([1 + 2j, 3], "c8"),
    np.array(["2026-11-20", "NaT"], "M8[s]"),
    np.array([1, 2], "m8[h]"),
    np.array([b"abc", b"d"]),
    np.array(["äöü", "x"]),
    np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")]),
    np.arange(6, dtype="u1").reshape(2, 3),
    np.arange(6, dtype="i1"),
    np.arange(6, dtype="f2"),
    np.arange(6, dtype="g"),
    np.random.default_rng(1).normal(size=(300, 400)),
    np.broadcast_to(np.arange(4.0), (500, 4)),
]


@pytest.mark.parametrize("schema", ["free", "mars", "record", "rowcol"])
@pytest.mark.parametrize("data", ARRAYS, ids=lambda data: f"{data.dtype}{data.shape}")
def test_arrays(data: npt.NDArray[Any], schema: str) -> None:
    keys: dict[str, dict[str, Any]] = {
        "free": {"name": "a"},
        "mars": MARS,
        "record": {"producer": "p", "sequence": 1},
        "rowcol": {"row": "r", "column": "c"},
    }
    key = keys[schema]
    with junctura.Pool(schema=schema) as pool:
        pool.offer(data, key)
        obj = pool.demand(key)
        back = obj.array()
        assert back.dtype == data.dtype
        assert back.shape == data.shape
        np.testing.assert_array_equal(back, data)
        assert not back.flags.writeable
        if data.dtype.fields is None:
            assert np.shares_memory(back, obj.array()) or data.size == 0


@settings(max_examples=60, deadline=None)
@given(data=arrays.arrays(arrays.scalar_dtypes(), arrays.array_shapes(min_dims=0, min_side=0)))
def test_any_array(data: npt.NDArray[Any]) -> None:
    with junctura.Pool(schema="free") as pool:
        pool.offer(data, name="a")
        back = pool.demand(name="a").array()
    assert (back.dtype, back.shape, back.tobytes()) == (data.dtype, data.shape, data.tobytes())


def test_other_arrays(pool: junctura.Pool) -> None:
    class Thing:
        def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
            return np.arange(3, dtype=dtype)

    pool.offer(Thing(), name="thing")
    pool.offer(array.array("d", [1.5, 2.5]), name="array")
    assert pool.demand(name="thing").array().tolist() == [0, 1, 2]
    assert pool.demand(name="array").array().tolist() == [1.5, 2.5]


@pytest.mark.parametrize("data", ["text", 3, None, object(), [1, 2], {"a": 1}, np.array([object()])])
def test_what_is_no_data(pool: junctura.Pool, data: Any) -> None:
    with pytest.raises(junctura.InvalidArgument) as raised:
        pool.offer(data, name="a")
    assert raised.value.subject == "data"
    assert pool.list() == []


def test_a_schema_without_dtype_has_to_be_told() -> None:
    schema = "name: plain\nkey: {dataset: [], collocation: [], element: [name]}\nattributes:\n  name: {type: string}\n"
    with junctura.Pool(schema=schema) as pool:
        with pytest.warns(junctura.UsageWarning, match="declares no attribute dtype"):
            pool.offer(np.arange(6.0).reshape(2, 3), name="a")
        obj = pool.demand(name="a")
        with pytest.raises(junctura.InvalidArgument, match="no attribute dtype"):
            obj.array()
        assert obj.array("f8").tolist() == [0, 1, 2, 3, 4, 5]
        assert obj.array(np.float64, (2, 3)).shape == (2, 3)
        assert obj.array("f8", 6).shape == (6,)


def test_an_array_seen_otherwise(pool: junctura.Pool) -> None:
    pool.offer(np.arange(6.0).reshape(2, 3), name="a")
    obj = pool.demand(name="a")
    assert obj.array(shape=(3, 2)).shape == (3, 2)
    assert obj.array("u1").shape == (48,)
    assert obj.array(dtype="f4", shape=(-1, 4)).shape == (3, 4)
    for dtype, shape in [("f8", (7,)), ("i7", None), (">f16", (1, 1)), ("O", None), ("V5", None)]:
        with pytest.raises(junctura.InvalidArgument):
            obj.array(dtype, shape)


def test_a_dtype_of_the_users_own_stands(pool: junctura.Pool) -> None:
    pool.offer(np.zeros(4, "u1"), name="a", dtype="float32")
    assert pool.demand(name="a").array().tolist() == [0.0]
    pool.offer(b"12345678", name="b", dtype="<i4", shape=[2, 1])
    assert pool.demand(name="b").array().shape == (2, 1)


@pytest.mark.parametrize(
    ("given_value", "canonical"),
    [
        (500, 500),
        (500.0, 500),
        ("500", 500),
        (np.int64(500), 500),
        (np.float32(0.5), 0.5),
        (decimal.Decimal("0.10"), 0.1),
        (decimal.Decimal("1e2"), 100),
        (0.1, 0.1),
        (np.array(7), 7),
        ("123456789012345.678", decimal.Decimal("123456789012345.678")),
    ],
)
def test_numbers(given_value: Any, canonical: Any) -> None:
    with junctura.Pool(schema="mars") as pool:
        pool.offer(b"", MARS, level=given_value)
        obj = pool.demand("param=t")
        value = obj["levelist"]
        assert value == canonical
        assert type(value) is type(canonical)
        assert obj.attributes["levelist"] == canonical
        assert obj.get("level") == canonical


def test_dates_times_and_lengths() -> None:
    with junctura.Pool(schema="mars") as pool:
        given_values: dict[str, Any] = {
            **MARS,
            "date": datetime.date(2026, 11, 20),
            "time": datetime.time(6, 30),
            "step": datetime.timedelta(minutes=90),
            "validity": datetime.datetime(2026, 11, 20, 8, tzinfo=datetime.timezone.utc),
            "tags": ["a", "b/c", ""],
            "area": (70, np.float64(-10.5), 30, 40),
        }
        pool.offer(b"", given_values)
        attributes = pool.demand("param=t").attributes
    assert (attributes["date"], attributes["time"], attributes["step"]) == ("20261120", "0630", "90m")
    assert attributes["validity"] == "2026-11-20T08:00:00Z"
    assert attributes["tags"] == ["a", "b/c", ""]
    assert attributes["area"] == [70, -10.5, 30, 40]


def test_ways_to_give_attributes(pool: junctura.Pool) -> None:
    mars = junctura.Schema.builtin("mars")
    split = {name: MARS[name] for name in ("stream", "date", "time", "type", "levtype", "param")}
    assert mars.key(split, class_="od") == mars.key(MARS) == mars.key(MappingProxyType(MARS))
    assert mars.key(MARS, number=None) == mars.key(MARS)
    pool.offer(b"", {"name": "a", "schema": "in a dictionary"}, colour="red")
    assert pool.demand(name="a").attributes["schema"] == "in a dictionary"


@pytest.mark.parametrize(
    ("attributes", "error", "subject"),
    [
        ({"name": object()}, junctura.TypeMismatch, "name"),
        ({"name": b"bytes"}, junctura.TypeMismatch, "name"),
        ({"name": [["a"]]}, junctura.TypeMismatch, "name"),
        ({"name": 3}, junctura.TypeMismatch, "name"),
        ({"name": "\ud800"}, junctura.TypeMismatch, "attributes"),
        ({3: "a"}, junctura.InvalidArgument, "attributes"),
        (["name"], junctura.InvalidArgument, "attributes"),
        ({}, junctura.SchemaMismatch, "name"),
        ({"name": "x" * 2000}, junctura.TooLarge, "name"),
    ],
)
def test_attributes_that_are_none(
    pool: junctura.Pool, attributes: Any, error: type[junctura.Error], subject: str
) -> None:
    with pytest.raises(error) as raised:
        pool.offer(b"", attributes)
    assert subject in raised.value.subject
    assert pool.list() == []


def test_an_integer_that_is_too_large() -> None:
    with pytest.raises(junctura.TypeMismatch, match="99999999999999999999"):
        junctura.Schema.builtin("record").key(producer="p", sequence=99999999999999999999)


def test_a_key_can_be_used_once(pool: junctura.Pool) -> None:
    pool.offer(b"1", name="a")
    with pytest.raises(junctura.AlreadyExists) as raised:
        pool.offer(b"2", name="a")
    assert "name=a" in raised.value.subject
    assert bytes(pool.demand(name="a")) == b"1"


def test_a_key_can_be_superseded() -> None:
    schema = junctura.Schema.builtin("free").to_yaml().replace("same_key: reject", "same_key: supersede")
    with junctura.Pool(schema=schema) as pool:
        first = pool.offer(b"1", name="a")
        old = pool.demand(name="a")
        assert pool.offer(b"2", name="a") > first
        assert (bytes(old), bytes(pool.demand(name="a"))) == (b"1", b"2")


def test_versions_rise_and_compare(pool: junctura.Pool) -> None:
    versions = [pool.offer(b"", name=name) for name in "abc"]
    assert versions == sorted(versions)
    assert len(set(versions)) == 3
    assert versions[0] == junctura.Version.parse(str(versions[0]))
    assert versions[0].incarnation == pool.incarnation
    with pytest.raises(junctura.InvalidArgument):
        junctura.Version.parse("one")


def test_an_object_goes_when_its_time_is_over(pool: junctura.Pool) -> None:
    events = pool.subscribe(kinds=["expired"])
    pool.offer(b"", name="a", retention="10ms")
    pool.offer(b"", name="b", retention=datetime.timedelta(milliseconds=20))
    pool.offer(b"", name="c", retention="10min")
    pool.offer(b"", name="d", retention=datetime.timedelta(days=30))
    assert {names(next(events)) for _ in range(2)} == {"a", "b"}
    assert [entry["name"] for entry in pool.list()] == ["c", "d"]
    with pytest.raises(junctura.Gone, match="expired"):
        pool.demand(name="a")


def test_an_offer_goes_before_its_schema() -> None:
    schema = "name: own\nretention: {for: 10ms}\nkey: {dataset: [name]}\nattributes: {name: {type: string}}\n"
    with junctura.Pool(schema=schema) as pool:
        events = pool.subscribe(kinds=["expired"])
        pool.offer(b"", name="a", retention="withdrawn")
        pool.offer(b"", name="b")
        assert names(next(events)) == "b"
        assert [entry["name"] for entry in pool.list()] == ["a"]


def test_an_object_stays_until_those_that_it_names_have_had_it(pool: junctura.Pool) -> None:
    events = pool.subscribe(kinds=["expired"])
    pool.offer(b"", name="a", retention="released_by:products,archive")
    pool.offer_many([(bytes(10_000), {"name": "b"})], retention="released_by:archive")
    assert pool.stat()["awaited"] == [
        {"name": "archive", "objects": 2, "bytes": 10_000},
        {"name": "products", "objects": 1, "bytes": 0},
    ]
    with pool.follow(group="archive", selector="") as archive:
        for _ in range(2):
            archive.next().release()
    assert names(next(events)) == "b"
    with pool.follow("name=a", group="products") as products:
        products.next().release()
    assert names(next(events)) == "a"
    for wrong in ("released_by:", "released_by:no name", "released_by:" + ",".join(map(str, range(17)))):
        with pytest.raises(junctura.InvalidArgument):
            pool.offer(b"", name="c", retention=wrong)


def test_a_schema_retains_each_dataset_in_its_own_way() -> None:
    schema = """
name: own
retention: {released_by: [archive]}
retention_by_dataset:
  - {where: "class=rd", retention: {for: 10ms}}
key: {dataset: [class], element: [name]}
attributes: {class: {type: string}, name: {type: string}}
"""
    with junctura.Pool(schema=schema) as pool:
        events = pool.subscribe(kinds=["expired"])
        pool.offer(b"", class_="od", name="a")
        pool.offer(b"", class_="rd", name="b")
        assert names(next(events)) == "b"
        assert [one["name"] for one in pool.stat()["awaited"]] == ["archive"]


def names(event: junctura.Event) -> object:
    assert event.object is not None
    return event.object["name"]


def test_retention(pool: junctura.Pool) -> None:
    pool.offer(b"", name="a", retention=junctura.Released(2))
    pool.offer(b"", name="b", retention="withdrawn")
    with junctura.Pool(pool.url) as other:
        for consumer, left in ((pool, 2), (pool, 2), (other, 1)):
            consumer.demand(name="a").release()
            # A client's release and what it asks next are done in this order; nothing orders two clients.
            assert len(consumer.list()) == left
    pool.demand(name="b").release()
    assert len(pool.list()) == 1
    for wrong in ("forever", 3, junctura.Version(1, 1), "0s", "50d", datetime.timedelta(0), datetime.timedelta(-1)):
        with pytest.raises(junctura.InvalidArgument, match="retention"):
            pool.offer(b"", name="c", retention=wrong)  # type: ignore[arg-type]
    with pytest.raises(junctura.InvalidArgument):
        junctura.Released(0)
    assert junctura.Released(2) == junctura.Released(2)


def test_several_schemas() -> None:
    with junctura.Pool(schema=["free", "record"]) as pool:
        pool.offer(b"1", name="a")
        pool.offer(b"2", schema="record", producer="p", sequence=1)
        assert bytes(pool.demand(schema="record", producer="p", sequence=1)) == b"2"
        assert [entry.schema.name for entry in pool.list()] == ["free", "record"]
        assert [schema.name for schema in pool.schemas] == ["free", "record"]
        assert pool.schema().name == "free"
        assert pool.schema("record").name == "record"
        with pytest.raises(junctura.NotFound):
            pool.offer(b"", schema="mars", name="a")


@pytest.mark.parametrize("source", [list, tuple, iter])
@pytest.mark.parametrize("window", [1, 3, 1024])
def test_many(pool: junctura.Pool, source: Any, window: int) -> None:
    objects = [(np.full(at + 1, at), {"name": f"{at:04}"}) for at in range(200)]
    versions = pool.offer_many(source(objects), window=window)
    assert versions == sorted(versions)
    entries = pool.list()
    assert [entry.version for entry in entries] == versions
    assert pool.demand(name="0007").array().tolist() == [7] * 8
    assert pool.offer_many([]) == []


def test_many_until_one_fails(pool: junctura.Pool) -> None:
    objects: list[Any] = [(b"", {"name": f"{at:03}"}) for at in range(300)]
    objects[150] = (b"", {"nome": "wrong"})
    with pytest.raises(junctura.SchemaMismatch):
        pool.offer_many(objects)
    assert {f"{at:03}" for at in range(128)} <= {entry["name"] for entry in pool.list()}
    wrongs: list[list[Any]] = [[b""], [(b"",)], [(b"", {}, 3)]]
    for wrong in wrongs:
        with pytest.raises(junctura.InvalidArgument, match="object 0"):
            pool.offer_many(wrong)


def test_many_say_which_one_the_server_refused() -> None:
    with junctura.Pool(schema="free") as pool:
        pool.offer(b"", name="b")
        with pytest.raises(junctura.AlreadyExists) as raised:
            pool.offer_many([(b"", {"name": name}) for name in "abc"])
        assert raised.value.index == 1
        assert "name=b" in raised.value.subject


def test_a_generator_that_fails_passes_its_error_on(pool: junctura.Pool) -> None:
    def objects() -> Any:
        yield b"", {"name": "a"}
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        pool.offer_many(objects())


def test_a_pipeline(pool: junctura.Pool) -> None:
    with pool.pipeline(window=8) as pipeline:
        numbers = [pipeline.offer(bytes(at * 3000), name=f"{at:03}") for at in range(60)]
        assert numbers == list(range(60))
        assert pipeline.outstanding <= 8
        pipeline.push()
        pipeline.flush()
        assert pipeline.outstanding == 0
        assert len(pool.list()) == 60
        pipeline.offer(b"", name="last")
    assert len(pool.list()) == 61
    with pytest.raises(junctura.Closed):
        pipeline.offer(b"", name="later")


def test_a_pipeline_tells_the_first_failure(pool: junctura.Pool) -> None:
    pool.offer(b"", name="a")
    pipeline = pool.pipeline()
    pipeline.offer(b"", name="a")
    pipeline.offer(b"", name="b")
    with pytest.raises(junctura.AlreadyExists) as raised:
        pipeline.flush()
    assert "name=a" in raised.value.subject
    pipeline.flush()
    assert len(pool.list()) == 2


def test_the_end_of_a_pipeline_raises_but_hides_nothing(pool: junctura.Pool) -> None:
    def twice(name: str) -> None:
        with pool.pipeline() as pipeline:
            pipeline.offer(b"", name=name)
            pipeline.offer(b"", name=name)

    def broken() -> None:
        with pool.pipeline() as pipeline:
            pipeline.offer(b"", name="a")
            raise LookupError("the user's own")

    with pytest.raises(junctura.AlreadyExists):
        twice("a")
    with pytest.raises(LookupError, match="own"):
        broken()


def test_a_full_pool() -> None:
    with junctura.Pool(schema="free", budget="8MiB", offer_timeout=0.0) as pool:
        objects = [(bytes(1 << 20), {"name": f"{at}"}) for at in range(64)]
        with pytest.raises(junctura.PoolFull) as raised:
            pool.offer_many(objects)
        # Nothing but a withdrawal frees memory.
        assert raised.value.advice == "give up"
        assert pool.withdraw_all("") > 0
        pool.offer(bytes(1 << 20), name="there is room again")


def test_too_large() -> None:
    with junctura.Pool(schema="free", budget="8MiB", offer_timeout=0.0) as pool:
        with pytest.raises((junctura.TooLarge, junctura.PoolFull)):
            pool.allocate(1 << 62)
        with pytest.raises((junctura.TooLarge, junctura.PoolFull)):
            pool.offer(np.broadcast_to(np.zeros(1, "u1"), (1 << 40,)), name="a")


def test_checked() -> None:
    with junctura.Pool(schema="free", checked=True) as pool:
        for size in (10, SHARED):
            pool.offer(bytes(size), name=f"{size}")
            assert len(pool.demand(name=f"{size}")) == size


def test_stat(pool: junctura.Pool) -> None:
    pool.offer(b"payload", name="a")
    stat = pool.stat()
    assert isinstance(stat, dict)
    assert stat


def test_what_nothing_wants_is_not_moved_and_told(pool: junctura.Pool) -> None:
    """R2.6, R2.7: what will be consumed can be declared beforehand, so that nothing else is moved."""
    field = np.zeros(100_000)
    wanted = pool.require("name=a/b")
    assert (pool.wanted(name="a"), pool.wanted({"name": "c"})) == (1, 0)
    with pool.subscribe(kinds=["declined", "missed"]) as events:
        versions = [pool.offer(field, name=name, if_wanted=True) for name in "abcd"]
        assert [version is not None for version in versions] == [True, True, False, False]
        assert pool.stat()["memory"]["slots_occupied"] == 2
        assert pool.offer(b"small", name="e", if_wanted=True) is None
        with pool.allocate(1 << 20) as memory:
            assert memory.offer(name="f", if_wanted=True) is None
        with pytest.raises(junctura.NotWanted):
            pool.demand({"name": "c"})
        told = [next(events) for _ in range(5)]
        assert [(event.kind, event.object["name"]) for event in told if event.object] == [
            ("declined", "c"),
            ("declined", "d"),
            ("declined", "e"),
            ("declined", "f"),
            ("missed", "c"),
        ]
    stat = pool.stat()
    assert stat["memory"]["slots_occupied"] == 2
    assert stat["totals"]["offered_bytes"] == 2 * field.nbytes
    assert (stat["totals"]["declined"], stat["totals"]["failed"]) == (4, 0)
    assert pool.offer(field, name="c") is not None
    assert pool.demand(name="c").nbytes == field.nbytes
    wanted.retract()


def test_a_pipeline_goes_on_past_what_nothing_wants(pool: junctura.Pool) -> None:
    pool.require("name=b", name="keeps")
    with pool.pipeline() as pipeline:
        for name in "abc":
            pipeline.offer(b"x", name=name, if_wanted=True)
    assert [entry["name"] for entry in pool.list()] == ["b"]
