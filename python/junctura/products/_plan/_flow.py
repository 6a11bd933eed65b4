"""The flow of fields through a plan: every branch gets every field, and each action is counted and timed.

A field on which an action fails is reported and dropped; all other fields continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import junctura
from junctura._progress import worded
from junctura.products._plan._actions import Action
from junctura.products._plan._item import Item


@dataclass
class Counted:
    """An action, and its statistics.

    Attributes
    ----------
    name
        As in the plan.
    taken, given, failed
        Number of fields.
    seconds
        Total time for all fields.

    """

    name: str
    action: Action
    taken: int = 0
    given: int = 0
    failed: int = 0
    seconds: float = 0.0


@dataclass
class Flow:
    """A sequence of actions, followed by branches that each get all results.

    Attributes
    ----------
    told
        Called with each error.

    """

    actions: list[Counted] = field(default_factory=list)
    branches: list[Flow] = field(default_factory=list)
    told: Callable[[str], None] = print

    def take(self, items: Sequence[Item], first: int = 0) -> None:
        """Passes fields through, from this action on."""
        for counted in self.actions[first:]:
            items = [made for item in items for made in self._through(counted, item)]
        for branch in self.branches:
            branch.take(items)

    def end(self) -> None:
        """Ends the flow: passes on the fields that were kept back."""
        for at, counted in enumerate(self.actions):
            self.take(self._timed(counted, counted.action.end, counted.name), at + 1)
        for branch in self.branches:
            branch.end()

    @property
    def is_unsettled(self) -> bool:
        """Whether a processed field would be lost if the program were killed now."""
        return any(counted.action.is_unsettled for counted in self.all_counted())

    def settle(self) -> None:
        """Makes processed fields persistent; an error ends the plan, so that unsaved fields are redelivered."""
        for counted in self.all_counted():
            if counted.action.is_unsettled:
                begun = time.monotonic()
                counted.action.settle()
                counted.seconds += time.monotonic() - begun

    def all_counted(self) -> list[Counted]:
        """Returns all actions, followed by those of branches."""
        return self.actions + [counted for branch in self.branches for counted in branch.all_counted()]

    def _through(self, counted: Counted, item: Item) -> Sequence[Item]:
        counted.taken += 1
        return self._timed(counted, lambda: counted.action.take(item), item.named)

    def _timed(self, counted: Counted, work: Callable[[], Sequence[Item]], about: str) -> Sequence[Item]:
        begun = time.monotonic()
        try:
            made = work()
        except (junctura.Error, ImportError) as error:
            counted.failed += 1
            self.told(f"{counted.name}: {about}: {worded(error)}")
            made = []
        counted.seconds += time.monotonic() - begun
        counted.given += len(made)
        return made
