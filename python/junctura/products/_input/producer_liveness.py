"""Detects that the last of some producers has disconnected: then no more objects arrive."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import junctura
from junctura.products._tasks.task_messages import BROKER, WORKER

if TYPE_CHECKING:
    from typing_extensions import Self


class ProducerWatch:
    """Observes clients that connect to a pool and disconnect.

    Parameters
    ----------
    pool
        The pool.
    names
        Names of the producers; ``*`` matches anything. Without names, there is nothing to wait for.

    """

    def __init__(self, pool: junctura.Pool, names: Sequence[str]) -> None:
        self._names = set(names)
        # The broker's own client is not a producer.
        self._own = pool.client
        self._events = pool.subscribe("", kinds=["joined", "left"]) if names else None
        # The connected clients, and the names that have occurred.
        self._there: set[int] = set()
        self._seen: set[str] = set()
        self._is_given_up = False
        for one in pool.stat()["clients"] if names else []:
            self._joined(one["client"], one["name"])

    def _joined(self, client: int, name: str) -> None:
        patterns = [pattern for pattern in self._names if fnmatch.fnmatchcase(name, pattern)]
        if patterns and client != self._own and name not in (WORKER, BROKER):
            self._there.add(client)
            self._seen.update(patterns)

    @property
    def are_unseen(self) -> bool:
        """Whether it waits for producers, none of which has been connected since the start."""
        return self._events is not None and not self._seen and not self._is_given_up

    def give_up(self) -> None:
        """Records that they were connected before the start: as if the last one had disconnected just now."""
        self._is_given_up = True

    @property
    def names(self) -> tuple[str, ...]:
        """The connected producers."""
        return tuple(sorted(self._names))

    def all_are_gone(self) -> bool:
        """Whether a client of each name has been connected, and none is connected now."""
        if self._events is None:
            return False
        while True:
            try:
                event = self._events.next(timeout=0)
            except junctura.Timeout:
                return not self._there and (self._is_given_up or len(self._seen) == len(self._names))
            except (junctura.Closed, junctura.Disconnected):
                return True
            if event is None:
                return True
            self._take(event)

    def _take(self, event: junctura.Event) -> None:
        client = event.client
        if client is None:
            return
        if event.kind == "joined":
            self._joined(client.client, client.name)
        else:
            self._there.discard(client.client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._events is not None:
            # The server may have ended.
            with contextlib.suppress(junctura.Closed, junctura.Disconnected):
                self._events.close()
