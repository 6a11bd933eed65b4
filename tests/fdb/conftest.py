"""An FDB to read from; without FDB these tests are left out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parent))

from e2e_shell import Shell
from fdb_root import Fdb


@pytest.fixture
def fdb(tmp_path: Path) -> Fdb:
    return Fdb(tmp_path / "fdb")


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A shell."""
    shell = Shell()
    yield shell
    shell.close()
