"""The page of a run: one file that asks nobody for anything, whatever the record says, of three tasks or thousands."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from junctura import errors
from junctura.workflow._record.critical_path import Attribution
from junctura.workflow._record.history import History, history
from junctura.workflow._timeline import counts
from junctura.workflow._timeline import page as pages
from junctura.workflow._timeline.clock import TimeAxis
from junctura.workflow._timeline.folding import OTHERS, groups
from junctura.workflow._timeline.page import page
from junctura.workflow._view.text_format import clean, seconds, size
from junctura.workflow.timeline import main, timeline

sys.path.insert(0, str(Path(__file__).parent))
import example_records as examples

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=60)
SVG = "http://www.w3.org/2000/svg"
BAD = [
    "<script>alert(1)</script>",
    "</title></svg><img src=x onerror=alert(1)>",
    "\"'><a href='javascript:alert(1)'>",
    "&lt;&#60;",
    "]]>-->",
    "a\x00\x1b[2J\r\nb\u2028\u202e\ud800\ufffe",
    "x" * 10_000,
    "日本語 ü",
    "{pool} {{}} %s",
]


class Tags(HTMLParser):
    """What is markup on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def tags_of(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


def picture(text: str) -> ElementTree.Element:
    """The SVG, which must be XML of its own."""
    return ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])


def of_class(text: str, *words: str) -> list[ElementTree.Element]:
    return [one for one in picture(text).iter() if set(words) <= set(one.get("class", "").split())]


def titles(text: str) -> str:
    return "\n".join(one.text or "" for one in picture(text).iter(f"{{{SVG}}}title"))


KNOWN = tags_of(page(history(examples.ensemble())) + page(history(examples.at_once(200))))


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_a_page_asks_nobody_for_anything(name: str) -> None:
    text = page(history(examples.EXAMPLES[name]()))
    assert not re.search(
        r"https?:|//[a-z]|@import|url\(|src=|href=|<script|<link|<iframe|<img", text.replace(SVG, ""), re.I
    )
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"content=\"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'\"" in text
    assert "style=" not in text, "the policy would not allow it"
    assert "prefers-color-scheme: dark" in style
    assert picture(text).tag == f"{{{SVG}}}svg"


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_a_page_is_the_same_for_the_same_record(name: str) -> None:
    lines = examples.EXAMPLES[name]()
    assert page(history(lines)) == page(history(lines))


@pytest.mark.parametrize("bad", BAD)
def test_nothing_from_outside_is_markup(bad: str) -> None:
    words = {"task": bad, "attempt": 1}
    reason = {"kind": "object", "object": bad, "attributes": {bad: bad}, "selector": bad, "offered_at": 2.0}
    run = dict.fromkeys(("workflow", "file", "run", "pool", "host", "version"), bad)
    event = {"kind": "event", "at": 2.0, "event": bad, "object": bad, "client": bad, "attributes": {bad: [bad]}}
    lines: list[dict[str, Any]] = [
        {"kind": "run", "at": 1.0, **run, "tasks": [{"task": bad, "of": f"{bad}2", "after": [bad], "start": bad}]},
        event,
        {**event, "event": "offered"},
        {"kind": "ready", "at": 3.0, **words, "reason": reason},
        {"kind": "start", "at": 4.0, **words, "command": [bad], "identity": f"slurm {bad}", "log": bad},
        {"kind": "begin", "at": 5.0, **words},
        {"kind": "end_asked", "at": 6.0, "task": bad, "cause": bad},
        {"kind": "end", "at": 7.0, **words, "code": 1, "cause": bad},
        {"kind": "failed", "at": 7.0, "task": bad, "cause": bad},
        {"kind": "ready", "at": 7.0, "task": "b", "reason": {"kind": bad}},
        {"kind": "run_end", "at": 8.0, "status": bad},
    ]
    text = page(history(lines))
    found = tags_of(text)
    assert found.tags <= KNOWN.tags and found.attributes <= KNOWN.attributes
    assert picture(text) is not None
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u2028\u202e]", text)
    assert "x" * 700 not in text
    text.encode()


ANY = st.text(max_size=6) | st.sampled_from(["a", "b", "c"])
LINES = st.builds(
    lambda kind, at, task, words: {"kind": kind, "at": at, "task": task, **words},
    st.sampled_from(["run", "ready", "start", "begin", "end", "done", "failed", "skipped", "event", "run_end"]),
    st.floats(50, 1e6),
    st.sampled_from("abc"),
    st.fixed_dictionaries(
        {},
        optional={
            "of": ANY,
            "code": st.sampled_from([0, 1, None]),
            "cause": ANY,
            "service": st.booleans(),
            "cores": st.integers(-1, 9),
            "event": st.sampled_from(["offered", "joined", "left", "product", "completed", "odd"]),
            "object": ANY,
            "client": ANY,
            "bytes": st.integers(),
            "reason": st.fixed_dictionaries(
                {"kind": st.sampled_from(["start", "after", "object", "joined", "bundle", "restart", "odd"])},
                optional={
                    "tasks": st.lists(ANY),
                    "object": ANY,
                    "clients": st.lists(ANY),
                    "offered_at": st.floats(0, 1e6),
                },
            ),
        },
    ),
)


