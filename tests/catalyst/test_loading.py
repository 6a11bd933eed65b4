"""The interface to Catalyst's loader, and what the library finds out about its process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import catalyst_programs
import pytest
from c_programs import ROOT, has
from catalyst_programs import DOUBLE, HERE, CatalystBuild, compile_c
from catalyst_ranks import CatalystRanks
from mesh_payload import parse

import junctura

Ranks = Callable[..., CatalystRanks]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader"}


def counts(pool: junctura.Pool) -> list[tuple[int, int, int]]:
    return [(entry["step"], entry["rank"], entry["ranks"]) for entry in pool.list("part=fields")]


def test_one_symbol_is_exported(catalyst: CatalystBuild) -> None:
    command = ["nm", "-D", "--defined-only", str(catalyst.implementation)]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert [line.split()[-1] for line in symbols] == ["catalyst_api_impl"]


def test_nothing_of_catalyst_and_mpi_is_linked(catalyst: CatalystBuild) -> None:
    command = ["readelf", "-d", str(catalyst.implementation)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    needed = {line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line}
    assert needed <= {"libjunctura.so.0", "libc.so.6", "libdl.so.2"}


@pytest.mark.parametrize("define", ["-DCATALYST_DOUBLE_PLAIN", "-DCATALYST_DOUBLE_OLD"])
def test_other_builds_of_catalyst(define: str, pool: junctura.Pool, ranks: Ranks, tmp_path: Path) -> None:
    """With an external Conduit, whose names are plain; and before ``catalyst_results``."""
    other = catalyst_programs.build(tmp_path, define)
    program = other.program(HERE / "programs/blocks.c")
    assert ranks(2, 2, program=program).end() == ["", ""]
    assert counts(pool) == [(step, rank, 2) for step in range(2) for rank in range(2)]


def test_the_environment_names_its_folder(
    pool: junctura.Pool, ranks: Ranks, catalyst: CatalystBuild, tmp_path: Path
) -> None:
    """The implementation is elsewhere, and finds its library by its own path."""
    folder = tmp_path / "lib/catalyst"
    folder.mkdir(parents=True)
    shutil.copy(catalyst.implementation, folder / "libcatalyst-other.so")
    (tmp_path / "lib/libjunctura.so.0").symlink_to((catalyst.libraries / "libjunctura.so.0").resolve())
    variables = {"CATALYST_IMPLEMENTATION_NAME": "other", "CATALYST_IMPLEMENTATION_PATHS": f"/nowhere:{folder}"}
    ranks(1, 2, **variables).end()
    assert len(counts(pool)) == 2


def test_a_program_without_conduit(catalyst: CatalystBuild, tmp_path: Path) -> None:
    """Loaded by something else, it reports what is missing, and does nothing."""
    source = tmp_path / "other.c"
    source.write_text(
        """
#include <dlfcn.h>
#include <stddef.h>
struct { int version; int (*functions[5])(void *); } *implementation;
int main(int count, char **words) {
    implementation = dlsym(dlopen(words[count - 1], RTLD_NOW), "catalyst_api_impl");
    if (implementation->version != 1)
        return 1;
    for (int i = 0; i < 5; i++)
        if (implementation->functions[i](NULL))
            return 2;
    return 0;
}
"""
    )
    program = compile_c(tmp_path / "other", source, "-ldl")
    done = subprocess.run([program, catalyst.implementation], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    missing = "the program has no function conduit_node_number_of_children of Conduit; nothing is handed over"
    assert done.stderr == f"junctura: catalyst: {missing}\n"


@pytest.mark.parametrize(
    "variables",
    [
        {"PMI_RANK": "1", "PMI_SIZE": "2"},
        {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"},
        {"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2"},
        {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
        {"JUNCTURA_CATALYST": "rank=1,ranks=2"},
    ],
)
def test_ranks_of_launchers(
    variables: dict[str, str], pool: junctura.Pool, blocks: Path, environment: dict[str, str]
) -> None:
    known = ("OMPI_", "PMI_", "MV2_", "FLUX_", "SLURM_")
    plain = {name: value for name, value in environment.items() if not name.startswith(known)}
    common = {"JUNCTURA_POOL": "unix:test", "CATALYST_IMPLEMENTATION_NAME": "junctura"}
    subprocess.run([blocks, "1"], env={**plain, **common, **variables}, check=True, stdout=subprocess.DEVNULL)
    (bundle,) = pool.bundles()
    assert (bundle.path, bundle.declared) == ("blocks/blocks/0", 2)
    # A batch job of several tasks, in which the program was not started by srun: one rank.
    batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "JUNCTURA_CATALYST": "case=batch"}
    subprocess.run([blocks, "1"], env={**plain, **common, **batch}, check=True, stdout=subprocess.DEVNULL)
    assert counts(pool) == [(0, 0, 1)]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("family", ["openmpi", "mpich"])
def test_ranks_of_mpi(
    family: str, split: bool, catalyst: CatalystBuild, pool: junctura.Pool, environment: dict[str, str], tmp_path: Path
) -> None:
    """From MPI itself: of the whole program, and of a communicator that the program passes."""
    if not has(f"mpicc.{family}"):
        pytest.skip(f"mpicc.{family} is not installed: tools/setup.sh dev")
    program = tmp_path / "solver"
    options: list[str | Path] = ["-std=c11", "-I", DOUBLE, HERE / "programs/mpi_solver.c", "-o", program]
    links: list[str | Path] = [catalyst.libraries / "libcatalyst.so.3", f"-Wl,-rpath,{catalyst.libraries}"]
    subprocess.run([f"mpicc.{family}", *options, *links], check=True)
    start = ["mpirun.openmpi", "--oversubscribe"] if family == "openmpi" else ["mpiexec.mpich"]
    variables = {"JUNCTURA_POOL": "unix:test", "CATALYST_IMPLEMENTATION_NAME": "junctura"}
    # Launchers set variables, too: the program removes them.
    command = [*start, "-n", "3", str(program), *(["split"] if split else [])]
    subprocess.run(command, env={**os.environ, **environment, **AS_ROOT, **variables}, check=True, timeout=120)
    # In the second communicator ranks are in reverse order, and rank 0 of the program is alone.
    expected = [(0, rank, 2) for rank in range(2)] if split else [(0, rank, 3) for rank in range(3)]
    found = [(entry["step"], entry["rank"], entry["ranks"]) for entry in pool.list("part=fields,case=solver")]
    assert found == expected
    # The last rank of the program is the first of the second communicator.
    for rank in range(2):
        with pool.demand(f"case=solver,part=fields,rank={rank}", timeout=0) as found_object:
            tree = parse(bytes(memoryview(found_object)))
        assert tree["fields"]["rank"]["values"] == [2 - rank if split else rank]


def test_the_hash_of_a_mesh(tmp_path: Path) -> None:
    own = ROOT / "c/catalyst"
    program = compile_c(tmp_path / "hashes", "-I", own, HERE / "programs/hashes.c", own / "mesh_hash.c")
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "1441\n"
