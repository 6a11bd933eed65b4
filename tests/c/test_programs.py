"""Programs of C in pools: every function, misuse, threads, forks, kills, and random calls."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from c_programs import LIBRARY, PROGRAMS, compile_c, has

Compile = Callable[..., Path]
Run = Callable[..., str]

# So many in `make soak`, by the environment.
CALLS = int(os.environ.get("JUNCTURA_C_CALLS", "10000"))
SEED = 20261121


@pytest.mark.parametrize("served", [True, False], ids=["served", "private"])
@pytest.mark.parametrize("name", ["functions", "misuse", "threads", "fork"])
def test_a_program_succeeds(name: str, served: bool, compiled: Compile, pool: str, run: Run) -> None:
    assert run(compiled(f"{name}.c"), *([pool] if served else [])) == "done\n"


def test_the_environment_names_the_pool(compiled: Compile, pool: str, run: Run) -> None:
    run(compiled("functions.c"), JUNCTURA_POOL=pool)
    assert " held " in run("junctura", "ls", "--pool", pool, "name=held", "--long")


def test_an_open_pool_has_no_thread_and_no_signal_handler(compiled: Compile, pool: str, run: Run) -> None:
    assert run(compiled("quiet.c"), pool) == "done\n"


def test_nothing_is_lost_when_a_producer_is_killed_behind_an_offer(
    compiled: Compile, pool: str, run: Run, environment: dict[str, str]
) -> None:
    producer = subprocess.Popen([compiled("producer.c"), pool], env=environment, stdout=subprocess.PIPE, text=True)
    assert producer.stdout is not None
    for _ in range(100):
        producer.stdout.readline()
    producer.kill()
    # It went on until it was killed: all that it printed counts.
    rest = producer.communicate()[0].splitlines()
    offered = 100 + len([line for line in rest if line])
    listed = run("junctura", "ls", "--pool", pool, "*", "--count")
    assert int(listed.split()[0]) >= offered


def test_the_library_is_loaded_and_unloaded_a_thousand_times(compiled: Compile, run: Run) -> None:
    assert run(compiled("load.c"), LIBRARY, 1000) == "done\n"


def test_random_calls_return_codes_and_break_nothing(compiled: Compile, pool: str, run: Run) -> None:
    codes = dict(line.split() for line in run(compiled("random_calls.c"), pool, CALLS, SEED).splitlines())
    assert sum(map(int, codes.values())) == CALLS
    assert {"Ok", "InvalidArgument", "InvalidSelector", "NotFound", "SchemaMismatch", "BundleClosed"} <= set(codes)


@pytest.mark.skipif(not has("valgrind"), reason="valgrind is not installed")
@pytest.mark.parametrize("name", ["functions", "misuse", "random_calls"])
def test_valgrind_reports_nothing(name: str, compiled: Compile, pool: str, run: Run, valgrind: list[str]) -> None:
    arguments = [1000, SEED] if name == "random_calls" else []
    run(*valgrind, compiled(f"{name}.c"), pool, *arguments)


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY,
    reason="AddressSanitizer reserves memory",
)
def test_address_sanitizer_reports_nothing_in_random_calls(
    libraries: Path, pool: str, run: Run, tmp_path: Path
) -> None:
    # Memory of the library is checked where the C library touches it; leaks are those of the whole process.
    program = compile_c(PROGRAMS / "random_calls.c", tmp_path / "checked", libraries, "-fsanitize=address,undefined")
    run(program, pool, CALLS, SEED)


def test_a_loop_of_openmp_uses_one_pool(compiled: Compile, pool: str, run: Run) -> None:
    assert run(compiled("openmp.c", "-fopenmp"), pool) == "done\n"
