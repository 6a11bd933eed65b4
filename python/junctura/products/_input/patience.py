"""When a waiting run reports its state, and when it ends: from a clock, and from the clients of its pool."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import junctura
from junctura.products._tasks.task_messages import BROKER, WORKER

# Time after the last progress until it reports the missing inputs.
SAY_S = 3.0
# Time that it waits while no connected client could offer the missing inputs.
END_S = 10.0
# Without changes it repeats the report after this time, and then at doubling intervals.
_AGAIN_S = 60.0
# The client name of a running workflow in the pool of its tasks.
_WORKFLOW = "junctura workflow"
# Minimum interval between checks.
_LOOK_S = 0.05


class WaitDecision(NamedTuple):
    """The due actions: to report the missing inputs, and to end."""

    says: bool
    ends: bool


class Patience:
    """Measures the time since the last input.

    Parameters
    ----------
    end_s
        Seconds to wait while no connected client could offer the missing inputs.
    clock
        Returns the time in seconds.

    """

    def __init__(self, end_s: float = END_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._end_s, self._clock = end_s, clock
        self._say_s = min(SAY_S, end_s)
        self._again_s = _AGAIN_S
        self._said_at: float | None = None
        self.progressed()

    def progressed(self) -> None:
        """Records that an input has arrived, or a product is being made."""
        self._since = self._clock()
        self._due = self._since + self._say_s
        self._is_alone = self._say_s == self._end_s

    @property
    def waited_s(self) -> float:
        """Returns the time since the last input."""
        return self._clock() - self._since

    @property
    def left_s(self) -> float:
        """Returns the seconds until the next check."""
        return max(0.0, self._due - self._clock())

    def look(self, *, is_left: bool) -> WaitDecision:
        """Returns the due actions when no input has arrived for a while.

        Parameters
        ----------
        is_left
            Whether a connected client could offer the missing inputs. The run ends when there was no such client at two
            checks, and the time has passed.

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
    """The clients of a pool: the numbers of all, and the names of those that could offer something."""

    clients: frozenset[int]
    names: tuple[str, ...]


def present(pool: junctura.Pool) -> PresentClients:
    """Returns the connected clients. Runs like this one offer nothing, nor do clients that have received objects and
    offered none.

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
        # It may start further clients.
        return True
    is_reader = client["delivered"] > 0 and client["offered"] == 0
    return client["name"] not in (BROKER, WORKER) and not is_reader
