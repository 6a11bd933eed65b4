"""Products are announced in a pool when they are there, and nothing that becomes of this pool hurts them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_runs import BASE, broker, grid_message

import junctura
from junctura.products.__main__ import main

pytestmark = pytest.mark.timeout(120)

STEPS = """\
product: plain
from: {param: t, levelist: 850, step: 0/24, date: 20261120, time: 0000}
to: {format: grib2, name: "maps/plain_{step}.grib2"}
"""


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    with junctura.Pool() as pool:
        yield pool


def offer_steps(pool: junctura.Pool, *steps: int) -> None:
    for step in steps:
        message = grid_message(280.0 + step, shortName="t", level=850)
        pool.offer(message, {**BASE, "param": "t", "step": step}, schema="mars")


def test_who_follows_a_product_is_told_when_it_is_there_and_where(tmp_path: Path, pool: junctura.Pool) -> None:
    with junctura.Pool() as told, told.follow("kind=product,product=plain,step=24") as news:
        offer_steps(pool, 0, 24)
        report = broker(tmp_path, pool, STEPS, name="night", announce=told.url).run()
        assert report.failed == [] and report.unannounced == 0
        with news.next(timeout=50) as obj:
            path, said = Path(bytes(obj).decode().removesuffix("\n")), dict(obj.attributes)
        with pytest.raises(junctura.Timeout):
            news.next(timeout=0)
        assert len(told.list("kind=product")) == 2
    assert path == (tmp_path / "out/maps/plain_24.grib2").resolve()
    expected = {"product": "plain", "run": "night", "format": "grib2", "file": "maps/plain_24.grib2", "param": "t"}
    expected |= {"path": str(path), "uri": path.as_uri(), "size": str(path.stat().st_size), "levelist": "850"}
    # These are the field's, or the recipe's.
    expected |= {"date": "20261120", "class": "od", "stream": "enfo", "type": "pf"}
    assert {name: said[name] for name in expected} == expected


def test_what_was_there_already_is_announced_by_the_next_run_too(tmp_path: Path, pool: junctura.Pool) -> None:
    offer_steps(pool, 0, 24)
    assert broker(tmp_path, pool, STEPS, announce=pool.url).run().kept == 0
    assert broker(tmp_path, pool, STEPS, announce=pool.url).run().kept == 2
    files = sorted(entry.attributes["file"] for entry in pool.list("kind=product"))
    assert files == ["maps/plain_0.grib2"] * 2 + ["maps/plain_24.grib2"] * 2


def test_nothing_is_announced_unless_it_is_said(tmp_path: Path, pool: junctura.Pool) -> None:
    offer_steps(pool, 0, 24)
    assert broker(tmp_path, pool, STEPS).run().failed == []
    assert pool.list("kind=product") == []


def test_products_are_made_though_the_pool_of_the_news_has_ended(tmp_path: Path, pool: junctura.Pool) -> None:
    told = junctura.Pool()
    running = broker(tmp_path, pool, STEPS, announce=told.url)
    told.stop(timeout=0)
    offer_steps(pool, 0, 24)
    report = running.run()
    assert report.failed == [] and len(report.made) == 2
    assert report.unannounced == 2 and report.unannounced_cause


def test_a_pool_that_is_not_there_or_has_no_such_schema_is_named_before_anything_is_done(
    tmp_path: Path, pool: junctura.Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wanted.yaml").write_text(STEPS)
    given = [str(tmp_path / "wanted.yaml"), "--pool", pool.url, "--out", str(tmp_path / "out"), "--announce"]
    assert main([*given, f"unix:{tmp_path}/nowhere"]) == 5
    assert "nowhere" in capsys.readouterr().err
    with junctura.Pool(schema="mars") as fields:
        assert main([*given, fields.url]) == 3
    assert "free" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command_announces(tmp_path: Path, pool: junctura.Pool, capsys: pytest.CaptureFixture[str]) -> None:
    offer_steps(pool, 0, 24)
    (tmp_path / "wanted.yaml").write_text(STEPS)
    given = [str(tmp_path / "wanted.yaml"), "--pool", pool.url, "--out", str(tmp_path / "out"), "--announce", pool.url]
    assert main([*given, "--workers", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unannounced"] == 0
    assert len(pool.list('kind=product,run="junctura run"')) == 2
