"""When a run that waits says so, and when it ends: by a clock that is given to it, and by who is in its pool."""

from __future__ import annotations

import itertools

import pytest

import junctura
from junctura.products._input.patience import END_S, SAY_S, Patience, present
from junctura.workflow._engine.selector_hint import NAME


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def looks(patience: Patience, clock: Clock, until: float, *, is_left: bool) -> tuple[list[float], list[float]]:
    """When it says something, and when it would end, if it is asked whenever it wants to be."""
    said, ended = [], []
    begun = clock.now
    while clock.now < begun + until:
        clock.now += patience.left_s
        look = patience.look(is_left=is_left)
        said += [clock.now - begun] if look.says else []
        ended += [clock.now - begun] if look.ends else []
    return said, ended


def test_it_says_what_it_waits_for_soon_and_then_ever_more_rarely() -> None:
    clock = Clock()
    said, ended = looks(Patience(clock=clock), clock, 1000, is_left=True)
    assert (said[0], ended) == (SAY_S, []) == (3.0, [])
    gaps = [later - before for before, later in itertools.pairwise(said)]
    assert gaps == [67.0, 120.0, 240.0, 480.0]


def test_it_ends_when_nobody_is_left() -> None:
    clock = Clock()
    said, ended = looks(Patience(clock=clock), clock, END_S, is_left=False)
    assert (said, ended) == ([3.0], [10.0])


def test_one_who_leaves_late_ends_it_one_look_later() -> None:
    clock = Clock()
    patience = Patience(20, clock)
    assert looks(patience, clock, 20, is_left=True)[1] == []
    assert looks(patience, clock, 40, is_left=False)[1] == [40.0]


def test_what_comes_begins_it_anew() -> None:
    clock = Clock()
    patience = Patience(clock=clock)
    clock.now += 9
    assert patience.left_s == 0
    patience.progressed()
    assert (patience.left_s, patience.waited_s) == (3.0, 0.0)
    clock.now += 7
    assert patience.waited_s == 7.0


def test_without_patience_it_ends_at_the_first_look() -> None:
    clock = Clock()
    patience = Patience(0, clock)
    assert patience.left_s == 0 and patience.look(is_left=False).ends
    # It does not look all the time.
    assert patience.left_s > 0


@pytest.mark.parametrize("is_reader", [True, False])
def test_clients_that_could_offer_something_are_told_from_others(is_reader: bool) -> None:
    with junctura.Pool(schema="free") as pool, junctura.Pool(pool.url, name="model") as model:
        pools = [junctura.Pool(pool.url, name=name) for name in ("junctura run", "products-worker", "viewer")]
        model.offer(b"field", name="x")
        if is_reader:
            pools[2].demand(name="x").release()
        pools[2].sync()
        here = present(pool)
        assert here.names == (("model",) if is_reader else ("model", "viewer"))
        assert model.client in here.clients and pools[0].client in here.clients
        for one in pools:
            one.close()


def test_a_workflow_may_start_more_producers() -> None:
    with junctura.Pool(schema="free") as pool, junctura.Pool(pool.url, name=NAME) as workflow:
        pool.offer(b"field", name="x")
        workflow.demand(name="x").release()
        with junctura.Pool(pool.url) as other:
            assert NAME in present(other).names
