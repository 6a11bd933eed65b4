"""A Catalyst that is built for the tests, a pool that is served, and ranks of a program that calls Catalyst."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import catalyst_programs
from c_programs import BUILT
from c_surroundings import environment, run, valgrind
from catalyst_programs import HERE, CatalystBuild
from catalyst_ranks import CatalystRanks

import junctura

__all__ = ["environment", "run", "valgrind"]

Serve = Callable[..., subprocess.Popen[str]]
Ranks = Callable[..., CatalystRanks]


@pytest.fixture(scope="session")
def catalyst(tmp_path_factory: pytest.TempPathFactory) -> CatalystBuild:
    return catalyst_programs.build(tmp_path_factory.mktemp("catalyst"))


@pytest.fixture
def serve(environment: dict[str, str]) -> Iterator[Serve]:
    """Starts a server for the pool ``unix:test`` with the schema of meshes."""
    with contextlib.ExitStack() as stack:

        def start(budget: str = "256MiB") -> subprocess.Popen[str]:
            words = ["pool", "serve", "--pool", "unix:test", "--schema", "mesh", "--budget", budget, "--announce"]
            command = [str(BUILT / "junctura"), *words]
            server = stack.enter_context(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
            stack.callback(server.kill)
            assert server.stdout is not None
            assert server.stdout.readline().strip() == "unix:test"
            return server

        yield start


@pytest.fixture
def pool(serve: Serve, environment: dict[str, str]) -> Iterator[junctura.Pool]:
    server = serve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
        patch.delenv("JUNCTURA_POOL", raising=False)
        with junctura.Pool("unix:test") as opened:
            yield opened
    server.terminate()
    assert server.wait(timeout=60) == 0


@pytest.fixture
def blocks(catalyst: CatalystBuild) -> Path:
    return catalyst.program(HERE / "programs/blocks.c")


@pytest.fixture
def ranks(blocks: Path, environment: dict[str, str]) -> Iterator[Ranks]:
    """Starts ranks of a program; ends those that are left."""
    with contextlib.ExitStack() as stack:

        def start(count: int, *words: object, options: str = "", program: Path = blocks, **more: str) -> CatalystRanks:
            everything = {
                **environment,
                "JUNCTURA_POOL": "unix:test",
                "CATALYST_IMPLEMENTATION_NAME": "junctura",
                "JUNCTURA_CATALYST": options,
                **more,
            }
            return stack.enter_context(CatalystRanks(count, [str(program), *map(str, words)], everything))

        yield start
