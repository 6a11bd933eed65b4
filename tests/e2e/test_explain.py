"""`junctura explain`: situations, each with the text that a person reads and the codes that a program reads."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from e2e_shell import Shell

import junctura

KIB = 1024
Open = Callable[[str], junctura.Pool]


@pytest.fixture
def served(bare: Shell) -> Shell:
    """A shell with a small pool of free attributes."""
    bare.serve("--schema", "free", "--budget", "1MiB")
    return bare


@pytest.fixture
def join(served: Shell) -> Iterator[Open]:
    """Opens the pool under a name."""
    url = f"unix:{served.folder}/junctura/test.sock"
    opened: list[junctura.Pool] = []

    def open_as(name: str) -> junctura.Pool:
        opened.append(junctura.Pool(url, name=name, offer_timeout=None))
        return opened[-1]

    yield open_as
    for pool in opened:
        pool.close()


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[Any]]]:
    """Makes a call that blocks, in a thread; its pool is closed before the end of the test."""
    threads = ThreadPoolExecutor(8)
    started: list[Future[Any]] = []

    def start(call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Future[Any]:
        started.append(threads.submit(call, *arguments, **keywords))
        return started[-1]

    yield start
    threads.shutdown(wait=False, cancel_futures=True)


def plain(text: str) -> str:
    """The text without processes, versions and times."""
    text = re.sub(r"pid \d+", "pid N", text)
    text = re.sub(r"version \d+\.(\d+)", r"version I.\1", text)
    text = re.sub(r"segment \d+, slot \d+", "segment S, slot T", text)
    return re.sub(r"\b\d+ (ms|s|min)\b", "TIME", text)


def explain(shell: Shell, *arguments: str) -> str:
    return plain(shell.text("explain", *arguments))


def waiting(pool: junctura.Pool, count: int) -> list[dict[str, Any]]:
    """Requests that wait, once there are so many."""
    while len(waits := pool.waits()) < count:
        pass
    return waits


def codes(shell: Shell, *arguments: str) -> list[tuple[str, str, str]]:
    """Client, kind and cause of each wait in the JSON, by client."""
    (document,) = shell.documents("explain", "--json", *arguments)
    return sorted((wait["client"]["name"], wait["kind"], wait["because"]) for wait in document["waits"])


def because(shell: Shell, key: str) -> tuple[str, list[str]]:
    """State and causes of an object in the JSON."""
    (document,) = shell.documents("explain", "--json", "--key", key)
    (found,) = document["objects"]
    return found["state"], found["because"]


# A schema in which a new version supersedes the one before.
LETTERS = """
name: letters
same_key: supersede
key: {dataset: [set], collocation: [], element: [name]}
attributes:
  set: {type: string, default: all}
  name: {type: string}
