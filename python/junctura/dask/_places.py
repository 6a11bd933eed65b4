"""References to pools and stores in tasks: serialized by address, opened once in each process that runs tasks."""

from __future__ import annotations

import json
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from junctura import _forks
from junctura._native import Object, Pool, Store, Stored
from junctura.dask._fetched import Fetched
from junctura.errors import Closed, Disconnected, NotFound, Timeout

_Opened = TypeVar("_Opened", bound="Pool | Store")
_Result = TypeVar("_Result")
# Number of connections that stay open in a process without a caller.
_KEPT_MAX = 8


@dataclass(frozen=True)
class Reference:
    """The reference to an object: in a store with its version, in a pool to the newest version."""

    key: str
    schema: str
    version: str


class _Kept:
    """The pools and stores that this process has open, for tasks or for the caller that created the reference."""

    def __init__(self) -> None:
        self._lock = _forks.Lock()
        self._of_tasks: OrderedDict[object, Any] = OrderedDict()
        self._of_callers: weakref.WeakValueDictionary[object, Any] = weakref.WeakValueDictionary()

    def lend(self, place: object, opened: object) -> None:
        """Lets tasks of this process use a pool or store that their creator has open."""
        with self._lock:
            self._of_callers[os.getpid(), place] = opened

    def get(self, place: object, open_: Callable[[], _Opened]) -> _Opened:
        """Returns the object open at a place; threads that request the same place open it once."""
        # A forked child has its own connections.
        name = (os.getpid(), place)
        with self._lock:
            found = self._of_callers.get(name) or self._of_tasks.get(name)
            if found is None:
                found = self._of_tasks[name] = open_()
            if name in self._of_tasks:
                self._of_tasks.move_to_end(name)
            while len(self._of_tasks) > _KEPT_MAX:
                self._of_tasks.popitem(last=False)
            return cast("_Opened", found)

    def keep(self, place: object, opened: object) -> None:
        """Lets tasks of this process use an object that was opened for them."""
        with self._lock:
            self._of_tasks[os.getpid(), place] = opened

    def forget(self, place: object, opened: object) -> None:
        """Forgets an object that has ended."""
        name = (os.getpid(), place)
        with self._lock:
            for kept in (self._of_callers, self._of_tasks):
                if kept.get(name) is opened:
                    del kept[name]


_kept = _Kept()


@dataclass(frozen=True)
class InPool:
    """A pool, with the options to open it again."""

    url: str
    # Values are strings, numbers, None, or tuples of such values.
    options: tuple[tuple[str, Any], ...]

    @staticmethod
    def of(pool: Pool) -> InPool:
        """Returns the reference to an open pool; tasks of this process use the pool while its creator does."""
        (url,), options = pool.__getnewargs_ex__()
        plain = {name: _plain(value) for name, value in options.items()}
        place = InPool(url, tuple(sorted(plain.items())))
        _kept.lend(place, pool)
        return place

    def keep(self, pool: Pool) -> None:
        """Keeps a pool that has no other owner."""
        _kept.keep(self, pool)

    def open(self) -> Pool:
        """Returns the pool, for this process."""
        return _kept.get(self, lambda: Pool(self.url, **dict(self.options)))

    def fetch(self, reference: Reference) -> Object:
        """Returns an object in its newest version.

        Raises
        ------
        NotFound, Gone
            The object does not exist any more.

        """
        return self.using(lambda pool: self._demand(pool, reference))

    def using(self, call: Callable[[Pool], _Result]) -> _Result:
        """Returns the result of a call with the pool; if the pool has ended, opens it again."""
        pool = self.open()
        try:
            return call(pool)
        except (Closed, Disconnected):
            _kept.forget(self, pool)
            return call(self.open())

    def _demand(self, pool: Pool, reference: Reference) -> Object:
        try:
            return pool.demand(reference.key, schema=reference.schema, timeout=0)
        except Timeout as error:
            raise NotFound(reference.key, f"it is not in {self.url} any more") from error


@dataclass(frozen=True)
class InStore:
    """A store, by its folder or URL."""

    url: str

    @staticmethod
    def of(store: Store) -> InStore:
        _, (where,) = store.__reduce__()
        place = InStore(str(where))
        _kept.lend(place, store)
        return place

    def open(self) -> Store:
        """Returns the store, for this process."""
        return _kept.get(self, lambda: Store(self.url))

    def fetch(self, reference: Reference) -> Stored:
        """Returns an object as it was archived by this commit.

        Raises
        ------
        NotFound
            The object does not exist any more.

        """
        store = self.open()
        schema = next(schema for schema in store.schemas if schema.name == reference.schema)
        words = schema.parse_key(reference.key)
        selector = ",".join(f"{name}={_quoted(value)}" for name, value in words.items())
        for obj in store.list(selector, all_versions=True):
            if obj.key == reference.key and str(obj.commit) == reference.version:
                return obj
        raise NotFound(reference.key, f"it is not in {self.url} any more")


Place = InPool | InStore


class Fetch:
    """Fetches objects of a place, in any process that calls it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        # The name of the Dask tasks.
        self.__name__ = "fetch"

    def __call__(self, reference: Reference) -> Fetched:
        return Fetched(self.place.fetch(reference))


class Objects:
    """Objects by index; serialized as references."""

    def __init__(self, place: Place, references: list[Reference]) -> None:
        self._place, self._references = place, references

    def __getitem__(self, number: int) -> Object | Stored:
        return self._place.fetch(self._references[number])


def _plain(value: Any) -> Any:
    """Returns an option as a comparable, hashable and serializable value; a schema may be a list of options."""
    if isinstance(value, list | tuple):
        return tuple(_plain(one) for one in value)
    return str(value.absolute()) if isinstance(value, Path) else value


def _quoted(value: Any) -> str:
    # Selectors quote as JSON does.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
