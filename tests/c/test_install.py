"""The installed library, as pkg-config and CMake find it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from c_programs import BUILT, PROGRAMS, ROOT, has


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed") / "prefix"
    subprocess.run([ROOT / "tools/install_c.sh", folder, BUILT], check=True)
    return folder


def output(*command: str | Path, **environment: str) -> str:
    everything = {**os.environ, **environment}
    return subprocess.run(command, env=everything, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not has("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_finds_it(prefix: Path, tmp_path: Path) -> None:
    words = output("pkg-config", "--cflags", "--libs", "junctura", PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    program = tmp_path / "functions"
    output("gcc", PROGRAMS / "functions.c", "-o", program, *words.split())
    assert output(program) == "done\n"


@pytest.mark.skipif(not has("cmake"), reason="CMake is not installed")
def test_cmake_finds_it(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\n"
        "project(user C)\n"
        "find_package(Junctura 0.1 REQUIRED)\n"
        f"add_executable(functions {PROGRAMS}/functions.c)\n"
        "target_link_libraries(functions PRIVATE Junctura::junctura)\n"
    )
    output("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    output("cmake", "--build", tmp_path / "build")
    assert output(tmp_path / "build/functions") == "done\n"
