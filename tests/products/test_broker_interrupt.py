"""Ctrl-C: what is not made is named with what it waits for, nothing is left behind, and a second one ends at once."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from broker_runs import client, grid_message, offer

import junctura
from junctura.products.__main__ import _cut, _interruptible
from junctura.products._tasks.task_messages import BrokerJob
from junctura.products._workers.crew import ProcessCrew

pytestmark = pytest.mark.timeout(120)

STEPS = """\
product: plain
from: {param: t, levelist: 850, step: 0/6}
to: {format: grib2, name: "plain_{step}.grib2"}
"""
NOTHING = BrokerJob([], "unix:nowhere", None, "")


@pytest.mark.parametrize("as_json", [False, True], ids=["in words", "as JSON"])
def test_ctrl_c_names_what_is_missing_and_leaves_no_process(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "wanted.yaml").write_text(STEPS)
    command = [sys.executable, "-m", "junctura.products", str(tmp_path / "wanted.yaml"), "--workers", "1"]
    with junctura.Pool(schema="mars") as pool:
        offer(pool, grid_message(280.0, shortName="t"), param="t", step=0)
        command += ["--pool", pool.url, "--out", str(tmp_path / "out"), *(["--json"] if as_json else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert process.stderr.readline().strip() == "products 1/2"
            worker = os.pidfd_open(client(pool, "products-worker")["pid"])
            process.send_signal(signal.SIGINT)
            said, told = process.communicate()
    assert process.returncode == 130
    assert _has_ended(worker)
    assert told.splitlines() == ["junctura: ended; what is finished stays, and the next run makes the rest"]
    if as_json:
        (failed,) = json.loads(said)["failed"]
        assert (failed["attributes"]["step"], failed["cause"]) == (6, "it waits for levelist=850,param=t,step=6")
    else:
        assert said.splitlines()[-2:] == [
            "1 are not made:",
            "  plain step=6: it waits for levelist=850,param=t,step=6",
        ]


def _has_ended(process: int) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(50_000))


def test_what_workers_have_started_ends_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As MIR, that makes weights."""
    os.mkfifo(tmp_path / "told")
    program = tmp_path / "python"
    program.write_text(f"""#!{sys.executable}
import os, pathlib, subprocess
os.setpgid(0, 0)
with subprocess.Popen(["sleep", "1000"]) as child:
    pathlib.Path("{tmp_path}/told").write_text(str(child.pid))
""")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with ProcessCrew(1, 1 << 20) as crew:
        crew.begin(NOTHING)
        started = os.pidfd_open(int((tmp_path / "told").read_text()))
    assert _has_ended(started)


def test_workers_have_groups_of_their_own() -> None:
    with ProcessCrew(1, 1 << 20) as crew:
        joined = crew.pool.subscribe(kinds=["joined"])
        crew.begin(NOTHING)
        event = joined.next(timeout=50)
        assert event is not None and event.client is not None
        assert os.getpgid(event.client.pid) == event.client.pid
        assert os.getsid(event.client.pid) == os.getsid(0)


def test_a_second_ctrl_c_ends_at_once() -> None:
    text = """
import signal
from junctura.products.__main__ import _interruptible
with _interruptible():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("first", flush=True)
        signal.raise_signal(signal.SIGINT)
        print("still there", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=50, check=False)
    assert (done.stdout, done.returncode) == ("first\n", -signal.SIGINT)


def test_what_ctrl_c_meant_before_it_means_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), _interruptible():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_cause_of_very_many_fields_is_cut_between_two() -> None:
    short = "it waits for step=0"
    assert _cut(short) == short
    long = "it waits for " + ", ".join(f"step={step}" for step in range(1000))
    assert long.startswith(_cut(long).removesuffix(", ... (--json has all of it)") + ", step=")
    assert len(_cut(long)) < 450
