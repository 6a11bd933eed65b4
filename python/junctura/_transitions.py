"""Transition tables of state machines: the next state for each event, and the error for an illegal event."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Generic, TypeVar

StateT = TypeVar("StateT", bound=enum.Enum)
EventT = TypeVar("EventT", bound=enum.Enum)


class IllegalTransitionError(RuntimeError):
    """An event occurred in a state that does not allow it: a defect of Junctura, not of its input."""


class TransitionTable(Generic[StateT, EventT]):
    """The transitions of one machine; every pair of state and event that is not listed is illegal.

    Parameters
    ----------
    subject
        The kind of thing that has the states, for the error.
    allowed
        The next state by state and event.

    """

    def __init__(self, subject: str, allowed: Mapping[tuple[StateT, EventT], StateT]) -> None:
        self.subject, self.allowed = subject, dict(allowed)

    def next(self, state: StateT, event: EventT, identity: object) -> StateT:
        """Returns the state that follows.

        Raises
        ------
        IllegalTransitionError
            The table has no such transition.

        """
        following = self.allowed.get((state, event))
        if following is None:
            raise IllegalTransitionError(f"{self.subject} {identity}: event {event.value} in state {state.value}")
        return following
