"""A pool that is served, and compiled programs of Fortran."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "c"))

from c_programs import prepare
from c_surroundings import environment, pool, run, valgrind
from fortran_programs import COMPILERS, PROGRAMS, compile_fortran, compile_module, compiler

__all__ = ["environment", "pool", "run", "valgrind"]


@pytest.fixture(scope="session", params=sorted(COMPILERS))
def family(request: pytest.FixtureRequest) -> str:
    """A family of compilers that is installed."""
    if compiler(request.param) is None:
        pytest.skip(f"{request.param} is not installed: tools/setup.sh dev")
    return str(request.param)


@pytest.fixture(scope="session")
def compiler_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Callable[..., Path]]:
    """Returns what compiles programs by a family of compilers, the same for all tests."""
    return functools.cache(lambda family: compiler_in(family, tmp_path_factory.mktemp(family)))


@pytest.fixture(scope="session")
def compiled(family: str, compiler_of: Callable[[str], Callable[..., Path]]) -> Callable[..., Path]:
    """Compiles a program, once for all tests of a compiler."""
    return compiler_of(family)


def compiler_in(family: str, folder: Path) -> Callable[..., Path]:
    """Compiles the module into a folder; returns what compiles programs there."""
    libraries = prepare(folder / "libraries")
    module = compile_module(family, folder)

    def compile_once(name: str, *options: str, links: Sequence[str] = ()) -> Path:
        program, source = folder / name, PROGRAMS / f"{name}.f90"
        if not program.exists():
            compile_fortran(family, source, program, module, libraries, *options, links=links)
        return program

    return compile_once
