"""Plans: fields go through actions into sinks."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from broker_runs import BASE, GRID, grid_message
from plan_runs import RNG, SHAPE, by_command, fields, give, leaves_when_read, offer_array, offers, through

import junctura
from junctura.products import Field, Ran, load_all, run
from junctura.products.__main__ import plan_document
from junctura.products._input.decoding import decode, decodes
from junctura.products._input.patience import Patience
from junctura.products._operations import Statistics
from junctura.products._plan import _schema as schema
from junctura.products._plan import plan_of
from junctura.products._plan._flow import Flow
from junctura.products._plan._gathering import OverSteps
from junctura.products._plan._item import Item
from junctura.products._plan._reading import Source
from junctura.products._plan._run import Inlet, Waiting
from junctura.products._plan._sinks import Products
from junctura.products._regrid.grids import regular_gg


def test_fields_go_through_actions_into_every_sink(tmp_path: Path) -> None:
    values = fields(0, 3, 6, 9, 12)
    text = """
sources: [{follow: stream=enfo}]
actions:
  - select: {param: t, step: 0/to/12/by/3}
sinks:
  - archive: {store: kept, every: 6}
  - plan:
      actions:
        - statistics: {over: 6h, of: [mean, max]}
        - units: degC
      sinks:
        - file: {format: csv, name: "{step}_{param}.csv"}
  - plan:
      actions: [{area: {north: 60, west: 0, south: 0, east: 90}}, {encode: {bits: 12}}]
      sinks: [{file: {format: grib2, name: "{step:03}.grib2"}}]
"""
    before = decodes()

    def work(pool: junctura.Pool) -> None:
        offers(values)(pool)
        give(pool, grid_message(0, step=6), step=6, param="q")

    (ran,) = through(tmp_path, text, work)
    # Of one name are the mean and the maximum of a window.
    assert [told.count("needs more words") for told in ran.told] == [1, 1]
    assert decodes() - before == 5
    counted = {one.name: (one.taken, one.given) for one in ran.actions}
    assert counted["select"] == (6, 5) and counted["statistics"] == (5, 4) and counted["archive"] == (5, 0)
    with junctura.Store(tmp_path / "kept") as store:
        assert sorted(entry["step"] for entry in store.list()) == ["0", "12", "6"]
    made = decode((tmp_path / "out/006.grib2").read_bytes())
    assert "@" in made.grid.name and made.values.shape == (11, 17)
    table = np.genfromtxt(tmp_path / "out/0-6_t.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    mean = np.mean([decode(grid_message(values[step])).values for step in (3, 6)], axis=0)
    np.testing.assert_allclose(table["value"], mean.ravel() - 273.15, rtol=0, atol=1e-9)


def test_an_archive_keeps_what_its_rule_says_and_actions_say_how_long_they_took(tmp_path: Path) -> None:
    values = fields(0, 3, 6)
    text = """
sources: [{follow: stream=enfo}]
actions: [{set: {expver: "0002"}}, {select: {levelist: 850}}]
sinks:
  - archive: {store: all}
  - archive: {store: chosen, select: {param: [t, q], number: 1}}
  - archive: {store: both, select: {param: t}, every: 6}
"""

    def work(pool: junctura.Pool) -> None:
        offers(values)(pool)
        offers(values, number=2)(pool)
        offers(values, param="q")(pool)
        offers(values, param="u")(pool)

    begun = time.monotonic()
    (ran,) = through(tmp_path, text, work)
    took = time.monotonic() - begun
    assert ran.told == []

    def kept(name: str) -> set[str]:
        with junctura.Store(tmp_path / name) as store:
            assert {entry["expver"] for entry in store.list()} == {"0002"}
            return {f"{entry['param']}{entry['number']}{entry['step']}" for entry in store.list()}

    whole = {param + step for param in ("t1", "t2", "q1", "u1") for step in "036"}
    assert kept("all") == whole
    assert kept("chosen") == {one for one in whole if one[0] in "tq" and one[1] == "1"}
    assert kept("both") == {one for one in whole if one[0] == "t" and one[2] in "06"}
    assert [(one.name, one.taken, one.given) for one in ran.actions] == [
        *(("set", 12, 12), ("select", 12, 12)),
        *[("archive", 12, 0)] * 3,
    ]
    seconds = [one.seconds for one in ran.actions]
    assert min(seconds) > 0 and sum(seconds) < took
    assert [one["seconds"] for one in plan_document(ran)["actions"]] == seconds


def test_pieces_of_ranks_become_messages(tmp_path: Path) -> None:
    values = 280 + RNG.normal(size=SHAPE)
    values[3, 5:9] = -999
    text = """
