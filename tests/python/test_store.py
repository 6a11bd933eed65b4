"""The store from Python: what is archived lasts, is seen when it was flushed, and comes back as it was."""

from __future__ import annotations

import datetime
import decimal
import io
import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_stores import DATA, FIELD, grib, needs_data

import junctura


@pytest.fixture
def store(tmp_path: Path) -> junctura.Store:
    return junctura.Store.create(tmp_path / "store", schema="free")


def test_nothing_is_visible_before_its_flush(store: junctura.Store) -> None:
    store.archive(b"one", name="a")
    assert (store.pending, len(store.list())) == (1, 0)
    flushed = store.flush()
    assert (flushed.commit, flushed.objects, store.pending) == (1, 1, 0)
    assert store.flush() != flushed and store.flush().objects == 0 and store.flush().commit == 1
    assert [obj.read() for obj in store.list()] == [b"one"]
    assert len(junctura.Store(store.path).list("name=a")) == 1


def test_what_is_new_since_a_look_is_told_with_its_place(store: junctura.Store) -> None:
    with store:
        store.archive(b"one", name="a")
    seen = store.snapshot().commit
    assert len(store.list(after=seen)) == 0
    for payload in (b"two", b"three"):
        with store:
            store.archive(payload, name="a")
    assert [obj.read() for obj in store.list(after=seen)] == [b"three"]
    new = store.list(all_versions=True, after=seen)
    assert [(obj.read(), obj.commit, obj.location.nbytes) for obj in new] == [(b"two", 2, 3), (b"three", 3, 5)]


def test_what_is_committed_is_followed(store: junctura.Store) -> None:
    def archive(*names: str) -> None:
        for name in names:
            store.archive(name.encode(), name=name)
            store.flush()

    archive("a", "b")
    follow = store.follow("name=a/c", timeout=0.01)
    assert next(follow)["name"] == "a"
    with pytest.raises(junctura.Timeout):
        next(follow)
    archive("c", "b", "a")
    assert follow.commit == 2
    new = [next(follow) for _ in range(2)]
    assert follow.commit == 5
    assert [(obj["name"], obj.commit, obj.read()) for obj in new] == [("c", 3, b"c"), ("a", 5, b"a")]
    assert new[0].location.nbytes == 1
    assert [obj.commit for _, obj in zip(range(2), store.follow(after=3), strict=False)] == [4, 5]
    waits = store.follow("name=d", after=5)
    writer = threading.Thread(target=archive, args=("d",))
    writer.start()
    assert next(waits).commit == 6
    writer.join()
    with pytest.raises(junctura.InvalidSelector):
        next(store.follow("name="))


def test_a_retrieval_waits_for_what_is_missing(store: junctura.Store) -> None:
    with store:
        store.archive(b"", name="a")
    assert [obj["name"] for obj in store.retrieve("name=a", wait=True)] == ["a"]
    with pytest.raises(junctura.errors.NotFound, match=r"missing: \{name=b\}"):
        store.retrieve("name=a/b", wait=False)
    with pytest.raises(junctura.errors.Timeout, match=r"missing: \{name=b\}"):
        store.retrieve("name=a/b", wait=0.01)
    assert store.retrieve("name=a/b", partial=True, wait=0.01).missing == ["{name=b}"]
    with pytest.raises(junctura.errors.InvalidArgument):
        store.retrieve("name=a/b", wait=-1)

    def offer_late() -> None:
        other = junctura.Store(store.path)
        with other:
            other.archive(b"late", name="b")

    late = threading.Thread(target=offer_late)
    late.start()
    assert [obj.read() for obj in store.retrieve("name=a/b", wait=True)] == [b"", b"late"]
    late.join()


def test_a_block_flushes_and_one_that_fails_forgets(store: junctura.Store) -> None:
    with store as same:
        assert same is store
        store.archive(b"", name="a")
    store.archive(b"", name="b")
    with pytest.raises(ZeroDivisionError), store:
        store.archive(b"", name=f"{1 // 0}")
    assert store.pending == 0
    store.archive(b"", name="c")
    assert store.discard() == 1 and store.discard() == 0
    assert [obj["name"] for obj in store.list()] == ["a"]


