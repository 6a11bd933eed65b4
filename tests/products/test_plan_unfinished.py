"""Arrays whose ranks leave, or err, before all pieces are there: a plan names them, and the ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker_runs import BASE
from plan_runs import Work, by_command, through

import junctura
from junctura.products._plan._unfinished import Unfinished

ABOUT = {word: value for word, value in BASE.items() if word != "levelist"} | {"levtype": "sfc", "param": "sst"}
LAYOUT = "shape=19x36 grid=1x2"
PLAN = """
sources: [{follow: param=sst}]
actions: [{aggregate: {grid: 10/10, units: K}}, {encode: {bits: 16}}]
sinks: [{file: {format: csv, name: "{step}.csv"}}]
"""


def piece(
    pool: junctura.Pool, rank: int, layout: str = LAYOUT, shape: tuple[int, int] = (19, 18), **words: Any
) -> None:
    pool.offer_piece(np.full(shape, 280.0), layout, rank, {**ABOUT, **words}, retention=junctura.Released(1))


def a_rank_dies(pool: junctura.Pool) -> None:
    for step, ranks in ((3, (0, 1)), (6, (0,)), (9, (1,))):
        for rank in ranks:
            piece(pool, rank, step=step)
    # Of this the plan asks nothing.
    piece(pool, 1, step=3, param="sd")


def a_rank_errs(pool: junctura.Pool) -> None:
    for rank in (0, 1):
        piece(pool, rank, step=3)
    piece(pool, 0, step=6)
    with pytest.raises(junctura.AlreadyExists):
        pool.offer_piece(np.zeros((19, 18)), LAYOUT, 0, {**ABOUT, "step": 6})
    piece(pool, 0, step=9)
    with pytest.raises(junctura.Conflict):
        piece(pool, 1, "shape=19x18 grid=1x2", (19, 9), step=9)


@pytest.mark.parametrize(("work", "made", "lacking"), [(a_rank_dies, 1, {6: 1, 9: 0}), (a_rank_errs, 1, {6: 1, 9: 1})])
def test_arrays_that_stay_unfinished_are_named_with_their_ranks(
    tmp_path: Path, work: Work, made: int, lacking: dict[int, int]
) -> None:
    (ran,) = through(tmp_path, PLAN, work)
    assert (ran.fields, ran.failed, ran.unfinished) == (made, 2, 2)
    expected = [
        f"array param=sst,step={step},number=1: of 2 pieces, rank {rank} did not offer theirs"
        for step, rank in lacking.items()
    ]
    assert sorted(ran.told) == expected


def test_the_command_ends_with_1_and_names_them(tmp_path: Path) -> None:
    done = by_command(tmp_path, PLAN, a_rank_dies, "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["fields"], said["failed"], said["unfinished"]) == (1, 1, 2, 2)
    assert all(f"array param=sst,step={step}" in done.stderr for step in (6, 9))
    done = by_command(tmp_path, PLAN, a_rank_dies, "--quiet")
    assert "2 arrays stayed unfinished:\n  array param=sst,step=6" in done.stdout


def test_what_is_given_up_or_finished_later_is_known() -> None:
    with junctura.Pool(schema="mars") as pool, Unfinished(pool, "param=sst") as unfinished:
        with junctura.Pool(pool.url, name="rank 0") as rank:
            for step in (3, 6, 9):
                piece(rank, 0, step=step)
            unfinished.watch()
            # It may still offer the rest.
            assert unfinished.lost() == []
        pool.sync()
        unfinished.watch()
        (bundle,) = [one for one in pool.bundles("exists(piece_of)") if "step=6" in str(one.attributes["piece_of"])]
        with junctura.Pool(pool.url, name="rank 0 again") as again:
            again.bundle(bundle.path, bundle.attributes, members=3, schema="piece").abort()
            piece(again, 1, step=9)
        pool.sync()
        named = "array param=sst,step={},number=1: of 2 pieces, rank 1 did not offer theirs"
        assert unfinished.lost() == [named.format(3), named.format(6)]


def test_of_many_ranks_some_are_named() -> None:
    with junctura.Pool(schema="mars") as pool, Unfinished(pool, "") as unfinished:
        with junctura.Pool(pool.url, name="rank 0") as rank:
            piece(rank, 0, "shape=19x40 grid=1x40", (19, 1), step=3)
        pool.sync()
        (told,) = unfinished.lost()
        assert told.startswith("array param=sst,step=3,number=1: of 40 pieces, ranks 1, 2, 3") and told.endswith(
            "16, ... did not offer theirs"
        )
