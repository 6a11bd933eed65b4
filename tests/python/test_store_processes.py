"""A store and several processes: writers beside readers, forks, kills; and what is left of much use."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from python_stores import grib

import junctura

WRITER = """
import sys, junctura
store = junctura.Store(sys.argv[1])
for flush in range(int(sys.argv[2])):
    for number in range(10):
        store.archive(f"{flush}".encode() * (20_000 if number == 9 else 1), name=f"{number}", flush=f"{flush}")
    store.flush()
    print(flush, flush=True)
"""


def writer(path: Path, flushes: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, path, f"{flushes}"], stdout=subprocess.PIPE, text=True)


def test_reading_while_another_process_writes(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    with writer(tmp_path / "store", 50) as process:
        assert process.stdout is not None
        for line in process.stdout:
            listing = store.list()
            flushes = {obj["flush"] for obj in listing}
            # All of a flush or nothing of it, and what was told is there.
            assert len(listing) == 10 and len(flushes) == 1
            assert int(flushes.pop()) >= int(line)
            assert all(obj.read()[:1] == f"{obj['flush']}".encode()[:1] for obj in listing)
    assert process.returncode == 0
    assert len(store.list(all_versions=True)) == 500 and store.check().damaged_count == 0


def test_a_writer_that_is_killed_leaves_whole_flushes(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    with writer(tmp_path / "store", 100_000) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.readlines()
    count = len(store.list(all_versions=True))
    assert count % 10 == 0 and count >= 10 * len([line for line in told if line.endswith("\n")])
    assert store.check().damaged_count == 0
    with store:
        store.archive(b"after", name="after")
    assert store.list("name=after")[0].read() == b"after"


def archive(store: junctura.Store, name: str) -> None:
    store.archive(name.encode(), name=name)
    store.flush()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_have_a_writer_of_their_own(tmp_path: Path, method: str) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    store.archive(b"parent", name="parent")
    context: Any = multiprocessing.get_context(method)
    children = [context.Process(target=archive, args=(store, f"child {number}")) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert sorted(obj["name"] for obj in store.list()) == ["child 0", "child 1", "child 2"]
    assert store.flush().objects == 1
    assert all(obj.read() == obj["name"].encode() for obj in store.list()) and len(store.list()) == 4


def test_a_grandchild_and_what_a_child_reads_of_its_parent(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    archive(store, "parent")
    (obj,) = store.list()

    def child() -> None:
        assert obj.read() == b"parent"
        archive(store, "child")
        if os.fork() == 0:
            archive(store, "grandchild")
            os._exit(0)
        assert os.wait()[1] == 0

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert [obj["name"] for obj in store.list()] == ["parent", "child", "grandchild"]


def test_a_store_is_pickled_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = junctura.Store.create("store", schema="free")
    archive(store, "a")
    monkeypatch.chdir("/")
    other = pickle.loads(pickle.dumps(store))
    assert other.path == store.path and len(other.list()) == 1
    for single in (store.list(), store.list()[0], store.snapshot()):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(single)


def test_ctrl_c_ends_a_wait_for_a_pipe(tmp_path: Path) -> None:
    store = junctura.Store(tmp_path / "store", create=True)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Opened for both, so that neither side waits for the other one.
    both = os.open(pipe, os.O_RDWR)
    os.write(both, grib())

    def press() -> None:
        while store.pending == 0:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        store.archive_grib(pipe)
    presser.join()
    os.close(both)
    assert store.discard() == 1


def used() -> tuple[int, int]:
    gc.collect()
    proc = Path("/proc/self")
    return len(list((proc / "fd").iterdir())), int((proc / "statm").read_text().split()[1])


def test_a_thousand_cycles_leave_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "store"
    junctura.Store.create(path, schema="free")

    def cycle() -> None:
        with junctura.Store(path) as store:
            store.archive(bytes(100_000), name="a")
        listing = store.list()
        with listing[0].open() as file:
            assert len(file.read()) == 100_000
        assert listing[0].array().sum() == 0
        assert listing.to_arrow().num_rows == 1
        assert len(store.axes()) > 0

    for _ in range(100):
        cycle()
    before = used()
    for _ in range(400):
        cycle()
    after = used()
    assert after[0] <= before[0], (before, after)
    # A leak of one payload in each cycle would be forty megabytes.
    assert (after[1] - before[1]) * os.sysconf("SC_PAGESIZE") < (20 << 20), (before, after)


def test_a_fork_that_ends_leaves_what_its_parent_has_not_flushed(tmp_path):
    store = junctura.Store.create(tmp_path / "store", schema="free")
    store.archive(bytes(1 << 20), name="a")
    child = os.fork()
    if child == 0:
        del store
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    store.flush()
    assert store.list()[0].read() == bytes(1 << 20)
