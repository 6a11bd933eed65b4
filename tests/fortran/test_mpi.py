"""Two programs of MPI with different numbers of ranks, which exchange fields."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Compile = Callable[..., Path]

MISSING = [name for name in ("mpif90.openmpi", "mpirun.openmpi") if shutil.which(name) is None]
# Its module file is that of gfortran; the tests may run as root, and on fewer cores than ranks.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is not installed: tools/setup.sh dev")
def test_two_and_three_ranks_exchange_fields(
    family: str, compiled: Compile, pool: str, environment: dict[str, str]
) -> None:
    if family != "gfortran":
        pytest.skip("the module of MPI is that of gfortran")
    words = subprocess.run(["mpif90.openmpi", "--showme:compile"], capture_output=True, text=True, check=True).stdout
    links = subprocess.run(["mpif90.openmpi", "--showme:link"], capture_output=True, text=True, check=True).stdout
    program = compiled("mpi_model", *words.split(), links=links.split())
    everything = {**os.environ, **environment, **AS_ROOT}

    def start(ranks: int, mine: str, other: str) -> subprocess.Popen[str]:
        command = ["mpirun.openmpi", "--oversubscribe", "-n", str(ranks), str(program), pool, mine, other]
        return subprocess.Popen(command, env=everything, stdout=subprocess.PIPE, text=True)

    with start(2, "sst", "wind") as ocean, start(3, "wind", "sst") as atmosphere:
        said = [ocean.communicate(timeout=120)[0], atmosphere.communicate(timeout=120)[0]]
    assert said == ["0 elements differ\n"] * 2
