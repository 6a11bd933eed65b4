"""Inputs are decoded once, and nothing else is moved: counted at the calls of ecCodes and MIR, and by the pool."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker_runs import BASE, broker, client, grid_message, in_background, offer, recipes, served, spectral_message
from witness import Witness

import junctura
from junctura.products import Failed, Made, Report
from junctura.products._broker.engine_events import EngineAction, EngineEvent, TaskAnswered
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._regrid.grids import Grid, grid
from junctura.products._regrid.interpolate import to_grid
from junctura.products._tasks.task_messages import BrokerJob
from junctura.products._tasks.tasks import DecodeInput, InputDecoded, MakeProduct, TaskOrder
from junctura.products._workers import worker_process
from junctura.products._workers.worker_process import Worker

pytestmark = pytest.mark.timeout(120)

# Each input of a temperature goes into three files.
SHARED = """\
product: gridded
from: {param: t, levelist: 850, step: 0/6, number: 1/2}
do: [grid: 10/10]
to: {format: grib2, name: "grid_{number}_{step}.grib2"}
---
product: area
from: {param: t, levelist: 850, step: 0/6, number: 1/2}
do: [grid: 10/10, crop: {north: 60, west: 0, south: 30, east: 40}]
to: {format: csv, name: "area_{number}_{step}.csv"}
---
product: ensemble
from: {param: t, levelist: 850, step: 0/6, number: 1/2}
do: [grid: 10/10, ensemble: [mean, max]]
to: {format: grib2, name: "ensemble_{step}.grib2"}
---
product: winds
from: {param: [vo, d], levelist: 850, step: 0/6, number: 1}
do: [wind: {grid: 10/10}]
to: {format: grib2, name: "winds_{step}.grib2"}
"""
FILES = 4 + 4 + 2 + 2
GRIDDED = SHARED.partition("---\n")[0]

PLAIN = """\
product: plain
from: {param: [t, u, v], levelist: 850, step: 0/6}
to: {format: grib2, name: "plain_{step}.grib2"}
"""
NEEDED, UNNEEDED = ("t", "u", "v"), ("q", "r", "w", "vo", "d", "gh", "o3", "cc", "pv")


def digest(message: bytes) -> str:
    return hashlib.sha256(message).hexdigest()


def harmonics(param: str, number: int, step: int) -> bytes:
    return spectral_message(sum(map(ord, param)) * 100 + 10 * number + step, shortName=param, level=850)


def offer_shared(pool: junctura.Pool) -> list[str]:
    """All inputs of the products; returns what their messages are known by."""
    sent = []
    for step in (0, 6):
        for param, number in (("t", 1), ("t", 2), ("vo", 1), ("d", 1)):
            message = harmonics(param, number, step)
            offer(pool, message, param=param, number=number, step=step)
            sent.append(digest(message))
    return sent


def test_the_library_decodes_each_input_once_however_many_products_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D: each input is read once for all products."""
    witness = Witness(tmp_path, monkeypatch)
    with junctura.Pool(schema="mars") as pool:
        sent = offer_shared(pool)
        report = broker(tmp_path, pool, SHARED, workers=2).run()
    assert (report.failed, len(report.made)) == ([], FILES)
    assert witness.decoded() == Counter(sent) == dict.fromkeys(sent, 1)
    assert (report.decodes, report.decodes_per_input_max) == (len(sent), 1)


MEAN = """\
product: mean
from: {param: t, levelist: 850, step: 0, number: 1/to/3}
do: [grid: 10/10, ensemble: [mean]]
to: {format: grib2, bits: 24, name: mean.grib2}
"""


def test_the_last_field_of_a_product_goes_into_it_without_being_kept(tmp_path: Path) -> None:
    taken: queue.SimpleQueue[InputDecoded] = queue.SimpleQueue()
    messages = [harmonics("t", number, 0) for number in (1, 2, 3)]

    def watch(event: EngineEvent) -> list[EngineAction]:
        actions = take(event)
        if isinstance(event, TaskAnswered) and isinstance(event.answer.result, InputDecoded):
            taken.put(event.answer.result)
        return actions

    with junctura.Pool(schema="mars") as pool:
        running = broker(tmp_path, pool, MEAN, workers=2)
        take = running.engine.take
        running.engine.take = watch  # type: ignore[method-assign]
        kept = []
        with in_background(running, threading.Event()) as reports:
            for number, message in enumerate(messages, 1):
                offer(pool, message, param="t", number=number, step=0)
                kept.append(len(taken.get(timeout=60).kept))
    (report,) = reports
    assert (report.failed, len(report.made), report.decodes) == ([], 1, 3)
    assert kept == [1, 1, 0]
    made, on = decode((tmp_path / "out/mean.grib2").read_bytes()), grid("10/10")
    assert isinstance(on, Grid)
    expected = np.mean([to_grid(decode(message), on, "linear").values for message in messages], axis=0)
    np.testing.assert_allclose(made.values, expected, rtol=0, atol=np.ptp(expected) * 2.0**-22)
    inputs = json.loads((tmp_path / "out/mean.grib2.provenance.json").read_text())["inputs"]
    assert len({one["key"] for one in inputs}) == len({one["version"] for one in inputs}) == 3
    assert all(one["version"] for one in inputs)


