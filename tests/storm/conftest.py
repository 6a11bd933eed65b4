"""A shell for each storm, and the figures of all of them at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from e2e_shell import Shell
from e2e_tell import pytest_terminal_summary, tell

__all__ = ["pytest_terminal_summary", "tell"]


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A shell; nobody serves its pool yet."""
    shell = Shell()
    yield shell
    shell.close()
