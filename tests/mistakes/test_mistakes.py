"""Every typical mistake gets a message that names what went wrong, where, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mistaken_surroundings import Surroundings
from mistakes import Mistake, all_mistakes, faults, outcome, proposed_commands

COUNT_MIN = 100


@pytest.fixture(scope="module")
def around() -> Iterator[Surroundings]:
    with Surroundings() as around:
        yield around


@pytest.fixture(scope="module")
def beside() -> Iterator[Surroundings]:
    """The same again, for commands that change something."""
    with Surroundings() as beside:
        yield beside


@pytest.mark.parametrize("mistake", all_mistakes(), ids=lambda mistake: mistake.name)
def test_a_message_helps(mistake: Mistake, around: Surroundings) -> None:
    found = outcome(mistake, around)
    assert not faults(mistake, found), found.message


@pytest.mark.parametrize(
    "mistake", [mistake for mistake in all_mistakes() if mistake.table == "shell"], ids=lambda mistake: mistake.name
)
def test_a_command_that_a_message_proposes_runs(mistake: Mistake, around: Surroundings, beside: Surroundings) -> None:
    for command in proposed_commands(outcome(mistake, around).message):
        done = beside.shell(command, beside.folder)
        assert done.returncode != 2, f"{command}: {done.stderr}"


def test_the_tables_are_complete() -> None:
    names = [mistake.name for mistake in all_mistakes()]
    assert len(names) == len(set(names)) >= COUNT_MIN
