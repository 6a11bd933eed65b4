"""Servers and members that are killed: what was made stays, what is missing is named, the next run makes the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from broker_runs import BASE, SERVER, broker, grid_message, heard, program

import junctura
from junctura.products import Failed, Made
from junctura.products._input.decoding import decode

pytestmark = pytest.mark.timeout(120)
SWELL = Path(__file__).resolve().parents[2] / "examples/11_swell"

PLAIN = """\
product: plain
from: {param: t, levelist: 850, step: 0/6/12, date: 20261120, time: 0000}
to: {format: grib2, bits: 24, name: "plain_{step}.grib2"}
"""

# Both of each step, but that of hour 18 a member has only one.
OF_A_MEMBER = """\
product: height
from: {param: gh, levelist: 500, number: 1, step: 0/to/24/by/6, date: 20261120, time: 0000}
to: {format: grib2, name: "height_{step}.grib2"}
---
product: wind
from: {param: [vo, d], levelist: 500, number: 1, step: 0/to/24/by/6, date: 20261120, time: 0000}
do: [wind: {grid: 10/10}]
to: {format: grib2, name: "wind_{step}.grib2"}
"""
BEFORE_ITS_DEATH = {f"wind_{step}" for step in (0, 6, 12, 18)} | {f"height_{step}" for step in (0, 6, 12)}

# A member of the small forecast that goes no further in the middle of hour 18.
STUCK = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import outputs, swell

offer = outputs.Outputs._offer

def stuck(self, message):
    offer(self, message)
    if (str(message.attributes["step"]), message.attributes["param"]) == ("18", "d"):
        sys.stdin.read()

outputs.Outputs._offer = stuck
swell.main()
"""


def test_after_the_server_was_killed_the_rest_is_made_of_what_was_archived(tmp_path: Path) -> None:
    """A field is in the store, and nobody has begun with it, when the server is killed."""
    store, out = tmp_path / "store", tmp_path / "out"
    with program(SERVER) as server, archived(heard(server), store) as model:

        def observe(event: Made | Failed) -> None:
            if isinstance(event, Made):
                offer_durably(model, 6)
                server.kill()
                server.wait()

        running = broker(tmp_path, model.url, PLAIN, observer=observe)
        offer_durably(model, 0)
        first = running.run()
    assert [one.path.name for one in first.made] == ["plain_0.grib2"]
    causes = {one.attributes["step"]: one.cause for one in first.failed}
    # The broker may have heard of the other field before the server died, or not.
    assert causes.keys() == {6, 12} and _waits_for(causes[12]) == [("t", "12")]
    before = marks(out)
    assert sorted(before) == ["plain_0.grib2", "plain_0.grib2.provenance.json"]
    with program(SERVER) as server, junctura.Pool(heard(server)) as model:
        model.offer(message(12), {**BASE, "param": "t", "step": 12})
        report = broker(tmp_path, model.url, PLAIN, store=str(store)).run()
    assert (report.kept, report.failed) == (1, [])
    assert sorted(one.path.name for one in report.made) == ["plain_12.grib2", "plain_6.grib2"]
    # That of the product that was there is not read again.
    assert (report.inputs, report.decodes, report.decodes_per_input_max) == (2, 2, 1)
    assert before.items() <= marks(out).items()
    for step in (0, 6, 12):
        np.testing.assert_allclose(decode((out / f"plain_{step}.grib2").read_bytes()).values, 280 + step, atol=1e-4)


@contextmanager
def archived(url: str, store: Path) -> Iterator[junctura.Pool]:
    """A producer, and an archiver that keeps what it offers, until it goes with the pool."""
    junctura.Store.create(store, schema="mars")
    command = [
        sys.executable,
        "-m",
        "junctura",
        "store",
        "archiver",
        "--pool",
        url,
        "*",
        "--store",
        str(store),
        "--quiet",
    ]
    with junctura.Pool(url, name="model") as model:
        # Durable offers need somebody who will keep them, whether it has come already or not.
        model.require("", name="archive")
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as archiver:
            try:
                yield model
            finally:
                archiver.kill()


def offer_durably(pool: junctura.Pool, step: int) -> None:
    """It is in the store when this returns."""
    pool.offer(message(step), {**BASE, "param": "t", "step": step}, durability="durable")


def message(step: int) -> bytes:
    return grid_message(280.0 + step, shortName="t", level=850, step=step)


def marks(out: Path) -> dict[str, tuple[int, int]]:
    """Whether a file is the same and was not touched."""
    found = {path.name: path.stat() for path in out.iterdir() if not path.name.startswith(".")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


def test_what_a_killed_member_had_not_offered_is_named_and_made_when_it_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    common = ["--member", "1", "--truncation", "21", "--days", "1", "--every", "6h"]
    common += ["--checkpoint", str(tmp_path / "checkpoints"), "--checkpoint-every", "12h"]
    with junctura.Pool(schema="mars") as pool:
        common += ["--pool", pool.url]
        running = broker(tmp_path, pool, OF_A_MEMBER, until_gone=["swell-1"])
        with program(STUCK, str(SWELL), *common) as member:

            def observe(_: Made | Failed) -> None:
                if len(running.report.made) == len(BEFORE_ITS_DEATH):
                    member.kill()

            running.observer = observe
            first = running.run()
        assert {one.path.stem for one in first.made} == BEFORE_ITS_DEATH
        assert _missing(first.failed) == {
            ("height", 18): [("gh", "18")],
            ("height", 24): [("gh", "24")],
            ("wind", 24): [("d", "24"), ("vo", "24")],
        }
        before = marks(out)
        assert len(before) == 2 * len(BEFORE_ITS_DEATH)
        again = broker(tmp_path, pool, OF_A_MEMBER, until_gone=["swell-1"])
        with subprocess.Popen([sys.executable, str(SWELL / "swell.py"), *common, "--restart"]) as restarted:
            report = again.run()
    assert restarted.returncode == 0
    assert (report.kept, report.failed) == (len(BEFORE_ITS_DEATH), [])
    assert {one.path.stem for one in report.made} == {"height_18", "height_24", "wind_24"}
    assert report.inputs == report.decodes == 4
    assert before.items() <= marks(out).items()
    for made in report.made:
        said = json.loads(made.path.with_name(f"{made.path.name}.provenance.json").read_text())
        assert len(said["inputs"]) == (2 if made.product == "wind" else 1)


def _missing(failed: list[Failed]) -> dict[tuple[str, int], list[tuple[str, str]]]:
    """Of each product the parameters and steps that it waits for."""
    return {(one.product, one.attributes["step"]): _waits_for(one.cause) for one in failed}


def _waits_for(cause: str) -> list[tuple[str, str]]:
    assert cause.startswith("it waits for ")
    keys = [dict(word.split("=") for word in key.split(",")) for key in cause.removeprefix("it waits for ").split(", ")]
    return sorted((key["param"], key["step"]) for key in keys)
