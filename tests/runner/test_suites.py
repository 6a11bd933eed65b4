"""The suites are run after what they use."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import run
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


def test_suites_that_repeat_tests_of_others_are_last() -> None:
    waiters = [suite.repeats for suite in SUITES if not suite.builds]
    assert waiters == sorted(waiters)


@pytest.mark.parametrize("passed_s", [run.REPEATS_UNTIL_S - 100, run.REPEATS_UNTIL_S + 100])
@pytest.mark.parametrize("in_ci", [False, True])
def test_only_suites_that_repeat_tests_of_others_are_left_out_where_time_is_short(
    monkeypatch: pytest.MonkeyPatch, passed_s: int, in_ci: bool
) -> None:
    monkeypatch.setattr(run, "BEGUN", time.monotonic() - passed_s)
    monkeypatch.delenv("CI", raising=False)
    if in_ci:
        monkeypatch.setenv("CI", "true")
    left_out = {suite.name for suite in SUITES if run.Schedule([]).without_running(suite)}
    is_late = in_ci and passed_s > run.REPEATS_UNTIL_S
    assert left_out == ({suite.name for suite in SUITES if suite.repeats} if is_late else set())
