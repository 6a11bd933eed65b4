"""Products from end to end: values, what is moved and decoded for them, and what becomes of it when things go wrong."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
from broker_runs import (
    BASE,
    MEMBER,
    SERVER,
    broker,
    client,
    grid_message,
    heard,
    in_background,
    offer,
    program,
    recipes,
    spectral_message,
    wait_until_it_holds,
)
from grib_messages import on_template, reduced

import junctura
from junctura.products import Failed, Field, Made
from junctura.products.__main__ import main
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._input.decoding import decode, decodes
from junctura.products._regrid.grids import points, regular_ll
from junctura.products._regrid.harmonics import wind
from junctura.products._regrid.interpolate import to_grid
from junctura.products._tasks import shared_arrays
from junctura.products._tasks.codec import read_answer, read_answers, write_answer, write_order
from junctura.products._tasks.task_messages import BrokerJob
from junctura.products._tasks.tasks import DecodeInput, InputDecoded, TaskAnswer, TaskFailed, TaskOrder, TaskUsage
from junctura.products._view import ProductsView
from junctura.products._workers import worker_process
from junctura.products._workers.worker_process import Worker

pytestmark = pytest.mark.timeout(180)
TARGET = regular_ll(10, 10)

PRODUCTS = """\
product: gridded
from: {param: t, levelist: 850, step: 0/6, number: 1/2}
do: [grid: 10/10]
to: {format: grib2, bits: 24, name: "grid_{number}_{step}.grib2"}
---
product: ensemble
from: {param: t, levelist: 850, step: 0/6, number: 1/2}
do: [grid: 10/10, ensemble: [mean, max]]
to: {format: netcdf, name: "ensemble_{step}.nc"}
---
product: places
from: {param: t, levelist: 850, step: 0/6, number: 1}
do: [grid: [{latitude: 50.1, longitude: 8.7, name: here}, {latitude: -20, longitude: 200, name: there}]]
to: {format: csv, name: "places_{step}.csv"}
---
product: winds
from: {param: [vo, d], levelist: 850, step: 0/6, number: 1/2}
do: [wind: {grid: 10/10}]
to: {format: grib2, bits: 24, name: "winds_{number}_{step}.grib2"}
"""
NEEDED, UNNEEDED = ("t", "vo", "d"), ("q", "r", "w", "u", "v", "gh", "o3", "cc", "pv")
UNNEEDED_MESSAGE = b"nobody asks for it" * 100

# One product for each step, of a field as it is.
PLAIN = """\
product: plain
from: {param: t, levelist: 850, step: 0/6%s}
to: {format: grib2, name: "plain_{step}.grib2"}
"""
DATED = PLAIN % ", date: 20261120, time: 0000"
PLAIN = PLAIN % ""


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    with junctura.Pool(schema="mars") as pool:
        yield pool


def message(param: str, number: int = 1, step: int = 0) -> bytes:
    return spectral_message(sum(map(ord, param)) * 100 + 10 * number + step, shortName=param, level=850)


def offer_plain(pool: junctura.Pool, step: int, value: float = 280.0) -> None:
    offer(pool, grid_message(value, shortName="t", level=850), param="t", step=step)


def messages(path: Path) -> list[bytes]:
    left, found = path.read_bytes(), []
    while left:
        size = int.from_bytes(left[8:16], "big")
        found.append(left[:size])
        left = left[size:]
    return found


def close(made: Field, values: Any) -> None:
    """Equal up to the 24 bits that a value has in the file."""
    np.testing.assert_allclose(made.values, values, rtol=0, atol=np.ptp(values) * 2.0**-22)


def test_products_are_what_numpy_makes_of_the_decoded_inputs_and_nothing_is_done_twice(
    tmp_path: Path, pool: junctura.Pool
) -> None:
    size = 0
    for step in (0, 6):
        for number in (1, 2):
            for param in NEEDED:
                size += len(message(param, number, step))
                offer(pool, message(param, number, step), param=param, number=number, step=step)
            for param in UNNEEDED:
                offer(pool, UNNEEDED_MESSAGE, param=param, number=number, step=step)
    delivered: list[dict[str, Any]] = []
    arrays: list[int] = []

    def observe(_event: Made | Failed) -> None:
        delivered[:] = pool.stat()["clients"]
        arrays[:] = [len(running.pool.list('name~"^array/"')), len(running.pool.list("kind=array"))]

    running = broker(tmp_path, pool, PRODUCTS, workers=2, observer=observe)
    report = running.run()
    assert report.failed == []
    assert len(report.made) == 4 + 2 + 2 + 4
    assert (report.inputs, report.input_bytes) == (12, size)
    assert (report.decodes, report.decodes_per_input_max, report.deaths) == (12, 1, 0)
    said = {"junctura run": 0, "products-worker": 0}
    for one in delivered:
        if one["name"] in said:
            said[one["name"]] += one["delivered"]
    looked_at = len(NEEDED)  # the first one of each, for its grid
    assert said == {"junctura run": 12, "products-worker": 12 + looked_at}
    totals = pool.stat()["totals"]
    heads = sum(len(message(param)) for param in NEEDED)
    assert totals["delivered_bytes"] == 2 * size + heads, "each goes to the broker and to a worker, and no other one"
    assert totals["offered_bytes"] == size + 2 * 2 * len(UNNEEDED) * len(UNNEEDED_MESSAGE)
    assert arrays == [0, 0]
    for step in (0, 6):
        _check_step(tmp_path / "out", step)


def _check_step(out: Path, step: int) -> None:
    gridded = [to_grid(decode(message("t", number, step)), TARGET, "linear").values for number in (1, 2)]
    for number in (1, 2):
        (made,) = messages(out / f"grid_{number}_{step}.grib2")
        close(decode(made), gridded[number - 1])
        vo, d = (decode(message(param, number, step)) for param in ("vo", "d"))
        expected = wind(vo, d, TARGET)
        for made, field in zip(messages(out / f"winds_{number}_{step}.grib2"), expected, strict=True):
            close(decode(made), field.values)
    with netCDF4.Dataset(out / f"ensemble_{step}.nc") as dataset:
        found = [np.squeeze(one[:]) for one in dataset.variables.values() if one.shape[-2:] == TARGET.shape]
    for expected in (np.mean(gridded, axis=0), np.max(gridded, axis=0)):
        assert any(np.allclose(one, expected, rtol=1e-6, atol=1e-6) for one in found)
    rows = list(csv.DictReader((out / f"places_{step}.csv").read_text().splitlines()))
    at = to_grid(decode(message("t", 1, step)), points([(50.1, 8.7), (-20, 200)]), "linear").values
    assert len(rows) == 2
    for row, value in zip(rows, at, strict=True):
        assert any(np.isclose(float(text), value, rtol=1e-12) for text in row.values() if _is_number(text))


def _is_number(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(np.isfinite(float(text)))
    return False


def test_fields_of_many_places_with_names_are_handed_over(tmp_path: Path, pool: junctura.Pool) -> None:
    listed = ", ".join(f"{{latitude: {n / 10}, longitude: {n / 7:.3f}, name: place {n}}}" for n in range(500))
    text = PLAIN.replace("to:", f"do: [grid: [{listed}]]\nto:").replace("grib2", "csv")
    for step in (0, 6):
        offer(pool, message("t", 1, step), param="t", step=step)
    report = broker(tmp_path, pool, text).run()
    assert report.failed == []
    for step in (0, 6):
        rows = list(csv.DictReader((tmp_path / f"out/plain_{step}.csv").read_text().splitlines()))
        assert [float(row["latitude"]) for row in rows] == [n / 10 for n in range(500)]
        assert [row["place"] for row in rows] == [f"place {n}" for n in range(500)]


def test_a_task_of_a_worker_that_is_killed_goes_to_another(tmp_path: Path, pool: junctura.Pool) -> None:
    """It is stopped while it has nothing to do, gets a task, and is killed while it holds it."""
    made = threading.Event()
    running = broker(tmp_path, pool, PLAIN, observer=lambda _: made.set())
    with in_background(running, made) as reports:
        offer_plain(pool, 0)
        assert made.wait(50)
        # Its answer is there before it lets go of the task.
        victim = wait_until_it_holds(0, running.pool, "products-worker")
        os.kill(victim, signal.SIGSTOP)
        offer_plain(pool, 6)
        wait_until_it_holds(1, running.pool, "products-worker")
        os.kill(victim, signal.SIGKILL)
    (report,) = reports
    assert report.deaths == 1
    assert report.failed == []
    assert len(report.made) == 2
    # It may have decoded what it held: who died says nothing.
    assert (report.decodes, report.decodes_per_input_max) == (3, 2)


def test_workers_that_are_stopped_do_not_keep_it_from_ending(tmp_path: Path, pool: junctura.Pool) -> None:
    offer_plain(pool, 0)
    offer_plain(pool, 6)
    stopped: list[int] = []

    def stop(_event: Made | Failed) -> None:
        if len(running.report.made) == 2:
            stopped.append(client(running.pool, "products-worker")["pid"])
            os.kill(stopped[0], signal.SIGSTOP)

    running = broker(tmp_path, pool, PLAIN, observer=stop)
    assert running.run().failed == []
    with pytest.raises(ProcessLookupError):
        os.kill(stopped[0], 0)


def test_a_task_that_ends_every_worker_is_given_up(
    tmp_path: Path, pool: junctura.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that gets it after another one died says so before it begins, and that those may have decoded its input."""
    offer_plain(pool, 0)
    task = TaskOrder(5, DecodeInput(0, pool.list("")[0].key, nodes=(0,), keep=(0,)))
    said: list[TaskAnswer] = []
    with junctura.Pool(schema="free") as own:
        worker = Worker(own, BrokerJob(recipes(tmp_path, PLAIN), pool.url, None, str(tmp_path)))
        own.offer(write_order(task), name="task/5", kind="task")
        monkeypatch.setattr(worker, "_answer", said.append)
        for turn in (worker.do, worker.do_again, worker.do_again, worker.do_again):
            turn(task)
        worker.close()
    cause = "3 workers ended while they had it"
    results = [answer.result for answer in said]
    assert all(isinstance(one, InputDecoded) and (one.kept, one.failed) == ((0,), {}) for one in results[:3])
    assert results[3] == TaskFailed(cause)
    assert [answer.usage.decodes for answer in said] == [1, 2, 3, 3]


