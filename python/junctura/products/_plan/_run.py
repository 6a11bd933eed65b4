"""Runs a plan: fields are received from its sources, and pass through its actions into its sinks."""

from __future__ import annotations

import contextlib
import math
import select
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import junctura
from junctura.products._broker.run_report import WaitingReport
from junctura.products._input.field_source import opened
from junctura.products._input.patience import END_S, Patience, PresentClients, present
from junctura.products._input.producer_liveness import ProducerWatch
from junctura.products._plan._flow import Counted, Flow
from junctura.products._plan._item import Item
from junctura.products._plan._reading import Places, Plan, Source
from junctura.products._plan._unfinished import Unfinished

_WINDOW = 64
# Number of reports of one cause with the field concerned.
_ALIKE_MAX = 3
# Maximum number of clients in a message.
_NAMES_MAX = 8


@dataclass(frozen=True)
class Ran:
    """The result of a plan.

    Attributes
    ----------
    fields
        Number of received fields.
    actions
        Statistics of each action.
    told
        The errors.
    unfinished
        Number of arrays that never became fields, because ranks left without offering all pieces.

    Examples
    --------
    >>> import junctura.products
    >>> document = "{sources: [{follow: param=t}], sinks: [{file: {format: csv, name: 't-{step}.csv'}}]}"
    >>> size = (folder / "plan.yaml").write_text(document)
    >>> plan = junctura.products.Plan.load(folder / "plan.yaml")
    >>> import eccodes
    >>> sample = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")  # temperature in Kelvin
    >>> size = (folder / "field.grib").write_bytes(eccodes.codes_get_message(sample))
    >>> store = junctura.Store.from_grib(folder / "archive", folder / "field.grib")
    >>> ran = junctura.products.run(plan, None, folder / "out", store=store.url)
    >>> ran.fields, ran.failed, [action.name for action in ran.actions]
    (1, 0, ['file'])

    """

    fields: int
    actions: list[Counted]
    told: list[str]
    unfinished: int = 0

    @property
    def failed(self) -> int:
        """Number of failures of actions and sinks, and of unfinished arrays."""
        return sum(counted.failed for counted in self.actions) + self.unfinished


def run(
    plan: Plan,
    pool: str | None,
    out: Path,
    *,
    name: str = "plan",
    store: str | None = None,
    workers: int | None = None,
    until_gone: Sequence[str] = (),
    now: bool = False,
    patience: float = END_S,
    told: Callable[[str], None] = print,
    waits: Callable[[WaitingReport], None] | None = None,
    ready: Callable[[], None] | None = None,
    start: bool = False,
) -> Ran:
    """Passes fields through a plan as they arrive; blocks until its sources have ended.

    Parameters
    ----------
    plan
        The plan.
    pool
        The pool of the fields, unless a source names one; None: fields are read from `store` only, and the run ends
        when all have arrived.
    out
        The folder of files and products.
    name
        Its client name in the pools of its sources.
    store
        A store behind the pools: its objects are received, too.
    workers
        Number of processes that make products.
    until_gone
        Names of producers: when the last one has disconnected, no more fields arrive.
    now
        Whether to end when the existing fields have been processed.
    patience
        When fields of producers that disconnected before the start have arrived, the run ends after this many seconds
        without a new field and without a client with one of the names.
    told
        Called with each error of a field; the other fields continue. The same cause is reported for three fields, and
        then with a count, at the tenth time, the hundredth and so on.
    waits
        Called when no field has arrived for a while.
    ready
        Called if no followed object has been offered yet: every later offer is received.
    start
        Whether to start a server of this user for `pool`, if none runs.

    Examples
    --------
    >>> import junctura.products
    >>> document = "{sources: [{follow: param=t}], sinks: [{file: {format: csv, name: 't-{step}.csv'}}]}"
    >>> size = (folder / "plan.yaml").write_text(document)
    >>> plan = junctura.products.Plan.load(folder / "plan.yaml")
    >>> import eccodes
    >>> sample = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")  # temperature in Kelvin
    >>> size = (folder / "field.grib").write_bytes(eccodes.codes_get_message(sample))
    >>> store = junctura.Store.from_grib(folder / "archive", folder / "field.grib")
    >>> ran = junctura.products.run(plan, None, folder / "out", store=store.url)
    >>> sorted(path.name for path in (folder / "out").iterdir())
    ['t-0.csv', 't-0.csv.provenance.json']

    """
    wrong: list[str] = []

    alike: Counter[str] = Counter()

    def tell(text: str) -> None:
        wrong.append(text)
        # Of a thousand fields with one fault the first are reported, the others counted.
        name, _, about = text.partition(": ")
        cause = f"{name}: {about.partition(': ')[2]}"
        alike[cause] += 1
        count = alike[cause]
        if count <= _ALIKE_MAX:
            told(text)
        elif str(count).rstrip("0") == "1":
            told(f"{cause} ({count} times)")

    with ExitStack() as stack:
        inlets = [
            Inlet(
                source,
                opened(source.pool or pool, store, name, [source.follow], start=start and not source.pool, waits=waits),
                until_gone,
                stack,
                until_live=until_live,
            )
            for source in plan.sources
            for until_live in [now or (source.pool or pool) is None]
        ]
        flow = plan.flow(Places(plan.folder, out, workers))
        _tell(flow, tell)
        waiting = Waiting(inlets, Patience(patience), waits)
        for inlet in inlets:
            inlet.sync()
        count = 0
        while open_inlets := [inlet for inlet in inlets if not inlet.is_over]:
            came = sum(inlet.drain(flow) for inlet in open_inlets)
            count += came
            # Data that were read together with other data wake no wait: wait only after a read without a result.
            if came:
                waiting.progressed()
                continue
            if ready is not None and not count:
                ready()
                ready = None
            waiting.wait()
        lost = dict.fromkeys(text for inlet in inlets for text in inlet.unfinished.lost())
        flow.end()
        for text in lost:
            tell(text)
    return Ran(count, flow.all_counted(), wrong, len(lost))