"""
A = "{space=default}{}{name=a}"


# Why an object is in memory.
def test_an_object_stays_until_it_is_withdrawn(served: Shell, join: Open) -> None:
    join("model").offer(b"payload", name="a")
    assert explain(served, "--key", A) == (
        "{space=default}{}{name=a}   version I.1\n"
        "  visible    7 B, in the memory of the server, offered by model (pid N)\n"
        "  retention  until it is withdrawn\n"
    )
    assert because(served, A) == ("visible", ["retention"])


def test_an_object_stays_for_a_release_that_is_missing(served: Shell, join: Open) -> None:
    model, reader = join("model"), join("reader")
    model.offer(b"payload", name="a", retention="released:2")
    with reader.demand(A):
        pass
    reader.sync()
    assert explain(served, "--key", A).splitlines()[2] == "  retention  until 1 more consumer has released it"


def test_an_object_stays_for_a_time(served: Shell, join: Open) -> None:
    join("model").offer(b"payload", name="a", retention="1h")
    assert explain(served, "--key", A).splitlines()[2] == "  retention  it is removed in TIME"


def test_an_object_stays_for_a_name_that_is_to_come(served: Shell, join: Open) -> None:
    join("model").offer(b"payload", name="a", retention="released_by:plots")
    line = explain(served, "--key", A).splitlines()[2]
    assert line == "  retention  until requirements with these names exist and have released it: plots"
    memory = explain(served, "--memory").splitlines()
    assert memory[-1] == 'awaited       "plots" stands for no requirement yet: 1 object, 7 B'


def test_an_object_stays_for_a_requirement_without_a_reader(served: Shell, join: Open) -> None:
    model = join("model")
    model.require("name=a", name="archive")
    model.offer(b"payload", name="a", retention="released:1")
    with join("reader").demand(A):
        pass
    assert because(served, A)[1][:1] in (["owed"], ["retention"])
    model.sync()
    text = explain(served, "--key", A)
    assert (
        "  owed       for TIME to requirement archive: owed 1 object, 7 B; no client reads it; no release for TIME\n"
        in text
    )


def test_an_object_stays_in_memory_while_a_client_holds_it(served: Shell, join: Open) -> None:
    model, reader = join("model"), join("reader")
    requirement = model.require("name=a", name="archive")
    model.offer(b"payload", name="a")
    held = reader.demand(A)
    through = requirement.demand(A)
    assert explain(served, "--key", A) == (
        "{space=default}{}{name=a}   version I.1\n"
        "  visible    7 B, in the memory of the server, offered by model (pid N)\n"
        "  retention  until it is withdrawn\n"
        "  owed       for TIME to requirement archive: owed 1 object, 7 B; no client reads it; "
        "1 delivered and not released; no release for TIME\n"
        "  held       model (pid N), through requirement archive, for TIME\n"
        "  held       reader (pid N), for TIME\n"
    )
    assert because(served, A) == ("visible", ["retention", "owed", "held"])
    held.release()
    through.release()


def test_an_earlier_version_stays_for_a_requirement(bare: Shell, tmp_path: Path) -> None:
    (tmp_path / "letters.yaml").write_text(LETTERS)
    bare.serve("--schema", str(tmp_path / "letters.yaml"))
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as model:
        model.require("name=a", name="archive")
        first = model.offer(b"1", name="a")
        model.offer(b"22", name="a")
        text = explain(bare, "--key", "{set=all}{}{name=a}")
        assert "  versions   requirements also keep 1 earlier version\n" in text
        earlier = model.explain(name="a", version=first)
        assert (earlier["state"], earlier["because"], earlier["bytes"]) == ("superseded", ["owed"], 1)


def test_an_object_is_staged(served: Shell, join: Open) -> None:
    model = join("model")
    bundle = model.bundle("step/6", members=2)
    bundle.offer(b"payload", name="a")
    assert explain(served, "--key", A) == (
        "{space=default}{}{name=a}\n"
        "  staged     7 B, in the memory of the server, offered by model (pid N)\n"
        "  staged     bundle step/6: 1 of 2 members; open in model (pid N)\n"
    )
    assert because(served, A) == ("staged", ["staged"])
    bundle.abort()


def test_of_many_objects_the_first_are_explained(served: Shell, join: Open) -> None:
    model = join("model")
    for number in range(13):
        model.offer(b"", name=f"n{number}")
    text = explain(served, "exists(name)")
    assert text.count("until it is withdrawn") == 10
    assert text.splitlines()[-1] == "and 3 more objects"
    (document,) = served.documents("explain", "exists(name)", "--json")
    assert (len(document["objects"]), document["more"]) == (10, 3)


# Why an object is gone.
def test_an_object_was_withdrawn(served: Shell, join: Open) -> None:
    model = join("model")
    model.offer(b"payload", name="a")
    model.withdraw(A)
    expected = "{space=default}{}{name=a}   version I.1\n  gone       withdrawn by model, TIME ago\n"
    assert explain(served, "--key", A) == expected
    assert because(served, A) == ("gone", [])


def test_a_version_is_explained_without_its_key(served: Shell, join: Open) -> None:
    model = join("model")
    versions = [model.offer(b"payload", name=name, retention="released:1") for name in "abc"]
    model.withdraw(name="a")
    for name, version in zip("bc", versions[1:], strict=True):
        (document,) = served.documents("explain", "--json", "--version", str(version))
        assert [(one["key"], one["state"]) for one in document["objects"]] == [
            (f"{{space=default}}{{}}{{name={name}}}", "visible")
        ]
    # The object is not received by the look.
    assert "until 1 more consumer has released it" in explain(served, "--version", str(versions[1]))
    for text in (str(versions[0]), f"{str(versions[0]).partition('.')[0]}.99"):
        assert "no visible object has it" in served.error(3, "explain", "--version", text)
    assert "another incarnation" in served.error(3, "explain", "--version", "1.1")
    assert "--version" in served.error(2, "explain", "--version", "x")


def test_the_retention_of_an_object_ended(served: Shell, join: Open) -> None:
    model = join("model")
    model.offer(b"payload", name="a", retention="released:1")
    with model.demand(A):
        pass
    model.sync()
    assert explain(served, "--key", A).splitlines()[1] == "  gone       its retention ended, TIME ago"


def test_an_object_was_not_wanted(served: Shell, join: Open) -> None:
    assert join("model").offer(b"payload", name="a", if_wanted=True) is None
    assert explain(served, "--key", A).splitlines()[1] == "  declined   not offered, since nothing wanted it, TIME ago"


def test_nothing_is_known_of_a_key(served: Shell) -> None:
    assert "nothing is known of this key" in served.error(3, "explain", "--key", A)


def test_an_array_that_lacks_pieces(served: Shell, join: Open) -> None:
    model, other = join("model"), join("other")
    for pool, rank in ((model, 0), (other, 3)):
        pool.offer_piece(np.zeros((2, 3)), "shape=4x6 grid=2x2", rank, name="t")
    assert explain(served, "name=t") == (
        "nothing matches: the pool has no objects\n"
        "array {space=default}{}{name=t}: 2 of 4 pieces; open in model (pid N), other (pid N)\n"
        "  rank 1 is missing: [0:2, 3:6]\n"
        "  rank 2 is missing: [2:4, 0:3]\n"
    )
    assert "pieces" not in explain(served, "name=u")


# Why a request waits.
def test_a_demand_waits_and_nothing_matches(served: Shell, join: Open) -> None:
    reader = join("reader")
    demand = reader.begin_demand("name=a,step=6", timeout=1000)
    reader.sync()
    assert explain(served) == "reader (pid N): demand name=a,step=6, waits TIME, at most TIME more\n  nothing matches\n"
    assert codes(served) == [("reader", "demand", "nothing_matches")]
    demand.close()


def test_a_demand_waits_for_a_bundle(served: Shell, join: Open) -> None:
    model, reader = join("model"), join("reader")
    bundle = model.bundle("step/6", members=2)
    bundle.offer(b"", name="a")
    demand = reader.begin_demand(name="a")
    reader.sync()
    assert explain(served, "--client", "reader") == (
        "reader (pid N): demand space=default,name=a, waits TIME\n"
        "  a matching object is in a bundle that is not visible\n"
        "  - bundle step/6: 1 of 2 members; open in model (pid N)\n"
        "    model (pid N): bundle step/6, waits\n"
        "      the bundle lacks members\n"
        "      - bundle step/6: 1 of 2 members; open in model (pid N)\n"
    )
    assert codes(served) == [("model", "bundle", "members"), ("reader", "demand", "staged")]
    demand.close()
    bundle.abort()


def test_a_value_that_nothing_has(served: Shell, join: Open) -> None:
    model = join("model")
    for level in ("1000", "850", "500"):
        model.offer(b"", name=f"n{level}", kind="t", level=level)
    assert explain(served, "kind=t,level=85") == (
        "nothing matches: 0 of 3 objects\n  without level=85: 3 objects\n    level is 500/850/1000; did you mean 850?\n"
    )
    (document,) = served.documents("explain", "kind=t,level=85", "--json")
    (miss,) = document["without"]
    assert (miss["condition"], miss["matches"], miss["nearest"]) == ("level=85", 3, "850")


def test_two_conditions_that_match_nothing(served: Shell, join: Open) -> None:
    join("model").offer(b"", name="t", level="500")
    assert explain(served, "name=x,level=85") == (
        "nothing matches: 0 of 1 object\n  nothing matches without any single condition either\n"
    )


def test_an_empty_pool_matches_nothing(served: Shell) -> None:
    assert explain(served, "name=x") == "nothing matches: the pool has no objects\n"


def fill(pool: junctura.Pool) -> None:
    """Offers until memory is full, and then waits."""
    for number in range(1000):
        pool.offer(bytes(3000), name=f"n{number}", retention="released:1")


def test_an_offer_and_its_reader_wait_for_each_other(served: Shell, join: Open, beside: Callable[..., Any]) -> None:
    model, reader = join("model"), join("reader")
    follow = reader.require("", name="drawers").follow(window=1)
    beside(fill, model)
    held = follow.next()
    (wait,) = waiting(reader, 1)
    assert (wait["kind"], wait["because"]) == ("offer", "memory")
    demand = reader.begin_demand(wait["what"])
    reader.sync()
    text = re.sub(r"n\d+", "nN", re.sub(r"\d+ objects|\d+\.\d KiB", "MANY", explain(served, "--client", "model")))
    assert text == (
        "model (pid N): offer {space=default}{}{name=nN}, waits TIME\n"
        "  memory is full\n"
        "  - requirement drawers: owed MANY, MANY; reader (pid N) reads it; 1 delivered and not released; "
        "no release for TIME; it is broken in TIME\n"
        "    reader (pid N): demand space=default,name=nN, waits TIME\n"
        "      a matching offer waits itself\n"
        "      - model (pid N)\n"
        "cycle: model (pid N) and reader (pid N) wait for each other\n"
    )
    (document,) = served.documents("explain", "--json")
    assert [[client["name"] for client in cycle] for cycle in document["cycles"]] == [["model", "reader"]]
    demand.close()
    held.release()


def test_an_allocation_waits_for_unused_memory(served: Shell, join: Open, beside: Callable[..., Any]) -> None:
    model, other = join("model"), join("other")
    allocation = model.allocate(900 * KIB)
    beside(other.allocate, 900 * KIB)
    waiting(model, 1)
    assert explain(served) == "other (pid N): lease 921600 bytes, waits TIME\n  memory is full\n  - model (pid N)\n"
    assert codes(served) == [("other", "lease", "memory")]
    assert "client        model (pid N): leases" in explain(served, "--memory")
    del allocation


def test_a_sync_waits_behind_offers(served: Shell, join: Open, beside: Callable[..., Any]) -> None:
    model = join("model")
    beside(fill, model)
    waiting(join("observer"), 1)
    beside(model.sync)
    waiting(join("another"), 2)
    assert codes(served) == [("model", "offer", "memory"), ("model", "sync", "offers")]


def test_a_withdrawal_waits_for_what_is_owed(served: Shell, join: Open, beside: Callable[..., Any]) -> None:
    model = join("model")
    model.require("name=a", name="archive")
    model.offer(b"payload", name="a")
    beside(model.withdraw, A)
    waiting(join("observer"), 1)
    assert explain(served) == (
        "model (pid N): withdraw {space=default}{}{name=a}, waits TIME\n"
        "  requirements are owed objects\n"
        "  - requirement archive: owed 1 object, 7 B; no client reads it; no release for TIME\n"
    )
    assert codes(served) == [("model", "withdraw", "owed")]


def test_a_withdrawal_waits_for_a_group(served: Shell, join: Open, beside: Callable[..., Any]) -> None:
    served.run("pool", "require", "name=a/b", "--name", "workers", "--group")
    model, worker = join("model"), join("worker")
    for name in "ab":
        model.offer(b"payload", name=name)
    beside(model.withdraw, A)
    waiting(join("observer"), 1)
    waits = (
        "model (pid N): withdraw {space=default}{}{name=a}, waits TIME\n"
        "  members of groups have yet to receive and release objects\n"
        "  - group workers: owed 2 objects, 14 B; "
    )
    assert explain(served) == waits + "it has no members; no release for TIME\n"
    with worker.follow(group="workers", window=1) as tasks:
        held = next(tasks)
        assert explain(served) == waits + (
            "its member is worker (pid N); 1 delivered and not released; no release for TIME\n"
        )
        held.release()


def test_a_stop_waits_for_what_is_owed(served: Shell, join: Open, beside: Callable[..., Any]) -> None:
    model = join("model")
    model.require("name=a", name="archive")
    model.offer(b"payload", name="a")
    beside(model.stop, 1000)
    waiting(model, 1)
    assert explain(served) == (
        "model (pid N): drain, waits TIME, at most TIME more\n"
        "  requirements are owed objects\n"
        "  - requirement archive: owed 1 object, 7 B; no client reads it; no release for TIME\n"
    )
    model.retract("archive")


def test_a_durable_offer_waits_for_an_archiver(served: Shell, join: Open, beside: Callable[..., Any]) -> None:
    model = join("model")
    model.require("name=a", name="archive")
    beside(model.offer, b"payload", name="a", durability="durable")
    waiting(join("observer"), 1)
    assert explain(served) == (
        "model (pid N): durable {space=default}{}{name=a}, waits\n"
        "  it is not archived yet\n"
        "  - requirement archive: owed 1 object, 7 B; no client reads it; no release for TIME\n"
    )
    model.retract("archive")


def test_bundles_wait_for_each_other(served: Shell, join: Open) -> None:
    model = join("model")
    outer = model.bundle("run")
    inner = model.bundle("run/step", members=1)
    assert codes(served) == [("model", "bundle", "members"), ("model", "bundle", "nested")]
    inner.offer(b"", name="a")
    assert explain(served) == (
        "model (pid N): bundle run, waits\n"
        "  the bundle is not sealed\n"
        "  - bundle run: 1 member, not sealed; open in model (pid N)\n"
        "model (pid N): bundle run/step, waits\n"
        "  the bundle is complete, and the one around it is not\n"
        "  - bundle run: 1 member, not sealed; open in model (pid N)\n"
    )
    outer.seal()
    assert "nothing waits" in served.error(3, "explain")


# What keeps memory.
def test_what_keeps_memory(served: Shell, join: Open) -> None:
    model, reader = join("model"), join("reader")
    model.require("name=a", name="archive")
    model.offer(b"12345678", name="a", retention="released:1")
    model.offer(b"1234", name="b")
    held = reader.demand(name="a")
    held.release()
    reader.sync()
    assert explain(served, "--memory") == (
        "memory        12 B of 1.0 MiB: 0 B in segments, 12 B inside messages; payloads fill 0 B of the segments\n"
        "owed          8 B in 1 object; nothing else keeps 8 B\n"
        "not withdrawn 4 B in 1 object; nothing else keeps 4 B\n"
        "owed to       requirement archive: owed 1 object, 8 B; no client reads it; no release for TIME\n"
    )
    (document,) = served.documents("explain", "--memory", "--json")
    assert [(one["because"], one["bytes"]) for one in document["memory"]["sums"]] == [
        ("owed", 8),
        ("until_withdrawn", 4),
    ]


def test_no_memory_is_in_use(served: Shell) -> None:
    assert "no memory is in use" in served.error(3, "explain", "--memory")


# Forms.
def test_the_graph_has_clients_requirements_and_edges(served: Shell, join: Open, beside: Callable[..., Any]) -> None:
    model = join("model")
    model.require("name=a", name="archive")
    model.offer(b"", name="a")
    beside(model.withdraw, A)
    waiting(join("observer"), 1)
    lines = explain(served, "--dot").splitlines()
    assert (lines[0], lines[-1]) == ("digraph waits {", "}")
    assert any('[shape=box, label="requirement archive"];' in line for line in lines)
    assert any('[label="withdraw: requirements are owed objects"];' in line for line in lines)


def test_a_client_that_does_not_wait_has_nothing_to_explain(served: Shell, join: Open) -> None:
    reader = join("reader")
    demand = reader.begin_demand(name="a")
    reader.sync()
    assert "no request of a client called model waits" in served.error(3, "explain", "--client", "model")
    demand.close()


def test_a_pool_without_a_server_is_named(bare: Shell) -> None:
    assert "no server runs there" in bare.error(5, "explain")


def test_a_full_pool_without_requirements_names_what_keeps_it(
    served: Shell, join: Open, beside: Callable[..., Any]
) -> None:
    def fill_for_good(pool: junctura.Pool) -> None:
        for number in range(1000):
            pool.offer(bytes(3000), name=f"n{number}")

    model = join("model")
    beside(fill_for_good, model)
    waiting(join("observer"), 1)
    text = explain(served)
    assert "memory is full\n" in text
    assert re.search(
        r"^most memory is kept by objects that stay until they are withdrawn: \d+ objects, .* of ", text, re.M
    )
    assert "\n  for example {space=default}{}{name=n0}, offered by model (pid N)\n" in text
    assert "`junctura pool withdraw-all SELECTOR` frees it; offers with a retention, such as released:1" in text


def test_who_holds_much_memory_is_named_beside_a_requirement(bare: Shell) -> None:
    bare.serve("--schema", "free", "--budget", "4MiB")
    bare.run("pool", "require", "*", "--name", "archive")
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock", name="holder") as pool:
        for name in "abc":
            pool.offer(bytes(1 << 20), name=name, retention="released:1")
        held = [pool.demand(name=name) for name in "abc"]
        put = bare.start("put", "-", "--set", "name=d", stdin=subprocess.PIPE)
        put.write(bytes(2 << 20))
        assert put.popen.stdin is not None
        put.popen.stdin.close()
        put.popen.stdin = None
        assert put.said().startswith("junctura: put waits: memory is full")
        assert put.said().startswith("  requirement archive: owed 3 objects, 3.0 MiB")
        assert re.match(r"  holder \(pid \d+\) holds 3 objects, 3.0 MiB, until it releases them", put.said())
        for obj in held:
            obj.release()
        bare.run("pool", "retract", "archive")
    assert put.end()[0] == 0
