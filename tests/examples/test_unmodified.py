"""A model that does not know Junctura: pictures from the pool while it runs, and the same from its file."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "ci")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader"}

pytestmark = pytest.mark.skipif(
    any(shutil.which(program) is None for program in ("mpif90.openmpi", "nf-config")),
    reason="mpif90.openmpi or nf-config is not installed: tools/setup.sh dev",
)


@pytest.mark.parametrize("ranks", [1, 4])
def test_pictures_of_the_pool_and_of_the_file_are_equal(ranks: int, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="u-") as sockets:
        environment = {**os.environ, **AS_ROOT, "XDG_RUNTIME_DIR": sockets, "PATH": f"{BUILT}:{os.environ['PATH']}"}
        done = subprocess.run(
            [str(ROOT / "examples/16_unmodified/run.sh"), str(tmp_path / "run"), str(ranks)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("the pictures are equal\n")
    assert "wrfout_d01.nc (pool, 1 process): 34 objects offered" in done.stderr
    assert len(list((tmp_path / "run/pool").glob("*.png"))) == 11
