"""Ranks of MPI in one pool: with one thread and with several, of Open MPI and of MPICH, and of both at once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from c_programs import PROGRAMS, compile_c, has

Run = Callable[..., str]

# The compiler, its options that print what it adds, and what starts ranks. The tests may run as root, and on few cores.
FAMILIES = {
    "openmpi": ("mpicc.openmpi", ("--showme:compile", "--showme:link"), ("mpirun.openmpi", "--oversubscribe")),
    "mpich": ("mpicc.mpich", ("-compile_info", "-link_info"), ("mpiexec.mpich",)),
}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader"}


def program_of(family: str, folder: Path, libraries: Path) -> Path:
    """Compiles the program by the words of a family."""
    compiler, shown, _ = FAMILIES[family]
    if not has(compiler):
        pytest.skip(f"{compiler} is not installed: tools/setup.sh dev")
    words: list[str] = []
    for option in shown:
        said = subprocess.run([compiler, option], capture_output=True, text=True, check=True).stdout.split()
        # MPICH prints the whole command, and Debian's flags of the package itself.
        words += [word for word in said if word.startswith(("-I", "-L", "-l", "-Wl,", "-pthread"))]
    # Headers of MPI are not strict.
    system = [f"-isystem{word[2:]}" if word.startswith("-I") else word for word in words]
    return compile_c(PROGRAMS / "mpi_threads.c", folder / family, libraries, *system)


def command(family: str, ranks: int, *words: object) -> list[str]:
    return [*FAMILIES[family][2], "-n", str(ranks), *map(str, words)]


@pytest.mark.parametrize("threads", ["funneled", "multiple"])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_ranks_exchange_an_array(
    family: str, threads: str, libraries: Path, pool: str, run: Run, tmp_path: Path
) -> None:
    program = program_of(family, tmp_path, libraries)
    assert run(*command(family, 2, program, pool, family, threads), **AS_ROOT) == "done\n"


def test_ranks_of_two_families_use_one_pool(
    libraries: Path, pool: str, environment: dict[str, str], tmp_path: Path
) -> None:
    programs = {family: program_of(family, tmp_path, libraries) for family in FAMILIES}
    everything = {**os.environ, **environment, **AS_ROOT}
    # Each family has a run of its own; both put and get at the same time.
    started = [
        subprocess.Popen(
            command(family, 2, program, pool, family, "funneled"), env=everything, stdout=subprocess.PIPE, text=True
        )
        for family, program in programs.items()
    ]
    assert [process.communicate(timeout=300)[0] for process in started] == ["done\n"] * 2