def plain_orders(pool: junctura.Pool) -> list[TaskOrder]:
    """Two tasks of one message, which are numbers 5 and 6."""
    for step in (0, 6):
        offer_plain(pool, step)
    keys = sorted(entry.key for entry in pool.list(""))
    return [TaskOrder(5 + at, DecodeInput(at, key, nodes=(at,), keep=(at,))) for at, key in enumerate(keys)]


def answered(own: junctura.Pool) -> dict[str, list[int]]:
    """Returns the task numbers in each answer."""
    found = {}
    for entry in own.list("kind=done"):
        with own.demand(entry.key, timeout=0) as obj:
            answers = read_answers(bytes(obj))
        assert all(isinstance(one.result, InputDecoded) for one in answers)
        found[str(entry["name"])] = [one.number for one in answers]
    return found


def test_tasks_of_one_message_have_one_answer(tmp_path: Path, pool: junctura.Pool) -> None:
    orders = plain_orders(pool)
    with junctura.Pool(schema="free") as own:
        worker = Worker(own, BrokerJob(recipes(tmp_path, PLAIN), pool.url, None, str(tmp_path)))
        own.offer(write_order(*orders), name="task/5", kind="task")
        worker._take(own.demand(name="task/5", timeout=0))
        assert answered(own) == {"done/5": [5, 6]}
        worker.do_again(*orders)
        assert answered(own) == {"done/5": [5, 6]}
        worker.close()


