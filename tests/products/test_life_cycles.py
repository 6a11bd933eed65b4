"""The states of inputs, pairs and products: each transition, and each event in each state."""

from __future__ import annotations

import enum
import itertools
import re
from typing import Any

import pytest

from junctura._transitions import IllegalTransitionError, TransitionTable
from junctura.products._broker import life_cycles
from junctura.products._broker.life_cycles import (
    INPUT,
    OPEN,
    PAIR,
    PRODUCT,
    InputEvent,
    InputState,
    PairEvent,
    PairState,
    ProductEvent,
    ProductState,
)

MACHINES: list[tuple[TransitionTable[Any, Any], type[enum.Enum], type[enum.Enum]]] = [
    (INPUT, InputState, InputEvent),
    (PAIR, PairState, PairEvent),
    (PRODUCT, ProductState, ProductEvent),
]
ENDS: dict[TransitionTable[Any, Any], set[Any]] = {
    INPUT: {InputState.DECODED, InputState.FAILED},
    PAIR: {PairState.MADE, PairState.FAILED, PairState.UNNEEDED},
    PRODUCT: {ProductState.MADE, ProductState.FAILED, ProductState.PRESENT},
}
EACH = [
    (table, state, event) for table, states, events in MACHINES for state, event in itertools.product(states, events)
]


@pytest.mark.parametrize(("table", "state", "event"), EACH)
def test_each_event_in_each_state_is_a_transition_or_a_named_error(
    table: TransitionTable[Any, Any], state: enum.Enum, event: enum.Enum
) -> None:
    if (state, event) in table.allowed:
        assert table.next(state, event, 7) is table.allowed[state, event]
    else:
        with pytest.raises(
            IllegalTransitionError, match=f"^{table.subject} 7: event {event.value} in state {state.value}$"
        ):
            table.next(state, event, 7)


@pytest.mark.parametrize(("table", "states", "events"), MACHINES)
def test_every_state_is_reached_every_event_is_used_and_every_life_ends(
    table: TransitionTable[Any, Any], states: type[enum.Enum], events: type[enum.Enum]
) -> None:
    first = next(iter(states))
    reached, left = {first}, [first]
    while left:
        state = left.pop()
        fresh = {after for (before, _), after in table.allowed.items() if before is state} - reached
        reached |= fresh
        left += fresh
    assert reached == set(states)
    assert {event for _, event in table.allowed} == set(events)
    for state in states:
        after = {following for (before, _), following in table.allowed.items() if before is state}
        assert (after <= {state}) == (state in ENDS[table]), "an end is left for no other state"
    assert set(OPEN).isdisjoint(ENDS[PRODUCT])


def test_the_tables_of_the_documentation_are_those_of_the_code() -> None:
    documented: dict[tuple[str, str, str], str] = {}
    columns: list[str] = []
    subject = ""
    for line in (life_cycles.__doc__ or "").splitlines():
        words = re.split(r"\s{2,}", line.strip())
        if words[0] in ("input", "pair", "product"):
            subject, columns = words[0], words[1:]
        elif columns and len(words) > len(columns):
            for state, (event, following) in itertools.product(words[0].split(", "), cells(columns, words)):
                if following != "-":
                    documented[subject, state, event] = following
    coded = {
        (table.subject, state.name, event.name): following.name
        for table, _, _ in MACHINES
        for (state, event), following in table.allowed.items()
    }
    assert documented == coded


def cells(columns: list[str], words: list[str]) -> list[tuple[str, str]]:
    """Each event with what a line has for it; a remark may follow."""
    return list(zip(columns, words[1:], strict=False))
