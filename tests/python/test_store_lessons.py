"""What hurt the users of earlier stores: a test for each lesson, named after its number.

Lessons about pools are in `test_lessons.py`, those about the command line in `tests/e2e`; many have longer tests
elsewhere, 20 and 22 in `crates/junctura-store/tests`. Nothing here sleeps: processes tell each other on pipes how far
they are.
"""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from python_stores import FIELD, grib

import junctura


class Other:
    """A process with a store of its own, which is told and tells line by line."""

    def __init__(self, store: junctura.Store, program: str) -> None:
        program = "import junctura, sys\nstore = junctura.Store(sys.argv[1])\n" + program
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, store.path], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def has_spoken(self) -> bool:
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")


@pytest.fixture
def store(tmp_path: Path) -> junctura.Store:
    return junctura.Store.create(tmp_path / "store", schema="free")


def names(store: junctura.Store) -> list[str]:
    return [obj["name"] for obj in store.list()]


def test_lesson_12_no_disk_is_waited_for_in_the_call_of_the_simulation(
    store: junctura.Store, pool: junctura.Pool
) -> None:
    """Waiting for the disk inside the simulation's call: here the disk comes last, and an event tells of it."""
    with pool.subscribe(kinds=["archived"]) as events:
        for step in range(3):
            pool.offer(f"{step}".encode(), name=f"t{step}")
        # All steps are offered, and read by others, before anybody has begun to archive one.
        assert bytes(pool.demand("name=t2")) == b"2"
        assert names(store) == []
        archiver = [
            sys.executable,
            "-m",
            "junctura",
            "store",
            "archiver",
            "--pool",
            pool.url,
            "*",
            "--store",
            str(store.path),
        ]
        with subprocess.Popen([*archiver, "--until-live", "--quiet"]):
            told = [next(events) for _ in range(3)]
    assert [event.object and event.object["name"] for event in told] == ["t0", "t1", "t2"]
    assert all(event.location and event.location.startswith(str(store.path)) for event in told)
    assert [obj.read() for obj in store.list()] == [b"0", b"1", b"2"]


def test_lesson_19_attributes_are_given_once_and_no_message_is_read_or_written_for_them(tmp_path: Path) -> None:
    """Messages were re-encoded to change what they are called, and parsed again on archive."""
    message = grib(shortName="t", level=500, dataDate=20261120)
    calls_it = {**FIELD, "levtype": "pl", "levelist": 850, "param": "u"}
    later = {**calls_it, "step": 6}
    with junctura.Store.create(tmp_path / "store", schema="mars") as store:
        store.archive(message, calls_it)
        store.archive(b"no message at all", later)
    labelled, bare = store.retrieve("param=u,levelist=850,step=0/6")
    # The header says t at 500 hPa; who archives says otherwise, and nobody has touched the bytes.
    assert (labelled["param"], labelled.read()) == ("u", message)
    assert bare.read() == b"no message at all"
    with store:
        store.archive(labelled.map(), {**labelled.attributes, "expver": "0002"})
    (again,) = store.list("expver=0002")
    assert (again.read(), again["param"], again["levelist"]) == (message, "u", labelled["levelist"])


READS_AND_HOLDS = """
listing = store.list()
payload = listing[0].map()
store.archive(b"half", name="half")
store.archive(bytes(200_000), name="of it")
print(len(payload), flush=True)
sys.stdin.read()
"""


def test_lesson_20_whoever_dies_leaves_no_lock_and_nothing_half_written(store: junctura.Store) -> None:
    """A read lock, a stale rendezvous file or a half-written index after a crash."""
    with store:
        store.archive(bytes(100_000), name="a")
    with Other(store, READS_AND_HOLDS) as other:
        assert other.hear() == "100000"
        other.process.send_signal(signal.SIGKILL)
    # A writer that died within its record, too.
    log = Path(store.path) / "log/00000000000000000001"
    record = log.read_bytes()
    with log.open("ab") as file:
        file.write(record[:-1])
    for other_store in (store, junctura.Store(store.path)):
        assert names(other_store) == ["a"]
        with other_store:
            other_store.archive(b"newer", name="a")
        assert other_store.purge().objects == 1
        other_store.compact()
        assert [obj.read() for obj in junctura.Store(store.path).list()] == [b"newer"]
    assert store.check().damaged_count == 0


