"""Sets larger than memory stream through the file tier, whole and in order (R1.21); a full disk is a full pool."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import junctura

MIB = 1 << 20
BUDGET = 16 * MIB
FIELD_BYTES = 804 * 1024

# Pools are reached over TCP here (see CONTRIBUTING.md).
TCP = os.environ.get("JUNCTURA_TEST_DETOUR") == "tcp"


def field(number: int) -> np.ndarray:
    """A field that tells itself from all others, everywhere in it."""
    return np.arange(number, number + FIELD_BYTES // 4, dtype="u4")


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[junctura.Pool]:
    """A pool with room for some twenty fields in memory, and four times as many on disk."""
    with junctura.Pool(schema="free", budget=BUDGET, spill=tmp_path / "spill") as pool:
        yield pool


COUNT = 4 * BUDGET // FIELD_BYTES


def check(obj: junctura.Object, number: int) -> None:
    assert obj["name"] == f"{number:04}"
    assert np.array_equal(obj.array(), field(number))


def test_a_set_four_times_the_memory_comes_out_whole_and_in_order(pool: junctura.Pool, tmp_path: Path) -> None:
    with pool.subscribe(kinds=["spilled"]) as events:
        for number in range(COUNT):
            pool.offer(field(number), name=f"{number:04}")
        stat = pool.stat()
        told = [next(events) for _ in range(stat["spill"]["objects"])]
    assert all(event.kind == "spilled" and event.nbytes == FIELD_BYTES for event in told)
    lies_in_file = {entry["name"] for entry in pool.list() if entry.spilled}
    # How many stay in memory depends on who is quicker, the disk or the producer.
    assert {event.object["name"] for event in told if event.object} <= lies_in_file
    assert stat["objects"]["visible_bytes"] > 3.9 * BUDGET
    assert stat["memory"]["used_bytes"] <= BUDGET
    assert stat["spill"]["used_bytes"] >= stat["objects"]["visible_bytes"] - BUDGET
    assert not list((tmp_path / "spill").iterdir()), "nothing is seen of it"
    places = set()
    for number, obj in zip(range(COUNT), pool.follow(until_live=True), strict=True):
        with obj:
            check(obj, number)
            places.add(obj.transport)
    assert places == {"tcp"} if TCP else "file" in places and places <= {"file", "shared"}
    pool.withdraw_all("")
    stat = pool.stat()
    assert (stat["spill"]["objects"], stat["objects"]["visible"]) == (0, 0)
    assert stat["spill"]["used_bytes"] == 0 or stat["spill"]["underway"] > 0, "only what was just being written"


def test_a_reader_that_comes_late_slows_nobody_and_loses_nothing(pool: junctura.Pool) -> None:
    requirement = pool.require("", name="archive")
    for number in range(COUNT):
        pool.offer(field(number), name=f"{number:04}", retention=junctura.Released(1))
    assert pool.stat()["spill"]["objects"] > COUNT / 2
    with requirement.follow() as archive:
        for number, obj in zip(range(COUNT), archive, strict=False):
            with obj:
                check(obj, number)
    stat = pool.stat()
    assert (stat["spill"]["objects"], stat["objects"]["visible"], stat["totals"]["broken"]) == (0, 0, 0)


def test_a_demand_is_answered_from_the_file_while_others_go_on(pool: junctura.Pool) -> None:
    for number in range(COUNT):
        pool.offer(field(number), name=f"{number:04}")
    found = [pool.demand(name="0000") for _ in range(3)]
    for obj in found:
        assert obj.transport == ("tcp" if TCP else "file")
        check(obj, 0)
    array = found[0].array()
    assert not array.flags.writeable
    first = pool.offer(field(7), name="another")
    assert pool.withdraw(name="0000") == 1
    assert np.array_equal(array, field(0)), "who holds it keeps it"
    assert pool.demand(name="another").version == first


def test_small_payloads_are_spilled_too(tmp_path: Path) -> None:
    with junctura.Pool(schema="free", budget=MIB, spill=tmp_path, spill_size="16MiB") as pool:
        payloads = [hashlib.sha256(str(number).encode()).digest() * 64 for number in range(2000)]
        for number, payload in enumerate(payloads):
            pool.offer(payload, name=f"{number:04}")
        assert pool.stat()["memory"]["used_bytes"] <= MIB
        read = [bytes(obj) for obj in pool.follow(until_live=True)]
        assert read == payloads


def test_a_whole_bundle_larger_than_memory_becomes_visible(pool: junctura.Pool) -> None:
    with pool.bundle("step/6"):
        for number in range(COUNT // 2):
            pool.offer(field(number), name=f"{number:04}")
        assert pool.stat()["objects"]["visible"] == 0
    for number, obj in zip(range(COUNT // 2), pool.follow(until_live=True), strict=True):
        with obj:
            check(obj, number)


def test_memory_and_file_full_is_a_full_pool_that_says_so(tmp_path: Path) -> None:
    with junctura.Pool(schema="free", budget="4MiB", spill=tmp_path, spill_size="4MiB", offer_timeout=0.2) as pool:

        def fill() -> None:
            for number in range(COUNT):
                pool.offer(field(number), name=f"{number:04}")

        with pytest.raises(junctura.PoolFull, match=r"the file tier in .* holds \S+ \S+ of 4\.0 MiB"):
            fill()
        there = pool.stat()["objects"]["visible"]
        assert there >= 8
        pool.withdraw_all("")
        pool.offer(field(1), name="again")


FULL_DISK = """
import resource, signal, sys
import numpy as np, junctura
# As on a disk of 24 MiB: more is refused.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (24 << 20, resource.RLIM_INFINITY))
field = np.arange(200_000, dtype="u4")
with junctura.Pool(schema="free", budget="16MiB", spill=sys.argv[1], spill_size="1GiB", offer_timeout=0.3) as pool:
    count = 0
    try:
        while True:
            pool.offer(field + count, name=f"{count:04}")
            count += 1
    except junctura.PoolFull as error:
        assert "refused more" in str(error), error
    assert count > 40, count
    for number, obj in enumerate(pool.follow(until_live=True)):
        assert np.array_equal(obj.array(), field + number)
    assert number == count - 1
    assert pool.stat()["spill"]["refused"] > 0
    pool.withdraw_all("")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("whole")
