"""Programs of C++: the wrapper, with every compiler that is here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from c_programs import HEADERS, PROGRAMS, compile_cpp, has

COMPILERS = ("g++", "clang++")
Run = Callable[..., str]


@pytest.fixture(scope="module", params=COMPILERS)
def functions(request: pytest.FixtureRequest, libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that calls every function, by each compiler."""
    if not has(request.param):
        pytest.skip(f"{request.param} is not installed: tools/setup.sh dev")
    program = tmp_path_factory.mktemp("cpp") / "functions"
    return compile_cpp(PROGRAMS / "functions.cpp", program, libraries, compiler=request.param)


@pytest.mark.parametrize("served", [True, False], ids=["served", "private"])
def test_every_function_of_the_wrapper(functions: Path, served: bool, pool: str, run: Run) -> None:
    assert run(functions, *([pool] if served else [])) == "done\n"


@pytest.mark.skipif(not has("valgrind"), reason="valgrind is not installed")
def test_valgrind_reports_nothing_in_the_wrapper(functions: Path, pool: str, run: Run, valgrind: list[str]) -> None:
    assert run(*valgrind, functions, pool) == "done\n"


def test_the_wrapper_names_every_function_of_the_library() -> None:
    symbols = (HEADERS.parent / "abi/symbols.txt").read_text().split()
    wrapper = (HEADERS / "junctura.hpp").read_text()
    # Numbers of versions are for programs that load the library by themselves.
    assert [name for name in symbols if name not in wrapper] == ["jct_abi", "jct_version"]
