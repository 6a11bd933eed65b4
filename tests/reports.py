"""What to repeat at the end of a run about the tests that failed: of cargo, of pytest, of suites that count themselves.

A runner prints the report of a failed test (its assertion and its captured output) far above the table of suites.
``Failures`` reads the output line by line and keeps, of the first tests that failed, the end of each report, the
assertion itself, and the names of all; ``tests`` is these names alone.
"""

from __future__ import annotations

import re
from collections import deque

# Kept of each report, and of the whole output of a suite without one.
LINES_KEPT = 30
# Lines of a pytest assertion that are above those.
REASONS_KEPT = 10
REPORTS_KEPT = 5
NAMES_KEPT = 40

# The first line of a report: of cargo, of pytest.
REPORT = re.compile(r"^(---- .* stdout ----|_{3,} .* _{3,})$")
# The first line after a report.
REPORT_END = re.compile(r"^(failures:|test result: .*|=+ .* =+)$")
# Frames without lines: the message is above.
BACKTRACE = re.compile(r"^stack backtrace:$")
# A line of pytest with a part of the assertion.
REASON = re.compile(r"^E  ")
# Lines that name a failed test, or one that does not end, and where it is.
NAME = re.compile(r"^((FAILED|ERROR) .*|failed: .*|.*\btest \S+ has been running for over .*|hangs: .*)$")
# A failed test in such a line of pytest, and in a report of cargo; without the folder of its file.
TEST = re.compile(r"^(?:(?:FAILED|ERROR) (?:[\w.-]+/)*|---- )(?P<name>.+?)(?: - .*| stdout ----)?$")


class Failures:
    """Of the output of a suite, what explains its failures."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.tests: list[str] = []
        self.reports: list[list[str]] = []
        self.last: deque[str] = deque(maxlen=LINES_KEPT)
        self.open: list[str] | None = None
        self.is_backtrace = False

    def take(self, line: str) -> None:
        """Reads the next line of output."""
        line = line.rstrip()[:300]
        if line:
            self.last.append(line)
        if NAME.match(line) and len(self.names) < NAMES_KEPT:
            self.names.append(line)
        if (test := TEST.match(line)) and len(self.tests) < NAMES_KEPT:
            self.tests.append(test["name"])
        if REPORT.match(line):
            self._close()
            self.open = []
        elif REPORT_END.match(line):
            self._close()
        if self.open is not None and line:
            self.is_backtrace = self.is_backtrace or BACKTRACE.match(line) is not None
            if not self.is_backtrace:
                self.open.append(line)

    def _close(self) -> None:
        if self.open is not None and len(self.reports) < REPORTS_KEPT:
            self.reports.append(shortened(self.open))
        self.open = None
        self.is_backtrace = False

    def lines(self) -> list[str]:
        """The reports, then the names; without a report the last lines of all."""
        self._close()
        if not self.reports:
            return [*(name for name in self.names if name not in self.last), *self.last]
        return [line for report in [*self.reports, self.names] for line in report]


def shortened(report: list[str]) -> list[str]:
    """The first line of a report, its assertion, and its last lines."""
    if len(report) <= LINES_KEPT:
        return report
    reasons = [line for line in report[1:-LINES_KEPT] if REASON.match(line)]
    return [report[0], *reasons[:REASONS_KEPT], "...", *report[-LINES_KEPT:]]
