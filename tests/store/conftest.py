"""Stores in a bucket of the server that ``s3.py`` has started; without one these tests are left out."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parents[1] / "link"))

from e2e_grib import Field, ensemble
from e2e_shell import Shell
from link_weather import weather

__all__ = ["weather"]

NUMBERS = itertools.count()


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A part of the bucket that no other test has."""
    pattern = os.environ.get("JUNCTURA_TEST_S3")
    if pattern is None:
        pytest.skip("needs a server: tests/run.py store-s3")
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return pattern.replace("{}", f"{name}-{os.getpid()}-{next(NUMBERS)}")


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A shell."""
    shell = Shell()
    yield shell
    shell.close()


@pytest.fixture
def fields() -> dict[Field, bytes]:
    """A small ensemble, as messages."""
    return ensemble()


@pytest.fixture
def file(tmp_path: Path, fields: dict[Field, bytes]) -> Path:
    """The ensemble in a file."""
    path = tmp_path / "ensemble.grib2"
    path.write_bytes(b"".join(fields.values()))
    return path
