"""Events and report of a broker: an event for each product, and a report of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Made:
    """An event: a product was made.

    Examples
    --------
    >>> import junctura.products
    >>> recipe = "{product: warm, from: {param: t, step: 0}, to: {format: csv, name: warm.csv}}"
    >>> size = (folder / "warm.yaml").write_text(recipe)
    >>> recipes = junctura.products.load_all([folder / "warm.yaml"])
    >>> import eccodes
    >>> sample = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")  # temperature in Kelvin
    >>> size = (folder / "field.grib").write_bytes(eccodes.codes_get_message(sample))
    >>> store = junctura.Store.from_grib(folder / "archive", folder / "field.grib")
    >>> def watch(event: junctura.products.Made | junctura.products.Failed) -> None:
    ...     if isinstance(event, junctura.products.Made):
    ...         print(event.product, event.path.name, event.attributes["step"])
    >>> junctura.products.Broker(recipes, None, folder / "out", store=store.url, workers=1, observer=watch).run().failed
    warm warm.csv 0
    []

    """

    product: str
    path: Path
    nbytes: int
    attributes: dict[str, Any]
    # Time between the arrival of its last input and the answer of the worker at the broker.
    latency_s: float


@dataclass(frozen=True)
class Failed:
    """An event: a product cannot be made.

    Attributes
    ----------
    short
        The cause with all missing fields in one selector, if it names several; else empty.

    Examples
    --------
    >>> import junctura.products
    >>> recipe = "{product: warm, from: {param: t, step: 6}, to: {format: csv, name: warm.csv}}"
    >>> size = (folder / "warm.yaml").write_text(recipe)
    >>> recipes = junctura.products.load_all([folder / "warm.yaml"])
    >>> import eccodes
    >>> sample = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")  # temperature in Kelvin
    >>> size = (folder / "field.grib").write_bytes(eccodes.codes_get_message(sample))
    >>> store = junctura.Store.from_grib(folder / "archive", folder / "field.grib")
    >>> broker = junctura.products.Broker(recipes, None, folder / "out", store=store.url, workers=1, now=True)
    >>> for failed in broker.run().failed:
    ...     print(failed.product, failed.attributes["step"], failed.cause)
    warm 6 it waits for param=t,step=6

    """

    product: str
    attributes: dict[str, Any]
    cause: str
    short: str = ""


@dataclass(frozen=True)
class WaitingReport:
    """An event: no input has arrived for a while.

    Attributes
    ----------
    lines
        The missing inputs, the closest existing objects, and the connected clients.
    is_new
        Whether to print the lines, and not only to show them as the current state.

    """

    lines: tuple[str, ...]
    is_new: bool


@dataclass
class Report:
    """The report of a run.

    Attributes
    ----------
    made, failed
        Products, in the order of completion.
    kept
        Number of products that existed already, from the same recipe.
    inputs, input_bytes
        Number of input objects, and their size.
    decodes, decodes_per_input_max
        Number of decoded messages, and the maximum for one message, over all tasks. A message that a worker was about
        to decode when it crashed counts in any case: without `deaths` both numbers are exact, else they are upper
        bounds.
    deaths
        Number of workers that crashed.
    workers
        For each process number, the peak resident memory in bytes of the worker, or of a process that made weights for
        it. Fields in the shared memory of pools count in each worker that has read them.
    unannounced, unannounced_cause
        Number of products that exist and could not be announced, and the reason.
    seconds
        Duration of the run.
    ended
        The reason for an end before all products were made, if it was not the end of the inputs; else empty.
    extremes
        By product the minimum and maximum of each of its maps, if each map has its own range.
    nearest
        For some of the missing fields, the closest existing objects, as text.

    Examples
    --------
    >>> import junctura.products
    >>> recipe = "{product: warm, from: {param: t, step: 0}, to: {format: csv, name: warm.csv}}"
    >>> size = (folder / "warm.yaml").write_text(recipe)
    >>> recipes = junctura.products.load_all([folder / "warm.yaml"])
    >>> import eccodes
    >>> sample = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")  # temperature in Kelvin
    >>> size = (folder / "field.grib").write_bytes(eccodes.codes_get_message(sample))
    >>> store = junctura.Store.from_grib(folder / "archive", folder / "field.grib")
    >>> broker = junctura.products.Broker(recipes, None, folder / "out", store=store.url, workers=1)
    >>> report = broker.run()
    >>> len(report.made), report.inputs, report.decodes, report.deaths
    (1, 1, 1, 0)

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
        """Median and 95th percentile of the milliseconds between the last input and the completed product."""
        times = sorted(made.latency_s * 1000 for made in self.made)
        return {f"p{at}": round(times[min(len(times) - 1, len(times) * at // 100)], 2) for at in (50, 95) if times}
