"""Figures that tests tell, at the end of the run. A conftest imports both names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

TOLD: list[str] = []


@pytest.fixture
def tell() -> Callable[[str], None]:
    """Says a line at the end of the run."""
    return TOLD.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in TOLD:
        terminalreporter.write_line(line)
