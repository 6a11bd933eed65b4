"""A key that is freed: its object, array or bundle is offered again, wherever the payload was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import junctura
import junctura.aio

LAYOUT = "shape=64x64 grid=2x2"
FIELD = np.arange(64 * 64, dtype="f8").reshape(64, 64)


def offer_array(pool: junctura.Pool, layout: str = LAYOUT, name: str = "t") -> None:
    for rank in range(junctura.Layout(layout).ranks):
        rows, columns = junctura.Layout(layout).indices(rank)
        pool.offer_piece(FIELD[np.ix_(rows, columns)], layout, rank, name=name)
    assert (pool.demand_array(name=name) == FIELD).all()


@pytest.mark.parametrize(
    "free",
    [
        lambda pool: pool.withdraw_all("*", forget=True),
        lambda pool: pool.withdraw_all("name=t", forget=True, force=True),
        lambda pool: pool.withdraw(name="t", forget=True),
        lambda pool: pool.withdraw("{space=default}{}{name=t}", forget=True),
    ],
)
def test_an_array_is_offered_again(pool: junctura.Pool, free: Callable[[junctura.Pool], int]) -> None:
    for layout in (LAYOUT, LAYOUT, "shape=64x64 grid=1x4 block=3x5", LAYOUT):
        offer_array(pool, layout)
        assert free(pool) == 1, "pieces are not counted"
    # Removed before, without its key.
    offer_array(pool)
    pool.withdraw(name="t")
    with pytest.raises(junctura.AlreadyExists, match="forget"):
        offer_array(pool)
    assert pool.withdraw_all("name=t", forget=True) == 1
    offer_array(pool)


def test_an_array_that_its_consumers_released_is_offered_again(pool: junctura.Pool) -> None:
    for _ in range(2):
        for rank in range(2):
            pool.offer_piece(FIELD[32 * rank :][:32], "shape=64x64 grid=2x1", rank, name="t", retention="released:1")
        held = pool.demand_array(name="t")
        pool.sync()
        assert pool.list() == [] and (held == FIELD).all()
        assert pool.withdraw_all("*", forget=True) == 1


def test_an_array_in_the_file_tier_is_offered_again(tmp_path: Path) -> None:
    with junctura.Pool(schema="free", budget="1MiB", spill=tmp_path / "spill", spill_size="64MiB") as pool:
        names = [f"t{number}" for number in range(60)]
        for _ in range(2):
            for name in names:
                offer_array(pool, name=name)
            assert pool.stat()["spill"]["objects"] > 0
            assert pool.withdraw_all("*", forget=True) == len(names)


def test_an_archived_array_is_offered_again(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    with junctura.Pool(schema="free") as pool:
        for _ in range(2):
            with junctura.Archiver(pool, store, "") as archiver:
                offer_array(pool)
            assert archiver.counts.archived == 1
            assert pool.withdraw_all("*", forget=True) == 1
        offer_array(pool)
    # Where a store is behind the pool, its keys stay taken.
    with junctura.Pool(schema="free", store=store.path) as pool, pytest.raises(junctura.AlreadyExists):
        offer_array(pool)


def test_tasks_offer_an_array_again(pool: junctura.Pool) -> None:
    async def story() -> None:
        async with junctura.aio.Pool(pool) as tasks:
            for forget in (True, True, False):
                for rank in range(2):
                    await tasks.offer_piece(FIELD[32 * rank :][:32], "shape=64x64 grid=2x1", rank, name="t")
                await tasks.withdraw_all("name=t", forget=forget)
            with pytest.raises(junctura.AlreadyExists):
                await tasks.offer_piece(FIELD[:32], "shape=64x64 grid=2x1", 0, name="t")

    asyncio.run(story())


@pytest.mark.parametrize("free", ["*", "name=a/b", "exists(name)"])
def test_a_bundle_is_offered_again(pool: junctura.Pool, free: str) -> None:
    for _ in range(3):
        with pool.bundle("run/step=6", members=2) as bundle:
            bundle.offer(b"", name="a")
            bundle.offer(b"", name="b")
        with pytest.raises(junctura.BundleClosed), pool.bundle("run/step=6", members=2):
            pass
        assert pool.withdraw_all(free, forget=True) == 2


def test_bundles_of_arrays_are_offered_again(pool: junctura.Pool) -> None:
    for _ in range(2):
        with pool.bundle("outer", members=2) as outer:
            with pool.bundle("outer/inner", members=1) as inner:
                inner.offer(FIELD, name="inner")
            outer.offer(b"", name="index")
        offer_array(pool)
        assert len(pool.list()) == 3
        assert pool.withdraw_all("*", forget=True) == 3


def test_a_whole_array_takes_no_other_piece(pool: junctura.Pool) -> None:
    offer_array(pool)
    offer_array(pool)
    half = FIELD[:32, :32]
    with pytest.raises(junctura.AlreadyExists, match="rank 0"):
        pool.offer_piece(half + 1, LAYOUT, 0, name="t")
    with pytest.raises(junctura.AlreadyExists, match="another layout or of another type"):
        pool.offer_piece(half.astype("i8"), LAYOUT, 0, name="t")
    with pytest.raises(junctura.AlreadyExists, match="another layout or of another type"):
        pool.offer_piece(FIELD, "shape=64x64", 0, name="t")
    with pytest.raises(junctura.AlreadyExists):
        pool.offer(b"", name="t")
