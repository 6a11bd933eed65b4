"""Programs in C, C++ and Fortran from a wheel alone: by `junctura config`, by pkg-config and by CMake."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "c"))

from hello_programs import COMPILERS, FILES, HELLO, cmake_lists

ROOT = Path(__file__).resolve().parents[2]


def other_symbols(folder: Path, command: Path, environment: dict[str, str]) -> set[str]:
    """Returns what the library exports besides the functions of the header, and what it lacks of them."""
    config = [str(command), "config", "--prefix"]
    done = subprocess.run(config, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    library = Path(done.stdout.strip()) / "lib/libjunctura.so.0"
    words = ["nm", "-D", "--defined-only", str(library)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    # With debug assertions there are functions for tests.
    exported = {line.split()[-1] for line in lines if not line.split()[-1].startswith("jct_test_")}
    return exported ^ set((ROOT / "c/abi/symbols.txt").read_text().split())


def programs(folder: Path, command: Path, environment: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Builds and runs each program in each way; yields the way, and what the program prints."""

    def output(*words: str | Path, cwd: Path, **more: str) -> str:
        done = subprocess.run(words, cwd=cwd, env={**environment, **more}, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"exit status {done.returncode}: {done.stderr[-1000:]}"
        return done.stdout

    def config(*options: str) -> list[str]:
        return output(command, "config", *options, cwd=folder).split()

    for language, compiler in COMPILERS.items():
        if shutil.which(compiler, path=environment["PATH"]) is None:
            continue
        here = folder / language
        here.mkdir()
        (here / FILES[language]).write_text(HELLO[language])
        (here / "CMakeLists.txt").write_text(cmake_lists(language))
        module = config("--fortran") if language == "Fortran" else []
        begin = [compiler, *module, FILES[language], "-o", "hello"]
        output(*begin, *config("--cflags", "--libs"), cwd=here)
        yield f"{language} by junctura config", output(here / "hello", cwd=here)
        (here / "hello").unlink(missing_ok=True)
        if shutil.which("pkg-config", path=environment["PATH"]):
            path = {"PKG_CONFIG_PATH": "".join(config("--pkgconfig"))}
            words = output("pkg-config", "--cflags", "--libs", "junctura", cwd=here, **path).split()
            output(*begin, *words, cwd=here)
            yield f"{language} by pkg-config", output(here / "hello", cwd=here)
        if shutil.which("cmake", path=environment["PATH"]):
            found = "".join(config("--cmake"))
            output("cmake", "-S", ".", "-B", "build", f"-DJunctura_DIR={found}", cwd=here)
            said = output("cmake", "--build", "build", cwd=here)
            built = here / "build/hello"
            yield f"{language} by CMake", output(built, cwd=here) if built.exists() else said
