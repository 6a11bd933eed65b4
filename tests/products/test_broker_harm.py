"""Workers that are killed while they write, disks that are full, fields without values: what others need is made."""

from __future__ import annotations

import csv
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker_runs import broker, grid_message, in_background, offer
from PIL import Image
from witness import Witness

import junctura
from junctura.products._input.decoding import decode
from junctura.products._map.styling.themes import THEMES
from junctura.products._regrid.grids import regular_ll
from junctura.products._regrid.interpolate import to_grid
from junctura.products._workers.make_product import is_there

pytestmark = pytest.mark.timeout(120)

# A large file and a small one of each step.
FILES = """\
product: whole
from: {param: t, levelist: 850, step: 0/6, date: 20261120, time: 0000}
to: {format: grib2, bits: 24, name: "whole_{step}.grib2"}
---
product: area
from: {param: t, levelist: 850, step: 0/6, date: 20261120, time: 0000}
do: [crop: {north: 60, west: 0, south: 30, east: 40}]
to: {format: grib2, bits: 24, name: "area_{step}.grib2"}
"""
NAMES = {f"{name}_{step}.grib2" for name in ("whole", "area") for step in (0, 6)}


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    with junctura.Pool(schema="mars") as pool:
        yield pool


def values(step: int) -> np.ndarray:
    return 280 + np.random.default_rng(step).normal(size=(32, 64))


def offer_all(pool: junctura.Pool) -> None:
    for step in (0, 6):
        offer(pool, grid_message(values(step), shortName="t", level=850), param="t", step=step)


def listed(out: Path) -> set[str]:
    """All files, those that are hidden among them, but for provenance."""
    return {path.name for path in out.iterdir() if not path.name.endswith(".provenance.json")}


