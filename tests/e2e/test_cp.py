"""`junctura cp`: objects from one pool into another, as they are."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import random
import signal
import struct
import subprocess
import termios
from pathlib import Path

import numpy as np
import pytest
from e2e_grib import Field, split
from e2e_shell import JUNCTURA, Shell, key_of, shown_until_its_end

import junctura

LARGE = 3 << 20


@pytest.fixture
def two(bare: Shell) -> Shell:
    """A shell with two pools that are served: unix:test and unix:other."""
    bare.serve()
    other = bare.start("pool", "serve", "--pool", "unix:other", "--budget", "64MiB")
    assert "serving" in other.said()
    return bare


def in_other(shell: Shell, *command: str | Path, stdin: bytes = b"") -> str:
    return shell.run(*command, "--pool", "unix:other", stdin=stdin).stdout.decode()


def listed(shell: Shell, pool: str) -> list[dict[str, object]]:
    lines = shell.documents("ls", "--json", "--pool", pool)
    return [{name: line[name] for name in ("key", "schema", "bytes", "attributes")} for line in lines]


def put(shell: Shell, name: str, payload: bytes, pool: str = "unix:test", *more: str) -> None:
    shell.run("put", "-", "--schema", "free", "--set", f"name={name}", *more, "--pool", pool, stdin=payload)


def test_objects_are_the_same_there(two: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    two.run("put", file)
    put(two, "large", bytes(LARGE), "unix:test", "--set", "author=ada")
    put(two, "empty", b"")
    documents = two.documents("cp", "unix:test", "unix:other", "*", "--json")
    summary = documents.pop()
    assert summary["objects"] == len(fields) + 2
    assert summary["bytes"] == sum(map(len, fields.values())) + LARGE
    assert (summary["identical"], summary["refused"], summary["missed"]) == (0, 0, [])
    assert listed(two, "unix:test") == listed(two, "unix:other")
    versions = {line["key"]: line["version"] for line in two.documents("ls", "--json", "--pool", "unix:other")}
    assert {key_of(line): line["version"] for line in documents} == versions
    got = two.run("get", "--all", "class=od", "-o", "-", "--pool", "unix:other").stdout
    assert sorted(split(got)) == sorted(fields.values())
    assert two.run("get", "name=large", "-o", "-", "--pool", "unix:other").stdout == bytes(LARGE)


def test_a_selector_chooses(two: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    two.run("put", file)
    wanted = [field for field in fields if field.param == "t"]
    said = two.text("cp", "unix:test", "unix:other", "param=t")
    assert said.startswith(f"{len(wanted)} objects, ")
    assert "GiB/s" in said
    assert in_other(two, "ls", "--count") == f"{len(wanted)}\n"


def test_what_is_the_same_is_skipped_and_what_differs_is_told(two: Shell) -> None:
    for name in ("same", "other", "labelled", "new"):
        put(two, name, name.encode(), "unix:test", "--set", "author=ada")
    put(two, "same", b"same", "unix:other", "--set", "author=ada")
    put(two, "other", b"OTHER", "unix:other", "--set", "author=ada")
    put(two, "labelled", b"labelled", "unix:other", "--set", "author=bob")
    said = two.error(1, "cp", "unix:test", "unix:other", "name=other")
    assert "Conflict" in said
    assert "another payload" in said
    assert "another attributes" in two.error(1, "cp", "unix:test", "unix:other", "name=labelled")
    assert "1 were there already" in two.text("cp", "unix:test", "unix:other", "name=same")
    done = two.run("cp", "unix:test", "unix:other", "space=default", "--keep-going", "--json", status=1)
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    outcomes = {line["key"].split("name=")[1].rstrip("}"): line["outcome"] for line in documents[:-1]}
    assert outcomes == {"labelled": "refused", "new": "copied", "other": "refused", "same": "identical"}
    assert "2 refused in all, 1 copied" in done.stderr.decode()
    assert {line["outcome"] for line in documents[:-1] if line["error"]} == {"refused"}
    # Again, there is nothing to do, and what differs still does.
    assert in_other(two, "ls", "--count") == "4\n"


def test_what_was_there_once_is_refused(two: Shell) -> None:
    put(two, "x", b"x")
    put(two, "x", b"x", "unix:other")
    in_other(two, "pool", "withdraw", "--schema", "free", "name=x")
    assert "AlreadyExists" in two.error(1, "cp", "unix:test", "unix:other", "name=x")


def test_follow_goes_on_until_ctrl_c(two: Shell) -> None:
    put(two, "early", b"1")
    seen = two.watch("--pool", "unix:other", "--kind", "offered")
    copy = two.start("cp", "unix:test", "unix:other", "space=default", "--follow", "--json")
    assert "early" in key_of(seen.document())
    put(two, "late", b"2")
    assert "late" in key_of(seen.document())
    assert [copy.document()["outcome"] for _ in range(2)] == ["copied", "copied"]
    copy.signal(signal.SIGINT)
    status, out, _ = copy.end()
    assert status == 130
    assert json.loads(out)["objects"] == 2


def test_follow_ends_with_its_count_and_with_the_pools(two: Shell) -> None:
    put(two, "a", b"a")
    copy = two.start("cp", "unix:test", "unix:other", "*", "--follow", "--count", "2")
    put(two, "b", b"b")
    assert copy.end()[0] == 0
    seen = two.watch("--pool", "unix:other", "--kind", "offered")
    copy = two.start("cp", "unix:test", "unix:other", "name=c", "--follow")
    put(two, "c", b"c")
    seen.document()
    # In both: who comes to a pool that has been stopped begins another.
    joined = [two.watch("--pool", pool, "--kind", "joined") for pool in ("unix:test", "unix:other")]
    stranded = two.start("cp", "unix:test", "unix:other", "name=d", "--follow", "--as", "stranded")
    assert [watch.document()["client"]["name"] for watch in joined] == ["stranded"] * 2
    two.run("pool", "stop", "--pool", "unix:other", "--now")
    put(two, "d", b"d")
    assert stranded.end()[0] == 5
    two.run("pool", "stop", "--now")
    assert copy.end()[0] == 5


def test_both_ways_at_once_comes_to_an_end(two: Shell) -> None:
    put(two, "here", b"1")
    put(two, "there", b"2", "unix:other")
    seen = two.watch("--kind", "offered")
    also = two.watch("--pool", "unix:other", "--kind", "offered")
    ways = [("unix:test", "unix:other"), ("unix:other", "unix:test")]
    copies = [two.start("cp", *way, "*", "--follow", "--count", "2", "--json") for way in ways]
    assert "there" in key_of(seen.document())
    assert "here" in key_of(also.document())
    ends = [copy.end() for copy in copies]
    assert [end[0] for end in ends] == [0, 0]
    assert [json.loads(end[1].splitlines()[-1])["identical"] for end in ends] == [1, 1]


def test_more_than_the_other_pool_has_room_for(two: Shell) -> None:
    for number in range(30):
        put(two, f"n{number:02}", bytes(LARGE))
    # Twenty at most fit at a time; a reader makes room.
    reader = two.start("get", "--follow", "space=default", "--count", "30", "-o", "/dev/null", "--pool", "unix:other")
    two.run("cp", "unix:test", "unix:other", "*", "--retention", "released:1", "--window", "4")
    assert reader.end()[0] == 0
    third = two.start("pool", "serve", "--pool", "unix:third", "--budget", "64MiB")
    assert "serving" in third.said()
    assert "PoolFull" in two.error(6, "cp", "unix:test", "unix:third", "*", "--timeout", "10ms")


STATES = """
name: states
same_key: supersede
key: {dataset: [], collocation: [], element: [name]}
attributes: {name: {type: string}}
"""


@pytest.fixture
def states(bare: Shell, tmp_path: Path) -> Shell:
    """As `two`, of objects that are replaced."""
    (tmp_path / "states.yaml").write_text(STATES)
    schema = ["--schema", str(tmp_path / "states.yaml"), "--schema", "free"]
    bare.serve(*schema)
    other = bare.start("pool", "serve", "--pool", "unix:other", "--budget", "8MiB", *schema)
    assert "serving" in other.said()
    return bare


def say_state(shell: Shell, name: str, payload: bytes) -> None:
    shell.run("put", "-", "--schema", "states", "--set", f"name={name}", stdin=payload)


def test_what_is_replaced_while_it_is_copied_is_not_left_out(states: Shell) -> None:
    for name in ("a", "b", "c"):
        say_state(states, name, bytes(LARGE) if name == "b" else b"old")
    # As long as the other pool is full, the copy stands at b, and c is yet to come.
    put(states, "filler", bytes(2 * LARGE), "unix:other")
    copy = states.start("cp", "unix:test", "unix:other", "name=a/b/c/d", "--window", "1", "-v")
    assert "name=a" in copy.line()
    say_state(states, "c", b"new")
    say_state(states, "d", b"late")
    in_other(states, "pool", "withdraw", "--schema", "free", "name=filler")
    status, out, said = copy.end()
    assert status == 0, said
    assert [line.split("name=")[1].rstrip("}") for line in out.splitlines()[:-1]] == ["b", "c", "d"]
    for name, payload in (("a", b"old"), ("c", b"new"), ("d", b"late")):
        assert states.run("get", f"name={name}", "-o", "-", "--pool", "unix:other").stdout == payload


def test_a_copy_of_what_is_replaced_all_the_time_accounts_for_each_key(states: Shell) -> None:
    names = [f"n{number:02}" for number in range(30)]
    for name in names:
        say_state(states, name, b"first")
    with junctura.Pool(f"unix:{states.folder}/junctura/test.sock") as pool:
        copies = [states.start("cp", "unix:test", "unix:other", "*", "--window", "2", "--json") for _ in range(5)]
        while any(copy.popen.poll() is None for copy in copies):
            for name in names:
                pool.offer(b"again", name=name, schema="states")
    for copy in copies:
        status, out, said = copy.end()
        *copied, summary = [json.loads(line) for line in out.splitlines()]
        assert status == (3 if summary["missed"] else 0), said
        accounted = [key_of(line) for line in copied] + [missed.split()[1] for missed in summary["missed"]]
        assert {key.split("name=")[1].rstrip("}") for key in accounted} == set(names)


def test_a_rate_is_kept(two: Shell) -> None:
    for number in range(4):
        put(two, f"n{number}", bytes(100_000))
    summary = two.documents("cp", "unix:test", "unix:other", "*", "--rate", "1MB", "--json")[-1]
    # The last one waits for the three before it.
    assert summary["seconds"] >= 0.29


def test_a_terminal_is_shown_how_far_it_is(two: Shell) -> None:
    for number in range(4):
        put(two, f"n{number}", bytes(100_000))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    copy = subprocess.Popen(
        [str(JUNCTURA), "cp", "unix:test", "unix:other", "*", "--rate", "400KB"],
        env={**two.environment, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = shown_until_its_end(ours)
    assert copy.communicate(timeout=60)[0].startswith(b"4 objects")
    assert b"390.62 KiB" in shown
    assert b"objects" in shown


def test_a_group_shares_the_work_and_loses_nothing(two: Shell) -> None:
    two.run("pool", "require", "space=default", "--name", "mirror", "--group")
    names = [f"n{number}" for number in range(20)]
    for name in names:
        put(two, name, name.encode())
    share = ["cp", "unix:test", "unix:other", "space=default", "--group", "mirror"]
    copy = two.start(*share, "--follow", "--rate", "1", "-v")
    assert copy.line().startswith("copied")
    copy.kill()
    two.run(*share)
    assert in_other(two, "ls", "--count") == "20\n"
    assert two.documents("pool", "group", "show", "mirror", "--json")[0]["owed"] == 0


def test_pools_that_do_not_agree(two: Shell, bare: Shell, tmp_path: Path) -> None:
    assert "the same pool" in two.error(2, "cp", "unix:test", "unix:test", "*")
    path = two.folder / "junctura/test.sock"
    assert "the same pool" in two.error(2, "cp", "unix:test", f"unix:{path}", "*")
    assert "NotFound" in two.error(3, "cp", "unix:mistyped", "unix:other", "*")
    (tmp_path / "free.yaml").write_text(two.text("schema", "show", "free").replace("author", "writer"))
    if "writer" not in (tmp_path / "free.yaml").read_text():
        text = two.text("schema", "show", "rowcol").replace("rowcol", "free")
        (tmp_path / "free.yaml").write_text(text)
    third = bare.start("pool", "serve", "--pool", "unix:third", "--schema", str(tmp_path / "free.yaml"))
    assert "serving" in third.said()
    put(two, "x", b"x")
    assert "mean different things" in two.error(1, "cp", "unix:test", "unix:third", "*")


def test_an_array_in_pieces_is_copied_whole(two: Shell) -> None:
    everything = np.arange(24, dtype=np.float32).reshape(4, 6)
    halves = junctura.Layout("shape=4x6 grid=1x2 order=F")
    with junctura.Pool(f"unix:{two.folder}/junctura/test.sock") as pool:
        for rank in range(2):
            mine = np.asfortranarray(everything[:, 3 * rank : 3 * rank + 3])
            pool.offer_piece(mine, halves, rank, name="t", schema="free")
    for outcome in "copied", "identical":
        told, summary = two.documents("cp", "unix:test", "unix:other", "*", "--json")
        assert (told["outcome"], told["bytes"]) == (outcome, everything.nbytes)
    assert summary["identical"] == 1
    with junctura.Pool(f"unix:{two.folder}/junctura/other.sock") as pool:
        assert np.array_equal(pool.demand(name="t", schema="free").array(), everything)
        assert np.array_equal(pool.demand_array(name="t", schema="free"), everything)


def test_an_array_without_its_pieces_is_named_and_the_rest_is_copied(two: Shell) -> None:
    put(two, "bad", b"junctura-array 1\ndtype=<f8\nshape=4 grid=2\n")
    put(two, "good", b"good")
    put(two, "text", b"junctura-array 1\nis how such files begin\n")
    said = two.error(1, "cp", "unix:test", "unix:other", "*")
    assert "not copied" in said
    assert "name=bad" in said
    assert in_other(two, "ls", "--count") == "2\n"


def damage(payload: bytes, server: object) -> None:
    """Changes one byte of a payload in a server's memory, as a stray writer would."""
    for descriptor in Path(f"/proc/{server}/fd").iterdir():
        with contextlib.suppress(OSError):
            if not str(descriptor.readlink()).startswith("/memfd:junctura "):
                continue
            with descriptor.open("r+b") as segment:
                at = segment.read().find(payload)
                if at >= 0:
                    segment.seek(at)
                    segment.write(bytes([payload[0] ^ 255]))
                    return
    raise AssertionError("the payload lies nowhere")


def test_a_damaged_payload_is_named_and_the_rest_is_copied_and_got(bare: Shell, tmp_path: Path) -> None:
    bare.serve("--schema", "free", "--checked")
    assert "serving" in bare.start("pool", "serve", "--pool", "unix:other", "--schema", "free").said()
    payload = random.Random(1).randbytes(200_000)
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as pool:
        for name in ("a", "damaged", "z"):
            pool.offer(payload if name == "damaged" else b"sound", name=name)
        damage(payload, bare.stat()["server"]["pid"])
        said = bare.error(1, "cp", "unix:test", "unix:other", "*")
        assert "not copied: Corrupt" in said
        assert "name=damaged" in said
        assert in_other(bare, "ls", "--count") == "2\n"
        assert "not written: Corrupt" in bare.error(
            1, "get", "--all", "*", "-o", f"{tmp_path}/", "--template", "{name}"
        )
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a", "z"]
