"""The pool in asyncio: nothing blocks the loop, and who is cancelled leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

import junctura

LARGE = 1 << 18
ONCE = junctura.Released(1)


@contextlib.asynccontextmanager
async def a_pool(**options: Any) -> AsyncIterator[junctura.aio.Pool]:
    async with junctura.aio.Pool(schema="free", **options) as pool:
        yield pool


async def until_it_waits(*tasks: asyncio.Task[Any]) -> None:
    """Lets tasks run until they have asked and sleep."""
    for _ in range(10):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


async def standing(pool: junctura.aio.Pool) -> int:
    """How many demands, follows and requirements the server knows of."""
    return int((await pool.stat())["interests"]["standing"])


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_a_sync_waits_for_offers_that_wait_for_memory() -> None:
    async def main() -> None:
        async with a_pool(budget="8MiB", offer_timeout=None) as pool:
            await pool.sync()
            pipeline = pool.blocking.pipeline(4096)
            for number in range(2200):
                pipeline.offer(bytes(4000), name=str(number))
            with pytest.raises(junctura.Timeout, match="sync"):
                await pool.sync(timeout=0.01)
            task = asyncio.create_task(pool.sync())
            await until_it_waits(task)
            gone = await pool.withdraw_all("")
            await task
            assert gone < 2200 and len(await pool.list()) == 2200 - gone
            pipeline.flush()

    asyncio.run(main())


def test_the_verbs() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            assert pool.schema().name == "free" and pool.schemas
            version = await pool.offer(np.arange(6.0).reshape(2, 3), name="a", unit="K")
            obj = await pool.demand(name="a")
            assert (obj.version, obj.array().shape, obj["unit"]) == (version, (2, 3), "K")
            assert await pool.wanted(name="b") == 0
            assert await pool.offer(b"not moved", name="b", if_wanted=True) is None
            assert await pool.offer(bytes(LARGE), name="c", if_wanted=True) is None
            assert [entry["name"] for entry in await pool.list()] == ["a"]
            with pytest.raises(junctura.NotFound):
                await pool.demand(name="x", timeout=0)
            with pytest.raises(junctura.Timeout):
                await pool.demand(name="x", timeout=0.001)
            with pytest.raises(junctura.InvalidSelector) as raised:
                await pool.demand("name==a")
            assert raised.value.picture is not None
            with pytest.raises(junctura.AlreadyExists):
                await pool.offer(b"", name="a")
            assert await pool.withdraw(name="a") == 1
            with pytest.raises(junctura.Gone):
                await pool.demand(name="a")
            await pool.offer_many([(bytes(size), {"name": f"{size}"}) for size in (0, 10, LARGE)])
            assert await pool.withdraw_all("name=0/10") == 2
            assert (await pool.stat())["objects"]["visible"] == 1

    asyncio.run(main())


def test_many_are_offered_into_a_bundle() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            async with pool.bundle() as bundle:
                many = [(bytes(size), {"name": f"{size}"}) for size in (10, 0, LARGE)]
                staged = await bundle.offer_many(many, window=2)
                assert await pool.list() == []
                with pytest.raises(junctura.SchemaMismatch) as wrong:
                    await bundle.offer_many([(b"", {"name": "b"}), (b"", {"size": "1"})])
                assert wrong.value.index == 1
            completed = await bundle.wait()
            # In the order of keys.
            versions = [completed.version(member) for member in staged]
            assert None not in versions and completed.objects == 4
            assert [entry["name"] for entry in await pool.list()] == ["0", "10", str(LARGE), "b"]

    asyncio.run(main())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        bytes(LARGE),
        bytearray(LARGE),
        np.arange(LARGE)[::2],
        np.ones((3, 4), ">f4"),
        [1.0, 2.0],
        memoryview(b"x" * LARGE),
    ],
    ids=lambda data: type(data).__name__ + str(len(data)),
)
def test_what_is_offered_arrives_as_by_the_pool_that_waits(data: Any) -> None:
    async def main() -> None:
        async with a_pool() as pool:
            data_as = np.asarray(data) if isinstance(data, list) else data
            await pool.offer(data_as, name="a")
            pool.blocking.offer(data_as, name="b")
            a, b = await pool.demand(name="a"), await pool.demand(name="b")
            assert bytes(a) == bytes(b)
            assert {**a.attributes, "name": ""} == {**b.attributes, "name": ""}
            assert a.transport == b.transport

    asyncio.run(main())


def test_a_follow_and_its_ends() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            await pool.offer(b"1", name="a")
            async with pool.follow(live="yield", window=4) as follow:
                assert (await follow.next())["name"] == "a"
                assert isinstance(await follow.next(), junctura.Live)
                assert follow.is_live and follow.cursor is not None and follow.snapshot_sequence == 1
                with pytest.raises(junctura.Timeout):
                    await follow.next(timeout=0)
                with pytest.raises(junctura.Timeout):
                    await follow.next(timeout=0.001)
                nxt = asyncio.create_task(follow.next())
                await until_it_waits(nxt)
                await pool.offer(b"2", name="b")
                assert (await nxt)["name"] == "b"
                assert follow.held == 1
                nxt.result().release()
                assert follow.held == 0
            assert await follow.next() is None
            assert await standing(pool) == 0
            assert [obj["name"] async for obj in pool.follow(until_live=True)] == ["a", "b"]
            with pytest.raises(junctura.InvalidSelector):
                await pool.follow("name==")
            with pytest.raises(junctura.Closed, match="not open"):
                _ = pool.follow().cursor
            forgotten = await pool.follow()
            assert await standing(pool) == 1
            del forgotten
            gc.collect()
            assert await standing(pool) == 0

    asyncio.run(main())


def test_events() -> None:
    async def main() -> None:
        async with a_pool() as pool, pool.subscribe(kinds=["offered", "withdrawn"]) as events:
            await pool.offer(b"payload", name="a")
            await pool.withdraw(name="a")
            seen = []
            async for event in events:
                seen.append(event.kind)
                if len(seen) == 2:
                    break
            assert seen == ["offered", "withdrawn"]
            with pytest.raises(junctura.Timeout):
                await events.next(timeout=0)
            with pytest.raises(junctura.InvalidArgument):
                await pool.subscribe(kinds=["invented"])  # type: ignore[list-item]

    asyncio.run(main())


def test_requirements() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            async with pool.require("name=a/b") as requirement:
                assert (requirement.selector, requirement.name) == ("name=a/b", None)
                await pool.offer(b"1", name="a")
                await pool.offer(b"2", name="b")
                withdrawal = asyncio.create_task(pool.withdraw(name="a"))
                await until_it_waits(withdrawal)
                (await requirement.demand(name="a")).release()
                assert await withdrawal == 1
                async with requirement.follow(until_live=True) as follow:
                    assert [obj["name"] async for obj in follow] == ["b"]
            assert await standing(pool) == 0
            await pool.require("name=c", name="archive")
            assert await pool.retract("archive") == 0
            named = await pool.require("name=c", name="archive")
            await named.retract()
            with pytest.raises(junctura.NotFound):
                await pool.retract("archive")

    asyncio.run(main())


def test_bundles() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            async with pool.bundle() as bundle:
                two = await bundle.offer(bytes(LARGE), name="b")
                await bundle.offer(b"1", name="a")
                # What a task offers otherwise goes nowhere else.
                await pool.offer(b"", name="at once")
                assert [entry["name"] for entry in await pool.list()] == ["at once"]
            completed = await bundle.wait()
            assert completed.objects == 2 and completed.version(two) is not None
            assert bundle.completed is not None
            with contextlib.suppress(ZeroDivisionError):
                async with pool.bundle() as given_up:
                    await given_up.offer(b"", name="never seen")
                    raise ZeroDivisionError
            assert len(await pool.list()) == 3
            counted = await pool.bundle("step/1", members=2)
            await counted.offer(b"", name="one")
            with pytest.raises(junctura.Timeout):
                await counted.wait(timeout=0.001)
            waits = asyncio.create_task(counted.wait())
            await until_it_waits(waits)
            async with pool.bundle("step/1", members=2) as other:
                await other.offer(b"", name="two")
            assert (await waits).objects == 2
            assert [entry.path for entry in await pool.bundles(under="step/1")] == ["step/1"]
            async with pool.bundle("outer") as outer:
                async with pool.bundle("outer/inner") as inner:
                    await inner.offer(b"", name="nested")
                await outer.offer(b"", name="outside")
            assert (await outer.wait()).objects == 2
            aborted = await pool.bundle("aborted")
            await aborted.offer(b"", name="gone")
            assert await aborted.abort() == 1
            with pytest.raises(junctura.Closed):
                await aborted.wait()

    asyncio.run(main())


def test_a_pipeline() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            async with pool.pipeline(window=8) as pipeline:
                numbers = [await pipeline.offer(bytes(at % 3 * LARGE), name=f"{at:03}") for at in range(50)]
                assert numbers == list(range(50))
                assert pipeline.outstanding <= 8
            assert [obj["name"] async for obj in pool.follow(until_live=True)] == [f"{at:03}" for at in range(50)]
            with pytest.raises(junctura.AlreadyExists):
                async with pool.pipeline() as pipeline:
                    await pipeline.offer(b"", name="000")
            with pytest.raises(junctura.AlreadyExists) as raised:
                await pool.offer_many([(b"", {"name": name}) for name in ("new", "000", "newer")])
            assert raised.value.index == 1

    asyncio.run(main())


def test_memory_is_waited_for_while_others_run() -> None:
    async def main() -> None:
        async with a_pool(budget="8MiB", offer_timeout=None) as pool, pool.follow(window=1) as follow:
            offers = asyncio.create_task(
                pool.offer_many([(bytes(1 << 20), {"name": f"{at}"}) for at in range(64)], retention=ONCE)
            )
            for at in range(64):
                with await follow.next() as obj:
                    assert obj["name"] == f"{at}"
            assert len(await offers) == 64
            kept = [await pool.allocate(1 << 20) for _ in range(7)]
            one_too_many = asyncio.create_task(pool.allocate(4 << 20))
            await until_it_waits(one_too_many)
            one_too_many.cancel()
            with pytest.raises(asyncio.CancelledError):
                await one_too_many
            # Memory that a task of this very process frees is memory.
            waits = asyncio.create_task(pool.allocate(1 << 20))
            await asyncio.sleep(0)
            kept.pop().free()
            (await waits).free()
        async with a_pool() as pool:
            field = await pool.allocate(shape=(2, 3), dtype="f4")
            field.array()[:] = 1.5
            await pool.offer(field, name="filled")
            assert (await pool.demand(name="filled")).array().sum() == 9.0

    asyncio.run(main())


def test_a_full_pool_says_so() -> None:
    async def main() -> None:
        async with a_pool(budget="8MiB", offer_timeout=0.0) as pool:
            with pytest.raises(junctura.PoolFull):
                await pool.offer_many([(bytes(1 << 20), {"name": f"{at}"}) for at in range(64)])
            with pytest.raises(junctura.TooLarge):
                await pool.allocate(1 << 40)

    asyncio.run(main())


def test_a_cancelled_wait_leaves_nothing() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            await pool.offer(b"", name="owed")
            keeper = await pool.require("name=owed")
            before = await standing(pool)
            waits: list[Callable[[], Coroutine[Any, Any, Any]]] = [
                lambda: pool.demand(name="x"),
                lambda: pool.withdraw(name="owed"),
                lambda: pool.withdraw_all("name=owed"),
                lambda: anext(aiter(pool.follow("name=x"))),  # type: ignore[arg-type]
                lambda: pool.subscribe(kinds=["left"]).next(),
                lambda: keeper.demand(name="x"),
            ]
            tasks = [asyncio.ensure_future(wait()) for wait in waits]
            await until_it_waits(*tasks)
            for task in tasks:
                task.cancel()
            # What was raised keeps whoever raised it.
            ended = [type(one) for one in await asyncio.gather(*tasks, return_exceptions=True)]
            assert ended == [asyncio.CancelledError] * len(waits)
            del tasks
            # What the loop has still to call holds it, too.
            await asyncio.sleep(0)
            gc.collect()
            assert await standing(pool) == before
            assert [entry["name"] for entry in await pool.list()] == ["owed"]

    asyncio.run(main())


@pytest.mark.parametrize("size", [10, LARGE])
@pytest.mark.parametrize("moment", ["arrived", "woken"])
def test_an_object_that_came_for_a_cancelled_task_goes_to_the_next(size: int, moment: str) -> None:
    async def main() -> None:
        async with a_pool() as pool:
            async with pool.follow("", group="workers", window=1) as one:
                task = asyncio.create_task(one.next())
                await until_it_waits(task)
                # The loop stands still meanwhile: the object has come, and the task does not know.
                pool.blocking.offer(bytes(size), name="job", retention=ONCE)
                pool.blocking.sync()
                if moment == "woken":
                    one._board.look()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            async with pool.follow(group="workers") as two:
                with await two.next() as obj:
                    assert (obj["name"], obj.nbytes, obj.redelivered) == ("job", size, False)
            assert await pool.list() == []

            keeper = await pool.require("name=b")
            demand = asyncio.create_task(keeper.demand(name="b"))
            await until_it_waits(demand)
            pool.blocking.offer(bytes(size), name="b", retention=ONCE)
            pool.blocking.sync()
            demand.cancel()
            with pytest.raises(asyncio.CancelledError):
                await demand
            with await keeper.demand(name="b") as obj:
                assert obj.nbytes == size

    asyncio.run(main())


def test_a_cancelled_offer_is_whole_or_not_there() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            for at in range(20):
                offer = asyncio.create_task(pool.offer(bytes(at % 2 * LARGE), name=f"{at}"))
                for _ in range(at // 2):
                    await asyncio.sleep(0)
                offer.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await offer
            for entry in await pool.list():
                assert entry.nbytes == int(entry["name"]) % 2 * LARGE

    asyncio.run(main())


def test_a_thousand_tasks_wait_on_one_pool_without_a_thread() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            await pool.stat()
            before = threads()
            demands = [asyncio.create_task(pool.demand(name=f"{at}")) for at in range(1000)]
            await until_it_waits(*demands)
            assert threads() == before
            for at in range(1000):
                await pool.offer(b"", name=f"{at}")
            assert [(await demand)["name"] for demand in demands] == [f"{at}" for at in range(1000)]
            assert threads() == before

    asyncio.run(main())


def test_waiting_for_several() -> None:
    async def main() -> None:
        async with (
            a_pool() as pool,
            pool.follow("name=u", live="yield") as winds,
            pool.subscribe("name=t", kinds=["offered"]) as events,
        ):
            assert isinstance(await winds.next(), junctura.Live)
            whole = await pool.bundle("whole", members=1)
            with pytest.raises(junctura.Timeout):
                await pool.wait(winds, events, whole, timeout=0.001)
            waits = asyncio.create_task(pool.wait(winds, events, whole))
            await pool.offer(b"", name="t")
            assert await waits == [events]
            assert (await events.next(timeout=0)) is not None
            await whole.offer(b"", name="m")
            while whole not in (ready := await pool.wait(events, whole)):
                assert ready
            assert (await whole.wait()).objects == 1
            with pytest.raises(junctura.InvalidArgument):
                await pool.wait()

    asyncio.run(main())


def test_two_loops_share_a_pool(pool: junctura.Pool) -> None:
    rounds = 200

    def run(hears: str, says: str, begins: bool) -> None:
        async def main() -> None:
            async with junctura.aio.Pool(pool) as ours:
                for at in range(rounds):
                    if begins:
                        await ours.offer(b"", name=f"{says}{at}")
                    (await ours.demand(name=f"{hears}{at}")).release()
                    if not begins:
                        await ours.offer(b"", name=f"{says}{at}")

        asyncio.run(main())

    threads = [
        threading.Thread(target=run, args=("a", "b", False)),
        threading.Thread(target=run, args=("b", "a", True)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pool.list()) == 2 * rounds


def test_a_thread_and_a_loop_share_a_pool(pool: junctura.Pool) -> None:
    def answer() -> None:
        for at in range(200):
            pool.demand(name=f"ask {at}").release()
            pool.offer(b"", name=f"answer {at}")

    async def main() -> None:
        async with junctura.aio.Pool(pool) as ours:
            for at in range(200):
                await ours.offer(b"", name=f"ask {at}")
                (await ours.demand(name=f"answer {at}")).release()
        # One that was given stays open.
        assert len(pool.list()) == 400

    helper = threading.Thread(target=answer)
    helper.start()
    asyncio.run(main())
    helper.join()


def test_one_loop_after_the_other(pool: junctura.Pool) -> None:
    async def main(at: int) -> str:
        ours = junctura.aio.Pool(pool)
        await ours.offer(b"", name=f"{at}")
        return str((await ours.demand(name=f"{at}"))["name"])

    assert [asyncio.run(main(at)) for at in range(3)] == ["0", "1", "2"]


@contextlib.contextmanager
def a_server(tmp_path: Path) -> Any:
    """A server of its own process, which says when it listens."""
    url = f"unix:{tmp_path}/pool"
    command = [sys.executable, "-m", "junctura", "pool", "serve", "--pool", url, "--schema", "free", "--announce"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline()
            yield url, server
        finally:
            os.kill(server.pid, signal.SIGCONT)
            server.terminate()


def test_a_server_that_stands_still_does_not_stop_the_loop(tmp_path: Path) -> None:
    """Whatever is asked of a server that does not answer, other tasks run; and when it goes on, all are answered."""

    async def main(url: str, server: int) -> None:
        pool = await junctura.aio.Pool(url)
        follow = await pool.follow("name=f")
        events = await pool.subscribe("name=f", kinds=["offered"])
        keeper = await pool.require("name=k")
        bundle = await pool.bundle()
        await bundle.offer(b"", name="b")
        os.kill(server, signal.SIGSTOP)
        calls: list[Awaitable[Any]] = [
            pool.offer(b"", name="f"),
            pool.offer(bytes(LARGE), name="large"),
            pool.offer_many([(bytes(1000), {"name": f"many {at}"}) for at in range(5000)]),
            pool.demand(name="f"),
            follow.next(),
            events.next(),
            pool.wanted(name="a"),
            pool.stat(),
            pool.list(),
            pool.bundles(),
            bundle.seal(),
            bundle.wait(),
            asyncio.ensure_future(pool.require("name=x").__aenter__()),
            asyncio.ensure_future(pool.bundle("p").__aenter__()),
            asyncio.ensure_future(pool.follow("name=f").next()),
            asyncio.ensure_future(pool.subscribe("name=x").__aenter__()),
            pool.withdraw_all("name=nothing"),
            pool.allocate(1 << 20),
            keeper.retract(),
        ]
        tasks = [asyncio.ensure_future(call) for call in calls]
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        os.kill(server, signal.SIGCONT)
        answers = await asyncio.gather(*tasks)
        assert len(answers[2]) == 5000
        # What was begun is closed by the pool's end.
        await pool.stop(timeout=0)

    with a_server(tmp_path) as (url, server):
        asyncio.run(main(url, server.pid))


def test_when_the_server_is_gone_all_who_wait_are_told(tmp_path: Path) -> None:
    async def main(url: str, server: int) -> None:
        async with junctura.aio.Pool(url) as pool, pool.follow() as follow:
            waits: list[Awaitable[Any]] = [pool.demand(name="x"), follow.next(), pool.demand(name="y")]
            tasks = [asyncio.ensure_future(wait) for wait in waits]
            await until_it_waits(*tasks)
            os.kill(server, signal.SIGKILL)
            told = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(one) for one in told] == [junctura.Disconnected] * 3
            with pytest.raises(junctura.Disconnected):
                await pool.offer(b"", name="late")

    with a_server(tmp_path) as (url, server):
        asyncio.run(main(url, server.pid))


def test_closing_it_ends_all_waits() -> None:
    async def main() -> None:
        pool = await junctura.aio.Pool(schema="free")
        tasks = [asyncio.create_task(pool.demand(name=f"{at}")) for at in range(3)]
        await until_it_waits(*tasks)
        await pool.close()
        told = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in told] == [junctura.Closed] * 3
        with pytest.raises(junctura.Closed):
            await pool.stat()
        with pytest.raises(junctura.Closed, match="not open"):
            await junctura.aio.Pool(schema="free").stat()

    asyncio.run(main())


def test_stopping_the_server() -> None:
    async def main() -> None:
        pool = await junctura.aio.Pool(schema="free")
        requirement = await pool.require("name=a")
        await pool.offer(b"owed", name="a")
        with pytest.raises(junctura.Timeout, match="left"):
            await pool.stop(timeout=0)
        del requirement
        with pytest.raises(junctura.Closed):
            await pool.offer(b"", name="late")

    asyncio.run(main())


def test_names_of_a_retention_are_told_without_waiting() -> None:
    async def main() -> None:
        async with a_pool() as pool:
            await pool.offer(b"", name="a", retention="released_by:archive")
            assert len(await pool.list()) == 1
            async with pool.follow("", group="archive", until_live=True) as follow:
                async for obj in follow:
                    obj.release()
            assert await pool.list() == []

    asyncio.run(main())


def test_what_was_spilled_is_read_beside_the_loop(tmp_path: Path) -> None:
    """A disk is no reason to stop a loop, and who is cancelled meanwhile gives back what comes of it."""

    async def main() -> None:
        async with a_pool(budget="8MiB", spill=tmp_path, offer_timeout=None) as pool:
            keeper = await pool.require("")
            for at in range(32):
                await pool.offer(np.full(1 << 17, at), name=f"{at:02}")
            assert (await pool.stat())["spill"]["used_bytes"] > 0
            cancelled = asyncio.create_task(keeper.demand(name="00"))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            seen = set()
            async with keeper.follow() as follow:
                for _ in range(32):
                    with await follow.next() as obj:
                        seen.add(obj["name"])
                        assert obj.array()[-1] == int(obj["name"])
            assert len(seen) == 32

    asyncio.run(main())


NO_DESCRIPTORS = """
import asyncio, contextlib, os, resource
import junctura

