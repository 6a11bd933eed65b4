"""Products by the workers of a Dask cluster: three processes that reach the pools by ``tcp:`` alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray
from broker_runs import BASE, broker, grid_message, offer, served, spectral_message

import junctura
from junctura.products import Failed, Made
from junctura.products.__main__ import main
from junctura.products._workers.dask_crew import DaskCrew

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.timeout(180)

WORKERS = 3
MEMBERS, STEPS = (1, 2), (0, 6)
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
do: [grid: [{latitude: 50.1, longitude: 8.7, name: here}]]
to: {format: csv, name: "places_{step}.csv"}
---
product: picture
from: {param: t, levelist: 850, step: 0, number: 1}
do: [grid: 10/10]
to: {format: png, name: picture.png}
---
product: winds
from: {param: [vo, d], levelist: 850, step: 0/6, number: 1/2}
do: [wind: {grid: 10/10}]
to: {format: grib2, bits: 24, name: "winds_{number}_{step}.grib2"}
"""
COUNT = 4 + 2 + 2 + 1 + 4
PLAIN = """\
product: plain
from: {param: t, levelist: 850, step: 0/6}
to: {format: grib2, name: "plain_{step}.grib2"}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Its workers go by the network, also on this machine."""
    before = os.environ.get("JUNCTURA_TRANSPORTS")
    os.environ["JUNCTURA_TRANSPORTS"] = "tcp"
    try:
        with distributed.LocalCluster(**_options()) as cluster:
            yield cluster
    finally:
        _restore("JUNCTURA_TRANSPORTS", before)


def _options() -> dict[str, Any]:
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    return {**options, "memory_limit": 0}


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    """That of the producers, served by ``tcp:``."""
    with served() as pool:
        yield pool


def offer_all(pool: junctura.Pool) -> int:
    count = 0
    for step in STEPS:
        for number in MEMBERS:
            for param in ("t", "vo", "d"):
                seed = sum(map(ord, param)) * 100 + 10 * number + step
                message = spectral_message(seed, shortName=param, level=850)
                offer(pool, message, param=param, number=number, step=step)
                count += 1
    return count


def files(out: Path) -> dict[str, Any]:
    """What products there are, by name; of their provenance what they are made of."""
    found: dict[str, Any] = {}
    for path in sorted(out.iterdir()):
        assert not path.name.startswith("."), "nothing is left"
        found[path.name] = netcdf(path) if path.suffix == ".nc" else path.read_bytes()
        if path.name.endswith(".provenance.json"):
            said = json.loads(found[path.name])
            found[path.name] = {name: said[name] for name in ("product", "fingerprint", "inputs", "operations")}
    return found


def netcdf(path: Path) -> dict[str, Any]:
    """All that is in it but the second in which HDF5 made it."""
    with xarray.open_dataset(path) as dataset:
        return dict(dataset.load().to_dict())


def test_products_are_those_that_its_own_workers_make(tmp_path: Path, pool: junctura.Pool, cluster: Any) -> None:
    count = offer_all(pool)
    assert broker(tmp_path, pool, PRODUCTS, workers=1, out=tmp_path / "own").run().failed == []
    joined = pool.subscribe(kinds=["joined"])
    running = broker(tmp_path, pool, PRODUCTS, workers=None, dask=cluster.scheduler_address)
    report = running.run()
    assert report.failed == []
    assert len(report.made) == COUNT
    assert (report.inputs, report.decodes, report.decodes_per_input_max, report.deaths) == (count, count, 1, 0)
    own, made = files(tmp_path / "own"), files(tmp_path / "out")
    assert len(made) == 2 * COUNT
    assert made == own
    processes = {event.client.pid for event in _there(joined) if event.client.name == "products-worker"}
    assert processes and processes <= set(_pids(cluster))


def _there(events: junctura.Subscription) -> Iterator[Any]:
    with contextlib.suppress(junctura.Timeout):
        while True:
            yield events.next(timeout=0)


def _pids(cluster: Any) -> list[int]:
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


# In each worker: once a field with this word is decoded and lies in the broker's pool, the first of them says so, and
# goes no further.
def hang_once(url: str, word: str) -> None:
    from junctura.products._workers import worker_process

    whole = worker_process.Worker._do

    def once(self: Any, task: Any) -> Any:
        done = whole(self, task)
        if type(task).__name__ != "DecodeInput" or word not in task.key:
            return done
        with junctura.Pool(url, name="witness") as pool:
            try:
                pool.offer(str(os.getpid()).encode(), schema="free", name="witness")
            except junctura.AlreadyExists:
                return done
        return threading.Event().wait()

    setattr(worker_process.Worker, "_do", once)  # noqa: B010 - it is put back by the end of the process


def test_what_a_worker_that_dies_had_begun_is_done_by_another(tmp_path: Path) -> None:
    with served() as pool, distributed.LocalCluster(**_options()) as own:
        count = offer_all(pool)
        with distributed.Client(own, set_as_default=False) as client:
            client.run(hang_once, pool.url, "number=2")
            running = broker(tmp_path, pool, PRODUCTS, workers=None, dask=client)
            thread = threading.Thread(target=running.run)
            thread.start()
            with pool.demand(name="witness", schema="free", timeout=100) as witness:
                os.kill(int(bytes(witness)), signal.SIGKILL)
            thread.join(100)
            assert not thread.is_alive()
    report = running.report
    assert report.failed == []
    assert (len(report.made), report.decodes, report.decodes_per_input_max) == (COUNT, count + 1, 2)
    assert report.deaths == 1


