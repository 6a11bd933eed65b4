"""A worker: receives tasks of the broker, reads their data in place, and returns the results.

The broker starts workers through a fork server (`fork_server.py`). To start one more:
``python -m junctura.products._workers.worker_process ADDRESS``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import junctura
from junctura._limits import peak_bytes
from junctura.errors import Corrupt
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decodes, field_of
from junctura.products._input.input_grid import grid_of
from junctura.products._input.queries import take_all
from junctura.products._operations._places import as_grid
from junctura.products._recipe.mars_words import canonical, selectors
from junctura.products._regrid.harmonics import warm
from junctura.products._regrid.interpolate import prepare
from junctura.products._tasks import shared_arrays, task_messages
from junctura.products._tasks.codec import read_orders, write_answer
from junctura.products._tasks.task_messages import ATTEMPTS_MAX, WORKER, BrokerJob
from junctura.products._tasks.tasks import (
    DecodeInput,
    GridFound,
    InputDecoded,
    JoinedResults,
    JoinedTasks,
    LegendreSpec,
    LookAtInput,
    MakeProduct,
    MakeWeights,
    PairWinds,
    ProductBuilt,
    ProductFile,
    Result,
    Source,
    Task,
    TaskAnswer,
    TaskFailed,
    TaskOrder,
    TasksParted,
    TaskUsage,
    WeightsMade,
    WindsPaired,
)
from junctura.products._workers.joined_order import JoinedOrder
from junctura.products._workers.make_product import FieldTransforms, make

if TYPE_CHECKING:
    from typing_extensions import Self

# The graph that the process had that this one is forked from.
_inherited: ProductGraph | None = None


def inherit(graph: ProductGraph) -> None:
    """Lets workers that are forked from this process use a graph, if it is that of their job."""
    global _inherited
    _inherited = graph


class Worker:
    """Executes tasks, one at a time.

    Parameters
    ----------
    pool
        The broker's pool, with tasks and arrays.
    job
        The job of the run.

    """

    def __init__(self, pool: junctura.Pool, job: BrokerJob) -> None:
        self.pool = pool
        self.job = job
        is_the_same = _inherited is not None and _inherited.recipes == job.recipes
        self.graph = _inherited if _inherited and is_the_same else ProductGraph(job.recipes)
        self.out = Path(job.out)
        self.transforms = FieldTransforms(self.fields_of)

        self._source: junctura.Pool | None = None
        # Arrays are offered through it while a task is done for the first time; its acknowledgments precede that of the
        # answer.
        self._pipeline: junctura.Pipeline | None = None

    @property
    def source(self) -> junctura.Pool:
        """The pool of the inputs; it may have ended while tasks on decoded fields remain."""
        if self._source is None:
            self._source = self._connect()
        return self._source

    def _connect(self) -> junctura.Pool:
        source = junctura.Pool(self.job.source, name=WORKER, store=self.job.store)
        if self.job.incarnation not in (None, source.incarnation):
            source.close()
            cause = f"on {socket.gethostname()} this is another pool: name the one that is meant by tcp://HOST:PORT"
            raise junctura.Conflict(self.job.source, cause)
        return source

    def input(self, key: str) -> junctura.Object:
        """Returns an input, which the broker holds; reconnects after a lost connection."""
        with contextlib.suppress(junctura.Closed, junctura.Disconnected):
            return self.source.demand(key, timeout=0)
        self._source = None
        return self.source.demand(key, timeout=0)

    def fields_of(self, param: str) -> Iterator[Field]:
        """Returns the available fields of a parameter."""
        (selector,) = selectors({"param": (canonical("param", param),)})
        for entry in self.source.list(selector):
            # Other fields serve as well.
            with contextlib.suppress(junctura.Error), self.input(entry.key) as obj:
                yield field_of(obj, obj.attributes)

    def close(self) -> None:
        """Closes both pools."""
        if self._source is not None:
            self._source.close()
        self.pool.close()

    def run(self) -> None:
        """Executes tasks until the broker has no more."""
        with (
            # A task that a worker completed before its crash may be withdrawn during its redelivery.
            self.pool.follow(group=task_messages.GROUP, window=1, gaps="ignore") as tasks,
            self.pool.follow("kind=hint") as hints,
        ):
            poll = select.poll()
            poll.register(self.pool.fileno(), select.POLLIN)
            while not self._listen(tasks, hints):
                poll.poll()

    def _listen(self, tasks: junctura.Follow, hints: junctura.Follow) -> bool:
        """Executes received tasks, and hints only when there is no task; returns whether none can arrive any more."""
        count = 1
        while count:
            count, has_ended = take_all(tasks, self._take)
            if has_ended:
                return True
            with contextlib.suppress(junctura.Timeout):
                obj = hints.next(timeout=0)
                if obj is None:
                    return True
                count += 1
                with obj:
                    self.warm(task_messages.read_hint(bytes(obj)))
        return False

    @staticmethod
    def warm(hint: LegendreSpec) -> None:
        """Computes Legendre functions before they are needed."""
        # The task that needs them reports the error.
        with contextlib.suppress(junctura.Error):
            warm(hint.truncation, as_grid(hint.target), is_wind=hint.is_wind)

    def _take(self, obj: junctura.Object) -> None:
        # Released when it is complete; redelivered to another worker after a crash.
        with obj:
            try:
                orders = read_orders(bytes(obj))
            except Corrupt as error:
                # Otherwise it would crash one worker after another.
                number = int(str(obj["name"]).removeprefix("task/"))
                self._answer(TaskAnswer(number, TaskFailed(_words(error)), TaskUsage()))
                return
            if obj.redelivered:
                self.do_again(*orders)
            else:
                self._do_first(orders)

    def _do_first(self, orders: Sequence[TaskOrder]) -> None:
        """Executes tasks that no other worker has begun: their arrays do not exist yet."""
        self._pipeline = self.pool.pipeline()
        with self._pipeline:
            self._answer(*map(self.attempt, orders))
        self._pipeline = None

    def do_again(self, *orders: TaskOrder) -> None:
        """Executes the tasks of a redelivered message; fails a task that has crashed several workers.

        Several tasks have separate answers, so that a further crash repeats only tasks without an answer.
        """
        message = orders[0].number
        # A worker may crash after its answer; the broker removes the answer last.
        if task_messages.is_there(self.pool, f"done/{message}") or not task_messages.is_there(
            self.pool, f"task/{message}"
        ):
            return
        if len(orders) == 1:
            self._answer(self._attempt_again(orders[0]))
            return
        for order in orders:
            name = f"done/{message}/{order.number}"
            if not task_messages.is_there(self.pool, name):
                self._send(name, self._attempt_again(order))

    def _attempt_again(self, order: TaskOrder) -> TaskAnswer:
        if isinstance(order.task, JoinedTasks):
            return self._part(order.number, order.task)
        lost = 1 + task_messages.begin(self.pool, order.number)
        return self.attempt(order, lost) if lost < ATTEMPTS_MAX else task_messages.given_up(order, lost)

    def _part(self, number: int, task: JoinedTasks) -> TaskAnswer:
        """Answers joined tasks with which a worker has crashed."""
        # The tasks that follow keep these fields for the first time.
        kept = [node for one in task.decodes for node in one.keep]
        shared_arrays.free(self.pool, kept + [node for one in task.pairs for node in one.keep])
        return TaskAnswer(number, TasksParted(), TaskUsage(len(task.decodes), os.getpid(), peak_bytes()))

    def do(self, order: TaskOrder, lost: int = 0) -> None:
        """Executes a task as `attempt` does, and sends the answer."""
        self._answer(self.attempt(order, lost))

    def _answer(self, *answers: TaskAnswer) -> None:
        self._send(f"done/{answers[0].number}", *answers)

    def _send(self, name: str, *answers: TaskAnswer) -> None:
        task_messages.offer_once(self.pool, write_answer(*answers), name=name, kind="done")

    def attempt(self, order: TaskOrder, lost: int = 0) -> TaskAnswer:
        """Executes a task with which `lost` workers crashed. The result reports failures."""
        before = decodes()
        try:
            result = self._do(order.task)
        except Exception as error:
            result = TaskFailed(_words(error))
        # Each worker that crashed with it may have decoded the input.
        count = decodes() - before + (lost if isinstance(order.task, DecodeInput) else 0)
        return TaskAnswer(order.number, result, TaskUsage(count, os.getpid(), peak_bytes()))

    def _do(self, task: Task) -> Result:
        match task:
            case LookAtInput():
                with self.input(task.key) as obj:
                    return GridFound(grid_of(obj))
            case MakeWeights():
                # They are cached on disk, for all workers.
                prepare(*task.weights)
                return WeightsMade()
            case DecodeInput():
                return self._decode(task)
            case PairWinds():
                with TaskFields(self, pairs=[task.pair]) as made:
                    return WindsPaired(*self._keep_all(task.keep, made))
            case MakeProduct():
                with TaskFields(self) as made:
                    return self._make(task.product, task.sources, made)
            case JoinedTasks():
                return self._do_joined(task)

    def _decode(self, task: DecodeInput) -> InputDecoded:
        files: dict[int, ProductFile] = {}
        unmade: dict[int, str] = {}
        with TaskFields(self, inputs=dict.fromkeys(task.nodes, task.key)) as made:
            kept, failed = self._keep_all(task.keep, made)
            for product in task.products:
                self._make_one(product, task.sources[product], made, files, unmade)
            return InputDecoded(made.version(task.key), kept, failed, files, unmade)

    def _do_joined(self, task: JoinedTasks) -> JoinedResults:
        """Takes one input after the other, and makes what needs no later one: fields are held no longer than needed."""
        inputs = {node: one.key for one in task.decodes for node in one.nodes}
        decoded: list[InputDecoded] = []
        paired: dict[int, WindsPaired] = {}
        files: dict[int, ProductFile] = {}
        unmade: dict[int, str] = {}
        with TaskFields(self, inputs, [one.pair for one in task.pairs]) as made:
            for due in JoinedOrder(self.graph, task):
                kept, failed = self._keep_all(due.decode.keep, made)
                decoded.append(InputDecoded("", kept, failed))
                for pair in due.pairs:
                    paired[pair.pair] = WindsPaired(*self._keep_all(pair.keep, made))
                for product in due.products:
                    self._make_one(product.product, product.sources, made, files, unmade)
                made.drop(due.over)
            # An input without fields to keep is decoded for its products.
            both = zip(decoded, task.decodes, strict=True)
            decoded = [replace(one, version=made.version(of.key)) for one, of in both]
            decodes = tuple(made.decodes(one.key) for one in task.decodes)
        return JoinedResults(tuple(decoded), tuple(paired[one.pair] for one in task.pairs), decodes, files, unmade)

    def _keep_all(self, nodes: Sequence[int], made: TaskFields) -> tuple[tuple[int, ...], dict[int, str]]:
        """Keeps the fields of nodes; returns the kept nodes, and by node the reason of a failure."""
        failed = {node: cause for node in nodes if (cause := self._keep(node, made))}
        return tuple(node for node in nodes if node not in failed), failed

    def _keep(self, node: int, made: TaskFields) -> str:
        """Keeps the fields of a node; returns the reason of a failure, else an empty text."""
        try:
            shared_arrays.keep(self.pool, node, made.fields(node), self._pipeline)
        except Exception as error:
            # Any error: the other nodes can be kept.
            return _words(error)
        return ""

    def _make_one(
        self,
        product: int,
        sources: Sequence[Source],
        made: TaskFields,
        files: dict[int, ProductFile],
        unmade: dict[int, str],
    ) -> None:
        """Makes one product of several; adds it to those that were made, or to the others with the reason."""
        result = self._make(product, sources, made)
        if isinstance(result, ProductBuilt):
            files[product] = result.file
        else:
            unmade[product] = result.cause

    def _make(self, product: int, sources: Sequence[Source], made: TaskFields) -> ProductBuilt | TaskFailed:
        about = self.graph.products[product]
        try:
            fields = [field for node in about.nodes for field in made.fields(node)]
            whole = [(key, version or made.version(key)) for key, version in sources]
            file = make(about.wanted, fields, self.transforms, self.out, whole)
        except Exception as error:
            # Any error: the other products can be made.
            return TaskFailed(_words(error))
        words = {word: str(value) for word, value in file.words.items()}
        return ProductBuilt(ProductFile(str(file.path), file.nbytes, words, file.extremes))


class DecodedInput(NamedTuple):
    """A decoded input; without its field when no node needs it any more."""

    field: Field | None
    version: str
    decodes: int


class TaskFields:
    """The fields of a task's nodes, each computed once.

    Parameters
    ----------
    worker
        The worker that does the task.
    inputs
        By node the key of its input, for the inputs that the task decodes.
    pairs
        The nodes computed from several ones that the task makes.

    """

    def __init__(self, worker: Worker, inputs: Mapping[int, str] | None = None, pairs: Collection[int] = ()) -> None:
        self.worker, self.inputs, self.pairs = worker, inputs or {}, pairs
        self._fields: dict[int, Sequence[Field]] = {}
        self._failures: dict[int, Exception] = {}
        # By key.
        self._decoded: dict[str, DecodedInput] = {}
        # The nodes that are no longer needed.
        self._over: set[int] = set()

    def fields(self, number: int) -> Sequence[Field]:
        """Returns the fields of a node: decoded, found in the pool, or computed from those of its parents."""
        if number in self._failures:
            raise self._failures[number]
        if number not in self._fields:
            try:
                self._fields[number] = self._make(number)
            except Exception as error:
                self._failures[number] = error
                raise
        return self._fields[number]

    def version(self, key: str) -> str:
        """Returns the version of a decoded input; empty if it was not decoded."""
        return self._decoded[key].version if key in self._decoded else ""

    def decodes(self, key: str) -> int:
        """Returns how many messages were decoded for an input."""
        return self._decoded[key].decodes if key in self._decoded else 0

    def drop(self, nodes: Iterable[int]) -> None:
        """Drops the fields of nodes, which are no longer needed."""
        self._over.update(nodes)
        for node in self._over & self._fields.keys():
            del self._fields[node]
        # An input may be several nodes.
        needed = {key for node, key in self.inputs.items() if node not in self._over}
        for key in self._decoded.keys() - needed:
            self._decoded[key] = self._decoded[key]._replace(field=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        # Exceptions reference fields, and these hold arrays of the pool.
        self._fields.clear()
        self._failures.clear()

    def _make(self, number: int) -> Sequence[Field]:
        if number in self.inputs:
            return self._input(self.inputs[number])
        node = self.worker.graph.nodes[number]
        root = self.worker.graph.root(number)
        if node.operation is None or (root not in self.inputs and root not in self.pairs):
            return shared_arrays.kept(self.worker.pool, number)
        given = [field for parent in node.parents for field in self.fields(parent)]
        return node.operation(given, self.worker.transforms)

    def _input(self, key: str) -> Sequence[Field]:
        if key not in self._decoded:
            before = decodes()
            with self.worker.input(key) as obj:
                self._decoded[key] = DecodedInput(
                    field_of(obj, obj.attributes),
                    # It may have been replaced since the broker received it.
                    version=str(obj.version),
                    decodes=decodes() - before,
                )
        field = self._decoded[key].field
        assert field is not None, "it is dropped when no node needs it"
        return [field]


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def work(url: str) -> None:
    """Executes the tasks of the broker with this pool address, until there are no more."""
    # The broker handles Ctrl-C: it ends its workers, with their child processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A session leader has its own group already.
    with contextlib.suppress(PermissionError):
        os.setpgid(0, 0)
    # Without a broker there is no work and no receiver of errors.
    with contextlib.suppress(junctura.Closed, junctura.Disconnected), junctura.Pool(url, name=WORKER) as pool:
        with pool.demand(name="job") as obj:
            job = task_messages.read_job(bytes(obj))
        Worker(pool, job).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", help="where the broker's pool is")
    work(parser.parse_args().pool)


if __name__ == "__main__":
    main()
