"""A process that is forked while threads work: its children answer, whatever the threads were at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura
from junctura import _forks, field
from junctura._grib import decoder_process

ec = pytest.importorskip("eccodes", reason="children decode GRIB")
# A child that has not ended by then waits for ever: the alarm ends it.
SECONDS_MAX = 60
# Done by the thread that forks, before it waits for others.
BEFORE: list[Callable[[], object]] = []
os.register_at_fork(before=lambda: [call() for call in BEFORE])


def message(sample: str = "regular_ll_pl_grib2", **keys: Any) -> bytes:
    handle = ec.codes_grib_new_from_samples(sample)
    lies = {"Ni": 360, "Nj": 181, "latitudeOfFirstGridPointInDegrees": 90, "latitudeOfLastGridPointInDegrees": -90}
    lies |= {"longitudeOfFirstGridPointInDegrees": 0, "longitudeOfLastGridPointInDegrees": 359}
    lies |= {"iDirectionIncrementInDegrees": 1, "jDirectionIncrementInDegrees": 1}
    for name, value in {**lies, **keys}.items():
        ec.codes_set(handle, name, value)
    ec.codes_set_values(handle, np.arange(360 * 181) % 977)
    try:
        return bytes(ec.codes_get_message(handle))
    finally:
        ec.codes_release(handle)


def forked(work: Callable[[], object]) -> bool:
    """Whether a child that does this work ends well."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(SECONDS_MAX)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def take(lock: _forks.Lock) -> None:
    with lock:
        pass


@pytest.fixture
def busy() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Does work again and again in threads."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    def begin(work: Callable[[], object]) -> None:
        turns = threading.Semaphore(0)

        def go() -> None:
            while not stop.is_set():
                work()
                turns.release()

        threads.append(threading.Thread(target=go, daemon=True))
        threads[-1].start()
        turns.acquire()

    yield begin
    stop.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("packing", ["grid_simple", "grid_ccsds", "grid_complex_spatial_differencing", "grid_jpeg"])
def test_children_decode_while_threads_do(
    pool: junctura.Pool, busy: Callable[[Callable[[], object]], None], packing: str
) -> None:
    pytest.importorskip("xarray")
    pool.offer(message(packingType=packing), name="field")
    obj = pool.demand(name="field")
    payload = bytes(obj)
    # What it imports is there then.
    assert obj.to_xarray().size == 360 * 181
    for _ in range(2):
        busy(lambda: field.decoded(payload, field.values_of))
    for _ in range(3):
        assert forked(lambda: field.decoded(payload, field.values_of))
        assert forked(obj.to_xarray)


def test_children_make_fields_of_products_while_threads_do(busy: Callable[[Callable[[], object]], None]) -> None:
    pytest.importorskip("mir", reason="products need it")
    from junctura.products._input.decoding import decode
    from junctura.products._outputs import grib2
    from junctura.products._outputs._output import Output

    one = message(shortName="t")
    field = decode(one)
    written = Output("grib2")

    def work() -> None:
        decode(one)
        grib2.made([field], written)

    for _ in range(2):
        busy(work)
    for _ in range(5):
        assert forked(work)


def test_children_read_a_dataset_of_a_store_while_threads_do(
    tmp_path: Path, busy: Callable[[Callable[[], object]], None]
) -> None:
    xarray = pytest.importorskip("xarray")
    (tmp_path / "one.grib").write_bytes(message(shortName="t"))
    junctura.Store.from_grib(tmp_path / "store", tmp_path / "one.grib")
    data = xarray.open_dataset(tmp_path / "store", engine="junctura")
    busy(lambda: data.t.values.sum())
    for _ in range(5):
        assert forked(lambda: data.t.values.sum())


FIRST = """
import os, sys, threading
import junctura
pool = junctura.Pool(schema="free")
pool.offer(open(sys.argv[1], "rb").read(), name="field")
obj = pool.demand(name="field")
begun = threading.Event()
def decode():
    begun.set()
    obj.to_xarray()
thread = threading.Thread(target=decode)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(obj.to_xarray().size != 360 * 181)
_, status = os.waitpid(child, 0)
thread.join()
print(os.waitstatus_to_exitcode(status))
"""


def test_a_child_of_a_process_whose_thread_imports_what_decodes(tmp_path: Path) -> None:
    (tmp_path / "one.grib").write_bytes(message())
    done = subprocess.run(
        [sys.executable, "-c", FIRST, str(tmp_path / "one.grib")],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    assert done.stdout.strip() == "0", done.stderr


def test_a_fork_waits_for_those_inside_and_not_for_those_who_wait() -> None:
    lock = _forks.Lock()
    inside, leave, seen = threading.Event(), threading.Event(), []

    def hold() -> None:
        with lock:
            inside.set()
            leave.wait()
            seen.append("left")

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    # They wait for the lock, and a fork does not wait for them.
    others = [threading.Thread(target=take, args=(lock,)) for _ in range(3)]
    for other in others:
        other.start()

    def enter() -> None:
        assert seen == ["left"]
        with lock, lock, _forks.passage():
            pass

    BEFORE.append(leave.set)
    assert forked(enter)
    BEFORE.clear()
    for thread in [holder, *others]:
        thread.join()


def test_a_thread_that_takes_a_lock_again_and_again_leaves_it_to_others() -> None:
    lock, done = _forks.Lock(), threading.Event()

    def greedy() -> None:
        while not done.is_set():
            with lock, lock:
                sum(range(1000))

    threads = [threading.Thread(target=greedy) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        take(lock)
    done.set()
    for thread in threads:
        thread.join()


def test_a_fork_lets_those_inside_pass_those_who_came_before() -> None:
    lock, both = _forks.Lock(), threading.Barrier(2)
    last = threading.Event()

    def inside() -> None:
        with _forks.passage():
            both.wait()
            last.wait()
            # Others have waited for it longer; the fork waits for this one.
            take(lock)

    def others() -> None:
        take(lock)

    first = threading.Thread(target=inside)
    with lock:
        first.start()
        both.wait()
        waiting = [threading.Thread(target=others) for _ in range(3)]
        for thread in waiting:
            thread.start()
    BEFORE.append(last.set)
    assert forked(lambda: take(lock))
    BEFORE.clear()
    for thread in [first, *waiting]:
        thread.join()


def test_who_is_inside_may_fork() -> None:
    lock = _forks.Lock()
    with lock, _forks.passage():
        assert forked(lambda: take(lock))
    assert forked(lambda: take(lock))


def test_a_decoder_ends_with_its_process_whatever_was_forked_while_it_began() -> None:
    payload = message(packingType="grid_jpeg")
    decoder_process._end()
    threads = [threading.Thread(target=field.decoded, args=(payload, field.values_of)) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert all(forked(lambda: field.decoded(payload, field.values_of)) for _ in range(3))
    for thread in threads:
        thread.join()
