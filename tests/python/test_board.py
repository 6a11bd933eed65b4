"""The board of a pool, in Python: the same names as in Rust, and the numbers of ``stat``."""

from __future__ import annotations

import asyncio
import os

import pytest

import junctura
import junctura.aio

OVER_A_NETWORK = "JUNCTURA_TEST_DETOUR" in os.environ


@pytest.mark.skipif(not OVER_A_NETWORK, reason="pools are on this machine here")
def test_over_a_network_there_is_no_board(pool: junctura.Pool) -> None:
    with pytest.raises(junctura.Unsupported, match="stat"):
        pool.board()


@pytest.mark.skipif(OVER_A_NETWORK, reason="a board is memory of the server's machine")
def test_a_snapshot_has_the_numbers_of_stat(pool: junctura.Pool) -> None:
    for number in range(10):
        pool.offer(b"x" * 5000, name=str(number))
    with pool.demand(name="3"):
        board = pool.board()
        numbers, stat = board.snapshot(), pool.stat()
        assert numbers["is_consistent"]
        assert numbers["head"]["state"] == "serving"
        assert numbers["head"]["pid"] == stat["server"]["pid"]
        for name in ("offered", "offered_bytes", "delivered", "delivered_bytes", "released", "withdrawn"):
            assert numbers["counters"][name] == stat["totals"][name]
        for name in ("visible", "visible_bytes", "held", "kept"):
            assert numbers["counters"][name] == stat["objects"][name]
        for name in ("budget_bytes", "used_bytes", "occupied_bytes", "slots_occupied", "record_bytes"):
            assert numbers["counters"][name] == stat["memory"][name]
        assert sum(edge["objects"] for edge in numbers["edges"]) == stat["totals"]["delivered"]
        assert sum(dataset["visible"] for dataset in numbers["datasets"]) == 10
        assert numbers["histograms"]["object_size_bytes"]["sum"] == 50_000
        [client] = numbers["clients"]
        assert {name: client[name] for name in ("offered", "delivered", "held")} == {
            name: stat["clients"][0][name] for name in ("offered", "delivered", "held")
        }
        assert board.turn_age >= 0


@pytest.mark.skipif(OVER_A_NETWORK, reason="a board is memory of the server's machine")
def test_tasks_read_it_too(pool: junctura.Pool) -> None:
    async def offered() -> int:
        async with junctura.aio.Pool(pool) as tasks:
            await tasks.offer(b"x", name="a")
            board = await tasks.board()
            return int(board.snapshot()["counters"]["offered"])

    assert asyncio.run(offered()) == 1
