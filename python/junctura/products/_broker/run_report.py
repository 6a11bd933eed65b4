"""What a broker tells: an event for each product, and at the end what became of it all."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Made:
    """An event: a product is there."""

    product: str
    path: Path
    nbytes: int
    attributes: dict[str, Any]
    # From when the broker heard of its last input until it heard that the product is there.
    latency_s: float


@dataclass(frozen=True)
class Failed:
    """An event: a product cannot be made.

    Attributes
    ----------
    short
        The cause with all missing fields in one selector, where it names several; else empty.

    """

    product: str
    attributes: dict[str, Any]
    cause: str
    short: str = ""


@dataclass(frozen=True)
class WaitingReport:
    """Nothing has come for a while.

    Attributes
    ----------
    lines
        What is waited for, what there is that is nearest to it, and who is connected.
    is_new
        Whether it is to be said, and not only kept on the screen.

    """

    lines: tuple[str, ...]
    is_new: bool


@dataclass
class Report:
    """What became of it all.

    Attributes
    ----------
    made, failed
        Products, in the order in which they came about.
    kept
        How many products were there already, from the same recipe.
    inputs, input_bytes
        How many objects were inputs, and how large they are.
    decodes, decodes_per_input_max
        How many messages were decoded, and how often that which was decoded most often, over all tasks. What a worker
        had to decode when it died counts, whether it had come to that or not: without `deaths` both are exact, else
        they are the most that it can have been.
    deaths
        How many workers died.
    workers
        By their process numbers, the most bytes of memory that each worker, or a process that made weights for it, had
        resident. Fields in the shared memory of pools count in each worker that has read them.
    unannounced, unannounced_cause
        How many products are there that could not be announced, and why.
    seconds
        From beginning to end.
    ended
        Why it ended before all was made, where that was not the end of what it waited for; else empty.
    extremes
        By product the least and the greatest value of each of its maps, where each has a range of its own.
    nearest
        For some of the fields that did not come, what is there that is nearest, in words.

    """

    made: list[Made] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    kept: int = 0
    inputs: int = 0
    input_bytes: int = 0
    decodes: int = 0
    decodes_per_input_max: int = 0
    deaths: int = 0
    workers: dict[int, int] = field(default_factory=dict)
    unannounced: int = 0
    unannounced_cause: str = ""
    seconds: float = 0.0
    ended: str = ""
    extremes: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    nearest: list[str] = field(default_factory=list)

    @property
    def latency_ms(self) -> dict[str, float]:
        """So many milliseconds after their last input half of the products were there, and nineteen of twenty."""
        times = sorted(made.latency_s * 1000 for made in self.made)
        return {f"p{at}": round(times[min(len(times) - 1, len(times) * at // 100)], 2) for at in (50, 95) if times}