def test_who_forgets_a_flush_is_told(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    store.archive(b"", name="a")
    with pytest.warns(ResourceWarning, match="1 objects were archived in .*store and never flushed"):
        del store
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = junctura.Store(tmp_path / "store")
        assert len(other.list()) == 0
        other.archive(b"", name="a")
        other.discard()
        del other


def test_a_newer_version_masks_an_older_one(store: junctura.Store) -> None:
    for payload in (b"old", b"new"):
        with store:
            store.archive(payload, name="a")
    with store:
        store.archive(b"twice", name="b")
        store.archive(b"at once", name="b")
    assert [obj.read() for obj in store.list("name=a")] == [b"new"]
    versions = store.list("name=a", all_versions=True)
    assert [(obj.read(), obj.commit) for obj in versions] == [(b"old", 1), (b"new", 2)]
    assert [obj.read() for obj in store.list("name=b")] == [b"at once"]


def test_a_snapshot_stays_as_it_is(store: junctura.Store) -> None:
    with store:
        store.archive(b"old", name="a")
    snapshot = store.snapshot()
    with store:
        store.archive(b"new", name="a")
        store.archive(b"", name="b")
    assert snapshot.commit == 1
    assert [obj.read() for obj in snapshot.list()] == [b"old"]
    assert snapshot.axes()["name"] == ["a"] and store.axes()["name"] == ["a", "b"]
    assert len(snapshot.list("", all_versions=True)) == 1
    assert snapshot.check().objects == 1
    with pytest.raises(junctura.NotFound):
        snapshot.retrieve("name=b")


def test_a_snapshot_that_is_too_old_says_so(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free", snapshot_max_age=0.0)
    with store:
        store.archive(b"", name="a")
    snapshot = store.snapshot()
    for question in (snapshot.list, snapshot.axes, snapshot.check):
        with pytest.raises(junctura.Expired):
            question("")


def test_what_waits_too_long_for_its_flush_is_forgotten(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free", unflushed_max_age=0)
    store.archive(b"", name="a")
    with pytest.raises(junctura.Expired, match="1 objects"):
        store.flush()
    assert store.pending == 0 and len(store.list()) == 0


@pytest.mark.parametrize(
    "data",
    [
        b"bytes",
        bytearray(b"bytearray"),
        memoryview(b"memoryview"),
        b"",
        np.arange(6, dtype="i2").reshape(2, 3),
        np.arange(24.0).reshape(4, 6)[::2, ::3],
        np.asfortranarray(np.eye(3)),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        np.array(["2026-11-20"], "datetime64[D]"),
        np.float32(1.5),
        np.zeros((0, 3)),
    ],
    ids=lambda data: type(data).__name__,
)
def test_all_that_a_pool_takes_comes_back(store: junctura.Store, data: Any) -> None:
    with store:
        store.archive(data, name="a")
    (obj,) = store.list()
    if isinstance(data, (bytes, bytearray, memoryview)):
        assert obj.read() == bytes(data) == bytes(obj) and len(obj) == len(data)
        assert "dtype" not in obj.attributes
    else:
        array = obj.array()
        np.testing.assert_array_equal(array, data)
        assert array.dtype == data.dtype and array.shape == data.shape and not array.flags.writeable
    with junctura.Pool(schema="free") as pool:
        pool.offer(data, name="a")
        assert pool.demand(name="a").attributes == obj.attributes


def test_objects_and_allocations_of_a_pool_are_archived(store: junctura.Store) -> None:
    with junctura.Pool(schema="free") as pool, store:
        pool.offer(np.arange(3), name="a", colour="red")
        with pool.demand(name="a") as obj:
            store.archive(obj, obj.attributes)
        with pool.allocate(shape=(2, 2), dtype="f4") as memory:
            memory.array()[:] = 2
            store.archive(memory, name="b")
    first, second = store.list()
    assert first.array().tolist() == [0, 1, 2] and first["colour"] == "red"
    assert second.array().tolist() == [[2, 2], [2, 2]]


def test_attributes_in_all_ways(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store")
    given: dict[str, Any] = {**FIELD, "date": datetime.date(2026, 11, 20), "step": datetime.timedelta(hours=6)}
    del given["class"]
    with store:
        store.archive(b"field", given, class_="od", levelist=np.int64(500), number=None)
    (obj,) = store.list("step=6,level=500")
    assert obj.attributes["levelist"] == obj["level"] == obj.get("levelist") == 500
    assert obj.get("number") is None and obj.get("number", -1) == -1
    assert "level" in obj and "number" not in obj
    assert obj.key.startswith("{class=od,expver=0001,stream=oper,date=20261120,time=0000}")
    assert obj.key == obj.schema.key(obj.attributes)
    with pytest.raises(junctura.NotFound, match="number"):
        obj["number"]
    assert obj.schema == store.schemas[0] and obj.version is None


def test_an_undeclared_attribute_is_found_by_its_name(store: junctura.Store) -> None:
    with store:
        store.archive(b"", name="a", colour="red")
    (obj,) = store.list("colour=red")
    assert obj["colour"] == "red" and obj.attributes["colour"] == "red"


def test_many_at_once(store: junctura.Store) -> None:
    objects = [(f"{number}".encode(), {"name": f"{number}"}) for number in range(1000)]
    assert store.archive_many(objects) == 1000
    assert store.archive_many(iter(objects[:3])) == 3
    assert store.archive_many([]) == 0
    assert store.flush().objects == 1003
    assert [obj.read() for obj in store.list()][:3] == [b"3", b"4", b"5"]
    assert len(store.list()) == 1000


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ((b"", {}), junctura.SchemaMismatch),
        ((b"", {"name": object()}), junctura.TypeMismatch),
        ((None, {"name": "x"}), junctura.InvalidArgument),
        (b"no pair at all", junctura.InvalidArgument),
    ],
)
def test_of_many_the_one_that_fails_is_named(store: junctura.Store, wrong: Any, kind: type[junctura.Error]) -> None:
    objects = [(b"", {"name": f"{number}"}) for number in range(700)]
    with pytest.raises(kind) as caught:
        store.archive_many([*objects, wrong, *objects])
    assert caught.value.index == 700
    assert store.pending == 700


def test_a_generator_that_fails_leaves_what_came_before(store: junctura.Store) -> None:
    def objects() -> Any:
        yield b"", {"name": "a"}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.archive_many(objects())
    assert store.pending == 1


def test_a_schema_file_of_fdb_is_a_schema_for_each_of_its_rules(tmp_path: Path) -> None:
    rules = tmp_path / "fields.rules"
    rules.write_text("step: Step; [ class [ type=tu [ step ]] [ type [ step, number? ]]]")
    store = junctura.Store.create(tmp_path / "store", schema=[rules, "free"])
    assert [schema.name for schema in store.schemas] == ["fields-1", "fields-2", "free"]
    with store:
        store.archive(b"a field", class_="rd", type="x", step=24, schema="fields-2")
    assert store.list()[0].key == "{class=rd}{type=x}{step=24}"
    with junctura.Pool(schema=rules) as pool:
        pool.offer(b"", class_="rd", type="tu", step="1d")
        assert [entry.key for entry in pool.list()] == ["{class=rd}{type=tu}{step=24}"]


def test_several_schemas(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema=["mars", junctura.Schema.builtin("free"), "record"])
    assert [schema.name for schema in store.schemas] == ["mars", "free", "record"]
    with store:
        store.archive(b"field", FIELD)
        store.archive(b"file", name="a", schema="free")
        store.archive_many([(b"1", {"collection": "c", "producer": "p", "sequence": 1})], schema="record")
    assert [(obj.schema.name, obj.read()) for obj in store.list()] == [
        ("mars", b"field"),
        ("free", b"file"),
        ("record", b"1"),
    ]
    with pytest.raises(junctura.NotFound, match="it has mars, free, record"):
        store.archive(b"", name="a", schema="other")


def test_listings_are_sequences(store: junctura.Store) -> None:
    with store:
        store.archive_many((bytes(number), {"name": f"{number}"}) for number in range(5))
    listing = store.list()
    assert len(listing) == 5 and listing.nbytes == 10
    assert [obj.nbytes for obj in listing] == [0, 1, 2, 3, 4]
    assert (listing[0].nbytes, listing[-1].nbytes, listing[4].nbytes) == (0, 4, 4)
    assert [obj.nbytes for obj in listing[1:4]] == [1, 2, 3]
    assert [obj.nbytes for obj in listing[::-2]] == [4, 2, 0]
    assert listing[5:] == []
    assert listing.keys() == [obj.key for obj in listing]
    for wrong in (5, -6):
        with pytest.raises(IndexError):
            listing[wrong]
    with pytest.raises(TypeError):
        listing["a"]  # type: ignore[call-overload]
    iterator = iter(listing)
    assert next(iterator).nbytes == 0 and len(list(iterator)) == 4 and list(iterator) == []
    assert not len(store.list("name=nobody"))


def test_where_the_bytes_lie(store: junctura.Store) -> None:
    with store:
        store.archive(bytes(100_000), name="a")
        store.archive(b"payload", name="b")
    one, other = (obj.location for obj in store.list())
    assert one.file == other.file and (one.nbytes, other.nbytes) == (100_000, 7)
    whole = (Path(store.path) / other.file).read_bytes()
    assert whole[other.offset : other.offset + other.nbytes] == b"payload"
    assert other.uri == f"file://{Path(store.path) / other.file}"
    assert one != other and other == store.list("name=b")[0].location and len({one, other}) == 2


def test_axes_and_what_is_missing(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store")
    with store:
        for step, param in ((0, "t"), (6, "t"), (12, "u"), (6, "u")):
            store.archive(b"", {**FIELD, "step": step, "param": param})
    axes = store.axes("param=t/u")
    assert axes["step"] == ["0", "6", "12"] and axes["param"] == ["t", "u"] and "number" not in axes
    assert len(store.retrieve("step=6,param=t/u")) == 2
    with pytest.raises(junctura.NotFound, match=r"missing: \{step=12,param=t\}"):
        store.retrieve("step=6/12,param=t/u")
    found = store.retrieve("step=6/12,param=t/u", partial=True)
    assert len(found) == 3 and found.missing == ["{step=12,param=t}"] and store.list().missing == []
    with pytest.raises(junctura.NotFound, match="nothing that is there matches"):
        store.retrieve("step>100")


@pytest.mark.parametrize("verb", ["list", "axes", "retrieve", "check"])
def test_a_wrong_selector_is_pointed_at(store: junctura.Store, verb: str) -> None:
    with pytest.raises(junctura.InvalidSelector) as caught:
        getattr(store, verb)("name=a,(")
    assert caught.value.picture and "^" in caught.value.picture


def test_bytes_where_they_lie(store: junctura.Store) -> None:
    values = np.arange(100_000, dtype="<f8")
    with store:
        store.archive(values, name="large")
        store.archive(b"", name="empty")
    large, empty = (store.retrieve(f"name={name}")[0] for name in ("large", "empty"))
    view = large.map()
    assert view.readonly and view.nbytes == large.nbytes and bytes(empty.map()) == b""
    shown = np.frombuffer(view, "<f8")
    del large, view
    assert shown.base is not None and np.array_equal(shown, values)
    with junctura.Store.create("memory:mapped", schema="free") as elsewhere:
        elsewhere.archive(b"read", name="a")
    assert bytes(elsewhere.list()[0].map()) == b"read"


def test_many_are_read_at_once(store: junctura.Store) -> None:
    payloads = [bytes([number % 256]) * (number * 37 % 5000) for number in range(3000)]
    with store:
        store.archive_many((payload, {"name": f"{number:04}"}) for number, payload in enumerate(payloads))
    assert store.list().read() == payloads
    assert store.list("name=0007/0009").read() == [payloads[7], payloads[9]]
    assert store.list("name=none").read() == []
    damage(store, store.list("name=0100")[0])
    with pytest.raises(junctura.Corrupt, match="name=0100"):
        store.list().read()


def damage(store: junctura.Store, obj: junctura.Stored) -> None:
    with (Path(str(store.path)) / obj.location.file).open("r+b") as file:
        file.seek(obj.location.offset)
        file.write(b"other")


def test_payloads_come_one_by_one_in_their_order(store: junctura.Store) -> None:
    payloads = [bytes([number % 256]) * (number * 37 % 5000) for number in range(1000)]
    with store:
        store.archive_many((payload, {"name": f"{number:04}"}) for number, payload in enumerate(payloads))
    for run_nbytes in (0, 10_000, "1 MiB"):
        came = [(obj["name"], payload) for obj, payload in store.list().payloads(run_nbytes=run_nbytes)]
        assert came == [(f"{number:04}", payload) for number, payload in enumerate(payloads)]
    stream = store.list().payloads()
    assert (next(stream)[1], next(stream)[1]) == (payloads[0], payloads[1])
    stream = store.list("name=none").payloads()
    assert list(stream) == [] and list(stream) == []
    with pytest.raises(junctura.InvalidArgument):
        store.list().payloads(run_nbytes="much")


def test_payloads_are_read_no_further_ahead_than_their_run(store: junctura.Store) -> None:
    with store:
        for name in "abcdef":
            store.archive(name.encode() * (100_000 if name == "e" else 10_000), name=name)
    listing = store.list()
    stream = listing.payloads(run_nbytes=20_000)
    assert next(stream)[0]["name"] == "a"
    # What is read already is not what lies there now.
    for obj in listing[1:4]:
        damage(store, obj)
    assert next(stream)[1] == b"b" * 10_000
    for name in "cd":
        with pytest.raises(junctura.Corrupt, match=f"name={name}"):
            next(stream)
    # A large one is a run of its own, and an error the end of nothing but its object.
    assert len(next(stream)[1]) == 100_000
    damage(store, listing[5])
    with pytest.raises(junctura.Corrupt, match="name=f"):
        next(stream)
    assert list(stream) == []


def test_files_that_seek_peek_and_end(store: junctura.Store) -> None:
    payload = bytes(range(256)) * 1000
    with store:
        store.archive(payload, name="a")
        store.archive(b"", name="empty")
    obj, empty = store.list()
    for verified in (True, False):
        with obj.open(verified=verified) as file:
            assert isinstance(file, io.BufferedReader) and file.readable() and file.seekable() and not file.writable()
            assert file.peek(4)[:4] == payload[:4] and file.tell() == 0
            assert file.read(5) == payload[:5] and file.tell() == 5
            assert file.seek(100_000) == 100_000 and file.read(7) == payload[100_000:100_007]
            assert file.seek(-3, 2) == len(payload) - 3 and file.read() == payload[-3:] and file.read(1) == b""
            assert file.seek(-2, 1) == len(payload) - 2
            into = bytearray(10)
            assert file.seek(250) == 250 and file.readinto(into) == 10 and bytes(into) == payload[250:260]
            assert file.seek(10**9) == 10**9 and file.read(1) == b""
            for place in ((-1, 0), (0, 3)):
                with pytest.raises((ValueError, OSError)):
                    file.seek(*place)
            file.seek(0)
            assert file.read() == payload
        with pytest.raises(ValueError, match="closed"):
            file.read()
        assert empty.open(verified=verified).read() == b""
        assert list(io.TextIOWrapper(empty.open(verified=verified))) == []


def test_damage_is_seen_and_named(store: junctura.Store) -> None:
    with store:
        store.archive(bytes(100_000), name="whole")
        store.archive(bytes(100_000), name="damaged")
    listing = store.list()
    place = listing[1].location
    with (Path(store.path) / place.file).open("r+b") as file:
        file.seek(place.offset + 50_000)
        file.write(b"\1")
    assert listing[0].read() == bytes(100_000)
    for read in (listing[1].read, listing[1].array, listing[1].open().read, lambda: bytes(listing[1])):
        with pytest.raises(junctura.Corrupt, match="damaged"):
            read()
    with listing[1].open(verified=False) as file:
        assert file.seek(50_000) and file.read(2) == b"\1\0"
    checked = store.check()
    assert (checked.objects, checked.nbytes, checked.damaged_count, checked.unnamed) == (2, 200_000, 1, [])
    ((key, error),) = checked.damaged
    assert key == listing[1].key and isinstance(error, junctura.Corrupt)
    (Path(store.path) / place.file).unlink()
    with pytest.raises(junctura.Corrupt, match="its file is missing"):
        store.list()[0].read()


def test_checkpoints_and_compaction(store: junctura.Store) -> None:
    for number in range(5):
        with store:
            store.archive(b"payload", name=f"{number}")
    done = store.checkpoint()
    assert (done.commit, done.segments, done.rows, done.written_rows) == (5, 1, 5, 5)
    assert store.checkpoint().written_rows == 0
    compacted = store.compact()
    assert compacted.checkpoint.rows == 5 and compacted.removed == []
    assert len(junctura.Store(store.path).list()) == 5


def test_what_is_taken_out_is_gone(store: junctura.Store, tmp_path: Path) -> None:
    for payload in (b"old", b"new"):
        with store:
            store.archive_many([(payload, {"name": name}) for name in "abc"])
    before = store.snapshot()
    assert [obj.read() for obj in before.masked("name=a")] == [b"old"]
    purged = store.purge("name=a")
    assert (purged.commit, purged.objects, purged.nbytes) == (3, 1, 3) and store.purge("name=a").objects == 0
    assert [obj.read() for obj in before.versions("name=a")] == [b"old", b"new"]
    wiped = store.wipe("name=b")
    assert wiped.objects == 2 and len(before.list("name=b")) == 1 and len(store.list("name=b")) == 0
    for place in (tmp_path / "other", "memory:"):
        with pytest.raises(junctura.InvalidArgument, match="another store"):
            junctura.Store.create(place, schema="free").remove(store.list())
    assert store.remove(store.list("name=c", all_versions=True)).objects == 2
    assert [obj["name"] for obj in store.list(all_versions=True)] == ["a"]
    for verb in (store.purge, store.wipe, before.masked, before.versions):
        with pytest.raises(junctura.InvalidSelector):
            verb("name=(")


def test_stores_are_made_once_and_opened_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a b"
    with pytest.raises(junctura.NotFound):
        junctura.Store(path)
    junctura.Store.create(path, schema="free", snapshot_max_age="90m", unflushed_max_age=datetime.timedelta(days=2))
    with pytest.raises(junctura.AlreadyExists):
        junctura.Store.create(path, schema="free")
    monkeypatch.chdir(tmp_path)
    for same in (path, str(path), "a b", path.as_uri(), f"file://localhost{path.as_uri()[7:]}", f"file:{path}"):
        opened = junctura.Store(same, create=True)
        assert opened.schemas[0].name == "free" and Path(opened.path) == path
        assert opened.snapshot_max_age == datetime.timedelta(minutes=90)
        assert opened.unflushed_max_age == datetime.timedelta(days=2)
    assert junctura.Store(tmp_path / "other", create=True).schemas[0].name == "mars"
    for wrong in ("ftp://bucket/store", "s3://B", "file://elsewhere/store", "file://", "s3://key:hidden@bucket/store"):
        with pytest.raises(junctura.InvalidArgument) as refused:
            junctura.Store(wrong)
        assert "hidden" not in str(refused.value)
    (path / "store.json").write_text("{}")
    with pytest.raises(junctura.Corrupt):
        junctura.Store(path)


def test_a_store_may_lie_in_memory() -> None:
    with junctura.Store.create("memory:fields", schema="free", commits="exclusive") as store:
        store.archive(b"one", name="a")
    assert (store.url, store.commits, repr(store)) == ("memory:fields", "exclusive", "<junctura.Store memory:fields>")
    for same in (junctura.Store("memory:fields"), pickle.loads(pickle.dumps(store))):
        assert [obj.read() for obj in same.list()] == [b"one"]
    with pytest.raises(junctura.Unsupported, match="no folder"):
        _ = store.path
    with pytest.raises(junctura.AlreadyExists):
        junctura.Store.create("memory:fields")
    del store, same
    # Without a name it is nobody else's, and with one as long as somebody has it.
    nobodys = junctura.Store("memory:", create=True)
    assert nobodys.commits == "appended"
    for gone in ("memory:", "memory:fields"):
        with pytest.raises(junctura.NotFound):
            junctura.Store(gone)


@pytest.mark.parametrize("commits", ["appended", "exclusive"])
@pytest.mark.parametrize("is_url", [False, True])
def test_data_may_lie_elsewhere(tmp_path: Path, commits: Any, is_url: bool) -> None:
    data = (tmp_path / "the data").as_uri() if is_url else tmp_path / "the data"
    with junctura.Store.create(tmp_path / "catalogue", schema="free", data=data, commits=commits) as store:
        store.archive(b"large" * 100_000, name="a")
    assert not (tmp_path / "catalogue/data").exists() and list((tmp_path / "the data").rglob("*-*"))
    again = junctura.Store(store.path)
    assert again.commits == commits and again.list()[0].read() == b"large" * 100_000


@pytest.mark.parametrize(
    "given",
    [
        {"schema": "nonesuch.yaml"},
        {"schema": 3},
        {"snapshot_max_age": -1},
        {"unflushed_max_age": "soon"},
        {"commits": "sometimes"},
        {"data": "ftp://elsewhere/data"},
    ],
    ids=str,
)
def test_what_is_wrong_with_a_new_store_is_said(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises((junctura.InvalidArgument, junctura.Io)):
        junctura.Store.create(tmp_path / "store", **given)
    assert not (tmp_path / "store").exists()


def test_threads_share_a_store(store: junctura.Store) -> None:
    def work(thread: int) -> None:
        for number in range(50):
            store.archive(f"{thread}/{number}".encode(), name=f"{thread}/{number}")
            if number % 10 == 9:
                store.flush()

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.pending == 0
    found = store.list()
    assert len(found) == 200 and all(obj.read() == obj["name"].encode() for obj in found)


def test_grib_is_archived_by_its_headers(tmp_path: Path) -> None:
    file = tmp_path / "fields.grib"
    messages = [grib(step=step) for step in (0, 6)] + [grib("reduced_gg_pl_32_grib2")]
    file.write_bytes(b"".join(messages))
    store = junctura.Store.from_grib(tmp_path / "store", file)
    assert [obj.read() for obj in store.list()] == messages
    assert store.axes("gridType=regular_ll")["step"] == ["0", "6"]
    assert store.archive_grib(file, {"class": "rd"}, expver="test", number=7) == 3
    assert store.flush().objects == 3
    assert len(store.list("class=rd,expver=test,number=7")) == 3
    same = junctura.Store.from_grib(store.path, [file, str(file)])
    assert len(same.list(all_versions=True)) == 12


def test_grib_that_is_damaged_is_named(tmp_path: Path) -> None:
    file = tmp_path / "fields.grib"
    file.write_bytes(grib() + grib()[:-1])
    store = junctura.Store(tmp_path / "store", create=True)
    with pytest.raises(junctura.Corrupt, match=r"fields\.grib"):
        store.archive_grib(file)
    assert store.pending == 1
    file.write_bytes(b"nothing of the kind")
    with pytest.raises(junctura.Corrupt, match="no GRIB message"):
        junctura.Store.from_grib(tmp_path / "other", file)
    with pytest.raises(junctura.Io):
        store.archive_grib(tmp_path / "missing.grib")


def test_stats_say_how_much_there_is(store: junctura.Store) -> None:
    for round_of_it in range(2):
        with store:
            store.archive(b"small", name="a")
            store.archive(b"large" * 20_000, name=f"b{round_of_it}", space="other")
    snapshot = store.snapshot()
    store.wipe("space=other")
    before, after = snapshot.stats(), store.stats()
    assert (before["commit"], before["objects"], before["bytes"]) == (2, 3, 200_005)
    assert (before["masked"], before["masked_bytes"]) == (1, 5)
    assert (after["commit"], after["objects"], after["data"]["used_bytes"]) == (3, 1, 10)
    assert after["data"]["bytes"] == 200_010 and after["unneeded"]["files"] == 0
    (schema,) = before["schemas"]
    assert (schema["name"], schema["datasets"]) == ("free", 2)
    assert store.checkpoint().commit == store.stats()["segments"]["checkpoint"] == 3


@needs_data
@pytest.mark.filterwarnings("ignore:.*hidden in messages of several")
@pytest.mark.parametrize("file", sorted(DATA.glob("*.grib*")), ids=lambda file: file.name)
def test_real_files_come_back_byte_for_byte(tmp_path: Path, file: Path) -> None:
    store = junctura.Store(tmp_path / "store", create=True)
    whole = file.read_bytes()
    if "corrupted" in file.name:
        with pytest.raises(junctura.Corrupt, match="message 1"):
            store.archive_grib(file)
        assert store.pending == 0
        return
    count = store.archive_grib(file, keep_messages=True)
    assert store.flush().objects == count
    objects = store.list(all_versions=True)
    assert len(objects) == count > 0
    at = 0
    for obj in objects:
        message = obj.read()
        assert message[:4] == b"GRIB" and message[-4:] == b"7777"
        at = whole.index(message, at) + len(message)
    assert whole[at:].strip(b"\0") == b""
    assert store.check().damaged_count == 0


def mars_of(file: Path) -> dict[str, set[str]]:
    """What ecCodes says of a file's messages in the words of MARS, with parameters by their short names."""
    eccodes = pytest.importorskip("eccodes")
    values: dict[str, set[str]] = {}
    with file.open("rb") as messages:
        while (handle := eccodes.codes_grib_new_from_file(messages)) is not None:
            names = []
            keys = eccodes.codes_keys_iterator_new(handle, "mars")
            while eccodes.codes_keys_iterator_next(keys):
                names.append(eccodes.codes_keys_iterator_get_name(keys))
            eccodes.codes_keys_iterator_delete(keys)
            if "class" not in names:
                # MARS does not describe the field: these have values of their own (docs/guide/grib.md).
                names = [name for name in names if name not in ("levtype", "levelist", "param")]
            for name in names:
                value = eccodes.codes_get_string(handle, name)
                short = eccodes.codes_get_string(handle, "shortName")
                if name == "param" and short != "unknown":
                    value = short
                if (name, value) == ("levtype", "unknown"):
                    # MARS has no word for it; ours is that of ecCodes.
                    value = eccodes.codes_get_string(handle, "typeOfLevel")
                if not name.startswith("_") and value not in ("MISSING", "unavailable"):
                    values.setdefault(name, set()).add(value)
            eccodes.codes_release(handle)
    return values


def plain(name: str, value: Any) -> Any:
    """A value as both write it."""
    if name in ("levelist", "number"):
        return decimal.Decimal(str(value))
    if name in ("date", "time"):
        return str(value).replace("-", "").replace(":", "")[: 8 if name == "date" else 4]
    return str(value)


@needs_data
@pytest.mark.parametrize(
    "file", [file for file in sorted(DATA.glob("*.grib*")) if "corrupted" not in file.name], ids=lambda file: file.name
)
def test_axes_of_real_files_are_those_of_eccodes(tmp_path: Path, file: Path) -> None:
    theirs = mars_of(file)
    store = junctura.Store.from_grib(tmp_path / "store", file)
    # As they were committed, and as they lie in a segment.
    for opened in (store, junctura.Store(store.path)):
        ours = opened.axes()
        assert len(theirs) >= 3
        for name, values in theirs.items():
            told = [plain(name, value) for value in ours[name]]
            assert set(told) == {plain(name, value) for value in values}, name
            assert len(told) == len(values), name
            if name in ("levelist", "number", "date", "time"):
                assert told == sorted(told), name
        store.checkpoint()
