"""The demo on a small ensemble: a forecast, its products, its archive, nothing lost, and what is to be seen of it."""

import argparse
import functools
import importlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

import junctura
from junctura.products import Broker, Failed, Made

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES / "12_products"))
demo = importlib.import_module("demo")
view = importlib.import_module("view")

SUMMARY = {
    *("fields", "products", "failed", "decodes_per_input_max", "decodes", "first_product_at_fraction"),
    *("last_product_lag_s", "product_latency_ms", "archived", "lost", "seconds"),
}


@pytest.mark.timeout(400)
def test_a_small_ensemble_has_all_its_products(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--members", "2", "--days", "1", "--truncation", "42", "--workers", "2", "--out", str(out)]
    environment = {"JUNCTURA_CACHE": str(tmp_path / "cache"), **os.environ}
    done = subprocess.run(
        [sys.executable, str(demo.__file__), *options], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary.keys() == SUMMARY
    assert summary["fields"] == summary["archived"] == 2 * 6 * 9
    assert 0 < summary["decodes"] <= summary["fields"], "some are in no product"
    assert (summary["lost"], summary["failed"], summary["decodes_per_input_max"]) == (0, [], 1)
    products = list((out / "products").rglob("*.provenance.json"))
    assert len(products) == summary["products"] > 100
    assert 0 <= summary["first_product_at_fraction"] <= 1 and summary["last_product_lag_s"] >= 0
    assert 0 < summary["product_latency_ms"]["p50"] <= summary["product_latency_ms"]["p95"]
    assert f"{len(products)} in {summary['seconds']:.0f} s; 0 could not be made" in done.stdout
    assert f"{summary['last_product_lag_s']:.1f} s after the last field" in done.stdout
    with Image.open(out / "products.png") as picture:
        assert picture.width == 2400 and picture.height > 3000


PICTURES = """\
product: picture
from: {param: gh, levelist: 500, step: 0/to/120/by/3, number: 1/to/6}
to: {format: png, width: 200, name: "{number}_{step:03}.png"}
"""

# The small forecast, that waits before its fourth step until a picture of the first one is announced.
WAITING = """
import sys
sys.path.insert(0, {folder!r})
import junctura, outputs, swell

write = outputs.Outputs.write

def waiting(self):
    if round(self._model.hour) == 9:
        with junctura.Pool({url!r}) as told, told.follow("kind=product,product=picture,step=0") as news:
            news.next()
    write(self)

outputs.Outputs.write = waiting
swell.main()
"""


def test_the_first_picture_is_there_before_half_of_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of eight steps would wait for ever if its products came at the end."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/pictures.yaml").write_text(PICTURES)
    given = argparse.Namespace(members=1, days=0.875, truncation=21, workers=1, out=tmp_path / "out")
    given.out.mkdir()
    with junctura.Pool() as told:
        (tmp_path / "model.py").write_text(WAITING.format(folder=str(EXAMPLES / "11_swell"), url=told.url))
        monkeypatch.setattr(demo, "HERE", tmp_path)
        monkeypatch.setattr(demo, "MODEL", tmp_path / "model.py")
        monkeypatch.setattr(demo, "Broker", functools.partial(Broker, announce=told.url))
        summary = demo.run(given)
    assert (summary["fields"], summary["products"], summary["failed"], summary["lost"]) == (8 * 6, 8, [], 0)
    # Of three of eight steps at most.
    assert summary["first_product_at_fraction"] <= 0.375
    assert isinstance(summary["last_product_lag_s"], float) and summary["last_product_lag_s"] >= 0


class Terminal(io.StringIO):
    """What a terminal is to a program that writes on it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the view takes for the time."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(view, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


MADE = Made("picture", Path("maps/1_000.png"), 1, {}, 0.1)
FAILED = Failed("table", {"step": 6}, "it waits for a field whose key is a long one, and that did not come")


def test_progress_on_a_terminal_is_bars_that_are_drawn_over_and_end_full(
    monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    progress = view.Progress(10, 2)
    progress.fields(5, 0)
    progress.product(MADE)  # too soon to be drawn
    clock.now += 0.2
    progress.fields(10, 5)
    progress.product(FAILED)  # the last one is drawn at once
    progress.fields(10, 10)
    progress.close()
    drawings = terminal.getvalue().split("\x1b[3A")
    assert len(drawings) == 4, "each is drawn over the one before"
    lines = [drawing.removesuffix("\n").split("\n") for drawing in drawings]
    assert all(line.startswith("\x1b[K") and len(line) < 80 + 3 for drawing in lines for line in drawing)
    shown = [[line.removeprefix("\x1b[K").rstrip() for line in drawing] for drawing in lines]
    half, full = "█" * 20 + " " * 20, "█" * 40
    assert shown[0] == [f"  offered   {half} 5/10", f"  archived  {' ' * 40} 0/10", f"  products  {' ' * 40} 0/2"]
    assert shown[1] == [f"  offered   {full} 10/10", f"  archived  {half} 5/10", f"  products  {half} 1/2  1_000.png"]
    assert shown[3][:2] == [f"  offered   {full} 10/10", f"  archived  {full} 10/10"]
    assert shown[3][2].startswith(f"  products  {full} 2/2  table: it waits for")


def test_progress_without_a_terminal_is_a_line_now_and_then(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = view.Progress(10, 2)
    for number in range(1, 11):
        progress.fields(number, number // 2)
        clock.now += 1
    progress.product(MADE)
    progress.close()
    assert capsys.readouterr().err.splitlines() == [
        "  offered 1/10, archived 0/10, products 0/2",
        "  offered 6/10, archived 3/10, products 0/2",
        "  offered 10/10, archived 5/10, products 1/2",
    ]
