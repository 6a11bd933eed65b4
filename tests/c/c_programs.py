"""Compiles programs of C and C++ against the library that ``make build-ci`` has built."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "ci")
# Another library in `make soak`: one under AddressSanitizer, with which programs are compiled, too.
CHECKED = os.environ.get("JUNCTURA_C_CHECKED")
LIBRARY = Path(CHECKED or BUILT / "libjunctura_c.so")
HEADERS = ROOT / "c/include"
PROGRAMS = Path(__file__).parent / "programs"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")


def prepare(folder: Path) -> Path:
    """A folder with the library under the names that a linker and a program look for."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("libjunctura.so", "libjunctura.so.0"):
        (folder / name).symlink_to(LIBRARY)
    return folder


def compile_c(source: Path, program: Path, libraries: Path, *options: str) -> Path:
    """Compiles one source strictly, as C11 unless the options name another standard."""
    standard = () if any(option.startswith("-std=") for option in options) else ("-std=c11",)
    links = ["-L", str(libraries), "-ljunctura", f"-Wl,-rpath,{libraries}", "-lpthread", "-ldl", "-lm"]
    sanitizers = ("-fsanitize=address",) if CHECKED else ()
    command = ["gcc", *standard, *STRICT, "-g", *sanitizers, "-I", str(HEADERS), "-I", str(PROGRAMS), str(source)]
    command += options
    done = subprocess.run([*command, "-o", str(program), *links], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def compile_cpp(source: Path, program: Path, libraries: Path, *options: str, compiler: str = "g++") -> Path:
    """Compiles one source strictly, as C++17."""
    links = ["-L", str(libraries), "-ljunctura", f"-Wl,-rpath,{libraries}", "-lpthread"]
    command = [compiler, "-std=c++17", *STRICT, "-g", "-I", str(HEADERS), str(source), *options]
    done = subprocess.run([*command, "-o", str(program), *links], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def has(program: str) -> bool:
    return shutil.which(program) is not None
