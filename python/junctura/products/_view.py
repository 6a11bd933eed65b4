"""The progress output of a product run: a status line, and failures as they occur."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from junctura._progress import Screen, bar
from junctura.products._broker.run_report import Failed, Made, WaitingReport

if TYPE_CHECKING:
    from typing_extensions import Self

_WIDTH = 30
_EVERY_S = 0.1


class ProductsView:
    """Shows events on standard error: on a terminal as a progress bar, else as a line for each 10 %.

    Parameters
    ----------
    quiet
        Whether to show nothing.

    """

    def __init__(self, quiet: bool = False) -> None:
        self.made = self.failed = 0
        self._screen = Screen(quiet)
        self._shown = 0.0
        self._since = ""

    def show(self, event: Made | Failed, count: int) -> None:
        """Records one more of so many products as made or failed."""
        self.made += isinstance(event, Made)
        self.failed += isinstance(event, Failed)
        if self._screen.is_terminal:
            self._draw(event, count)
        elif (self.made + self.failed) * 10 // count > (self.made + self.failed - 1) * 10 // count:
            self._screen.say(f"  products {self.made}/{count}{self._failures()}")

    def _draw(self, event: Made | Failed, count: int) -> None:
        done, now = self.made + self.failed, time.monotonic()
        if done < count and now - self._shown < _EVERY_S:
            return
        self._shown = now
        last = event.path.name if isinstance(event, Made) else event.product
        self._screen.draw([f"  products {bar(done, count, _WIDTH)} {self.made}/{count}{self._failures()}  {last[:40]}"])

    def say(self, text: str) -> None:
        """Prints a permanent line."""
        self._screen.say(f"  {text}")

    def ready(self, text: str) -> None:
        """Shows that later offers will be received."""
        self._screen.say(f"  ready: {text}")

    def waits(self, waits: WaitingReport) -> None:
        """Shows the missing inputs below the permanent lines, until an input arrives."""
        if waits.is_new:
            self._since = time.strftime("%H:%M:%S")
            self._screen.say(*(f"  {line}" for line in waits.lines))
        self._screen.draw([f"  at {self._since}: {waits.lines[0]}"])
        self._shown = 0.0

    def _failures(self) -> str:
        return f", {self.failed} cannot be made" if self.failed else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Leaves the current output on the terminal."""