JET = """\
product: jet
from: {param: [vo, d], levelist: 850, step: 0, number: 1}
do: [wind: {grid: 10/10}, crop: {north: 60, west: 0, south: 30, east: 40}]
to: {format: csv, name: jet.csv}
"""


def test_what_comes_of_a_pair_is_made_where_nobody_needs_the_pair_itself(tmp_path: Path) -> None:
    with junctura.Pool(schema="mars") as pool:
        for param in ("vo", "d"):
            offer(pool, harmonics(param, 1, 0), param=param, number=1, step=0)
        report = broker(tmp_path, pool, JET).run()
    assert (report.failed, [one.path.name for one in report.made]) == ([], ["jet.csv"])
    rows = (tmp_path / "out/jet.csv").read_text().splitlines()[1:]
    assert len(rows) == 2 * 4 * 5, "u and v at four latitudes and five longitudes"


def test_what_a_killed_worker_held_is_decoded_once_more_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has decoded a field, and is killed before anybody hears of it."""
    witness = Witness(tmp_path, monkeypatch)
    victim = digest(harmonics("t", 2, 6))
    report, sent = killed_at(tmp_path, witness, victim, joining=0)
    assert witness.decoded() == {one: 1 + (one == victim) for one in sent}
    assert (report.decodes, report.decodes_per_input_max) == (len(sent) + 1, 2)


def killed_at(folder: Path, witness: Witness, victim: str, joining: int) -> tuple[Report, list[str]]:
    """A run whose worker is killed when it has decoded a message; what it reports, and what was offered."""
    witness.holds(f"decoded {victim}")
    with junctura.Pool(schema="mars") as pool:
        sent = offer_shared(pool)
        running = broker(folder, pool, SHARED, workers=2)
        running.crew.joining = joining
        with in_background(running, threading.Event()) as reports:
            os.kill(witness.held(), signal.SIGKILL)
    (report,) = reports
    assert (report.failed, len(report.made), report.deaths) == ([], FILES, 1)
    return report, sent


def test_what_a_killed_worker_had_joined_is_decoded_at_most_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs of one product are in one task, which is done apart after that."""
    witness = Witness(tmp_path, monkeypatch)
    victim = digest(harmonics("t", 2, 6))
    report, sent = killed_at(tmp_path, witness, victim, joining=2)
    decoded = witness.decoded()
    assert decoded[victim] == 2
    assert decoded.keys() == set(sent) and set(decoded.values()) <= {1, 2}
    assert report.decodes >= decoded.total() and report.decodes_per_input_max == 2


