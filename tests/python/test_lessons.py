"""What hurt the users of earlier systems: a test for each lesson, named after its number.

Those that are about the command line are in `tests/e2e/test_lessons.py`; many have longer tests elsewhere. Nothing here
sleeps or asks again: processes tell each other on pipes how far they are.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import junctura

LARGE = 1 << 18

# Pools are reached over TCP here (see CONTRIBUTING.md).
TCP = os.environ.get("JUNCTURA_TEST_DETOUR") == "tcp"


class Child:
    """A program of its own with a connection of its own, which is told and tells line by line."""

    def __init__(self, pool: junctura.Pool, program: str, name: str = "child") -> None:
        program = "import junctura, os, sys\npool = junctura.Pool(sys.argv[1], name=sys.argv[2])\n" + program
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", program, pool.url, name]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")


REQUIRES_AND_READS = """
for line in sys.stdin:
    name = line.strip()
    with pool.require(f"name={name}") as requirement:
        print("required", flush=True)
        print(len(requirement.demand(name=name)), flush=True)
"""


@pytest.mark.parametrize("size", [100, LARGE])
def test_lesson_01_a_withdraw_never_overtakes_a_requirement(pool: junctura.Pool, size: int) -> None:
    """Consumers slept 2, then 60, then 300 seconds so that a withdraw would not overtake their demand."""
    with Child(pool, REQUIRES_AND_READS) as consumer:
        for turn in range(50):
            consumer.tell(f"{turn}")
            assert consumer.hear() == "required"
            pool.offer(bytes(size), name=f"{turn}")
            assert pool.withdraw(name=f"{turn}") == 1
            assert consumer.hear() == f"{size}"
            assert pool.list() == []


READS_AT_ONCE = """
for line in sys.stdin:
    print(pool.demand(name=line.strip(), timeout=0)["unit"], flush=True)
"""


def test_lesson_02_what_offer_returned_is_readable_by_all(pool: junctura.Pool) -> None:
    """An attribute could be read only some time after it was set."""
    with Child(pool, READS_AT_ONCE) as reader, junctura.Pool(pool.url) as other:
        for turn in range(100):
            version = pool.offer(b"", name=f"{turn}", unit=f"K{turn}")
            reader.tell(f"{turn}")
            assert other.list(f"name={turn}")[0].version == version
            assert reader.hear() == f"K{turn}"


OFFERS_MANY = """
for at in range(1000):
    pool.offer(b"", name=f"{at:04}")
"""


def test_lesson_03_late_subscribers_miss_nothing(pool: junctura.Pool) -> None:
    """Late subscribers missed events, so programs exchanged READY objects."""
    due = [f"{at:04}" for at in range(1000)]
    with pool.follow() as first, Child(pool, OFFERS_MANY):
        late: list[junctura.Follow] = []
        for at, name in enumerate(due):
            if at % 50 == 0:
                late.append(pool.follow())
            assert next(first)["name"] == name
        for follow in late:
            with follow:
                assert [next(follow)["name"] for _ in due] == due


@pytest.mark.parametrize("end", ["goes", "is killed"])
def test_lesson_04_joining_and_leaving_say_who_and_why(pool: junctura.Pool, end: str) -> None:
    """A leave event did not say who left; jobs used marker files and signals to stop the service."""
    with pool.subscribe(kinds=["joined", "left"]) as events:
        with Child(pool, "print('here', flush=True); sys.stdin.read(); pool.close()", "producer 7") as child:
            assert child.hear() == "here"
            if end == "is killed":
                os.kill(child.process.pid, signal.SIGKILL)
        joined, left = next(events), next(events)
    assert (joined.kind, left.kind) == ("joined", "left")
    assert joined.client is not None
    assert joined.client == left.client
    assert (left.client.name, left.client.host, left.client.pid) == (
        "producer 7",
        socket.gethostname(),
        child.process.pid,
    )
    assert left.reason
    assert not joined.reason


def test_lesson_05_one_wait_on_many(pool: junctura.Pool) -> None:
    """Programs polled two subscriptions in a loop."""
    with (
        junctura.Pool(pool.url) as other,
        pool.subscribe("name=a", kinds=["offered"]) as one,
        pool.subscribe("name=b", kinds=["offered"]) as two,
        pool.follow("name=c", live="yield") as follow,
        pool.begin_demand(name="d") as demand,
    ):
        assert isinstance(follow.next(), junctura.Live)
        takes: dict[str, tuple[Any, Callable[[], object]]] = {
            "a": (one, lambda: next(one)),
            "b": (two, lambda: next(two)),
            "c": (follow, lambda: next(follow)),
            "d": (demand, demand.get),
        }
        for name in "bacd":
            other.offer(b"", name=name)
            what, take = takes[name]
            assert pool.wait(one, two, follow, demand) == [what]
            take()


def test_lesson_05_a_descriptor_for_foreign_event_loops(pool: junctura.Pool) -> None:
    """Programs polled two subscriptions in a loop."""
    with junctura.Pool(pool.url) as other, pool.subscribe(kinds=["offered"]) as events:
        ours, theirs = socket.socketpair()
        with ours, theirs, selectors.DefaultSelector() as loop:
            loop.register(pool, selectors.EVENT_READ, "pool")
            loop.register(ours, selectors.EVENT_READ, "socket")
            other.offer(b"", name="a")
            told: list[str] = []
            while not told:
                assert {key.data for key, _ in loop.select()} == {"pool"}
                with suppress(junctura.Timeout):
                    event = events.next(timeout=0)
                    assert event is not None and event.object is not None
                    told.append(event.object["name"])
            assert told == ["a"]


TYPED = """
name: fields
key: {{dataset: [class], collocation: [date], element: [param]}}
attributes:
  class: {{type: string}}
  date: {{type: {date}}}
  param: {{type: string}}
