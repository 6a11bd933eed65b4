"""A shell for each test, with or without a pool that is served."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from e2e_grib import Field, ensemble
from e2e_shell import Process, Shell
from e2e_tell import pytest_terminal_summary, tell

__all__ = ["pytest_terminal_summary", "tell"]


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A shell; nobody serves its pool yet."""
    shell = Shell()
    yield shell
    shell.close()


@pytest.fixture
def shell(bare: Shell) -> Shell:
    """A shell whose pool is served."""
    bare.serve()
    return bare


@pytest.fixture
def program(bare: Shell) -> Iterator[Callable[..., Process]]:
    """Starts a program of this folder that does what it is told, line by line, in the shell's pool; it is ready."""
    started: list[Process] = []
    url = f"unix:{bare.folder}/junctura/test.sock"

    def start(name: str, *arguments: object) -> Process:
        script = str(Path(__file__).with_name(name))
        command = [sys.executable, script, url, *map(str, arguments)]
        process = Process(command, bare.environment, subprocess.PIPE)
        started.append(process)
        assert process.line() == "ready"
        return process

    yield start
    for process in started:
        process.popen.kill()
        process.show_rest()


@pytest.fixture
def fields() -> dict[Field, bytes]:
    """A small ensemble, as messages."""
    return ensemble()


@pytest.fixture
def file(tmp_path: Path, fields: dict[Field, bytes]) -> Path:
    """The ensemble in a file, with something between the messages."""
    path = tmp_path / "ensemble.grib2"
    path.write_bytes(b"\0\0padding\r\n".join(fields.values()))
    return path
