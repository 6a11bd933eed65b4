"""Bundles from the shell: put together, opened, sealed, aborted and looked at by their paths."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_grib import Field
from e2e_shell import Process, Shell

import junctura


def test_what_is_put_together_is_seen_together(shell: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    watch = shell.watch("--kind", "offered,completed", "--count", str(len(fields) + 1))
    *objects, summary = shell.documents("put", "--bundle", "run/step=6", "--about", "step=6", "--json", file)
    assert summary["objects"] == len(fields)
    sequences = sorted(int(each["version"].split(".")[1]) for each in objects)
    assert sequences == list(range(1, len(fields) + 1))
    events = [watch.document() for _ in range(len(fields) + 1)]
    assert [int(event["version"].split(".")[1]) for event in events[:-1]] == sequences
    assert events[-1]["bundle"] == {"path": "run/step=6", "members": len(fields), "declared": None}
    (bundle,) = shell.documents("pool", "bundle", "list", "step=6", "--json")
    assert (bundle["path"], bundle["state"], bundle["members"]) == ("run/step=6", "visible", len(fields))
    assert bundle["attributes"] == {"step": "6"}
    assert shell.text("pool", "bundle", "list", "step=7") == ""
    assert shell.text("ls", "--count", "--bundle", "run/step=6") == f"{len(fields)}\n"
    assert "complete" in shell.error(1, "put", "--bundle", "run/step=6", file)
    assert "nothing" in shell.error(3, "ls", "--bundle", "nothing")


def test_several_put_their_parts_and_one_waits(shell: Shell, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode() * 10_000)
    watch = shell.watch("--kind", "completed")
    shell.run("pool", "bundle", "open", "b", "--members", "3")
    put = ["put", "--schema", "free", "--bundle", "b", "--members", "3"]
    waiting = shell.start(*put, "--wait", "--verbose", tmp_path / "c")
    done = shell.run(*put, "--verbose", tmp_path / "a")
    assert done.stdout.decode().startswith("staged {space=default}{}{name=a}")
    assert "not complete" in done.stderr.decode()
    assert "3 members, not 4" in shell.error(1, "pool", "bundle", "open", "b", "--members", "4")
    shell.run(*put, tmp_path / "b")
    assert watch.document()["bundle"] == {"path": "b", "members": 3, "declared": 3}
    status, out, _ = waiting.end()
    assert status == 0
    assert out.splitlines()[0].split()[0].endswith(".3")
    assert shell.text("ls", "--count") == "3\n"


def test_one_is_looked_into_sealed_and_another_aborted(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"payload")
    watch = shell.watch("--kind", "completed,aborted")
    shell.run("put", "--schema", "free", "--bundle", "run/one", "--open", tmp_path / "a")
    shell.run("put", "--schema", "free", "--bundle", "run/two", "--open", "--set", "name=b", tmp_path / "a")
    assert shell.text("ls") == ""
    staged = shell.documents("ls", "--incomplete", "--json")
    assert [(each["attributes"]["name"], each["version"]) for each in staged] == [("a", None), ("b", None)]
    tree = shell.text("pool", "bundle", "list", "--tree").splitlines()
    assert tree[0] == "run"
    assert tree[1].startswith("  one  open, 1 member, 7 B, open 0 times, aborted in ")
    assert shell.documents("pool", "bundle", "show", "run/two", "--json")[0]["staged_bytes"] == 7
    assert shell.text("pool", "bundle", "seal", "run/one") == "run/one is complete: 1 object\n"
    assert shell.text("pool", "bundle", "abort", "run/two") == "run/two is aborted: 1 object freed\n"
    shell.error(3, "pool", "bundle", "seal", "run/two")
    assert [(event["event"], event["bundle"]["path"]) for event in (watch.document(), watch.document())] == [
        ("completed", "run/one"),
        ("aborted", "run/two"),
    ]
    assert len(shell.text("ls").splitlines()) == 2
    assert "1 completed, 1 aborted" in shell.text("pool", "stat")


def test_what_fails_publishes_nothing(bare: Shell, file: Path) -> None:
    bare.serve("--orphan-timeout", "1ms")
    watch = bare.watch("--kind", "aborted")
    damaged = file.with_name("damaged.grib2")
    damaged.write_bytes(file.read_bytes()[:-10])
    bare.error(1, "put", "--bundle", "b", damaged)
    event = watch.document()
    assert (event["bundle"]["path"], event["reason"]) == ("b", "all its producers have disconnected")
    assert event["bundle"]["members"] > 0
    assert bare.text("ls") == ""


PRODUCERS, MEMBERS = 16, 10_000
EACH = MEMBERS // PRODUCERS


class Reader:
    """Looks again and again how many objects of a space there are, and follows them."""

    def __init__(self, url: str, space: str) -> None:
        self.pool = junctura.Pool(url, name=f"reader of {space}")
        self.follow = self.pool.follow(f"space={space}")
        self.space, self.seen, self.is_over = space, set[int](), threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self) -> None:
        with junctura.Pool(self.pool.url, name="onlooker") as pool:
            while not self.is_over.is_set():
                self.seen.add(len(pool.list(f"space={self.space}")))

    def end(self, count: int) -> tuple[set[int], set[str], set[int]]:
        """How many it has ever seen, and names and sequence numbers of so many that its follow gets, and no more."""
        names, sequences = set(), set()
        for _ in range(count):
            obj = self.follow.next(timeout=60)
            assert isinstance(obj, junctura.Object)
            names.add(obj["name"])
            sequences.add(obj.version.sequence)
            obj.release()
        with pytest.raises(junctura.Timeout):
            self.follow.next(timeout=0)
        self.is_over.set()
        self.thread.join()
        self.pool.close()
        return self.seen, names, sequences


@pytest.fixture
def reader(bare: Shell) -> Iterator[Callable[[str], Reader]]:
    started: list[Reader] = []

    def start(space: str) -> Reader:
        started.append(Reader(f"unix:{bare.folder}/junctura/test.sock", space))
        return started[-1]

    yield start
    for one in started:
        one.is_over.set()
        one.thread.join()


def tell_all(producers: list[Process], line: str) -> set[str]:
    """All of them at once; what they answer."""
    for producer in producers:
        producer.write(f"{line}\n".encode())
    return {producer.line() for producer in producers}


def check_all_or_nothing(reader: Reader, *, is_there: bool) -> None:
    seen, names, sequences = reader.end(MEMBERS if is_there else 0)
    assert seen <= {0, MEMBERS}
    if is_there:
        assert names == {f"{rank}/{number}" for rank in range(PRODUCERS) for number in range(EACH)}
        assert max(sequences) - min(sequences) + 1 == len(sequences) == MEMBERS, "one point in the order"


def test_ten_thousand_members_of_sixteen_producers_are_seen_together_or_not_at_all(
    bare: Shell, program: Callable[..., Process], reader: Callable[[str], Reader]
) -> None:
    bare.serve("--schema", "free")
    watch = bare.watch("--kind", "completed,aborted")
    producers = [program("e2e_bundler.py", rank) for rank in range(PRODUCERS)]

    # With the last of as many as were said; one producer is killed on the way, and another takes its place.
    readers = reader("counted")
    assert tell_all(producers, f"open counted {MEMBERS}") == {"done"}
    assert tell_all(producers, f"stage 0 {EACH // 2}") == {"done"}
    producers[3].kill()
    producers[3] = program("e2e_bundler.py", 3)
    assert producers[3].ask(f"open counted {MEMBERS}") == "done"
    assert bare.text("ls", "--count") == "0\n"
    assert tell_all(producers, f"stage {EACH // 2} {EACH}") == {"done"}
    assert watch.document()["bundle"] == {"path": "counted", "members": MEMBERS, "declared": MEMBERS}
    check_all_or_nothing(readers, is_there=True)
    assert producers[0].ask("open counted 0").startswith("BundleClosed")

    # When one of them says so.
    readers = reader("sealed")
    assert tell_all(producers, "open sealed 0") == {"done"}
    assert tell_all(producers, f"stage 0 {EACH}") == {"done"}
    assert producers[5].ask("seal") == "done"
    assert watch.document()["bundle"] == {"path": "sealed", "members": MEMBERS, "declared": None}
    check_all_or_nothing(readers, is_there=True)

    # One of them aborts it for all.
    readers = reader("aborted")
    assert tell_all(producers, f"open aborted {MEMBERS}") == {"done"}
    assert tell_all(producers[1:], f"stage 0 {EACH}") == {"done"}
    assert producers[1].ask("abort") == "done"
    assert watch.document()["bundle"] == {"path": "aborted", "members": MEMBERS - EACH, "declared": MEMBERS}
    assert producers[2].ask("stage 0 1") != "done"
    check_all_or_nothing(readers, is_there=False)

    # All are killed before it is whole.
    readers = reader("orphaned")
    assert tell_all(producers, f"open orphaned {MEMBERS}") == {"done"}
    assert tell_all(producers, f"stage 0 {EACH - 1}") == {"done"}
    for producer in producers:
        producer.popen.kill()
    aborted = watch.document()["bundle"]
    assert aborted == {"path": "orphaned", "members": MEMBERS - PRODUCERS, "declared": MEMBERS}
    check_all_or_nothing(readers, is_there=False)
    assert bare.text("ls", "--count", "--incomplete") == f"{2 * MEMBERS}\n"
