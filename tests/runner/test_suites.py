"""The suites are run after what they use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from suites import SUITES, Suite

BY_NAME = {suite.name: suite for suite in SUITES}


def before(suite: Suite) -> set[str]:
    """All suites that must have passed."""
    return {name for need in suite.needs for name in (need, *before(BY_NAME[need]))}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(SUITES)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_packages_are_installed_before_all_but_the_compilation(suite: Suite) -> None:
    assert ("setup" in before(suite)) == (suite.name not in ("setup", "compile"))
    assert suite.name not in before(suite)
