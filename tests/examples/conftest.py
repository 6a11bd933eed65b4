"""What the tests of the examples share: the programs in Rust."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


@pytest.fixture(scope="session")
def rust_programs() -> Path:
    """The folder of the examples in Rust, which `make build-ci` has built."""
    return TARGET / os.environ.get("JUNCTURA_PROFILE", "ci") / "examples"
