"""A store in an object store, from Python: found by its URL, by whoever has it."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura


def archive(store: junctura.Store, name: str) -> None:
    store.archive(name.encode() * 50_000, name=name)
    store.flush()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_write_into_one_bucket(url: str, method: str) -> None:
    store = junctura.Store.create(url, schema="free")
    assert (store.url, store.commits) == (url, "exclusive")
    with pytest.raises(junctura.Unsupported):
        _ = store.path
    store.archive(b"parent", name="parent")
    context: Any = multiprocessing.get_context(method)
    children = [context.Process(target=archive, args=(store, f"child {number}")) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 3
    store.flush()
    assert sorted(obj["name"] for obj in store.list()) == ["child 0", "child 1", "child 2", "parent"]
    assert store.list('name="child 1"')[0].read() == b"child 1" * 50_000
    assert store.check().damaged_count == 0
    part = url.partition("?")[0]
    for obj, payload in store.list().payloads(run_nbytes=400_000):
        assert obj.location.uri == f"{part}/{obj.location.file}"
        assert payload in (b"parent", obj["name"].encode() * 50_000)


def read_all(url: str, into: Any) -> None:
    into.put([bytes(payload[:5]) for payload in junctura.Store(url).list().read()])


@pytest.mark.parametrize("how", ["by its URL", "by the environment"])
def test_what_was_read_is_kept_in_a_cache(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    with junctura.Store.create(url, schema="free") as store:
        for name in ("one", "two"):
            store.archive(name.encode() * 500_000, name=name)
    if how == "by its URL":
        cached = f"{url}{'&' if '?' in url else '?'}cache={tmp_path}/cache&cache_size=1GiB"
    else:
        cached = url
        monkeypatch.setenv("JUNCTURA_STORE_CACHE", f"{tmp_path}/cache")
    context: Any = multiprocessing.get_context("spawn")
    read: Any = context.Queue()
    for _ in range(2):
        child = context.Process(target=read_all, args=(cached, read))
        child.start()
        assert read.get() == [b"oneon", b"twotw"]
        child.join()
        blocks = [path for path in (tmp_path / "cache").rglob("*") if path.stat().st_size > 500_000 and path.is_file()]
        assert len(blocks) == 3
    # Nothing of it is needed.
    for path in blocks:
        path.write_bytes(b"damaged")
    read_all(cached, read)
    assert read.get() == [b"oneon", b"twotw"]


def test_threads_share_one_in_a_bucket(url: str) -> None:
    with junctura.Store(url, create=True) as store:
        threads = [
            threading.Thread(target=store.archive, args=(f"{n}".encode(), FIELD | {"step": n})) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert junctura.Store(url).axes()["step"] == [f"{n}" for n in range(8)]


FIELD = {
    "class": "od",
    "expver": "0001",
    "stream": "oper",
    "date": "20261120",
    "time": "0000",
    "type": "fc",
    "levtype": "sfc",
    "param": "2t",
}


def test_a_pickled_dataset_is_found_again(url: str) -> None:
    xarray = pytest.importorskip("xarray")
    with junctura.Store(url, create=True) as store:
        for step in (0, 6):
            store.archive(np.full(20_000, float(step)), FIELD, step=step)
    data = pickle.loads(pickle.dumps(xarray.open_dataset(url, engine="junctura")))
    assert [float(data["2t"].isel(step=at).mean()) for at in (0, 1)] == [0.0, 6.0]
    assert pickle.loads(pickle.dumps(store)).list().nbytes == 2 * 20_000 * 8


def test_only_the_data_lie_in_a_bucket(url: str, tmp_path: Path) -> None:
    with junctura.Store.create(tmp_path / "catalogue", schema="free", data=url) as store:
        store.archive(b"large" * 100_000, name="a")
    assert (store.commits, store.path) == ("appended", tmp_path / "catalogue")
    assert not (tmp_path / "catalogue/data").exists()
    obj = junctura.Store(store.path).list()[0]
    assert obj.read() == b"large" * 100_000
    assert obj.location.uri == f"{url.partition('?')[0]}/{obj.location.file}"


def test_an_object_store_has_no_files_to_append_to(url: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match="exclusive"):
        junctura.Store.create(url, commits="appended")
    with pytest.raises(junctura.NotFound):
        junctura.Store(url)
