"""A model that does not know Junctura: pictures from the pool while it runs, and the same from its file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import junctura

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/16_unmodified"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "ci")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader"}
STEPS = 11


def last_lines(*outputs: str) -> str:
    """What a failure shows: the ends of outputs, in a text whose first line is the last of them."""
    lines = "\n".join(outputs).splitlines()[-60:]
    return "\n".join([lines[-1] if lines else "no output", *lines])


@pytest.mark.skipif(
    any(shutil.which(program) is None for program in ("mpif90.openmpi", "nf-config")),
    reason="mpif90.openmpi or nf-config is not installed: tools/setup.sh dev",
)
@pytest.mark.parametrize("ranks", [1, 4])
def test_pictures_of_the_pool_and_of_the_file_are_equal(ranks: int, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="u-") as sockets:
        environment = {**os.environ, **AS_ROOT, "XDG_RUNTIME_DIR": sockets, "PATH": f"{BUILT}:{os.environ['PATH']}"}
        done = subprocess.run(
            [str(EXAMPLE / "run.sh"), str(tmp_path / "run"), str(ranks)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, last_lines(done.stderr, done.stdout)
    assert done.stdout.endswith("the pictures are equal\n")
    assert "wrfout_d01.nc (pool, 1 process): 34 objects offered" in done.stderr
    assert len(list((tmp_path / "run/pool").glob("*.png"))) == STEPS


@pytest.mark.parametrize("present", [0, 5, STEPS])
def test_a_reader_that_starts_at_any_time_draws_all_steps(present: int, tmp_path: Path) -> None:
    with junctura.Pool(schema="netcdf") as pool:

        def offer(records: range) -> None:
            for record in records:
                field = np.full((4, 6), 280 + record, "f4")
                pool.offer(field, folder="/run", file="wrfout_d01.nc", name="T2", record=record, time=24.0 * record)
            status = "closed" if records.stop == STEPS else "open"
            pool.offer(b"", folder="/run", file="wrfout_d01.nc", name=".state", status=status, writer="model")

        offer(range(present))
        program = [sys.executable, str(EXAMPLE / "pictures.py"), "pool", str(tmp_path / "pictures")]
        with subprocess.Popen(
            program, env={**os.environ, "JUNCTURA_POOL": pool.url}, stdout=subprocess.PIPE, text=True
        ) as reader:
            assert reader.stdout is not None
            lines = [reader.stdout.readline() for _ in range(present)]
            if present < STEPS:
                offer(range(present, STEPS))
            lines += reader.stdout.readlines()
        assert reader.returncode == 0
    expected = [f"t2-{24 * record:05}.png: warmest {280 + record}.0 K\n" for record in range(STEPS)]
    assert lines == expected
