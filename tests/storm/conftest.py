"""A shell for each storm, and the figures of all of them at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from e2e_shell import Shell

TOLD: list[str] = []


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A shell; nobody serves its pool yet."""
    shell = Shell()
    yield shell
    shell.close()


@pytest.fixture
def tell() -> Callable[[str], None]:
    """Says a line at the end of the run."""
    return TOLD.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in TOLD:
        terminalreporter.write_line(line)
