"""What one sees while a workflow runs: on a terminal, on none, with --quiet, and where nobody looks any more."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from junctura._progress import Screen
from junctura.workflow._view.status_table import StatusView

sys.path.insert(0, str(Path(__file__).parent))
import example_records as examples

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=100)


class Terminal(io.StringIO):
    """Has no size, and so that which is taken for granted: 80 columns, 24 lines."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("no descriptor")

    def shown(self) -> list[str]:
        """The lines that stand there in the end."""
        lines, row = [""], 0
        for code, text in re.findall(r"(\x1b\[\d*[AJK]|\r|\n)|([^\x1b\r\n]+)", self.getvalue()):
            if code == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif code.endswith("A"):
                row -= int(code[2:-1])
            elif code.endswith("J"):
                del lines[row + 1 :]
                lines[row] = ""
            elif code.endswith("K"):
                lines[row] = ""
            lines[row] += text
        return [line.rstrip() for line in lines[:-1]]


def seen(lines: list[dict[str, Any]], stream: io.StringIO, **options: Any) -> StatusView:
    """A view that has taken these lines, each at its time."""
    now = [0.0]
    view = StatusView(False, stream=stream, clock=lambda: now[0], **options)
    for line in lines:
        now[0] = float(line["at"])
        view.take(line)
    return view


def test_on_no_terminal_there_is_a_line_for_what_happens() -> None:
    stream = io.StringIO()
    seen(examples.ensemble(), stream)
    said = stream.getvalue().splitlines()
    assert said[0] == "  ensemble: 11 tasks, pool unix:run-4711"
    assert [line.split(None, 2)[2] for line in said[1:4]] == ["prepare runs", "prepare is done", "products runs"]
    assert any(line.endswith("member-3, attempt 1: killed by signal 9") for line in said)
    assert any(line.endswith("member-3 runs, attempt 2") for line in said)
    assert any(line.endswith("products is told to end: its users are done") for line in said)
    assert re.fullmatch(r"  ensemble done after [\d.]+ s: 17 done; \d+ objects", said[-1])
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_an_each_without_an_object_is_shown(stream: io.StringIO) -> None:
    done = {"kind": "done", "at": 1.0, "task": "reader", "cause": "no object matched knd=greeting", "counts": False}
    seen([*examples.ensemble()[:1], done], stream)
    assert "reader is done: no object matched knd=greeting" in stream.getvalue()


@pytest.mark.parametrize(("warnings", "shown"), [(1, "w done after 1.00 s: 3 done, 1 warning"), ("x", ": 3 done")])
def test_the_end_counts_warnings(warnings: Any, shown: str) -> None:
    stream = io.StringIO()
    end = {"kind": "run_end", "at": 2.0, "status": "done", "done": 3, "warnings": warnings}
    seen([{"kind": "run", "at": 1.0, "workflow": "w"}, end], stream)
    assert stream.getvalue().splitlines()[-1].endswith(shown)


def test_of_very_many_tasks_few_lines_are_shown() -> None:
    stream = io.StringIO()
    seen(examples.trues(2000), stream)
    said = stream.getvalue().splitlines()
    assert len(said) < 70
    assert any("(1,000 of true)" in line for line in said)
    assert said[-1].endswith("2,000 done")


def test_of_very_many_failures_few_are_shown_with_their_logs(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("it went wrong\n")
    lines: list[dict[str, Any]] = [{"kind": "run", "at": 1.0, "workflow": "w"}]
    for n in range(500):
        task = {"task": f"a-{n}", "at": 2.0, "attempt": 1}
        lines += [{"kind": "ready", "of": "a", **task}, {"kind": "start", "log": "log", **task}]
        lines += [{"kind": "begin", **task}, {"kind": "end", "code": 1, **task}, {"kind": "failed", **task}]
    stream = io.StringIO()
    seen(lines, stream, folder=tmp_path)
    assert stream.getvalue().count("it went wrong") == 50


def test_on_a_terminal_there_is_a_table() -> None:
    stream, lines = Terminal(), examples.ensemble()
    at = next(n for n, line in enumerate(lines) if line["kind"] == "event" and line["at"] > lines[0]["at"] + 6)
    seen(lines[: at + 1], stream)
    shown = stream.shown()
    heads = next(n for n, line in enumerate(shown) if "waiting" in line)
    assert shown[heads].split()[1:6] == ["waiting", "ready", "running", "done", "failed"]
    rows = {line.split()[0]: line.split()[1:6] for line in shown[heads + 1 :]}
    assert rows["prepare"] == ["·", "·", "·", "1", "·"]
    assert rows["member"] == ["·", "1", "5", "·", "·"]
    assert rows["mean"] == ["1", "·", "·", "·", "·"]
    assert re.search(r"6 run: products [\d.]+ s, member-0 [\d.]+ s, ", "\n".join(shown))
    assert re.search(r"pool: \d+ offered \([\d.]+/s\), 1 joined", "\n".join(shown))
    assert any("member-3, attempt 1: killed by signal 9" in line for line in shown[:heads]), "what is said stays"


def test_the_table_stays_with_the_end_below_it() -> None:
    stream = Terminal()
    seen(examples.three(), stream)
    shown = stream.shown()
    assert sum("waiting" in line for line in shown) == 1
    assert shown[-1] == "  three done after 15.4 s: 3 done"


def test_last_lines_of_a_failed_tasks_log_are_shown_and_can_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "member-3.1.log"
    log.write_bytes(b"much\n" * 5000 + b"one\ntwo\x1b[2J\n\xff three\n\tfour\nfive\n")
    stream = io.StringIO()
    seen(examples.ensemble(), stream, folder=tmp_path)
    tail = [line.partition("| ")[2] for line in stream.getvalue().splitlines() if "  | " in line]
    assert tail == ["one", "two�[2J", "� three", "    four", "five"]


@pytest.mark.parametrize("log", ["", "never", "../up", "a\0b", "."])
def test_a_log_that_is_not_there_is_not_shown(log: str, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"kind": "run", "at": 1.0, "workflow": "w"},
        {"kind": "start", "at": 2.0, "task": "a", "attempt": 1, "log": log},
        {"kind": "begin", "at": 2.0, "task": "a", "attempt": 1},
        {"kind": "end", "at": 3.0, "task": "a", "attempt": 1, "code": 1, "cause": "exit status 1"},
    ]
    stream = io.StringIO()
    seen(lines, stream, folder=tmp_path)
    assert stream.getvalue().splitlines()[-1].endswith("a, attempt 1: exit status 1")


