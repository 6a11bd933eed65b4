"""Fixtures of programs that use the C library: a pool that is served, and runs of commands."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from c_programs import BUILT

VALGRIND = [
    "valgrind",
    "--quiet",
    "--error-exitcode=9",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
    "--fair-sched=yes",
    f"--suppressions={Path(__file__).with_name('valgrind.supp')}",
]


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
        "pool",
        "serve",
        "--pool",
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


@pytest.fixture
def valgrind() -> list[str]:
    """The words in front of a command that finds errors of memory, and leaks."""
    return VALGRIND
