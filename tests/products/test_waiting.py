"""A run says what it waits for, and ends when nobody is left who could offer it, or at once where it is to."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker_runs import BASE, broker, grid_message, in_background, offer

import junctura
from junctura.products import load_all
from junctura.products._broker.run_report import Made, WaitingReport
from junctura.products._plan import plan_of, run
from junctura.products._view import ProductsView

WANTED = """
product: t
from: {{param: {param}, levelist: 850, step: {step}, number: 1}}
to: {{format: csv, name: "{{step}}.csv"}}
"""
PLAN = """
sources: [{follow: param=t, until_gone: "swell-*"}]
sinks: [{archive: {store: kept}}]
"""


def wanted(param: str = "t", step: str = "0/6") -> str:
    return WANTED.format(param=param, step=step)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Of a pool in which nobody is."""
    url = f"unix:{tmp_path}/socket"
    junctura.Pool(url, schema="mars", start=True).close()
    yield url
    junctura.Pool(url).stop(timeout=0)


def left(url: str, *steps: int, param: str = "t") -> None:
    """A producer that has been there, and has left."""
    with junctura.Pool(url, name="swell-1") as swell:
        for step in steps:
            offer(swell, grid_message(np.full(2048, 280.0).reshape(32, 64), step=step), step=step, param=param)
        swell.sync()


class Heard:
    """What a run says while it waits."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.came = threading.Event()

    def __call__(self, waits: WaitingReport) -> None:
        self.lines += waits.lines if waits.is_new else ()
        self.came.set()


@pytest.mark.parametrize(
    ("param", "step", "made", "near"),
    [
        ("t", "0/7", 1, "step=7 is not there; with levelist=850,number=1,param=t there is step=0/6"),
        ("t", "9", 0, "step=9 is not there; with levelist=850,number=1,param=t there is step=0/6"),
        ("tt", "6", 0, "param=tt is not there; with levelist=850,number=1,step=6 there is param=t"),
        ("t", "0/6/12", 2, "step=12 is not there; with levelist=850,number=1,param=t there is step=0/6"),
    ],
)
def test_what_nobody_can_offer_any_more_is_named_with_the_nearest_that_is_there(
    tmp_path: Path, url: str, param: str, step: str, made: int, near: str
) -> None:
    heard = Heard()
    left(url, 0, 6)
    report = broker(tmp_path, url, wanted(param, step), patience=0, waits=heard).run()
    (failed,) = report.failed
    assert (len(report.made), report.nearest) == (made, [near])
    assert failed.cause.startswith("it waits for levelist=850,number=1")
    assert report.ended == "no client is connected that could offer what is missing"
    (first, second, third) = heard.lines
    assert first.startswith("waits for 1 field, of 1 product: levelist=850,number=1,param=")
    assert (second, third) == (near, report.ended)


@pytest.mark.parametrize(("text", "said"), [(wanted(), "ready: 2 products to be made"), (PLAN, "ready: a plan")])
def test_the_command_says_when_a_model_may_begin(tmp_path: Path, url: str, text: str, said: str) -> None:
    (tmp_path / "file.yaml").write_text(text)
    words = [sys.executable, "-m", "junctura.products", str(tmp_path / "file.yaml"), "--pool", url]
    words += ["--out", str(tmp_path / "out"), "--workers", "1", "--until-gone", "swell-*"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().strip() == said
        left(url, 0, 6)
        process.stderr.read()
    assert process.returncode == 0


def test_it_waits_for_one_who_is_there_or_may_still_come(tmp_path: Path, url: str) -> None:
    heard = Heard()
    # Of another model, which has left.
    left(url, 0, 6, param="gh")
    running = broker(tmp_path, url, wanted(), patience=0, waits=heard)
    with in_background(running, threading.Event()) as reports:
        assert heard.came.wait(60)
        swell = junctura.Pool(url, name="swell-2")
        swell.sync()
        for step in (0, 6):
            heard.came.clear()
            assert heard.came.wait(60)
            offer(swell, grid_message(np.zeros((32, 64)), step=step), step=step, param="t")
        swell.close()
    (report,) = reports
    assert (len(report.made), report.failed, report.ended) == (2, [], "")
    assert "param=t is not there; with levelist=850,number=1,step=0 there is param=gh" in heard.lines


@pytest.mark.parametrize("names", [["swell-*"], ["swell-1", "other"]])
def test_producers_that_left_before_it_began_are_not_waited_for_for_ever(
    tmp_path: Path, url: str, names: list[str]
) -> None:
    heard = Heard()
    left(url, 0)
    running = broker(tmp_path, url, wanted(), patience=0, waits=heard, until_gone=names)
    with in_background(running, threading.Event()) as reports:
        assert heard.came.wait(60)
        # One producer alone cannot have had both names.
        for name in names if len(names) > 1 else ():
            junctura.Pool(url, name=name).close()
    (report,) = reports
    assert (len(report.made), [one.attributes["step"] for one in report.failed]) == (1, [6])
    assert any("nobody called" in line for line in heard.lines)


def test_now_makes_what_is_there_and_ends(tmp_path: Path) -> None:
    with junctura.Pool(schema="mars") as pool:
        offer(pool, grid_message(np.zeros((32, 64)), step=6), step=6, param="t")
        report = broker(tmp_path, pool, wanted(step="0/6/12"), now=True).run()
        assert (len(report.made), len(report.failed)) == (1, 2)
        report = broker(tmp_path, pool, wanted("gh"), now=True, out=tmp_path / "other").run()
        assert (len(report.made), len(report.failed)) == (0, 2)


def store(folder: Path, schema: str | Path, steps: tuple[int, ...], name: str | None = None) -> str:
    with junctura.Store.create(folder, schema=schema) as kept:
        for step in steps:
            about = {**BASE, "step": step, "param": "t"}
            kept.archive(grid_message(np.full((32, 64), 280.0 + step), step=step), about, schema=name)
    return str(folder)


RULES = """date: Date; step: Step; number: Integer; levelist: Double;
[ class, expver, stream, date, time [ type, levtype [ step, number?, levelist?, param ]]]
"""


@pytest.fixture
def foreign(tmp_path: Path) -> str:
    """A store of FDB's schema."""
    (tmp_path / "rules.fdb").write_text(RULES)
    return store(tmp_path / "foreign", tmp_path / "rules.fdb", (0, 6), "rules")


