"""Objects of a store that lie packed: nobody who reads notices, and other programs unpack them."""

import numpy as np
import pyarrow as pa
import pytest

import junctura

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
