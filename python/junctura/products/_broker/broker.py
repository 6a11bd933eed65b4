"""The broker: knows which products are wanted, takes their inputs as they come, and has workers make them.

```text
  pool of the producers ──follow──> broker ──tasks──> pool of the broker ──> workers, which read inputs and arrays
                                      ▲                                        where they lie, without copying
                                      └──────────────done──────────────────────┘
```
It asks the producers' pool for nothing but the inputs of its products, and holds each input until it has been decoded.
A task of a worker that dies goes to another one. It ends when all products are made or given up, or when nothing more
can come; what is missing then, it names.
"""

from __future__ import annotations

import contextlib
import math
import select
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import junctura
from junctura._progress import counted
from junctura.errors import Closed, Disconnected, InvalidArgument
from junctura.products._broker.announcements import Announcer
from junctura.products._broker.output_locks import Claims
from junctura.products._broker.run_report import Failed, Made, Report, Waits
from junctura.products._broker.task_graph import Graph, Product, Ready
from junctura.products._broker.task_queue import Desk
from junctura.products._broker.weights_planner import Preparing
from junctura.products._input.field_source import opened
from junctura.products._input.nearest import Near, in_words, nearest
from junctura.products._input.patience import END_S, Patience, present
from junctura.products._input.producer_liveness import Departures
from junctura.products._input.queries import Questions
from junctura.products._outputs._place import clear, size
from junctura.products._recipe.definitions import UNKNOWN, Recipe, Wanted
from junctura.products._recipe.mars_words import Key, differing
from junctura.products._tasks import task_messages
from junctura.products._tasks.task_messages import Done, Job, Task, Weights
from junctura.products._workers.crew import Crew, Processes, automatic, pool_bytes
from junctura.products._workers.make_product import is_named, is_quick, is_there, patience_s

if TYPE_CHECKING:
    import distributed

    from junctura.products._workers.crew import Started

# Inputs that may be held at once, before they are decoded.
_WINDOW = 256
# So many clients are named.
_NAMES_MAX = 8
_NOBODY = "no client is connected that could offer what is missing"


