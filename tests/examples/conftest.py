"""What the tests of the examples share: the programs in Rust."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# As the tests of Rust are built: for one package alone cargo would build all that it needs a second time.
WORKSPACE = ["--workspace", "--exclude", "junctura-python"]


@pytest.fixture(scope="session")
def rust_programs() -> Path:
    """The folder of the examples in Rust, built."""
    manifest = tomllib.loads((ROOT / "crates/junctura/Cargo.toml").read_text())
    examples = [f"--example={example['name']}" for example in manifest["example"]]
    subprocess.run(["cargo", "build", "--quiet", *WORKSPACE, *examples], cwd=ROOT, check=True)
    return TARGET / "debug/examples"
