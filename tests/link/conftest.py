"""Pools over links: a shell, and the weather on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parents[1] / "storm"))

from e2e_shell import Shell
from e2e_tell import pytest_terminal_summary, tell
from link_weather import weather

__all__ = ["pytest_terminal_summary", "tell", "weather"]


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A shell whose commands reach ``tcp://`` over TCP, although the server is on this machine."""
    shell = Shell()
    shell.environment["JUNCTURA_TRANSPORTS"] = "tcp"
    os.environ["JUNCTURA_TRANSPORTS"] = "tcp"
    yield shell
    del os.environ["JUNCTURA_TRANSPORTS"]
    shell.close()
