"""A pool for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import junctura


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    """A private pool whose objects have names and whatever attributes else."""
    with junctura.Pool(schema="free") as pool:
        yield pool