@FIXED
@given(st.lists(LINES, max_size=40))
def test_whatever_a_record_says_can_be_drawn(lines: list[dict[str, Any]]) -> None:
    text = page(history([{"kind": "run", "at": 60.0}, *lines]))
    assert "nan" not in re.sub(r"<(title|text)[^>]*>[^<]*", "", text[text.index("<svg") : text.index("</svg>")])
    for one in picture(text).iter():
        assert all(float(one.get(name, 0)) >= 0 for name in ("width", "height"))
    assert tags_of(text).tags <= KNOWN.tags


def test_each_task_shows_how_it_waited_ran_and_ended() -> None:
    text = page(history(examples.ensemble()))
    said = titles(text)
    assert "member-3, one of member\ndone\nwhy it started: after prepare" in said
    assert re.search(r"attempt 1: from 1\.40 s, ran 1\.90 s, killed by signal 9, process \d+", said)
    assert re.search(r"waited .*1\.40 s for prepare", said)
    assert re.search(r"log logs/member-3\.2\.log", said)
    assert re.search(r"why it started: object param=gh,step=24,number=4", said)
    assert "told to end: its users are done" in said
    assert len(of_class(text, "bar", "bad")) == 1 and len(of_class(text, "bar", "service")) == 1
    assert len(of_class(text, "mark", "failed")) == 1 + 1, "of the attempt, and in the legend"
    assert len(of_class(text, "why", "object")) == 6 and len(of_class(text, "why", "after")) == 10
    assert of_class(text, "queue") and of_class(text, "ready") and of_class(text, "wait")


@pytest.mark.parametrize("outcome", ["done", "failed", "skipped", "cancelled"])
def test_each_end_has_a_shape_of_its_own(outcome: str) -> None:
    lines: list[dict[str, Any]] = [{"kind": "run", "at": 1.0, "tasks": [{"task": "a"}]}]
    text = page(history([*lines, {"kind": outcome, "at": 2.0, "task": "a"}]))
    assert len(of_class(text, "mark", outcome)) == 2
    shapes = {re.sub(r"[-\d. ]", "", one.get("d", "")) for one in of_class(text, "mark")}
    assert len(shapes) >= 4


def test_a_run_that_has_not_ended_can_be_drawn() -> None:
    lines = examples.ensemble()[:60]
    text = page(history(lines))
    assert "The record has no end" in text and of_class(text, "bar", "open") and of_class(text, "mark", "cut")


def test_a_run_that_went_on_is_drawn_without_the_time_between() -> None:
    run = history(examples.resumed())
    text = page(run)
    assert len(of_class(text, "break")) == 1 and "stopped 23 h 53 min" in text and "resumed once" in text
    axis = TimeAxis(run, 100, 1000)
    assert axis.x(run.first.begin_at) == 100 and axis.x(run.last.end_at) == pytest.approx(1000)
    assert axis.x(run.last.begin_at) - axis.x(run.first.end_at) == pytest.approx(axis.gap)
    gap = run.first.end_at - run.first.begin_at
    assert axis.of(gap, is_begin=True) - axis.of(gap) == pytest.approx(axis.gap)


def test_the_chain_is_drawn_and_listed() -> None:
    text = page(history(examples.ensemble()))
    listed = text[text.index("What decided the length") : text.index("<h2>Tasks</h2>")]
    assert re.findall(r"<b>([^<]+)</b> runs", listed) == ["prepare", "member-3", "member-3", "mean", "verify", "report"]
    assert "<b>member-3</b> waits for free cores" in listed
    assert len(of_class(text, "link-run")) == 6 and of_class(text, "chain", "waits")


def test_the_table_says_what_the_picture_shows() -> None:
    run = history(examples.files())
    text = page(run)
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", text)
    assert len(rows) == len(run.courses)
    bad = next(row for row in rows if row.startswith("regrid-100 "))
    assert '<td class="failed">failed</td>' in bad and "exit status 1" in bad and "for free cores" in bad
    assert text.count('<th scope="col"') == 8 and "<caption>" in text


@pytest.mark.parametrize(
    ("name", "forms"), [("ensemble", {"rows"}), ("trues", {"lanes"}), ("at_once", {"band", "rows"})]
)
def test_the_more_tasks_the_less_room_each_has(name: str, forms: set[str]) -> None:
    run = history(examples.EXAMPLES[name]())
    assert {group.form for group in groups(run, services=False)} == forms
    heights = picture(page(run)).get("viewBox", "").split()
    assert float(heights[3]) < 1000


def test_lanes_hold_every_attempt_once_and_none_at_the_same_time() -> None:
    run = history(examples.files())
    for group in groups(run, services=False):
        if group.form == "lanes":
            held = [id(attempt) for lane in group.lanes for _, attempt in lane]
            assert len(held) == len(set(held)) == sum(len(course.attempts) for course in group.courses)
            for lane in group.lanes:
                ends = [(attempt.start_at, run.end_of(attempt)) for _, attempt in lane]
                assert ends == sorted(ends) and all(a[1] <= b[0] for a, b in itertools.pairwise(ends))