def test_lesson_21_what_is_missing_is_an_error_that_names_it(store: junctura.Store) -> None:
    """What was not there was returned as nothing, half of a request as the half."""
    with pytest.raises(junctura.NotFound, match=r"name=a"):
        store.retrieve("name=a")
    with pytest.raises(junctura.NotFound):
        store.retrieve("")
    with store:
        store.archive_many([(b"", {"space": space, "name": name}) for space, name in ("1a", "1b", "2a")])
    with pytest.raises(junctura.NotFound, match=r"missing: \{space=2,name=b\}"):
        store.retrieve("space=1/2,name=a/b")
    half = store.retrieve("space=1/2,name=a/b", partial=True)
    assert (len(half), half.missing) == (3, ["{space=2,name=b}"])
    assert store.retrieve("space=1,name=a/b").missing == []


WRITES_STEPS = """
for step in sys.stdin:
    for at in range(20):
        payload = step.strip().encode() * (30_000 if at % 7 == 0 else 10)
        store.archive(payload, field, schema="mars", levelist=at)
        store.archive(payload, schema="free", space=f"{at % 3}", name=f"{at}")
    print(store.flush().commit, flush=True)
"""


def test_lesson_22_one_flush_is_one_commit_whatever_it_covers(tmp_path: Path) -> None:
    """A flush was atomic per index, not per step: here two schemas, several datasets, rows and files."""
    store = junctura.Store.create(tmp_path / "store", schema=["mars", "free"])

    def steps() -> list[tuple[bytes, int]]:
        return [(obj.read()[:1], obj.commit) for obj in store.list()]

    field = {**FIELD, "levtype": "pl"}
    with Other(store, f"field = {field!r}\n{WRITES_STEPS}") as other:
        for step in range(5):
            other.tell(f"{step}")
            whole = [[(b"%d" % at, at + 1)] * 40 for at in range(step + 1)]
            while not other.has_spoken():
                assert steps() in [*whole, []]
            assert other.hear() == f"{step + 1}"
            assert steps() == whole[step]


ENDS = {
    "an exception": "with store:\n    store.archive(b'', name='half')\n    raise SystemExit(3)",
    "an end": "store.archive(b'', name='half')",
    "a destructor": "store.archive(b'', name='half')\ndel store",
}


@pytest.mark.parametrize("end", ENDS)
def test_lesson_23_leaving_without_a_flush_publishes_nothing(store: junctura.Store, end: str) -> None:
    """An uncaught exception published half-done work, because a destructor flushed."""
    with Other(store, "store.archive(b'', name='whole')\nstore.flush()\n" + ENDS[end]):
        pass
    assert names(store) == ["whole"]
    assert store.snapshot().commit == 1


ARCHIVES_AND_WAITS = """
for line in sys.stdin:
    word, _, value = line.strip().partition(" ")
    if word == "archive":
        store.archive(value.encode(), name="a")
    else:
        store.flush()
    print(word, flush=True)
"""


def test_lesson_24_the_last_flush_is_the_newest_version(store: junctura.Store) -> None:
    """It was believed that the last archive wins; the last flush did. It does here, too, and the guide says so."""
    with Other(store, ARCHIVES_AND_WAITS) as one, Other(store, ARCHIVES_AND_WAITS) as two:
        for who, what in ((one, "archive first"), (two, "archive second"), (two, "flush"), (one, "flush")):
            who.tell(what)
            assert who.hear() == what.split(" ")[0]
    assert [obj.read() for obj in store.list()] == [b"first"]
    assert [(obj.commit, obj.read()) for obj in store.list(all_versions=True)] == [(1, b"second"), (2, b"first")]
    # A later look at another opening, and after a checkpoint, says the same.
    store.checkpoint()
    assert [obj.read() for obj in junctura.Store(store.path).list()] == [b"first"]


def test_lesson_25_a_range_is_what_it_says(tmp_path: Path) -> None:
    """`step=0/to/1` silently meant step 0, because the unwritten `by` was 12."""
    with junctura.Store.create(tmp_path / "store", schema="mars") as store:
        for step in (0, 1, 12):
            store.archive(b"", {**FIELD, "step": step})
    assert [obj["step"] for obj in store.retrieve("step=0/to/1")] == ["0", "1"]
    assert [obj["step"] for obj in store.retrieve("step=0/to/12/by/12")] == ["0", "12"]
    for wanted in ("step=0/to/2", "step=0/2"):
        with pytest.raises(junctura.NotFound, match=r"missing: \{step=2\}"):
            store.retrieve(wanted)