"""


def test_lesson_07_two_readings_of_a_schema_are_an_error_that_shows_both() -> None:
    """Components disagreed on a schema (an integer date here, a string there)."""
    with junctura.Pool(schema=TYPED.format(date="integer")) as pool:
        with pytest.raises(junctura.SchemaMismatch) as raised:
            junctura.Pool(pool.url, schema=TYPED.format(date="string"))
        said = str(raised.value)
        assert "date" in said and "integer" in said and "string" in said
        with junctura.Pool(pool.url, schema=TYPED.format(date="integer")) as same:
            assert same.schema("fields").fingerprint == pool.schema("fields").fingerprint


def test_lesson_08_a_process_has_as_many_pools_as_it_likes() -> None:
    """Nothing could be initialised twice in one process."""
    with junctura.Pool(schema="free") as one, junctura.Pool(schema="free") as two:
        again = [junctura.Pool(one.url, name=f"{at}") for at in range(3)]
        one.offer(b"one", name="a")
        two.offer(b"two", name="a")
        assert [bytes(pool.demand(name="a")) for pool in [one, two, *again]] == [b"one", b"two", *[b"one"] * 3]
        again.pop().close()
        assert len({pool.client for pool in [one, *again]}) == 3
        assert bytes(again[0].demand(name="a")) == b"one"
    with junctura.Pool(schema="free") as pool:
        assert pool.list() == []


def test_lesson_09_memory_is_bounded_by_retention_and_budget() -> None:
    """Memory grew until withdraw."""
    budget = 8 << 20
    with junctura.Pool(schema="free", budget=budget, offer_timeout=0.0) as pool, pool.follow(window=1) as follow:
        for at in range(100):
            pool.offer(bytes(1 << 20), name=f"{at}", retention=junctura.Released(1))
            next(follow).release()
            assert pool.stat()["memory"]["used_bytes"] <= budget
        assert pool.list() == []
        # Nobody reads these: the budget ends it, and says so.
        kept = ((bytes(1 << 20), {"name": f"kept {at}"}) for at in range(100))
        with pytest.raises(junctura.PoolFull):
            pool.offer_many(kept)
        assert pool.stat()["memory"]["used_bytes"] <= budget


STEP_BY_STEP = """
for step in range(1, 6):
    assert sys.stdin.readline() == f"{step}\\n"
    pool.offer(bytes(100_000), name=f"step {step}")
sys.stdin.read()
"""


def test_lesson_11_a_step_is_seen_before_the_next_is_made(pool: junctura.Pool) -> None:
    """Publishing became visible only when the whole job ended."""
    with pool.follow() as viewer, Child(pool, STEP_BY_STEP) as producer:
        for step in range(1, 6):
            producer.tell(f"{step}")
            assert next(viewer)["name"] == f"step {step}"
            assert producer.process.poll() is None


STEPS_OF_THREE_FIELDS = """
for step in range(1, 6):
    assert sys.stdin.readline() == f"{step}\\n"
    with pool.bundle(f"steps/{step}"):
        for field in "tu":
            pool.offer(bytes(100_000), name=f"{step} {field}")
        print("two of three", flush=True)
        assert sys.stdin.readline() == "go on\\n"
        pool.offer(bytes(100_000), name=f"{step} v")