def test_a_task_that_ends_every_worker_is_given_up_and_all_else_is_made(tmp_path: Path, pool: junctura.Pool) -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(**_options()) as own,
        distributed.Client(own, set_as_default=False) as client,
    ):
        # Also those that come in the place of the dead.
        client.register_plugin(Deadly())
        for step in STEPS:
            offer(pool, grid_message(280.0, shortName="t", level=850), param="t", step=step)
        report = broker(tmp_path, pool, PLAIN, workers=None, dask=client).run()
    assert [one.path.name for one in report.made] == ["plain_0.grib2"]
    (failed,) = report.failed
    assert failed.attributes["step"] == 6 and "workers ended while they had it" in failed.cause


class Deadly(distributed.WorkerPlugin):  # type: ignore[misc, name-defined]
    """A field whose decoding ends the process."""

    name = "deadly"

    def setup(self, worker: Any) -> None:  # noqa: ARG002
        from junctura.products._workers import worker_process

        whole = worker_process.Worker._do

        def deadly(self: Any, task: Any) -> Any:
            if type(task).__name__ == "DecodeInput" and "step=6" in task.key:
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(self, task)

        setattr(worker_process.Worker, "_do", deadly)  # noqa: B010


def test_a_scheduler_that_cannot_be_reached_is_named_before_anything_starts(
    tmp_path: Path, pool: junctura.Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        (tmp_path / "wanted.yaml").write_text(PLAIN)
        given = [str(tmp_path / "wanted.yaml"), "--pool", pool.url, "--out", str(tmp_path / "out")]
        with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
            assert main([*given, "--dask", address]) == 5
    told = capsys.readouterr().err
    assert told.startswith(f"junctura: Unavailable: {address}: no scheduler of Dask's can be reached there")
    assert not (tmp_path / "out").exists()
    assert main([*given, "--dask", address, "--workers", "2"]) == 2
    assert "a Dask cluster has workers of its own" in capsys.readouterr().err


def test_the_run_ends_with_the_scheduler(tmp_path: Path, pool: junctura.Pool) -> None:
    from subprocess import PIPE, Popen
    from sys import executable

    text = """
import distributed, sys
if __name__ == "__main__":
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, processes=True) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
    program = tmp_path / "cluster.py"
    program.write_text(text)
    with Popen([executable, str(program)], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        offer(pool, grid_message(280.0, shortName="t", level=850), param="t", step=0)

        def observe(_event: Made | Failed) -> None:
            # It has nothing to do, and waits for the next step.
            process.kill()

        running = broker(tmp_path, pool, PLAIN, workers=None, dask=address, observer=observe)
        with pytest.raises(junctura.Unavailable, match="the connection to Dask's scheduler has ended") as raised:
            running.run()
        assert raised.value.subject == address
    assert [one.path.name for one in running.report.made] == ["plain_0.grib2"]
    assert files(tmp_path / "out").keys() == {"plain_0.grib2", "plain_0.grib2.provenance.json"}


def test_the_run_ends_when_its_own_pool_does(tmp_path: Path, pool: junctura.Pool, cluster: Any) -> None:
    offer(pool, grid_message(280.0, shortName="t", level=850), param="t", step=0)
    running = broker(tmp_path, pool, PLAIN, workers=None, dask=cluster.scheduler_address)
    assert isinstance(running.crew, DaskCrew)
    server = running.crew._served._process
    running.observer = lambda _: server.kill()
    with pytest.raises(ConnectionError) as raised:
        running.run()
    assert isinstance(raised.value, junctura.Error) and raised.value.subject == running.pool.url
    assert server.returncode == -signal.SIGKILL


def test_an_address_that_means_another_pool_elsewhere_is_refused(tmp_path: Path, cluster: Any) -> None:
    """A worker is told which pool is meant; here by its number, as two machines cannot be had."""
    with served() as pool:
        offer(pool, grid_message(280.0, shortName="t", level=850), param="t", step=0)
        offer(pool, grid_message(280.0, shortName="t", level=850), param="t", step=6)
        running = broker(tmp_path, pool, PLAIN, workers=None, dask=cluster.scheduler_address)
        running._job = type(running._job)(**{**vars(running._job), "incarnation": 1})
        report = running.run()
    assert report.made == []
    assert {one.attributes["step"] for one in report.failed} == set(STEPS)
    assert all(one.cause.startswith(f"Conflict: {pool.url}: on ") for one in report.failed)


def test_a_folder_that_workers_do_not_see_ends_the_run(tmp_path: Path, pool: junctura.Pool, cluster: Any) -> None:
    offer(pool, grid_message(280.0, shortName="t", level=850), param="t", step=0)
    running = broker(tmp_path, pool, PLAIN, workers=None, dask=cluster.scheduler_address)
    running._job = type(running._job)(**{**vars(running._job), "out": str(tmp_path / "elsewhere")})
    with pytest.raises(junctura.Unavailable, match=r"cannot do tasks: Io: .*elsewhere: there is no such folder"):
        running.run()


def test_inputs_come_from_a_store_behind_the_pool(
    tmp_path: Path, pool: junctura.Pool, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with junctura.Store.create("archive", schema="mars") as store:
        for step in STEPS:
            store.archive(grid_message(280.0, shortName="t", level=850), {**BASE, "param": "t", "step": step})
    report = broker(tmp_path, pool, PLAIN, workers=None, dask=cluster.scheduler_address, store="archive").run()
    assert report.failed == [] and len(report.made) == 2
