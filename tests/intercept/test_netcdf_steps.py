"""Readers that run at the same time as the writer, and writers that are killed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from netcdf_programs import run

GONE = "Junctura: the program that writes this file ended before it closed the file"


def start(*words: object, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    command = [str(word) for word in words]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("mode", ["pool", "tee"])
def test_a_reader_that_starts_first_gets_each_step_as_it_is_written(
    mode: str, compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    program = compiled("steps.c")
    writing = {**intercepted, "JUNCTURA_NETCDF": f"pool*.nc={mode}"}
    with (
        start(program, "read", "pool.nc", folder=tmp_path, environment=intercepted) as reader,
        start(program, "write", "pool.nc", 3, folder=tmp_path, environment=writing) as writer,
    ):
        for step in range(3):
            go(writer)
            assert line_of(writer) == f"wrote {step}"
            # The writer waits for the next line: the file is not complete.
            assert line_of(reader) == f"step {step}"
        go(writer)
        assert writer.wait(timeout=60) == 0
        assert line_of(reader).startswith("end: 0 NetCDF: Index exceeds dimension bound")
        assert reader.wait(timeout=60) == 0
    assert (tmp_path / "pool.nc").exists() == (mode == "tee")


def test_a_reader_of_the_length_waits_for_the_end(
    compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    program = compiled("steps.c")
    with (
        start("ncdump", "-h", "pool.nc", folder=tmp_path, environment=intercepted) as reader,
        start(program, "write", "pool.nc", 2, folder=tmp_path, environment=intercepted) as writer,
    ):
        for _ in range(3):
            go(writer)
        assert writer.wait(timeout=60) == 0
        assert "time = UNLIMITED ; // (2 currently)" in reader.communicate(timeout=60)[0]


def test_objects_have_names_units_and_times(
    compiled: Callable[..., Path], intercepted: dict[str, str], pool: str, environment: dict[str, str], tmp_path: Path
) -> None:
    mapping = tmp_path / "map"
    mapping.write_text("retention = withdrawn\n[T2 U10]\nrun = r1\nlevel = {name}-surface\nmissing = {nothing}\n")
    writing = {**intercepted, "JUNCTURA_NETCDF_MAP": str(mapping)}
    run(compiled("steps.c"), "write", "pool.nc", 2, 1000, folder=tmp_path, environment=writing)
    listed = run("junctura", "ls", "--json", "name=T2", "--pool", pool, folder=tmp_path, environment=environment)
    assert '"record":1' in listed.replace(" ", "")
    assert '"time":60.0' in listed.replace(" ", "")
    for part in ("seconds since 2026-01-01 00:00", "y/x", "f4", "r1", "T2-surface", str(tmp_path)):
        assert part in listed
    assert "missing" not in listed


def test_a_step_is_a_bundle(
    compiled: Callable[..., Path], intercepted: dict[str, str], environment: dict[str, str], pool: str, tmp_path: Path
) -> None:
    """All variables of a step become visible at one moment."""
    program = compiled("steps.c")
    with start(program, "write", "pool.nc", 2, folder=tmp_path, environment=intercepted) as writer:
        go(writer)
        assert line_of(writer) == "wrote 0"
        listed = run("junctura", "ls", "record=0", "--pool", pool, folder=tmp_path, environment=environment)
        assert [line.split()[2] for line in listed.splitlines()[1:]] == ["T2", "U10", "time"]
        go(writer)
        go(writer)
        assert writer.wait(timeout=60) == 0


def test_a_writer_that_is_killed_between_any_two_calls_leaves_whole_steps(
    compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    program, steps = compiled("steps.c"), 3
    calls = int(run(program, "write", "pool-all.nc", steps, 1000, folder=tmp_path, environment=intercepted).split()[-2])
    reading = {**intercepted, "JUNCTURA_NETCDF_TIMEOUT": "0"}
    seen = set()
    for die in range(1, calls + 1):
        path = f"pool-{die}.nc"
        run(program, "write", path, steps, die, folder=tmp_path, environment=intercepted, status=-signal.SIGKILL)
        lines = run(program, "read", path, folder=tmp_path, environment=reading).splitlines()
        whole = [f"step {step}" for step in range(len(lines) - 1)]
        assert lines[:-1] == whole
        ends = {"open: No such file or directory", f"end: 0 {GONE}"}
        if die == calls:
            ends = {"end: 0 NetCDF: Index exceeds dimension bound"}
        assert lines[-1] in ends, f"killed after call {die}"
        seen.add(len(whole))
    assert seen == {0, 1, 2, 3}


def test_a_waiting_reader_learns_that_the_writer_was_killed(
    compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    program = compiled("steps.c")
    with (
        start(program, "read", "pool.nc", folder=tmp_path, environment=intercepted) as reader,
        start(program, "write", "pool.nc", 3, folder=tmp_path, environment=intercepted) as writer,
    ):
        go(writer)
        assert line_of(reader) == "step 0"
        writer.kill()
        assert line_of(reader) == f"end: 0 {GONE}"
        assert reader.wait(timeout=60) == 0
        writer.wait(timeout=60)


def test_a_pool_that_cannot_be_reached_is_named(
    compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    nowhere = {**intercepted, "JUNCTURA_POOL": "unix:nowhere"}
    program = compiled("steps.c")
    done = subprocess.run(
        [program, "write", "pool.nc", "1", "1000"],
        cwd=tmp_path,
        env=nowhere,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot open the pool unix:nowhere" in done.stderr


def test_a_writer_waits_while_the_pool_is_full(
    compiled: Callable[..., Path], intercepted: dict[str, str], environment: dict[str, str], tmp_path: Path
) -> None:
    """With a retention by readers, a pool of a few steps is enough for any file."""
    mapping = tmp_path / "map"
    mapping.write_text("retention = released:1\n")
    small = {**intercepted, "JUNCTURA_POOL": "unix:small", "JUNCTURA_NETCDF_MAP": str(mapping)}
    serve = ["junctura", "pool", "serve", "--pool", "unix:small", "--budget", "4MiB", "--announce"]
    program, steps = compiled("steps.c"), 1500
    with subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "unix:small\n"
        with start(program, "read", "pool.nc", folder=tmp_path, environment=small) as reader:
            # Two fields of 4,800 bytes in each step.
            run(program, "write", "pool.nc", steps, 100_000, folder=tmp_path, environment=small)
            output = reader.communicate(timeout=60)[0].splitlines()
        server.terminate()
        assert server.wait(timeout=60) == 0
    assert output[:steps] == [f"step {step}" for step in range(steps)]
