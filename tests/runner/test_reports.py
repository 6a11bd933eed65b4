"""What the end of a run repeats about failed tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from reports import LINES_KEPT, NAMES_KEPT, REASONS_KEPT, REPORTS_KEPT, Failures
from run import environment

NOISY = """
import sys

def test_picture():
    for number in range(100):
        print("line", number)
    sys.stderr.write("server: disk is full\\n")
    assert sorted([3, 1]) == [1, 2], "t2-00000.png: warmest 295.0 K"

def test_other():
    assert not "other"

def test_good():
    pass
"""


def read(*lines: str) -> Failures:
    failures = Failures()
    for line in lines:
        failures.take(line + "\n")
    return failures


def of(*lines: str) -> list[str]:
    return read(*lines).lines()


def test_a_report_of_pytest_has_the_assertion_and_what_was_captured_last(tmp_path: Path) -> None:
    (tmp_path / "test_noisy.py").write_text(NOISY)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "test_noisy.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    lines = of(*done.stdout.splitlines())
    first, second = (lines.index(line) for line in lines if line.startswith("___"))
    assert "test_picture" in lines[first]
    assert lines[first + 1].startswith("E       AssertionError: t2-00000.png: warmest 295.0 K")
    assert "E         At index 1 diff: 3 != 2" in lines[first:second]
    assert lines[second - 3 : second] == ["line 99", lines[second - 2], "server: disk is full"]
    assert second - first <= 2 + REASONS_KEPT + LINES_KEPT
    assert "test_other" in lines[second]
    assert "E       AssertionError: assert not 'other'" in lines[second:]
    names = [line.partition(" - ")[0] for line in lines[-2:]]
    assert names == ["FAILED test_noisy.py::test_picture", "FAILED test_noisy.py::test_other"]


def test_a_report_of_cargo_has_the_message_without_the_backtrace() -> None:
    output = """
running 2 tests
failures:

---- sizes::all_are_bounded stdout ----
seed 7
thread 'sizes::all_are_bounded' panicked at src/sizes.rs:10:5:
assertion `left == right` failed
  left: 1
 right: 2
stack backtrace:
   0: __rustc::rust_begin_unwind
note: Some details are omitted

---- sizes::none stdout ----
Error: "no sizes"

failures:
    sizes::all_are_bounded

test result: FAILED. 0 passed; 2 failed
failed: exit status 101; repeat with: cargo test -p sizes
"""
    assert of(*output.splitlines()) == [
        "---- sizes::all_are_bounded stdout ----",
        "seed 7",
        "thread 'sizes::all_are_bounded' panicked at src/sizes.rs:10:5:",
        "assertion `left == right` failed",
        "  left: 1",
        " right: 2",
        "---- sizes::none stdout ----",
        'Error: "no sizes"',
        "failed: exit status 101; repeat with: cargo test -p sizes",
    ]


def test_a_suite_without_reports_gives_its_last_lines() -> None:
    lines = of(*(f"line {number}" for number in range(100)), "", "failed: install: exit status 1")
    assert lines == [*(f"line {number}" for number in range(71, 100)), "failed: install: exit status 1"]


@pytest.mark.parametrize("count", [REPORTS_KEPT, REPORTS_KEPT + 1, 100])
def test_what_many_failures_give_is_limited(count: int) -> None:
    reports = [[f"---- t{number} stdout ----", *["told"] * 100] for number in range(count)]
    names = [f"FAILED t{number}" for number in range(count)]
    lines = of(*(line for report in reports for line in report), "failures:", *names)
    assert len(lines) == REPORTS_KEPT * (2 + LINES_KEPT) + min(count, NAMES_KEPT)


def test_failed_tests_are_named_shortly() -> None:
    output = [
        "---- sizes::all_are_bounded stdout ----",
        "FAILED tests/link/test_streams.py::test_a_load[1 KiB/s] - subprocess.TimeoutExpired: Command '['/a/b', 'c']'",
        "ERROR tests/c/test_abi.py::test_all",
    ]
    assert read(*output).tests == [
        "sizes::all_are_bounded",
        "test_streams.py::test_a_load[1 KiB/s]",
        "test_abi.py::test_all",
    ]


def test_a_suite_may_keep_compiled_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in environment()
