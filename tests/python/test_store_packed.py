"""Objects of a store that lie packed: nobody who reads notices, and other programs unpack them."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import junctura
from junctura._store import object_file

WAVE = np.round(100 * np.sin(np.arange(50_000) / 1000)).astype(np.float32)
NOISE = np.random.default_rng(1).integers(0, 256, 50_000, dtype=np.uint8)


@pytest.fixture
def store(tmp_path):
    rules = {"space=z": "zstd:5", "space=q": "lz4"}
    store = junctura.Store.create(tmp_path / "store", schema="free", compression=rules)
    for space in ("z", "q", "none"):
        store.archive(WAVE, space=space, name="wave")
        store.archive(NOISE, space=space, name="noise")
    store.flush()
    return store


def by_name(store):
    return {(found.attributes["space"], found.attributes["name"]): found for found in store.list()}


def test_who_reads_gets_what_was_archived(store):
    for (_, name), found in by_name(store).items():
        expected = (WAVE if name == "wave" else NOISE).tobytes()
        assert found.nbytes == len(expected)
        assert bytes(found.read()) == bytes(found.map()) == expected
        with found.open() as file:
            file.seek(70_001 % len(expected))
            assert file.read(1000) == expected[70_001 % len(expected) :][:1000]
            file.seek(-10, 2)
            assert file.read() == expected[-10:]
    listing = store.list()
    assert list(map(bytes, listing.map())) == listing.read() == [found.read() for found in listing]
    assert store.check().damaged == []


def test_what_can_be_packed_is_and_other_programs_unpack_it(store, tmp_path):
    found = by_name(store)
    codecs = {which: stored.location.codec for which, stored in found.items()}
    packed = {("z", "wave"): "zstd", ("q", "wave"): "lz4"}
    assert codecs == {which: packed.get(which) for which in found}
    for which, codec in packed.items():
        place = found[which].location
        assert place.nbytes < WAVE.nbytes
        assert f"codec={codec!r}".replace("'", '"') in repr(place)
        frame = (tmp_path / "store" / place.file).read_bytes()[place.offset :][: place.nbytes]
        assert pa.Codec(codec).decompress(frame, WAVE.nbytes).to_pybytes() == WAVE.tobytes()


def test_tables_have_it(store):
    table = store.list().to_arrow()
    rows = {(row["space"], row["name"]): row for row in table.to_pylist()}
    assert (rows["z", "wave"]["_codec"], rows["z", "wave"]["_unpacked"]) == ("zstd", WAVE.nbytes)
    assert rows["z", "noise"]["_codec"] is None
    assert rows["q", "wave"]["_length"] == by_name(store)["q", "wave"].location.nbytes
    assert "_codec" not in store.list("space=none").to_arrow().column_names


def test_what_is_no_compression_is_refused(tmp_path):
    def create(compression):
        junctura.Store.create(tmp_path / "other", schema="free", compression=compression)

    with pytest.raises(junctura.InvalidArgument, match="zstd:LEVEL"):
        create("gzip")
    with pytest.raises(junctura.InvalidArgument, match="first level"):
        create({"name=a": "zstd"})
    with pytest.raises(junctura.InvalidArgument, match="a text or a dict"):
        create(3)


LARGE_NBYTES = 300 << 20
# In a process that gets 100 MiB beyond what it has.
IN_LITTLE_MEMORY = """
import re, resource, sys
from pathlib import Path
import junctura
store = junctura.Store(sys.argv[1])
obj = store.list("name=large")[0]
used = int(re.search(r"VmData:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + (100 << 20),) * 2)
def told(call):
    try:
        return call()
    except (junctura.Error, MemoryError) as error:
        return type(error).__name__
"""


def in_little_memory(store, code):
    ran = subprocess.run(
        [sys.executable, "-c", IN_LITTLE_MEMORY + code, store.path], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.fixture(params=["z", "q", "none"])
def large(store, request):
    payload = np.zeros(LARGE_NBYTES, np.uint8)
    payload[LARGE_NBYTES // 2], payload[-1] = 1, 2
    store.archive(payload, space=request.param, name="large")
    store.flush()
    return store


def test_an_object_that_exceeds_memory_is_read_as_a_file(large):
    assert in_little_memory(
        large,
        """
print(told(obj.read))
for verified in (True, False):
    with obj.open(verified=verified) as file:
        file.seek(obj.nbytes // 2 - 1)
        print(file.read(2).hex(), len(file.read(1 << 20)), file.seek(-1, 2) == obj.nbytes - 1)
        print(file.read().hex(), file.read(), file.seek(5), file.read(1).hex())
""",
    ) == ["MemoryError", *2 * ["0001", "1048576", "True", "02", "b''", "5", "00"]]


def test_a_frame_without_the_bytes_that_it_claims_takes_no_memory(store):
    store.archive(bytes(LARGE_NBYTES), space="q", name="large")
    store.flush()
    place = store.list("name=large")[0].location
    with (store.path / place.file).open("r+b") as file:
        # Behind the header of the frame.
        file.seek(place.offset + 15)
        file.write(bytes(place.nbytes - 15))
    code = """
for call in (obj.read, obj.map, obj.array, lambda: obj.open().read(1), lambda: obj.open(verified=False).read(1),
             store.list("name=large").read):
    print(told(call))
"""
    assert in_little_memory(store, code) == 6 * ["Corrupt"]


def test_a_file_of_a_large_object_is_verified_without_the_whole(store, monkeypatch):
    monkeypatch.setattr(object_file, "WHOLE_NBYTES_MAX", 1000)
    for (_, name), found in by_name(store).items():
        expected = (WAVE if name == "wave" else NOISE).tobytes()
        with found.open() as file:
            assert file.seek(40_000) and file.read(1000) == expected[40_000:41_000]
            assert file.seek(7) and file.read() == expected[7:]
    found = by_name(store)["none", "noise"]
    with (store.path / found.location.file).open("r+b") as file:
        file.seek(found.location.offset + 40_000)
        file.write(bytes([NOISE[40_000] ^ 1]))
    with found.open() as file, pytest.raises(junctura.Corrupt):
        file.read(1)
