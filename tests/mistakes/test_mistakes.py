"""Every typical mistake gets a message that names what went wrong, where, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mistaken_surroundings import Surroundings
from mistakes import Mistake, all_mistakes, faults, outcome

COUNT_MIN = 100


@pytest.fixture(scope="module")
def around() -> Iterator[Surroundings]:
    with Surroundings() as around:
        yield around


@pytest.mark.parametrize("mistake", all_mistakes(), ids=lambda mistake: mistake.name)
def test_a_message_helps(mistake: Mistake, around: Surroundings) -> None:
    found = outcome(mistake, around)
    assert not faults(mistake, found), found.message


def test_the_tables_are_complete() -> None:
    names = [mistake.name for mistake in all_mistakes()]
    assert len(names) == len(set(names)) >= COUNT_MIN
