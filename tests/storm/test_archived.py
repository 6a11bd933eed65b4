"""kill -9 of producers, followers, archivers and servers, while what was archived leaves the pool and is read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from e2e_shell import Shell
from storm_archived import CASES, weather

SEED = 20261125
KILLS = 10


@pytest.mark.parametrize("case", CASES)
def test_what_was_durable_lasts_and_followers_miss_nothing(
    bare: Shell, tmp_path: Path, case: str, tell: Callable[[str], None]
) -> None:
    weather(bare, tmp_path, case, SEED, KILLS, tell)
