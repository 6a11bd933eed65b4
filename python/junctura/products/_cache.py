"""What was costly to make, kept as long as it fits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from junctura import _forks

_Made = TypeVar("_Made")


class Bounded(Generic[_Made]):
    """Things by their keys, up to so many bytes together; the one that was not wanted for longest goes first.

    Threads that want the same thing wait for the one that makes it.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[_Made, int]] = OrderedDict()
        self._lock = _forks.Lock()

    def get(self, key: Hashable, make: Callable[[], _Made], size_of: Callable[[_Made], int]) -> _Made:
        """What has this key, made if it is not there. What is larger than all that may be kept is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            made = make()
            size = size_of(made)
            if size <= self._bytes_max:
                self._kept[key] = (made, size)
                self._bytes += size
            while self._bytes > self._bytes_max:
                _, (_, gone) = self._kept.popitem(last=False)
                self._bytes -= gone
            return made
