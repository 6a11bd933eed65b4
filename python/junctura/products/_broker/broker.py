"""The broker: determines the requested products, receives their inputs, and distributes tasks to workers.

```text
  pool of the producers ──follow──> broker ──tasks──> pool of the broker ──> workers, which read inputs and arrays
                                      ▲                                        where they lie, without copying
                                      └──────────────done──────────────────────┘
```
It requests only the inputs of its products from the producers' pool, and holds each input until it has been decoded.
Tasks of a worker that crashes are given to another worker. The broker ends when all products are made or have failed,
or when no more inputs can arrive; its report names the missing ones.
"""

from __future__ import annotations

import contextlib
import math
import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import junctura
from junctura._progress import counted
from junctura.errors import Closed, Disconnected, InvalidArgument
from junctura.products._broker.announcements import ProductAnnouncer
from junctura.products._broker.engine import ProductEngine
from junctura.products._broker.engine_events import (
    BeginTask,
    EngineEvent,
    FreeArrays,
    HintLegendre,
    InputArrived,
    ProductAbandoned,
    ProductFound,
    ReleaseInput,
    ReportFailed,
    ReportMade,
    TaskAnswered,
)
from junctura.products._broker.output_locks import OutputLocks
from junctura.products._broker.run_report import Failed, Made, Report, WaitingReport
from junctura.products._broker.task_graph import Product, ProductGraph
from junctura.products._broker.task_queue import TaskQueue
from junctura.products._input.field_source import opened
from junctura.products._input.nearest import NearestField, in_words, nearest
from junctura.products._input.patience import END_S, Patience, present
from junctura.products._input.producer_liveness import ProducerWatch
from junctura.products._input.queries import InputFollows
from junctura.products._outputs._place import clear, size
from junctura.products._recipe.definitions import UNKNOWN, Recipe, Wanted
from junctura.products._recipe.mars_words import Key
from junctura.products._tasks import shared_arrays, task_messages
from junctura.products._tasks.task_messages import BrokerJob
from junctura.products._tasks.tasks import TaskAnswer
from junctura.products._workers.crew import Crew, ProcessCrew, automatic, pool_bytes
from junctura.products._workers.make_product import is_named, is_there

if TYPE_CHECKING:
    import distributed

    from junctura.products._workers.crew import ForkServerProcess

# Maximum number of held inputs that are not decoded yet.
_WINDOW = 256
# Each request to the pool costs more than the removal of an array: arrays are removed together, and none stays longer
# than this when the broker has nothing else to do.
_FREED_AT_ONCE = 16
_FREED_AFTER_S = 0.02
# Maximum number of clients in a message.
_NAMES_MAX = 8
_NOBODY = "no client is connected that could offer what is missing"


