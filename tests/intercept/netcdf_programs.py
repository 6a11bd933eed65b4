"""Compiles and runs programs that use netCDF and do not know Junctura."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "ci")
PROGRAMS = Path(__file__).parent / "programs"
# Debian's netCDF with MPI, beside that without.
PARALLEL = Path("/usr/lib/x86_64-linux-gnu/netcdf/mpi")
MPIRUN = ("mpirun.openmpi", "--oversubscribe")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader"}


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: tools/setup.sh dev")


def compile_program(name: str, program: Path) -> Path:
    source = PROGRAMS / name
    strict = ["-Wall", "-Wextra", "-Werror"]
    if name.startswith("parallel"):
        need("mpicc.openmpi")
        if not PARALLEL.exists():
            pytest.skip("libnetcdf-mpi-dev is not installed: tools/setup.sh dev")
        command = ["mpicc.openmpi", "-std=c11", *strict, f"-I{PARALLEL}/include", str(source), "-lnetcdf_mpi"]
    elif source.suffix == ".f90":
        need("gfortran", "nf-config")
        flags = subprocess.run(["nf-config", "--fflags", "--flibs"], capture_output=True, text=True, check=True)
        command = ["gfortran", "-std=f2008", *strict, str(source), *flags.stdout.split()]
    else:
        need("nc-config")
        command = ["gcc", "-std=c11", *strict, str(source), "-lnetcdf", "-lm"]
    done = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def run(*words: object, folder: Path, environment: dict[str, str], status: int = 0) -> str:
    """Runs a program that must end with this status; its output."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
