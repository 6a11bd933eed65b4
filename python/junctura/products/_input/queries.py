"""What all recipes ask a pool for: one follow, or as many as their selectors take.

A selector may have so many bytes and so many values (docs/formats/selector.md), and some hundred recipes that have
little in common need more.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from typing_extensions import Self

import junctura
from junctura._selectors import joined


class InputFollows:
    """Follows a pool with several selectors at once. What two of them find comes twice.

    Parameters
    ----------
    pool
        Which.
    selectors
        Each no longer than a selector may be.
    window
        How many objects may be held at once, in all follows together; but at least some in each.
    until_live
        Whether to end when all has come that is there now.

    """

    def __init__(self, pool: junctura.Pool, selectors: Iterable[str], window: int, *, until_live: bool = False) -> None:
        texts = list(joined(sorted(set(selectors))))
        share = max(window // max(1, len(texts)), min(window, 16))
        self._pool = pool
        with contextlib.ExitStack() as stack:
            follows = (pool.follow(text, window=share, gaps="ignore", until_live=until_live) for text in texts)
            self._follows = [stack.enter_context(follow) for follow in follows]
            # All of them are there: they end with this.
            self._stack = stack.pop_all()

    def sync(self) -> None:
        """All that was offered before is here, as far as the window goes, unless the server has ended."""
        with contextlib.suppress(junctura.Closed, junctura.Disconnected):
            self._pool.sync()

    def take(self, each: Callable[[junctura.Object], None]) -> tuple[int, bool]:
        """Takes all that have come; returns how many that were, and whether none can come any more."""
        found = [take_all(follow, each) for follow in self._follows]
        # Those that end when all has come do so one by one; a server that ends, ends all of them.
        return sum(count for count, _ in found), all(has_ended for _, has_ended in found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stack.close()


def take_all(items: Any, take: Callable[[Any], None]) -> tuple[int, bool]:
    """Takes all that have come; returns how many that were, and whether none can come any more."""
    for count in itertools.count():
        try:
            item = items.next(timeout=0)
        except junctura.Timeout:
            return count, False
        except (junctura.Closed, junctura.Disconnected):
            # What was decoded can still be used.
            return count, True
        if item is None:
            return count, True
        take(item)
    raise AssertionError("counting has no end")
