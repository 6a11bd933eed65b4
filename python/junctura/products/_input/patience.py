"""When a run that waits says so, and when it gives up: by a clock, and by what is known of the clients of its pool."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import junctura
from junctura.products._tasks.task_messages import BROKER, WORKER

# So long after the last progress it says what it waits for.
SAY_S = 3.0
# So long it waits while no client is connected that could offer what it waits for.
END_S = 10.0
# Where nothing changes it says so again after this time, and then after twice as long, again and again.
_AGAIN_S = 60.0
# What a workflow that is running is called in the pool of its tasks.
_WORKFLOW = "junctura workflow"
# It looks no more often than this.
_LOOK_S = 0.05


class WaitDecision(NamedTuple):
    """What is due: to say what is waited for, and to end."""

    says: bool
    ends: bool


class Patience:
    """Counts the time since something has come.

    Parameters
    ----------
    end_s
        How long to wait while nobody is left who could offer anything, in seconds.
    clock
        Says the time, in seconds.

    """

    def __init__(self, end_s: float = END_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._end_s, self._clock = end_s, clock
        self._say_s = min(SAY_S, end_s)
        self._again_s = _AGAIN_S
        self._said_at: float | None = None
        self.progressed()

    def progressed(self) -> None:
        """Something has come, or is being made."""
        self._since = self._clock()
        self._due = self._since + self._say_s
        self._is_alone = self._say_s == self._end_s

    @property
    def waited_s(self) -> float:
        """How long nothing has come."""
        return self._clock() - self._since

    @property
    def left_s(self) -> float:
        """In how many seconds there is something to look at."""
        return max(0.0, self._due - self._clock())

    def look(self, *, is_left: bool) -> WaitDecision:
        """What is to be done now that nothing has come for a while.

        Parameters
        ----------
        is_left
            Whether somebody is left who could offer what is missing. Once nobody was at two looks, and the time is
            over, the run ends.

        """
        now = self._clock()
        ends = not is_left and self._is_alone and now - self._since >= self._end_s
        self._is_alone = not is_left
        end_at = self._since + self._end_s
        self._due = end_at if now < end_at else now + max(_LOOK_S, self._end_s)
        says = self._said_at is None or now - self._said_at >= self._again_s
        if says:
            self._again_s *= 1 if self._said_at is None else 2
            self._said_at = now
        return WaitDecision(says, ends)


class PresentClients(NamedTuple):
    """The clients of a pool: the numbers of all of them, and the names of those that could offer something."""

    clients: frozenset[int]
    names: tuple[str, ...]


def present(pool: junctura.Pool) -> PresentClients:
    """Who is connected. Runs like this one offer nothing, nor does a client that was given objects and offered none.

    Raises
    ------
    Closed, Disconnected
        The pool has ended.

    """
    stat = pool.stat()
    clients: Collection[dict[str, Any]] = stat["clients"]
    could = [one["name"] for one in clients if one["client"] != pool.client and _could_offer(one)]
    if stat["clients_connected"] > len(clients):
        could.append(f"{stat['clients_connected'] - len(clients)} more")
    return PresentClients(frozenset(one["client"] for one in clients), tuple(dict.fromkeys(could)))


def _could_offer(client: dict[str, Any]) -> bool:
    if client["name"] == _WORKFLOW:
        # It may start more of them.
        return True
    is_reader = client["delivered"] > 0 and client["offered"] == 0
    return client["name"] not in (BROKER, WORKER) and not is_reader