def test_a_store_alone_needs_no_server(tmp_path: Path) -> None:
    report = broker(tmp_path, None, wanted(step="0/6/12"), store=store(tmp_path / "s", "mars", (0, 6))).run()
    assert (len(report.made), [one.attributes["step"] for one in report.failed]) == (2, [12])
    assert report.nearest == ["step=12 is not there; with levelist=850,number=1,param=t there is step=0/6"]


def test_a_store_of_another_schema_is_used_or_the_error_says_what_does_it(tmp_path: Path, foreign: str) -> None:
    report = broker(tmp_path, None, wanted(), store=foreign).run()
    assert (len(report.made), report.failed) == (2, [])
    with junctura.Pool(schema="mars") as pool:
        with pytest.raises(junctura.InvalidArgument, match=r'the schema "rules".*leave --pool out.*--schema'):
            broker(tmp_path, pool, wanted(), store=foreign)
        # Of what it does not ask for nothing is said.
        assert broker(tmp_path, pool, wanted("gh"), store=foreign, now=True).run().made == []
    with junctura.Pool(schema=tmp_path / "rules.fdb") as pool:
        assert len(broker(tmp_path, pool, wanted(), store=foreign, out=tmp_path / "other").run().made) == 2


@pytest.mark.parametrize("pool", ["none", "idle", "with an object of another kind"])
@pytest.mark.parametrize(
    ("param", "step", "made", "near"),
    [
        ("t", "7", 0, "step=7 is not there; with levelist=850,number=1,param=t there is step=0"),
        ("tt", "0", 0, "param=tt is not there; with levelist=850,number=1,step=0 there is param=t"),
        ("t", "0/7", 1, "step=7 is not there; with levelist=850,number=1,param=t there is step=0"),
    ],
)
def test_what_a_store_and_the_pool_before_it_do_not_have_is_named_and_the_run_ends(
    tmp_path: Path, pool: str, param: str, step: str, made: int, near: str
) -> None:
    url, heard = f"unix:{tmp_path}/socket", Heard()
    if pool != "none":
        junctura.Pool(url, schema=["mars", "free"], start=True).close()
    if pool == "with an object of another kind":
        with junctura.Pool(url) as other:
            other.offer(b"text", schema="free", name="note")
    kept = store(tmp_path / "s", "mars", (0,))
    running = broker(
        tmp_path, None if pool == "none" else url, wanted(param, step), store=kept, patience=0, waits=heard
    )
    report = running.run()
    (failed,) = report.failed
    assert failed.cause.startswith("it waits for levelist=850,number=1")
    assert (len(report.made), report.nearest) == (made, [near])
    if pool != "none":
        assert report.ended == "no client is connected that could offer what is missing"
        assert heard.lines[1:] == [near, report.ended]
        junctura.Pool(url, start=True).stop(timeout=0)


