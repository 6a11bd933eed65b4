"""Weights are made once each, before the fields that need them, and nothing waits for what cannot be made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker_runs import BASE, TRUNCATION, broker, grid_message, offer, recipes, spectral_message

import junctura
from junctura.products._broker.engine import ProductEngine
from junctura.products._broker.engine_events import BeginTask, EngineEvent, HintLegendre, InputArrived, TaskAnswered
from junctura.products._broker.run_report import Report
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._input.decoding import decode, decodes
from junctura.products._input.input_grid import grid_of
from junctura.products._regrid import legendre, weight_matrices
from junctura.products._regrid.grids import regular_ll
from junctura.products._regrid.harmonics import wind
from junctura.products._regrid.interpolate import prepare, to_grid
from junctura.products._tasks.codec import write_order
from junctura.products._tasks.tasks import (
    DecodeInput,
    GridFound,
    LegendreSpec,
    LookAtInput,
    MakeProduct,
    MakeWeights,
    Result,
    TaskAnswer,
    TaskOrder,
    TaskUsage,
    WeightsMade,
    WeightsSpec,
)
from junctura.products._workers import crew
from junctura.products._workers.worker_process import Worker

pytestmark = pytest.mark.timeout(120)

GRIDDED = """\
product: wide
from: {param: [t, u], levelist: 850, step: 0, number: 1/2/3}
do: [grid: 10/10]
to: {format: grib2, name: "wide_{number}.grib2"}
---
product: area
from: {param: t, levelist: 850, step: 0, number: 1/2/3}
do: [grid: 10/10, units: degC, crop: {north: 60, west: 0, south: 20, east: 60}]
to: {format: grib2, name: "area_{number}.grib2"}
---
product: two
from: {param: t, levelist: 850, step: 0, number: 1/2/3}
do: [grid: F8, grid: 20/20]
to: {format: grib2, name: "two_{number}.grib2"}
---
product: same
from: {param: t, levelist: 850, step: 0, number: 1/2/3}
do: [grid: F16]
to: {format: grib2, name: "same_{number}.grib2"}
"""
OF_T = [
    WeightsSpec("F16", "10/10", "linear", "scalar"),
    WeightsSpec("F16", "F8", "linear", "scalar"),
    WeightsSpec("F8", "20/20", "linear", "scalar"),
]
OF_U = [WeightsSpec("F16", "10/10", "linear", "vector")]


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which no weights are, and nothing in memory that tests of before had made."""
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weight_matrices, "_kept", type(weight_matrices._kept)(1 << 20))
    return tmp_path / "cache/weights"


class Asked:
    """Asks an engine what to do, and does it, but for making weights."""

    def __init__(self, folder: Path, text: str) -> None:
        self.engine = ProductEngine(ProductGraph(recipes(folder, text)), Report())
        # By weights the task that makes them.
        self.made: dict[WeightsSpec, int] = {}
        self.names: list[str] = []
        self.gone: list[str] = []
        self.looked = 0
        self.hints: list[LegendreSpec] = []

    def take(self, event: EngineEvent) -> None:
        for action in self.engine.take(event):
            if isinstance(action, HintLegendre):
                self.hints.append(action.legendre)
            if isinstance(action, BeginTask):
                self.begin(action.order)

    def begin(self, order: TaskOrder) -> None:
        match order.task:
            case LookAtInput():
                self.looked += 1
                with self.pool.demand(order.task.key, timeout=0) as obj:
                    grid = grid_of(obj)
                self.answer(order.number, GridFound(grid))
            case MakeWeights():
                assert order.task.weights not in self.made, "nothing is made twice"
                self.made[order.task.weights] = order.number
            case DecodeInput():
                self.gone.append(self.names[order.task.input])

    def answer(self, number: int, result: Result) -> None:
        self.take(TaskAnswered(TaskAnswer(number, result, TaskUsage()), 0.0))

    def makes(self, weights: WeightsSpec) -> None:
        self.answer(self.made[weights], WeightsMade())

    def comes(self, data: Any, **words: Any) -> None:
        self.names.append(f"{words['param']}{words['number']}")
        with junctura.Pool(schema="mars") as self.pool, self.pool.follow() as objects:
            self.pool.offer(data, {**BASE, "step": 0, **words})
            with objects.next(timeout=50) as obj:
                self.take(InputArrived(len(self.names) - 1, obj.key, obj.attributes, obj.nbytes, 0.0))


def test_fields_wait_for_all_that_they_need_and_each_is_asked_for_once(tmp_path: Path) -> None:
    asked, before = Asked(tmp_path, GRIDDED), decodes()
    for number in (1, 2):
        for param in "tu":
            asked.comes(grid_message(1.0, shortName=param), param=param, number=number)
    assert sorted(asked.made) == sorted(OF_T + OF_U)
    assert decodes() == before, "their grid is known without decoding them"
    assert (asked.gone, asked.looked) == ([], 2)
    for weights in OF_T[:2]:
        asked.makes(weights)
    assert asked.gone == []
    asked.makes(OF_U[0])
    assert asked.gone == ["u1", "u2"]
    asked.makes(OF_T[2])
    assert asked.gone == ["u1", "u2", "t1", "t2"]
    asked.comes(grid_message(1.0, shortName="t"), param="t", number=3)
    assert asked.gone[-1] == "t3"


