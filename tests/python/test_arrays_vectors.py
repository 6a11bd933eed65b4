"""Arrays through a pool, judged by vectors that others made element by element, and many ranks to few."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import junctura

VECTORS = Path(__file__).resolve().parents[3] / "shared/vectors/vectors.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text())["cases"] if VECTORS.exists() else []


def layout(shape: tuple[int, ...], said: dict[str, Any]) -> junctura.Layout:
    dealt = {"grid": said["grid"], "block": said["block"], "ranks": said["rank_order"], "order": said["data_order"]}
    return junctura.Layout(shape=shape, **dealt)


def split(field: npt.NDArray[Any], one: junctura.Layout, rank: int) -> npt.NDArray[Any]:
    """What a rank has, by its indices of each dimension."""
    return np.asarray(field[np.ix_(*one.indices(rank))])


def digest(parts: Iterable[npt.NDArray[Any]], order: Any) -> str:
    """Of all memories behind each other, as the vectors say it."""
    of_all = hashlib.sha256()
    for part in parts:
        of_all.update(part.astype("<i8").ravel(order).tobytes())
    return of_all.hexdigest()


def test_there_are_as_many_vectors_as_there_were() -> None:
    if not CASES:
        pytest.skip("there are no shared vectors")
    assert len(CASES) == 42
    assert [case["name"] for case in CASES if not case["full"]] == ["big_1d", "big_2d", "big_3d", "big_4d"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_vector_goes_through_a_pool(pool: junctura.Pool, case: dict[str, Any]) -> None:
    shape = tuple(case["shape"])
    source, target = layout(shape, case["producer"]), layout(shape, case["consumer"])
    # The value of an element is its number in C order.
    field = np.arange(np.prod(shape), dtype="i8").reshape(shape)
    given = [split(field, source, rank) for rank in range(source.ranks)]
    assert digest(given, source.order) == case["producer_sha256"]
    for rank, mine in enumerate(given):
        pool.offer_piece(mine, source, rank, name="t")
    taken = [pool.demand_array("name=t", target, rank) for rank in range(target.ranks)]
    assert [list(mine.shape) for mine in taken] == case["consumer_local_shapes"]
    assert all(mine.flags.f_contiguous if target.order == "F" else mine.flags.c_contiguous for mine in taken)
    assert digest(taken, target.order) == case["consumer_sha256"]


# What the designers of UDJ moved.
MANY: dict[str, Any] = {"grid": (16, 12)}
FEW: dict[str, Any] = {"grid": (4, 4)}


def owners(extent: int, ranks: int, block: int) -> npt.NDArray[np.intp]:
    """Whose each index of a dimension is."""
    return np.arange(extent) // block % ranks


def shared(extent: int, giving: int, taking: int, block: int) -> npt.NDArray[np.intp]:
    """How many indices of a dimension each has that each wants."""
    matrix = np.zeros((giving, taking), int)
    np.add.at(matrix, (owners(extent, giving, block), owners(extent, taking, block)), 1)
    return matrix


def test_192_ranks_plan_for_16() -> None:
    shape = (12_000, 10_000)
    source, target = (junctura.Layout(shape=shape, block=(256, 256), **grid) for grid in (MANY, FEW))
    assert (source.ranks, target.ranks) == (192, 16)
    rows, columns = shared(shape[0], 16, 4, 256), shared(shape[1], 12, 4, 256)
    elements = np.kron(rows, columns).reshape(16, 12, 4, 4)
    for rank, at in enumerate(itertools.product(range(16), range(12))):
        found = source.plan(target, rank, side="from").partners
        expected = elements[at].ravel().tolist()
        assert found == [(peer, count) for peer, count in enumerate(expected) if count]
        # A block goes to one rank as a whole, since blocks of both have the same size.
        assert len(found) == 1
    for rank in range(16):
        plan = source.plan(target, rank)
        of_rank = elements[:, :, rank // 4, rank % 4].ravel().tolist()
        assert plan.partners == [(peer, count) for peer, count in enumerate(of_rank) if count]
        assert len(plan.partners) == 12
        blocks = (np.ceil(np.bincount(owners(extent, 4, 256), minlength=4) / 256).astype(int) for extent in shape)
        of_rows, of_columns = blocks
        assert plan.count == of_rows[rank // 4] * of_columns[rank % 4]


@pytest.mark.parametrize("storage", ["dense", "packed"])
def test_192_ranks_give_to_16(pool: junctura.Pool, storage: Any) -> None:
    field = np.arange(16 * 24 * 12 * 20, dtype="f8").reshape(16 * 24, 12 * 20)
    source = junctura.Layout(shape=field.shape, block=(8, 8), **MANY)
    target = junctura.Layout(shape=field.shape, block=(8, 8), storage=storage, **FEW)
    for rank in range(source.ranks):
        assert pool.list() == []
        pool.offer_piece(split(field, source, rank), source, rank, name="t")
    for rank in range(target.ranks):
        mine = pool.demand_array("name=t", target, rank)
        expected = split(field, target, rank)
        if storage == "packed":
            # Block behind block: rows of blocks, blocks, rows, columns.
            rows, columns = (extent // 8 for extent in expected.shape)
            mine = mine.reshape(rows, columns, 8, 8).swapaxes(1, 2).reshape(expected.shape)
        np.testing.assert_array_equal(mine, expected)
