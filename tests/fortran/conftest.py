"""A pool that is served, and compiled programs of Fortran."""

from __future__ import annotations

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
def compiled(family: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles a program, once for all tests of a compiler."""
    folder = tmp_path_factory.mktemp(family)
    libraries = prepare(folder / "libraries")
    module = compile_module(family, folder)

    def compile_once(name: str, *options: str, links: Sequence[str] = ()) -> Path:
        program, source = folder / name, PROGRAMS / f"{name}.f90"
        if not program.exists():
            compile_fortran(family, source, program, module, libraries, *options, links=links)
        return program

    return compile_once