async def main():
    async with junctura.aio.Pool(schema="free") as pool:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        others = []
        with contextlib.suppress(OSError):
            while True:
                others.append(os.dup(1))
        try:
            await pool.demand(name="a")
        except junctura.LimitExceeded as error:
            print(error.code)

asyncio.run(main())
"""


def test_without_a_descriptor_to_wait_for_a_task_is_told() -> None:
    ended = subprocess.run([sys.executable, "-c", NO_DESCRIPTORS], capture_output=True, text=True, check=False)
    assert ended.stdout == "LimitExceeded\n", ended.stderr


Leaving: TypeAlias = Callable[[junctura.aio.Follow], Awaitable[object]]


async def _breaks(follow: junctura.aio.Follow) -> None:
    async for _ in follow:
        break


async def _returns(follow: junctura.aio.Follow) -> object:
    async for obj in follow:
        return obj
    return None


async def _takes_none(_: junctura.aio.Follow) -> None:
    return None


async def _takes_all_but_the_end(follow: junctura.aio.Follow) -> None:
    for _ in range(3):
        await follow.next()


LEFT: dict[str, Leaving] = {
    "break": _breaks,
    "return": _returns,
    "at once": _takes_none,
    "before the end": _takes_all_but_the_end,
}


@contextlib.asynccontextmanager
async def three(kind: str) -> AsyncIterator[tuple[junctura.aio.Pool, Callable[[], Any]]]:
    """A pool with three objects, and how they are followed."""
    async with a_pool() as pool:
        stand = await pool.require("exists(name)", name="stands")
        for number in range(3):
            await pool.offer(bytes(number), name=f"{number}")
        follows: dict[str, Callable[[], Any]] = {
            "until live": lambda: pool.follow(until_live=True),
            "on": pool.follow,
            "a small window": lambda: pool.follow(until_live=True, window=1),
            "a requirement's": lambda: stand.follow(until_live=True),
            "a group": lambda: pool.follow("exists(name)", group="g"),
            "with live": lambda: pool.follow(until_live=True, live="yield", gaps="yield"),
        }
        yield pool, follows[kind]


KINDS = ["until live", "on", "a small window", "a requirement's", "a group", "with live"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", LEFT)
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_follow_that_is_left_early_raises_nothing(kind: str, how: str, is_closed: bool) -> None:
    async def main() -> None:
        async with three(kind) as (pool, begin):
            if is_closed:
                follow = await begin()
                await LEFT[how](follow)
                await follow.close()
                await follow.close()
            else:
                async with begin() as follow:
                    await LEFT[how](follow)
            assert await follow.next() is None
            # The next finds the pool as it was.
            assert len(await pool.list()) == 3

    asyncio.run(asyncio.wait_for(main(), 30))


class OwnError(Exception):
    """What a block raises by itself."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_ends_a_follow_is_what_is_raised(kind: str) -> None:
    async def raising(begin: Callable[[], Any], error: BaseException) -> None:
        async with begin() as follow:
            async for _ in follow:
                raise error

    async def main() -> None:
        async with three(kind) as (pool, begin):
            for error in (OwnError(), junctura.NotFound("mine", "of the block"), KeyError("key")):
                with pytest.raises(type(error)) as raised:
                    await raising(begin, error)
                assert raised.value is error and error.__context__ is None
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(sleeping(begin), 0.05)
            task = asyncio.create_task(sleeping(begin))
            await until_it_waits(task)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(await pool.list()) == 3

    async def sleeping(begin: Callable[[], Any]) -> None:
        async with begin() as follow:
            await follow.next()
            await asyncio.Event().wait()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_what_a_block_raises_is_kept_where_the_server_has_gone() -> None:
    async def main() -> None:
        native = junctura.Pool(schema="free")
        pool = junctura.aio.Pool(native)

        async def all_of_them(end: Callable[[], None]) -> None:
            async with pool, pool.follow(), pool.subscribe(), pool.require("exists(name)"), pool.bundle():
                end()
                raise OwnError

        for end in (lambda: None, native.close):
            with pytest.raises(OwnError):
                await all_of_them(end)

    asyncio.run(asyncio.wait_for(main(), 30))
