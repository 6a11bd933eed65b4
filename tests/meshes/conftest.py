"""Meshes of files, if these are there, and of seeds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

import junctura

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
set_hypothesis_home_dir(ROOT / ".tools/hypothesis")


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    """A private pool of meshes."""
    with junctura.Pool(schema="mesh") as pool:
        yield pool
