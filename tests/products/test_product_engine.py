"""The engine of a run, without pools and processes: in whatever order, nothing is lost and nothing is made twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker_runs import BASE, broker, grid_message, offer, spectral_message
from hypothesis import given, settings
from hypothesis import strategies as st
from witness import Witness

import junctura
from junctura._document.located_yaml import documents
from junctura._transitions import IllegalTransitionError
from junctura.products._broker.engine import ProductEngine, UnexpectedAnswerError
from junctura.products._broker.engine_events import (
    BeginTask,
    EngineEvent,
    FreeArrays,
    InputArrived,
    ProductAbandoned,
    ProductFound,
    ReleaseInput,
    ReportFailed,
    ReportMade,
    TaskAnswered,
)
from junctura.products._broker.life_cycles import InputState, PairState, ProductState
from junctura.products._broker.run_report import Failed, Report
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._recipe.reading import recipe_of
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
    Task,
    TaskAnswer,
    TaskFailed,
    TasksParted,
    TaskUsage,
    WeightsMade,
    WindsPaired,
)

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=250)
DIED = "3 workers ended while they had it"

GRID = """\
product: grid
from: {param: [t, u], levelist: 850, step: 0/6}
do: [grid: 10/10]
to: {format: grib2, name: "grid_{step}.grib2"}
"""
UNITS = """\
product: units
from: {param: t, levelist: 850, step: 0/6}
do: [grid: 10/10, units: degC]
to: {format: csv, name: "units_{step}.csv"}
"""
SLOW = """\
product: map
from: {param: t, levelist: 850, step: 0/6}
do: [grid: 20/20]
to: {format: png, name: "map_{step}.png"}
"""
WINDS = """\
product: winds
from: {param: [vo, d], levelist: 850, step: 0/6}
do: [wind: {grid: 10/10}]
to: {format: grib2, name: "winds_{step}.grib2"}
"""
JET = """\
product: jet
from: {param: [vo, d, t], levelist: 850, step: 0/6}
do: [wind: {grid: 10/10}, grid: 20/20, crop: {north: 60, west: 0, south: 0, east: 80}]
to: {format: csv, name: "jet_{step}.csv"}
"""
PLAIN = """\
product: plain
from: {param: t, levelist: 850, step: 0/6}
to: {format: grib2, name: "plain_{step}.grib2"}
"""
ALL = (GRID, UNITS, SLOW, WINDS, JET, PLAIN)
OBJECTS = [{"param": param, "levelist": 850, "step": step} for param in ("t", "u", "vo", "d", "q") for step in (0, 6)]


def engine(*texts: str) -> ProductEngine:
    read = [recipe_of(document) for text in texts for document in documents(text.encode(), "t.yaml")]
    return ProductEngine(ProductGraph(read), Report(), is_kept=lambda _: False)


class World:
    """Producers and workers of an engine; `chance` decides what happens next, and what becomes of it."""

    def __init__(self, run: ProductEngine, chance: random.Random, bad: float) -> None:
        self.run, self.chance, self.bad = run, chance, bad
        self.outstanding: dict[int, Task] = {}
        # The tasks that no worker has yet, and those of crashed workers.
        self.waiting: set[int] = set()
        self.parted: list[Task] = []
        self.answered: list[TaskAnswer] = []
        self.begun: list[Task] = []
        self.released: Counter[int] = Counter()
        self.kept: Counter[int] = Counter()
        self.freed: Counter[int] = Counter()
        self.ended: Counter[str] = Counter()
        self.arrived = 0

    def take(self, event: EngineEvent) -> None:
        for action in self.run.take(event):
            match action:
                case BeginTask():
                    self.outstanding[action.order.number] = action.order.task
                    self.waiting.add(action.order.number)
                case ReleaseInput():
                    self.released[action.number] += 1
                case FreeArrays():
                    self.freed.update(action.nodes)
                case ReportMade() | ReportFailed():
                    self.ended[f"{action.event.product} {action.event.attributes['step']}"] += 1
        self.check()

    def arrive(self, attributes: dict[str, Any], run: str = "1") -> None:
        number, self.arrived = self.arrived, self.arrived + 1
        key = ",".join(f"{name}={value}" for name, value in {**attributes, "expver": run}.items())
        self.take(InputArrived(number, key, {**attributes, "expver": run}, 100, float(number)))

    def join(self) -> None:
        """A worker gets an input together with others, if any belong to it."""
        inputs = [one for one in sorted(self.waiting) if isinstance(self.outstanding[one], DecodeInput)]
        if not inputs:
            return
        joined = self.run.join(self.chance.choice(inputs), inputs, self.chance.choice([2, 3, 100]))
        if joined is not None:
            order, numbers = joined
            assert order.number not in self.outstanding and len(numbers) > 1
            for number in numbers:
                del self.outstanding[number]
                self.waiting.remove(number)
            self.outstanding[order.number] = order.task
        self.check()

    def answer(self) -> None:
        """A task ends, one way or another."""
        number = self.chance.choice(list(self.outstanding))
        self.waiting.discard(number)
        self.begun.append(self.outstanding[number])
        answer = TaskAnswer(number, self.result(self.outstanding.pop(number)), TaskUsage(1, number % 3 + 1, number))
        self.answered.append(answer)
        self.take(TaskAnswered(answer, 0.0))

    def answer_again(self) -> None:
        """A worker that was considered dead answers late, perhaps in another way."""
        late = self.chance.choice(self.answered)
        self.take(TaskAnswered(replace(late, result=self.chance.choice([late.result, TaskFailed("late")])), 0.0))

    def fails(self) -> bool:
        return self.chance.random() < self.bad

    def result(self, task: Task) -> Result:
        if self.fails():
            return TaskFailed(DIED)
        match task:
            case LookAtInput():
                return GridFound(self.chance.choice(["F16", "T63", ""]))
            case MakeWeights():
                return WeightsMade()
            case PairWinds():
                return WindsPaired(*self.keep(task.keep))
            case MakeProduct():
                return ProductBuilt(ProductFile(f"out/{task.product}", 10, {}))
            case DecodeInput():
                return InputDecoded("1.1", *self.keep(task.keep), *self.make(task.products))
            case JoinedTasks():
                if self.fails():
                    self.parted.append(task)
                    return TasksParted()
                decoded = tuple(InputDecoded("1.1", *self.keep(one.keep)) for one in task.decodes)
                paired = tuple(WindsPaired(*self.keep(one.keep)) for one in task.pairs)
                made = self.make([one.product for one in task.products])
                return JoinedResults(decoded, paired, (1,) * len(decoded), *made)

    def make(self, products: Sequence[int]) -> tuple[dict[int, ProductFile], dict[int, str]]:
        unmade = {product: "no disk" for product in products if self.fails()}
        return {one: ProductFile(f"out/{one}", 10, {}) for one in products if one not in unmade}, unmade

    def keep(self, nodes: tuple[int, ...]) -> tuple[tuple[int, ...], dict[int, str]]:
        failed = {node: "no memory" for node in nodes if self.fails()}
        kept = tuple(node for node in nodes if node not in failed)
        self.kept.update(kept)
        return kept, failed

    def check(self) -> None:
        """What is true at any moment: whatever is not at its end has a task that will bring it on."""
        tasks = [part for task in self.outstanding.values() for part in parts_of(task)]
        assert self.run.tasks == self.outstanding
        assert len(self.run.inputs) == self.arrived - self.released.total()
        looked = {self.run.inputs[task.input].kind for task in tasks if isinstance(task, LookAtInput)}
        decoding = {task.input for task in tasks if isinstance(task, DecodeInput)}
        is_making = any(isinstance(task, MakeWeights) for task in tasks)
        for number, held in self.run.inputs.items():
            assert {
                InputState.AWAITING_GRID: held.kind in looked,
                InputState.AWAITING_WEIGHTS: is_making,
                InputState.DECODING: number in decoding,
            }[held.state]
        graph = self.run.graph
        pairs = {task.pair for task in tasks if isinstance(task, PairWinds)}
        assert pairs == {node.number for node in graph.nodes if node.is_pair and node.pair_state is PairState.MAKING}
        named = {task.product for task in tasks if isinstance(task, MakeProduct)}
        assert graph.left == len(graph.open())
        assert all(node.uses >= 0 for node in graph.nodes)
        named |= {product for held in self.run.inputs.values() for product in held.task.products}
        making = {product.number for product in graph.products if product.state is ProductState.MAKING}
        assert making <= named
        assert all(graph.products[one].state in (ProductState.MAKING, ProductState.FAILED) for one in named)

    def end(self) -> None:
        """What is true when all is over."""
        graph, report = self.run.graph, self.run.report
        for product in graph.open():
            failure = Failed(product.wanted.recipe.product, dict(product.wanted.attributes), "nothing comes")
            self.take(ProductAbandoned(product.number, failure))
        assert (self.outstanding, self.run.inputs) == ({}, {})
        assert self.released == dict.fromkeys(range(self.arrived), 1)
        assert self.freed == self.kept == dict.fromkeys(self.kept, 1)
        wanted = [f"{one.wanted.recipe.product} {one.wanted.attributes['step']}" for one in graph.products]
        present = sum(product.state is ProductState.PRESENT for product in graph.products)
        assert (report.kept, len(wanted)) == (present, len(report.made) + len(report.failed) + present)
        assert set(self.ended.values()) <= {1}
        assert self.ended.total() == len(wanted) - present
        made = [one for one in graph.products if one.state is ProductState.MADE]
        assert len(made) == len(report.made) == len({one.path for one in report.made})
        whole = [task for task in self.begun if task not in self.parted]
        subjects = Counter(subject for task in whole for part in parts_of(task) for subject in subjects_of(part))
        assert set(subjects.values()) <= {1}, "nothing is done twice"


def parts_of(task: Task) -> tuple[Task, ...]:
    """The tasks that are joined in one, or the task itself."""
    return (*task.decodes, *task.pairs, *task.products) if isinstance(task, JoinedTasks) else (task,)


def subjects_of(task: Task) -> list[tuple[str, Any]]:
    """What a task does that no other one may do, too."""
    match task:
        case LookAtInput():
            return [("look", task.input)]
        case MakeWeights():
            return [("weights", task.weights)]
        case PairWinds():
            return [("pair", task.pair)]
        case MakeProduct():
            return [("product", task.product)]
        case DecodeInput():
            return [("decode", task.key), *(("product", product) for product in task.products)]
        case JoinedTasks():
            raise AssertionError("it has parts")


CHOSEN = st.lists(st.sampled_from(ALL), min_size=1, unique=True)


@FIXED
@given(CHOSEN, st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.sampled_from([0.0, 0.5]))
def test_in_any_order_nothing_is_lost_and_nothing_is_made_twice(
    chosen: list[str], seed: int, bad: float, joining: float
) -> None:
    chance = random.Random(seed)
    world = World(engine(*chosen), chance, bad)
    for product in world.run.graph.products:
        if chance.random() < 0.1:
            world.take(ProductFound(product.number))
    left = [one for one in OBJECTS if chance.random() < 0.9]
    chance.shuffle(left)
    while True:
        moves: list[Callable[[], None]] = []
        if left:
            moves.append(lambda: world.arrive(left.pop()))
        if world.outstanding:
            moves += [world.answer] * 2
        if not moves:
            break
        if world.waiting and chance.random() < joining:
            moves = [world.join]
        if world.answered and chance.random() < 0.2:
            moves.append(world.answer_again)
        if chance.random() < 0.1:
            # The same field of another experiment, which a recipe may mean as well.
            moves.append(lambda: world.arrive(chance.choice(OBJECTS), run="2"))
        chance.choice(moves)()
    world.end()


def test_without_trouble_all_products_are_made() -> None:
    for seed in range(20):
        world = World(engine(*ALL), random.Random(seed), 0.0)
        for one in OBJECTS:
            world.arrive(one)
        while world.outstanding:
            world.answer()
        world.end()
        assert world.run.report.failed == []
        assert all(one.state is ProductState.MADE for one in world.run.graph.products)
        assert (world.run.report.inputs, world.run.report.decodes_per_input_max) == (8, 1)


def joined_of(world: World, most: int) -> JoinedTasks:
    """Joins the first waiting input with others."""
    inputs = [number for number in sorted(world.waiting) if isinstance(world.outstanding[number], DecodeInput)]
    joined = world.run.join(inputs[0], inputs, most)
    assert joined is not None
    order, numbers = joined
    world.waiting.difference_update(numbers)
    for number in numbers:
        del world.outstanding[number]
    world.outstanding[order.number] = order.task
    assert isinstance(order.task, JoinedTasks)
    return order.task


MEAN_AND_WINDS = """\
product: mean
from: {param: t, levelist: 850, step: 0, number: 1/2}
do: [ensemble: [mean]]
to: {format: grib2, name: mean.grib2}
---
product: map
from: {param: t, levelist: 850, step: 0, number: 1}
to: {format: png, name: map.png}
---
product: speed
from: {param: [vo, d], levelist: 850, step: 0, number: 1}
do: [wind: {grid: 10/10}, crop: {north: 60, west: 0, south: 0, east: 80}]
to: {format: csv, name: speed.csv}
"""


def waiting_world(*objects: tuple[str, int]) -> World:
    """A run whose inputs have all arrived, and wait for workers."""
    world = World(engine(MEAN_AND_WINDS), random.Random(1), 0.0)
    for param, number in objects:
        world.arrive({"param": param, "levelist": 850, "step": 0, "number": number})
    while any(not isinstance(task, DecodeInput) for task in world.outstanding.values()):
        number = next(one for one, task in world.outstanding.items() if not isinstance(task, DecodeInput))
        world.waiting.remove(number)
        answer = TaskAnswer(number, world.result(world.outstanding.pop(number)), TaskUsage())
        world.take(TaskAnswered(answer, 0.0))
    return world


def test_inputs_of_one_product_are_joined_and_only_what_others_need_is_kept() -> None:
    world = waiting_world(("t", 1), ("vo", 1), ("t", 2), ("d", 1))
    members = joined_of(world, 3)
    graph = world.run.graph
    assert [graph.nodes[one.nodes[0]].key["number"] for one in members.decodes] == [1, 2]  # type: ignore[index]
    # The map is slow, and its field is for the worker that draws it.
    assert [len(one.keep) for one in members.decodes] == [1, 0]
    assert [graph.products[one.product].wanted.recipe.product for one in members.products] == ["mean"]
    winds = joined_of(world, 3)
    assert ([one.keep for one in winds.decodes], [one.keep for one in winds.pairs]) == ([(), ()], [()])
    assert [graph.products[one.product].wanted.recipe.product for one in winds.products] == ["speed"]
    while world.outstanding:
        world.answer()
    world.end()
    assert len(world.run.report.made) == 3


def test_inputs_that_no_product_needs_together_are_not_joined() -> None:
    world = waiting_world(("t", 1), ("vo", 1))
    inputs = sorted(world.waiting)
    assert world.run.join(inputs[0], inputs, 100) is None


def test_more_inputs_than_a_message_may_have_are_not_joined() -> None:
    world = waiting_world(("t", 1), ("t", 2))
    inputs = sorted(world.waiting)
    assert world.run.join(inputs[0], inputs, 1) is None


def test_joined_tasks_of_a_worker_that_died_are_done_apart() -> None:
    world = waiting_world(("t", 1), ("t", 2), ("vo", 1), ("d", 1))
    joined_of(world, 2)
    joined_of(world, 2)
    for number in list(world.outstanding):
        world.parted.append(world.outstanding.pop(number))
        world.begun.append(world.parted[-1])
        world.take(TaskAnswered(TaskAnswer(number, TasksParted(), TaskUsage(decodes=2)), 0.0))
    assert {type(task) for task in world.outstanding.values()} == {DecodeInput}
    # One of the inputs may have caused it.
    assert all(world.run.join(number, world.waiting, 100) is None for number in world.waiting)
    while world.outstanding:
        world.answer()
    world.end()
    assert (len(world.run.report.made), world.run.report.decodes_per_input_max) == (3, 2)


def test_a_product_that_failed_while_it_was_made_stays_failed_when_the_file_is_there() -> None:
    world = World(engine(PLAIN), random.Random(1), 0.0)
    world.arrive(OBJECTS[0])
    world.arrive(OBJECTS[0], run="2")
    (failed,) = world.run.report.failed
    assert failed.cause.startswith("two fields are meant")
    world.answer()
    assert world.run.report.made == []
    world.end()


@pytest.mark.parametrize("result", [GridFound("F16"), WeightsMade(), WindsPaired()])
def test_an_answer_of_another_kind_is_a_named_error(result: Result) -> None:
    run = engine(PLAIN)
    run.take(InputArrived(0, "k", {**BASE, "param": "t", "step": 0}, 1, 0.0))
    with pytest.raises(UnexpectedAnswerError, match=f"^DecodeInput was answered with {type(result).__name__}$"):
        run.take(TaskAnswered(TaskAnswer(0, result, TaskUsage()), 0.0))


def test_a_product_that_was_found_is_found_once() -> None:
    run = engine(PLAIN)
    run.take(ProductFound(0))
    with pytest.raises(IllegalTransitionError, match=r"^product 0: event found in state present$"):
        run.take(ProductFound(0))


# With workers that die.

SHARED = """\
product: gridded
from: {param: t, levelist: 850, step: 0/6, number: 1/2}
do: [grid: 10/10]
to: {format: grib2, name: "grid_{number}_{step}.grib2"}
---
product: mean
from: {param: t, levelist: 850, step: 0/6, number: 1/2}
do: [grid: 10/10, ensemble: [mean]]
to: {format: grib2, name: "mean_{step}.grib2"}
---
product: winds
from: {param: [vo, d], levelist: 850, step: 0/6, number: 1}
do: [wind: {grid: 10/10}]
to: {format: grib2, name: "winds_{step}.grib2"}
---
product: plain
from: {param: q, levelist: 850, step: 0/6, number: 1}
to: {format: grib2, name: "plain_{step}.grib2"}
"""
FILES = 4 + 2 + 2 + 2
# Of a task that no worker survives: what it is needed for. Weights are then made by the task that needs them.
LOST = {
    "LookAtInput": set(),
    "MakeWeights": set(),
    "DecodeInput": {"gridded", "mean", "winds", "plain"},
    "PairWinds": {"winds"},
    "MakeProduct": {"gridded", "mean", "winds"},
}


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path / "cache"))
    with junctura.Pool(schema="mars") as pool:
        for step in (0, 6):
            for number in (1, 2):
                offer(pool, grid_message(1.0 + number, shortName="t"), param="t", number=number, step=step)
            for seed, param in enumerate(("vo", "d")):
                offer(pool, spectral_message(seed, shortName=param), param=param, number=1, step=step)
            offer(pool, grid_message(3.0, shortName="q"), param="q", number=1, step=step)
        yield pool


def run_of(folder: Path, pool: junctura.Pool, workers: int, joining: int) -> Report:
    running = broker(folder, pool, SHARED, workers=workers)
    running.crew.joining = joining
    return running.run()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("count", [1, 1000])
def test_no_product_is_lost_with_a_worker_that_does_joined_tasks(
    tmp_path: Path, offered: junctura.Pool, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    Witness(tmp_path, monkeypatch).kills("JoinedTasks", count)
    report = run_of(tmp_path, offered, workers=1, joining=1)
    assert (report.failed, report.deaths > 0, len(report.made)) == ([], True, FILES)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("tag", LOST)
def test_the_task_of_a_worker_that_dies_is_done_by_another_one(
    tmp_path: Path, offered: junctura.Pool, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    Witness(tmp_path, monkeypatch).kills(tag, 1)
    report = run_of(tmp_path, offered, workers=2, joining=0)
    assert (report.failed, report.deaths) == ([], 1)
    assert len({made.path for made in report.made}) == len(report.made) == FILES


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("tag", "lost"), LOST.items())
def test_a_task_that_no_worker_survives_fails_what_needs_it_by_name(
    tmp_path: Path, offered: junctura.Pool, monkeypatch: pytest.MonkeyPatch, tag: str, lost: set[str]
) -> None:
    Witness(tmp_path, monkeypatch).kills(tag, 1000)
    report = run_of(tmp_path, offered, workers=1, joining=0)
    assert {failed.product for failed in report.failed} == lost
    assert all(failed.cause == DIED for failed in report.failed)
    assert len(report.made) + len(report.failed) == FILES
