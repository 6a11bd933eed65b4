"""The suites are run after what they use."""

from __future__ import annotations

import subprocess
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


ENDED = """
import run
from suites import Suite

def suite(name, script, *needs):
    return Suite(name, ["sh", "-c", script], needs=list(needs))

short = suite("short", "true")
ends = suite("ends", "kill -TERM $PPID; exec sleep 1000", "short")
run.SUITES = [short, ends, suite("later", "true", "ends")]
run.main()
"""


def test_a_run_that_is_ended_prints_how_far_it_came() -> None:
    runner = [sys.executable, "-c", ENDED]
    done = subprocess.run(runner, cwd=Path(run.__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("━━━")]
    # Threads of what was ended may still write.
    place = lines.index("not begun: later")
    assert [line.split()[0] for line in lines[place - 3 : place]] == ["suite", "short", "all"]
    assert lines[place + 1].endswith("while these ran: ends")
