"""A pool that is served, and compiled programs of C."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from c_programs import BUILT, PROGRAMS, compile_c, prepare

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


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """Sockets apart from the user's; names of sockets are short, so the folders of tests are not for them."""
    with tempfile.TemporaryDirectory(prefix="c-") as folder:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("JUNCTURA_")}
        yield {**plain, "XDG_RUNTIME_DIR": folder, "PATH": f"{BUILT}:{os.environ['PATH']}"}


@pytest.fixture
def pool(environment: dict[str, str]) -> Iterator[str]:
    """The URL of a pool that is served."""
    url = "unix:test"
    command = [
        str(BUILT / "junctura"),
        "serve",
        url,
        "--schema",
        "free",
        "--schema",
        "mars",
        "--budget",
        "256MiB",
        "--announce",
    ]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()
        assert server.wait(timeout=60) == 0


@pytest.fixture
def run(environment: dict[str, str]) -> Callable[..., str]:
    """Runs a command, which must succeed; its output."""

    def run_command(*command: object, **more: str) -> str:
        words = [str(word) for word in command]
        done = subprocess.run(
            words, env={**environment, **more}, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run_command
