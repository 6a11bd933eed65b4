"""Safe forks: the child never inherits a lock of another thread, which would stay locked forever.

A child has one thread: the one that forked. If another thread held a lock at that moment, for example inside ecCodes or
an import, the lock stays locked in the child forever. Therefore a thread enters a `passage` before it takes such a
lock, and a fork waits until no other thread is in a passage:

```text
  thread   ── passage: ecCodes, imports ──────────►|
  fork             |.......... waits ..............|── fork ──► parent, child: nothing is locked
  others               | wait until the fork is done ....|──►
```
Several threads may be in a passage at once; a `Lock` is a passage for a single thread.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from types import ModuleType, TracebackType
from typing import Any, Generic, TypeVar, overload

_Owner = TypeVar("_Owner")
_Value = TypeVar("_Value")

_changed = threading.Condition()
# The number of passages of each thread; the number of threads that are forking.
_inside: dict[int, int] = {}
_forking = 0
# Packages on PyPI whose name differs from that of their module.
_DISTRIBUTIONS = {"PIL": "pillow", "mir": "mir-python", "psij": "psij-python", "yaml": "pyyaml"}
# The threads that wait for each lock, in order of arrival.
_waiting: list[tuple[int, Lock]] = []


@contextlib.contextmanager
def passage() -> Iterator[None]:
    """A section that a fork by another thread waits for. Reentrant. Also a decorator: ``@passage()``."""
    enter()
    try:
        yield
    finally:
        leave()


class lazy_property(Generic[_Owner, _Value]):  # noqa: N801 - used as a decorator, as `property` is
    """A property that is computed once for each instance; its ``__dict__`` keeps the value.

    ``functools.cached_property`` takes a lock before Python 3.12, one for all instances, and a forked child may wait
    for it forever. Without a lock two threads may compute the same value; the last one stays.
    """

    def __init__(self, compute: Callable[[_Owner], _Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type[_Owner], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[_Owner]) -> lazy_property[_Owner, _Value]: ...
    @overload
    def __get__(self, instance: _Owner, owner: type[_Owner]) -> _Value: ...
    def __get__(self, instance: _Owner | None, owner: type[_Owner]) -> lazy_property[_Owner, _Value] | _Value:
        if instance is None:
            return self
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value


def imported(name: str) -> ModuleType:
    """Imports a module in a passage: a child would wait forever for an import that another thread had begun.

    Raises
    ------
    ImportError
        The module does not exist.

    """
    with passage():
        return importlib.import_module(name)


def needed(package: str, extra: str) -> Any:
    """Imports an optional package."""
    try:
        return imported(package)
    except ImportError as error:
        raise missing(package, extra) from error


def missing(package: str, extra: str) -> ImportError:
    """Returns the error for an optional package that is not installed; it names the remedies.

    It names an extra only if pip knows this package: otherwise pip would search PyPI for it.
    """
    top = package.partition(".")[0]
    own = _DISTRIBUTIONS.get(top, top)
    whole = f", or the whole extra: pip install 'junctura[{extra}]'" if _is_installed() else ""
    return ImportError(f"{top} is not installed here: pip install {own}{whole}")


def _is_installed() -> bool:
    """Whether pip knows this package: from a wheel or a clone."""
    metadata = imported("importlib.metadata")
    try:
        metadata.distribution("junctura")
    except metadata.PackageNotFoundError:
        return False
    return True


def called(module: str, function: str, *arguments: Any, **options: Any) -> Any:
    """Returns the result of a function of a module. A fork waits for it, so that imports are complete in the child."""
    with passage():
        return getattr(imported(module), function)(*arguments, **options)


def enter() -> None:
    """Enters a passage; waits while another thread forks."""
    here = threading.get_ident()
    with _changed:
        _wait(here, None)
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
    """A reentrant passage for one thread at a time. No other thread holds it in a forked child.

    The lock is fair: threads acquire it in order of arrival.
    """

    def __init__(self) -> None:
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        here = threading.get_ident()
        with _changed:
            if _waiting or self._owner not in (None, here) or not _goes_on(here):
                self._wait_in_turn(here)
            self._owner = here
            self._depth += 1
            _inside[here] = _inside.get(here, 0) + 1

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with _changed:
            self._depth -= 1
            if not self._depth:
                self._owner = None
                _changed.notify_all()
            leave()

    def _wait_in_turn(self, here: int) -> None:
        # A waiting thread is in no passage: the thread that holds the lock may fork.
        _waiting.append((here, self))
        try:
            _wait(here, self)
        finally:
            _waiting.remove((here, self))
            _changed.notify_all()

    def is_for(self, thread: int) -> bool:
        """Whether a waiting thread may acquire the lock now."""
        if self._owner is not None:
            return self._owner == thread
        # A thread that the fork blocks would delay one that the fork waits for.
        return thread == next((other for other, lock in _waiting if lock is self and _goes_on(other)), None)


def _goes_on(thread: int) -> bool:
    # A thread that is inside continues: a fork waits for it.
    return not _forking or thread in _inside


def _wait(here: int, lock: Lock | None) -> None:
    while not (_goes_on(here) and (lock is None or lock.is_for(here))):
        _changed.wait()


def _before() -> None:
    global _forking
    _changed.acquire()
    _forking += 1
    # Threads that are inside have priority now.
    _changed.notify_all()
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
    # Threads that waited here do not exist in the child.
    _forking, _changed = 0, threading.Condition()
    _waiting.clear()


# A fork acquires such locks. Handlers run in reverse order of registration: threads that the fork waits for here may
# still need them.
for _name in ("logging", "concurrent.futures.thread"):
    importlib.import_module(_name)
os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
