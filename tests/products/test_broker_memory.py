"""The broker's own pool: what has no room in memory goes to a disk, however many inputs a product has."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker_runs import broker, grid_message, offer

import junctura
from junctura.products import Failed, Made
from junctura.products._decode import decode

pytestmark = pytest.mark.timeout(120)

MEMBERS = 80
MEAN = f"""\
product: mean
from: {{param: t, levelist: 850, step: 0, number: 1/to/{MEMBERS}}}
do: [ensemble: [mean]]
to: {{format: grib2, bits: 24, name: mean.grib2}}
"""


def test_arrays_for_which_memory_has_no_room_lie_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 fields of 16 KiB each in a pool of 1 MiB; the names of so many inputs are more than goes inside a message."""
    (tmp_path / "disk").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "disk"))
    monkeypatch.setattr("tempfile.tempdir", None)
    with junctura.Pool(schema="mars") as pool:
        for number in range(1, MEMBERS + 1):
            offer(pool, grid_message(270.0 + number, shortName="t"), param="t", step=0, number=number)
        seen: list[junctura.Event | None] = []

        def observe(_event: Made | Failed) -> None:
            seen.append(spilled.next(timeout=50))

        running = broker(tmp_path, pool, MEAN, memory=1 << 20, observer=observe)
        spilled = running.pool.subscribe("kind=array", kinds=["spilled"])
        report = running.run()
        assert [event is not None for event in seen] == [True]
    assert report.failed == []
    made = decode((tmp_path / "out/mean.grib2").read_bytes()).values
    assert made.max() == pytest.approx(270 + (MEMBERS + 1) / 2)
    assert list((tmp_path / "disk").iterdir()) == []
