"""Consumer groups: members share, each object is done once, and what nobody was done with goes to another."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import cast

import pytest

import junctura
import junctura.aio

MEMBER = """
import junctura, sys
pool = junctura.Pool(sys.argv[1], name="member")
follow = pool.follow(group="workers", window=4)
held = [follow.next() for _ in range(3)]
held.pop(0).release()
pool.sync()
print("holds", *[obj["name"] for obj in held], flush=True)
sys.stdin.read()
"""

# Pools are reached over TCP here (see CONTRIBUTING.md).
TCP = os.environ.get("JUNCTURA_TEST_DETOUR") == "tcp"


def names(pool: junctura.Pool, count: int, first: int = 0) -> list[str]:
    """Offers so many objects; gives their names."""
    offered = [f"job{n}" for n in range(first, first + count)]
    for name in offered:
        pool.offer(bytes(100_000), name=name)
    return offered


def owed(pool: junctura.Pool) -> int:
    count: int = pool.stat()["named_requirements"][0]["owed"]
    return count


@contextlib.contextmanager
def member(pool: junctura.Pool) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has released one object and holds two."""
    with subprocess.Popen(
        [sys.executable, "-c", MEMBER, pool.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_members_share_and_groups_each_get_all(pool: junctura.Pool) -> None:
    one = pool.follow("", group="workers", window=1)
    two = pool.follow(group="workers", window=1)
    alone = pool.follow("", group="other")
    offered = names(pool, 4)
    got = []
    for _ in range(2):
        for follow in (one, two):
            obj = follow.next()
            assert isinstance(obj, junctura.Object)
            assert not obj.redelivered
            got.append(obj["name"])
            obj.release()
    assert got == offered
    assert [next(alone)["name"] for _ in range(4)] == offered


def test_what_a_killed_member_held_goes_to_another_and_a_withdraw_waits_for_it(pool: junctura.Pool) -> None:
    with pool.require("", name="workers", group=True):
        names(pool, 5)
    departures = pool.subscribe(kinds=["left"])
    with member(pool) as victim:
        assert heard(victim) == "holds job1 job2"
        with pytest.raises(junctura.Timeout) as raised:
            pool.withdraw(name="job1", timeout=0)
        assert "group workers" in raised.value.cause
        shown = pool.stat()["named_requirements"][0]["group"]["members"]
        assert [(one["name"], one["pid"]) for one in shown] == [("member", victim.pid)]
        os.kill(victim.pid, signal.SIGKILL)
    departures.next()
    assert owed(pool) == 4
    withdrawn: list[int] = []
    other = junctura.Pool(pool.url)
    withdrawing = threading.Thread(target=lambda: withdrawn.append(other.withdraw(name="job1")))
    withdrawing.start()
    with pool.follow(group="workers", until_live=True) as follow:
        got = [(obj["name"], obj.redelivered) for obj in follow]
    assert got == [(f"job{n}", True) for n in range(1, 5)], "two were on their way to it"
    withdrawing.join()
    assert withdrawn == [1]
    assert owed(pool) == 0
    assert pool.retract("workers") == 0


def test_an_exception_gives_back_what_it_interrupts(pool: junctura.Pool) -> None:
    follow = pool.follow("", group="workers")
    names(pool, 1)
    with pytest.raises(ZeroDivisionError), next(follow):
        _ = 1 / 0
    with next(follow) as obj:
        assert obj.redelivered
    names_left = owed(pool)
    assert names_left == 0


def test_it_can_be_given_back(pool: junctura.Pool) -> None:
    follow = pool.follow("", group="workers")
    names(pool, 1)
    obj = next(follow)
    view = memoryview(obj)
    obj.give_back()
    assert obj.released
    assert bytes(view) == bytes(100_000)
    again = next(follow)
    assert again.redelivered
    view = memoryview(again)
    with pytest.raises(ZeroDivisionError), again:
        _ = 1 / 0
    assert again.released
    third = next(follow)
    assert third.redelivered
    assert bytes(view) == bytes(100_000)


def consume(
    url: str, start: threading.Barrier, got: list[str], held: list[memoryview] | None, *, in_block: bool, window: int
) -> None:
    """A member that keeps an array of its last object in a variable until its follow ends."""
    with junctura.Pool(url, name="member") as pool:
        array = None
        start.wait()
        try:
            for obj in pool.follow(group="workers", window=window):
                if in_block:
                    with obj:
                        array = obj.array()
                        got.append(obj["name"])
                else:
                    array = obj.array()
                    got.append(obj["name"])
                if held is not None:
                    held.append(memoryview(array))  # type: ignore[arg-type]
        except (junctura.Closed, junctura.Disconnected):
            assert array is None or not array.any()


@pytest.mark.parametrize("in_block", [True, False], ids=["block", "bare"])
@pytest.mark.parametrize("window", [1, 8])
@pytest.mark.parametrize("keeps", [True, False], ids=["keeps all", "keeps one"])
def test_a_forgotten_variable_does_not_hold_the_last_object(in_block: bool, window: int, keeps: bool) -> None:
    """The group ends, and with it the server: each member waits for its next object with an array of its last."""
    with junctura.Pool(schema="free") as pool:
        pool.follow("", group="workers").close()
        offered = names(pool, 40)
        got: list[str] = []
        held: list[memoryview] | None = [] if keeps else None
        options = {"in_block": in_block, "window": window}
        start = threading.Barrier(3)
        members = [
            threading.Thread(target=consume, args=(pool.url, start, got, held), kwargs=options) for _ in range(2)
        ]
        for thread in members:
            thread.start()
        start.wait()
        # It returns when nothing is owed.
        pool.stop()
        for thread in members:
            thread.join()
        assert sorted(got) == sorted(offered)
        assert all(bytes(view) == bytes(100_000) for view in held or ())


def test_a_loop_keeps_what_the_program_has_stored(pool: junctura.Pool) -> None:
    """Until it is released: a list, a queue or a future refers to it."""
    pool.follow("", group="workers").close()
    names(pool, 3)
    stored = []
    with pool.follow(group="workers", until_live=True) as follow:
        for obj in follow:
            stored.append(obj)  # noqa: PERF402
        assert owed(pool) == 3 and follow.held == 3
        assert not any(obj.released for obj in stored)
        del obj
        stored.pop().release()
        stored.pop(0)
        assert follow.held == 1
        pool.sync()
        assert owed(pool) == 1


def into_a_list(follow: junctura.Follow, stored: list[junctura.Object]) -> None:
    stored.extend(follow)


def by_a_deque(follow: junctura.Follow, stored: list[junctura.Object]) -> None:
    stored.extend(deque(follow))


def by_a_variable_that_is_deleted(follow: junctura.Follow, stored: list[junctura.Object]) -> None:
    for obj in follow:
        stored.append(obj)
        del obj


def by_a_variable_that_is_set_again(follow: junctura.Follow, stored: list[junctura.Object]) -> None:
    for obj in follow:
        stored.append(obj)
        obj = None  # type: ignore[assignment]


def by_a_place_in_a_list(follow: junctura.Follow, stored: list[junctura.Object]) -> None:
    place: list[junctura.Object | None] = [None]
    for place[0] in follow:
        stored.append(cast(junctura.Object, place.pop()))
        place.append(None)


@pytest.mark.parametrize(
    "take",
    [
        into_a_list,
        by_a_deque,
        by_a_variable_that_is_deleted,
        by_a_variable_that_is_set_again,
        by_a_place_in_a_list,
    ],
)
def test_what_is_stored_once_and_in_no_variable_of_a_loop_is_held(
    pool: junctura.Pool, take: Callable[[junctura.Follow, list[junctura.Object]], None]
) -> None:
    pool.follow("", group="workers").close()
    names(pool, 3)
    stored: list[junctura.Object] = []
    with pool.follow(group="workers", until_live=True) as follow:
        take(follow, stored)
        assert [obj.released for obj in stored] == [False] * 3
        pool.sync()
        assert owed(pool) == 3


@pytest.mark.parametrize("stored_first", [True, False], ids=["newest is released", "gap is newest"])
def test_what_is_stored_is_held_while_the_variable_refers_to_another_item(
    pool: junctura.Pool, stored_first: bool
) -> None:
    """Only the newest object may have one more reference: that of the variable."""
    first, second, third = names(pool, 3)
    to_store = first if stored_first else second
    stored = []
    with pool.follow("", window=2, until_live=True, gaps="yield") as follow:
        pool.withdraw(name=third)
        gaps = 0
        for item in follow:
            if isinstance(item, junctura.Gap):
                gaps += 1
            elif item["name"] == to_store:
                stored.append(item)
            else:
                item.release()
        assert gaps == 1
        assert [obj.released for obj in stored] == [False]
        assert follow.held == 1


def test_a_loop_that_waits_releases_nothing_of_another_loop(pool: junctura.Pool) -> None:
    """Two threads loop over one follow: one works on its object while the other one waits."""
    pool.follow("", group="workers").close()
    names(pool, 1)
    is_working, is_done = threading.Event(), threading.Event()
    released: list[bool] = []
    with pool.follow(group="workers", window=2) as follow:

        def work() -> None:
            for obj in follow:
                is_working.set()
                is_done.wait()
                released.append(obj.released)
                return

        def wait() -> None:
            with contextlib.suppress(junctura.Closed):
                for _ in follow:
                    return

        threads = [threading.Thread(target=work), threading.Thread(target=wait)]
        threads[0].start()
        is_working.wait()
        threads[1].start()
        # The other loop has begun to wait when an object for it has come.
        names(pool, 1, first=1)
        threads[1].join()
        is_done.set()
        threads[0].join()
    assert released == [False]


def test_what_next_returns_is_held_until_it_is_released(pool: junctura.Pool) -> None:
    pool.follow("", group="workers").close()
    names(pool, 2)
    follow = pool.follow(group="workers", until_live=True)
    one, two = follow.next(), next(follow)
    assert next(follow, None) is None
    assert owed(pool) == 2
    one.release()
    two.release()
    pool.sync()
    assert owed(pool) == 0


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("window", [1, 8])
def test_an_asynchronous_loop_that_waits_releases_what_its_variable_refers_to(size: int, window: int) -> None:
    async def main() -> None:
        async with junctura.aio.Pool(schema="free") as pool:
            async with pool.follow("", group="workers"):
                pass
            await pool.offer_many([(bytes(size), {"name": f"{at}"}) for at in range(5)])
            kept: list[junctura.Object] = []

            async def work() -> None:
                async for obj in pool.follow(group="workers", window=window, until_live=window > 1):
                    array = obj.array()
                    assert not array.any()
                    if window > 1 and obj["name"] == "1":
                        kept.append(obj)

            working = asyncio.create_task(work())
            if window == 1:
                with contextlib.suppress(junctura.Closed, junctura.Disconnected):
                    await asyncio.gather(pool.stop(), working)
                return
            await working
            assert [obj.released for obj in kept] == [False]
            assert (await pool.stat())["named_requirements"][0]["owed"] == 1

    asyncio.run(main())


def test_after_a_loop_its_variable_can_be_read(pool: junctura.Pool) -> None:
    pool.follow("", group="workers").close()
    names(pool, 2)
    for obj in pool.follow(group="workers", until_live=True):  # noqa: B007
        pass
    assert owed(pool) == 0
    assert obj.released
    assert obj["name"] == "job1" and len(obj.array()) == 100_000
    with obj:
        pass
    with pytest.raises(junctura.Closed):
        obj.array()


@pytest.mark.parametrize(
    ("last_words", "left"),
    [("sys.exit(3)", 1), ("raise ValueError", 1), ("obj.release()", 0), ("del obj", 0), ("pass", 1)],
)
def test_what_a_program_held_when_it_ended_is_not_done(pool: junctura.Pool, last_words: str, left: int) -> None:
    pool.follow("", group="workers").close()
    names(pool, 1)
    program = "import junctura, sys\npool = junctura.Pool(sys.argv[1])\nobj = pool.follow(group='workers').next()\n"
    subprocess.run([sys.executable, "-c", program + last_words, pool.url], capture_output=True, check=False)
    assert owed(pool) == left


def test_terms_are_agreed_on(pool: junctura.Pool) -> None:
    pool.follow("name=a", group="workers", versions="newest", time_to_live=60.0)
    with pytest.raises(junctura.Conflict):
        pool.follow("name=a", group="workers", versions="newest")
    with pytest.raises(junctura.Conflict):
        pool.follow("name=a", group="workers", time_to_live=60.0)
    pool.follow("name=a", group="workers", versions="newest", time_to_live=60.0)
    with pytest.raises(junctura.NotFound):
        pool.follow(group="none")
    with pytest.raises(junctura.Conflict):
        pool.follow(requirement="workers")
    with pytest.raises(junctura.InvalidArgument):
        pool.follow("name=a", versions="newest")
    with pytest.raises(junctura.InvalidArgument):
        pool.follow(group="workers", time_to_live=60.0)
    with pytest.raises(junctura.InvalidArgument):
        pool.follow("name=a", group="workers", only_new=True)
    with pytest.raises(junctura.Unsupported):
        pool.demand("name=a", requirement="workers")


LAST_WORDS = """
import os, signal, sys
import junctura
with junctura.Pool(sys.argv[1], schema="free") as pool, pool.follow(group="workers", window=1) as share:
    obj = next(share)
    name = obj["name"]
    obj.release()
    if "sync" in sys.argv:
        pool.sync()
    print(name, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


# Over a network what has not left a process when it is killed is not said.
@pytest.mark.parametrize("words", [["sync"]] if TCP else [["sync"], []], ids="-".join)
def test_what_was_released_before_a_member_was_killed_is_done(pool: junctura.Pool, words: list[str]) -> None:
    pool.require("", name="workers", group=True)
    for number in range(20):
        pool.offer(b"work", name=f"{number:02}")
    for number in range(20):
        member = subprocess.run(
            [sys.executable, "-c", LAST_WORDS, pool.url, *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (member.stdout, member.returncode) == (f"{number:02}\n", -9), member.stderr
    assert pool.stat()["named_requirements"][0]["owed"] == 0
