"""The queries of all recipes to a pool: one follow, or as many as their selectors need.

The size and the number of values of a selector are limited (docs/formats/selector.md), and some hundred dissimilar
recipes exceed the limits.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import junctura
from junctura._selectors import joined

if TYPE_CHECKING:
    from typing_extensions import Self


class InputFollows:
    """Follows a pool with several selectors at once. Objects that match two arrive twice.

    Parameters
    ----------
    pool
        The pool.
    selectors
        Each within the size limit of a selector.
    window
        Maximum number of held objects, in all follows together; but at least some in each.
    until_live
        Whether to end when all existing objects have been received.

    """

    def __init__(self, pool: junctura.Pool, selectors: Iterable[str], window: int, *, until_live: bool = False) -> None:
        texts = list(joined(sorted(set(selectors))))
        share = max(window // max(1, len(texts)), min(window, 16))
        self._pool = pool
        with contextlib.ExitStack() as stack:
            follows = (pool.follow(text, window=share, gaps="ignore", until_live=until_live) for text in texts)
            self._follows = [stack.enter_context(follow) for follow in follows]
            # All follows are open: the stack closes them.
            self._stack = stack.pop_all()

    def sync(self) -> None:
        """Waits until objects offered before have arrived, within the limit of the window, unless the server has
        ended.
        """
        with contextlib.suppress(junctura.Closed, junctura.Disconnected):
            self._pool.sync()

    def take(self, each: Callable[[junctura.Object], None]) -> tuple[int, bool]:
        """Takes all received objects; returns their number, and whether no more can arrive."""
        found = [take_all(follow, each) for follow in self._follows]
        # Follows with `until_live` end one by one; the end of the server ends all.
        return sum(count for count, _ in found), all(has_ended for _, has_ended in found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stack.close()


def take_all(items: Any, take: Callable[[Any], None]) -> tuple[int, bool]:
    """Takes all received objects; returns their number, and whether no more can arrive."""
    for count in itertools.count():
        try:
            item = items.next(timeout=0)
        except junctura.Timeout:
            return count, False
        except (junctura.Closed, junctura.Disconnected):
            # Decoded fields can still be used.
            return count, True
        if item is None:
            return count, True
        take(item)
    raise AssertionError("counting has no end")