@pytest.mark.parametrize("name", ["whole_6.grib2", "whole_6.grib2.provenance.json"])
def test_a_product_whose_writer_is_killed_is_made_whole_by_another(
    tmp_path: Path, pool: junctura.Pool, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """All is written, and does not have its name yet when the process is killed."""
    witness, out = Witness(tmp_path, monkeypatch), tmp_path / "out"
    witness.holds(f"rename {name}")
    offer_all(pool)
    running = broker(tmp_path, pool, FILES)
    with in_background(running, threading.Event()) as reports:
        writer = witness.held()
        assert not (out / name).exists() and list(out.glob(f".{name}.*.part"))
        os.kill(writer, signal.SIGKILL)
    (report,) = reports
    assert (report.failed, report.deaths) == ([], 1)
    assert {one.path.name for one in report.made} == listed(out) == NAMES, "nothing hidden is left"
    assert all(is_there(product.wanted, out) for product in running.graph.products)
    for step in (0, 6):
        np.testing.assert_allclose(decode((out / f"whole_{step}.grib2").read_bytes()).values, values(step), atol=1e-5)
    # The input of a product that alone needs it is what the writer held.
    assert sorted(witness.decoded().values()) == [1, 2]


def test_what_has_no_room_on_the_disk_is_named_and_the_next_run_makes_it(
    tmp_path: Path, pool: junctura.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel lets files grow to 5000 bytes, and refuses the rest of a large one when a part of it is written."""
    out = tmp_path / "out"
    offer_all(pool)
    with monkeypatch.context() as full:
        Witness(tmp_path, full, file_bytes=5000)
        first = broker(tmp_path, pool, FILES).run()
    assert {one.attributes["step"]: one.cause for one in first.failed} == {
        step: f"Io: {out}/whole_{step}.grib2: cannot be written: File too large" for step in (0, 6)
    }
    assert {one.product for one in first.failed} == {"whole"} and first.deaths == 0
    small = {name for name in NAMES if name.startswith("area")}
    assert listed(out) == small, "nothing hidden is left"
    before = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.iterdir()}
    second = broker(tmp_path, pool, FILES).run()
    assert (second.kept, second.failed) == (2, [])
    assert {one.path.name for one in second.made} == NAMES - small
    assert (
        before.items() <= {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.iterdir()}.items()
    )
    for step in (0, 6):
        np.testing.assert_allclose(decode((out / f"whole_{step}.grib2").read_bytes()).values, values(step), atol=1e-5)


# Of member 1 nothing is there, of member 2 not all.
GAPS = """\
product: gridded
from: {param: t, levelist: 850, step: 6, number: 1/2/3}
do: [grid: 10/10]
to: {format: grib2, bits: 24, name: "grid_{number}.grib2"}
---
product: ensemble
from: {param: t, levelist: 850, step: 6, number: 2/3}
do: [grid: 10/10, ensemble: [mean, max, {probability: {above: 280}}]]
to: {format: grib2, bits: 24, name: ensemble.grib2}
---
product: nothing
from: {param: t, levelist: 850, step: 6, number: 1/2/3}
do: [grid: 10/10, ensemble: [mean, {percentile: 50}]]
to: {format: grib2, bits: 24, name: nothing.grib2}
---
product: steps
from: {param: t, levelist: 850, step: 0/6/12, number: 2}
do: [statistics: {over: 12, of: [mean]}]
to: {format: grib2, bits: 24, name: steps.grib2}
---
product: map
from: {param: t, levelist: 850, step: 6, number: 1/2}
do: [grid: 10/10]
to: {format: png, width: 200, name: "map_{number}.png"}
---
product: places
from: {param: t, levelist: 850, step: 6, number: 1}
do: [grid: 10/10, crop: {north: 50, west: 10, south: 50, east: 20}]
to: {format: csv, name: places.csv}
"""


def gaps(number: int, step: int) -> bytes:
    whole = values(10 * number + step)
    if number == 1:
        whole[:] = np.nan
    elif number == 2:
        whole[10:20, 5:40] = np.nan
        whole[step] = np.nan
    return grid_message(whole, shortName="t", level=850)


def test_missing_values_and_fields_without_any_go_through_all_that_is_done(tmp_path: Path, pool: junctura.Pool) -> None:
    out, sent = tmp_path / "out", {(number, 6): gaps(number, 6) for number in (1, 2, 3)}
    sent |= {(2, step): gaps(2, step) for step in (0, 12)}
    for (number, step), message in sent.items():
        offer(pool, message, param="t", number=number, step=step)
    report = broker(tmp_path, pool, GAPS).run()
    assert report.failed == []
    gridded = {n: to_grid(decode(sent[n, 6]), regular_ll(10, 10), "linear").values for n in (1, 2, 3)}
    for number, expected in gridded.items():
        same(out / f"grid_{number}.grib2", expected)
    two, three = gridded[2], gridded[3]
    assert 0 < np.isnan(two).sum() < two.size and not np.isnan(three).any()
    probability = np.where(np.isnan(two), np.nan, 50.0 * ((two > 280) + 1.0 * (three > 280)))
    same(out / "ensemble.grib2", (two + three) / 2, np.maximum(two, three), probability)
    same(out / "nothing.grib2", np.full(two.shape, np.nan), np.full(two.shape, np.nan))
    same(out / "steps.grib2", (decode(sent[2, 6]).values + decode(sent[2, 12]).values) / 2)
    assert hatched(out / "map_1.png") > 3 * hatched(out / "map_2.png") > 0
    rows = list(csv.DictReader((out / "places.csv").read_text().splitlines()))
    assert [(row["longitude"], row["value"]) for row in rows] == [("10.0", ""), ("20.0", "")]


def hatched(path: Path) -> int:
    """How many points of a map have the colours of what is missing."""
    colours: Any = Image.open(path).convert("RGB").getcolors(1 << 20)
    return sum(count for count, colour in colours if colour in THEMES["dark"].missing)


def same(path: Path, *expected: np.ndarray) -> None:
    """That a file has these fields, up to the bits that it has for a value."""
    left = path.read_bytes()
    for one in expected:
        size = int.from_bytes(left[8:16], "big")
        found = decode(left[:size]).values
        np.testing.assert_array_equal(np.isnan(found), np.isnan(one))
        np.testing.assert_allclose(found, one, atol=1e-4)
        left = left[size:]
    assert left == b""


def test_recipes_that_nothing_answers_are_named_when_the_producers_have_gone(
    tmp_path: Path, pool: junctura.Pool
) -> None:
    with junctura.Pool(pool.url, name="swell-1") as producer:
        text = FILES.partition("---\n")[0].replace("param: t", "param: q")
        running = broker(tmp_path, pool, text, until_gone=["swell-*"])
        offer_all(producer)
    report = running.run()
    assert (report.made, report.inputs, report.input_bytes) == ([], 0, 0)
    waits = "it waits for date=20261120,levelist=850,param=q,step={step},time=0000"
    assert [one.cause for one in report.failed] == [waits.format(step=step) for step in (0, 6)]
    assert pool.stat()["totals"]["delivered_bytes"] == 0
    assert listed(tmp_path / "out") == set()
