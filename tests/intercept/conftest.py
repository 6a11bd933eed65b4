"""The preload library for netCDF, programs that do not know Junctura, and a pool that is served."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from netcdf_programs import BUILT, ROOT, compile_program


@pytest.fixture(scope="session")
def preload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The preload library, compiled as for an installation, beside the C library."""
    folder = tmp_path_factory.mktemp("libraries")
    subprocess.run([str(ROOT / "tools/build_intercept.sh"), str(folder), "strict"], check=True, timeout=300)
    (folder / "libjunctura.so.0").symlink_to(BUILT / "libjunctura_c.so")
    return folder / "libjunctura-netcdf.so"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles a program of `programs`, once for all tests."""
    folder = tmp_path_factory.mktemp("programs")

    def compile_once(name: str) -> Path:
        program = folder / Path(name).stem
        return program if program.exists() else compile_program(name, program)

    return compile_once


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """Sockets apart from the user's; names of sockets are short, so the folders of tests are not for them."""
    with tempfile.TemporaryDirectory(prefix="i-") as folder:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("JUNCTURA_")}
        yield {**plain, "XDG_RUNTIME_DIR": folder, "PATH": f"{BUILT}:{os.environ['PATH']}"}


@pytest.fixture
def pool(environment: dict[str, str]) -> Iterator[str]:
    """The URL of a pool that is served."""
    command = [str(BUILT / "junctura"), "pool", "serve", "--pool", "unix:test", "--budget", "256MiB", "--announce"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()
        assert server.wait(timeout=60) == 0


@pytest.fixture
def intercepted(environment: dict[str, str], pool: str, preload: Path) -> dict[str, str]:
    """The environment of a program whose files `pool*.nc` are in the pool."""
    return {**environment, "JUNCTURA_POOL": pool, "JUNCTURA_NETCDF": "pool*.nc=pool", "LD_PRELOAD": str(preload)}
