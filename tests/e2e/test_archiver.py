"""A pool with a store behind it: an archiver keeps what the pool has, and producers are told when it lasts."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from e2e_shell import Process, Shell

import junctura
import junctura.aio


def begin(shell: Shell, store: Path, *more: str) -> Process:
    return shell.start("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--json", *more)


@pytest.fixture
def store(shell: Shell, tmp_path: Path) -> Path:
    shell.run("store", "create", "--store", tmp_path / "store", "--schema", "free", "--quiet")
    return tmp_path / "store"


@pytest.fixture
def pool(shell: Shell) -> Iterator[junctura.Pool]:
    with junctura.Pool(f"unix:{shell.folder}/junctura/test.sock", name="model") as pool:
        yield pool


def test_a_durable_offer_returns_when_its_object_is_in_the_store(
    shell: Shell, store: Path, pool: junctura.Pool
) -> None:
    events = pool.subscribe(kinds=["archived"])
    with pytest.raises(junctura.errors.Io, match="no requirement of an archiver matches it"):
        pool.offer(b"visible", name="too-early", schema="free", durability="durable")
    assert bytes(pool.demand("name=too-early")) == b"visible"
    archiver = begin(shell, store)
    pool.demand("name=too-early")  # It is there, whoever archives.
    for event in events:
        assert event.object is not None
        assert event.object.attributes["name"] == "too-early"
        assert event.location == f"{store} commit 1"
        break
    large = bytes(range(256)) * 4096
    version = pool.offer(large, name="large", schema="free", durability="durable")
    [found] = junctura.Store(store).list("name=large")
    assert (found.read(), found.version) == (large, version)
    pool.offer(b"memory", name="small", schema="free", durability="memory")
    archiver.signal(signal.SIGINT)
    archiver.end()
    with pytest.raises(junctura.errors.InvalidArgument, match="memory"):
        pool.offer(b"", name="x", schema="free", durability="paper")  # type: ignore[call-overload]


def test_what_is_there_is_archived_and_no_requirement_is_left(shell: Shell, store: Path, pool: junctura.Pool) -> None:
    for name in "abc":
        pool.offer(name.encode(), name=name, schema="free")
    options = ["--until-live", "--quiet", "--checkpoint-every", "1"]
    shell.run("store", "archiver", "--pool", "unix:test", "*", "--store", store, *options)
    assert list((store / "checkpoints").glob("*.json"))
    listing = junctura.Store(store).list("")
    assert {found.attributes["name"]: found.read() for found in listing} == {"a": b"a", "b": b"b", "c": b"c"}
    assert shell.stat()["interests"]["named"] == 0


def test_of_groups_that_are_chosen_each_nth_object_is_kept_for_good(
    shell: Shell, store: Path, pool: junctura.Pool
) -> None:
    """R2.8 (what is archived outlives the pool), R2.9 (which groups: a selector), R2.10 (each Nth: `--every`)."""
    for at in range(7):
        for space in "abx":
            pool.offer(b"%d" % at, space=space, name=f"{at}", schema="free", retention=junctura.Released(1))
    rules = ("space=a/b", "--every", "3", "--until-live")
    [summary] = shell.documents("store", "archiver", "--pool", "unix:test", *rules, "--store", store, "--json")[-1:]
    assert (summary["objects"], summary["left_out"], summary["missed"]) == (6, 8, 0)
    # All that was chosen has left the pool; who offers durably is told what is left out, and why.
    assert {one["space"] for one in pool.list()} == {"x"}
    with pool.subscribe(kinds=["archived", "unarchived"]) as events:
        pool.require("", name="archive")
        archiver = begin(shell, store, "--every", "2")
        for name, is_kept in [("one", True), ("two", False), ("three", True)]:
            if is_kept:
                pool.offer(b"", space="c", name=name, schema="free", durability="durable")
            else:
                with pytest.raises(junctura.errors.Io, match=r"visible, and not archived: it is left out.* one of 2"):
                    pool.offer(b"", space="c", name=name, schema="free", durability="durable")
                assert bytes(pool.demand(f"space=c,name={name}")) == b""
        told: dict[str, str] = {}
        for event in events:
            assert event.object is not None
            told[event.object.key] = event.kind
            if "three" in event.object.key:
                break
    assert [kind for key, kind in told.items() if "space=c" in key] == ["archived", "unarchived", "archived"]
    archiver.signal(signal.SIGINT)
    archiver.end()
    pool.retract("archive")
    kept = {(one.attributes["space"], one.attributes["name"]) for one in junctura.Store(store).list("space=a/b/c")}
    assert kept == {(space, name) for space in "ab" for name in "036"} | {("c", "one"), ("c", "three")}


def test_what_a_killed_archiver_had_is_archived_once_by_the_next(
    shell: Shell, store: Path, pool: junctura.Pool
) -> None:
    """Each round kills an archiver while it works; what it had flushed and not released comes again."""
    rounds, objects = 6, 40
    more = ("--window", "8", "--checkpoint-every", "5")
    for number in range(rounds):
        archiver = begin(shell, store, *more)
        for at in range(objects):
            pool.offer(b"%d" % at * 9000, name=f"{number}-{at}", schema="free", retention=junctura.Released(1))
        archiver.line()  # It has archived something, and goes on.
        archiver.kill()
    shell.run("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--until-live", "--quiet")
    everything = junctura.Store(store).list("", all_versions=True)
    found = sorted(one.attributes["name"] for one in everything)
    assert found == sorted(f"{number}-{at}" for number in range(rounds) for at in range(objects))
    assert junctura.Store(store).check().damaged == []


def test_programs_that_archive_and_the_command_go_on_where_the_other_was_killed(
    shell: Shell, store: Path, pool: junctura.Pool, program: Callable[..., Process]
) -> None:
    """R2.8-R2.10 from Python: `junctura.Archiver` in a process that is killed, in another, then the command."""
    objects = 40
    with pool.subscribe(kinds=["archived"]) as events:
        for number in range(4):
            archiver = program("e2e_archiver.py")
            assert archiver.ask(f"begin {store} space=a/b 1") == "begun"
            for at in range(objects):
                space = "abx"[at % 3]
                pool.offer(
                    b"%d" % at * 9000, space=space, name=f"{number}-{at}", schema="free", retention=junctura.Released(1)
                )
            next(events)  # It has archived something, and goes on.
            archiver.kill()
        last = program("e2e_archiver.py")
        assert last.ask(f"begin {store} space=a/b 1") == "begun"
        pool.offer(b"", space="a", name="durable", schema="free", durability="durable")
        assert last.ask("stop").split()[1:] == ["0", "0", "0"]
    pool.offer(b"", space="b", name="afterwards", schema="free")
    rules = ("store", "archiver", "--pool", "unix:test", "space=a/b", "--store", store, "--until-live", "--json")
    assert shell.documents(*rules)[-1]["objects"] == 1
    found = sorted((one["space"], one["name"]) for one in junctura.Store(store).list("", all_versions=True))
    offered = [("abx"[at % 3], f"{number}-{at}") for number in range(4) for at in range(objects)]
    assert found == sorted([("a", "durable"), ("b", "afterwards"), *(one for one in offered if one[0] != "x")])
    assert junctura.Store(store).check().damaged == []
    assert {one["space"] for one in pool.list()} == {"a", "b", "x"}


def test_a_server_that_is_killed_ends_an_archiver_of_python(
    bare: Shell, tmp_path: Path, program: Callable[..., Process]
) -> None:
    server, store = bare.serve(), tmp_path / "store"
    bare.run("store", "create", "--store", store, "--schema", "free", "--quiet")
    archiver = program("e2e_archiver.py")
    assert archiver.ask(f"begin {store} * 2") == "begun"
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as pool:
        pool.offer(b"kept", name="a", schema="free", durability="durable")
        with pytest.raises(junctura.Io, match="left out"):
            pool.offer(b"", name="b", schema="free", durability="durable")
    server.kill()
    assert archiver.ask("stop").startswith("Disconnected")
    assert archiver.ask("counts") == "1 1 0 0"
    assert [one["name"] for one in junctura.Store(store).list()] == ["a"]


def test_where_no_store_is_nothing_is_required(shell: Shell, tmp_path: Path) -> None:
    told = shell.error(
        3, "store", "archiver", "--pool", "unix:test", "*", "--store", tmp_path / "nowhere", "--until-live"
    )
    assert "junctura store create" in told
    assert shell.stat()["interests"]["named"] == 0


def test_many_durable_offers_are_on_their_way_at_once(shell: Shell, store: Path, pool: junctura.Pool) -> None:
    pool.require("", name="archive")
    archiver = begin(shell, store)
    kept = junctura.Store(store)
    with pool.pipeline(window=16) as pipeline:
        for at in range(100):
            pipeline.offer(b"%d" % at * 3000, name=f"p{at}", schema="free", durability="durable")
    assert len(kept.list('name~"^p"')) == 100
    pool.offer_many([(b"", {"name": f"m{at}"}) for at in range(50)], schema="free", durability="durable")
    assert len(kept.list('name~"^m"')) == 50

    async def tasks() -> None:
        async with junctura.aio.Pool(pool) as tasked:
            await tasked.offer(b"task", name="t", schema="free", durability="durable")
            assert len(kept.list("name=t")) == 1
            async with tasked.pipeline(window=4) as pipeline:
                for at in range(20):
                    await pipeline.offer(b"", name=f"a{at}", schema="free", durability="durable")
            assert len(kept.list('name~"^a"')) == 20
            async with tasked.bundle() as bundle:
                await bundle.offer(b"", name="b1", schema="free", durability="durable")
                await bundle.offer(b"", name="b2", schema="free", durability="durable")
            assert len(kept.list("name=b1/b2")) == 2

    asyncio.run(tasks())
    archiver.signal(signal.SIGINT)
    archiver.end()


def test_a_bundle_is_archived_with_one_commit(shell: Shell, store: Path, pool: junctura.Pool) -> None:
    """Each commit is of whole bundles, however many come at once and whatever comes between them."""
    pool.require("space!=none", name="archive")
    archiver = shell.start(
        "store", "archiver", "--pool", "unix:test", "space!=none", "--store", store, "--json", "--window", "300"
    )
    lines: list[str] = []
    hearing = threading.Thread(target=lambda: lines.extend(iter(archiver.line, "")))
    hearing.start()
    bundles, members = 30, 40

    def between() -> None:
        for at in range(400):
            pool.offer(b"", space="between", name=f"{at}", schema="free")

    thread = threading.Thread(target=between)
    thread.start()
    for number in range(bundles):
        with pool.bundle() as bundle:
            for at in range(members):
                space = "none" if at == members - 1 else f"s{number}"
                bundle.offer(
                    b"%d" % at * 100, space=space, name=f"{number}-{at:02}", schema="free", durability="memory"
                )
            # One is enough: who seals a bundle with a durable member waits for it.
            bundle.offer(b"", space=f"s{number}", name=f"{number}-durable", schema="free", durability="durable")
        assert len(junctura.Store(store).list(f"space=s{number}")) == members
    thread.join()
    archiver.signal(signal.SIGINT)
    hearing.join()
    archiver.end()
    commits: dict[str, set[int]] = {}
    for line in map(json.loads, lines[:-1]):
        commits.setdefault(line["key"].split("space=")[1].split("}")[0], set()).add(line["commit"])
    assert {space: len(of) for space, of in commits.items() if space != "between"} == {
        f"s{number}": 1 for number in range(bundles)
    }


def test_a_bundle_that_no_window_holds_is_archived_in_parts(shell: Shell, store: Path, pool: junctura.Pool) -> None:
    pool.require("", name="archive")
    archiver = begin(shell, store, "--window", "8")
    with pool.bundle() as bundle:
        for at in range(50):
            bundle.offer(b"", name=f"{at}", schema="free", durability="durable")
    assert len(junctura.Store(store).list("")) == 50
    archiver.signal(signal.SIGINT)
    archiver.end()
    # It is not archived: the seal says so, and all is visible.
    pool.retract("archive")
    with pytest.raises(junctura.errors.Io, match=r"bundle is visible, but a member is not archived: no requirement"):  # noqa: SIM117
        with pool.bundle() as bundle:
            bundle.offer(b"", name="late", schema="free", durability="durable")
    assert bytes(pool.demand(name="late", schema="free")) == b""


def test_an_array_in_pieces_is_archived_whole(shell: Shell, store: Path, pool: junctura.Pool) -> None:
    everything = np.arange(24, dtype=np.float32).reshape(4, 6)
    halves = junctura.Layout("shape=4x6 grid=1x2 order=F")
    pool.require("", name="archive")
    for rank in range(2):
        mine = np.asfortranarray(everything[:, 3 * rank : 3 * rank + 3])
        pool.offer_piece(mine, halves, rank, name="t", schema="free", retention="released_by:archive")
    shell.run("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--until-live", "--quiet")
    pool.offer(everything, name="plain", schema="free", retention="released_by:archive")
    shell.run("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--until-live", "--quiet")
    kept = list(junctura.Store(store).list(""))
    assert {one.attributes["name"] for one in kept} == {"plain", "t"}
    for one in kept:
        assert one.read() == everything.tobytes()
        assert (np.dtype(one.attributes["dtype"]), one.attributes["shape"]) == (everything.dtype, [4, 6])
    assert pool.list() == []
    with junctura.Pool(pool.url, store=store) as reader:
        assert np.array_equal(reader.demand(name="t", schema="free").array(), everything)


def test_what_a_store_cannot_take_stays_for_one_that_can(bare: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(junctura.Schema.builtin("free").to_yaml().replace("name: free", "name: other"))
    bare.serve("--schema", "free", "--schema", str(other))
    bare.run("store", "create", "--store", tmp_path / "without", "--quiet")
    bare.run("store", "create", "--store", tmp_path / "with", "--schema", other, "--quiet")
    url = f"unix:{bare.folder}/junctura/test.sock"
    with junctura.Pool(url) as pool, pool.subscribe(kinds=["unarchived"]) as events:
        pool.require("", name="archive")
        pool.offer(b"kept", name="a", schema="other", retention=junctura.Released(1))
        told = bare.error(
            3, "store", "archiver", "--pool", "unix:test", "*", "--store", tmp_path / "without", "--until-live"
        )
        assert "the store has no such schema" in told
        assert "the store has no such schema" in next(events).reason
        bare.run(
            "store", "archiver", "--pool", "unix:test", "*", "--store", tmp_path / "with", "--until-live", "--quiet"
        )
    [found] = junctura.Store(tmp_path / "with").list("")
    assert found.read() == b"kept"


def test_a_store_that_lacks_the_schema_of_the_pool_is_named_at_the_start(bare: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    text = junctura.Schema.builtin("free").to_yaml().replace("name: free", "name: other")
    other.write_text(text)
    bare.serve("--schema", str(other))
    store = tmp_path / "store"
    bare.run("store", "create", "--store", store, "--quiet")
    # There is no object yet, and the archiver would run until it is stopped.
    archiver = ("store", "archiver", "--pool", "unix:test", "*", "--store", store)
    said = bare.error(3, *archiver)
    assert "schema other: the store has no such schema" in said
    show, add = "junctura schema show other --pool unix:test", f"junctura schema set other.yaml --store {store}"
    assert f"`{show} > other.yaml`, then `{add}`, adds it" in said
    (tmp_path / "other.yaml").write_text(bare.text(*show.split()[1:]))
    bare.run(*add.replace("other.yaml", str(tmp_path / "other.yaml")).split()[1:])
    assert bare.text(*archiver, "--until-live") == "0 objects, 0 B\n"
    # A requirement of an archiver that did not begin retains nothing.
    assert bare.stat()["named_requirements"] == []


def test_an_array_whose_schema_has_no_place_for_its_type_is_named(bare: Shell, tmp_path: Path) -> None:
    plain = tmp_path / "plain.yaml"
    key = "key: {dataset: [], collocation: [], element: [step]}"
    plain.write_text(f"name: plain\n{key}\nattributes:\n  step: {{type: integer}}\n  dtype: {{type: string}}\n")
    bare.serve("--schema", str(plain))
    store = tmp_path / "store"
    bare.run("store", "create", "--store", store, "--schema", plain, "--quiet")
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as pool:
        for step in range(2):
            for rank in range(2):
                pool.offer_piece(np.zeros((2, 3)), "shape=4x3 grid=2x1", rank, step=step)
        archiver = ("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--until-live")
        said = bare.run(*archiver).stderr.decode()
    assert said.count("schema plain declares no attribute shape: arrays are kept as bytes") == 1
    assert "add `shape: {type: list of integer}`" in said


def test_one_object_that_cannot_be_archived_keeps_no_other_from_it(bare: Shell, tmp_path: Path) -> None:
    store = tmp_path / "store"
    bare.run("store", "create", "--store", store, "--schema", "free", "--quiet")
    bare.serve("--schema", "free")
    archive = ("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--until-live", "--json")
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as pool:
        pool.offer(b"junctura-array 1\ndtype=<f8\nshape=4 grid=2\n", name="bad")
        # The next archiver, too, passes it over and tells of it.
        for name in ("a", "b"):
            pool.offer(b"good", name=name)
            done = bare.run(*archive, status=1)
            told, summary = done.stderr.decode(), json.loads(done.stdout.splitlines()[-1])
            assert "not archived: " in told
            assert "name=bad" in told
            assert (summary["objects"], summary["failed"]) == (1, 1)
    assert {found["name"] for found in junctura.Store(store).list("")} == {"a", "b"}


MIB = 1 << 20


def field(at: int) -> bytes:
    return random.Random(at).randbytes(MIB)


def test_a_set_several_times_the_memory_streams_through_a_pool_whose_store_has_it(bare: Shell, tmp_path: Path) -> None:
    """Retained for an hour, without a file tier: what is archived leaves the pool, and is found in the store."""
    store, half, count = tmp_path / "store", 40, 80
    bare.run("store", "create", "--store", store, "--schema", "free", "--quiet")
    bare.serve("--schema", "free", "--budget", "16MiB")
    bare.start("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--quiet")
    url = f"unix:{bare.folder}/junctura/test.sock"

    def offer(numbers: range) -> None:
        for at in numbers:
            model.offer(field(at), name=f"f{at:03}", retention="1h")

    with junctura.Pool(url, name="model") as model, junctura.Pool(url, store=store) as reader:
        offer(range(half))
        follow = reader.follow("")
        rest = threading.Thread(target=offer, args=(range(half, count),))
        for at, obj in enumerate(follow):
            assert (obj["name"], bytes(obj) == field(at)) == (f"f{at:03}", True)
            if at == 0:
                rest.start()
            if at == count - 1:
                break
        rest.join()
        assert len(reader.list()) == count
        for at in range(count):
            assert bytes(reader.demand(name=f"f{at:03}")) == field(at)
        with pytest.raises(junctura.Gone, match=f"archived, and memory was short; a store has it: {store} commit"):
            model.demand(name="f000")
        stat = bare.stat()
    totals = stat["totals"]
    assert totals["dropped_archived"] >= count - 16
    assert totals["dropped_archived"] + stat["objects"]["visible"] == count
    assert (totals["expired"], totals["broken"], stat["spill"]) == (0, 0, None)
    # What was archived after the first question may have left, too, when the second one is answered.
    shown = re.search(r"(\d+) archived and evicted", bare.text("pool", "stat"))
    assert shown and totals["dropped_archived"] <= int(shown[1]) <= count
