"""Several brokers on one folder: side by side if they make other files, and refused by name if not."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from broker_runs import BASE, broker, grid_message, heard, offer, program

import junctura
from junctura.products import Broker, Failed, Made
from junctura.products.__main__ import main
from junctura.products._broker.output_locks import OutputLocks

pytestmark = pytest.mark.timeout(120)

ONE = """\
product: one
from: {param: t, levelist: 850, step: 0}
to: {format: grib2, name: "maps/one.grib2"}
"""
DATED = ONE.replace("maps/one", "maps/{date}")

# Claims files, says so, and keeps them until its standard input ends.
CLAIMING = """
import sys
from pathlib import Path
from junctura.products._broker.output_locks import OutputLocks
with OutputLocks(Path(sys.argv[1]), sys.argv[2:], "night"):
    print("claimed", flush=True)
    sys.stdin.read()
"""


def test_a_file_that_another_run_makes_is_refused_by_name_and_others_are_made(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with program(CLAIMING, str(out), "maps/one.grib2", "maps/two.grib2", "three") as other:
        assert heard(other) == "claimed"
        with junctura.Pool(schema="mars") as pool:
            offer(pool, grid_message(280.0, shortName="t"), param="t", step=0)
            with pytest.raises(junctura.AlreadyExists) as refused:
                broker(tmp_path, pool, ONE).run()
            assert broker(tmp_path, pool, ONE.replace("one", "four")).run().failed == []
            other.communicate()
            assert broker(tmp_path, pool, ONE).run().failed == []
    assert "maps/one.grib2" in str(refused.value) and f"night, process {other.pid}" in str(refused.value)
    assert sorted(path.name for path in out.iterdir()) == ["maps"], "no list is left"


def test_the_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wanted.yaml").write_text(ONE)
    with junctura.Pool(schema="mars") as pool, OutputLocks(tmp_path, ["maps/one.grib2"], "night"):
        assert main([str(tmp_path / "wanted.yaml"), "--pool", pool.url, "--out", str(tmp_path)]) == 1
    assert "maps/one.grib2" in capsys.readouterr().err


def test_what_a_run_that_was_killed_has_claimed_is_free(tmp_path: Path) -> None:
    with program(CLAIMING, str(tmp_path), "one") as other:
        assert heard(other) == "claimed"
        other.kill()
        other.wait()
    assert len(list(tmp_path.iterdir())) == 1
    with OutputLocks(tmp_path, ["one"], "day"):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_lists_that_end_or_are_damaged_while_they_are_read_hurt_nobody(tmp_path: Path) -> None:
    (tmp_path / ".run-1.claims").mkdir()
    with (tmp_path / ".run-2.claims").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with OutputLocks(tmp_path, ["one"], "day"):
            pass


def test_names_that_fields_complete_are_those_of_a_pool(tmp_path: Path) -> None:
    """Runs of two days may be side by side, each with a pool of its own."""
    with junctura.Pool(schema="mars") as today, junctura.Pool(schema="mars") as tomorrow:
        claimed = [broker(tmp_path, pool, DATED)._claimed() for pool in (today, tomorrow, today)]
    assert claimed[0] == claimed[2] and not claimed[0] & claimed[1]
    with junctura.Pool(schema="mars") as today, junctura.Pool(schema="mars") as tomorrow:
        claimed = [broker(tmp_path, pool, ONE)._claimed() for pool in (today, tomorrow)]
    assert claimed == [{"maps/one.grib2"}] * 2


@pytest.mark.parametrize("dated_first", [True, False])
def test_a_product_whose_file_replaces_that_of_another_is_reported(tmp_path: Path, dated_first: bool) -> None:
    """What completes a name is known when the fields are there."""
    other = DATED.replace("one", "other", 1).replace("{date}", str(BASE["date"])).replace("step: 0", "step: 6")
    steps = {0: 280.0, 6: 286.0} if dated_first else {6: 286.0, 0: 280.0}
    first = threading.Event()
    events: list[Made | Failed] = []

    def observe(event: Made | Failed) -> None:
        events.append(event)
        first.set()

    with junctura.Pool(schema="mars") as pool:
        run = broker(tmp_path, pool, f"{DATED}---\n{other}", observer=observe)
        thread = threading.Thread(target=run.run, daemon=True)
        thread.start()
        for step, value in steps.items():
            offer(pool, grid_message(value, shortName="t"), param="t", step=step)
            first.wait(100)
        thread.join(100)
    one, two = ("one", "other") if dated_first else ("other", "one")
    assert [(type(event), event.product) for event in events] == [(Made, one), (Failed, two)]
    (failed,) = run.report.failed
    assert failed.cause.startswith("its file maps/") and f'has replaced that of "{one}"' in failed.cause


def test_brokers_of_other_recipes_work_side_by_side(tmp_path: Path) -> None:
    """Each makes its second product when all others have made their first one."""
    text = ONE.replace("step: 0", "step: 0/6").replace("one.", "one_{step}.")
    names = ("a", "b", "c")
    together = threading.Barrier(len(names) + 1)
    firsts: set[str] = set()

    def observe(event: Made | Failed) -> None:
        if event.product not in firsts:
            firsts.add(event.product)
            together.wait(100)

    with junctura.Pool(schema="mars") as pool:
        runs: list[Broker] = []
        for name in names:
            (tmp_path / name).mkdir()
            own = text.replace("one", name)
            runs.append(broker(tmp_path / name, pool, own, observer=observe, out=tmp_path / "out"))
        threads = [threading.Thread(target=run.run, daemon=True) for run in runs]
        for thread in threads:
            thread.start()
        offer(pool, grid_message(280.0, shortName="t"), param="t", step=0)
        together.wait(100)
        offer(pool, grid_message(286.0, shortName="t"), param="t", step=6)
        for thread in threads:
            thread.join(100)
    assert [(len(run.report.made), run.report.failed) for run in runs] == [(2, [])] * 3
    made = sorted(path.name for path in (tmp_path / "out/maps").glob("*.grib2"))
    assert made == sorted(f"{name}_{step}.grib2" for name in names for step in (0, 6))


def test_the_environment_says_which_pool(tmp_path: Path) -> None:
    (tmp_path / "wanted.yaml").write_text(ONE)
    with junctura.Pool(schema="mars") as pool:
        offer(pool, grid_message(280.0, shortName="t"), param="t", step=0)
        command = [sys.executable, "-m", "junctura.products", str(tmp_path / "wanted.yaml"), "-q", "--json"]
        done = subprocess.run(
            [*command, "--out", str(tmp_path / "out"), "--workers", "1"],
            env={**os.environ, "JUNCTURA_POOL": pool.url, "JUNCTURA_NAME": "night"},
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
    assert (json.loads(done.stdout)["products"], done.stderr) == (1, "")