sources: [{follow: param=skt}]
actions:
  - aggregate: {grid: F16, units: K, missing: -999}
  - encode: {bits: 24}
sinks: [{file: {format: grib2, name: "skt_{step}.grib2"}}]
"""
    layout = junctura.Layout(shape=SHAPE, grid=(3, 1))

    def work(pool: junctura.Pool) -> None:
        for rank in range(3):
            rows = slice(11 * rank, min(11 * rank + 11, 2 * GRID))
            about = {**BASE, "levtype": "sfc", "param": "skt", "step": 6}
            del about["levelist"]
            pool.offer_piece(np.ascontiguousarray(values[rows]), layout, rank, about, retention=junctura.Released(1))

    (ran,) = through(tmp_path, text, work)
    assert ran.told == [] and ran.fields == 1
    made = decode((tmp_path / "out/skt_6.grib2").read_bytes())
    assert made.grid.name == "F16" and made.attributes["param"] == "skt"
    expected = np.where(values == -999, np.nan, values)
    np.testing.assert_allclose(made.values, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("encode", "key"), [("", "recipe"), (", {encode: {bits: 4}}", "recipe"), ("", "requirement")], ids=str
)
def test_values_reach_products_in_full_precision(tmp_path: Path, encode: str, key: str) -> None:
    values = 280 + RNG.normal(size=SHAPE)
    (tmp_path / "wanted.yaml").write_text(
        'product: exact\nfrom: {param: t, step: 6}\nto: {format: csv, name: "raw.csv"}\n---\n'
        'product: packed\nfrom: {param: q, step: 6}\nto: {format: csv, name: "packed.csv"}\n'
    )
    text = f"""
sources: [{{follow: stream=enfo}}]
actions: [{{aggregate: {{grid: F16, units: K}}}}{encode}]
sinks: [{{product: {{{key}: wanted.yaml, out: made}}}}]
"""

    def work(pool: junctura.Pool) -> None:
        about = {**BASE, "step": 6}
        whole, once = f"shape={SHAPE[0]}x{SHAPE[1]}", junctura.Released(1)
        pool.offer_piece(values, whole, 0, {**about, "param": "t"}, retention=once)
        give(pool, grid_message(values, shortName="q", step=6), step=6, param="q")

    (ran,) = through(tmp_path, text, work)
    assert ran.told == []

    def column(name: str) -> np.ndarray[Any, Any]:
        table = np.genfromtxt(tmp_path / "out/made" / name, delimiter=",", names=True, dtype=None, encoding="utf-8")
        return np.asarray(table["value"])

    np.testing.assert_array_equal(column("raw.csv"), values.ravel())
    lost = np.abs(column("packed.csv") - values.ravel()).max()
    assert 0 < lost <= (values.max() - values.min()) / 2**15


def test_only_what_products_need_is_handed_on_to_them(tmp_path: Path) -> None:
    (tmp_path / "wanted.yaml").write_text("product: p\nfrom: {param: t, step: 6}\nto: {format: csv, name: p.csv}\n")
    sink = Products(load_all([tmp_path / "wanted.yaml"]), tmp_path, 1)

    def give_on(step: int) -> int:
        field = Field(np.ones(SHAPE), regular_gg(GRID), {**BASE, "param": "t", "step": step}, "K")
        sink.take(Item(field.attributes, field=field))
        return int(sink.pool.stat()["totals"]["offered"])

    assert [give_on(step) for step in (3, 6, 9)] == [0, 1, 1]
    # All that was asked for is made.
    sink._thread.join()
    assert give_on(6) == 1
    assert sink.end() == [] and (tmp_path / "p.csv").exists()


def test_functions_of_the_user_and_other_attributes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "of_mine_in_a_plan.py").write_text(
        "def doubled(field):\n    return field.having(field.values * 2)\n\n\ndef none(field):\n    return None\n"
    )
    text = """
