"""The plugin, built with CMake against an installed library, and programs of ADIOS2 that use it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "c"))
sys.path.insert(0, str(Path(__file__).parent))

from c_programs import BUILT, ROOT
from c_surroundings import environment

import junctura

__all__ = ["environment"]

Program = Callable[..., subprocess.Popen[str]]
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def adios2() -> Path:
    """The environment with ADIOS2."""
    home = os.environ.get("JUNCTURA_TEST_ADIOS2")
    if home is None:
        pytest.skip("ADIOS2 is not installed: tests/adios2/run.py installs it")
    return Path(home)


@pytest.fixture(scope="session")
def plugin(adios2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the plugin."""
    folder = tmp_path_factory.mktemp("adios2")
    (config,) = adios2.glob("lib/python*/site-packages/adios2/cmake/adios2")
    prefix, build = folder / "prefix", folder / "build"
    commands: list[list[str | Path]] = [
        [ROOT / "tools/install_c.sh", prefix, BUILT],
        ["cmake", "-S", ROOT / "c/adios2", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DADIOS2_DIR={config}"],
        ["cmake", "--build", build],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning:" not in done.stderr, done.stderr
    return build


@pytest.fixture
def pool(environment: dict[str, str]) -> Iterator[junctura.Pool]:
    words = [str(BUILT / "junctura"), "pool", "serve", "--pool", "unix:test", "--schema", "rowcol", "--announce"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline().strip() == "unix:test"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
            with junctura.Pool("unix:test") as opened:
                yield opened
        server.terminate()


def configuration(engine: str, **parameters: str) -> str:
    lines = [f'      <parameter key="{name}" value="{value}"/>' for name, value in parameters.items()]
    inside = "\n".join([f'    <engine type="{engine}">', *lines, "    </engine>"])
    return f'<?xml version="1.0"?>\n<adios-config>\n  <io name="heat">\n{inside}\n  </io>\n</adios-config>\n'


@pytest.fixture
def program(adios2: Path, plugin: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[Program]:
    """Starts a program with the engine ``plugin``, or another one; parameters are those of the engine."""
    started: list[subprocess.Popen[str]] = []
    everything = {**environment, "ADIOS2_PLUGIN_PATH": str(plugin)}
    everything.pop("PYTHONPATH", None)

    def start(
        name: str,
        *words: object,
        engine: str = "plugin",
        environment: dict[str, str] | None = None,
        **parameters: str,
    ) -> subprocess.Popen[str]:
        if engine == "plugin":
            parameters = {
                "PluginName": "heat",
                "PluginLibrary": "junctura-adios2",
                "Pool": "unix:test",
                **parameters,
            }
        config = tmp_path / f"config-{len(started)}.xml"
        config.write_text(configuration(engine, **{key: value for key, value in parameters.items() if value}))
        command = [str(adios2 / "bin/python"), str(PROGRAMS / name), str(config), *map(str, words)]
        pipe = subprocess.PIPE
        own = {**everything, **(environment or {})}
        started.append(subprocess.Popen(command, env=own, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                stream.close()
