"""The broker's own pool: what has no room in memory goes to a disk, however many inputs a product has."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker_runs import broker, grid_message, offer

import junctura
from junctura._progress import counted
from junctura.products import Failed, Made
from junctura.products.__main__ import _in_words, document
from junctura.products._input.decoding import decode
from junctura.products._workers.crew import ProcessCrew

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


def test_the_peak_memory_of_each_worker_is_told(tmp_path: Path) -> None:
    """As the kernel has it of the processes, which have done all when the last product is there."""
    text = MEAN.replace("number: 1", "number: [1, 2]").replace("/to/80", "")
    kernel: dict[int, int] = {}
    with junctura.Pool(schema="mars") as pool:
        for number in (1, 2):
            offer(pool, grid_message(270.0 + number, shortName="t"), param="t", step=0, number=number)

        def observe(_event: Made | Failed) -> None:
            assert isinstance(running.crew, ProcessCrew)
            for pid in running.crew.workers:
                status = Path(f"/proc/{pid}/status").read_text()
                kernel[pid] = 1024 * int(status.partition("VmHWM:")[2].split()[0])

        running = broker(tmp_path, pool, text, workers=2, observer=observe)
        report = running.run()
    assert report.failed == [] and report.workers and report.workers.keys() <= kernel.keys()
    for pid, peak in report.workers.items():
        assert 0.7 * kernel[pid] < peak <= kernel[pid]
    said = document(report)["workers"]
    assert said == [{"pid": pid, "peak_bytes": peak} for pid, peak in report.workers.items()]
    peaks = ", ".join(f"{peak / 1e6:.0f}" for peak in sorted(report.workers.values(), reverse=True))
    assert f"peak memory of {counted(len(report.workers), 'worker')}: {peaks} MB" in _in_words(report, tmp_path)