sources: [{follow: stream=enfo}]
actions:
  - python: of_mine_in_a_plan:doubled
  - set: {expver: "0002"}
  - print: "{param} of {expver}"
sinks:
  - plan: {actions: [{python: "of_mine_in_a_plan:none"}], sinks: [{file: {format: csv, name: none.csv}}]}
  - file: {format: csv, name: "twice.csv", digits: 9}
"""
    through(tmp_path, text, offers({6: np.full(SHAPE, 21.0)}))
    assert "t of 0002" in capfd.readouterr().out
    assert ",42.0" in (tmp_path / "out/twice.csv").read_text() or ",42," in (tmp_path / "out/twice.csv").read_text()
    assert not (tmp_path / "out/none.csv").exists()


def test_arrays_get_other_attributes_before_they_are_read(tmp_path: Path) -> None:
    values = 280 + RNG.normal(size=SHAPE)
    text = """
sources: [{follow: stream=enfo}]
actions:
  - set: {expver: "0002", grid: F16}
  - aggregate: {grid: F16, units: K}
  - encode: {bits: 24}
  - set: {type: product}
sinks: [{file: {format: grib2, bits: 24, name: "{param}_{expver}_{type}.grib2"}}]
"""

    def work(pool: junctura.Pool) -> None:
        offer_array(pool, values, param="t", step=6)
        # Whole, and where its values lie only the plan says.
        pool.offer(values, {**BASE, "param": "q", "step": 6, "units": "kg kg**-1"}, retention=junctura.Released(1))

    (ran,) = through(tmp_path, text, work)
    assert ran.told == []
    for param in ("t", "q"):
        made = decode((tmp_path / f"out/{param}_0002_product.grib2").read_bytes())
        assert (made.attributes["param"], made.attributes["expver"]) == (param, "0002")
        np.testing.assert_allclose(made.values, values, rtol=0, atol=1e-4)


def test_a_message_with_other_attributes_is_decoded_once_for_all(tmp_path: Path) -> None:
    text = """
sources: [{follow: stream=enfo}]
sinks:
  - file: {format: csv, name: "{expver}.csv"}
  - plan: {actions: [{set: {expver: "0002"}}], sinks: [{file: {format: csv, name: "{expver}.csv"}}]}
  - plan:
      actions: [{set: {expver: "0003"}}, {set: {param: q}}]
      sinks: [{file: {format: csv, name: "{expver}_{param}.csv"}}]
"""
    before = decodes()
    (ran,) = through(tmp_path, text, offers({6: np.full(SHAPE, 1.0)}))
    assert ran.told == [] and decodes() - before == 1
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == ["0001.csv", "0002.csv", "0003_q.csv"]


def test_attributes_that_tell_no_field_from_another_may_be_anything(tmp_path: Path) -> None:
    text = """
sources: [{follow: stream=enfo}]
actions: [{statistics: {over: 6h, of: [mean]}}]
sinks: [{file: {format: csv, name: "{step}.csv"}}]
"""

    def work(pool: junctura.Pool) -> None:
        for step, tags in {3: ["early"], 6: ["late", "last"]}.items():
            about = {"param": "t", "area": [60.0, 0.0, 0.0, 90.0], "tags": tags}
            give(pool, grid_message(np.full(SHAPE, float(step)), step=step), step=step, **about)

    (ran,) = through(tmp_path, text, work)
    assert ran.told == []
    table = np.genfromtxt(tmp_path / "out/0-6.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    np.testing.assert_allclose(table["value"], 4.5, rtol=0, atol=1e-3)


@pytest.mark.parametrize(("of", "kept"), [("mean", []), (["mean", "accumulation"], [6])])
def test_of_a_window_that_has_ended_only_what_the_next_one_needs_is_kept(of: Any, kept: list[int]) -> None:
    action = OverSteps(Statistics.read({"over": 6, "of": of}, 0))
    there: dict[int, weakref.ref[Field]] = {}
    for step in (0, 3, 6):
        field = Field(np.full(SHAPE, float(step)), regular_gg(GRID), {**BASE, "param": "tp", "step": step}, "m")
        there[step] = weakref.ref(field)
        made = action.take(Item(field.attributes, field=field))
        assert [one.field.values[0, 0] for one in made] == ([4.5, 6][: 1 + len(kept)] if step == 6 else [])
    del field, made
    gc.collect()
    assert [step for step, ref in there.items() if ref() is not None] == kept
    assert action.end() == []


def test_a_source_that_has_much_leaves_others_their_turn() -> None:
    message, counts = grid_message(np.full(SHAPE, 1.0)), [0]
    with junctura.Pool(schema="mars") as pool, ExitStack() as stack:
        for step in range(200):
            give(pool, message, param="t", step=step)
        inlet = Inlet(Source("stream=enfo", None, None, ()), junctura.Pool(pool.url), [], stack)
        waiting = Waiting([inlet], Patience(), None)
        while sum(counts) < 200:
            if not counts[-1]:
                waiting.wait()
            counts.append(inlet.drain(Flow()))
    assert sum(counts) == 200 and max(counts) <= 64


def test_formulas_gather_what_differs_in_its_parameter(tmp_path: Path) -> None:
    text = """
