"""Which programs ``tools/rustc_tests.sh`` compiles without optimization."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/rustc_tests.sh"
TEST = ("crates/junctura-pool/src/lib.rs", "--test")
LIBRARY = ("crates/junctura-pool/src/lib.rs", "--crate-type", "lib")
EXAMPLE = ("crates/junctura-pool/examples/beside.rs", "--crate-type", "bin")


@pytest.mark.parametrize(
    ("package", "words", "is_plain"),
    [
        ("junctura-pool", TEST, True),
        ("junctura-pool", EXAMPLE, True),
        ("junctura-pool", LIBRARY, False),
        ("junctura-store", TEST, False),
        ("serde", TEST, False),
    ],
)
def test_of_some_crates_only_what_is_no_library(package: str, words: tuple[str, ...], is_plain: bool) -> None:
    environment = {**os.environ, "CARGO_PKG_NAME": package}
    given = ["-C", "opt-level=1", "--cfg", 'feature="a b"', *words]
    done = subprocess.run(
        [SCRIPT, "printf", "%s\n", *given], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [*given, *(["-C", "opt-level=0"] if is_plain else [])]


def test_its_crates_exist() -> None:
    (line,) = (line for line in SCRIPT.read_text().splitlines() if line.endswith(")") and "junctura-" in line)
    for name in line.strip(" )").split(" | "):
        assert (ROOT / "crates" / name / "Cargo.toml").exists(), name
