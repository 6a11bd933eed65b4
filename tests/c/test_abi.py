"""The ABI: symbols, the name of the library, what it needs, and the header."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from c_programs import BUILT, HEADERS, LIBRARY, ROOT, STRICT, has

SYMBOLS = (ROOT / "c/abi/symbols.txt").read_text().split()
HEADER = HEADERS / "junctura.h"
CBINDGEN = ROOT / ".tools/bin/cbindgen"
ALLOWED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_only_the_listed_symbols_are_exported() -> None:
    exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", LIBRARY).splitlines()]
    # With debug assertions there are functions for tests.
    assert sorted(name for name in exported if not name.startswith("jct_test_")) == SYMBOLS


def test_the_header_declares_the_listed_symbols() -> None:
    declared = re.findall(r"^[a-z].*?\b(jct_\w+)\(", HEADER.read_text(), re.M)
    assert sorted(declared) == SYMBOLS


def test_the_library_has_a_soname_and_needs_little() -> None:
    dynamic = output("readelf", "--dynamic", "--wide", LIBRARY)
    assert re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) == ["libjunctura.so.0"]
    assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) <= ALLOWED


@pytest.mark.skipif(not CBINDGEN.exists(), reason="cbindgen is not installed: tools/setup.sh dev")
def test_the_header_is_that_of_the_crate(tmp_path: Path) -> None:
    made = tmp_path / "junctura.h"
    crate = ROOT / "crates/junctura-c"
    output(CBINDGEN, "--quiet", "--config", crate / "cbindgen.toml", "--output", made, crate)
    assert made.read_text() == HEADER.read_text(), "run `make header`"


@pytest.mark.parametrize("standard", ["c99", "c11", "c17", "c++17"])
def test_the_header_compiles_strictly(standard: str, tmp_path: Path) -> None:
    compiler, language = ("g++", "c++") if standard.startswith("c++") else ("gcc", "c")
    if not has(compiler):
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / "program"
    source.write_text('#include <junctura.h>\n#include "junctura.h"\nint main(void) { return (int)jct_abi(); }\n')
    output(compiler, "-x", language, f"-std={standard}", *STRICT, "-I", HEADERS, "-c", source, "-o", tmp_path / "o")


def test_a_static_program_runs(tmp_path: Path) -> None:
    source = tmp_path / "program.c"
    source.write_text("#include <junctura.h>\nint main(void) { return (int)jct_abi(); }\n")
    program = tmp_path / "program"
    links = ["-lpthread", "-ldl", "-lm", "-lgcc_s"]
    output("gcc", source, "-I", HEADERS, BUILT / "libjunctura_c.a", "-o", program, *links)
    output(program)
