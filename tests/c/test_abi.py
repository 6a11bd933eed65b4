"""The ABI: symbols, the name of the library, what it needs, and the header."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest
from abi_stub import DESCRIPTION, differences, stub
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


@pytest.mark.skipif(not has("abidiff"), reason="abigail-tools is not installed: tools/setup.sh dev")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the description is that of x86-64")
def test_the_types_of_all_functions_are_those_that_are_described(tmp_path: Path) -> None:
    assert differences(stub(tmp_path), DESCRIPTION) == "", "run `python tests/c/abi_stub.py` if the ABI may change"


def test_a_program_of_the_first_header_runs_with_this_library(libraries: Path, tmp_path: Path) -> None:
    kept, program = Path(__file__).parent / "kept/abi_0", tmp_path / "handover"
    links: list[str | Path] = ["-L", libraries, "-ljunctura", f"-Wl,-rpath,{libraries}"]
    output("gcc", *STRICT, "-I", kept, kept / "handover.c", "-o", program, *links)
    assert output(program) == (ROOT / "examples/story/01_handover/output.txt").read_text()


# A library in Rust of somebody else's.
OTHER = """
#[unsafe(no_mangle)]
pub extern "C" fn other_answer() -> i32 {
    let words: Vec<String> = (0..6).map(|number| number.to_string()).collect();
    std::panic::catch_unwind(|| panic!("caught")).map_or(words.len() as i32 * 7, |()| 0)
}
"""
BESIDE = """
#include <junctura.h>
int other_answer(void);
int main(void) {
    jct_pool_t *pool;
    if (jct_pool_open("", "schema=free", &pool))
        return 1;
    jct_pool_close(pool);
    return other_answer() != 42;
}
"""


@pytest.mark.skipif(not has("rustc"), reason="rustc is not installed")
@pytest.mark.parametrize("way", ["shared", "static"])
def test_it_is_linked_beside_another_library_in_rust(way: str, libraries: Path, tmp_path: Path) -> None:
    (tmp_path / "other.rs").write_text(OTHER)
    (tmp_path / "beside.c").write_text(BESIDE)
    # With LTO two static libraries define the same symbols of Rust's: the shared one is for that.
    lto = ["-C", "lto=fat"] if way == "shared" else []
    words = ["--edition", "2024", "--crate-type", "staticlib", "-O", *lto]
    other = tmp_path / "libother.a"
    output("rustc", *words, tmp_path / "other.rs", "-o", other)
    shared: list[str | Path] = ["-L", libraries, "-ljunctura", f"-Wl,-rpath,{libraries}"]
    ours = shared if way == "shared" else [BUILT / "libjunctura_c.a"]
    program, system = tmp_path / "beside", ["-lpthread", "-ldl", "-lm", "-lgcc_s"]
    output("gcc", "-I", HEADERS, tmp_path / "beside.c", other, *ours, "-o", program, *system)
    output(program)
