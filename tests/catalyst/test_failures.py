"""What ends, is full, or is wrong: the simulation continues, and what is visible is whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from c_programs import BUILT
from catalyst_programs import HERE, compile_c
from catalyst_ranks import CatalystRanks

import junctura

Ranks = Callable[..., CatalystRanks]
Serve = Callable[..., subprocess.Popen[str]]


def steps(pool: junctura.Pool) -> list[tuple[int, int]]:
    return [(entry["step"], entry["rank"]) for entry in pool.list("channel=blocks,part=fields")]


def whole(first: int, last: int, ranks: int) -> list[tuple[int, int]]:
    return [(step, rank) for step in range(first, last) for rank in range(ranks)]


def test_a_killed_simulation_leaves_whole_steps(pool: junctura.Pool, ranks: Ranks) -> None:
    running = ranks(4, 9, "stepwise")
    running.step()
    running.step()
    running.step([0, 1, 3])
    running.kill()
    assert steps(pool) == whole(0, 2, 4)
    # It is started again before the step that was not complete.
    again = ranks(4, 4, "first=1")
    errors = again.end()
    assert steps(pool) == whole(0, 4, 4)
    assert all("has, or had, steps in the pool" in error for error in errors)


def test_a_case_is_run_again(pool: junctura.Pool, ranks: Ranks, run: Callable[..., str]) -> None:
    assert ranks(1, 3).end() == [""]
    (error,) = ranks(1, 3).end()
    # Follow the advice of the message.
    advice = error.split("remove them (")[1].split(")")[0]
    run(*advice.split(), "--pool", "unix:test")
    assert ranks(1, 3).end() == [""]
    assert steps(pool) == whole(0, 3, 1)


def test_a_case_of_several_ranks_is_run_again(pool: junctura.Pool, ranks: Ranks) -> None:
    assert ranks(2, 3).end() == ["", ""]
    for error in ranks(2, 3).end():
        assert "case blocks has, or had, steps in the pool, which are not replaced; set another case" in error
    assert ranks(2, 3, options="case=again").end() == ["", ""]
    assert steps(pool) == whole(0, 3, 2) * 2


@pytest.mark.usefixtures("pool")
def test_a_killed_viewer_goes_on(ranks: Ranks, environment: dict[str, str]) -> None:
    def viewer(until: int) -> subprocess.Popen[str]:
        words = [sys.executable, str(HERE / "steps_reader.py"), "unix:test", "2", str(until)]
        started = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        return started

    first = viewer(99)
    running = ranks(2, 6, "stepwise")
    running.step()
    assert first.stdout is not None
    assert first.stdout.readline() == "step 0\n"
    first.kill()
    first.wait()
    first.stdout.close()
    for _ in range(4):
        running.step()
    with viewer(5) as second:
        running.step()
        assert second.stdout is not None
        assert second.stdout.read().split("\n")[:-1] == [f"step {step}" for step in range(1, 6)]
        assert second.wait() == 0
    assert running.end() == ["", ""]


def test_a_pool_that_is_killed_and_comes_back(
    serve: Serve, ranks: Ranks, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    server = serve()
    running = ranks(1, 6, "stepwise", options="retry=0s")
    running.step()
    server.kill()
    server.wait()
    running.step()
    running.step()
    serve()
    for _ in range(3):
        running.step()
    (error,) = running.end()
    assert error.count("the simulation continues") >= 1
    assert error.splitlines()[-1].startswith("junctura: catalyst: rank 0: 4 steps offered, 2 left out, 2 meshes,")
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    with junctura.Pool("unix:test") as pool:
        # The mesh, too, was offered again.
        assert steps(pool) == whole(3, 6, 1)
        assert [entry["step"] for entry in pool.list("part=mesh")] == [3]


def test_without_a_pool(ranks: Ranks) -> None:
    (error,) = ranks(1, 3).end()
    assert "the pool at unix:test cannot be opened" in error
    assert "3 left out" in error
    (error,) = ranks(1, 3, JUNCTURA_POOL="").end()
    assert "set JUNCTURA_POOL" in error


def test_a_full_pool_loses_its_oldest_steps(
    serve: Serve, ranks: Ranks, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    serve("16MiB")
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    with junctura.Pool("unix:test") as pool:
        # 1.6 MB a step of two ranks, which keep pace: what one is ahead of the other is in memory, too.
        running = ranks(2, 60, "stepwise", "long=100000", "refined=40")
        for _ in range(60):
            running.step()
        assert running.end() == ["", ""]
        kept = steps(pool)
        first = kept[0][0]
        assert 40 < first < 60
        assert kept == whole(first, 60, 2)
        # Nor does the mesh stay that no step names.
        assert sorted((entry["step"], entry["rank"]) for entry in pool.list("part=mesh")) == [(40, 0), (40, 1)]


def test_steps_that_are_owed_stay(
    serve: Serve, ranks: Ranks, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    serve("16MiB")
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    with junctura.Pool("unix:test") as pool:
        requirement = pool.require("step<=3", name="archive")
        assert ranks(1, 40, "long=100000").end() == [""]
        found = steps(pool)
        assert found[:4] == whole(0, 4, 1)
        assert found[4][0] > 20
        assert found[-1] == (39, 0)
        requirement.retract()
        # Now the pool is full of what is owed: steps are left out, and later ones find room again.
        pool.withdraw_all("*", forget=True)
        requirement = pool.require("*", name="archive")
        (error,) = ranks(1, 40, "long=100000", options="timeout=0s").end()
        assert "is full, and steps are left out" in error
        assert error.count("is full") == 1


def test_a_full_pool_that_waits(
    serve: Serve, ranks: Ranks, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    serve("16MiB")
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    with junctura.Pool("unix:test") as pool:
        running = ranks(1, 40, "long=100000", options="full=wait")
        with pool.follow("part=fields", window=1) as follow:
            for step in range(40):
                with next(follow) as part:
                    assert part["step"] == step
                pool.withdraw_all(f"step={step},part=fields")
        assert running.end() == [""]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("swapped",), "channel blocks is left out: box/fields/rho/values has the byte order of another machine"),
        (("bad",), 'channel "beyond the wall" is not handed over: its name must have'),
        (("bad",), "channel reader has the type ioss, which is not supported"),
        (("bad",), "channel empty has no node `data`"),
    ],
)
@pytest.mark.usefixtures("pool")
def test_what_cannot_be_sent_is_named_once(ranks: Ranks, words: tuple[str, ...], said: str) -> None:
    (error,) = ranks(1, 3, *words).end()
    assert error.count(said) == 1


@pytest.mark.parametrize(("library", "source"), [("libcuda.so.1", "fake_cuda.c"), ("libamdhip64.so.6", "fake_hip.c")])
def test_memory_of_a_gpu_is_refused_by_name(
    pool: junctura.Pool, ranks: Ranks, tmp_path: Path, library: str, source: str
) -> None:
    driver = tmp_path / library
    compile_c(driver, "-fPIC", "-shared", f"-Wl,-soname,{library}", HERE / "programs" / source)
    (error,) = ranks(1, 2, "gpu=0x7000000000001000", LD_PRELOAD=str(driver)).end()
    assert "channel blocks is left out: grid/fields/p/values is memory of a GPU; copy it to the host" in error
    # Memory of the host passes, and leaves no error to the program.
    assert ranks(1, 2, LD_PRELOAD=str(driver)).end() == [""]
    assert steps(pool) == whole(0, 2, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("every=0", "JUNCTURA_CATALYST: every=0: expected a number from 1"),
        ("case=a b", "JUNCTURA_CATALYST: case=a b: expected 1 to 128 letters"),
        ("color=red", 'JUNCTURA_CATALYST: there is no option "color"'),
        ("timeout=5", "JUNCTURA_CATALYST: timeout=5: expected a time"),
        ("rank=1", "the options rank and ranks belong together"),
        ("retention=for ever", "retention"),
    ],
)
@pytest.mark.usefixtures("pool")
def test_wrong_options(ranks: Ranks, options: str, said: str) -> None:
    (error,) = ranks(1, 2, options=options).end()
    assert error.count(said) >= 1


def test_a_pool_with_another_schema_of_this_name(environment: dict[str, str], ranks: Ranks, tmp_path: Path) -> None:
    other = tmp_path / "mesh.yaml"
    other.write_text(
        "name: mesh\nkey: {dataset: [], collocation: [], element: [name]}\nattributes: {name: {type: string}}\n"
    )
    words = ["pool", "serve", "--pool", "unix:test", "--schema", str(other), "--announce"]
    command = [str(BUILT / "junctura"), *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline()
            (error,) = ranks(1, 2).end()
        finally:
            server.terminate()
    assert "serve the pool with --schema mesh" in error
    assert "2 left out" in error


def test_memory_is_used_right(
    pool: junctura.Pool, valgrind: list[str], blocks: Path, environment: dict[str, str]
) -> None:
    """Under valgrind: no invalid access, no leak."""
    variables = {
        "JUNCTURA_POOL": "unix:test",
        "JUNCTURA_CATALYST": "report",
        "CATALYST_IMPLEMENTATION_NAME": "junctura",
        "JUNCTURA_ISA": "portable",
    }
    command = [*valgrind, str(blocks), "4", "refined=2", "probe", "bad"]
    done = subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert steps(pool) == whole(0, 4, 1)
