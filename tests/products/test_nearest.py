"""What a run waits for, in words, and what a pool has that is nearest to it."""

from __future__ import annotations

from typing import Any

import pytest
from broker_runs import BASE

import junctura
from junctura.products._input.nearest import in_words, nearest
from junctura.products._recipe.mars_words import Key

KEY: dict[str, Any] = {"param": "t", "levelist": 850, "step": 6, "number": 1}


@pytest.fixture(scope="module")
def pool() -> Any:
    with junctura.Pool(schema="mars") as pool:
        for param in ("t", "gh"):
            for step in (0, 6, 12, 18):
                for number in (1, 2):
                    about = {**BASE, "param": param, "step": step, "number": number, "levelist": 850}
                    pool.offer(b"field", about)
        pool.offer(b"field", {**BASE, "param": "2t", "step": 0, "levtype": "sfc"})
        yield pool


@pytest.mark.parametrize(
    ("given", "text", "is_of_its_producer"),
    [
        ({"step": 7}, "step=7 is not there; with levelist=850,number=1,param=t there is step=0/6/12/18", True),
        ({"number": 3}, "number=3 is not there; with levelist=850,param=t,step=6 there is number=1/2", True),
        ({"levelist": 500}, "levelist=500 is not there; with number=1,param=t,step=6 there is levelist=850", True),
        ({"param": "tt"}, "param=tt is not there; with levelist=850,number=1,step=6 there is param=t/gh", True),
        # Another model may bring it.
        ({"param": "u"}, "param=u is not there; with levelist=850,number=1,step=6 there is param=gh/t", False),
        (
            {"date": "20261121"},
            "date=20261121 is not there; with levelist=850,number=1,param=t,step=6 there is date=20261120",
            False,
        ),
        (
            {"step": 7, "number": 3},
            "of param=t there is no number=3 (there is 1/2), no step=7 (there is 0/6/12/18)",
            False,
        ),
        ({"param": "u", "step": 7}, "param=u is not there; there is param=2t/gh/t", False),
    ],
)
def test_of_a_field_that_is_missing_the_nearest_are_named(
    pool: junctura.Pool, given: dict[str, Any], text: str, is_of_its_producer: bool
) -> None:
    (near,) = nearest(pool, [Key({**KEY, **given})])
    assert (near.text, near.is_of_its_producer) == (text, is_of_its_producer)


def test_of_many_fields_one_of_each_parameter_is_looked_for(pool: junctura.Pool) -> None:
    keys = [Key({**KEY, "param": param, "step": step}) for param in ("t", "gh") for step in (7, 8, 9)]
    assert [near.text[:17] for near in nearest(pool, keys)] == ["step=7 is not the"] * 2
    assert nearest(pool, []) == []


def test_of_very_many_values_the_nearest_are_shown() -> None:
    with junctura.Pool(schema="mars") as pool:
        for step in range(0, 300, 3):
            pool.offer(b"field", {**BASE, "param": "t", "step": step})
        (near,) = nearest(pool, [Key({**KEY, "step": 100})])
        assert near.text.endswith("there is step=90/93/96/99/102/105/108/111 and 92 more"), near.text


def test_an_empty_pool_says_so() -> None:
    with junctura.Pool(schema="mars") as pool:
        (near,) = nearest(pool, [Key(KEY)])
        assert near == ("param=t is not there; there is no field at all", False)


def test_fields_are_said_in_one_selector_if_they_are_all_of_it() -> None:
    every = [Key(param="t", step=step, number=number) for step in (6, 12) for number in (1, 2, 3)]
    assert in_words(every) == "number=1/2/3,param=t,step=6/12"
    assert in_words(every[1:]) == "number=2,param=t,step=6 and 4 more"
    assert in_words([]) == "nothing"
    many = [Key(param="t", step=step) for step in range(20)]
    assert in_words(many) == "param=t,step=0/1/2/3/4/5/6/7/... (20 values)"
