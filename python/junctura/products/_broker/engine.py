"""The product engine decides which tasks are due: events in, actions out. No pool, no clock, no I/O but `is_kept`.

`life_cycles` has the states of inputs, pairs and products, and the tables of their transitions. Every answer belongs to
the task with its number, and the task names its subject. An answer to a task that is not outstanding has no effect: a
worker that was considered dead may answer after its successor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from junctura.products._broker.engine_events import (
    BeginTask,
    EngineAction,
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
from junctura.products._broker.life_cycles import INPUT, InputEvent, InputState, ProductState
from junctura.products._broker.run_report import Failed, Made, Report
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._broker.task_joiner import companions, joined
from junctura.products._broker.weights_planner import WeightsPlanner, is_on_disk, kind_of
from junctura.products._recipe.mars_words import differing
from junctura.products._regrid.interpolate import quantity_of
from junctura.products._regrid.weight_matrices import Quantity
from junctura.products._tasks.tasks import (
    DecodeInput,
    GridFound,
    InputDecoded,
    JoinedResults,
    JoinedTasks,
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
    WeightsMade,
    WeightsSpec,
    WindsPaired,
)
from junctura.products._workers.make_product import is_quick, patience_s

ResultT = TypeVar("ResultT", bound=Result)
# Joined tasks end together: with more inputs the first product is announced later, and little more is saved. The fields
# of large messages take more memory than to keep them costs time.
_JOINED_MAX = 32
_JOINED_BYTES_MAX = 8 << 20


class UnexpectedAnswerError(RuntimeError):
    """The result of a task is not one of its kind: a defect of Junctura, not of its input."""


@dataclass(eq=False)
class HeldInput:
    """An input that the broker holds until it has been decoded.

    Attributes
    ----------
    task
        The task that decodes it.
    kind, quantity
        The properties that determine the weights that it needs.
    nbytes
        The size of the message.
    came
        When it arrived.
    may_join
        Whether its task may be joined with others: not after a worker has crashed with them.

    """

    number: int
    task: DecodeInput
    kind: Hashable
    quantity: Quantity
    nbytes: int
    came: float
    may_join: bool = True
    state: InputState = InputState.ARRIVED


class ProductEngine:
    """The engine of one run.

    Parameters
    ----------
    graph
        The inputs, arrays and products of the recipes.
    report
        Receives counts, made products and failures.
    is_kept
        Returns whether weights exist already.

    """

    def __init__(
        self, graph: ProductGraph, report: Report, is_kept: Callable[[WeightsSpec], bool] = is_on_disk
    ) -> None:
        self.graph, self.report = graph, report
        self._planner = WeightsPlanner(graph, is_kept)
        # The inputs that are not decoded yet, and the tasks without an answer.
        self.inputs: dict[int, HeldInput] = {}
        self.tasks: dict[int, Task] = {}
        self._task_count = 0
        # By input node: key and version of the decoded input, and its time of arrival.
        self._sources: dict[int, Source] = {}
        self._came: dict[int, float] = {}
        # By key: how often it was decoded.
        self._decoded: Counter[str] = Counter()
        # By file name: the product. Fields may complete two names to one, which no check before a run detects.
        self._files: dict[str, int] = {}
        self._actions: list[EngineAction] = []

    def take(self, event: EngineEvent) -> list[EngineAction]:
        """Returns the actions that follow an event.

        Raises
        ------
        IllegalTransitionError, UnexpectedAnswerError
            Defects of the engine.

        """
        match event:
            case InputArrived():
                self._input_arrived(event)
            case TaskAnswered():
                self._task_answered(event)
            case ProductFound():
                self.graph.found(event.product)
                self.report.kept += 1
                self._files[self.graph.products[event.product].wanted.name()] = event.product
            case ProductAbandoned():
                self._fail_product(event.product, event.failure)
        actions, self._actions = self._actions, []
        return actions

    # Inputs.

    def _input_arrived(self, event: InputArrived) -> None:
        nodes = self._claimed_by(event)
        if not self.graph.kept_of(nodes):
            self._actions.append(ReleaseInput(event.number))
            return
        self._came.update(dict.fromkeys(nodes, event.at))
        task = self._decode_task(event.number, event.key, nodes)
        self.report.inputs += 1
        self.report.input_bytes += event.nbytes
        quantity = quantity_of(str(event.attributes.get("param", "")))
        held = HeldInput(event.number, task, kind_of(event.attributes), quantity, event.nbytes, event.at)
        self.inputs[event.number] = held
        self._plan(held, event.at)

    def _decode_task(self, number: int, key: str, nodes: Iterable[int]) -> DecodeInput:
        """Returns the task that decodes an input alone; the products that it makes begin."""
        nodes = tuple(nodes)
        # The last field of a single product is passed to it directly, and is not kept.
        last = [one for one in self.graph.last_of(nodes) if is_quick(self.graph.products[one].wanted)]
        for product in last:
            self.graph.begin(product)
        keep = set(self.graph.kept_of(nodes)).difference(*(self.graph.products[product].waiting for product in last))
        sources = {product: self._sources_of(product, {key}) for product in last}
        return DecodeInput(number, key, nodes, tuple(sorted(keep)), tuple(last), sources)

    def _claimed_by(self, event: InputArrived) -> list[int]:
        """Returns the nodes that have this object as their first input; the others fail, as another object is the same
        node.
        """
        nodes = [self.graph.nodes[number] for number in self.graph.inputs(event.attributes)]
        fresh = [node.number for node in nodes if node.source is None]
        for node in nodes:
            if node.source not in (None, event.key):
                words = " and ".join(differing(str(node.source), event.key))
                cause = f"two fields are meant: {node.source} and {event.key}; state {words} in from"
                self._fail_node(node.number, cause)
            else:
                node.source = event.key
        return fresh

    def _plan(self, held: HeldInput, now: float) -> None:
        """Has an input decoded, or inspected if the weights that it needs are unknown."""
        if not self._planner.needs_grid(held.task.nodes):
            self._decode(held)
        elif (grid := self._planner.grid(held.kind)) is not None:
            self._plan_on(held, grid, now)
        else:
            self._move(held, InputEvent.GRID_WANTED)
            if self._planner.await_grid(held.kind, held.number):
                self._begin(LookAtInput(held.number, held.task.key), now)

    def _plan_on(self, held: HeldInput, grid: str, now: float) -> None:
        """Has an input on this grid decoded when the weights that it needs exist."""
        self._actions += map(HintLegendre, self._planner.hints(held.task.nodes, grid))
        missing = self._planner.missing(held.task.nodes, grid, held.quantity)
        if not missing:
            self._decode(held)
            return
        self._move(held, InputEvent.WEIGHTS_WANTED)
        for weights in self._planner.await_weights(held.number, missing):
            self._begin(MakeWeights(weights), now)

    def _decode(self, held: HeldInput) -> None:
        self._move(held, InputEvent.READY)
        self._begin(held.task, held.came)

    @staticmethod
    def _move(held: HeldInput, event: InputEvent) -> None:
        held.state = INPUT.next(held.state, event, held.task.key)

    # Tasks and their answers.

    def join(self, first: int, waiting: Collection[int], most: int) -> tuple[TaskOrder, list[int]] | None:
        """Joins a task that decodes an input with others whose inputs the same products need.

        Parameters
        ----------
        first, waiting
            The number of the task, and the numbers of all such tasks that no worker has yet.
        most
            Maximum number of tasks.

        Returns
        -------
        tuple or None
            The task that replaces them, and their numbers; None if there is nothing to join.

        """
        tasks = {number: task for number in waiting if isinstance(task := self.tasks[number], DecodeInput)}
        tasks = {number: task for number, task in tasks.items() if self.inputs[task.input].may_join}
        if first not in tasks:
            return None
        chosen, nbytes = [], 0
        for number in companions(self.graph, tasks, first, min(most, _JOINED_MAX)):
            nbytes += self.inputs[tasks[number].input].nbytes
            if nbytes <= _JOINED_BYTES_MAX:
                chosen.append(number)
        if len(chosen) < 2 or chosen[0] != first:
            return None
        task = joined(self.graph, [tasks[number] for number in chosen], self._sources_of)
        for number in chosen:
            del self.tasks[number]
        return self._numbered(task), chosen

    def is_alone(self, number: int) -> bool:
        """Returns whether no product needs the input that a task decodes together with others."""
        task = self.tasks[number]
        return isinstance(task, DecodeInput) and not self.graph.waiting_below(task.nodes)

    def _numbered(self, task: Task) -> TaskOrder:
        number, self._task_count = self._task_count, self._task_count + 1
        self.tasks[number] = task
        return TaskOrder(number, task)

    def _begin(self, task: Task, due: float) -> None:
        self._actions.append(BeginTask(self._numbered(task), due, self._is_brief(task)))

    def _is_brief(self, task: Task) -> bool:
        """Returns whether a task is short; making weights takes seconds, and pictures are slow."""
        if isinstance(task, MakeProduct):
            return is_quick(self.graph.products[task.product].wanted)
        return not isinstance(task, MakeWeights)

    def _task_answered(self, event: TaskAnswered) -> None:
        answer, workers = event.answer, self.report.workers
        if answer.usage.worker:
            workers[answer.usage.worker] = max(workers.get(answer.usage.worker, 0), answer.usage.peak_bytes)
        task = self.tasks.pop(answer.number, None)
        match task:
            case None:
                return
            case LookAtInput():
                self._looked(task, answer.result, event.at)
            case MakeWeights():
                self._weights_made(task, answer.result)
            case DecodeInput():
                self._decoded_input(task, answer, event.at)
            case PairWinds():
                self.report.decodes += answer.usage.decodes
                self._paired(task, answer.result)
            case MakeProduct():
                self._built(task, answer.result, event.at)
            case JoinedTasks():
                self._joined(task, answer, event.at)

    def _looked(self, task: LookAtInput, result: Result, now: float) -> None:
        # An input that cannot be read waits for no weights: its own task fails with the cause.
        grid = "" if isinstance(result, TaskFailed) else _expected(GridFound, task, result).grid
        for number in self._planner.grid_found(self.inputs[task.input].kind, grid):
            self._plan_on(self.inputs[number], grid, now)

    def _weights_made(self, task: MakeWeights, result: Result) -> None:
        # Without the weights the tasks that need them fail with the cause.
        if not isinstance(result, TaskFailed):
            _expected(WeightsMade, task, result)
        for number in self._planner.weights_settled(task.weights):
            self._decode(self.inputs[number])

    def _decoded_input(self, task: DecodeInput, answer: TaskAnswer, now: float) -> None:
        decoded, is_failed = answer.result, isinstance(answer.result, TaskFailed)
        if isinstance(decoded, TaskFailed):
            cause = decoded.cause
            decoded = InputDecoded(failed=dict.fromkeys(task.keep, cause), unmade=dict.fromkeys(task.products, cause))
        decoded = _expected(InputDecoded, task, decoded)
        self.report.decodes += answer.usage.decodes
        self._end_input(task, decoded, answer.usage.decodes, is_failed=is_failed)
        self._end_products(task.products, decoded.files, decoded.unmade, now)

    def _end_input(self, task: DecodeInput, decoded: InputDecoded, decodes: int, *, is_failed: bool) -> None:
        """Records what a task made of an input, without its products."""
        self._move(self.inputs.pop(task.input), InputEvent.FAILED if is_failed else InputEvent.DECODED)
        self._count_decodes(task, decodes)
        self._sources.update(dict.fromkeys(task.nodes, (task.key, decoded.version)))
        self._actions.append(ReleaseInput(task.input))
        self._nodes_made(decoded.kept, decoded.failed)

    def _count_decodes(self, task: DecodeInput, decodes: int) -> None:
        self._decoded[task.key] += decodes
        self.report.decodes_per_input_max = max(self.report.decodes_per_input_max, self._decoded[task.key])

    def _paired(self, task: PairWinds, result: Result) -> None:
        if isinstance(result, TaskFailed):
            result = WindsPaired(failed=dict.fromkeys(task.keep, result.cause))
        paired = _expected(WindsPaired, task, result)
        self._nodes_made(paired.kept, paired.failed)
        # Without fields to keep, the products of its task report an error.
        self._free(self.graph.end_pair(task.pair, is_made=bool(paired.kept) or not task.keep))

    def _built(self, task: MakeProduct, result: Result, now: float) -> None:
        if isinstance(result, TaskFailed):
            self._unmade(task.product, result.cause)
            return
        self._made(task.product, _expected(ProductBuilt, task, result).file, now)

    def _joined(self, task: JoinedTasks, answer: TaskAnswer, now: float) -> None:
        result, is_failed = answer.result, isinstance(answer.result, TaskFailed)
        self.report.decodes += answer.usage.decodes
        if isinstance(result, TasksParted):
            self._part(task)
            return
        products = [one.product for one in task.products]
        if isinstance(result, TaskFailed):
            cause = result.cause
            decoded = tuple(InputDecoded(failed=dict.fromkeys(one.keep, cause)) for one in task.decodes)
            paired = tuple(WindsPaired(failed=dict.fromkeys(one.keep, cause)) for one in task.pairs)
            result = JoinedResults(decoded, paired, (0,) * len(decoded), unmade=dict.fromkeys(products, cause))
        results = _expected(JoinedResults, task, result)
        self._end_products(products, results.files, results.unmade, now)
        for one, of_input, decodes in zip(task.decodes, results.decoded, results.decodes, strict=True):
            self._end_input(one, of_input, decodes, is_failed=is_failed)
        for pair, of_pair in zip(task.pairs, results.paired, strict=True):
            self._paired(pair, of_pair)

    def _part(self, task: JoinedTasks) -> None:
        """Has each input decoded by a task of its own, after a worker has crashed with the joined one."""
        free = self.graph.part([one.pair for one in task.pairs], [one.product for one in task.products])
        for one in task.decodes:
            held = self.inputs[one.input]
            # The worker may have decoded it.
            self._count_decodes(one, 1)
            held.task, held.may_join = self._decode_task(one.input, one.key, one.nodes), False
            self._begin(held.task, held.came)
        self._free(free)

    # Nodes and products.

    def _nodes_made(self, kept: Iterable[int], failed: dict[int, str]) -> None:
        kept = list(kept)
        for node, cause in failed.items():
            self._fail_node(node, cause)
        ready = self.graph.keep(kept)
        for pair in ready.pairs:
            self._begin(PairWinds(pair, tuple(self.graph.kept_of([pair]))), self._came_last([pair]))
        for number in ready.products:
            product = self.graph.products[number]
            due = self._came_last(product.nodes) + patience_s(product.wanted)
            self._begin(MakeProduct(number, self._sources_of(number)), due)
        # Products that wanted them may have failed since the task began.
        self._free(node for node in kept if not self.graph.nodes[node].uses)

    def _came_last(self, nodes: Iterable[int]) -> float:
        """Returns the time of arrival of the last input of these nodes."""
        return max(self._came[node] for node in self.graph.roots(nodes))

    def _sources_of(self, product: int, undecoded: Collection[str] = ()) -> tuple[Source, ...]:
        """Returns keys and versions of the inputs of a product; those with one of these keys have no version yet."""
        sources = ((node, self.graph.nodes[node].source) for node in self.graph.inputs_of(product))
        return tuple((key, "") if key in undecoded else self._sources[node] for node, key in sources if key is not None)

    def _end_products(
        self, products: Iterable[int], files: Mapping[int, ProductFile], unmade: Mapping[int, str], now: float
    ) -> None:
        for product in products:
            if product in unmade:
                self._unmade(product, unmade[product])
            else:
                self._made(product, files[product], now)

    def _made(self, number: int, file: ProductFile, now: float) -> None:
        is_late = self.graph.products[number].state is ProductState.FAILED
        free = self.graph.done(number)
        if is_late:
            return
        self._free(free)
        wanted = self.graph.products[number].wanted
        name = wanted.name(**file.words)
        if (other := self._files.setdefault(name, number)) != number:
            replaced = self.graph.products[other].wanted.recipe.product
            cause = f'its file {name} has replaced that of "{replaced}": give them different names in to.name'
            self._report_failed(self._failure(number, cause))
            return
        latency_s = now - self._came_last(self.graph.products[number].nodes)
        made = Made(wanted.recipe.product, Path(file.path), file.nbytes, dict(wanted.attributes), latency_s)
        self.report.made.append(made)
        if file.extremes is not None:
            low, high = file.extremes
            self.report.extremes.setdefault(made.product, []).append((low, high))
        self._actions.append(ReportMade(number, made, file.words))

    def _unmade(self, number: int, cause: str) -> None:
        """Fails a product one of whose tasks has failed, unless the product has failed already."""
        if self.graph.is_open(number):
            self._fail_product(number, self._failure(number, cause))

    def _fail_node(self, node: int, cause: str) -> None:
        for number in self.graph.fail_node(node):
            self._fail_product(number, self._failure(number, cause))

    def _failure(self, number: int, cause: str) -> Failed:
        wanted = self.graph.products[number].wanted
        return Failed(wanted.recipe.product, dict(wanted.attributes), cause)

    def _fail_product(self, number: int, failure: Failed) -> None:
        self._free(self.graph.fail(number))
        self._report_failed(failure)

    def _report_failed(self, failure: Failed) -> None:
        self.report.failed.append(failure)
        self._actions.append(ReportFailed(failure))

    def _free(self, nodes: Iterable[int]) -> None:
        if kept := tuple(node for node in nodes if self.graph.nodes[node].is_kept):
            self._actions.append(FreeArrays(kept))


def _expected(of: type[ResultT], task: Task, result: Result) -> ResultT:
    if not isinstance(result, of):
        raise UnexpectedAnswerError(f"{type(task).__name__} was answered with {type(result).__name__}")
    return result
