"""The probable mistakes of a selector that matched nothing: an attribute or value that resembles an existing one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import junctura
from junctura.errors import Error

if TYPE_CHECKING:
    from junctura._native import _Answer

# The name of the run's own clients, which are not in its record.
NAME = "junctura workflow"


def selector_hint(url: str, selector: str) -> str:
    """Returns the probable mistakes, as `SelectorWarning` states them; empty if there are none, or the pool has ended.

    A pool reports each form of a selector once: this opens one of its own.
    """
    try:
        with junctura.Pool(url, name=NAME) as pool:
            found = [*_answered(pool._begin_mistakes(selector)), *_answered(pool._begin_value_hints(selector))]
    except Error:
        return ""
    # Without a condition that the message has named already.
    return "; ".join(dict.fromkeys(one.removeprefix(f"nothing matches {selector}; ") for one in found))


def _answered(answer: _Answer[list[str]] | None) -> list[str]:
    """Waits for an answer."""
    if answer is None:
        return []
    woken = threading.Event()
    while (found := answer.poll(woken.set)) is None:
        woken.wait()
        woken.clear()
    return found[0]