def test_a_plan_with_a_store_says_what_it_waits_for_and_ends(tmp_path: Path, url: str) -> None:
    heard = Heard()
    kept = store(tmp_path / "s", "mars", (0,))
    assert run(planned(tmp_path), url, tmp_path, store=kept, patience=0, waits=heard).fields == 1
    assert heard.lines[:2] == ["waits for param=t, until swell-* have left", "nobody called swell-* has been there yet"]


def planned(folder: Path, text: str = PLAN) -> Any:
    (folder / "plan.yaml").write_text(text)
    return plan_of([folder / "plan.yaml"])


def test_a_plan_whose_producers_have_left_ends(tmp_path: Path, url: str) -> None:
    heard = Heard()
    left(url, 0, 6)
    ran = run(planned(tmp_path), url, tmp_path, patience=0, waits=heard)
    assert (ran.fields, ran.failed, len(junctura.Store(tmp_path / "kept").list())) == (2, 0, 2)
    assert heard.lines[:2] == [
        "waits for param=t, until swell-* have left",
        "nobody called swell-* has been there yet",
    ]


def test_a_plan_waits_for_producers_of_which_nothing_has_come(tmp_path: Path, url: str) -> None:
    heard = Heard()
    ran: list[Any] = []
    plan = planned(tmp_path)
    thread = threading.Thread(target=lambda: ran.append(run(plan, url, tmp_path, patience=0, waits=heard)), daemon=True)
    thread.start()
    assert heard.came.wait(60)
    left(url, 0)
    thread.join(60)
    assert ran[0].fields == 1


