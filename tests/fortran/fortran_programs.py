"""Compiles programs of Fortran with the module, by every compiler that is here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "c"))

from c_programs import ROOT

MODULE = ROOT / "fortran/junctura.f90"
PROGRAMS = Path(__file__).parent / "programs"
# Compilers by the name of their family; flang before 19 has no finalizers.
COMPILERS = {"gfortran": ("gfortran",), "flang": ("flang-new-19", "flang-19", "flang-20", "flang")}
STRICT = {"gfortran": ("-std=f2008", "-Wall", "-Wextra", "-Werror", "-pedantic"), "flang": ("-Werror",)}
# Programs compare reals for equality, since what is handed over has the same bits.
RELAXED = {"gfortran": ("-Wno-compare-reals",), "flang": ()}
FOLDER_OF_MODULES = {"gfortran": "-J", "flang": "-module-dir"}


def compiler(family: str) -> str | None:
    """The program of a family of compilers; none where it is not installed."""
    return next((name for name in COMPILERS[family] if shutil.which(name)), None)


def compile_module(family: str, folder: Path) -> Path:
    """Compiles the module into a folder; its object file."""
    made = folder / "module.o"
    invoke(family, "-c", MODULE, "-o", made, FOLDER_OF_MODULES[family], folder)
    return made


def compile_fortran(
    family: str, source: Path, program: Path, module: Path, libraries: Path, *options: str, links: Sequence[str] = ()
) -> Path:
    """Compiles one program against the module."""
    ours: list[str | Path] = ["-L", libraries, "-ljunctura", f"-Wl,-rpath,{libraries}"]
    modules: list[str | Path] = ["-I", module.parent, FOLDER_OF_MODULES[family], program.parent]
    invoke(family, *RELAXED[family], *modules, *options, source, module, "-o", program, *ours, *links)
    return program


def invoke(family: str, *words: str | Path) -> None:
    name = compiler(family)
    assert name is not None
    done = subprocess.run([name, *STRICT[family], "-g", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
