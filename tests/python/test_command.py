"""`python -m junctura` is the command: its output, its exit statuses, its way with signals and pipes, its workers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import junctura

COMMAND = [sys.executable, "-m", "junctura"]


def command(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], input=text, capture_output=True, text=True, check=False)


def test_what_it_says_and_how_it_ends(tmp_path: Path) -> None:
    assert command("--version").stdout.splitlines()[0] == f"junctura {junctura.__version__}"
    told = command("--help")
    assert told.returncode == 0 and "Exit status" in told.stdout and "Usage: junctura" in told.stdout
    wrong = command("invented")
    assert (wrong.returncode, wrong.stdout) == (2, "") and "invented" in wrong.stderr
    nobody = command("pool", "stat", "--pool", f"unix:{tmp_path}/none")
    assert nobody.returncode == 5 and nobody.stderr.startswith("junctura: Unavailable")


def test_it_speaks_with_a_pool(pool: junctura.Pool, tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    payload.write_bytes(bytes(range(256)))
    put = command("put", "--pool", pool.url, "--set", "name=a", str(payload))
    assert put.returncode == 0, put.stderr
    assert bytes(pool.demand(name="a")) == payload.read_bytes()
    listed = command("ls", "--pool", pool.url, "--json")
    assert json.loads(listed.stdout.splitlines()[0])["attributes"]["name"] == "a"
    assert command("get", "--pool", pool.url, "name=x", "--timeout", "0").returncode == 3


def test_ctrl_c_ends_it_as_it_ends_the_program(pool: junctura.Pool) -> None:
    with pool.subscribe(kinds=["joined", "left"]) as events:
        with subprocess.Popen(
            [*COMMAND, "get", "--pool", pool.url, "name=never", "--timeout", "1h"], stderr=subprocess.PIPE
        ) as child:
            joined = events.next(timeout=60)
            while joined is not None and (joined.client is None or joined.client.pid != child.pid):
                joined = events.next(timeout=60)
            child.send_signal(signal.SIGINT)
            _, told = child.communicate()
        assert child.returncode == 130, told
        assert b"Traceback" not in told


def test_a_reader_that_goes_away_is_no_error(pool: junctura.Pool) -> None:
    pool.offer_many([(b"", {"name": f"{at:06}"}) for at in range(20_000)])
    with subprocess.Popen(
        [*COMMAND, "ls", "--pool", pool.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        told = child.stderr.read()
    assert (child.returncode, told) == (0, b"")


def test_a_load_starts_its_workers_the_same_way() -> None:
    load = [
        "--members",
        "2",
        "--steps",
        "2",
        "--size",
        "1KiB",
        "--producers",
        "2",
        "--consumers",
        "2",
        "--json",
        "--duration",
        "1s",
        "--warmup",
        "0s",
    ]
    done = command("load", "pool", *load)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_a_server_is_started_from_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JUNCTURA_PROGRAM", raising=False)
    with junctura.Pool(f"unix:{tmp_path}/pool", schema="free", start=True) as pool:
        pool.offer(b"payload", name="a")
        assert len(pool.list()) == 1
        pool.stop(timeout=0)


def test_a_server_does_not_inherit_the_threads_of_the_program_that_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = tmp_path / "junctura"
    starts.write_text(f'#!/bin/sh\nenv > "{tmp_path}/environment"\n')
    starts.chmod(0o700)
    monkeypatch.setenv("JUNCTURA_PROGRAM", str(starts))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("OF_THE_USER", "1")
    # This one ends at once, as if another had been quicker.
    with pytest.raises(junctura.Unavailable):
        junctura.Pool(f"unix:{tmp_path}/pool", schema="free", start=True)
    environment = (tmp_path / "environment").read_text().splitlines()
    assert "OF_THE_USER=1" in environment
    assert not [line for line in environment if line.startswith("OMP_NUM_THREADS=")]