sys.stdin.read()
"""

A_PICTURE_OF_EACH_STEP = """
with pool.follow() as fields:
    print("following", flush=True)
    for step in range(1, 6):
        picture = [next(fields)["name"] for field in range(3)]
        print(*picture, sep=", ", flush=True)
"""


def test_lesson_11_each_step_is_seen_whole_while_the_job_goes_on(pool: junctura.Pool) -> None:
    """Publishing became visible only when the whole job ended: a picture is there before the next step begins."""
    with Child(pool, A_PICTURE_OF_EACH_STEP, "viewer") as viewer, Child(pool, STEPS_OF_THREE_FIELDS, "model") as model:
        assert viewer.hear() == "following"
        for step in range(1, 6):
            model.tell(f"{step}")
            assert model.hear() == "two of three"
            assert len(pool.list()) == 3 * (step - 1)
            model.tell("go on")
            assert viewer.hear() == f"{step} t, {step} u, {step} v"
            assert model.process.poll() is None


@pytest.mark.parametrize("call", ["offer_many", "pipeline"])
def test_lesson_13_thousands_of_objects_smaller_than_their_keys_are_one_batch(pool: junctura.Pool, call: str) -> None:
    """Thousands of objects smaller than their keys."""
    count = 10_000
    names = [f"a/name/longer/than/its/payload/{at:05}" for at in range(count)]
    with pool.follow(window=count) as follow, junctura.Pool(pool.url) as producer:
        if call == "offer_many":
            versions = producer.offer_many([(b"x", {"name": name}) for name in names], window=count)
            assert [version.sequence for version in versions] == list(range(1, count + 1))
        else:
            with producer.pipeline(window=count) as pipeline:
                numbers = [pipeline.offer(b"x", name=name) for name in names]
                pipeline.flush()
                assert pipeline.outstanding == 0
            assert len(set(numbers)) == count
        assert [next(follow)["name"] for _ in names] == names
    stat = pool.stat()
    assert (stat["totals"]["offered"], stat["totals"]["segments_made"]) == (count, 0)
    assert stat["totals"]["leases_waited"] == 0


BY_ITSELF = """
import junctura, pathlib
pool = junctura.Pool(schema="free")
pool.offer(b"payload", name="a")
print(bytes(pool.demand(name="a")))
tasks = pathlib.Path("/proc/self/task").iterdir()
print([child for task in tasks for child in (task / "children").read_text().split()])
"""


def test_lesson_16_an_embedded_pool_is_neither_started_nor_stopped() -> None:
    """A pool had to be started and stopped by hand around the job."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUNCTURA", "XDG"))}
    # No program of ours is found there: what the pool needs is in the process.
    environment["PATH"] = "/nowhere"
    done = subprocess.run(
        [sys.executable, "-c", BY_ITSELF], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "b'payload'\n[]\n"


def test_lesson_26_two_wait_for_one_key(pool: junctura.Pool) -> None:
    """Two waiters on one key stopped the owner."""
    waits = "print('waiting', flush=True); print(len(pool.demand(name='a')), flush=True)"
    with Child(pool, waits) as one, Child(pool, waits) as two, pool.begin_demand(name="a") as ours:
        assert one.hear() == two.hear() == "waiting"
        pool.offer(bytes(LARGE), name="a")
        assert one.hear() == two.hear() == f"{LARGE}"
        assert ours.get().nbytes == LARGE
    pool.offer(b"", name="the owner goes on")


def test_lesson_26_an_unknown_name_is_an_error_and_the_server_lives_on(pool: junctura.Pool) -> None:
    """An unknown plug-in name aborted the server."""
    unknown: list[tuple[type[junctura.Error], str, Callable[[], object]]] = [
        (junctura.InvalidArgument, "invented", lambda: pool.subscribe(kinds=["invented"])),  # type: ignore[list-item]
        (junctura.InvalidArgument, "invented", lambda: pool.offer(b"", name="a", retention="invented")),
        (junctura.InvalidArgument, "invented", lambda: pool.require("", versions="invented")),  # type: ignore[arg-type]
        (junctura.InvalidArgument, "invented", lambda: junctura.Pool("invented:there")),
        (junctura.NotFound, "invented", lambda: pool.offer(b"", name="a", schema="invented")),
        (junctura.NotFound, "invented", lambda: pool.retract("invented")),
        (junctura.NotFound, "invented", lambda: pool.follow(group="invented")),
    ]
    for error, word, call in unknown:
        with pytest.raises(error, match=word):
            call()
    pool.offer(b"", name="a")
    assert len(junctura.Pool(pool.url).list()) == 1


SUPERSEDES = """
name: states
same_key: supersede
key: {dataset: [], collocation: [], element: [name]}
attributes: {name: {type: string}}
"""


def test_lesson_26_who_keeps_an_old_version_sees_the_newer_come() -> None:
    """A reader kept the old version for ever after an overwrite."""
    with junctura.Pool(schema=SUPERSEDES) as pool, pool.follow() as follow:
        pool.offer(b"old", name="a")
        old = next(follow)
        pool.offer(b"new", name="a")
        new = next(follow)
        assert (bytes(old), bytes(new)) == (b"old", b"new")
        assert old.version < new.version == pool.list()[0].version
        assert bytes(pool.demand(name="a")) == b"new"
        old.release()
        new.release()
        assert pool.stat()["objects"]["kept"] == 0


def test_lesson_26_a_wait_has_a_timeout_and_can_be_cancelled(pool: junctura.Pool) -> None:
    """A wait had no timeout and no cancel."""
    requirement = pool.require("name=a", name="keeps")
    pool.offer(b"", name="a")
    with pool.subscribe(kinds=["offered"]) as events, pool.follow("name=x") as follow:
        waits: list[Callable[[float], object]] = [
            lambda timeout: pool.demand(name="x", timeout=timeout),
            lambda timeout: pool.withdraw(name="a", timeout=timeout),
            lambda timeout: pool.wait(events, timeout=timeout),
            lambda timeout: events.next(timeout=timeout),
            lambda timeout: follow.next(timeout=timeout),
        ]
        for wait in waits:
            with pytest.raises(junctura.Timeout):
                wait(0.001)
    requirement.retract()
    pending = pool.begin_demand(name="x")
    assert pool.stat()["interests"]["standing"] == 1
    pending.close()
    assert pool.stat()["interests"]["standing"] == 0


def test_lesson_27_small_payloads_travel_inside_the_message(pool: junctura.Pool) -> None:
    """Small payloads always took request, remote read, acknowledge."""
    with pool.follow() as follow:
        for at in range(100):
            pool.offer(bytes(100), name=f"{at}")
            obj = next(follow)
            assert (obj.transport, obj.nbytes) == ("inline", 100)
        stat = pool.stat()
        assert (stat["memory"]["segments"], stat["totals"]["segments_made"]) == (0, 0)
        assert stat["clients"][0]["leased_bytes"] == 0
        pool.offer(bytes(LARGE), name="large")
        assert next(follow).transport == ("tcp" if TCP else "shared")
        assert pool.stat()["totals"]["segments_made"] > 0


@contextmanager
def a_thread_keeps_the_lock() -> Iterator[None]:
    """Until it calls something that releases Python's lock, a thread has it for itself."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


Wait = Callable[[junctura.Pool, junctura.Pool], tuple[Callable[[], object], Callable[[], object]]]


def offer_one(other: junctura.Pool) -> Callable[[], object]:
    return lambda: other.offer(b"", name="a")


def wait_on_one(pool: junctura.Pool) -> Callable[[], object]:
    demand = pool.begin_demand(name="a")
    return lambda: pool.wait(demand)


def begun_demand(pool: junctura.Pool) -> Callable[[], object]:
    return pool.begin_demand(name="a").get


def withdraw(pool: junctura.Pool, other: junctura.Pool) -> tuple[Callable[[], object], Callable[[], object]]:
    requirement = other.require("name=a")
    pool.offer(b"", name="a")
    return lambda: pool.withdraw(name="a"), lambda: requirement.demand(name="a").release()


def withdraw_all(pool: junctura.Pool, other: junctura.Pool) -> tuple[Callable[[], object], Callable[[], object]]:
    requirement = other.require("name=a")
    pool.offer(b"", name="a")
    return lambda: pool.withdraw_all(""), requirement.retract


def full(call: Callable[[junctura.Pool], object]) -> Wait:
    """Somebody needs eight times the memory that there is; somebody else empties it."""

    def wait(pool: junctura.Pool, other: junctura.Pool) -> tuple[Callable[[], object], Callable[[], object]]:
        follow = other.follow(window=1)

        def empty() -> None:
            for _ in range(64):
                next(follow).release()

        return lambda: call(pool), empty

    return wait


def megabytes() -> list[tuple[bytes, dict[str, str]]]:
    return [(bytes(1 << 20), {"name": f"{at}"}) for at in range(64)]


ONCE = junctura.Released(1)


def awaited(call: Callable[[junctura.aio.Pool], Coroutine[Any, Any, Any]]) -> Wait:
    """The same in a loop, ended by an offer of somebody else."""

    def wait(pool: junctura.Pool, other: junctura.Pool) -> tuple[Callable[[], object], Callable[[], object]]:
        return lambda: asyncio.run(call(junctura.aio.Pool(pool))), offer_one(other)

    return wait


def through_a_requirement(
    pool: junctura.Pool, other: junctura.Pool
) -> tuple[Callable[[], object], Callable[[], object]]:
    requirement = pool.require("name=a")
    return lambda: requirement.demand(name="a"), offer_one(other)


def a_bundle(pool: junctura.Pool, other: junctura.Pool) -> tuple[Callable[[], object], Callable[[], object]]:
    ours = pool.bundle("b", members=1)
    theirs = other.bundle("b", members=1)
    return ours.wait, lambda: theirs.offer(b"", name="a")


def stop(pool: junctura.Pool, other: junctura.Pool) -> tuple[Callable[[], object], Callable[[], object]]:
    requirement = other.require("name=a")
    pool.offer(b"", name="a")
    return pool.stop, lambda: requirement.demand(name="a").release()


def offer_through_a_pipeline(pool: junctura.Pool) -> None:
    with pool.pipeline() as pipeline:
        for data, given in megabytes():
            pipeline.offer(data, given, retention=ONCE)


async def offer_all(pool: junctura.aio.Pool) -> None:
    for data, given in megabytes():
        await pool.offer(data, given, retention=ONCE)


def allocate_many(pool: junctura.Pool) -> None:
    for at in range(64):
        pool.allocate(1 << 20).offer(name=f"{at}", retention=ONCE)


WAITS: dict[str, Wait] = {
    "asyncio: demand": awaited(lambda pool: pool.demand(name="a")),
    "asyncio: follow": awaited(lambda pool: pool.follow().next()),
    "asyncio: follow of a group": awaited(lambda pool: pool.follow("", group="g").next()),
    "asyncio: offer": full(lambda pool: asyncio.run(offer_all(junctura.aio.Pool(pool)))),
    "demand through a requirement": through_a_requirement,
    "bundle": a_bundle,
    "stop": stop,
    "pipeline": full(offer_through_a_pipeline),
    "demand": lambda pool, other: (lambda: pool.demand(name="a"), offer_one(other)),
    "a demand that was begun": lambda pool, other: (begun_demand(pool), offer_one(other)),
    "follow": lambda pool, other: (pool.follow().next, offer_one(other)),
    "follow as an iterator": lambda pool, other: (lambda: next(pool.follow()), offer_one(other)),
    "follow of a group": lambda pool, other: (pool.follow("", group="g").next, offer_one(other)),
    "wait": lambda pool, other: (wait_on_one(pool), offer_one(other)),
    "subscription": lambda pool, other: (pool.subscribe(kinds=["offered"]).next, offer_one(other)),
    "withdraw": withdraw,
    "withdraw-all": withdraw_all,
    "offer": full(lambda pool: [pool.offer(data, given, retention=ONCE) for data, given in megabytes()]),
    "offer_many": full(lambda pool: pool.offer_many(megabytes(), retention=ONCE)),
    "allocate": full(allocate_many),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_lesson_30_every_wait_releases_the_lock(wait: Wait) -> None:
    """The library held the Python lock while waiting: deadlock."""
    ended: list[str] = []
    gate = threading.Lock()
    with (
        junctura.Pool(schema="free", budget="8MiB", offer_timeout=None) as pool,
        junctura.Pool(pool.url) as other,
        a_thread_keeps_the_lock(),
    ):
        waits, ends_it = wait(pool, other)
        gate.acquire()

        def work() -> None:
            # Goes on once the other thread waits: only then is the lock there to be had.
            with gate:
                ended.append("ending the wait")
                ends_it()

        helper = threading.Thread(target=work)
        helper.start()
        gate.release()
        assert ended == [], "nothing has released the lock yet"
        waits()
        assert ended == ["ending the wait"]
        helper.join()