class Broker:
    """Has products made.

    Parameters
    ----------
    recipes
        What is wanted.
    source
        Where the producers' pool is; None: fields come from `store` alone, and it ends when all of them have come.
    out
        The directory of the products.
    workers
        How many processes; by default as many as cores and memory allow.
    dask
        A Dask cluster whose workers do the tasks in place of processes of its own: the address of its scheduler, the
        file that it has written, or a client. Its workers must see `out`, and reach `source` and `store`.
    store
        A store behind the pool: what it has is an input, too.
    until_gone
        Names of producers, as ``swell-*``: when the last of them has left, nothing more comes.
    name
        What it calls itself in the producers' pool.
    observer
        Is called with each event.
    now
        Whether to make what the fields present allow, and to wait for no others.
    patience
        When fields of these producers have come, or others like them, and no client is connected that could offer what
        is missing, it ends after so many seconds without progress.
    waits
        Is called when nothing has come for a while.
    ready
        Is called if nothing has been offered yet that is asked for: whatever is from now on comes here.
    announce
        A pool in which each product is announced, as soon as it is there; by default none.
    memory
        Bytes for decoded fields; by default half of what there is. What has no room in it goes to a disk.
    start
        Whether to start a server for `source`, of this user, where none runs.

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
        waits: Callable[[Waits], None] | None = None,
        ready: Callable[[], None] | None = None,
        announce: str | None = None,
        memory: int | None = None,
        start: bool = False,
    ) -> None:
        self.recipes, self.out, self.observer, self.name = list(recipes), out, observer, name
        self.until_gone = list(until_gone)
        self.graph = Graph(self.recipes)
        self.report = Report()
        self.source = opened(source, store, name, self._asked(), start=start, waits=waits)
        # What else comes is not waited for.
        self._is_now = now or source is None
        self._patience, self._waits = Patience(patience), waits
        self._ready = ready
        # The producers of inputs that have come, by number; 0 is a store.
        self._producers: set[int] = set()
        self.announcer = Announcer(announce, name, out) if announce else None
        # From now on it is known who comes and goes.
        self._departures = Departures(self.source, self.until_gone)
        self._preparing = Preparing(
            self.graph, self._look_at, self._make_weights, lambda legendre: task_messages.hint(self.pool, legendre)
        )
        self._job = Job(self.recipes, self.source.url, _absolute(store), str(out.resolve()), self.source.incarnation)
        # Of inputs by their nodes key and version that was decoded, and of all nodes when the last input in them came.
        self._sources: dict[int, tuple[str, str]] = {}
        self._came: dict[int, float] = {}
        # By their keys, how often inputs were decoded.
        self._decoded: Counter[str] = Counter()
        # How many inputs are held until they are decoded.
        self._held = 0
        self._is_over = False
        # The last thing that may fail, for it starts something.
        self.crew = _crew(workers, dask, memory or pool_bytes())
        self.pool = self.crew.pool
        self.desk = Desk(self.crew)

    @property
    def expected(self) -> int:
        """How many products there are to be, besides those that were there."""
        return len(self.graph.products) - self.report.kept

    def adopt(self, fork_server: Started) -> None:
        """Has this fork server start the workers; of a cluster's workers none is needed."""
        if isinstance(self.crew, Processes):
            self.crew.adopt(fork_server)

    def run(self) -> Report:
        """Has all products made; waits until they are, or until nothing more can come.

        Raises
        ------
        Unavailable
            Workers die all the time, or the scheduler of the Dask cluster does, or one of its workers cannot do tasks.
        AlreadyExists
            Another run makes one of the files just now.
        Io
            There can be no directory for the products.
        KeyboardInterrupt
            It was interrupted. `report` then names all that is not made; no process is left.

        """
        begun = time.monotonic()
        with self.source, self.crew, contextlib.ExitStack() as stack:
            self._make_room()
            self._leave_out_what_is_there()
            stack.enter_context(Claims(self.out, self._claimed(), self.name))
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
        """The files that it makes; where fields will tell a part of the name, with where they come from."""
        claimed = set()
        for product in self.graph.open():
            name = product.wanted.name(**UNKNOWN)
            claimed.add(name if is_named(product.wanted) else f"{name} of {self.source.url}")
        return claimed

    def _leave_out_what_is_there(self) -> None:
        for product in self.graph.products:
            if is_there(product.wanted, self.out):
                self.graph.done(product.number)
                self.report.kept += 1
                path = self.out / product.wanted.name()
                self._announce(product.wanted, path, size(path) or 0, {})

    def _clear(self) -> None:
        """Removes what workers that were killed have left of products."""
        if self.crew.ends_all and (self.crew.deaths or self.graph.left):
            wanted = (product.wanted for product in self.graph.products)
            named = [self.out / one.name() for one in wanted if is_named(one)]
            clear([*named, *(made.path for made in self.report.made)])

    def _asked(self) -> list[str]:
        return [text for recipe in self.recipes for text in recipe.sources()]

    def _serve(self) -> None:
        with (
            self._departures,
            Questions(self.source, self._asked(), _WINDOW, until_live=self._is_now) as inputs,
        ):
            self._patience.progressed()
            inputs.sync()
            self._take_inputs(inputs)
            if self._ready is not None and not self.report.inputs and not self._is_through():
                self._ready()
            while not self._is_through():
                self._take_inputs(inputs)
                self.desk.give()
                # What has come may be more to give.
                if self.crew.take(self._take_done):
                    self._patience.progressed()
                else:
                    self._wait()
        left = self.graph.open()
        self.report.nearest = [near.text for near in self._nearest(left)]
        for product in left:
            waiting = self._open(product)
            self._fail(product.number, waiting.cause, waiting.short)

    def _open(self, product: Product) -> Failed:
        """Why a product is not made yet."""
        keys = self.graph.missing(product)
        cause = f"it waits for {', '.join(map(str, keys))}" if keys else "its fields have come, and it was being made"
        short = f"it waits for {in_words(keys)}" if len(keys) > 1 else ""
        return Failed(product.wanted.recipe.product, dict(product.wanted.attributes), cause, short)

    def _is_through(self) -> bool:
        """Whether all products are made or given up, or nothing more can come of what has come."""
        return not self.graph.left or (self._is_over and self.desk.is_idle)

    def _wait(self) -> None:
        if self._is_through():
            return
        # What is being made is no waiting.
        is_waiting = self.desk.is_idle and not self._is_over
        # All that had come was taken just now: a descriptor may be readable although nothing is there.
        if is_waiting and not self._patience.left_s:
            self._look()
            return
        poll = select.poll()
        # Nobody looks at what producers still do, and what is not read wakes again and again.
        pools = [self.pool] if self._is_over else [self.source, self.pool]
        for descriptor in (*(pool.fileno() for pool in pools), *self.crew.descriptors):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(math.ceil(1000 * self._patience.left_s) if is_waiting else None):
            if descriptor in self.crew.descriptors:
                self.crew.look(descriptor)

    def _look(self) -> None:
        """Says what is waited for when nothing has come for a while, and ends where nothing can come any more."""
        try:
            here = present(self.source)
            left = self.graph.open()
            near = self._nearest(left)
            # A store has what several producers made.
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
            self._waits(Waits(tuple(self._waiting(left, near, here.names)), look.says))
        if look.ends and self.until_gone:
            self._departures.give_up()
        elif look.ends:
            self._is_over = True
            self.report.ended = _NOBODY

    def _missing(self, products: Iterable[Product]) -> list[Key]:
        return list(dict.fromkeys(key for product in products for key in self.graph.missing(product)))

    def _nearest(self, products: Iterable[Product]) -> list[Near]:
        """What there is in place of fields that are missing; nothing where the pool has ended."""
        with contextlib.suppress(Closed, Disconnected):
            return nearest(self.source, self._missing(products))
        return []

    def _waiting(self, products: Sequence[Product], near: Iterable[Near], names: Sequence[str]) -> list[str]:
        keys = self._missing(products)
        of = counted(len(products), "product")
        lines = [f"waits for {counted(len(keys), 'field')}, of {of}: {in_words(keys)}"]
        lines += [one.text for one in near]
        if self._departures.are_unseen:
            lines.append(f"nobody called {' or '.join(self._departures.names)} has been there yet")
        lines.append(f"connected are {', '.join(names[:_NAMES_MAX])}" if names else _NOBODY)
        return lines

    def _take_inputs(self, inputs: Questions) -> None:
        """Takes what has come, until there is nothing."""
        while not self._is_over and self._listen(inputs):
            pass

    def _listen(self, inputs: Questions) -> bool:
        """Whether anything had come."""
        are_gone = self._departures.all_are_gone()
        if are_gone:
            inputs.sync()
        count, has_ended = inputs.take(self._take_input)
        self._is_over = has_ended or (are_gone and not count and not self._held)
        return count > 0

    def _take_input(self, obj: junctura.Object) -> None:
        self._patience.progressed()
        self._producers.add(obj.producer)
        nodes = [self.graph.nodes[node] for node in self.graph.inputs(obj.attributes)]
        fresh = [node.number for node in nodes if node.source is None]
        for node in nodes:
            if node.source not in (None, obj.key):
                words = " and ".join(differing(str(node.source), obj.key))
                cause = f"two fields are meant: {node.source} and {obj.key}; state {words} in from"
                self._fail_node(node.number, cause)
            else:
                node.source = obj.key
        keep = self.graph.kept_of(fresh)
        if not keep:
            obj.release()
            return
        # What only one product needs, and waits for last, goes into it at once, and need not be kept.
        products = [number for number in self.graph.last_of(fresh) if is_quick(self.graph.products[number].wanted)]
        keep = sorted(set(keep).difference(*(self.graph.products[number].waiting for number in products)))
        sources = {number: self._sources_of(number, obj.key) for number in products}
        self.report.inputs += 1
        self.report.input_bytes += obj.nbytes
        came = time.monotonic()

        def task(number: int) -> Task:
            return Task(
                number,
                keep=tuple(keep),
                inputs=tuple(fresh),
                key=obj.key,
                products=tuple(products),
                sources=sources,
            )

        self._held += 1

        def then(done: Done) -> None:
            self._held -= 1
            self._decoded[obj.key] += done.decodes
            self.report.decodes_per_input_max = max(self.report.decodes_per_input_max, self._decoded[obj.key])
            self._sources.update(dict.fromkeys(fresh, (obj.key, done.version)))
            # A server that has ended has released it.
            with contextlib.suppress(junctura.Closed, junctura.Disconnected):
                obj.release()
            self._take_nodes(done, came)
            for product in products:
                self._take_product(product, done, came)

        self._preparing.first(obj.key, obj.attributes, fresh, lambda: self.desk.add(task, then, came))

    def _look_at(self, key: str, then: Callable[[str], None]) -> None:
        # A worker does: a message may be such that whoever reads it dies.
        self.desk.add(lambda number: Task(number, key=key, looks=True), lambda done: then(done.grid), time.monotonic())

    def _make_weights(self, weights: Weights, then: Callable[[], None]) -> None:
        # What cannot be made is told by those who need it.
        self.desk.add(lambda number: Task(number, weights=weights), lambda _: then(), time.monotonic())

    def _take_done(self, done: Done) -> None:
        if done.worker:
            self.report.workers[done.worker] = max(self.report.workers.get(done.worker, 0), done.peak_bytes)
        self.desk.take(done)

    def _take_nodes(self, done: Done, came: float) -> None:
        self._came.update(dict.fromkeys(done.kept, came))
        self.report.decodes += done.decodes
        for node, cause in done.failed.items():
            self._fail_node(node, cause)
        self._begin(self.graph.keep(done.kept))
        # What was given up meanwhile.
        self._free(node for node in done.kept if not self.graph.nodes[node].uses)

    def _begin(self, ready: Ready) -> None:
        for pair in ready.pairs:
            self._begin_pair(pair)
        for product in ready.products:
            self._begin_product(product)

    def _begin_pair(self, pair: int) -> None:
        keep = self.graph.kept_of([pair])
        came = max(self._came[parent] for parent in self.graph.nodes[pair].parents)

        def then(done: Done) -> None:
            self._take_nodes(done, came)
            self._free(self.graph.use(self.graph.nodes[pair].parents))

        self.desk.add(lambda number: Task(number, tuple(keep), pair=pair), then, came)

    def _begin_product(self, product: int) -> None:
        sources = {product: self._sources_of(product)}
        came = max(self._came[node] for node in self.graph.products[product].nodes)
        self.desk.add(
            lambda number: Task(number, products=(product,), sources=sources),
            lambda done: self._take_product(product, done, came),
            came + patience_s(self.graph.products[product].wanted),
        )

    def _sources_of(self, product: int, decoded: str = "") -> tuple[tuple[str, str], ...]:
        """Keys and versions of the objects that it is made of; the one that is to be decoded has no version yet."""
        sources = ((node, self.graph.nodes[node].source) for node in self.graph.inputs_of(product))
        return tuple((key, "") if key == decoded else self._sources[node] for node, key in sources if key is not None)

    def _take_product(self, product: int, done: Done, came: float) -> None:
        if not self.graph.is_open(product):
            return
        if product in done.unmade:
            self._fail(product, done.unmade[product])
            return
        self._free(self.graph.done(product))
        wanted, file = self.graph.products[product].wanted, done.files[product]
        latency_s = time.monotonic() - came
        made = Made(wanted.recipe.product, Path(file.path), file.nbytes, dict(wanted.attributes), latency_s)
        self.report.made.append(made)
        if file.extremes is not None:
            low, high = file.extremes
            self.report.extremes.setdefault(made.product, []).append((low, high))
        self._tell(made)
        self._announce(wanted, made.path, made.nbytes, file.words)

    def _fail_node(self, node: int, cause: str) -> None:
        for product in self.graph.fail_node(node, cause):
            self._fail(product, cause)

    def _fail(self, product: int, cause: str, short: str = "") -> None:
        wanted = self.graph.products[product].wanted
        self._free(self.graph.fail(product, cause))
        failed = Failed(wanted.recipe.product, dict(wanted.attributes), cause, short)
        self.report.failed.append(failed)
        self._tell(failed)

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

    def _free(self, nodes: Iterable[int]) -> None:
        task_messages.free(self.pool, (node for node in nodes if self.graph.nodes[node].is_kept))


def _crew(workers: int | None, dask: str | Path | distributed.Client | None, room: int) -> Crew:
    if dask is None:
        return Processes(workers or automatic(), room)
    if workers:
        raise InvalidArgument("workers", "a Dask cluster has workers of its own: say how many where it is started")
    # Not everybody has Dask.
    from junctura.products._workers.dask_crew import Cluster

    return Cluster(dask, room)


def _absolute(store: str | None) -> str | None:
    """Of a folder, the path that workers find wherever they run."""
    return store if store is None or "://" in store else str(Path(store).resolve())
