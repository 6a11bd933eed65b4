"""The preload libraries of MPI-IO, a pool that is served, and programs of MPI that know nothing of either."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import os

import junctura
from mpi_programs import AS_ROOT, BUILT, FAMILIES, build_libraries, missing

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of compiled programs."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="session")
def preload(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The value of LD_PRELOAD."""
    libraries = build_libraries(tmp_path_factory.mktemp("libraries"))
    if not libraries:
        pytest.skip("neither mpicc.openmpi nor mpicc.mpich is installed: tools/setup.sh dev")
    return " ".join(map(str, libraries))


@pytest.fixture(scope="session", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    why = missing(f"mpicc.{request.param}")
    if why:
        pytest.skip(why)
    return str(request.param)


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """Sockets apart from the user's; names of sockets are short, so the folders of tests are not for them."""
    with tempfile.TemporaryDirectory(prefix="m-") as folder:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("JUNCTURA_")}
        yield {**plain, **AS_ROOT, "XDG_RUNTIME_DIR": folder, "PATH": f"{BUILT}:{os.environ['PATH']}"}


@pytest.fixture
def pool(environment: dict[str, str]) -> Iterator[str]:
    """The URL of a pool that is served."""
    words = ["pool", "serve", "--pool", f"unix:{environment['XDG_RUNTIME_DIR']}/pool", "--schema", "free"]
    command = [str(BUILT / "junctura"), *words, "--budget", "512MiB", "--announce"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()
        assert server.wait(timeout=60) == 0


@pytest.fixture
def client(pool: str) -> Iterator[junctura.Pool]:
    with junctura.Pool(pool) as opened:
        yield opened


@pytest.fixture
def intercepted(environment: dict[str, str], pool: str, preload: str) -> dict[str, str]:
    """The environment of a program whose files are in the pool."""
    rules = "*.array=array,*.bytes=bytes,*.h5=bytes,*=file"
    return {**environment, "LD_PRELOAD": preload, "JUNCTURA_POOL": pool, "JUNCTURA_MPI_IO": rules}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command, which must succeed, in the folder of the test."""

    def run_command(
        words: list[str], environment: dict[str, str], code: int = 0, **more: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words, env={**environment, **more}, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert (done.returncode == 0) == (code == 0), f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    return run_command