def test_a_plan_of_what_is_there_now_and_of_a_store_alone(tmp_path: Path, url: str, foreign: str) -> None:
    left(url, 0, 6)
    assert run(planned(tmp_path), url, tmp_path, now=True).fields == 2
    text = 'sources: [{follow: param=t}]\nsinks: [{file: {format: csv, name: "{step}.csv"}}]\n'
    assert run(planned(tmp_path, text), None, tmp_path, store=foreign).fields == 2
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == ["0.csv", "6.csv"]


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("text", [wanted(step="0"), PLAN])
def test_a_run_that_begins_before_everything_starts_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("JUNCTURA_POOL", raising=False)
    (tmp_path / "wanted.yaml").write_text(text)
    words = [sys.executable, "-m", "junctura._run", str(tmp_path / "wanted.yaml"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "ready" in process.stderr.readline()
        left("unix:default", 0)
        assert (process.wait(100), process.stderr.read().count("junctura: ")) == (0, 0)
    junctura.Pool("unix:default").stop(timeout=0)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    def go(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "wanted.yaml").write_text(text)
        words = [sys.executable, "-m", "junctura._run", str(tmp_path / "wanted.yaml"), "--workers", "1"]
        words += ["--out", str(tmp_path / "out"), *options]
        return subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)

    return go


def test_the_command_says_what_there_is_in_place_of_what_is_missing(command: Command, url: str) -> None:
    left(url, 0, 6)
    done = command(wanted(step="0/7"), "--pool", url, "--patience", "0s")
    assert (done.returncode, "ready" in done.stderr) == (1, False)
    assert "cannot be made, since no client is connected that could offer what is missing:" in done.stdout
    assert "nearest: step=7 is not there; with levelist=850,number=1,param=t there is step=0/6" in done.stdout
    done = command(wanted(step="0/7/8"), "--pool", url, "--now", "--json", "--quiet")
    said = json.loads(done.stdout)
    assert (done.returncode, done.stderr, said["kept"], len(said["failed"])) == (1, "", 0, 2)
    assert (said["ended"], len(said["nearest"])) == ("", 1)


def test_the_command_gathers_the_fields_that_a_product_waits_for(command: Command, url: str) -> None:
    text = wanted(step="0/6").replace("number: 1", "number: 1/to/3").replace("{step}.csv", "all.csv")
    text = text.replace("csv, name", "csv, gather: [step, number], name")
    # A server without objects and clients ends.
    left(url, 12)
    done = command(text, "--pool", url, "--now")
    assert done.returncode == 1
    assert "  t: it waits for levelist=850,number=1/2/3,param=t,step=0/6\n" in done.stdout
    done = command(text, "--pool", url, "--now", "--json")
    (failed,) = json.loads(done.stdout)["failed"]
    assert failed["cause"].count("param=t") == 6


def test_the_command_takes_a_store_alone_where_no_pool_is_named(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("JUNCTURA_POOL", raising=False)
    kept = store(tmp_path / "s", "mars", (0, 6))
    done = command(wanted(), "--behind", kept)
    assert done.returncode == 0, done.stderr
    # A pool that is named is meant.
    done = command(wanted(), "--behind", kept, "--pool", "unix:nowhere")
    said = (
        "unix:nowhere: no server runs there: leave --pool out to use the store alone, or start one: junctura pool serve"
    )
    assert done.returncode == 5 and said in done.stderr
    done = command(wanted(), "--pool", "unix:nowhere")
    said = "unix:nowhere: no server runs there: begin with the producer, or start one: junctura pool serve --pool unix:"
    assert done.returncode == 5 and said in done.stderr
    done = command(wanted(), "--behind", str(tmp_path / "nothing"))
    assert done.returncode == 3 and f"store {tmp_path}/nothing: there is no store here" in done.stderr


@pytest.mark.parametrize("text", [wanted(), PLAN])
def test_a_store_that_does_not_answer_is_named_and_ctrl_c_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A server that takes connections and never answers."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "wanted.yaml").write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"s3://fields/archive?endpoint=http://127.0.0.1:{server.getsockname()[1]}"
        # As a shell starts what is to run in the background.
        words = ["sh", "-c", """trap '' INT; exec "$0" "$@" """, sys.executable, "-m", "junctura._run"]
        words += [str(tmp_path / "wanted.yaml"), "--behind", url]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == f"  waits for the store {url}, which has not answered for 3 s\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130


def test_patience_is_a_time(command: Command) -> None:
    done = command(wanted(), "--patience", "soon")
    assert done.returncode == 2 and "'soon': expected a time, as 30s or 10min" in done.stderr


def test_recipes_of_one_file_name_are_refused_before_anything_is_waited_for(command: Command) -> None:
    done = command(wanted() + "---" + wanted().replace("product: t", "product: other"))
    assert done.returncode == 2 and "are both named 0.csv" in done.stderr
    assert load_all([]) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_what_is_waited_for_stays_until_something_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    view = ProductsView()
    for is_new in (True, False):
        view.waits(WaitingReport(("waits for 1 fields", "step=7 is not there"), is_new))
    said = terminal.getvalue()
    assert said.count("step=7 is not there") == 1 and said.count(": waits for 1 fields\n") == 2
    view.show(Made("t", Path("t.csv"), 1, {}, 0.1), 2)
    # One line up, in the place of the status.
    assert "\x1b[1A\r\x1b[K  products " in terminal.getvalue()
