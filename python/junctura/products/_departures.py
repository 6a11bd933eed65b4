"""When the last of some producers has left: then nothing more comes of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from types import TracebackType

from typing_extensions import Self

import junctura


class Departures:
    """Watches who joins a pool and who leaves it.

    Parameters
    ----------
    pool
        Where.
    names
        Of the producers; ``*`` stands for anything. Without names, nobody is waited for.

    """

    def __init__(self, pool: junctura.Pool, names: Sequence[str]) -> None:
        self._names = names
        self._events = pool.subscribe("", kinds=["joined", "left"]) if names else None
        # Those who are there, and the names that somebody has had.
        self._there = {one["client"] for one in pool.stat()["clients"] if self._is_one(one["name"])} if names else set()
        self._seen = {name for one in (pool.stat()["clients"] if names else []) for name in self._of(one["name"])}

    def _of(self, name: str) -> list[str]:
        return [pattern for pattern in self._names if fnmatch.fnmatchcase(name, pattern)]

    def _is_one(self, name: str) -> bool:
        return bool(self._of(name))

    def all_are_gone(self) -> bool:
        """Whether somebody of each name has been there, and nobody of them is."""
        if self._events is None:
            return False
        while True:
            try:
                event = self._events.next(timeout=0)
            except junctura.Timeout:
                return not self._there and len(self._seen) == len(self._names)
            except (junctura.Closed, junctura.Disconnected):
                return True
            if event is None:
                return True
            self._take(event)

    def _take(self, event: junctura.Event) -> None:
        client = event.client
        if client is None or not self._is_one(client.name):
            return
        if event.kind == "joined":
            self._there.add(client.client)
            self._seen.update(self._of(client.name))
        else:
            self._there.discard(client.client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._events is not None:
            self._events.close()
