"""What is installed for C, C++ and Fortran, as pkg-config and CMake find it."""

from __future__ import annotations

import os
import py_compile
import subprocess
from pathlib import Path

import pytest
from c_programs import BUILT, PROGRAMS, ROOT, has
from hello_programs import COMPILERS, FILES, HELLO, cmake_lists


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed") / "prefix"
    subprocess.run([ROOT / "tools/install_c.sh", folder, BUILT], check=True)
    return folder


def output(*command: str | Path, **environment: str) -> str:
    everything = {**os.environ, **environment}
    return subprocess.run(command, env=everything, capture_output=True, text=True, check=True).stdout


@pytest.fixture(params=sorted(HELLO))
def language(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A language whose compiler is here; its program is in the folder of the test."""
    language = str(request.param)
    if not has(COMPILERS[language]):
        pytest.skip(f"{COMPILERS[language]} is not installed: tools/setup.sh dev")
    (tmp_path / FILES[language]).write_text(HELLO[language])
    return language


@pytest.mark.skipif(not has("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_finds_it(language: str, prefix: Path, tmp_path: Path) -> None:
    found = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    words = output("pkg-config", "--cflags", "--libs", "junctura", **found).split()
    module = output("pkg-config", "--variable=fortran", "junctura", **found).split() if language == "Fortran" else []
    program = tmp_path / "hello"
    modules: list[str | Path] = ["-J", tmp_path] if language == "Fortran" else []
    output(COMPILERS[language], *modules, *module, tmp_path / FILES[language], "-o", program, *words)
    assert output(program) == "hello\n"


@pytest.mark.skipif(not has("cmake"), reason="CMake is not installed")
def test_cmake_finds_it(language: str, prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(cmake_lists(language))
    output("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    output("cmake", "--build", tmp_path / "build")
    assert output(tmp_path / "build/hello") == "hello\n"


def test_the_program_of_every_function_is_built_from_it(prefix: Path, tmp_path: Path) -> None:
    links: list[str | Path] = ["-I", prefix / "include", "-L", prefix / "lib", f"-Wl,-rpath,{prefix}/lib", "-ljunctura"]
    output("gcc", PROGRAMS / "functions.c", "-o", tmp_path / "functions", *links)
    assert output(tmp_path / "functions") == "done\n"


def test_the_recipe_of_spack_is_python(tmp_path: Path) -> None:
    py_compile.compile(str(ROOT / "c/install/spack_package.py"), str(tmp_path / "recipe.pyc"), doraise=True)