def test_lesson_29_a_handle_seeks_and_peeks(store: junctura.Store) -> None:
    """The wish for a handle that can seek and peek."""
    with store:
        store.archive(bytes(range(256)), name="a")
    with store.list()[0].open() as file:
        assert file.peek(2)[:2] == b"\0\1"
        assert (file.seek(-2, 2), file.read()) == (254, b"\xfe\xff")


def test_lesson_29_arrays_over_an_archive_are_opened_lazily(tmp_path: Path) -> None:
    """The wish for lazily opened arrays over a local archive."""
    xarray = pytest.importorskip("xarray")
    with junctura.Store.create(tmp_path / "store", schema="mars") as store:
        for step in (0, 6):
            field = grib(shortName="t", level=500, step=step, values=np.full(16 * 31, 200.0 + step))
            store.archive(field, {**FIELD, "levtype": "pl", "levelist": 500, "param": "t", "step": step})
    last = store.list("step=6")[0].location
    dataset = xarray.open_dataset(store.path, engine="junctura")
    # The second field is spoilt now: only who asks for its values is told.
    with (Path(store.path) / last.file).open("r+b") as file:
        file.seek(last.offset + last.nbytes - 10)
        file.write(b"spoilt")
    assert float(dataset.t.isel(step=0).mean()) == 200.0
    with pytest.raises(junctura.Corrupt):
        dataset.t.isel(step=1).mean().compute()


RUNS = "name: runs\nkey: {dataset: [], collocation: [], element: [run]}\nattributes:\n  run: {type: integer}\n"


def test_lesson_29_a_schema_changes_and_no_data_is_moved(tmp_path: Path) -> None:
    """The wish for a schema change without moving data; more of it in crates/junctura-store/tests/schemas.rs."""
    with junctura.Store.create(tmp_path / "store", schema=RUNS) as before:
        before.archive(bytes(100_000), run=1)
    place = before.list()[0].location
    before.checkpoint()
    with before.set_schema([RUNS + "  owner: {type: string}\n", "free"]) as store:
        store.archive(b"new", run=2, owner="ada")
        store.archive(b"", schema="free", name="a")
    for opened in (store, junctura.Store(tmp_path / "store")):
        assert [obj.get("owner") for obj in opened.list("run=1/2")] == [None, "ada"]
        assert (opened.list("run=1")[0].location, len(opened.list("name=a"))) == (place, 1)
        assert [obj["run"] for obj in opened.list("owner=ada")] == [2]
    with pytest.raises(junctura.SchemaMismatch, match="open it again"):
        before.list()
    with pytest.raises(junctura.SchemaMismatch, match="the key has to stay"):
        store.set_schema(RUNS.replace("integer", "string") + "  owner: {type: string}\n")


def test_lesson_29_a_schema_with_another_meaning_is_stated(tmp_path: Path) -> None:
    in_km, in_m = (RUNS.replace("integer", f"integer, unit: {unit}") for unit in ("km", "m"))
    with junctura.Store.create(tmp_path / "store", schema=in_km) as store:
        store.archive(b"", run=1)
    with pytest.raises(junctura.SchemaMismatch, match="`redefine_schema` replaces it"):
        store.set_schema(in_m)
    store = store.redefine_schema(in_m)
    assert store.schemas[0].units == {"run": "m"}
    assert store.list()[0]["run"] == 1


def test_lesson_29_two_experiments_are_compared(store: junctura.Store) -> None:
    """The wish for comparing two archives or experiments."""
    with store:
        for space, names in (("a", "12"), ("b", "23")):
            store.archive_many([(name.encode(), {"space": space, "name": name}) for name in names])
    found = junctura.compare(store.list("space=a"), store.list("space=b"), ignore=["space"])
    assert ([obj["name"] for obj in found.only_first.values()], found.both) == (["1"], 1)
    assert [obj["name"] for obj in found.only_second.values()] == ["3"]


def test_lesson_29_who_archives_is_told_key_and_place(store: junctura.Store) -> None:
    """The wish for a callback with key and location on archive: whoever follows has it, in whatever process."""
    follow = store.follow(timeout=60)
    with Other(store, "store.archive(bytes(100_000), name='a')\nstore.flush()"):
        told = next(follow)
    with (Path(store.path) / told.location.file).open("rb") as file:
        file.seek(told.location.offset)
        assert file.read(told.location.nbytes) == bytes(100_000)
    assert (told.key, told.commit) == ("{space=default}{}{name=a}", 1)