"""


def test_a_full_disk_is_a_full_pool_and_nothing_else_breaks(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.returncode) == ("whole\n", 0), ran.stderr


def test_producer_and_reader_at_once_with_a_reader_that_is_slow(pool: junctura.Pool) -> None:
    def produce() -> None:
        for number in range(2 * COUNT):
            pool.offer(field(number), name=f"{number:04}", retention=junctura.Released(1))

    with pool.require("") as requirement, requirement.follow(window=2) as slow:
        producer = threading.Thread(target=produce)
        producer.start()
        for number, obj in zip(range(2 * COUNT), slow, strict=False):
            with obj:
                check(obj, number)
        producer.join()
    assert pool.stat()["totals"]["broken"] == 0


def test_nothing_is_left_of_a_server_that_is_killed(tmp_path: Path) -> None:
    program = "import sys, junctura, numpy\n" + "\n".join(
        [
            "pool = junctura.Pool(schema='free', budget='8MiB', spill=sys.argv[1], spill_size='1GiB')",
            "for n in range(100): pool.offer(numpy.arange(200_000) + n, name=str(n))",
            "print(pool.stat()['spill']['used_bytes'], flush=True)",
            "sys.stdin.read()",
        ]
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "spill")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert int(process.stdout.readline()) > 100 * MIB
    descriptors = Path(f"/proc/{process.pid}/fd")
    files = [str(link.readlink()) for link in descriptors.iterdir()]
    spilled = [file for file in files if file.startswith(str(tmp_path))]
    # No name, so the system frees its room with the last descriptor, whatever ends the process.
    assert spilled
    assert all(file.endswith("(deleted)") for file in spilled)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list((tmp_path / "spill").iterdir())


def test_a_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(junctura.Io, match="no/such/place"):
        junctura.Pool(schema="free", spill=tmp_path / "no/such/place")
    with pytest.raises(junctura.InvalidArgument, match="spill_size"):
        junctura.Pool(schema="free", spill_size="1GiB")
