"""Builds the Catalyst implementation, the test double of ``libcatalyst``, and programs that call it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "c"))

from c_programs import ROOT, STRICT, prepare

HERE = Path(__file__).parent
DOUBLE = HERE / "double"


def compile_c(program: Path, *words: object) -> Path:
    """Compiles C11 strictly."""
    command = ["gcc", "-std=c11", *STRICT, "-g", "-O1", *map(str, words), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@dataclass(frozen=True)
class CatalystBuild:
    """An installed Catalyst: ``lib/libcatalyst.so.3``, and ``lib/catalyst/libcatalyst-junctura.so`` beside it."""

    folder: Path

    @property
    def libraries(self) -> Path:
        return self.folder / "lib"

    @property
    def implementation(self) -> Path:
        return self.libraries / "catalyst/libcatalyst-junctura.so"

    def program(self, source: Path, *options: str) -> Path:
        """A program that is linked with the double."""
        program = self.folder / source.stem
        if program.exists():
            return program
        links = [self.libraries / "libcatalyst.so.3", f"-Wl,-rpath,{self.libraries}", "-lm"]
        return compile_c(program, "-I", DOUBLE, *self.defines, source, *options, *links)

    @property
    def defines(self) -> list[str]:
        return (self.folder / "defines").read_text().split()


def build(folder: Path, *defines: str) -> CatalystBuild:
    """Builds all of it in a folder; ``defines`` select a variant of the double."""
    libraries = prepare(folder / "lib")
    build_script = ROOT / "c/catalyst/build.sh"
    subprocess.run([build_script, libraries, libraries], check=True, env={**os.environ, "CC": "gcc"})
    subprocess.run([DOUBLE / "build.sh", folder, *defines], check=True, env={**os.environ, "CC": "gcc"})
    (folder / "defines").write_text(" ".join(defines))
    return CatalystBuild(folder)