sources: [{follow: stream=enfo}]
actions:
  - compute:
      ws: {formula: "hypot(u, v)", units: m s**-1}
      gale: {formula: "ws > 17.2", units: "1"}
  - compute: {t: {formula: "t + 1", units: K}}
sinks:
  - plan:
      actions: [{select: {param: [ws, gale]}}]
      sinks: [{file: {format: csv, name: "{step}_{number}_{param}.csv"}}]
  - plan: {actions: [{select: {param: t}}], sinks: [{file: {format: csv, name: "{param}.csv"}}]}
"""
    before = decodes()

    def work(pool: junctura.Pool) -> None:
        # The members' winds come mixed, of one the first component only; q is in no formula.
        for param, number, value in [("u", 1, 12), ("u", 2, 3), ("t", 3, 280), ("v", 2, 4), ("v", 1, 16), ("u", 3, 5)]:
            give(pool, grid_message(np.full(SHAPE, float(value)), step=6), step=6, param=param, number=number)
        give(pool, grid_message(np.full(SHAPE, 1.0), step=6), step=6, param="q")

    (ran,) = through(tmp_path, text, work)
    # All that came, and two more of two members; then of t only what was made.
    counted = [(one.taken, one.given, one.failed) for one in ran.actions if one.name == "compute"]
    assert counted == [(7, 7 + 4, 1), (11, 11, 0)]
    (told,) = ran.told
    assert "number=3" in told and "v did not come beside u (1 such)" in told
    assert decodes() - before == 6

    def value(name: str) -> float:
        table = np.genfromtxt(tmp_path / "out" / name, delimiter=",", names=True, dtype=None, encoding="utf-8")
        assert np.ptp(table["value"]) == 0
        return float(table["value"][0])

    names = sorted(path.name for path in (tmp_path / "out").glob("*.csv"))
    assert names == ["6_1_gale.csv", "6_1_ws.csv", "6_2_gale.csv", "6_2_ws.csv", "t.csv"]
    assert [value(name) for name in names] == [1, 20, 0, 5, 281]


def test_what_a_store_behind_the_pool_has_comes_too(tmp_path: Path) -> None:
    about = {**BASE, "param": "t"}
    with junctura.Store.create(tmp_path / "behind", schema="mars") as store:
        for step in (3, 6):
            store.archive(grid_message(np.full(SHAPE, float(step)), step=step), {**about, "step": step})
        store.flush()
    text = """
