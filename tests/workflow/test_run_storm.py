"""A few runs in which a task comes to harm; `run_storm.py` does more."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_storm import check


@pytest.mark.parametrize("seed", range(12))
def test_each_run_ends_by_itself_and_leaves_nothing(tmp_path: Path, seed: int) -> None:
    check(seed, tmp_path)