def test_tasks_of_a_message_whose_worker_died_are_answered_one_by_one(tmp_path: Path, pool: junctura.Pool) -> None:
    """A further crash repeats only the tasks without an answer."""
    orders = plain_orders(pool)
    with junctura.Pool(schema="free") as own:
        worker = Worker(own, BrokerJob(recipes(tmp_path, PLAIN), pool.url, None, str(tmp_path)))
        own.offer(write_order(*orders), name="task/5", kind="task")
        own.offer(write_answer(TaskAnswer(5, InputDecoded(), TaskUsage())), name="done/5/5", kind="done")
        before = decodes()
        for _ in range(2):
            worker.do_again(*orders)
            assert answered(own) == {"done/5/5": [5], "done/5/6": [6]}
        assert decodes() == before + 1
        worker.close()


def test_a_worker_inherits_the_graph_of_its_own_job_only(
    tmp_path: Path, pool: junctura.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_inherited", None)
    read = recipes(tmp_path, PLAIN)
    graph = ProductGraph(read)
    worker_process.inherit(graph)
    job = BrokerJob(pickle.loads(pickle.dumps(read)), pool.url, None, str(tmp_path))
    with junctura.Pool(schema="free") as own:
        assert Worker(own, job).graph is graph
        other = Worker(own, replace(job, recipes=[*read, *read])).graph
        assert (other is graph, len(other.products)) == (False, 2 * len(graph.products))


def test_a_task_that_cannot_be_read_is_answered_with_the_reason(tmp_path: Path, pool: junctura.Pool) -> None:
    with junctura.Pool(schema="free") as own:
        worker = Worker(own, BrokerJob(recipes(tmp_path, PLAIN), pool.url, None, str(tmp_path)))
        own.offer(b'{"number": 5, "task": {"tag": "Boil"}}', name="task/5", kind="task")
        worker._take(own.demand(name="task/5", timeout=0))
        with own.demand(name="done/5", timeout=0) as obj:
            answer = read_answer(bytes(obj))
        worker.close()
    assert answer.number == 5
    assert isinstance(answer.result, TaskFailed)
    assert "unknown tag Boil" in answer.result.cause


@pytest.mark.parametrize("there", [["task/5", "done/5"], []], ids=["answered", "answered, and that was read"])
def test_what_somebody_had_done_who_died_is_not_done_again(
    tmp_path: Path, pool: junctura.Pool, there: list[str]
) -> None:
    offer_plain(pool, 0)
    task = TaskOrder(5, DecodeInput(0, pool.list("")[0].key, nodes=(0,), keep=(0,)))
    with junctura.Pool(schema="free") as own:
        for name in there:
            own.offer(b"", name=name, kind=name.partition("/")[0])
        worker = Worker(own, BrokerJob(recipes(tmp_path, PLAIN), pool.url, None, str(tmp_path)))
        before = decodes()
        worker.do_again(task)
        assert sorted(str(one.attributes["name"]) for one in own.list("")) == sorted(there)
    assert decodes() == before


def test_it_gives_up_when_workers_die_all_the_time(
    tmp_path: Path, pool: junctura.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(junctura.Unavailable, match="have died"):
        broker(tmp_path, pool, PLAIN).run()


COMMAND = [sys.executable, "-m", "junctura.products"]


def test_what_a_broker_that_was_killed_has_finished_is_not_done_again(tmp_path: Path, pool: junctura.Pool) -> None:
    (tmp_path / "wanted.yaml").write_text(DATED)
    out = tmp_path / "out"
    given = [str(tmp_path / "wanted.yaml"), "--pool", pool.url, "--out", str(out), "--workers", "1", "--json"]
    offer_plain(pool, 0)
    left = pool.subscribe(kinds=["left"])
    with subprocess.Popen([*COMMAND, *given], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().strip() == "products 1/2"
        process.kill()
        assert process.stderr.read() == "", "workers have nothing to say to it"
    gone = sorted(_left(left) for _ in range(2))
    assert gone == ["junctura run", "products-worker"], "workers end with their broker"
    before = {path.name: path.stat() for path in out.iterdir() if not path.name.startswith(".")}
    offer_plain(pool, 6)
    done = subprocess.run([*COMMAND, *given], capture_output=True, text=True, timeout=50, check=True)
    assert done.stderr == "  products 1/1\n", "what was there does not count"
    assert not list(out.glob(".*")), "what the one that was killed has left is gone"
    said = json.loads(done.stdout)
    assert (said["products"], said["kept"], said["inputs"], said["failed"]) == (1, 1, 1, [])
    assert sorted(before) == ["plain_0.grib2", "plain_0.grib2.provenance.json"]
    for name, stat in before.items():
        after = (out / name).stat()
        assert (after.st_ino, after.st_mtime_ns) == (stat.st_ino, stat.st_mtime_ns)
    assert decode((out / "plain_6.grib2").read_bytes()).values.max() == pytest.approx(280)


def _left(events: junctura.Subscription) -> str:
    event = events.next(timeout=50)
    assert event is not None and event.client is not None
    return event.client.name


@pytest.mark.parametrize("until_gone", [[], ["swell-*"]])
@pytest.mark.parametrize("end", ["is killed", "stops"])
def test_it_ends_when_the_server_does(tmp_path: Path, end: str, until_gone: list[str]) -> None:
    with program(SERVER) as server:
        url = heard(server)
        with junctura.Pool(url) as producer:
            offer_plain(producer, 0)

            def observe(event: Made | Failed) -> None:
                if isinstance(event, Made) and end == "is killed":
                    server.kill()
                elif isinstance(event, Made):
                    server.communicate()

            running = broker(tmp_path, url, PLAIN, observer=observe, until_gone=until_gone)
            report = running.run()
    assert [one.path.name for one in report.made] == ["plain_0.grib2"]
    assert len(messages(tmp_path / "out/plain_0.grib2")) == 1
    assert [(one.attributes["step"], one.cause) for one in report.failed] == [
        (6, "it waits for levelist=850,param=t,step=6")
    ]


def test_it_ends_when_all_members_are_gone(
    tmp_path: Path, pool: junctura.Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "field.grib").write_bytes(grid_message(280.0, shortName="t", level=850))
    (tmp_path / "wanted.yaml").write_text(PLAIN)
    words = [f"{word}={value}" for word, value in {**BASE, "param": "t", "step": 0}.items()]
    with program(MEMBER, pool.url, str(tmp_path / "field.grib"), *words) as member:
        assert heard(member) == "offered"
        given = [str(tmp_path / "wanted.yaml"), "--pool", pool.url, "--out", str(tmp_path / "out"), "--workers", "1"]
        names = ["--until-gone", "swell-*", "--until-gone", "swell-*", "--until-gone", "*-1"]
        assert main([*given, *names, "--json"]) == 1
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["products"] == 1
    assert report["failed"] == [
        {
            "product": "plain",
            "attributes": {"levelist": 850, "param": "t", "product": "plain", "step": 6},
            "cause": "it waits for levelist=850,param=t,step=6",
        }
    ]
    assert said.err.splitlines() == ["  products 1/2", "  products 1/2, 1 cannot be made"]


WRONG = """\
product: broken
from: {param: q, levelist: 850, step: 0}
to: {format: grib2, name: broken.grib2}
---
product: missing
from: {param: r, levelist: 850, step: 0}
to: {format: grib2, name: missing.grib2}
---
product: constant
from: {param: w, levelist: 850, step: 0}
to: {format: grib2, name: constant.grib2}
---
product: holes
from: {param: u, levelist: 850, step: 0}
to: {format: grib2, bits: 24, name: holes.grib2}
---
product: cropped
from: {param: [v, w], levelist: 850, step: 0}
do: [crop: {north: 60, west: 0, south: 30, east: 40}]
to: {format: grib2, name: cropped.grib2}
---
product: rotated
from: {param: rotated, levelist: 850, step: 0}
do: [grid: 10/10]
to: {format: grib2, name: rotated.grib2}
---
product: curvilinear
from: {param: curvilinear, levelist: 850, step: 0}
do: [grid: 10/10]
to: {format: grib2, name: curvilinear.grib2}
---
product: uncropped
from: {param: v, levelist: 850, step: 0}
to: {format: grib2, name: uncropped.grib2}
---
product: blocked
from: {param: w, levelist: 850, step: 0}
to: {format: grib2, name: file/blocked.grib2}
"""


def test_what_cannot_be_made_is_named_and_all_else_is_made(tmp_path: Path, pool: junctura.Pool) -> None:
    values = np.random.default_rng(1).normal(size=(32, 64))
    values[3, 5:9] = np.nan
    offer(pool, b"GRIB this is none", param="q", step=0)
    offer(pool, grid_message(np.nan, shortName="r"), param="r", step=0)
    offer(pool, grid_message(2.5, shortName="w"), param="w", step=0)
    offer(pool, grid_message(values, shortName="u"), param="u", step=0)
    offer(pool, reduced(np.zeros(6114), shortName="v"), param="v", step=0)
    offer(pool, on_template(1), param="rotated", step=0)
    offer(pool, on_template(204), param="curvilinear", step=0)
    out = tmp_path / "out"
    out.mkdir()
    (out / "file").write_text("in place of a folder")
    report = broker(tmp_path, pool, WRONG, workers=2).run()
    causes = {one.product: one.cause for one in report.failed}
    assert sorted(causes) == ["blocked", "broken", "cropped", "curvilinear", "rotated"]
    assert "grid of template 3.204: fields of this kind are not read" in causes["curvilinear"]
    assert "Corrupt: GRIB message: ecCodes does not find section 4" in causes["rotated"]
    assert "GRIB message" in causes["broken"]
    assert "file" in causes["blocked"] and "Error" in causes["blocked"]
    assert "N32" in causes["cropped"]
    assert sorted(one.product for one in report.made) == ["constant", "holes", "missing", "uncropped"]
    assert np.isnan(decode((out / "missing.grib2").read_bytes()).values).all()
    assert (decode((out / "constant.grib2").read_bytes()).values == 2.5).all()
    np.testing.assert_allclose(decode((out / "holes.grib2").read_bytes()).values, values, atol=1e-5)
    assert sorted(path.name for path in out.iterdir() if path.name.startswith(".")) == []


def test_two_fields_that_one_key_means_are_refused(tmp_path: Path, pool: junctura.Pool) -> None:
    text = PLAIN.replace("param: t", "param: [t, u]").replace('"plain', '"both') + "---\n" + PLAIN.replace("t,", "v,")
    text = text.replace("product: plain", "product: both", 1)
    for number in (1, 2):
        for step in (0, 6):
            if (number, step) != (2, 6):
                offer(pool, grid_message(number, shortName="t"), param="t", step=step, number=number)
    for param in "uv":
        for step in (0, 6):
            offer(pool, grid_message(1.0, shortName=param), param=param, step=step)
    report = broker(tmp_path, pool, text).run()
    (failed,) = report.failed
    assert (failed.product, failed.attributes["step"]) == ("both", 0)
    assert failed.cause.startswith("two fields are meant: ")
    assert "number=1" in failed.cause and "number=2" in failed.cause
    assert failed.cause.endswith("; state number in from")
    assert len(report.made) == 3


def test_a_field_that_is_replaced_before_it_is_decoded_is_used_once_and_its_version_is_told(tmp_path: Path) -> None:
    schema = junctura.Schema.builtin("mars").to_yaml().replace("same_key: reject", "same_key: supersede")
    made = threading.Event()
    with junctura.Pool(schema=schema) as pool:
        running = broker(tmp_path, pool, PLAIN, observer=lambda _: made.set())
        tasks = running.pool.subscribe("kind=task", kinds=["offered"])
        with in_background(running, made) as reports:
            offer_plain(pool, 0)
            assert made.wait(50)
            worker = client(running.pool, "products-worker")["pid"]
            os.kill(worker, signal.SIGSTOP)
            tasks.next(timeout=50)
            offer_plain(pool, 6, 280)
            tasks.next(timeout=50)
            offer_plain(pool, 6, 290)
            os.kill(worker, signal.SIGCONT)
        version = next(str(one.version) for one in pool.list("step=6"))
    (report,) = reports
    assert report.failed == [] and report.decodes == 2
    said = json.loads((tmp_path / "out/plain_6.grib2.provenance.json").read_text())
    assert [one["version"] for one in said["inputs"]] == [version]
    assert decode((tmp_path / "out/plain_6.grib2").read_bytes()).values.max() == pytest.approx(290)


def test_arrays_stay_as_they_are_while_somebody_reads_them() -> None:
    with junctura.Pool(schema="free") as pool:
        values = np.arange(1.0 * TARGET.size).reshape(TARGET.shape)
        one = Field(values, TARGET, {"param": "t", "step": 6, "places": ["a"]}, "K")
        two = Field(values + 1, TARGET, {"param": "u"}, "m s**-1")
        shared_arrays.keep(pool, 7, [one, two])
        shared_arrays.keep(pool, 7, [one, two])
        kept = shared_arrays.kept(pool, 7)
        shared_arrays.free(pool, [7])
        assert pool.list("") == []
        shared_arrays.keep(pool, 8, [Field(values * 0, TARGET, {"param": "t"}, "K")] * 10)
        for made, field in zip(kept, (one, two), strict=True):
            np.testing.assert_array_equal(made.values, field.values)
            assert (made.on, made.units, made.attributes) == (field.on, field.units, field.attributes)
        with pytest.raises(junctura.Error):
            shared_arrays.kept(pool, 7)


def test_a_run_that_waits_has_no_arrays_that_nothing_needs(tmp_path: Path, pool: junctura.Pool) -> None:
    text = """\
product: mean
from: {param: t, levelist: 850, step: 0/6, number: 1/2}
do: [ensemble: [mean]]
to: {format: grib2, name: "{step}.grib2"}
"""

    def offer_step(step: int) -> None:
        for number in (1, 2):
            message = grid_message(280.0 + number, shortName="t", level=850)
            offer(pool, message, param="t", step=step, number=number)

    left: list[int] = []

    def waits(_report: Any) -> None:
        left.append(len(running.pool.list("kind=array")))
        if len(left) == 1:
            offer_step(6)

    offer_step(0)
    running = broker(tmp_path, pool, text, patience=0, waits=waits)
    report = running.run()
    assert (len(report.made), report.failed) == (2, [])
    assert left[0] == 0


def test_arrays_that_are_not_acknowledged_are_there_before_a_later_object() -> None:
    with junctura.Pool(schema="free") as pool, junctura.Pool(pool.url) as worker:
        one = Field(np.arange(1.0 * TARGET.size).reshape(TARGET.shape), TARGET, {"param": "t"}, "K")
        with worker.pipeline() as pipeline:
            for node in range(20):
                shared_arrays.keep(worker, node, [one.having(one.values + node)], pipeline)
            worker.offer(b"", name="done/1", kind="done")
            for node in range(20):
                (made,) = shared_arrays.kept(pool, node)
                np.testing.assert_array_equal(made.values, one.values + node)
        # A pipeline is for what is offered for the first time.
        pipeline = worker.pipeline()
        shared_arrays.keep(worker, 7, [one], pipeline)
        with pytest.raises(junctura.AlreadyExists):
            pipeline.flush()


def test_recipes_are_checked_without_a_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wanted.yaml"
    file.write_text(PRODUCTS)
    assert main([str(file), "--check", "--pool", "unix:nowhere"]) == 0
    assert "gridded: 4 files of 4 fields, grid_1_0.grib2 the first" in capsys.readouterr().out.splitlines()
    assert main([str(file), "--check", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(one["product"], one["inputs"], len(one["files"])) for one in listed] == [
        ("gridded", 4, 4),
        ("ensemble", 4, 2),
        ("places", 2, 2),
        ("winds", 8, 4),
    ]
    assert not (tmp_path / "out").exists()


def test_mistakes_are_told_with_the_place_where_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wanted.yaml"
    file.write_text(PLAIN.replace("levelist", "levellist"))
    assert main([str(file)]) == 2
    told = capsys.readouterr().err
    assert f"{file}:2" in told and "levellist" in told and "levelist" in told
    assert main([str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err
    for workers in ("0", "many", "1025"):
        with pytest.raises(SystemExit) as ended:
            main([str(file), "--workers", workers])
        assert ended.value.code == 2


def test_a_pool_or_a_directory_that_cannot_be_had_is_named(
    tmp_path: Path, pool: junctura.Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wanted.yaml").write_text(PLAIN)
    (tmp_path / "out").write_text("a file")
    given = [str(tmp_path / "wanted.yaml"), "--out", str(tmp_path / "out")]
    assert main([*given, "--pool", pool.url]) == 1
    assert str(tmp_path / "out") in capsys.readouterr().err
    assert main([*given, "--pool", f"unix:{tmp_path}/nowhere"]) == 5
    assert "nowhere" in capsys.readouterr().err


class Terminal(io.StringIO):
    """What a terminal is to a program that writes on it."""

    def isatty(self) -> bool:
        return True


def events(count: int) -> list[Made | Failed]:
    """So many, of which the last one fails."""
    made = [Made("maps", Path(f"map_{number}.png"), 1, {}, 0.1) for number in range(count - 1)]
    return [*made, Failed("table", {"step": 6}, "no disk")]


def test_progress_is_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with ProductsView() as view:
        for event in events(30):
            view.show(event, 30)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"  products {n}/30" for n in range(3, 30, 3)] + ["  products 29/30, 1 cannot be made"]


def test_progress_on_a_terminal_is_one_line_that_ends_full(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProductsView() as view:
        for event in events(3):
            view.show(event, 3)
    shown = terminal.getvalue()
    drawn = shown.split("\x1b[K")[1:]
    assert shown.count("\x1b[1A") == len(drawn) - 1, "each is drawn over the one before"
    assert drawn[-1] == f"  products {'█' * 30} 2/3, 1 cannot be made  table\n\x1b[J"


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with ProductsView(quiet=True) as view:
        for event in events(3):
            view.show(event, 3)
    assert capsys.readouterr() == ("", "")
    assert (view.made, view.failed) == (2, 1)