@pytest.mark.skipif(importlib.util.find_spec("mir") is None, reason="MIR is not installed")
def test_the_interpolation_library_gets_grids_and_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MIR is asked for the one matrix that all fields need."""
    witness = Witness(tmp_path, monkeypatch)
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path / "cache"))
    sent = []
    with junctura.Pool(schema="mars") as pool:
        for number, step in ((1, 0), (1, 6), (2, 0), (2, 6)):
            message = grid_message(np.arange(64) + 100 * number + step, shortName="t", level=850)
            offer(pool, message, param="t", number=number, step=step)
            sent.append(digest(message))
        report = broker(tmp_path, pool, GRIDDED).run()
    assert (report.failed, len(report.made)) == ([], 4)
    assert witness.decoded() == dict.fromkeys(sent, 1)
    assert witness.given_to_mir() == {"GridSpecInput": 1}
    # A message would have been seen.
    text = "import io, mir, sys; mir.PyGribInput(io.BytesIO(sys.stdin.buffer.read()))"
    subprocess.run([sys.executable, "-c", text], input=message, check=True)
    assert witness.given_to_mir() == {"GridSpecInput": 1, "PyGribInput": 1}


@contextmanager
def by_tcp(monkeypatch: pytest.MonkeyPatch) -> Iterator[junctura.Pool]:
    """A pool that everybody reaches by the network, though it is on this machine."""
    monkeypatch.setenv("JUNCTURA_TRANSPORTS", "tcp")
    with served() as pool:
        yield pool


@pytest.mark.parametrize("way", ["memory", "tcp"])
def test_nine_of_twelve_parameters_are_not_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """By what the pool counts; each field that is needed goes to the broker, and to the worker that decodes it."""
    needed = offered = 0
    ways: set[tuple[str, str]] = set()

    def observe(_: Made | Failed) -> None:
        for which in (pool, running.pool):
            ways.add((which.url, client(which, "products-worker")["transport"].split()[0]))

    with by_tcp(monkeypatch) if way == "tcp" else junctura.Pool(schema="mars") as pool:
        for step in (0, 6):
            for param in NEEDED + UNNEEDED:
                message = grid_message(np.arange(64) + step, shortName=param, level=850)
                offer(pool, message, param=param, step=step)
                offered += len(message)
                needed += len(message) if param in NEEDED else 0
        running = broker(tmp_path, pool, PLAIN, observer=observe)
        report = running.run()
        totals = pool.stat()["totals"]
    assert (report.failed, report.inputs, report.input_bytes) == ([], 6, needed)
    assert (totals["offered_bytes"], totals["delivered_bytes"]) == (offered, 2 * needed)
    # Workers have what is decoded in memory in any case.
    assert ways == {(pool.url, "tcp" if way == "tcp" else "shm"), (running.pool.url, "shm")}


def test_what_tasks_keep_and_read_is_memory_of_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array that a model offers, what a task keeps of it, and what a product is made of: none is copied."""
    read: list[tuple[str, Any, Field]] = []
    given: list[Field] = []
    module: Any = worker_process
    field_of, make = module.field_of, module.make

    def reads(obj: junctura.Object, attributes: Any) -> Field:
        # The worker releases the object; a view of it stays valid.
        read.append((obj.transport, obj.array(), field_of(obj, attributes)))
        return read[-1][2]

    def makes(wanted: Any, fields: Sequence[Field], *more: Any) -> Any:
        given.extend(fields)
        return make(wanted, fields, *more)

    monkeypatch.setattr(module, "field_of", reads)
    monkeypatch.setattr(module, "make", makes)
    (tmp_path / "out").mkdir()
    text = PLAIN.replace("[t, u, v]", "t").replace("0/6", "0")
    values = np.random.default_rng(1).normal(size=(32, 64))
    with junctura.Pool(schema="mars") as pool, junctura.Pool(schema="free") as own:
        pool.offer(values, {**BASE, "param": "t", "step": 0, "grid": "F16", "units": "K"})
        key = pool.list("")[0].key
        worker = Worker(own, BrokerJob(recipes(tmp_path, text), pool.url, None, str(tmp_path / "out")))
        worker.do(TaskOrder(0, DecodeInput(0, key, nodes=(0,), keep=(0,))))
        worker.do(TaskOrder(1, MakeProduct(0, ((key, "1"),))))
        ((transport, array, field),) = read
        assert transport == "shared" and np.shares_memory(field.values, array)
        with own.demand(name="array/0", timeout=0) as kept:
            assert kept.transport == "shared"
            assert [np.shares_memory(one.values, np.frombuffer(memoryview(kept), np.uint8)) for one in given] == [True]
        np.testing.assert_array_equal(given[0].values, values)
        worker.close()


NAMED_TWICE = """\
product: by-name
from: {param: t, levelist: 850, step: 0, number: 1}
to: {format: grib2, name: name.grib2}
---
product: by-number
from: {param: 130, levelist: 850, step: 0/6, number: 1}
to: {format: grib2, gather: step, name: number.grib2}
"""


def test_an_input_that_recipes_name_differently_is_held_until_each_has_it(tmp_path: Path) -> None:
    """In one task: the second recipe waits for a later input."""
    given: list[str] = []
    with junctura.Pool(schema="mars") as pool:
        for step in (0, 6):
            message = grid_message(280.0 + step, shortName="t", level=850)
            pool.offer(message, {**BASE, "param": "t", "step": step, "paramId": "130"})
        running = broker(tmp_path, pool, NAMED_TWICE, workers=1)
        give = running.crew.give

        def watch(orders: Sequence[TaskOrder], due: float) -> None:
            given.extend(type(order.task).__name__ for order in orders)
            give(orders, due)

        running.crew.give = watch  # type: ignore[method-assign]
        report = running.run()
    assert (report.failed, len(report.made), report.decodes) == ([], 2, 2)
    assert given == ["JoinedTasks"]


def test_what_only_one_product_needs_is_made_in_one_task_and_not_kept(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with junctura.Pool(schema="mars") as pool:
        for step in (0, 6):
            offer(pool, grid_message(1.0 + step, shortName="t"), param="t", step=step)

        def observe(_event: Made | Failed) -> None:
            totals = running.pool.stat()["totals"]
            told.append((totals["offered"], totals["offered_bytes"]))

        running = broker(tmp_path, pool, PLAIN.replace("[t, u, v]", "t"), observer=observe)
        report = running.run()
    assert report.failed == [] and len(report.made) == 2
    offered, offered_bytes = told[-1]
    assert offered == 1 + 2 * 2, "the job, and of each field a task and its answer"
    assert offered_bytes < 8 * 32 * 64, "less than the values of one field"
