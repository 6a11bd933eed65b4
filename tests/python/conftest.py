"""A pool for each test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

import junctura

sys.path.insert(0, str(Path(__file__).parent))
set_hypothesis_home_dir(Path(__file__).resolve().parents[2] / ".tools/hypothesis")


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    """A private pool whose objects have names and whatever attributes else."""
    with junctura.Pool(schema="free") as pool:
        yield pool
