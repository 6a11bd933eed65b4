"""A full pool: long waits are reported, and the error names what keeps the memory."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import junctura
import junctura.aio

# More than half of the memory of a pool.
BIG = bytes(3 << 20)
BUDGET = "4MiB"


def full(**options: Any) -> junctura.Pool:
    return junctura.Pool(schema="free", budget=BUDGET, **options)


async def _awaited(pool: junctura.Pool, run: Callable[[junctura.aio.Pool], Any]) -> None:
    async with junctura.aio.Pool(pool) as awaiting:
        await run(awaiting)


def _piped(pool: junctura.Pool) -> None:
    with pool.pipeline() as pipeline:
        pipeline.offer(BIG, name="b")


def _bundled(pool: junctura.Pool) -> None:
    with pool.bundle() as bundle:
        bundle.offer(BIG, name="b")


OFFERS: dict[str, Callable[[junctura.Pool], Any]] = {
    "offer": lambda pool: pool.offer(BIG, name="b"),
    "array": lambda pool: pool.offer(np.zeros(3 << 19, "u2")[::-1], name="b"),
    "allocate": lambda pool: pool.allocate(len(BIG)),
    "offer_many": lambda pool: pool.offer_many([(BIG, {"name": "b"})]),
    "pipeline": _piped,
    "bundle": _bundled,
    "awaited offer": lambda pool: asyncio.run(_awaited(pool, lambda other: other.offer(BIG, name="b"))),
    "awaited allocate": lambda pool: asyncio.run(_awaited(pool, lambda other: other.allocate(len(BIG)))),
}


@pytest.mark.parametrize("call", OFFERS)
def test_the_error_names_the_retention_and_no_retry_if_only_a_withdrawal_helps(call: str) -> None:
    with full(offer_timeout=0) as pool:
        pool.offer(BIG, name="a")
        with pytest.raises(junctura.PoolFull, match="objects that stay until they are withdrawn: 1 object") as caught:
            OFFERS[call](pool)
        assert "for example {space=default}{}{name=a}, offered by " in str(caught.value)
        assert "withdraw-all" in str(caught.value) and "\n" not in str(caught.value)
        assert caught.value.advice == "give up"


def test_the_advice_is_a_retry_if_memory_becomes_free_by_itself() -> None:
    with full(offer_timeout=0) as pool:
        with pool.require("name=a", name="reader"):
            pool.offer(BIG, name="a", retention="released:1")
            with pytest.raises(junctura.PoolFull) as caught:
                pool.offer(BIG, name="b")
            assert caught.value.advice == "retry"
        assert junctura.PoolFull.advice == "retry"


WAITING = ["offer", "allocate", "pipeline", "awaited offer"]


@pytest.mark.parametrize("call", WAITING)
def test_a_long_wait_is_reported_once(call: str) -> None:
    with full(offer_timeout=7) as pool:
        pool.offer(BIG, name="a")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(junctura.PoolFull):
                OFFERS[call](pool)
        (found,) = [one for one in caught if issubclass(one.category, junctura.WaitWarning)]
        text = str(found.message)
        assert text.startswith("the offer waits: ") and "\n" not in text
        assert "objects that stay until they are withdrawn: 1 object" in text


WITHDRAWALS: dict[str, Callable[[junctura.Pool], object]] = {
    "withdraw": lambda pool: pool.withdraw(name="a"),
    "withdraw_all": lambda pool: pool.withdraw_all("name=a"),
}


def check_withdrawal(text: str) -> None:
    assert text.startswith("the withdrawal waits: ") and "\n" not in text
    assert "workers" in text and "no members" in text


def owed_to_a_group() -> junctura.Pool:
    """A pool with an object of a group without members."""
    pool = junctura.Pool(schema="free")
    pool.require("name=a", name="workers", group=True)
    pool.offer(b"", name="a")
    return pool


@pytest.mark.parametrize("call", WITHDRAWALS)
def test_a_withdrawal_that_waits_for_a_group_without_members_is_reported(call: str) -> None:
    with owed_to_a_group() as pool, warnings.catch_warnings():
        # The report ends the call.
        warnings.simplefilter("error", junctura.WaitWarning)
        with pytest.raises(junctura.WaitWarning) as caught:
            WITHDRAWALS[call](pool)
        check_withdrawal(str(caught.value))


def test_a_withdrawal_in_a_task_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[str] = []

    async def withdraw(pool: junctura.Pool) -> None:
        loop, is_reported = asyncio.get_running_loop(), asyncio.Event()

        def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
            if issubclass(category, junctura.WaitWarning):
                reports.append(str(message))
                loop.call_soon_threadsafe(is_reported.set)

        monkeypatch.setattr(warnings, "showwarning", show)
        async with junctura.aio.Pool(pool) as awaiting:
            withdrawal = asyncio.ensure_future(awaiting.withdraw_all("name=a"))
            await is_reported.wait()
            withdrawal.cancel()
            with pytest.raises(asyncio.CancelledError):
                await withdrawal

    with owed_to_a_group() as pool, warnings.catch_warnings():
        warnings.simplefilter("always")
        asyncio.run(withdraw(pool))
    (report,) = reports
    check_withdrawal(report)


def test_a_wait_that_ends_in_time_is_not_reported() -> None:
    with full() as pool, warnings.catch_warnings():
        warnings.simplefilter("error")
        pool.offer(BIG, name="a")
        waiting = threading.Thread(target=pool.offer, args=(BIG,), kwargs={"name": "b"})
        waiting.start()
        pool.withdraw(name="a")
        waiting.join()
        assert [entry["name"] for entry in pool.list()] == ["b"]


def test_a_warning_as_an_error_ends_the_offer() -> None:
    with full() as pool, warnings.catch_warnings():
        warnings.simplefilter("error", junctura.WaitWarning)
        pool.offer(BIG, name="a")
        with pytest.raises(junctura.WaitWarning):
            pool.offer(BIG, name="b")
        assert [entry["name"] for entry in pool.list()] == ["a"]