def test_quiet_is_quiet() -> None:
    stream = Terminal()
    with StatusView(True, stream=stream) as view:
        for line in examples.ensemble():
            view.take(line)
    assert stream.getvalue() == ""


def test_that_nobody_reads_it_any_more_is_no_failure() -> None:
    class Gone(Terminal):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    closed = io.StringIO()
    closed.close()
    for stream in (Gone(), Terminal()):
        with StatusView(False, stream=stream) as view:
            for index, line in enumerate(examples.three()):
                if index == 3:
                    stream.close()
                view.take(line)


def test_what_was_before_a_run_went_on_counts_and_is_not_told() -> None:
    lines = examples.resumed()
    second = max(n for n, line in enumerate(lines) if line["kind"] == "run")
    stream = io.StringIO()
    view = StatusView(False, stream=stream)
    view.recall(lines[:second])
    assert stream.getvalue() == ""
    for line in lines[second:]:
        view.take(line)
    assert stream.getvalue().splitlines()[0].endswith("7 tasks, pool unix:run-4711, resumed")


def test_names_from_outside_can_do_nothing_to_the_terminal() -> None:
    name = "\x1b]0;title\x07\r\n\u202e" + "x" * 10_000
    lines: list[dict[str, Any]] = [
        {"kind": "run", "at": 1.0, "workflow": name, "tasks": [{"task": name, "of": name}], "pool": name},
        {"kind": "start", "at": 2.0, "task": name, "attempt": 1},
        {"kind": "begin", "at": 2.0, "task": name, "attempt": 1},
        {"kind": "end", "at": 3.0, "task": name, "attempt": 1, "code": 1, "cause": name},
        {"kind": "event", "at": 3.0, "event": name},
        {"kind": "failed", "at": 3.0, "task": name, "cause": name},
        {"kind": "run_end", "at": 4.0, "status": name},
    ]
    for stream in (io.StringIO(), Terminal()):
        seen(lines, stream)
        left = re.sub(r"\x1b\[\d*[AJK]\r?", "", stream.getvalue())
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", left)
        assert max(map(len, left.splitlines())) < 500


def test_lines_are_cut_where_the_terminal_ends() -> None:
    stream = Terminal()
    screen = Screen(stream=stream)
    screen.draw(["x" * 200, "日本" * 60, "e\u0301" * 200])
    assert [len(line) for line in stream.shown()] == [79, 39, 158]
    screen.draw([str(n) for n in range(100)])
    assert stream.shown() == [str(n) for n in range(23)]


WORDS = st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
NAMES = ("kind", "task", "of", "at", "attempt", "code", "cause", "tasks", "log", "event", "status", "done", "workflow")
KINDS = ("run", "ready", "start", "begin", "end", "done", "failed", "skipped", "event", "end_asked", "run_end")


@FIXED
@given(
    st.lists(
        st.builds(
            lambda kind, words: {"kind": kind, "task": "a", **words},
            st.sampled_from(KINDS),
            st.dictionaries(st.sampled_from(NAMES), WORDS, max_size=5),
        ),
        max_size=20,
    )
)
def test_it_never_raises_whatever_a_line_says(lines: list[dict[str, Any]]) -> None:
    for stream in (io.StringIO(), Terminal()):
        view = StatusView(False, stream=stream, clock=lambda: 5.0)
        for line in lines:
            view.take(line)
