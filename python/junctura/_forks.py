"""What a fork waits for, so that the child never inherits a lock that nobody releases.

A child has one thread: the one that forked. If another thread held a lock at that moment, also one inside ecCodes or
the import of a module, it stays locked in the child for ever. So a thread enters a `passage` before it takes such a
lock, and a fork waits until no other thread is in one:

```text
  thread   ── passage: ecCodes, imports ──────────►|
  fork             |.......... waits ..............|── fork ──► parent, child: nothing is locked
  others               | wait until the fork is done ....|──►
```
Threads do not exclude each other in a passage; `Lock` is one that does.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from types import TracebackType

_changed = threading.Condition()
# How many passages each thread is in, by its number; how many threads are forking.
_inside: dict[int, int] = {}
_forking = 0


@contextlib.contextmanager
def passage() -> Iterator[None]:
    """What a fork by another thread waits for. A thread may enter several times."""
    enter()
    try:
        yield
    finally:
        leave()


def enter() -> None:
    """Enters a passage; waits while another thread forks."""
    here = threading.get_ident()
    with _changed:
        # A thread that is inside goes on: the fork waits for it.
        while _forking and here not in _inside:
            _changed.wait()
        _inside[here] = _inside.get(here, 0) + 1


def leave() -> None:
    """Leaves a passage."""
    here = threading.get_ident()
    with _changed:
        _inside[here] -= 1
        if not _inside[here]:
            del _inside[here]
            _changed.notify_all()


class Lock:
    """A lock that no other thread holds when a process is forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        enter()
        self._lock.acquire()

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._lock.release()
        leave()


def _before() -> None:
    global _forking
    _changed.acquire()
    _forking += 1
    here = threading.get_ident()
    while _inside.keys() - {here}:
        _changed.wait()


def _in_parent() -> None:
    global _forking
    _forking -= 1
    _changed.notify_all()
    _changed.release()


def _in_child() -> None:
    global _forking, _changed
    # Threads that waited here are not in the child.
    _forking, _changed = 0, threading.Condition()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
