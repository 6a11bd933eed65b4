"""Compiled programs of C and C++, and a pool that is served."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from c_programs import PROGRAMS, compile_c, prepare
from c_surroundings import environment, pool, run, valgrind

__all__ = ["environment", "pool", "run", "valgrind"]

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the library, under the names of an installed one."""
    return prepare(tmp_path_factory.mktemp("libraries"))


@pytest.fixture(scope="session")
def compiled(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles a program of this folder, once for all tests."""
    folder = tmp_path_factory.mktemp("programs")

    def compile_once(name: str, *options: str) -> Path:
        program = folder / Path(name).stem
        return program if program.exists() else compile_c(PROGRAMS / name, program, libraries, *options)

    return compile_once