sources: [{follow: stream=enfo}]
sinks: [{file: {format: csv, name: "{step}.csv", digits: 3}}]
"""
    behind = ["--behind", str(tmp_path / "behind"), "--as", "reader"]
    done = by_command(tmp_path, text, offers({9: np.full(SHAPE, 9.0)}), *behind, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["fields"] == 3
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == ["3.csv", "6.csv", "9.csv"]


def test_a_group_keeps_fields_for_a_plan_that_begins_late(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(
        "sources: [{follow: stream=enfo, group: sharers}]\n"
        'sinks: [{file: {format: csv, name: "{step}.csv", digits: 3}}]\n'
    )
    ran: list[Ran] = []
    with junctura.Pool(schema="mars") as pool, pool.subscribe(kinds=["expired"]) as gone:
        pool.require("stream=enfo", name="sharers", group=True)
        offers({step: np.full(SHAPE, 1.0) for step in range(12)})(pool)

        def go() -> None:
            plan = plan_of([file])
            assert plan is not None
            ran.append(run(plan, pool.url, tmp_path / "out", told=lambda _: None))

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        while pool.list():
            gone.next(timeout=60)
        # Its members are told that there is nothing more to come.
        pool.retract("sharers")
        thread.join()
    assert [one.fields for one in ran] == [12]
    assert len(list((tmp_path / "out").glob("*.csv"))) == 12


def test_what_a_plan_has_let_go_is_in_its_store_also_if_it_is_killed(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "sources: [{follow: stream=enfo, group: keepers}]\n"
        "sinks: [{archive: {store: kept}}, {plan: {sinks: [{archive: {store: too}}]}}]\n"
    )
    with junctura.Pool(schema="mars") as pool, pool.subscribe(kinds=["expired"]) as gone:
        pool.require("stream=enfo", name="keepers", group=True)
        # More than it is handed at once.
        steps = range(100)
        message = grid_message(np.full(SHAPE, 1.0))
        for step in steps:
            give(pool, message, param="t", step=step)
        command = [sys.executable, "-m", "junctura.products", str(tmp_path / "plan.yaml"), "--pool", pool.url]
        with subprocess.Popen([*command, "--out", str(tmp_path / "out")]) as program:
            while pool.list():
                gone.next(timeout=60)
            program.kill()
    for name in ("kept", "too"):
        with junctura.Store(tmp_path / name) as store:
            assert sorted(int(entry["step"]) for entry in store.list()) == list(steps)


def test_offers_go_on_to_other_pools(tmp_path: Path) -> None:
    values = np.full(SHAPE, 7.0)
    with junctura.Pool(schema="mars") as other:
        text = f"""
sources: [{{follow: stream=enfo}}]
sinks:
  - offer: {{pool: "{other.url}", set: {{expver: "0003"}}}}
  - plan: {{actions: [{{grid: 10/10}}], sinks: [{{offer: {{pool: "{other.url}", set: {{expver: "0004"}}}}}}]}}
"""
        (ran,) = through(tmp_path, text, offers({6: values}))
        assert ran.told == []
        with other.demand({**BASE, "expver": "0003", "param": "t", "step": 6}, timeout=0) as message:
            assert bytes(message) == grid_message(values, step=6)
        with other.demand({**BASE, "expver": "0004", "param": "t", "step": 6}, timeout=0) as array:
            assert (array["grid"], array.array().shape) == ("10/10", (19, 36))


def test_pieces_are_gathered_from_the_pool_that_they_came_from(tmp_path: Path) -> None:
    with junctura.Pool(schema="mars") as other, other.subscribe(kinds=["expired"]) as gone:
        text = f"""
sources: [{{follow: stream=enfo}}, {{follow: stream=enfo, pool: "{other.url}"}}]
actions: [{{aggregate: {{grid: F16, units: K}}}}]
sinks: [{{file: {{format: csv, name: "{{expver}}.csv"}}}}]
"""
        there = junctura.Pool(other.url, name="model")

        def work(pool: junctura.Pool) -> None:
            offer_array(pool, np.full(SHAPE, 1.0), param="t", step=6)
            offer_array(there, np.full(SHAPE, 2.0), param="t", step=6, expver="0002")
            leaves_when_read(there, other, gone)

        (ran,) = through(tmp_path, text, work)
    assert ran.told == []
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == ["0001.csv", "0002.csv"]


def test_the_published_schema_is_that_of_the_program() -> None:
    published = Path(schema.__file__).with_name("plan.schema.json")
    assert published.read_text() == schema.text()
    validator = jsonschema.Draft202012Validator(json.loads(published.read_text()))
    validator.check_schema(validator.schema)
    good = {"sources": [{"follow": "a=b"}], "sinks": [{"plan": {"sinks": [{"archive": {"store": "s"}}]}}]}
    assert validator.is_valid(good) and not validator.is_valid({**good, "sinks": [{"plan": {}}]})