def test_what_lies_on_disk_is_not_asked_for(tmp_path: Path) -> None:
    for weights in OF_T[:2]:
        prepare(*weights)
    asked = Asked(tmp_path, GRIDDED)
    asked.comes(grid_message(1.0, shortName="t"), param="t", number=1)
    assert list(asked.made) == OF_T[2:]


@pytest.mark.parametrize(
    "data",
    [spectral_message(1), b"no message", np.zeros(3), grid_message(1.0)[:-4]],
    ids=["spectral", "no message", "an array without a grid", "a part of a message"],
)
def test_what_needs_no_weights_or_cannot_be_read_goes_on(tmp_path: Path, data: Any) -> None:
    asked = Asked(tmp_path, GRIDDED.partition("---")[0])
    asked.comes(data, param="t", number=1)
    assert (asked.gone, asked.made) == (["t1"], {})


WINDS = """\
product: winds
from: {param: [vo, d, t], levelist: 850, step: 0, number: 1/2/3}
do: [wind: {grid: 10/10}, grid: 10/10]
to: {format: grib2, name: "winds_{number}.grib2"}
---
product: points
from: {param: t, levelist: 850, step: 0, number: 1/2/3}
do: [grid: [{latitude: 1, longitude: 2}]]
to: {format: csv, name: "points_{number}.csv"}
"""


def test_workers_are_told_once_which_legendre_functions_come(tmp_path: Path) -> None:
    asked = Asked(tmp_path, WINDS)
    for number in (1, 2):
        for param in ("vo", "d", "t"):
            asked.comes(spectral_message(number, shortName=param), param=param, number=number)
    assert asked.hints == [LegendreSpec(TRUNCATION, "10/10", True), LegendreSpec(TRUNCATION, "10/10", False)]
    assert asked.gone == ["vo1", "d1", "t1", "vo2", "d2", "t2"], "nothing waits for them"
    assert asked.made == {}


def test_a_worker_that_was_told_has_the_functions_when_fields_come(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = legendre._batch

    def counting(truncation: int, *rest: Any) -> Any:
        made.append(truncation)
        return make(truncation, *rest)

    monkeypatch.setattr(legendre, "_batch", counting)
    # A grid that no other test has, for functions are kept.
    on = regular_ll(12, 18)
    for is_wind in (False, True):
        Worker.warm(LegendreSpec(TRUNCATION, on.name, is_wind))
    assert set(made) == {TRUNCATION, TRUNCATION + 1}
    made.clear()
    vo, d = (decode(spectral_message(seed)) for seed in (1, 2))
    wind(vo, d, on)
    to_grid(vo, on)
    assert made == []
    Worker.warm(LegendreSpec(5000, on.name, False))


def test_arrays_say_their_grid(tmp_path: Path) -> None:
    asked = Asked(tmp_path, GRIDDED)
    asked.comes(np.zeros((19, 36)), param="t", number=1, grid="10/10")
    source = "10/10"
    assert [(one.source, one.target) for one in asked.made] == [(source, "F16"), (source, "F8"), ("F8", "20/20")]


def test_workers_make_each_matrix_once_and_decode_after_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def writing(*orders: TaskOrder) -> bytes:
        given.extend(order.task for order in orders)
        return write_order(*orders)

    monkeypatch.setattr(crew, "write_order", writing)
    with junctura.Pool(schema="mars") as pool:
        for number in (1, 2, 3):
            for param in "tu":
                offer(pool, grid_message(1.0 + number, shortName=param), param=param, step=0, number=number)
        report = broker(tmp_path, pool, GRIDDED, workers=2).run()
    assert report.failed == [] and len(report.made) == 12
    assert (report.decodes, report.decodes_per_input_max) == (6, 1)
    assert sorted(task.weights for task in given if isinstance(task, MakeWeights)) == sorted(OF_T + OF_U)
    kinds = [type(task) for task in given if not isinstance(task, MakeProduct)]
    assert [kinds.count(kind) for kind in (LookAtInput, MakeWeights, DecodeInput)] == [2, 4, 6]
    assert kinds.index(LookAtInput) < kinds.index(MakeWeights) < kinds.index(DecodeInput)


def test_weights_that_cannot_be_had_fail_those_who_need_them_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path / "file"))
    with junctura.Pool(schema="mars") as pool:
        for number in (1, 2, 3):
            offer(pool, grid_message(1.0, shortName="t"), param="t", step=0, number=number)
        text = GRIDDED.replace("[t, u]", "t")
        report = broker(tmp_path, pool, text).run()
    assert sorted({failed.product for failed in report.failed}) == ["area", "two", "wide"]
    assert all("set JUNCTURA_CACHE" in failed.cause for failed in report.failed)
    assert sorted(made.product for made in report.made) == ["same"] * 3