def test_very_many_kinds_are_shown_as_some_and_the_others() -> None:
    tasks = [{"task": f"t{n}", "of": f"t{n}"} for n in range(2000)] + [{"task": f"u-{n}", "of": "u"} for n in range(5)]
    run = history([{"kind": "run", "at": 1.0, "tasks": tasks}])
    made = groups(run, services=False)
    assert len(made) == 21 and {"u", OTHERS} <= {group.of for group in made}
    assert sum(len(group.courses) for group in made) == 2005
    assert picture(page(run)) is not None


def test_a_page_has_a_limit_whatever_the_record_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_ROWS_MAX", 10)
    text = page(history(examples.at_once(500)))
    assert text.count('<th scope="row">') == 10 and "The table has 10 of them" in text
    assert text.count('<td class="failed">failed') == 6, "those first that are not done"


def test_many_events_become_counts() -> None:
    text = page(history(examples.files()))
    assert len(of_class(text, "columns")) == 1 and "480 events of kind offered" in titles(text)
    assert len(of_class(page(history(examples.ensemble())), "tick")) == 162


@FIXED
@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100), st.floats(0, 5)), max_size=20))
def test_curves_keep_the_area(spans: list[tuple[float, float, float]]) -> None:
    ordered = [(min(a, b), max(a, b), weight) for a, b, weight in spans]
    values = counts.curve(ordered, 0, 100)
    assert sum(values) * 2 == pytest.approx(sum((b - a) * weight for a, b, weight in ordered), abs=1e-6)


@pytest.mark.parametrize("length", [0.0, 1e-6, 0.0004, 0.03, 1, 7.3, 59, 61, 600, 5000, 86400, 3e6, 1e11])
def test_the_axis_has_some_marks_with_units_and_none_twice(length: float) -> None:
    run: History = history([{"kind": "run", "at": 1.0}, {"kind": "run_end", "at": 1.0 + length}])
    ticks = TimeAxis(run, 184, 1142).ticks()
    assert 1 <= len(ticks) <= 41 and len({tick.text for tick in ticks}) == len(ticks)
    assert all(184 <= tick.x <= 1142.5 for tick in ticks) and ticks[0].text == "0"
    assert all(re.search(r"s|min|h|d", tick.text) for tick in ticks[1:])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (0.00002, "0.02 ms"),
        (0.0042, "4.2 ms"),
        (0.9994, "999 ms"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (59.96, "1 min"),
        (192, "3 min 12 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_times_in_words(value: float, text: str) -> None:
    assert seconds(value) == text


def test_sizes_in_words() -> None:
    assert [size(n) for n in (0, 999, 1536, 1 << 20, 1_049_760_000)] == ["0 B", "999 B", "1.5 KiB", "1 MiB", "1 GiB"]


@FIXED
@given(st.text())
def test_clean_text_can_be_printed_and_encoded(text: str) -> None:
    shown = clean(text)
    assert len(shown) == min(len(text), 200)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    shown.encode()


def test_the_page_is_written_beside_the_record_or_where_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "record.jsonl").write_text(examples.text(examples.three()))
    assert timeline(tmp_path) == tmp_path / "timeline.html"
    assert timeline(tmp_path / "record.jsonl", tmp_path / "seen.html") == tmp_path / "seen.html"
    assert (tmp_path / "seen.html").read_bytes() == (tmp_path / "timeline.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.jsonl", "seen.html", "timeline.html"]
    with pytest.raises(errors.Io):
        timeline(tmp_path, tmp_path / "never" / "seen.html")
    with pytest.raises(errors.NotFound):
        timeline(tmp_path / "never")


def test_the_command(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "record.jsonl").write_text(examples.text(examples.three()))
    assert main([str(tmp_path)]) == 0
    assert capsysbinary.readouterr().out.decode().strip() == str(tmp_path / "timeline.html")
    assert main([str(tmp_path), "--out", "-"]) == 0
    assert capsysbinary.readouterr().out == (tmp_path / "timeline.html").read_bytes()
    assert main([str(tmp_path / "never")]) == 2
    assert b"there is no record of a run" in capsysbinary.readouterr().err


def test_the_module_is_a_program(tmp_path: Path) -> None:
    (tmp_path / "record.jsonl").write_bytes(b"nonsense\n")
    command = [sys.executable, "-m", "junctura.workflow.timeline", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "") and "no line says that one begins" in ran.stderr


def test_waits_are_attributed_in_the_table() -> None:
    run = history(examples.queued())
    attribution = Attribution(run)
    waits = {wait.kind: wait for wait in attribution.waits(run.courses["case-15"])}
    assert waits["after"].words == "compile" and waits["after"].seconds == pytest.approx(115)
    assert waits["room"].begin == waits["after"].end and waits["queue"].begin == waits["room"].end
