"""A cache of weights for all tests of a run, so that each matrix is made once and none is left behind."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
_PROGRAM = Path(__file__).with_name("mir_direct.py")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("JUNCTURA_CACHE")
    os.environ["JUNCTURA_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["JUNCTURA_CACHE"]
    else:
        os.environ["JUNCTURA_CACHE"] = before


@pytest.fixture(scope="session")
def shared() -> Path:
    """Files of others that are not in the repository."""
    folder = Path(__file__).resolve().parents[2].parent / "shared/data/grib"
    if not folder.is_dir():
        pytest.skip("no shared/data/grib beside the repository")
    return folder


@pytest.fixture(scope="session")
def by_mir(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[np.ndarray[Any, Any]]]:
    """What MIR itself makes of messages, in a process of its own; jobs are options of MIR."""
    if importlib.util.find_spec("mir") is None:
        pytest.skip("MIR is not installed")

    def run(*jobs: tuple[list[bytes], dict[str, Any]]) -> list[np.ndarray[Any, Any]]:
        folder = tmp_path_factory.mktemp("mir")
        (folder / "jobs.pickle").write_bytes(pickle.dumps(jobs))
        quiet = {f"ECKIT_{what}_IS_SILENT": "1" for what in ("EXCEPTION", "ASSERT_FAILED", "SERIOUS_BUG")}
        done = subprocess.run(
            [sys.executable, str(_PROGRAM), str(folder)],
            env={**os.environ, **quiet, "OMP_NUM_THREADS": "1", "MIR_CACHE_PATH": str(folder / "mir")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        with np.load(folder / "made.npz") as made:
            return [made[f"made{number}"] for number in range(len(jobs))]

    return run
