"""The product engine decides which tasks are due: events in, actions out. No pool, no clock, no I/O but `is_kept`.

`life_cycles` has the states of inputs, pairs and products, and the tables of their transitions. Every answer belongs to
the task with its number, and the task names its subject. An answer to a task that is not outstanding has no effect: a
worker that was considered dead may answer after its successor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
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
from junctura.products._broker.weights_planner import WeightsPlanner, is_on_disk, kind_of
from junctura.products._recipe.mars_words import differing
from junctura.products._regrid.interpolate import quantity_of
from junctura.products._regrid.weight_matrices import Quantity
from junctura.products._tasks.tasks import (
    DecodeInput,
    GridFound,
    InputDecoded,
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
    WeightsMade,
    WeightsSpec,
    WindsPaired,
)
from junctura.products._workers.make_product import is_quick, patience_s

ResultT = TypeVar("ResultT", bound=Result)


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
    came
        When it arrived.

    """

    number: int
    task: DecodeInput
    kind: Hashable
    quantity: Quantity
    came: float
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
        # By node: key and version of the decoded input, and the arrival time of the last input of the node's fields.
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
        keep = self.graph.kept_of(nodes)
        if not keep:
            self._actions.append(ReleaseInput(event.number))
            return
        # The last field of a single product is passed to it directly, and is not kept.
        last = [one for one in self.graph.last_of(nodes) if is_quick(self.graph.products[one].wanted)]
        for product in last:
            self.graph.begin(product)
        keep = sorted(set(keep).difference(*(self.graph.products[product].waiting for product in last)))
        sources = {product: self._sources_of(product, event.key) for product in last}
        task = DecodeInput(event.number, event.key, tuple(nodes), tuple(keep), tuple(last), sources)
        self.report.inputs += 1
        self.report.input_bytes += event.nbytes
        quantity = quantity_of(str(event.attributes.get("param", "")))
        held = HeldInput(event.number, task, kind_of(event.attributes), quantity, event.at)
        self.inputs[event.number] = held
        self._plan(held, event.at)

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

    def _begin(self, task: Task, due: float) -> None:
        number, self._task_count = self._task_count, self._task_count + 1
        self.tasks[number] = task
        self._actions.append(BeginTask(TaskOrder(number, task), due, self._is_brief(task)))

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
                self._paired(task, answer)
            case MakeProduct():
                self._built(task, answer.result, event.at)

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
        held = self.inputs.pop(task.input)
        decoded = answer.result
        if isinstance(decoded, TaskFailed):
            self._move(held, InputEvent.FAILED)
            cause = decoded.cause
            decoded = InputDecoded(failed=dict.fromkeys(task.keep, cause), unmade=dict.fromkeys(task.products, cause))
        else:
            decoded = _expected(InputDecoded, task, decoded)
            self._move(held, InputEvent.DECODED)
        self._decoded[task.key] += answer.usage.decodes
        report = self.report
        report.decodes_per_input_max = max(report.decodes_per_input_max, self._decoded[task.key])
        report.decodes += answer.usage.decodes
        self._sources.update(dict.fromkeys(task.nodes, (task.key, decoded.version)))
        self._actions.append(ReleaseInput(task.input))
        self._nodes_made(decoded.kept, decoded.failed, held.came)
        for product in task.products:
            if product in decoded.unmade:
                self._unmade(product, decoded.unmade[product])
            else:
                self._made(product, decoded.files[product], now - held.came)

    def _paired(self, task: PairWinds, answer: TaskAnswer) -> None:
        result = answer.result
        if isinstance(result, TaskFailed):
            result = WindsPaired(failed=dict.fromkeys(task.keep, result.cause))
        paired = _expected(WindsPaired, task, result)
        self.report.decodes += answer.usage.decodes
        parents = self.graph.nodes[task.pair].parents
        self._nodes_made(paired.kept, paired.failed, max(self._came[parent] for parent in parents))
        self._free(self.graph.end_pair(task.pair, is_made=bool(paired.kept)))

    def _built(self, task: MakeProduct, result: Result, now: float) -> None:
        if isinstance(result, TaskFailed):
            self._unmade(task.product, result.cause)
            return
        came = max(self._came[node] for node in self.graph.products[task.product].nodes)
        self._made(task.product, _expected(ProductBuilt, task, result).file, now - came)

    # Nodes and products.

    def _nodes_made(self, kept: Iterable[int], failed: dict[int, str], came: float) -> None:
        kept = list(kept)
        self._came.update(dict.fromkeys(kept, came))
        for node, cause in failed.items():
            self._fail_node(node, cause)
        ready = self.graph.keep(kept)
        for pair in ready.pairs:
            due = max(self._came[parent] for parent in self.graph.nodes[pair].parents)
            self._begin(PairWinds(pair, tuple(self.graph.kept_of([pair]))), due)
        for number in ready.products:
            product = self.graph.products[number]
            due = max(self._came[node] for node in product.nodes) + patience_s(product.wanted)
            self._begin(MakeProduct(number, self._sources_of(number)), due)
        # Products that wanted them may have failed since the task began.
        self._free(node for node in kept if not self.graph.nodes[node].uses)

    def _sources_of(self, product: int, decoded: str = "") -> tuple[Source, ...]:
        """Returns keys and versions of the inputs of a product; an input that is not decoded yet has no version."""
        sources = ((node, self.graph.nodes[node].source) for node in self.graph.inputs_of(product))
        return tuple((key, "") if key == decoded else self._sources[node] for node, key in sources if key is not None)

    def _made(self, number: int, file: ProductFile, latency_s: float) -> None:
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