class Broker:
    """Makes products with workers.

    Parameters
    ----------
    recipes
        The requested products.
    source
        The producers' pool; None: fields are read from `store` only, and the run ends when all have arrived.
    out
        The directory of the products.
    workers
        Number of processes; by default limited by cores and memory.
    dask
        A Dask cluster whose workers do the tasks instead of local processes: the address of its scheduler, its
        scheduler file, or a client. Its workers must have access to `out`, `source` and `store`.
    store
        A store behind the pool: its objects are inputs, too.
    until_gone
        Names of producers, as ``swell-*``: when the last one has disconnected, no more inputs arrive.
    name
        Its client name in the producers' pool.
    observer
        Called with each event.
    now
        Whether to make only the products whose fields exist, without waiting.
    patience
        When fields of these producers, or similar ones, have arrived, and no connected client could offer the missing
        ones, the run ends after this many seconds without progress.
    waits
        Called when no input has arrived for a while.
    ready
        Called if no requested input has been offered yet: every later offer is received.
    announce
        A pool in which each product is announced as soon as it exists; by default none.
    memory
        Bytes for decoded fields; by default half of the available memory. Fields beyond the limit are spilled to disk.
    start
        Whether to start a server of this user for `source`, if none runs.
    graph
        The graph of the recipes, if it is built already; the run changes it.

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
    >>> [made.path.name for made in report.made]
    ['warm.csv']

    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        source: str | None,
        out: Path,
        *,
        workers: int | None = None,
        dask: str | Path | distributed.Client | None = None,
        store: str | None = None,
        until_gone: Sequence[str] = (),
        name: str = task_messages.BROKER,
        observer: Callable[[Made | Failed], None] | None = None,
        now: bool = False,
        patience: float = END_S,
        waits: Callable[[WaitingReport], None] | None = None,
        ready: Callable[[], None] | None = None,
        announce: str | None = None,
        memory: int | None = None,
        start: bool = False,
        graph: ProductGraph | None = None,
    ) -> None:
        self.recipes, self.out, self.observer, self.name = list(recipes), out, observer, name
        self.until_gone = list(until_gone)
        self.graph = graph or ProductGraph(self.recipes)
        self.report = Report()
        self.engine = ProductEngine(self.graph, self.report)
        self.source = opened(source, store, name, self._asked(), start=start, waits=waits)
        # No other inputs are waited for.
        self._is_now = now or source is None
        self._patience, self._waits = Patience(patience), waits
        self._ready = ready
        # The producers of received inputs, by number; 0 is a store.
        self._producers: set[int] = set()
        self.announcer = ProductAnnouncer(announce, name, out) if announce else None
        # From now on the connections of producers are observed.
        self._departures = ProducerWatch(self.source, self.until_gone)
        self._job = BrokerJob(
            self.recipes, self.source.url, _absolute(store), str(out.resolve()), self.source.incarnation
        )
        # The inputs that are held until they are decoded, by number, and the number of received inputs.
        self._held: dict[int, junctura.Object] = {}
        self._arrivals = 0
        # The nodes whose arrays are not needed any more, but are still in the pool.
        self._freed: list[int] = []
        self._is_over = False
        # The last step that may fail, because it starts processes.
        self.crew = _crew(workers, dask, memory or pool_bytes())
        self.pool = self.crew.pool
        self.queue = TaskQueue(self.crew, self.engine)

    @property
    def expected(self) -> int:
        """Number of products to make, without those that exist already."""
        return len(self.graph.products) - self.report.kept

    def adopt(self, fork_server: ForkServerProcess) -> None:
        """Lets this fork server start the workers; not needed for the workers of a cluster."""
        if isinstance(self.crew, ProcessCrew):
            self.crew.adopt(fork_server)

    def run(self) -> Report:
        """Makes all products; blocks until they are made, or until no more inputs can arrive.

        Raises
        ------
        Unavailable
            Workers crash repeatedly, or the scheduler of the Dask cluster fails, or one of its workers cannot do tasks.
        AlreadyExists
            Another run is making one of the files.
        Io
            The directory for the products cannot be created.
        KeyboardInterrupt
            The run was interrupted. `report` then names every product that is not made; no process is left.

        """
        begun = time.monotonic()
        with self.source, self.crew, contextlib.ExitStack() as stack:
            self._make_room()
            self._leave_out_what_is_there()
            stack.enter_context(OutputLocks(self.out, self._claimed(), self.name))
            try:
                self.crew.begin(self._job)
                self._serve()
            except KeyboardInterrupt:
                self.report.failed += map(self._open, self.graph.open())
                raise
            finally:
                self.crew.end()
                self._clear()
                self._end_announcing()
                self.report.deaths = self.crew.deaths
                self.report.seconds = time.monotonic() - begun
        return self.report

    def _make_room(self) -> None:
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise junctura.Io(str(self.out), f"products cannot go there: {error.strerror}") from error

    def _claimed(self) -> set[str]:
        """Returns the files to make; if fields determine a part of the name, with the source of that part."""
        claimed = set()
        for product in self.graph.open():
            name = product.wanted.name(**UNKNOWN)
            claimed.add(name if is_named(product.wanted) else f"{name} of {self.source.url}")
        return claimed

    def _leave_out_what_is_there(self) -> None:
        for product in self.graph.products:
            if is_there(product.wanted, self.out):
                self._apply(ProductFound(product.number))
                path = self.out / product.wanted.name()
                self._announce(product.wanted, path, size(path) or 0, {})

    def _clear(self) -> None:
        """Removes temporary files of products that killed workers have left."""
        if self.crew.ends_all and (self.crew.deaths or self.graph.left):
            wanted = (product.wanted for product in self.graph.products)
            named = [self.out / one.name() for one in wanted if is_named(one)]
            clear([*named, *(made.path for made in self.report.made)])

    def _asked(self) -> list[str]:
        return [text for recipe in self.recipes for text in recipe.sources()]

    def _serve(self) -> None:
        with (
            self._departures,
            InputFollows(self.source, self._asked(), _WINDOW, until_live=self._is_now) as inputs,
        ):
            self._patience.progressed()
            inputs.sync()
            self._take_inputs(inputs)
            if self._ready is not None and not self.report.inputs and not self._is_through():
                self._ready()
            while not self._is_through():
                self.queue.give()
                self._take_next(inputs)
        left = self.graph.open()
        self.report.nearest = [near.text for near in self._nearest(left)]
        for product in left:
            self._apply(ProductAbandoned(product.number, self._open(product)))

    def _open(self, product: Product) -> Failed:
        """Returns the reason why a product is not made yet."""
        keys = self.graph.missing(product)
        cause = f"it waits for {', '.join(map(str, keys))}" if keys else "its fields have come, and it was being made"
        short = f"it waits for {in_words(keys)}" if len(keys) > 1 else ""
        return Failed(product.wanted.recipe.product, dict(product.wanted.attributes), cause, short)

    def _is_through(self) -> bool:
        """Whether all products are made or have failed, or no received input can lead to another result."""
        return not self.graph.left or (self._is_over and self._is_idle)

    @property
    def _is_idle(self) -> bool:
        """Whether no task is outstanding."""
        return not self.engine.tasks

    def _take_next(self, inputs: InputFollows) -> None:
        """Waits until something arrives, and takes it."""
        # Making products does not count as waiting.
        if self._is_waiting and not self._patience.left_s:
            self._free()
            self._take_inputs(inputs)
            # A descriptor may be readable although there are no data.
            if self._is_waiting and not self._patience.left_s:
                self._look()
            return
        source = self._descriptors(self.source)
        ready = self._readable()
        if ready - source and self.crew.take(self._take_answer):
            self._patience.progressed()
        # Without tasks a run may be over: producers may have left before their last inputs were decoded.
        if ready & source or self._is_idle:
            self._take_inputs(inputs)

    @property
    def _is_waiting(self) -> bool:
        return self._is_idle and not self._is_over

    def _descriptors(self, pool: junctura.Pool) -> set[int]:
        # Producers are no longer observed, and unread data would wake the loop again and again.
        return set() if pool is self.source and self._is_over else {pool.fileno()}

    def _readable(self) -> set[int]:
        """Returns the descriptors that have become readable; none if inputs are due, or arrays are to be freed."""
        poll = select.poll()
        for descriptor in (*self._descriptors(self.source), *self._descriptors(self.pool), *self.crew.descriptors):
            poll.register(descriptor, select.POLLIN)
        left_s = self._patience.left_s if self._is_waiting else math.inf
        left_s = min(left_s, _FREED_AFTER_S if self._freed else math.inf)
        ready = {descriptor for descriptor, _ in poll.poll(None if left_s == math.inf else math.ceil(1000 * left_s))}
        if not ready:
            self._free()
        for descriptor in ready.intersection(self.crew.descriptors):
            self.crew.look(descriptor)
        return ready

    def _free(self) -> None:
        freed, self._freed = self._freed, []
        shared_arrays.free(self.pool, freed)

    def _look(self) -> None:
        """Reports the missing inputs when none has arrived for a while, and ends the run when none can arrive."""
        try:
            here = present(self.source)
            left = self.graph.open()
            near = self._nearest(left)
            # A store has fields of several producers.
            gone = self._producers - here.clients
            if self.until_gone:
                are_late = self._departures.are_unseen and (0 in gone or len(gone) >= len(self.until_gone))
                is_left = not are_late
            else:
                was_there = bool(gone) or any(one.is_of_its_producer for one in near)
                is_left = bool(here.names) or not was_there
        except (Closed, Disconnected):
            return
        look = self._patience.look(is_left=is_left)
        if self._waits is not None:
            self._waits(WaitingReport(tuple(self._waiting(left, near, here.names)), look.says))
        if look.ends and self.until_gone:
            self._departures.give_up()
        elif look.ends:
            self._is_over = True
            self.report.ended = _NOBODY

    def _missing(self, products: Iterable[Product]) -> list[Key]:
        return list(dict.fromkeys(key for product in products for key in self.graph.missing(product)))

    def _nearest(self, products: Iterable[Product]) -> list[NearestField]:
        """Returns the closest existing fields for missing ones; none if the pool has ended."""
        with contextlib.suppress(Closed, Disconnected):
            return nearest(self.source, self._missing(products))
        return []

    def _waiting(self, products: Sequence[Product], near: Iterable[NearestField], names: Sequence[str]) -> list[str]:
        keys = self._missing(products)
        of = counted(len(products), "product")
        lines = [f"waits for {counted(len(keys), 'field')}, of {of}: {in_words(keys)}"]
        lines += [one.text for one in near]
        if self._departures.are_unseen:
            lines.append(f"nobody called {' or '.join(self._departures.names)} has been there yet")
        lines.append(f"connected are {', '.join(names[:_NAMES_MAX])}" if names else _NOBODY)
        return lines

    def _take_inputs(self, inputs: InputFollows) -> None:
        """Takes all received inputs."""
        while not self._is_over and self._listen(inputs):
            pass

    def _listen(self, inputs: InputFollows) -> bool:
        """Returns whether any input was received."""
        are_gone = self._departures.all_are_gone()
        if are_gone:
            inputs.sync()
        count, has_ended = inputs.take(self._take_input)
        self._is_over = has_ended or (are_gone and not count and not self._held)
        return count > 0

    def _take_input(self, obj: junctura.Object) -> None:
        self._patience.progressed()
        self._producers.add(obj.producer)
        number, self._arrivals = self._arrivals, self._arrivals + 1
        self._held[number] = obj
        self._apply(InputArrived(number, obj.key, obj.attributes, obj.nbytes, time.monotonic()))

    def _take_answer(self, answer: TaskAnswer) -> None:
        self._apply(TaskAnswered(answer, time.monotonic()))

    def _apply(self, event: EngineEvent) -> None:
        for action in self.engine.take(event):
            match action:
                case BeginTask():
                    self.queue.add(action)
                case ReleaseInput():
                    # A server that has ended has released it.
                    with contextlib.suppress(junctura.Closed, junctura.Disconnected):
                        self._held.pop(action.number).release()
                case FreeArrays():
                    self._freed += action.nodes
                    if len(self._freed) >= _FREED_AT_ONCE:
                        self._free()
                case HintLegendre():
                    task_messages.hint(self.pool, action.legendre)
                case ReportMade():
                    if not self.graph.left:
                        self._free()
                    self._tell(action.event)
                    wanted = self.graph.products[action.product].wanted
                    self._announce(wanted, action.event.path, action.event.nbytes, action.words)
                case ReportFailed():
                    self._tell(action.event)

    def _announce(self, wanted: Wanted, path: Path, nbytes: int, words: Mapping[str, Any]) -> None:
        if self.announcer is not None:
            recipe = wanted.recipe
            self.announcer.tell(recipe.product, path, nbytes, recipe.output.format, {**words, **wanted.attributes})

    def _end_announcing(self) -> None:
        if self.announcer is not None:
            self.announcer.close()
            self.report.unannounced, self.report.unannounced_cause = self.announcer.missed, self.announcer.failure

    def _tell(self, event: Made | Failed) -> None:
        if self.observer is not None:
            self.observer(event)


def _crew(workers: int | None, dask: str | Path | distributed.Client | None, room: int) -> Crew:
    if dask is None:
        return ProcessCrew(workers or automatic(), room)
    if workers:
        raise InvalidArgument("workers", "a Dask cluster has workers of its own: say how many where it is started")
    # Dask is optional.
    from junctura.products._workers.dask_crew import DaskCrew

    return DaskCrew(dask, room)


def _absolute(store: str | None) -> str | None:
    """Returns an absolute path for a folder, which is valid for workers in any directory."""
    return store if store is None or "://" in store else str(Path(store).resolve())
