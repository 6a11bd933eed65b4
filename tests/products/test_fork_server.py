"""Workers come from one process that has loaded what they need, and end with it or with the run, whoever is killed."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from broker_runs import broker, client, grid_message, in_background, offer, recipes, wait_until_it_holds
from outputs_fields import field

import junctura
from junctura.products._map import sampling
from junctura.products._map.lines import ink
from junctura.products._map.picture import picture
from junctura.products._map.styling.ranges import prepare
from junctura.products._outputs import Output
from junctura.products._tasks.task_messages import BrokerJob
from junctura.products._workers import fork_server
from junctura.products._workers.cache import Bounded
from junctura.products._workers.crew import ProcessCrew, described, libraries

pytestmark = pytest.mark.timeout(120)

STEPS = """\
product: plain
from: {param: t, levelist: 850, step: 0/6}
to: {format: grib2, name: "plain_{step}.grib2"}
"""
NOTHING = BrokerJob([], "unix:nowhere", None, "")


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _has_ended(process: int) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(50_000))


def _started(crew: ProcessCrew, count: int) -> set[int]:
    """The workers, when so many are there."""
    while len(crew.workers) < count:
        (descriptor,) = crew.descriptors
        crew.look(descriptor)
    return set(crew.workers)


def test_only_what_recipes_are_sure_to_need_is_loaded(tmp_path: Path) -> None:
    assert libraries(recipes(tmp_path, STEPS)) == ["eccodes", "junctura.products._outputs.grib2"]
    table = recipes(tmp_path, STEPS.replace("grib2", "parquet"))
    assert (libraries(table), described(table)) == (["eccodes"], [])
    on_grid = recipes(tmp_path, f"{STEPS}do: [grid: 1/1]\n")
    assert libraries(on_grid) == ["eccodes", "junctura.products._outputs.grib2"]
    assert described(table + on_grid) == ["t"]


def test_what_is_loaded_starts_no_thread_and_opens_no_file(tmp_path: Path) -> None:
    """A lock that another thread holds would stay locked in all workers."""
    made = [STEPS.replace("grib2", form) for form in ("grib2", "netcdf", "zarr")]
    made.append(f"{STEPS}do: [grid: 1/1]\n")
    job = BrokerJob([one for text in made for one in recipes(tmp_path, text)], "unix:nowhere", None, "")
    with ProcessCrew(1, 1 << 20) as crew:
        crew.begin(job)
        (worker,) = _started(crew, 1)
        fork_server = _parent(worker)
        assert len(list(Path(f"/proc/{fork_server}/task").iterdir())) == 1
        opened = [str(one.readlink()) for one in Path(f"/proc/{fork_server}/fd").iterdir() if int(one.name) > 2]
    # In /dev/null no worker can be at another place than the others.
    assert [one for one in opened if not one.startswith(("socket:", "anon_inode:", "pipe:", "/dev/null"))] == []


def test_what_does_not_work_is_for_workers_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_param: str) -> None:
        raise RuntimeError

    monkeypatch.setattr(fork_server, "read_tables", fail)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    fork_server._load(["junctura.no_such_module"], "t", lambda: None)


def test_all_workers_have_one_parent_and_end_with_the_crew() -> None:
    with ProcessCrew(3, 1 << 20) as crew:
        crew.begin(NOTHING)
        workers = _started(crew, 3)
        (fork_server,) = {_parent(pid) for pid in workers}
        assert _parent(fork_server) == os.getpid()
        os.kill(min(workers), signal.SIGSTOP)
        os.kill(fork_server, signal.SIGSTOP)
    for pid in (*workers, fork_server):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_one_that_is_killed_is_replaced_with_its_workers(tmp_path: Path) -> None:
    made = threading.Event()
    with junctura.Pool(schema="mars") as pool:
        running = broker(tmp_path, pool, STEPS, observer=lambda _: made.set())
        with in_background(running, made) as reports:
            offer(pool, grid_message(280.0, shortName="t"), param="t", step=0)
            assert made.wait(50)
            worker = wait_until_it_holds(0, running.pool, "products-worker")
            ended = os.pidfd_open(worker)
            os.kill(_parent(worker), signal.SIGKILL)
            assert _has_ended(ended)
            offer(pool, grid_message(280.0, shortName="t"), param="t", step=6)
        (report,) = reports
    assert (report.deaths, report.failed, len(report.made)) == (1, [], 2)


def test_of_a_run_that_is_killed_nothing_is_left_also_what_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "wanted.yaml").write_text(STEPS)
    command = [sys.executable, "-m", "junctura.products", str(tmp_path / "wanted.yaml"), "--workers", "1"]
    with junctura.Pool(schema="mars") as pool:
        offer(pool, grid_message(280.0, shortName="t"), param="t", step=0)
        command += ["--pool", pool.url, "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert process.stderr.readline().strip() == "products 1/2"
            worker = client(pool, "products-worker")["pid"]
            ended = [os.pidfd_open(pid) for pid in (worker, _parent(worker))]
            os.kill(worker, signal.SIGSTOP)
            process.kill()
            assert all(map(_has_ended, ended))
            assert process.stderr.read() == ""


def test_a_run_forks_its_fork_server_where_libraries_have_one_thread(tmp_path: Path) -> None:
    (tmp_path / "wanted.yaml").write_text(STEPS)
    with junctura.Pool(schema="mars") as pool:
        for step in (0, 6):
            offer(pool, grid_message(280.0, shortName="t"), param="t", step=step)
        for threads in ("1", "2"):
            command = [sys.executable, "-m", "junctura.products", str(tmp_path / "wanted.yaml"), "--workers", "1"]
            command += ["--pool", pool.url, "--out", str(tmp_path / threads), "--quiet"]
            said = subprocess.run(
                command, env={**os.environ, "OMP_NUM_THREADS": threads}, capture_output=True, text=True, check=True
            )
            assert said.stderr == ""
    made = [sorted((path.name, path.read_bytes()) for path in (tmp_path / one).glob("*.grib2")) for one in "12"]
    assert made[0] == made[1]
    assert len(made[0]) == 2


def test_what_maps_have_in_common_is_there_before_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (ink, sampling):
        monkeypatch.setattr(module, "_kept", Bounded(64 << 20))
    text = STEPS.replace("grib2", "png").replace("param: t,", "param: t, number: 1/to/2,")
    prepare(recipes(tmp_path, f"{text}do: [grid: 5/5, ensemble: [mean]]\n"))
    before = set(ink._kept._kept), set(sampling._kept._kept)
    # Coastlines with the graticule, and the edge of the map; which values a pixel is made of.
    assert tuple(map(len, before)) == (2, 1)
    picture(field("5/5", statistic="mean", members=2), Output("png"))
    assert (set(ink._kept._kept), set(sampling._kept._kept)) == before
