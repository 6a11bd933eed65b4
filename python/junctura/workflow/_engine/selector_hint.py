"""The probable mistakes of a selector that matched nothing: an attribute or value that resembles an existing one."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import junctura

if TYPE_CHECKING:
    from junctura._native import _Answer

# The name of the run's own clients, which are not in its record.
NAME = "junctura workflow"
# Time limit of hints that are requested at once.
HINTS_S = 10.0


def selector_hint(url: str, selector: str, deadline: float | None = None) -> str:
    """Returns the probable mistakes, as `SelectorWarning` states them.

    Empty if there are none, if the pool does not answer before the deadline (of `time.monotonic`), or after any error.
    A pool reports each form of a selector once, and selectors that differ in digits have one form: this opens a pool of
    its own.
    """
    if deadline is None:
        deadline = time.monotonic() + HINTS_S
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        return ""
    hints: list[str] = []
    # Opening a pool whose server hangs takes longer.
    thread = threading.Thread(
        target=lambda: hints.append(_hint(url, selector, deadline)), name=f"{NAME}: hint", daemon=True
    )
    thread.start()
    thread.join(left_s)
    return "".join(hints)


def _hint(url: str, selector: str, deadline: float) -> str:
    try:
        with junctura.Pool(url, name=NAME) as pool:
            found = _answered(pool._begin_mistakes(selector), deadline)
            found += _answered(pool._begin_value_hints(selector), deadline)
    except Exception:
        # A run does not end for want of a hint.
        return ""
    # Without a condition that the message has named already.
    return "; ".join(dict.fromkeys(one.removeprefix(f"nothing matches {selector}; ") for one in found))


def _answered(answer: _Answer[list[str]] | None, deadline: float) -> list[str]:
    """Waits for an answer; returns nothing if there is none before the deadline."""
    if answer is None:
        return []
    woken = threading.Event()
    while (found := answer.poll(woken.set)) is None:
        if not woken.wait(max(0.0, deadline - time.monotonic())):
            return []
        woken.clear()
    return found[0]