def _tell(flow: Flow, told: Callable[[str], None]) -> None:
    flow.told = told
    for branch in flow.branches:
        _tell(branch, told)


class Waiting:
    """Waits until a source has data, reports long waits, and detects that no more data can arrive."""

    def __init__(
        self, inlets: Sequence[Inlet], patience: Patience, waits: Callable[[WaitingReport], None] | None
    ) -> None:
        self._inlets, self._patience, self._waits = inlets, patience, waits

    def progressed(self) -> None:
        """Records that a field has arrived."""
        self._patience.progressed()

    def wait(self) -> None:
        """Returns when a field may have arrived, or none can arrive any more."""
        inlets = [inlet for inlet in self._inlets if not inlet.is_over]
        if not inlets:
            return
        # All received objects were taken just now: a descriptor may be readable although there are no data.
        if not self._patience.left_s:
            with contextlib.suppress(junctura.Closed, junctura.Disconnected):
                self._look(inlets)
            return
        poll = select.poll()
        for inlet in inlets:
            poll.register(inlet.pool, select.POLLIN)
        poll.poll(math.ceil(1000 * self._patience.left_s))

    def _look(self, inlets: Sequence[Inlet]) -> None:
        here = [present(inlet.pool) for inlet in inlets]
        look = self._patience.look(is_left=not all(map(Inlet.is_late, inlets, here)))
        if self._waits is not None:
            lines = [line for inlet, one in zip(inlets, here, strict=True) for line in inlet.waits_for(one)]
            self._waits(WaitingReport(tuple(lines), look.says))
        for inlet in inlets if look.ends else ():
            inlet.departures.give_up()


class Inlet:
    """A source with a follow."""

    def __init__(
        self,
        source: Source,
        pool: junctura.Pool,
        until_gone: Sequence[str],
        stack: ExitStack,
        *,
        until_live: bool = False,
    ) -> None:
        self.source = source
        # The clients whose fields have arrived.
        self.producers: set[int] = set()
        self.pool = stack.enter_context(pool)
        self.departures = stack.enter_context(ProducerWatch(self.pool, [*until_gone, *source.until_gone]))
        self.unfinished = stack.enter_context(Unfinished(self.pool, source.follow))
        options: dict[str, Any] = {"group": source.group} if source.group else {}
        options["until_live"] = until_live
        self.follow = stack.enter_context(self.pool.follow(source.follow, window=_WINDOW, gaps="ignore", **options))
        self.is_over = False

    def sync(self) -> None:
        """Waits until objects offered before have arrived, if the server is running, within the limit of the window."""
        with contextlib.suppress(junctura.Closed, junctura.Disconnected):
            self.pool.sync()

    def drain(self, flow: Flow) -> int:
        """Passes the received fields on; returns their number."""
        self.unfinished.watch()
        are_gone = self.departures.all_are_gone()
        if are_gone:
            self.sync()
        count = 0
        # Released when its processing is complete and its results are persistent: in a group it is redelivered after a
        # crash.
        with ExitStack() as held:
            # The other sources take their turns.
            while count < _WINDOW and (obj := self._next()) is not None:
                held.enter_context(obj)
                self.producers.add(obj.producer)
                flow.take([Item(obj.attributes, source=obj, pool=self.pool)])
                count += 1
                if not flow.is_unsettled:
                    held.close()
            flow.settle()
        self.is_over |= are_gone and not count
        return count

    def is_late(self, here: PresentClients) -> bool:
        """Whether it began after its producers had left: the fields have as many producers as it has names."""
        gone = self.producers - here.clients
        return self.departures.are_unseen and (0 in gone or len(gone) >= len(self.departures.names))

    def waits_for(self, here: PresentClients) -> list[str]:
        """Returns a description of the awaited data."""
        names = " or ".join(self.departures.names)
        lines = [f"waits for {self.source.follow}{f', until {names} have left' if names else ''}"]
        if self.departures.are_unseen:
            lines.append(f"nobody called {names} has been there yet")
        connected = ", ".join(here.names[:_NAMES_MAX]) or "nobody that could offer anything"
        return [*lines, f"connected is {connected}"]

    def _next(self) -> junctura.Object | None:
        """Returns the next received object, or None."""
        try:
            obj: junctura.Object | None = self.follow.next(timeout=0)
        except junctura.Timeout:
            return None
        except (junctura.Closed, junctura.Disconnected):
            obj = None
        self.is_over = obj is None
        return obj
