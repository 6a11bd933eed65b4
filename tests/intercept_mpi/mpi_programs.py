"""Builds the preload libraries of MPI-IO and programs of both families of MPI, and runs programs with ranks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "ci")
PROGRAMS = Path(__file__).parent / "programs"
FAMILIES = ("openmpi", "mpich")
# The tests may run as root, and with more ranks than cores.
LAUNCH = {"openmpi": ("mpirun.openmpi", "--oversubscribe"), "mpich": ("mpiexec.mpich",)}
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,vader",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
# The library of a family, as mpi4py looks for it.
SONAMES = {"openmpi": "libmpi.so.40", "mpich": "libmpi.so.12"}
KINDS = ("c", "mpi", "mpi_f08", "mpi4py")


def build_libraries(folder: Path) -> list[Path]:
    """The preload libraries, beside the C library; both of them may be preloaded into any program."""
    subprocess.run([str(ROOT / "c/intercept/mpi_io/build.sh"), str(folder)], check=True, timeout=300)
    (folder / "libjunctura.so.0").symlink_to(BUILT / "libjunctura_c.so")
    return [folder / f"libjunctura-mpiio-{family}.so" for family in FAMILIES if shutil.which(f"mpicc.{family}")]


def compile_c(family: str, name: str, folder: Path, *options: str) -> Path:
    program = folder / f"{name}.{family}"
    if not program.exists():
        words = [f"mpicc.{family}", "-std=c11", "-Wall", "-Wextra", "-Werror", "-g", str(PROGRAMS / f"{name}.c")]
        subprocess.run([*words, *options, "-o", str(program), "-lm"], check=True, timeout=300)
    return program


def compile_static(name: str, folder: Path) -> Path:
    """A program with MPICH in it; the libraries below MPI are shared."""
    libraries = Path("/usr/lib/x86_64-linux-gnu")
    below = [
        found.name
        for each in ("ucp", "ucs", "uct", "hwloc", "fabric")
        for found in libraries.glob(f"lib{each}.so.[0-9]*")
    ]
    words = ["gcc", "-I/usr/include/x86_64-linux-gnu/mpich", str(PROGRAMS / f"{name}.c"), str(libraries / "libmpich.a")]
    words += [*(f"-l:{each}" for each in below), "-lpthread", "-lm", "-lrt"]
    program = folder / f"{name}.static"
    subprocess.run([*words, "-o", str(program)], check=True, timeout=300)
    return program


def compile_fortran(family: str, kind: str, folder: Path) -> Path:
    program = folder / f"grid_{kind}.{family}"
    if not program.exists():
        words = [f"mpif90.{family}", *(["-DF08"] if kind == "mpi_f08" else []), "-J", str(folder)]
        subprocess.run([*words, str(PROGRAMS / "grid.F90"), "-o", str(program)], check=True, timeout=300)
    return program


def grid(family: str, kind: str, folder: Path) -> list[str]:
    """The command of a program that writes or reads a grid, in one of the four languages' interfaces."""
    if kind == "c":
        return [str(compile_c(family, "grid", folder))]
    if kind == "mpi4py":
        return [sys.executable, str(PROGRAMS / "grid.py")]
    return [str(compile_fortran(family, kind, folder))]


def of_python(family: str, folder: Path) -> dict[str, str]:
    """The environment with which mpi4py uses the system's library of a family."""
    links = folder / f"mpi4py-{family}"
    links.mkdir(exist_ok=True)
    link = links / SONAMES[family]
    if not link.exists():
        shown = subprocess.run([f"mpicc.{family}", "-show"], capture_output=True, text=True, check=True).stdout.split()
        folders = [Path(word[2:]) for word in shown if word.startswith("-L")]
        name = "libmpi.so" if family == "openmpi" else "libmpich.so"
        found = [each / name for each in [*folders, *Path("/usr/lib").glob("*-linux-gnu")] if (each / name).exists()]
        link.symlink_to(found[0].resolve())
    path = f"{links}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    return {"MPI4PY_MPIABI": family, "MPI4PY_LIBMPI": str(link), "LD_LIBRARY_PATH": path}


def ranks(family: str, count: int, *words: object) -> list[str]:
    return [*LAUNCH[family], "-n", str(count), *map(str, words)]


def missing(*programs: str) -> str:
    """Why a test of these programs cannot run here; empty where it can."""
    absent = [program for program in programs if shutil.which(program) is None]
    return f"{', '.join(absent)} is not installed: tools/setup.sh dev" if absent else ""
