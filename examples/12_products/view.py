"""What one sees while the demo runs: bars that are kept up to date, or on no terminal a line now and then."""

from __future__ import annotations

import shutil
import sys
import threading
import time

from junctura.products import Failed, Made

_WIDTH = 40
_EVERY_S = 0.1


class Progress:
    """Fields that were offered and archived, products that are made.

    Parameters
    ----------
    count
        How many fields there are to be.
    products
        How many products.

    """

    def __init__(self, count: int, products: int) -> None:
        self._counts = {"offered": count, "archived": count, "products": products}
        self._done = dict.fromkeys(self._counts, 0)
        self._last = self._printed = ""
        self._failed = 0
        self._shown_at = 0.0
        self._is_terminal = sys.stderr.isatty()
        self._lock = threading.Lock()

    def fields(self, offered: int, archived: int) -> None:
        """So many were offered, and archived."""
        with self._lock:
            self._done |= {"offered": offered, "archived": archived}
            self._show(is_last=False)

    def product(self, event: Made | Failed) -> None:
        """One more is made, or cannot be."""
        with self._lock:
            self._done["products"] += 1
            self._failed += isinstance(event, Failed)
            self._last = str(event.path.name) if isinstance(event, Made) else f"{event.product}: {event.cause}"
            self._show(is_last=self._done["products"] == self._counts["products"])

    def close(self) -> None:
        """Shows how it ended."""
        with self._lock:
            self._show(is_last=True)

    def _show(self, *, is_last: bool) -> None:
        now = time.monotonic()
        if not is_last and now - self._shown_at < (_EVERY_S if self._is_terminal else 5):
            return
        if not self._is_terminal:
            words = ", ".join(f"{name} {done}/{self._counts[name]}" for name, done in self._done.items())
            if words != self._printed:
                print(f"  {words}", file=sys.stderr, flush=True)
            self._printed = words
        else:
            # A longer one would go on in a second row, and be drawn over half.
            width = shutil.get_terminal_size().columns - 1
            lines = [self._bar(name)[:width] for name in self._counts]
            up = f"\x1b[{len(lines)}A" if self._shown_at else ""
            print(up + "\n".join(f"\x1b[K{line}" for line in lines), file=sys.stderr, flush=True)
        self._shown_at = now

    def _bar(self, name: str) -> str:
        done, count = self._done[name], self._counts[name]
        bar = "█" * (_WIDTH * done // count)
        after = f"  {self._last[:40]}" if name == "products" else ""
        return f"  {name:<9} {bar:<{_WIDTH}} {done}/{count}{after}"
